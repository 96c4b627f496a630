"""The desk: where whoever plans a change brings what two sides cannot both have.

Rule: it decides nothing. It says how a conflict was settled, and keeps those that nobody settled.
"""

from __future__ import annotations

from trace_store.frozen import replace
from trace_store.merge.conflicts import OURS, REWORDING, Conflict, ConflictMessage, Settlement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.context.entries import Entry
    from trace_store.merge.conflicts import Read, Settlements
    from trace_store.objects.address import Address


class Desk:
    """Where conflicts are brought: it says how each was settled, and keeps those that nobody settled.

    Attributes:
        open: conflicts without a settlement, in the order in which they were met.
        settled: the others.
    """

    __slots__ = ("_favour", "_met", "_read", "_reverts", "_settlements", "_step", "open", "settled")

    def __init__(
        self,
        settlements: Settlements,
        favour: str = "",
        step: str = "",
        *,
        reverts: bool = False,
        read: Read | None = None,
    ) -> None:
        """Begin.

        Args:
            settlements: how conflicts were settled so far, by their keys.
            favour: OURS or THEIRS settles all others, where it may.
            step: which of several steps they belong to.
            reverts: whether they stand in the way of a revert.
            read: returns the content of messages, for those who settle conflicts.
        """
        self._read = read
        self._step = step
        self._reverts = reverts
        self._settlements = settlements
        self._favour = favour
        self._met: dict[str, list[str]] = {}
        self.open: list[Conflict] = []
        self.settled: list[Conflict] = []

    def bring(
        self,
        kind: str,
        addresses: Sequence[Address],
        base: Entry | None = None,
        ours: Sequence[Entry] = (),
        theirs: Sequence[Entry] = (),
    ) -> Settlement:
        """Return how a conflict is settled; as long as nobody did, it is kept, and ours stays as it is."""
        # As they are now, since what is made goes on to change the messages themselves.
        conflict = Conflict(
            kind,
            tuple(addresses),
            None if base is None else ConflictMessage.of(base, self._read),
            tuple(ConflictMessage.of(entry, self._read) for entry in ours),
            tuple(ConflictMessage.of(entry, self._read) for entry in theirs),
            self._step,
            self._reverts,
        )
        met = self._met.setdefault(conflict.key, [])
        if conflict.stakes not in met:
            met.append(conflict.stakes)
        conflict = replace(conflict, others=met.index(conflict.stakes))
        found = self._settlements.get(conflict.key)
        contradicts = kind != REWORDING  # that is asked for, and favours no side
        if found is None and contradicts and self._favour in conflict.choices:
            found = Settlement(self._favour)
        if found is not None and found.about not in ("", conflict.stakes):
            found = None  # what it was about has been changed since
        if found is None or found.choice not in conflict.choices:
            self.open.append(conflict)
            return Settlement(OURS)
        self.settled.append(replace(conflict, settlement=found))
        return found

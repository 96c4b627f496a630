"""Collector of conflicts, which applies the resolutions that are known."""

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
    """Collects conflicts and returns their resolutions.

    Attributes:
        open: conflicts without a resolution, in order.
        settled: resolved conflicts.
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
        """Start without conflicts.

        Args:
            settlements: resolutions by conflict key.
            favour: OURS or THEIRS resolves all others that allow it.
            step: prefix of conflict keys.
            reverts: whether they are conflicts of a revert.
            read: reads content, for resolvers.
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
        """Add a conflict and return its resolution; OURS while it is open."""
        # A snapshot, since the merge goes on to change the entries.
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
        contradicts = kind != REWORDING  # a requested edit has no sides
        if found is None and contradicts and self._favour in conflict.choices:
            found = Settlement(self._favour)
        if found is not None and found.about not in ("", conflict.stakes):
            found = None  # the stakes have changed
        if found is None or found.choice not in conflict.choices:
            self.open.append(conflict)
            return Settlement(OURS)
        self.settled.append(replace(conflict, settlement=found))
        return found

"""Messages that a commit may show again: what they say and where they stand, which no record of an index tells.

They are looked up at the end of the context, with those that stand around them.

Rule: what is said of a message is what a fold of the whole context says of it, or nothing is said.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.context.ends import end_of, targets_of
from trace_store.context.folding import Fold
from trace_store.context.index_building import UnknownError
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from trace_store.context.folding import Entry
    from trace_store.context.recent import Recent

    Address = tuple[bytes, int]


class Hidden:
    """The messages that a commit shows again, perhaps, or in an earlier wording, at the end of the context."""

    def __init__(self, oid: bytes, commit: Commit, named: set[Address], recent: Recent) -> None:
        """Look them up.

        Raises:
            UnknownError: only a fold can tell of one of them.
        """
        self._oid = oid
        self._named = named
        self._entries: list[Entry] = []
        self._places: dict[Address, int] = {}
        if not named:
            return
        found = end_of(commit.parents[0], recent, self._is_enough) if commit.parents else None
        if found is None:
            raise UnknownError
        self._entries = found.entries
        self._places = {entry.address: at for at, entry in enumerate(found.entries)}

    def __contains__(self, address: Address) -> bool:
        return address in self._named

    def before(self, address: Address) -> Iterator[Address]:
        """Yield the messages that stand before one, shown or hidden, the nearest first."""
        for at in range(self._places[address] - 1, -1, -1):
            yield self._entries[at].address

    def shown_before(self, address: Address) -> Address:
        """Return the nearest message before one that was shown before the commit."""
        at = self._places[address]
        return next(e.address for e in reversed(self._entries[:at]) if e.visible)

    def apply(self, operation: Operation, address: Address) -> Entry:
        """Return a message after an operation of the commit.

        Raises:
            UnknownError: it has no such wording.
        """
        at = self._places[address]
        one = Fold.of([self._entries[at].copy()])
        narrowed = Operation(operation.name, {**operation.fields, "targets": [list(address)]})
        try:
            one.apply(self._oid, Commit((), "", 0, [narrowed]))
        except errors.TraceError as error:
            raise UnknownError from error
        self._entries[at] = one.entries[0]
        return one.entries[0]

    def _is_enough(self, end: Fold) -> bool:
        """Tell whether all are there, each with a message before it that is shown."""
        if any(address not in end for address in self._named):
            return False
        is_behind_one = False
        for entry in end.entries:
            if entry.address in self._named and not is_behind_one:
                return False
            is_behind_one = is_behind_one or entry.visible
        return True


def shown_again(operation: Operation, oid: bytes) -> Collection[Address]:
    """Return the messages that an operation may show again."""
    if operation.name == ops.RESTORE:
        return targets_of(operation, oid)
    if operation.name == ops.ANNOTATE and operation.fields.get("priority") != ops.SKIP:
        return targets_of(operation, oid)
    return ()

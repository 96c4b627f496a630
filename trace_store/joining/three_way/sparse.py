"""The part of three contexts that a merge looks at: what theirs changed, and the ends of both lines.

What theirs left alone stays as ours has it, so only messages that theirs named since the base are looked up; and rules
about answers and calls look back no further than to the last message that waits for nothing.

Rule: a plan made of these parts is the one that whole contexts lead to, or there are none. What is in doubt (a message
that no record shows, a place that only the whole order tells, a call whose result may stand anywhere) is left to folds.
"""

from __future__ import annotations

from trace_store.context.ends import (
    MOST_STEPS,
    STEPS,
    apply_at_end,
    line_before,
    targets_of,
)
from trace_store.context.folding import Entry, Fold
from trace_store.context.index_building import UnknownError
from trace_store.context.index_records import EDITED, GHOST, LABELLED
from trace_store.context.pairs import CALL, RESULT, loose
from trace_store.context.wording import find_message, find_wording
from trace_store.joining.groups import results_of
from trace_store.joining.plan import Side
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit
from trace_store.revision import created_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import TypeAlias

    from trace_store.context import Recent
    from trace_store.context.index_records import MessageRecord

    Address = tuple[bytes, int]
    Step = tuple[bytes, Commit]
    Find: TypeAlias = Callable[[bytes, tuple[bytes, int]], MessageRecord | None]
    """Gives the record that shows a message in the context of a commit; None when none does, or none is at hand."""


class Sparse:
    """Makes the parts of three contexts.

    Args:
        read: gives a commit.
        recent: looks up what is included.
        find: looks up what is shown.
        is_ancestor: tells whether a commit lies in another's past.
    """

    def __init__(
        self,
        read: Callable[[bytes], Commit],
        recent: Recent,
        find: Find,
        is_ancestor: Callable[[bytes, bytes], bool],
    ) -> None:
        self._read = read
        self._recent = recent
        self._find = find
        self._is_ancestor = is_ancestor

    def sides(self, base: bytes, ours: bytes, theirs: bytes) -> tuple[Fold, Side, Side]:
        """Return the base, ours and theirs, each with the messages that matter, in their order.

        Raises:
            UnknownError: only the whole contexts can tell.
            ObjectNotFoundError, CorruptObjectError: a commit is not here, or damaged.
        """
        yours, beside = self._until(theirs, base)
        if beside is not None or any(
            each.name in (ops.MOVE, ops.REPLACE) for _, made in yours for each in made.operations
        ):
            raise UnknownError
        mine, joint = self._until(ours, base)
        steps = STEPS
        while True:
            before, whole = line_before(base, steps, self._read)
            was, old = self._base(
                *(base, ours, before, mine if joint is None else None, yours), whole=whole
            )
            other = was.copy()
            apply_at_end(other, yours, self._recent, old, whole=True)
            if any(each not in other for each in _named(yours)):
                raise UnknownError
            one = was.copy()
            if joint is not None:
                one, old = self._joined(ours, joint, mine, _named(yours) & was.addresses())
            else:
                apply_at_end(one, mine, self._recent, old, whole=whole)
            known = joint is None or all(each in was for each in _named([joint]) & one.addresses())
            everything = whole and joint is None
            if known and (everything or _is_enough(was, one, other, old)):
                self._refuse_unsure(was, one, other, ours, theirs)
                return was, Side(one), Side(other)
            if whole or steps >= MOST_STEPS:
                raise UnknownError
            steps *= 4

    def _until(self, tip: bytes, base: bytes) -> tuple[list[Step], Step | None]:
        """Return the commits of a line since the base, oldest first, and the merge that brought the base in, or None.

        There is such a merge where the base is not on the line of first parents; it is not among the commits.
        """
        found: list[Step] = []
        while tip != base:
            commit = self._read(tip)
            if not commit.parents:
                raise UnknownError
            if len(commit.parents) > 1 and not self._is_ancestor(base, commit.parents[0]):
                if base not in commit.parents:
                    raise UnknownError
                return found[::-1], (tip, commit)
            found.append((tip, commit))
            tip = commit.parents[0]
        return found[::-1], None

    def _base(
        self,
        base: bytes,
        ours: bytes,
        before: Sequence[Step],
        mine: Sequence[Step] | None,
        yours: Sequence[Step],
        *,
        whole: bool,
    ) -> tuple[Fold, set[Address]]:
        """Return the base, and those of its messages that stand anywhere before the end.

        Where ours continues the base, a message that it has not named since is looked up in ours: it is as it was.
        """
        if any(each.name == ops.TOOLS for _, made in yours for each in made.operations):
            raise UnknownError
        near = Fold()
        apply_at_end(near, before, self._recent, whole=whole)
        old = _named(yours) - near.addresses() - _made_by(yours)
        by_us = old if mine is None else _named(mine)
        entries = [self._old(each, base if each in by_us else ours) for each in old]
        return _with_old(near, entries), old

    def _joined(
        self, ours: bytes, joint: Step, mine: Sequence[Step], named: Collection[Address]
    ) -> tuple[Fold, set[Address]]:
        """Return ours from the merge on that brought the base in, with some messages from before it."""
        one = Fold()
        apply_at_end(one, [joint, *mine], self._recent, whole=False)
        old = {each for each in named if each not in one}
        return _with_old(one, [self._old(each, ours) for each in old]), old

    def _old(self, address: Address, tip: bytes) -> tuple[int, Entry]:
        """Return (place, entry) of a message as the context of a commit shows it."""
        record = self._find(tip, address)
        if record is None or record.flags & (GHOST | LABELLED):
            raise UnknownError
        entry = Entry(address, find_message(address, self._read))
        if record.flags & EDITED:
            place = record.place_commit, record.place_number
            entry.reword(find_wording(place, self._read), place)
        if any(part.get("type") in (CALL, RESULT) for part in entry.parts):
            raise UnknownError
        entry.priority = record.priority
        return record.ordinal, entry

    def _refuse_unsure(self, was: Fold, one: Fold, other: Fold, ours: bytes, theirs: bytes) -> None:
        """Raise where a message that only one side seems to have may be in the part of the other that was not read."""
        for here, there, far in ((other, one, ours), (one, other, theirs)):
            alone = {a[0] for a in here.addresses() if a not in there and a not in was}
            if any(self._is_ancestor(each, far) for each in alone):
                raise UnknownError


def _is_enough(was: Fold, one: Fold, other: Fold, old: set[Address]) -> bool:
    """Tell whether the ends go back as far as any rule looks.

    Raises:
        UnknownError: a call waits whose result may stand anywhere.
    """
    calm = [
        entry.address
        for entry in was.entries
        if entry.visible
        and entry.address in one
        and entry.address not in old
        and not results_of(entry)
    ]
    if not any(one.entry(each).visible and other.entry(each).visible for each in calm):
        return False
    coming = [e for e in other.visible() if e.address not in was and e.address not in one]
    for side in ([*one.visible()], [*other.visible()], [*one.visible(), *coming]):
        for ghosts in (True, False):
            seen = [each for each in side if ghosts or not each.is_ghost]
            calls, results = loose(seen, of_end=True)
            if any(each not in was for each in calls):
                raise UnknownError
            if any(each not in was for each in results):
                return False
    return True


def _with_old(near: Fold, old: Iterable[tuple[int, Entry]]) -> Fold:
    """Return a fold that begins with messages from before it, by their places."""
    entries = [entry for _, entry in sorted(old, key=lambda each: each[0])]
    found = Fold.of([*entries, *near.entries])
    found.tools, found.tools_commit = near.tools, near.tools_commit
    return found


def _named(steps: Iterable[Step]) -> set[Address]:
    """Return the messages that operations of commits name, and those that they bring."""
    return {
        address
        for oid, commit in steps
        for operation in commit.operations
        for address in targets_of(operation, oid)
    }


def _made_by(steps: Iterable[Step]) -> set[Address]:
    """Return the messages that commits create, and those that they include."""
    found: set[Address] = set()
    for oid, commit in steps:
        found |= {(oid, number) for number in range(created_by(commit))}
        for operation in commit.operations:
            if operation.name == ops.INCLUDE:
                found.update(targets_of(operation, oid))
    return found

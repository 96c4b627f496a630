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
from trace_store.context.pairs import loose
from trace_store.context.wording import find_message, find_wording
from trace_store.joining.groups import calls_of, is_half, results_of
from trace_store.joining.plan import Side
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit
from trace_store.revision import created_by
from trace_store.values import value

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


MOST_PARTED = 2048
"""Commits of each line since two parted that are looked at, where theirs has taken in ours since."""


@value
class _Lines:
    """What a merge has to tell apart.

    Attributes:
        base, ours, theirs: the merge base and the tips.
        since: the commits of the base's line since theirs parted from it; none where theirs goes on from the base.
        yours: those of theirs since then, or since the base.
        mine: those of ours since the base, or since the merge that brought it in.
        joint: that merge, where the base lies beside our line.
    """

    base: bytes
    ours: bytes
    theirs: bytes
    since: Sequence[Step]
    yours: Sequence[Step]
    mine: Sequence[Step]
    joint: Step | None


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
        lines = self._lines(base, ours, theirs)
        self._refuse_unplaced(lines)
        start = lines.since[0][1].parents[0] if lines.since else base
        steps = STEPS
        while True:
            before, whole = line_before(start, steps, self._read)
            found = self._made_of(before, lines, whole=whole)
            last = whole or steps >= MOST_STEPS
            if found is not None and (last or not _may_be_answered(*found)):
                self._refuse_unsure(*found, lines)
                return found[0], Side(found[1]), Side(found[2])
            if last:
                raise UnknownError
            steps *= 4

    def _lines(self, base: bytes, ours: bytes, theirs: bytes) -> _Lines:
        mine, joint = self._until(ours, base)
        if joint is not None and base not in joint[1].parents:
            raise UnknownError
        yours, beside = self._until(theirs, base)
        since: list[Step] = []
        if beside is not None:
            if joint is not None:
                raise UnknownError  # both took the base in from beside
            since, yours = self._since_parted(base, theirs)
        return _Lines(base, ours, theirs, since, yours, mine, joint)

    def _made_of(
        self, before: Sequence[Step], lines: _Lines, *, whole: bool
    ) -> tuple[Fold, Fold, Fold] | None:
        """Return the parts, made of some commits before all that differs; None where these are too few."""
        end = Fold()
        apply_at_end(end, before, self._recent, whole=whole)
        named = _named([*lines.since, *lines.yours, *lines.mine])
        if _named(lines.since) - end.addresses() - _made_by(lines.since):
            return None  # no record tells how these were before
        if not whole and loose([*end.visible()], of_end=True)[1] & named:
            return None  # the call of a result that matters stands further back
        old, entries = self._from_before(end, lines)
        near = _with_old(end, entries)
        was = self._gone_on(near, lines.since, old, whole=whole)
        other = self._gone_on(near, lines.yours, old, whole=whole)
        if _order(was, other) != _order(other, was):
            raise UnknownError
        if lines.joint is None:
            one = was.copy()
            apply_at_end(one, lines.mine, self._recent, old, whole=whole)
            _refuse_halves(old, one, other)
            return (was, one, other) if whole or _is_enough(near, one, other, old) else None
        one, earlier = self._joined(lines, _named(lines.yours) & was.addresses())
        _refuse_halves(old | earlier, one, other)
        known = all(each in was for each in _named([lines.joint]) & one.addresses())
        return (was, one, other) if known and _is_enough(near, one, other, earlier) else None

    def _gone_on(
        self, near: Fold, steps: Sequence[Step], old: set[Address], *, whole: bool
    ) -> Fold:
        """Return what a line makes of the context that it goes on from."""
        state = near.copy()
        apply_at_end(state, steps, self._recent, old, whole=whole)
        if any(each not in state for each in _named(steps)):
            raise UnknownError
        return state

    def _since_parted(self, base: bytes, theirs: bytes) -> tuple[list[Step], list[Step]]:
        """Return the commits of the base's line, and of theirs, since the two parted, oldest first."""
        lines: tuple[list[Step], list[Step]] = ([], [])
        tips: list[bytes | None] = [base, theirs]
        places: tuple[dict[bytes, int], dict[bytes, int]] = ({}, {})
        while any(tips) and max(map(len, lines)) < MOST_PARTED:
            for which in (0, 1):
                tip = tips[which]
                if tip is None:
                    continue
                places[which][tip] = len(lines[which])
                if tip in places[1 - which]:
                    found = [lines[n][: places[n][tip]][::-1] for n in (0, 1)]
                    return found[0], found[1]
                commit = self._read(tip)
                lines[which].append((tip, commit))
                tips[which] = commit.parents[0] if commit.parents else None
        raise UnknownError

    def _refuse_unplaced(self, lines: _Lines) -> None:
        """Raise where theirs placed messages since the base, or tools were set: then whole orders and lines count."""
        for oid in self._recent.new_commits(lines.theirs, lines.base):
            for each in self._read(oid).operations:
                placed = each.name == ops.INCLUDE and each.fields.get("after") is not None
                if each.name in (ops.MOVE, ops.REPLACE) or (placed and lines.joint is not None):
                    raise UnknownError
        steps = (*lines.since, *lines.yours)
        if any(each.name == ops.TOOLS for _, made in steps for each in made.operations):
            raise UnknownError

    def _until(self, tip: bytes, base: bytes) -> tuple[list[Step], Step | None]:
        """Return the commits of a line since the base, oldest first, and the merge that brought the base in, or None.

        There is such a merge where the base is not on the line of first parents; it is not among the commits. The base
        may be one of its parents, or lie in the past of one.
        """
        found: list[Step] = []
        while tip != base:
            commit = self._read(tip)
            if not commit.parents:
                raise UnknownError
            if len(commit.parents) > 1 and not self._is_ancestor(base, commit.parents[0]):
                return found[::-1], (tip, commit)
            found.append((tip, commit))
            tip = commit.parents[0]
        return found[::-1], None

    def _from_before(
        self, near: Fold, lines: _Lines
    ) -> tuple[set[Address], list[tuple[int, Entry]]]:
        """Return the messages that theirs names and that stand anywhere before the end, and each with its place.

        Where ours continues the base, a message that it has not named since is looked up in ours: it is as it was.
        """
        old = _named(lines.yours) - near.addresses() - _made_by(lines.yours)
        old -= _made_by(lines.since)
        by_us = old if lines.joint is not None else old & _named(lines.mine)
        if by_us and by_us != old:
            raise UnknownError  # two records do not tell which of two messages stands first
        tip = lines.base if by_us else lines.ours
        return old, [self._old(each, tip) for each in old]

    def _joined(self, lines: _Lines, named: Collection[Address]) -> tuple[Fold, set[Address]]:
        """Return ours from the merge on that brought the base in, with some messages from before it."""
        one = Fold()
        assert lines.joint is not None
        apply_at_end(one, [lines.joint, *lines.mine], self._recent, whole=False)
        old = {each for each in named if each not in one}
        return _with_old(one, [self._old(each, lines.ours) for each in old]), old

    def _old(self, address: Address, tip: bytes) -> tuple[int, Entry]:
        """Return (place, entry) of a message as the context of a commit shows it."""
        record = self._find(tip, address)
        if record is None or record.flags & (GHOST | LABELLED):
            raise UnknownError
        entry = Entry(address, find_message(address, self._read))
        if record.flags & EDITED:
            place = record.place_commit, record.place_number
            entry.reword(find_wording(place, self._read), place)
        if any(map(is_half, entry.parts)):
            raise UnknownError
        entry.priority = record.priority
        return record.ordinal, entry

    def _refuse_unsure(self, was: Fold, one: Fold, other: Fold, lines: _Lines) -> None:
        """Raise where a message that only one side seems to have may be in the part of the other that was not read.

        What both tips have in their past is in the base's, since there is one merge base.
        """
        for here, there, tip in ((other, one, lines.theirs), (one, other, lines.ours)):
            new = self._recent.new_commits(tip, lines.base)
            if any(a[0] not in new for a in here.addresses() if a not in there and a not in was):
                raise UnknownError


def _is_enough(near: Fold, one: Fold, other: Fold, old: set[Address]) -> bool:
    """Tell whether the ends go back as far as any rule looks.

    Args:
        near: the context that all go on from.
        one: ours.
        other: theirs.
        old: messages of it that stand anywhere before its end.

    Raises:
        UnknownError: a call waits whose result may stand anywhere.
    """
    calm = [
        entry.address
        for entry in near.entries
        if entry.visible
        and entry.address in one
        and entry.address not in old
        and not results_of(entry)
    ]
    if not any(one.entry(each).visible and other.entry(each).visible for each in calm):
        return False
    coming = [e for e in other.entries if e.address not in near and e.address not in one]
    for side in (one.entries, other.entries, [*one.entries, *coming]):
        if any(each not in near for each in loose(side, of_end=True)[1]):
            return False  # a result that is hidden answers its call, too
        for ghosts in (True, False):
            seen = [each for each in side if each.visible and (ghosts or not each.is_ghost)]
            calls, results = loose(seen, of_end=True)
            if any(each not in near for each in calls):
                raise UnknownError
            if any(each not in near for each in results):
                return False
    return True


def _may_be_answered(was: Fold, one: Fold, other: Fold) -> bool:
    """Tell whether a call that a side answers may have a result from before it, which is looked for a while."""
    seen = [*was.visible()]
    calls, _ = loose(seen)
    waiting = {name for each in seen if each.address in calls for name in calls_of(each)}
    new = (each for side in (one, other) for each in side.entries if each.address not in was)
    return bool(waiting) and any(name in waiting for each in new for name in results_of(each))


def _refuse_halves(old: Collection[Address], *parts: Fold) -> None:
    """Raise where a message from before the end became a call or a result."""
    for part in parts:
        if any(is_half(each) for a in old if a in part for each in part.entry(a).parts):
            raise UnknownError


def _order(one: Fold, other: Fold) -> list[Address]:
    """Return the messages of one that the other has, too, in the order of the one."""
    return [entry.address for entry in one.entries if entry.address in other]


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

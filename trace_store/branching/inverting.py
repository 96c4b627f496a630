"""What takes a commit back: operations that undo what it did, where nothing later decided otherwise.

Rule: pure, a function of three folds: the context before the commit, after it, and now. What the commit changed and
what stands as it left it goes back to what it was. What something later changed as well is a conflict, with a name;
nothing is decided silently.
"""

from __future__ import annotations

from trace_store.context.folding import REPLACED, Entry, Fold
from trace_store.context.pairs import CALL, RESULT, callers
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, Operation
from trace_store.values import mutable, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence, Set
    from typing import Any, TypeAlias

    Address = tuple[bytes, int]
    Decide: TypeAlias = Callable[["Conflict"], bool]

BOTH_EDITED = "both-edited"
EDITED_AND_REMOVED = "edited-and-removed"
COMPRESSED_AND_EDITED = "compressed-and-edited"
CONTRADICTING_PRIORITIES = "contradicting-priorities"
BOTH_MOVED = "both-moved"
BOTH_SET_TOOLS = "both-set-tools"
SEPARATED_CALL = "separated-call"


@value
class Conflict:
    """Something that a commit changed, and something later changed otherwise.

    Attributes:
        kind: one of the names above.
        address: the message; None of the tools.
    """

    kind: str
    address: Address | None


@mutable
class Inverse:
    """The operations that take a commit back, and what stands in their way.

    Attributes:
        operations: to be applied to the context as it is now.
        conflicts: those that were decided about.
    """

    operations: list[Operation]
    conflicts: list[Conflict]


def invert(
    before: Fold,
    after: Fold,
    now: Fold,
    commit: Commit,
    decide: Decide,
    later: Callable[[], Set[Address]] = frozenset,
) -> Inverse:
    """Return what takes a commit back.

    Args:
        before: the context that the commit continued.
        after: the context after it.
        now: the context in which it is taken back.
        commit: the commit.
        decide: tells of each conflict whether what the commit did is taken back all the same.
        later: returns the messages that will be hidden with other commits, after this one.
    """
    return _Inverting(before, after, now, decide, later).run(commit)


class _Inverting:
    """One commit that is taken back."""

    def __init__(
        self,
        before: Fold,
        after: Fold,
        now: Fold,
        decide: Decide,
        later: Callable[[], Set[Address]],
    ) -> None:
        self._before = {entry.address: entry for entry in before.entries}
        self._now = {entry.address: entry for entry in now.entries}
        self._folds = before, after, now
        self._decide = decide
        self._later = later
        self._conflicts: list[Conflict] = []
        # Summaries that others stand for, and that are left at that; and what these stood for.
        self._standing: set[Address] = set()
        self._summarised: set[Address] = set()
        self._hide: dict[bool, list[Address]] = {}
        self._show: list[Address] = []
        self._replace: list[Address] = []
        self._wordings: list[Operation] = []
        self._worded: dict[Address, Sequence[Mapping[str, Any]]] = {}
        self._marks: list[Operation] = []

    def run(self, commit: Commit) -> Inverse:
        _, after, _ = self._folds
        # The rest the context never had.
        there = [made for made in after.entries if made.address in self._now]
        for made in there:
            if made.address not in self._before:
                self._take_out(made, self._now[made.address])
        self._summarised = self._left_summarised(commit)
        for made in there:
            if made.address in self._before:
                self._take_back(self._before[made.address], made, self._now[made.address])
        self._look_at_calls()
        moves = list(self._moves(commit))
        return Inverse(
            [*self._states(), *self._wordings, *self._marks, *moves, *self._tools()],
            self._conflicts,
        )

    def _conflict(self, kind: str, address: Address | None) -> bool:
        """Note a conflict; tell whether what the commit did is taken back all the same."""
        conflict = Conflict(kind, address)
        self._conflicts.append(conflict)
        return self._decide(conflict)

    def _take_out(self, made: Entry, now: Entry) -> None:
        """Hide a message that the commit brought."""
        if now.hidden == REPLACED and made.hidden != REPLACED:
            if not self._conflict(COMPRESSED_AND_EDITED, made.address):
                self._standing.add(made.address)
        elif (now.is_ghost and made.is_ghost) or (
            not now.hidden
            and (now.parts == made.parts or self._conflict(EDITED_AND_REMOVED, made.address))
        ):  # a merge brought it as one
            self._hide.setdefault(False, []).append(made.address)

    def _left_summarised(self, commit: Commit) -> set[Address]:
        """Return the messages that the commit summarised and that stay so, since its summary was summarised later."""
        if not self._standing:
            return set()
        brought = {
            (bytes(made), number)
            for operation in commit.operations
            if operation.name == ops.INCLUDE
            for made, number in operation.fields["targets"]
        }
        numbers = {number for _, number in self._standing - brought}
        created = 0
        found: set[Address] = set()
        for operation in commit.operations:
            count = ops.message_count(operation)
            if operation.name == ops.REPLACE and numbers.intersection(
                range(created, created + count)
            ):
                found |= {(bytes(made), number) for made, number in operation.fields["targets"]}
            created += count
        return found

    def _take_back(self, was: Entry, made: Entry, now: Entry) -> None:
        """Give a message back the state that it had before the commit."""
        address = made.address
        hidden = [(each.hidden, each.ghost) for each in (was, made, now)]
        kind = EDITED_AND_REMOVED
        if REPLACED in (was.hidden, made.hidden, now.hidden):
            kind = COMPRESSED_AND_EDITED
        shown = not now.hidden
        if address not in self._summarised and self._wants(hidden, kind, address):
            shown = not was.hidden
            if shown:
                self._show.append(address)
            elif was.hidden == REPLACED:
                self._replace.append(address)
            else:
                self._hide.setdefault(was.ghost, []).append(address)
        wordings = [each.parts for each in (was, made, now)]
        kind = COMPRESSED_AND_EDITED if now.hidden == REPLACED else BOTH_EDITED
        if was.parts != made.parts and now.hidden == REPLACED != made.hidden:
            self._conflict(kind, address)
        elif self._wants(wordings, kind, address):
            self._reword(was, now, shown=shown)
        self._mark(was, made, now)

    def _wants(self, states: Sequence[Any], kind: str, address: Address | None) -> bool:
        """Tell whether a property goes back to the first of its states before, after and now."""
        was, made, now = states
        if was in (made, now):
            return False
        return bool(made == now) or self._conflict(kind, address)

    def _reword(self, was: Entry, now: Entry, *, shown: bool) -> None:
        """Go back to a wording: to the version itself where that is to be had, since it would also show a message."""
        self._worded[was.address] = was.parts
        for number, version in enumerate(now.versions if shown else ()):
            if version.place == was.place:
                self._wordings.append(ops.restore([was.address], version=number))
                return
        self._wordings.append(ops.edit(was.address, was.parts))

    def _mark(self, was: Entry, made: Entry, now: Entry) -> None:
        fields: dict[str, Any] = {}
        priorities = [each.priority for each in (was, made, now)]
        if self._wants(priorities, CONTRADICTING_PRIORITIES, was.address):
            fields["priority"] = was.priority
        kept = [each.keep for each in (was, made, now)]
        if self._wants(kept, CONTRADICTING_PRIORITIES, was.address):
            fields["keep"] = list(was.keep)
        labels = sorted((was.labels - made.labels) - now.labels)
        unlabels = sorted((made.labels - was.labels) & now.labels)
        if labels:
            fields["labels"] = labels
        if unlabels:
            fields["unlabels"] = unlabels
        if fields:
            self._marks.append(ops.annotate([was.address], **fields))

    def _states(self) -> Iterator[Operation]:
        if self._show:
            yield ops.restore(self._show)
        if self._replace:
            yield ops.replace(self._replace, [])
        for ghost, addresses in self._hide.items():
            yield ops.remove(addresses, ghost=ghost)

    def _moves(self, commit: Commit) -> Iterator[Operation]:
        """Place what the commit moved where it was, each after what it then followed."""
        moved = {
            (bytes(target[0]), target[1])
            for operation in commit.operations
            if operation.name == ops.MOVE
            for target in operation.fields["targets"]
        }
        moved &= set(self._before) & set(self._now)
        if not moved:
            return
        there = set(self._before).intersection(self._now, self._folds[1].addresses())
        followed = [_followed(fold, moved, there) for fold in self._folds]
        stayed = {each for each in moved if followed[0].get(each) == followed[1].get(each)}
        places = [
            _places(fold, each, stayed) for fold, each in zip(self._folds, followed, strict=True)
        ]
        for address in (entry.address for entry in self._folds[0].entries):
            if address in moved and self._wants(
                [place.get(address) for place in places], BOTH_MOVED, address
            ):
                yield ops.move([address], after=self._neighbour(address))

    def _neighbour(self, address: Address) -> Address | None:
        """Return what a message followed before the commit, of what there is now."""
        found = None
        for entry in self._folds[0].entries:
            if entry.address == address:
                break
            if entry.address in self._now:
                found = entry.address
        return found

    def _tools(self) -> Iterator[Operation]:
        if self._wants([fold.tools for fold in self._folds], BOTH_SET_TOOLS, None):
            yield ops.tools([*self._folds[0].tools])  # type: ignore[list-item]

    def _look_at_calls(self) -> None:
        """Keep a call whose result stays, and a result whose call stays, or name both as what is separated."""
        self._look_at_results()
        going = [*self._hide.values(), self._replace]
        if not any(going):
            return
        seen = [e for e in self._folds[2].entries if e.visible and not e.is_ghost]
        together = [
            (seen[call].address, seen[result].address)
            for (result, name), call in callers(seen).items()
            if self._still_has(seen[call], CALL, name)
            and self._still_has(seen[result], RESULT, name)
        ]
        while True:
            hidden = {address for each in going for address in each}
            whole = self._whole_without(hidden)
            apart = {
                a
                for pair in together
                if len(hidden & {*pair}) == 1 and not whole & {*pair}
                for a in hidden & {*pair}
            }
            if apart:  # what goes with later commits will not be parted
                gone = _as_whole(self._later(), hidden, together)
                apart -= {a for pair in together if gone & {*pair} for a in pair}
            # What is kept may be half of another pair.
            kept = {a for a in sorted(apart) if not self._conflict(SEPARATED_CALL, a)}
            for each in going:
                each[:] = [address for address in each if address not in kept]
            if not kept:
                break
        self._hide = {ghost: each for ghost, each in self._hide.items() if each}

    def _still_has(self, entry: Entry, kind: str, name: str) -> bool:
        """Tell whether a message has a call or a result in the wording that it goes back to, if it does."""
        parts = self._worded.get(entry.address, entry.parts)
        return any(part["type"] == kind and part.get("id") == name for part in parts)

    def _look_at_results(self) -> None:
        """Name each result that is shown again of a call that has another one by now; one of them is shown."""
        left = self._left({address for each in self._hide.values() for address in each})
        results: dict[tuple[int, str], list[Address]] = {}
        for (result, name), call in callers(left).items() if self._show else ():
            results.setdefault((call, name), []).append(left[result].address)
        for several in (each for each in results.values() if len(each) > 1):
            for address in [each for each in several if each in self._show]:
                if self._conflict(SEPARATED_CALL, address):
                    others = [each for each in several if each not in self._show]
                    self._hide.setdefault(False, []).extend(others)
                else:
                    self._show.remove(address)

    def _left(self, hidden: Set[Address]) -> list[Entry]:
        """Return the messages that will be shown, when some are hidden."""
        shown = set(self._show)
        return [
            entry
            for entry in self._folds[2].entries
            if entry.address in shown
            or (entry.visible and not entry.is_ghost and entry.address not in hidden)
        ]

    def _whole_without(self, hidden: set[Address]) -> set[Address]:
        """Return the messages whose partner is what is shown again, when the one they have now goes."""
        if not self._show:
            return set()
        shown, left = set(self._show), self._left(hidden)
        pairs = [
            (left[call].address, left[result].address)
            for (result, _), call in callers(left).items()
        ]
        return {a for pair in pairs if shown & {*pair} for a in pair}


def _as_whole(
    going: Set[Address], hidden: Set[Address], together: Sequence[tuple[Address, Address]]
) -> set[Address]:
    """Return those of the messages going that are parted from none: what they stand with is going, or hidden."""
    found = set(going)
    while True:
        half = [pair for pair in together if found & {*pair} and not {*pair} <= found | hidden]
        if not half:
            return found
        found.difference_update(*half)


def _places(
    fold: Fold, followed: Mapping[Address, Address | None], stayed: set[Address]
) -> Mapping[Address, object]:
    """Return what each moved message follows; of those whose move kept that, also which such ones stand before it."""
    found: dict[Address, object] = {}
    before: dict[Address | None, list[Address]] = {}
    for address in (entry.address for entry in fold.entries if entry.address in followed):
        others = before.setdefault(followed[address], [])
        found[address] = followed[address], tuple(others) if address in stayed else ()
        if address in stayed:
            others.append(address)
    return found


def _followed(
    fold: Fold, moved: set[Address], there: set[Address]
) -> Mapping[Address, Address | None]:
    """Return what each of some messages follows, of those that were not moved and are there now."""
    found: dict[Address, Address | None] = {}
    last: Address | None = None
    for entry in fold.entries:
        if entry.address in moved:
            found[entry.address] = last
        elif entry.address in there:
            last = entry.address
    return found

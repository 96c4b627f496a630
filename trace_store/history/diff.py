"""Differences between the contexts of two revisions.

Rule: swapping the two contexts swaps `before` and `after` in every value and changes nothing else.

Rule: a context is the fold of operations along first parents. So a message that no operation on these two ways names is
the same in both contexts, and no more of the history is read to know that.

Rule: an address is an identity, so messages are paired by it, however far apart they stand. Only what is left, which
stands under another address on the other side, is paired by what it says. Pure functions of records.

Rule: the cost is that of what changed. Hashes over the beginning of each context tell by halving how much of it is the
same; before that point only messages that an operation named since the histories parted are looked at.
"""

from __future__ import annotations

from bisect import bisect_left

from trace_store.context.compiled import CompiledContext, CompiledMessage, stored_message
from trace_store.context.content import seen_of, seen_of_ghost
from trace_store.context.index_records import GHOST, LABELLED, START, MessageRecord
from trace_store.frozen import value
from trace_store.history.log import named
from trace_store.objects.address import BIRTH_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeAlias

    from trace_store.context.compile_index import IndexView
    from trace_store.context.compiler import ContextCompiler
    from trace_store.context.fold import ReadCommit
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Commit
    from trace_store.oid import ObjectId

    Said: TypeAlias = Callable[[MessageRecord], bytes]
    """Returns what a model sees of a message."""


ADDED = "added"
REMOVED = "removed"
EDITED = "edited"
MOVED = "moved"
PRIORITY = "priority"
LABELS = "labels"
GHOSTED = "ghost"
COPIED = "copied"
KINDS = (ADDED, REMOVED, EDITED, MOVED, PRIORITY, LABELS, GHOSTED, COPIED)
"""In what a message differs; the last says that the same words stand under another address."""


@value
class MessageChange:
    """One message that differs.

    Attributes:
        kinds: in what, of KINDS; `added` and `removed` stand alone.
        before, after: the message in each context, None where it is not.
        before_by, after_by: the last operation that named it since the two histories parted; None where none did.
        tokens_before, tokens_after: its tokens, 0 where it is not.
        labels_before, labels_after: its labels, as far as they were looked at: nothing when they are the same.
    """

    kinds: tuple[str, ...]
    before: CompiledMessage | None
    after: CompiledMessage | None
    before_by: By | None
    after_by: By | None
    tokens_before: int
    tokens_after: int
    labels_before: frozenset[str]
    labels_after: frozenset[str]

    @property
    def message(self) -> CompiledMessage:
        """The message as it is after, or was before."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def address(self) -> Address:
        """Its address; of a copy the one that it has after."""
        return self.message.address


@value
class ContextDiff:
    """What differs between two contexts.

    Attributes:
        before, after: the contexts.
        changes: the messages that differ, in the order in which they stand.
        common_count: how many messages at the beginning are the same to a model.
        tokens_kept: the tokens of these, without what a request costs once.
        tokens_before, tokens_after: the tokens of their messages, as they are counted here, without tools.
        token_source: how far to trust these numbers.
        tools_before, tools_after: names of the tools that only one of the contexts offers, or offers otherwise.
    """

    before: CompiledContext
    after: CompiledContext
    changes: tuple[MessageChange, ...]
    common_count: int
    tokens_kept: int
    tokens_before: int
    tokens_after: int
    token_source: str
    tools_before: tuple[str, ...]
    tools_after: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not (self.changes or self.tools_before or self.tools_after)

    @property
    def tools_differ(self) -> bool:
        """Whether other tools are offered. Providers put them first, so that nothing behind them is found again."""
        return bool(self.tools_before or self.tools_after)

    @property
    def tokens_lost(self) -> int:
        """Tokens of the context before that a provider's cache holds in vain for the context after."""
        return self.tokens_before if self.tools_differ else self.tokens_before - self.tokens_kept

    @property
    def tokens_new(self) -> int:
        """Tokens of the context after that no cache of the context before holds."""
        return self.tokens_after if self.tools_differ else self.tokens_after - self.tokens_kept


@value
class By:
    """The operation that last named a message.

    Attributes:
        operation: its name.
        commit: the commit that it stands in.
    """

    operation: str
    commit: ObjectId


class Way:
    """The commits from where two lines part, without it, to one of their ends.

    Attributes:
        commits: (id, commit), the newest first.
        last: the last operation that names a message, by the message's address.
        meets: whether there is a commit where they part.
        ranked: the messages that they give a priority.
    """

    __slots__ = ("commits", "last", "meets", "ranked")

    def __init__(self, commits: Sequence[tuple[ObjectId, Commit]], *, meets: bool) -> None:
        self.commits = commits
        self.meets = meets
        self.last: dict[Address, By] = {}
        self.ranked: set[Address] = set()
        for oid, commit in commits:
            for address, operation in reversed(list(named(oid, commit))):
                if "priority" in operation.fields:
                    self.ranked.add(address)
                if address not in self.last:
                    self.last[address] = By(operation.name, oid)


def ways(one: ObjectId, other: ObjectId, read_commit: ReadCommit) -> tuple[Way, Way]:
    """Return the ways of two commits from where their lines of first parents part.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit on them is not here, or is damaged.
    """
    lines: tuple[list[tuple[ObjectId, Commit]], ...] = ([], [])
    places: tuple[dict[ObjectId, int], ...] = ({}, {})
    at: list[ObjectId | None] = [one, other]
    while at[0] is not None or at[1] is not None:
        for side in (0, 1):
            oid = at[side]
            if oid is None:
                continue
            met = places[1 - side].get(oid)
            if met is not None:
                del lines[1 - side][met:]
                return Way(lines[0], meets=True), Way(lines[1], meets=True)
            commit = read_commit(oid)
            places[side][oid] = len(lines[side])
            lines[side].append((oid, commit))
            at[side] = commit.parents[0] if commit.parents else None
    return Way(lines[0], meets=False), Way(lines[1], meets=False)


class Pair:
    """A message on both sides.

    Attributes:
        before, after: its records.
        moved: whether it stands otherwise among the others.
    """

    __slots__ = ("after", "before", "moved")

    def __init__(self, before: MessageRecord, after: MessageRecord) -> None:
        self.before = before
        self.after = after
        self.moved = False


class Alignment:
    """Two runs of messages side by side.

    Attributes:
        pairs: what is on both sides, in the order of the first.
        removed, added: what is on one side alone, in order.
    """

    __slots__ = ("added", "pairs", "removed")

    def __init__(
        self, before: Sequence[MessageRecord], after: Sequence[MessageRecord], said: Said
    ) -> None:
        theirs = {record.address: record for record in after}
        pairs: list[Pair] = []
        self.removed: list[MessageRecord] = []
        for record in before:
            other = theirs.pop(record.address, None)
            if other is None:
                self.removed.append(record)
            else:
                pairs.append(Pair(record, other))
        self.added = list(theirs.values())
        if self.added and self.removed:
            pairs += self._copies(said)
            pairs.sort(key=lambda pair: pair.before.ordinal)
        self.pairs = pairs
        stay = longest_rise([pair.after.ordinal for pair in pairs])
        for index, pair in enumerate(pairs):
            pair.moved = index not in stay

    def _copies(self, said: Said) -> list[Pair]:
        """Take what says the same under another address out of what is on one side alone, and return it."""
        waiting: dict[bytes, list[MessageRecord]] = {}
        for record in reversed(self.added):
            waiting.setdefault(said(record), []).append(record)
        pairs: list[Pair] = []
        removed: list[MessageRecord] = []
        for record in self.removed:
            same = waiting.get(said(record))
            if same:
                pairs.append(Pair(record, same.pop()))
            else:
                removed.append(record)
        self.removed = removed
        left = [record for records in waiting.values() for record in records]
        self.added = sorted(left, key=lambda record: record.ordinal)
        return pairs


def same_message(one: MessageRecord, other: MessageRecord) -> bool:
    """Tell whether two records are of the same message in the same wording and state, as far as records say that."""
    return (
        (one.address, one.place_commit, one.place_number)
        == (other.address, other.place_commit, other.place_number)
        and one.flags & GHOST == other.flags & GHOST
        and one.priority == other.priority
    )


def longest_rise(values: Sequence[int]) -> set[int]:
    """Return the indexes of a longest run of values that rise, so that the fewest others have moved."""
    ends: list[int] = []  # the least value that a run of each length ends in
    last: list[int] = []  # and its index
    before: list[int] = [-1] * len(values)
    for index, number in enumerate(values):
        length = bisect_left(ends, number)
        if length == len(ends):
            ends.append(number)
            last.append(index)
        else:
            ends[length] = number
            last[length] = index
        before[index] = last[length - 1] if length else -1
    found: set[int] = set()
    index = last[-1] if last else -1
    while index >= 0:
        found.add(index)
        index = before[index]
    return found


_HALVES = ("assistant", "tool")
FEW = 16
"""Up to so many messages are looked for one by one; of more, all before the point where the contexts part are read."""


def diff(
    contexts: ContextCompiler,
    before: str | ObjectId | None,
    after: str | ObjectId = "HEAD",
    *,
    model: str = "",
) -> ContextDiff:
    """Return what differs between the contexts of two revisions.

    Args:
        contexts: compiles them.
        before: what names the commit to start from; None of nothing.
        after: what names the commit to come to.
        model: the model to count tokens for.

    Raises:
        RevisionNotFoundError: there is no such commit.
        ObjectNotFoundError, CorruptObjectError: the history is not whole.
    """
    sides = (contexts.compile(before, model=model), contexts.compile(after, model=model))
    # Where several answers are as good, both directions have to give the same one.
    turned = _rank(sides[0]) > _rank(sides[1])
    one, other = reversed(sides) if turned else sides
    found = _Comparison(contexts, one, other)
    return found.result(turned=turned)


def parted(one: IndexView, other: IndexView) -> int:
    """Return how many messages at the beginning of two contexts are the same to a model."""
    low, high = 0, min(one.message_count, other.message_count)
    middle = high
    while low < high:
        if _prefix(one, middle) == _prefix(other, middle):
            low = middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return low


def _prefix(view: IndexView, count: int) -> bytes:
    return next(view.messages(count - 1, count)).prefix if count else START


def _rank(context: CompiledContext) -> tuple[int, bytes, bytes]:
    return len(context), context.prefix_hash, context.commit or b""


class _Row:
    """One message on its way to a `MessageChange`."""

    __slots__ = ("after", "before", "kinds", "labels")

    def __init__(
        self, said: tuple[str, ...], before: MessageRecord | None, after: MessageRecord | None
    ) -> None:
        self.kinds = said
        self.before = before
        self.after = after
        self.labels: tuple[frozenset[str], frozenset[str]] = frozenset(), frozenset()

    def turn(self) -> None:
        """Look at it from the other side."""
        swap = {ADDED: REMOVED, REMOVED: ADDED}
        self.kinds = tuple([swap.get(kind, kind) for kind in self.kinds])
        self.before, self.after = self.after, self.before
        self.labels = self.labels[1], self.labels[0]

    def by(self, way: Way) -> By | None:
        """Return the last operation on a way that named it."""
        for record in (self.after, self.before):
            found = None if record is None else way.last.get(record.address)
            if found is not None:
                return found
        return None


class _Comparison:
    """Two contexts side by side."""

    def __init__(
        self, contexts: ContextCompiler, one: CompiledContext, other: CompiledContext
    ) -> None:
        self._contexts = contexts
        self._sides = (one, other)
        self._views = (one.view, other.view)
        self._ways: tuple[Way, ...] = ()
        if one.commit is not None and other.commit is not None:
            self._ways = ways(one.commit, other.commit, contexts.read_commit)
        self._touched: set[Address] = {address for way in self._ways for address in way.last}
        for way, side in zip(self._ways, self._sides, strict=False):
            if way.ranked and side.commit is not None:
                self._touched |= _units(contexts, side.commit, side.view, way.ranked)
        self.common = parted(*self._views)
        self._pairs = self._before_they_part()
        tails = [list(view.messages(self.common)) for view in self._views]
        self._tail = Alignment(tails[0], tails[1], self._seen)

    def result(self, *, turned: bool) -> ContextDiff:
        """Return what differs, from one to the other or, turned, from the other to the one."""
        pairs = [*self._pairs, *self._tail.pairs]
        rows = [_Row(self._kinds(pair), pair.before, pair.after) for pair in pairs]
        rows += [_Row((REMOVED,), record, None) for record in self._tail.removed]
        rows += [_Row((ADDED,), None, record) for record in self._tail.added]
        self._add_labels(rows)
        rows = [row for row in rows if row.kinds]
        before, after = self._sides
        ways_there = self._ways
        if turned:
            before, after = after, before
            ways_there = tuple(reversed(ways_there))
            for row in rows:
                row.turn()
        self._put_in_order(rows, turned=turned)
        counts = zip(
            _tokens(before, [row.before for row in rows]),
            _tokens(after, [row.after for row in rows]),
            strict=True,
        )
        return ContextDiff(
            before,
            after,
            tuple(
                MessageChange(
                    row.kinds,
                    _message(before, row.before),
                    _message(after, row.after),
                    row.by(ways_there[0]) if ways_there else None,
                    row.by(ways_there[1]) if ways_there else None,
                    *tokens,
                    *row.labels,
                )
                for row, tokens in zip(rows, counts, strict=True)
            ),
            self.common,
            after.tokens_before(self.common),
            before.message_token_count,
            after.message_token_count,
            after.estimate_source,
            *_tools(before, after),
        )

    def _before_they_part(self) -> list[Pair]:
        """Return the pairs in the common beginning that may differ in what a model is not shown."""
        places: set[int] = set()
        if self.common and self._touched:
            for side, view in enumerate(self._views):
                places.update(self._places(view, self._touched_there(side)))
        pairs = [self._pair(place) for place in sorted(places)]
        first = next((pair for pair in pairs if not _same_address(pair)), None)
        if first is not None:
            # Several that say the same: one of them went or came, and those after it are not where they were.
            start = first.before.ordinal - 1
            later = zip(*(view.messages(start, self.common) for view in self._views), strict=True)
            pairs = [each for each in pairs if each.before.ordinal <= start]
            pairs += [
                pair
                for pair in (Pair(*both) for both in later)
                if not _same_address(pair) or pair.before.ordinal - 1 in places
            ]
        return pairs

    def _pair(self, place: int) -> Pair:
        one, other = (next(view.messages(place, place + 1)) for view in self._views)
        return Pair(one, other)

    def _touched_there(self, side: int) -> set[Address]:
        """Return the messages that one side may have: not those that were made on the way of the other."""
        own, other = self._ways[side], self._ways[1 - side]
        made = {oid[:BIRTH_BYTES] for oid, _ in other.commits}
        return {each for each in self._touched if each in own.last or each.birth not in made}

    def _places(self, view: IndexView, touched: set[Address]) -> Iterable[int]:
        """Return the places in the common beginning of messages that were named on the way."""
        if len(touched) <= FEW:
            found = [record for each in touched if (record := view.find(each)) is not None]
            return [r.ordinal - 1 for r in found if r.ordinal <= self.common]
        within = view.messages(0, self.common)
        return [r.ordinal - 1 for r in within if r.address in touched]

    def _kinds(self, pair: Pair) -> tuple[str, ...]:
        one, other = pair.before, pair.after
        if not pair.moved and same_message(one, other):
            return ()
        said: list[str] = []
        same_address = _same_address(pair)
        ghosts = (one.flags & GHOST, other.flags & GHOST)
        if ghosts[0] != ghosts[1]:
            said.append(GHOSTED)
        elif not ghosts[0] and same_address and self._seen(one) != self._seen(other):
            said.append(EDITED)
        if pair.moved:
            said.append(MOVED)
        if one.priority != other.priority:
            said.append(PRIORITY)
        if not same_address:
            said.append(COPIED)
        return tuple(said)

    def _add_labels(self, rows: Sequence[_Row]) -> None:
        """Add the labels of messages that have others than before."""
        asked: list[tuple[_Row, MessageRecord, MessageRecord]] = []
        for row in rows:
            one, other = row.before, row.after
            if one is None or other is None or not (one.flags | other.flags) & LABELLED:
                continue
            addresses = one.address, other.address
            if not self._touched.isdisjoint(addresses):
                asked.append((row, one, other))
        # One fold after the other: a compiler remembers the last.
        one_side, other_side = self._sides
        before = [one_side.messages[one.ordinal - 1].labels for _, one, _ in asked]
        after = [other_side.messages[other.ordinal - 1].labels for _, _, other in asked]
        for (row, _, _), had, has in zip(asked, before, after, strict=True):
            if had != has:
                row.kinds += (LABELS,)
                row.labels = (had, has)

    def _put_in_order(self, rows: list[_Row], *, turned: bool) -> None:
        """Sort rows as the context after has them; what is not in it stands behind what it stood behind."""
        still = [pair for pair in self._tail.pairs if not pair.moved]
        places = [(pair.before.ordinal, pair.after.ordinal) for pair in still]
        if turned:
            places = [(after, before) for before, after in places]
        befores = [before for before, _ in places]

        def place(row: _Row) -> tuple[int, int, int]:
            if row.after is not None:
                return row.after.ordinal, 0, 0
            assert row.before is not None
            at = bisect_left(befores, row.before.ordinal)
            return places[at - 1][1] if at else self.common, 1, row.before.ordinal

        rows.sort(key=place)

    def _seen(self, record: MessageRecord) -> bytes:
        if record.flags & GHOST:
            return seen_of_ghost(record.role, record.address)
        stored = stored_message(record, self._contexts.read_commit)
        return seen_of(stored["role"], stored.get("name", ""), stored["parts"])


def _units(
    contexts: ContextCompiler, tip: ObjectId, view: IndexView, named: Iterable[Address]
) -> set[Address]:
    """Return the messages of the units of some: a priority that one of them is given holds for all."""
    records = [view.find(each) for each in named]
    halves = [
        record.address
        for record in records
        if record is not None and (record.role in _HALVES or record.kind == "tool_io")
    ]
    if not halves:
        return set()  # no context is folded for what cannot belong to a call
    state = contexts.fold(tip)
    return set(state.units(each for each in halves if each in state))


def _same_address(pair: Pair) -> bool:
    one, other = pair.before, pair.after
    return one.address == other.address


def _message(context: CompiledContext, record: MessageRecord | None) -> CompiledMessage | None:
    return None if record is None else context.messages[record.ordinal - 1]


def _tokens(context: CompiledContext, records: Sequence[MessageRecord | None]) -> list[int]:
    """Return the tokens of some messages, 0 for those that are not there."""
    places = [record.ordinal - 1 for record in records if record is not None]
    if not places:
        return [0] * len(records)
    first, end = min(places), max(places) + 1
    if end - first <= 8 * len(places):
        counts = context.message_tokens(first, end)
        return [0 if r is None else counts[r.ordinal - 1 - first][0] for r in records]
    return [
        0 if r is None else context.message_tokens(r.ordinal - 1, r.ordinal)[0][0] for r in records
    ]


def _tools(
    before: CompiledContext, after: CompiledContext
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of tools that only one side offers, or offers otherwise."""
    if before.view.tools_commit() == after.view.tools_commit():
        return (), ()
    one, other = list(before.tools), list(after.tools)
    return (
        tuple(_tool_name(tool) for tool in one if tool not in other),
        tuple(_tool_name(tool) for tool in other if tool not in one),
    )


def _tool_name(tool: Any) -> str:
    """Return the name in a schema, whichever provider's form it has."""
    inner = tool.get("function", tool) if isinstance(tool, dict) else {}
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) else "?"

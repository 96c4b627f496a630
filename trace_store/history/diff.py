"""Differences between the contexts of two revisions.

Swapping the two contexts swaps `before` and `after` in every value and changes nothing else.

A context is the fold of operations along first parents, so a message that no operation names since the histories parted
is the same in both. Messages are paired by address; those left over are paired by equal content.

The cost depends on the size of the change. A binary search over prefix hashes finds how many messages at the start are
the same; before that point only messages named since the histories parted are compared.
"""

from __future__ import annotations

from bisect import bisect_left

from trace_store import errors, history
from trace_store.base.frozen import value
from trace_store.context.compile_index import GHOST, IS_MARKED, START, MessageRecord
from trace_store.context.compiled import (
    CompiledContext,
    CompiledMessage,
    count_like,
    stored_message,
    tokens_before,
)
from trace_store.context.content import message_at, seen_of, seen_of_ghost
from trace_store.history.log import named
from trace_store.objects.address import BIRTH_BYTES
from trace_store.objects.parts import Data, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.store import revision as revisions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeAlias

    from trace_store.base.oid import ObjectId
    from trace_store.context.compile_index import IndexView
    from trace_store.context.compiler import ContextCompiler
    from trace_store.context.fold import ReadCommit
    from trace_store.history.request_diff import RenderedDiff
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Commit
    from trace_store.objects.parts import Part
    from trace_store.store.store import Store

    Said: TypeAlias = Callable[[MessageRecord], bytes]
    """Returns the bytes that a model sees of a message."""

ADDED = "added"
REMOVED = "removed"
EDITED = "edited"
MOVED = "moved"
PRIORITY = "priority"
LABELS = "labels"
GHOSTED = "ghost"
COPIED = "copied"
KINDS = (ADDED, REMOVED, EDITED, MOVED, PRIORITY, LABELS, GHOSTED, COPIED)
"""How a message can differ; COPIED means the same content at another address."""
_HALVES = ("assistant", "tool")
ONE_BY_ONE = 16
"""Up to this many messages are looked up one by one; for more, the whole common prefix is read."""


@value
class MessageChange:
    """One message that differs.

    Attributes:
        kinds: a subset of KINDS; `added` and `removed` exclude all others.
        before, after: the message in each context, or None.
        before_by, after_by: the last operation that named it since the histories parted, or None.
        tokens_before, tokens_after: its tokens; 0 where it is missing.
        labels_before, labels_after: its labels; empty if they are the same.
    """

    JSON = (
        "address role=message.role kind=message.kind changes=kinds "
        "token_count_before=tokens_before token_count_after=tokens_after words -labels_before "
        "-labels_after"
    )

    kinds: tuple[str, ...]
    before: CompiledMessage | None
    after: CompiledMessage | None
    before_by: LastOperation | None
    after_by: LastOperation | None
    tokens_before: int
    tokens_after: int
    labels_before: frozenset[str]
    labels_after: frozenset[str]

    @property
    def words(self) -> list[tuple[str, str]] | None:
        """The words of an edited message: (" ", "-" or "+", text); None if it was not edited."""
        if EDITED not in self.kinds:
            return None
        texts = ["\n".join(lines_of_parts(m.parts)) for m in (self.before, self.after) if m]
        return [(piece.sign, piece.text) for piece in history.text_diff.word_diff(*texts)]

    @property
    def message(self) -> CompiledMessage:
        """The message after the change, or before it if it was removed."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def address(self) -> Address:
        """Its address; of a copy, the one after."""
        return self.message.address


@value
class ContextDiff:
    """The differences between two contexts.

    Attributes:
        before, after: the contexts.
        changes: the messages that differ, in context order.
        common_count: number of messages at the start that look the same to a model.
        tokens_kept: tokens of these messages, without the overhead of a request.
        tokens_before, tokens_after: estimated tokens of all messages, without tools.
        token_source: how the tokens were counted.
        tools_before, tools_after: names of the tools that one context lacks or defines differently.
    """

    JSON = (
        "before=before.commit after=after.commit message_count_before=before.__len__ "
        "message_count_after=after.__len__ token_count_before=tokens_before "
        "token_count_after=tokens_after tokens_lost tokens_new "
        "tokens_kept=tokens_reused"
    )

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
    def tokens_reused(self) -> int:
        """Tokens of the old context that a provider's cache still serves."""
        return self.tokens_before - self.tokens_lost

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not (self.changes or self.tools_before or self.tools_after)

    @property
    def tools_differ(self) -> bool:
        """Whether the tools differ. Providers send tools first, so then no cached prefix can be used."""
        return bool(self.tools_before or self.tools_after)

    @property
    def tokens_lost(self) -> int:
        """Tokens of the old context whose provider cache becomes useless."""
        return self.tokens_before if self.tools_differ else self.tokens_before - self.tokens_kept

    @property
    def tokens_new(self) -> int:
        """Tokens of the new context that are not in a provider's cache."""
        return self.tokens_after if self.tools_differ else self.tokens_after - self.tokens_kept

    def rendered(self, form: str = "text", *, around: int = 3) -> RenderedDiff:
        """Return how the two requests in a provider's format differ, with `around` lines of context.

        Raises:
            InvalidInputError: there is no such format.
        """
        return history.request_diff.diff_rendered(self.before, self.after, form, around=around)


@value
class LastOperation:
    """The operation that last named a message.

    Attributes:
        operation: its name.
        commit: the commit that contains it.
    """

    operation: str
    commit: ObjectId


class DiffSide:
    """The commits of one side since two histories parted.

    Attributes:
        commits: (id, commit), newest first.
        last: the last operation on each message, by address.
        meets: whether the histories have a common commit.
        ranked: the messages whose priority was set.
    """

    __slots__ = ("commits", "last", "meets", "ranked")

    def __init__(self, commits: Sequence[tuple[ObjectId, Commit]], *, meets: bool) -> None:
        self.commits = commits
        self.meets = meets
        self.last: dict[Address, LastOperation] = {}
        self.ranked: set[Address] = set()
        for oid, commit in commits:
            for address, operation in reversed(list(named(oid, commit))):
                if "priority" in operation.fields:
                    self.ranked.add(address)
                if address not in self.last:
                    self.last[address] = LastOperation(operation.name, oid)


def ways(one: ObjectId, other: ObjectId, read_commit: ReadCommit) -> tuple[DiffSide, DiffSide]:
    """Return both sides since the first parents of two commits parted.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit is missing or damaged.
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
                return DiffSide(lines[0], meets=True), DiffSide(lines[1], meets=True)
            commit = read_commit(oid)
            places[side][oid] = len(lines[side])
            lines[side].append((oid, commit))
            at[side] = commit.parents[0] if commit.parents else None
    return DiffSide(lines[0], meets=False), DiffSide(lines[1], meets=False)


class Pair:
    """A message that is on both sides.

    Attributes:
        before, after: its records.
        moved: whether its position relative to the others differs.
    """

    __slots__ = ("after", "before", "moved")

    def __init__(self, before: MessageRecord, after: MessageRecord) -> None:
        self.before = before
        self.after = after
        self.moved = False


class Alignment:
    """Two sequences of messages, aligned.

    Attributes:
        pairs: messages on both sides, in the order of the first.
        removed, added: messages on one side only, in order.
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
        stay = longest_increasing([pair.after.ordinal for pair in pairs])
        for index, pair in enumerate(pairs):
            pair.moved = index not in stay

    def _copies(self, said: Said) -> list[Pair]:
        """Pair messages with equal content and different addresses; remove them from `added` and `removed`."""
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
    """Return True if two records show the same version and state of a message."""
    return (
        (one.address, one.place_commit, one.place_number)
        == (other.address, other.place_commit, other.place_number)
        and one.flags & GHOST == other.flags & GHOST
        and one.priority == other.priority
    )


def longest_increasing(values: Sequence[int]) -> set[int]:
    """Return the indexes of a longest increasing subsequence, so that the fewest messages count as moved."""
    ends: list[int] = []  # the smallest last value of a subsequence of each length
    last: list[int] = []  # the index of that value
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


def diff(
    contexts: ContextCompiler,
    before: str | ObjectId | None,
    after: str | ObjectId = "HEAD",
    *,
    model: str = "",
) -> ContextDiff:
    """Return the differences between the contexts of two revisions.

    Args:
        contexts: compiles them.
        before: the revision before; None is an empty context. A range `A..B` gives both revisions, `A...B` the merge
            base of A and B, and B.
        after: the revision after.
        model: the model to count tokens for; "" counts both as the context with more messages.

    Raises:
        RevisionNotFoundError: there is no such commit.
        InvalidInputError: A and B share no commit.
        ObjectNotFoundError, CorruptObjectError: the history is incomplete or damaged.
    """
    if isinstance(before, str) and ".." in before:
        before, after = _ends(contexts.store, before)
    sides = (contexts.compile(before, model=model), contexts.compile(after, model=model))
    # A fixed order of the sides, so that ties are resolved the same way in both directions.
    turned = _rank(sides[0]) > _rank(sides[1])
    one, other = reversed(sides) if turned else sides
    count_like(one, other)  # their answers may name different models
    found = _Comparison(contexts, one, other)
    return found.result(turned=turned)


def _ends(store: Store, text: str) -> tuple[str | ObjectId, str]:
    """Return the two revisions that a range compares; a missing side is HEAD."""
    if "..." not in text:
        left, _, right = text.partition("..")
        return left or "HEAD", right or "HEAD"
    left, _, right = text.partition("...")
    commits = revisions.commits_of(store)
    ends = [revisions.resolve_commit(store, side or "HEAD", commits) for side in (left, right)]
    bases = commits.merge_bases(*ends)
    if not bases:
        raise errors.InvalidInputError(f"{text!r}: no common ancestor", argument="before")
    return bases[0], right or "HEAD"


def common_length(one: IndexView, other: IndexView) -> int:
    """Return how many messages at the start of two contexts look the same to a model."""
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
    """A `MessageChange` in progress."""

    __slots__ = ("after", "before", "kinds", "labels")

    def __init__(
        self, said: tuple[str, ...], before: MessageRecord | None, after: MessageRecord | None
    ) -> None:
        self.kinds = said
        self.before = before
        self.after = after
        self.labels: tuple[frozenset[str], frozenset[str]] = frozenset(), frozenset()

    def turn(self) -> None:
        """Swap its sides."""
        swap = {ADDED: REMOVED, REMOVED: ADDED}
        self.kinds = tuple([swap.get(kind, kind) for kind in self.kinds])
        self.before, self.after = self.after, self.before
        self.labels = self.labels[1], self.labels[0]

    def by(self, way: DiffSide) -> LastOperation | None:
        """Return the last operation of one side that named it."""
        for record in (self.after, self.before):
            found = None if record is None else way.last.get(record.address)
            if found is not None:
                return found
        return None


class _Comparison:
    """A comparison of two contexts."""

    def __init__(
        self, contexts: ContextCompiler, one: CompiledContext, other: CompiledContext
    ) -> None:
        self._contexts = contexts
        self._sides = (one, other)
        self._views = (one.view, other.view)
        self._ways: tuple[DiffSide, ...] = ()
        if one.commit is not None and other.commit is not None:
            self._ways = ways(one.commit, other.commit, contexts.read_commit)
        self._touched: set[Address] = {address for way in self._ways for address in way.last}
        for way, side in zip(self._ways, self._sides, strict=False):
            if way.ranked and side.commit is not None:
                self._touched |= _units(contexts, side.commit, side.view, way.ranked)
        self.common = common_length(*self._views)
        self._pairs = self._prefix_pairs()
        tails = [list(view.messages(self.common)) for view in self._views]
        self._tail = Alignment(tails[0], tails[1], self._content_hash)

    def result(self, *, turned: bool) -> ContextDiff:
        """Return the differences; `turned` swaps the sides."""
        pairs = [*self._pairs, *self._tail.pairs]
        rows = [_Row(self._kinds(pair), pair.before, pair.after) for pair in pairs]
        rows += [_Row((REMOVED,), record, None) for record in self._tail.removed]
        rows += [_Row((ADDED,), None, record) for record in self._tail.added]
        self._add_labels(rows)
        rows = [row for row in rows if row.kinds]
        before, after = self._sides
        sides_there = self._ways
        if turned:
            before, after = after, before
            sides_there = tuple(reversed(sides_there))
            for row in rows:
                row.turn()
        self._sort_rows(rows, turned=turned)
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
                    row.by(sides_there[0]) if sides_there else None,
                    row.by(sides_there[1]) if sides_there else None,
                    *tokens,
                    *row.labels,
                )
                for row, tokens in zip(rows, counts, strict=True)
            ),
            self.common,
            tokens_before(after, self.common),
            before.message_token_count,
            after.message_token_count,
            after.estimate_source,
            *_tools(before, after),
        )

    def _prefix_pairs(self) -> list[Pair]:
        """Return the pairs in the common prefix that may differ in something a model does not see."""
        places: set[int] = set()
        if self.common and self._touched:
            for side, view in enumerate(self._views):
                places.update(self._places(view, self._touched_on_side(side)))
        pairs = [self._pair(place) for place in sorted(places)]
        first = next((pair for pair in pairs if not _same_address(pair)), None)
        if first is not None:
            # One of several equal messages was added or removed, which shifts the addresses of those after it.
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

    def _touched_on_side(self, side: int) -> set[Address]:
        """Return the touched messages that one side can have: not those born on the other side."""
        own, other = self._ways[side], self._ways[1 - side]
        made = {oid[:BIRTH_BYTES] for oid, _ in other.commits}
        return {each for each in self._touched if each in own.last or each.birth not in made}

    def _places(self, view: IndexView, touched: set[Address]) -> Iterable[int]:
        """Return the positions of touched messages in the common prefix."""
        if len(touched) <= ONE_BY_ONE:
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
        elif (
            not ghosts[0] and same_address and self._content_hash(one) != self._content_hash(other)
        ):
            said.append(EDITED)
        if pair.moved:
            said.append(MOVED)
        if one.priority != other.priority:
            said.append(PRIORITY)
        if not same_address:
            said.append(COPIED)
        return tuple(said)

    def _add_labels(self, rows: Sequence[_Row]) -> None:
        """Add the labels of messages whose labels changed."""
        asked: list[tuple[_Row, MessageRecord, MessageRecord]] = []
        for row in rows:
            one, other = row.before, row.after
            if one is None or other is None or not (one.flags | other.flags) & IS_MARKED:
                continue
            addresses = one.address, other.address
            if not self._touched.isdisjoint(addresses):
                asked.append((row, one, other))
        # One side after the other, since a compiler keeps only its last fold.
        one_side, other_side = self._sides
        before = [one_side.messages[one.ordinal - 1].labels for _, one, _ in asked]
        after = [other_side.messages[other.ordinal - 1].labels for _, _, other in asked]
        for (row, _, _), had, has in zip(asked, before, after, strict=True):
            if had != has:
                row.kinds += (LABELS,)
                row.labels = (had, has)

    def _sort_rows(self, rows: list[_Row], *, turned: bool) -> None:
        """Sort rows in the order of the context after; a removed message follows its predecessor."""
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

    def _content_hash(self, record: MessageRecord) -> bytes:
        if record.flags & GHOST:
            home = record.home_commit, record.home_number
            return seen_of_ghost(message_at(home, self._contexts.read_commit), record.address)
        stored = stored_message(record, self._contexts.read_commit)
        return seen_of(stored["role"], stored.get("name", ""), stored["parts"])


def _units(
    contexts: ContextCompiler, tip: ObjectId, view: IndexView, named: Iterable[Address]
) -> set[Address]:
    """Return all members of some messages' units, since a priority applies to the whole unit."""
    records = [view.find(each) for each in named]
    halves = [
        record.address
        for record in records
        if record is not None and (record.role in _HALVES or record.kind == "tool_io")
    ]
    if not halves:
        return set()  # avoids a fold when no message can belong to a call
    state = contexts.fold(tip)
    return set(state.units(each for each in halves if each in state))


def _same_address(pair: Pair) -> bool:
    one, other = pair.before, pair.after
    return one.address == other.address


def _message(context: CompiledContext, record: MessageRecord | None) -> CompiledMessage | None:
    return None if record is None else context.messages[record.ordinal - 1]


def _tokens(context: CompiledContext, records: Sequence[MessageRecord | None]) -> list[int]:
    """Return the tokens of some messages; 0 for None."""
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
    """Return the names of the tools that the other side lacks or defines differently."""
    if before.view.tools_commit() == after.view.tools_commit():
        return (), ()
    one, other = list(before.tools), list(after.tools)
    return (
        tuple(_tool_name(tool) for tool in one if tool not in other),
        tuple(_tool_name(tool) for tool in other if tool not in one),
    )


def _tool_name(tool: Any) -> str:
    """Return the name in a tool schema of any provider."""
    inner = tool.get("function", tool) if isinstance(tool, dict) else {}
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) else "?"


def lines_of_parts(parts: Sequence[Part], indent: str = "") -> Iterator[str]:
    """Yield the lines of parts, not escaped; a part without text yields a placeholder."""
    for part in parts:
        if isinstance(part, Data):
            yield f"{indent}[data {part.schema}]"
            yield from _lines(part.indented, indent)
        elif isinstance(part, Text):
            yield from _lines(part.text, indent)
        elif isinstance(part, ToolCall):
            yield f"{indent}[tool call {part.name} {part.id}]"
            yield from _lines(part.arguments, indent)
        elif isinstance(part, ToolResult):
            yield f"{indent}[tool result {part.call_id}{', failed' if part.is_error else ''}]"
            yield from lines_of_parts(part.content, indent + "  ")
        elif isinstance(part, Reasoning):
            yield f"{indent}[reasoning]"
            yield from _lines(part.text, indent)
        elif isinstance(part, Image):
            what = part.url or f"{part.media_type}, {len(part.data or b''):,} bytes"
            yield f"{indent}[image {what}]"
        elif isinstance(part, Opaque):
            yield f"{indent}[{part.provider} data, {len(part.data):,} bytes]"
        else:
            yield f"{indent}[{part.type}]"


def _lines(text: str, indent: str) -> Iterator[str]:
    for line in text.rstrip("\n").split("\n"):
        yield indent + line

"""Message and token counts of a context at one commit, and how later commits change them.

A summary is kept for each listed session and carried by git, so that a list, the status, or a fresh clone need not read
a history to show its size. It never decides which messages a model sees: that always comes from the commits. If
anything else is asked of a context of a summary, its history is read once.
"""

from __future__ import annotations

from itertools import islice

from trace_store import errors, objects
from trace_store.base.frozen import replace, value
from trace_store.base.oid import OID_BYTES, ObjectId
from trace_store.context import compile_index as form
from trace_store.context import compiled
from trace_store.context.compile_index import IndexView, MessageRecord, TokenRecord
from trace_store.context.compiled import CompiledContext
from trace_store.context.compiler import ANSWER_WITHIN, ContextSource, newest_answer, reported_model
from trace_store.context.fold import is_measured
from trace_store.context.index_update import record_of, step_of
from trace_store.context.tokens.models import MeasuredReport
from trace_store.disk.column_file import MemoryBytes
from trace_store.objects.message import FREEFORM
from trace_store.objects.operations import TOOLS, added_messages, only_appends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from trace_store.context.compile_index import Measured, Sums
    from trace_store.context.compiler import ContextCompiler
    from trace_store.context.fold import Entry, Fold
    from trace_store.context.index_update import AppendStep
    from trace_store.context.tokens.models import TokenCounting
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Commit

CALL_SEARCH_COMMITS = 64
"""Search at most this many commits before a summary for the call of a result."""
MOST_COMMITS = 512
"""A summary is continued over at most this many commits and changed messages; an index is built for more."""
LIMIT = 1 << 53
"""Counts are smaller, also those that a stranger wrote."""


@value
class ContextSummary:
    """The numbers of a context.

    Attributes:
        tip: its commit.
        message_count: its messages.
        sums: their tokens, not scaled: all, of text, and of media.
        counted: the encoding and the rule for media of these sums, such as `o200k_base claude`.
        tools: the commit that set its tools, or None.
        model: the model of the newest answer among its last 64 messages, or "".
        since: how many messages follow that answer; 64 without one.
        report: the last provider's report, credible or not, or None.
        origin: the commit at which the history was read; appends after it were added to its numbers.
    """

    tip: bytes
    message_count: int
    sums: Sums
    counted: str
    tools: bytes | None
    model: str
    since: int
    report: MeasuredReport | None
    origin: bytes

    @classmethod
    def of(cls, contexts: ContextCompiler, context: CompiledContext) -> ContextSummary:
        """Return the summary of a compiled context with a commit, whose tokens are counted."""
        view = context.view
        assert view.tip is not None
        answer, since = newest_answer(view, contexts.read_commit)
        return cls(
            tip=view.tip,
            message_count=view.message_count,
            sums=compiled.message_sums(context),
            counted=_counting_name(compiled.counting_of(context)),
            tools=view.tools_commit(),
            model=answer,
            since=since,
            report=compiled.last_report(context),
            origin=view.tip,
        )

    def to_data(self) -> list[Any]:
        """Return plain values that `from_data` reads."""
        report = self.report
        said = report and [
            *(bytes(report.commit), bytes(report.at), report.token_count, report.name),
            *report.sums,
        ]
        tools = self.tools and bytes(self.tools)
        numbers = (self.message_count, *self.sums)
        answer = (self.model, self.since)
        return [bytes(self.tip), *numbers, self.counted, tools, *answer, said, bytes(self.origin)]

    @classmethod
    def from_data(cls, data: Sequence[Any]) -> ContextSummary:
        """Return the summary; the data may come from anybody.

        Raises:
            ValueError, TypeError: it is not one.
        """
        tip, count, total, text, media, counted, tools, model, since, said, origin = data
        report = None
        if said is not None:
            commit, at, tokens, name, *sums = said
            _check_types((str, name), *((int, each) for each in (tokens, *sums)))
            all_, of_text, of_media = sums
            report = MeasuredReport(_id(commit), _id(at), tokens, name, (all_, of_text, of_media))
        numbers = (count, total, text, media, since)
        _check_types((str, counted), (str, model), *((int, each) for each in numbers))
        return cls(
            tip=_id(tip),
            message_count=count,
            sums=(total, text, media),
            counted=counted,
            tools=None if tools is None else _id(tools),
            model=model,
            since=since,
            report=report,
            origin=_id(origin),
        )


def _id(given: object) -> ObjectId:
    if type(given) is not bytes or len(given) != OID_BYTES:
        raise TypeError(f"not an id: {given!r:.80}")
    return ObjectId(given)


def _check_types(*pairs: tuple[type, object]) -> None:
    for wanted, given in pairs:
        if type(given) is not wanted or (wanted is int and not 0 <= given < LIMIT):  # type: ignore[operator]
            raise TypeError(f"not {wanted.__name__}: {given!r:.40}")


def _counting_name(counting: TokenCounting) -> str:
    return f"{counting.encoding} {counting.media.name}"


def context_from_summary(
    contexts: ContextCompiler,
    ref: str,
    tip: ObjectId,
    known: Sequence[ContextSummary],
    fold: Callable[[bytes], Fold] | None = None,
) -> CompiledContext | None:
    """Return the context of a branch by its summary, for its numbers; None if it must be read.

    Args:
        contexts: the compiler of the store.
        ref: the full name of the branch.
        tip: its commit.
        known: summaries of the branch, at this commit or an earlier one.
        fold: returns the fold of a commit; `contexts.fold` if None.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit is missing or damaged.
    """
    found = {summary.tip: summary for summary in known if summary.message_count}
    commits: list[tuple[bytes, Commit]] = []
    oid: bytes | None = tip
    while oid not in found:
        if oid is None or not found or len(commits) == MOST_COMMITS:
            return None
        commit = contexts.read_commit(oid)
        commits.append((oid, commit))
        oid = commit.parents[0] if commit.parents else None
    summary: ContextSummary | None = found[oid]
    only_adds = True
    try:
        if commits:
            growth = _Growth(contexts, found[oid], fold or contexts.fold)
            summary, only_adds = growth.over(commits[::-1]), growth.only_adds
        if summary is None:
            return None
        counting = _counting_of(contexts, summary)
        if summary.tools is not None:
            contexts.read_commit(summary.tools)
    except (errors.NotFoundError, errors.FormatError):
        return None  # a list from elsewhere names an absent commit
    if _counting_name(counting) != summary.counted:
        return None
    source = _SummarySource(contexts, summary, counting)
    view = SummaryView(contexts, ref, summary, found[oid], commits[::-1], only_adds)
    return CompiledContext(
        source, view, contexts.tokenizer(), lambda: counting, lambda: view.whole().tools
    )


def _counting_of(contexts: ContextCompiler, summary: ContextSummary) -> TokenCounting:
    """Return how the context is counted: as for the model of the last report, else of the newest answer."""
    report = summary.report
    model = "" if report is None else reported_model(contexts, report.commit)
    return contexts.counting(model or summary.model)


class _Growth:
    """A summary that continues over commits: an append adds to it, any other change is the difference of two folds.

    Attributes:
        only_adds: whether the commits so far only add messages at the end, which the context shows.
    """

    def __init__(
        self, contexts: ContextCompiler, summary: ContextSummary, fold: Callable[[bytes], Fold]
    ) -> None:
        self.only_adds = True
        self._contexts = contexts
        self._summary = summary
        self._fold = fold
        self._counting = _counting_of(contexts, summary)
        self._addresses: set[Address] = set()
        self._before: bytes | None = summary.tip
        """The commit before those whose messages are in `_addresses`; None if others may be hidden."""
        self._looks = CALL_SEARCH_COMMITS
        self._changes = MOST_COMMITS
        self._sums = {summary.tip: self._with_tools(summary)}

    def over(self, commits: Sequence[tuple[bytes, Commit]]) -> ContextSummary | None:
        """Return the summary after some commits, oldest first; None if the history must be read."""
        for oid, commit in commits:
            step = step_of(oid, commit)
            is_append = step is not None and self._are_shown(oid, commit, step)
            grown = self._appended(oid, commit) if is_append else self._changed(oid, commit)
            if grown is None:
                return None
            self._summary = grown
            self._sums[oid] = self._with_tools(grown)
            if is_measured(commit) and not self._measure(oid, commit):
                return None
        return self._summary

    def _appended(self, oid: bytes, commit: Commit) -> ContextSummary:
        before = self._summary
        model, since, count = before.model, before.since, before.message_count
        for _, message in added_messages(commit, oid):
            is_answer = message["role"] == "assistant"
            model, since = (message.get("model", ""), 0) if is_answer else (model, since + 1)
            count += 1
        if since >= ANSWER_WITHIN:
            model, since = "", ANSWER_WITHIN
        total, text, media = self._contexts.sums_added(commit, self._counting.media)
        had = before.sums
        sets_tools = any(operation.name == TOOLS for operation in commit.operations)
        return replace(
            before,
            tip=oid,
            message_count=count,
            sums=(had[0] + total, had[1] + text, had[2] + media),
            tools=oid if sets_tools else before.tools,
            model=model,
            since=since,
        )

    def _changed(self, oid: bytes, commit: Commit) -> ContextSummary | None:
        """Return the summary after any commit by comparing folds; None if too much changed."""
        self._addresses, self._before, self.only_adds = set(), None, False
        had = self._summary
        before = self._fold(had.tip)
        after = before.copy()
        after.apply(oid, commit)
        pairs = after.changed_since(before)
        self._changes -= len(pairs)
        if self._changes < 0:
            return None
        gone = [old for old, _ in pairs if old is not None and old.visible]
        come = [new for _, new in pairs if new.visible]
        sums = tuple(map(sum, zip(had.sums, self._tokens(come), strict=True)))
        total, text, media = (a - b for a, b in zip(sums, self._tokens(gone), strict=True))
        model, since = _newest_answer(after)
        return replace(
            had,
            tip=oid,
            message_count=had.message_count + len(come) - len(gone),
            sums=(total, text, media),
            tools=after.tools_commit,
            model=model,
            since=since,
        )

    def _tokens(self, entries: Sequence[Entry]) -> Sums:
        source = _SummarySource(self._contexts, self._summary, self._counting)
        counts = [*source.count(map(record_of, entries), len(entries))]
        return (
            sum(each.total for each in counts),
            sum(each.text for each in counts),
            sum(each.media for each in counts),
        )

    def _are_shown(self, oid: bytes, commit: Commit, step: AppendStep) -> bool:
        """Return True if the calls that a commit answers are in the context as they were added.

        Otherwise the results may be hidden with them. Only a few commits before are read.
        """
        self._addresses.update(address for address, _ in added_messages(commit, oid))
        answered = {address for _, answers in step.records for address in answers}
        while not self._addresses.issuperset(answered):
            before = self._before
            if before is None or self._looks == 0:
                return False
            self._looks -= 1
            earlier = self._contexts.read_commit(before)
            if not only_appends(earlier):
                return False
            self._addresses.update(address for address, _ in added_messages(earlier, before))
            self._before = earlier.parents[0] if earlier.parents else None
        return True

    def _measure(self, oid: bytes, commit: Commit) -> bool:
        report = objects.reports.report_of(commit)
        assert report is not None
        at = report.about or oid
        if at not in self._sums:
            return False
        measured = MeasuredReport(oid, at, report.token_count, report.name, self._sums[at])
        self._summary = replace(self._summary, report=measured)
        return True

    def _with_tools(self, summary: ContextSummary) -> Sums:
        total, text, media = summary.sums
        source = ContextSource(self._contexts, "", None, False)
        return total + source.tool_tokens(summary.tools), text, media


def _newest_answer(state: Fold) -> tuple[str, int]:
    """Return what `newest_answer` does, from a fold."""
    for since, entry in enumerate(
        islice(filter(_is_visible, reversed(state.entries)), ANSWER_WITHIN)
    ):
        if entry.message["role"] == "assistant" and not entry.is_ghost:
            return entry.message.get("model", ""), since
    return "", ANSWER_WITHIN


def _is_visible(entry: Entry) -> bool:
    return entry.visible


class _Nothing(MemoryBytes):
    """A column without records, which says so when one is read."""

    def read(self, offset: int, size: int) -> bytes:
        raise errors.CorruptIndexError("a summary has no records")


class SummaryView(IndexView):
    """The view of a context of which only the numbers are known; it reads the history when asked for more.

    Attributes:
        summary: the numbers.
        base: the summary that they were counted from.
        since: the commits after that one's, oldest first.
        only_adds: whether these only add messages at the end, which the context shows.
    """

    __slots__ = ("_contexts", "_ref", "_whole", "base", "only_adds", "since", "summary")

    def __init__(
        self,
        contexts: ContextCompiler,
        ref: str,
        summary: ContextSummary,
        base: ContextSummary,
        since: Sequence[tuple[bytes, Commit]],
        only_adds: bool,
    ) -> None:
        number, no_birth = summary.message_count, bytes(16)
        last = MessageRecord(
            *(
                no_birth,
                0,
                summary.tip,
                0,
                summary.tip,
                0,
                form.MARKER | form.END,
                "user",
                FREEFORM,
            ),
            *(0, form.START, bytes(32), number),
        )
        super().__init__(
            _Nothing(), number + 1, last, form.NO_GENERATION, lambda: self.whole().view
        )
        self._contexts = contexts
        self._ref = ref
        self.summary, self.base, self.since, self.only_adds = summary, base, since, only_adds
        self._whole: CompiledContext | None = None

    def whole(self) -> CompiledContext:
        """Return the context, read from its history."""
        if self._whole is None:
            contexts = self._contexts
            is_there = contexts.store.refs.read(self._ref) == self.summary.tip
            self._whole = contexts.compile(self._ref if is_there else ObjectId(self.summary.tip))
        return self._whole

    @property
    def prefix_hash(self) -> bytes:
        """The hash over all messages."""
        return self.whole().view.prefix_hash

    def record(self, number: int) -> MessageRecord:
        """Return a record by its number in the file; raises as `find`."""
        return self.whole().view.record(number)

    def number_of(self, position: int) -> int:
        """Return the record number of the message at a position of the context, from 0; raises as `find`."""
        return self.whole().view.number_of(position)

    def tools_commit(self) -> bytes | None:
        """Return the commit that set the current tools, or None."""
        return self.summary.tools

    def measured(self) -> Measured | None:
        """Return the last measured commit, or None; raises as `find`."""
        return self.whole().view.measured()


class _SummarySource(ContextSource):
    """The source of such a context."""

    __slots__ = ("_summary",)

    def __init__(
        self, contexts: ContextCompiler, summary: ContextSummary, counting: TokenCounting
    ) -> None:
        super().__init__(contexts, "", contexts.tokenizer(), False)
        self._known_counting = counting
        self._summary = summary

    def token_total(self, view: IndexView) -> TokenRecord:
        summary = self._summary
        if view.tip != summary.tip:
            return super().token_total(view)
        start, seen = bytes(form.PREFIX_START_BYTES), bytes(form.SEEN_BYTES)
        return TokenRecord(0, 0, 0, *summary.sums, start, seen)

    def report(self, view: IndexView, model: str) -> MeasuredReport | None:
        return super().report(view, model) if model else self._summary.report

"""Token counts of the context at each commit of a log."""

from __future__ import annotations

from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.context.compile_index import Sums
from trace_store.context.compiled import (
    TokenGrowth,
    counting_of,
    last_report,
    source_of_sum,
    sums_of,
)
from trace_store.context.compiler import ANSWER_WITHIN, ContextCompiler, newest_answer
from trace_store.context.fold import is_measured
from trace_store.context.tokens.models import MeasuredReport, request_tokens
from trace_store.history.log import LogEntry
from trace_store.objects.commit import Commit
from trace_store.objects.operations import TOOLS, only_appends, stored_messages
from trace_store.objects.reports import report_of
from trace_store.providers.media_tokens import MediaRule


@value
class Report:
    """A provider's report.

    Attributes:
        at: the commit whose context it counts.
        token_count: its tokens.
        name: the model, else the provider or format, as in `ContextReport`.
        model: the model that answered, or "".
    """

    at: bytes
    token_count: int
    name: str
    model: str


def token_growth(contexts: ContextCompiler, entries: list[LogEntry]) -> dict[bytes, TokenGrowth]:
    """Return the tokens of the context at each commit of a log, and the change since its first parent.

    The parent of a commit that only appends need not be compiled. Media count by the rule of the newest context.
    """
    if not entries:
        return {}
    newest = contexts.compile(entries[0].oid)
    counts = _TokenCounts(contexts, counting_of(newest).media)
    for entry in reversed(entries):  # oldest first, since compiling builds on earlier contexts
        counts.count(entry)
    growth: dict[bytes, TokenGrowth] = {}
    for entry in reversed(entries):  # parents first: most commits share their parent's report
        before = counts.total(entry.parents[0])[0] if entry.parents else 0
        after, source = counts.total(entry.oid, entry.commit)
        growth[entry.oid] = TokenGrowth(after, after - before, source)
    return growth


class _TokenCounts:
    """Cached sums and reports of contexts."""

    def __init__(self, contexts: ContextCompiler, media: MediaRule) -> None:
        self._contexts = contexts
        self._media = media
        self._sums: dict[bytes, Sums] = {}
        self._reports: dict[bytes, Report | None] = {}
        self._answers: dict[bytes, tuple[str, int]] = {}

    def count(self, entry: LogEntry) -> None:
        """Count the context of a commit; of one that only appends, also its parent's, with one compile for both."""
        commit, known = entry.commit, self._sums
        # Tools count, too, but `sums_added` counts only messages.
        sets_tools = any(operation.name == TOOLS for operation in commit.operations)
        if not commit.parents or not only_appends(commit) or sets_tools:
            self._sums_at(entry.oid)
            return
        added, parent = self._contexts.sums_added(commit, self._media), commit.parents[0]
        if parent in known:
            known.setdefault(entry.oid, _sum(known[parent], added))
        else:
            known[parent] = _sum(self._sums_at(entry.oid), added, -1)

    def total(self, oid: bytes, commit: Commit | None = None) -> tuple[int, str]:
        """Return the tokens of a context, and how they were counted."""
        sums, report = self._sums_at(oid), self._report(oid, commit)
        model = (report and report.model) or self._answer(oid, commit)[0]
        counting = self._contexts.counting(model)
        estimated = request_tokens(counting, sums)
        counted = source_of_sum(counting.source, sums[0])
        if report is None or not estimated:
            return estimated, counted
        measured = MeasuredReport(
            report.at, report.at, report.token_count, report.name, self._sums_at(report.at)
        )
        if not measured.is_credible(counting):
            return estimated, counted
        changed = estimated != request_tokens(counting, measured.sums)
        source = f"provider:{report.name}{'+estimate' if changed else ''}"
        return measured.adjusted(counting, sums), source

    def _sums_at(self, oid: bytes) -> Sums:
        """Return the sums of a context."""
        if oid not in self._sums:
            self._sums[oid] = sums_of(self._contexts.compile(ObjectId(oid)))
        return self._sums[oid]

    def _report(self, oid: bytes, commit: Commit | None) -> Report | None:
        if oid not in self._reports:
            self._reports[oid] = self._find_report(oid, commit)
        return self._reports[oid]

    def _answer(self, oid: bytes, commit: Commit | None) -> tuple[str, int]:
        """Return the newest answer's model and how many messages follow it, as `newest_answer` of the context."""
        if oid not in self._answers:
            self._answers[oid] = self._find_answer(oid, commit)
        return self._answers[oid]

    def _find_answer(self, oid: bytes, commit: Commit | None) -> tuple[str, int]:
        if commit is not None and only_appends(commit):
            added = stored_messages(commit)
            for since, message in enumerate(reversed(added)):
                if message["role"] == "assistant" and since < ANSWER_WITHIN:
                    return message.get("model", ""), since
            model, since = self._answers.get(next(iter(commit.parents), b""), ("", ANSWER_WITHIN))
            if since + len(added) < ANSWER_WITHIN:
                return model, since + len(added)
        view = self._contexts.compile(ObjectId(oid)).view
        return newest_answer(view, self._contexts.read_commit)

    def _find_report(self, oid: bytes, commit: Commit | None) -> Report | None:
        own = report_of(commit) if commit is not None and is_measured(commit) else None
        if own is not None:
            return Report(own.about or oid, own.token_count, own.name, own.model)
        # Without a new report, the last one along first parents stays, whatever else a commit does.
        if commit is not None and commit.parents and commit.parents[0] in self._reports:
            return self._reports[commit.parents[0]]
        context = self._contexts.compile(ObjectId(oid))
        report = last_report(context)
        if report is None:
            return None
        said = report_of(self._contexts.read_commit(report.commit))
        return Report(report.at, report.token_count, report.name, said.model if said else "")


def _sum(one: Sums, other: Sums, times: int = 1) -> Sums:
    total, text, media = (a + times * b for a, b in zip(one, other, strict=True))
    return total, text, media

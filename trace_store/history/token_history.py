"""Token counts of the context at each commit of a log."""

from __future__ import annotations

from trace_store import objects
from trace_store.context import tokens
from trace_store.context.compiled import TokenGrowth
from trace_store.context.fold import is_measured
from trace_store.objects.operations import TOOLS, only_appends
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.compiler import ContextCompiler
    from trace_store.history.log import LogEntry
    from trace_store.objects.commit import Commit

    Report = tuple[bytes, int, str]
    """The commit that records it, its tokens, the name of its source."""


def token_growth(contexts: ContextCompiler, entries: list[LogEntry]) -> dict[bytes, TokenGrowth]:
    """Return the tokens of the context at each commit, and the change since its first parent.

    The parent of a commit that only appends need not be compiled.
    """
    counts = _TokenCounts(contexts)
    for entry in reversed(entries):  # oldest first, since compiling builds on earlier contexts
        counts.count(entry)
    source = contexts.compile(entries[0].oid).estimate_source if entries else ""
    growth: dict[bytes, TokenGrowth] = {}
    for entry in reversed(entries):  # parents first: most commits share their parent's report
        before = counts.total(entry.parents[0])[0] if entry.parents else 0
        after, name = counts.total(entry.oid, entry.commit)
        growth[entry.oid] = TokenGrowth(after, after - before, name or source)
    return growth


class _TokenCounts:
    """Cached estimates and reports of contexts."""

    def __init__(self, contexts: ContextCompiler) -> None:
        self._contexts = contexts
        self._estimates: dict[bytes, int] = {}
        self._reports: dict[bytes, Report | None] = {}

    def count(self, entry: LogEntry) -> None:
        """Count the context of a commit and its parent; only one of them if the commit only appends."""
        commit, known = entry.commit, self._estimates
        sets_tools = any(operation.name == TOOLS for operation in commit.operations)
        if not commit.parents or not only_appends(commit) or sets_tools:
            self._count_context(entry.oid)
            return
        added, parent = self._contexts.weigh_added(commit), commit.parents[0]
        if parent in known:
            known.setdefault(entry.oid, known[parent] + added)
        else:
            known[parent] = self._count_context(entry.oid) - added

    def total(self, oid: bytes, commit: Commit | None = None) -> tuple[int, str]:
        """Return the tokens of a context, and the source of a provider's report or ""."""
        estimated, report = self._estimate(oid), self._report(oid, commit)
        if report is None or not estimated:
            return estimated, ""
        at, token_count, name = report
        changed = estimated - self._estimate(at)
        source = f"provider:{name}{'+estimate' if changed else ''}"
        return max(0, token_count + changed), source

    def _estimate(self, oid: bytes) -> int:
        bare = self._count_context(oid)
        return bare + tokens.models.REPLY_TOKENS if bare else 0

    def _count_context(self, oid: bytes) -> int:
        """Return the estimated tokens without the overhead of a request."""
        if oid not in self._estimates:
            context = self._contexts.compile(ObjectId(oid))
            estimated = context.estimated_token_count
            self._estimates[oid] = estimated - tokens.models.REPLY_TOKENS if estimated else 0
        return self._estimates[oid]

    def _report(self, oid: bytes, commit: Commit | None) -> Report | None:
        if oid not in self._reports:
            self._reports[oid] = self._find_report(oid, commit)
        return self._reports[oid]

    def _find_report(self, oid: bytes, commit: Commit | None) -> Report | None:
        own = (
            objects.reports.report_of(commit)
            if commit is not None and is_measured(commit)
            else None
        )
        if own is not None:
            return oid, own.token_count, own.name
        if commit is not None and commit.parents and commit.parents[0] in self._reports:
            return self._reports[commit.parents[0]]
        report = self._contexts.compile(ObjectId(oid)).report
        return None if report is None else (report.commit, report.token_count, report.name)

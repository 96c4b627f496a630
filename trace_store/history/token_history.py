"""What each commit did to the size of the context."""

from __future__ import annotations

from trace_store import objects
from trace_store.context import tokens
from trace_store.context.fold import is_measured
from trace_store.frozen import value
from trace_store.history.log import LogEntry
from trace_store.objects.operations import TOOLS, only_appends
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.compiler import ContextCompiler
    from trace_store.objects.commit import Commit

    Report = tuple[bytes, int, str]
    """The commit that records it, its tokens, the name of what reported."""


@value
class TokenGrowth:
    """Tokens of the context at a commit.

    Attributes:
        total: tokens of the compiled context, as `CompiledContext.token_count`.
        added: how many more, or fewer, than at its first parent.
        source: how far to trust the total.
    """

    total: int
    added: int
    source: str


def token_growth(contexts: ContextCompiler, entries: list[LogEntry]) -> dict[bytes, TokenGrowth]:
    """Return the tokens of the context at each commit, and what it added to its first parent's.

    A commit that only appends adds its messages, so the context before it need not be compiled.
    """
    growing = _Growing(contexts)
    for entry in reversed(entries):  # a context is made from what it was before
        growing.weigh(entry)
    source = contexts.compile(entries[0].oid).estimate_source if entries else ""
    growth: dict[bytes, TokenGrowth] = {}
    for entry in reversed(entries):  # parents first: most have the report of their parent
        before = growing.total(entry.parents[0])[0] if entry.parents else 0
        after, name = growing.total(entry.oid, entry.commit)
        growth[entry.oid] = TokenGrowth(after, after - before, name or source)
    return growth


class _Growing:
    """Estimates and reports of the contexts of some commits."""

    def __init__(self, contexts: ContextCompiler) -> None:
        self._contexts = contexts
        self._bare: dict[bytes, int] = {}
        self._reports: dict[bytes, Report | None] = {}

    def weigh(self, entry: LogEntry) -> None:
        """Look at the tokens of a commit's context, and of the one before it; of one of them where appends tell."""
        commit, weights = entry.commit, self._bare
        sets_tools = any(operation.name == TOOLS for operation in commit.operations)
        if not commit.parents or not only_appends(commit) or sets_tools:
            self._bare_tokens(entry.oid)
            return
        added, parent = self._contexts.weigh_added(commit), commit.parents[0]
        if parent in weights:
            weights.setdefault(entry.oid, weights[parent] + added)
        else:
            weights[parent] = self._bare_tokens(entry.oid) - added

    def total(self, oid: bytes, commit: Commit | None = None) -> tuple[int, str]:
        """Return the tokens of a context and, where a provider reported, their source, else ""; of a known commit."""
        estimated, report = self._estimate(oid), self._report(oid, commit)
        if report is None or not estimated:
            return estimated, ""
        at, token_count, name = report
        changed = estimated - self._estimate(at)
        source = f"provider:{name}{'+estimate' if changed else ''}"
        return max(0, token_count + changed), source

    def _estimate(self, oid: bytes) -> int:
        bare = self._bare_tokens(oid)
        return bare + tokens.models.REPLY_TOKENS if bare else 0

    def _bare_tokens(self, oid: bytes) -> int:
        """Return the tokens that are counted here, without what a request costs once."""
        if oid not in self._bare:
            context = self._contexts.compile(ObjectId(oid))
            estimated = context.estimated_token_count
            self._bare[oid] = estimated - tokens.models.REPLY_TOKENS if estimated else 0
        return self._bare[oid]

    def _report(self, oid: bytes, commit: Commit | None) -> Report | None:
        if oid not in self._reports:
            self._reports[oid] = self._found(oid, commit)
        return self._reports[oid]

    def _found(self, oid: bytes, commit: Commit | None) -> Report | None:
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

"""What each commit did to the size of the context."""

from __future__ import annotations

from trace_store import context as weighing
from trace_store.context.folding import is_append_only
from trace_store.history.entries import LogEntry
from trace_store.objects.operations import TOOLS
from trace_store.oid import ObjectId
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.compiler import ContextCompiler
    from trace_store.context.reports import Report
    from trace_store.objects.commit import Commit


@value
class TokenGrowth:
    """Tokens of the context at a commit.

    Attributes:
        total: tokens of the compiled context.
        added: how many more, or fewer, than at its first parent.
        source: how far to trust both.
    """

    total: int
    added: int
    source: str


def token_growth(contexts: ContextCompiler, entries: list[LogEntry]) -> dict[bytes, TokenGrowth]:
    """Return the tokens of the context at each commit, and what it added to its first parent's.

    A commit that only appends adds the messages it creates, so the context before it need not be compiled.
    """
    bare: dict[bytes, int] = {}
    reports: dict[bytes, Report | None] = {}

    def bare_tokens(oid: bytes) -> int:
        """Return the estimate of a context, without what opens a reply."""
        if oid not in bare:
            context = contexts.compile(ObjectId(oid))
            bare[oid] = context.estimated_token_count - (
                weighing.REPLY_TOKENS if len(context) else 0
            )
        return bare[oid]

    def total(oid: bytes) -> tuple[int, str]:
        """Return the tokens of a context, as `CompiledContext.token_count`, and their source."""
        estimated, report = bare_tokens(oid), reports.get(oid)
        if not estimated or report is None:
            return estimated + (weighing.REPLY_TOKENS if estimated else 0), estimate_source
        changed = estimated - bare_tokens(report.commit)
        source = f"provider:{report.name}" + ("+estimate" if changed else "")
        return max(report.token_count + changed, 0), source

    estimate_source = contexts.compile(entries[0].oid).estimate_source if entries else ""
    for entry in entries:
        parents = entry.commit.parents
        if parents and is_append_only(entry.commit) and not _sets_tools(entry.commit):
            after = bare_tokens(entry.oid)
            bare.setdefault(parents[0], after - contexts.weigh_created(entry.commit))
    for entry in reversed(entries):
        for oid in (*entry.commit.parents[:1], entry.oid):
            if oid not in reports:
                weighing.report_at(oid, contexts.read_commit, reports)
    growth: dict[bytes, TokenGrowth] = {}
    for entry in entries:
        after, source = total(entry.oid)
        before = total(entry.commit.parents[0])[0] if entry.commit.parents else 0
        growth[entry.oid] = TokenGrowth(after, after - before, source)
    return growth


def _sets_tools(commit: Commit) -> bool:
    return any(operation.name == TOOLS for operation in commit.operations)

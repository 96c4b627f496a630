"""What each commit did to the size of the context."""

from __future__ import annotations

from trace_store import context as weighing
from trace_store.context.folding import is_append_only
from trace_store.history.entries import LogEntry
from trace_store.oid import ObjectId
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.compiler import ContextCompiler


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

    def bare_tokens(oid: bytes) -> int:
        """Return the tokens of the messages, without what a request costs once."""
        if oid not in bare:
            context = contexts.compile(ObjectId(oid))
            bare[oid] = context.token_count - (weighing.REPLY_TOKENS if len(context) else 0)
        return bare[oid]

    growth: dict[bytes, TokenGrowth] = {}
    source = contexts.compile(entries[0].oid).token_source if entries else ""
    for entry in entries:
        after, parents = bare_tokens(entry.oid), entry.commit.parents
        if parents and is_append_only(entry.commit):
            bare.setdefault(parents[0], after - contexts.weigh_created(entry.commit))
        before = bare_tokens(parents[0]) if parents else 0
        totals = [tokens + (weighing.REPLY_TOKENS if tokens else 0) for tokens in (before, after)]
        growth[entry.oid] = TokenGrowth(totals[1], totals[1] - totals[0], source)
    return growth

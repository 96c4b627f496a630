"""Walk history: the log, and what each commit did to the size of the context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from trace_store import context as weighing
from trace_store import revision as revisions
from trace_store.context.folding import is_append_only
from trace_store.context.wording import one_line
from trace_store.graph import ancestors, topological
from trace_store.objects.commit import Commit, parents_of, read_commit
from trace_store.oid import ObjectId
from trace_store.store import Store
from trace_store.transcripts.telling import event_of, event_text
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.compiler import ContextCompiler


@value
class LogEntry:
    """One commit of a log.

    Attributes:
        oid: its id.
        commit: the commit.
        message_count: messages it creates.
    """

    oid: ObjectId
    commit: Commit
    message_count: int


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


def log(
    store: Store,
    revision: str | ObjectId = "HEAD",
    *,
    limit: int | None = None,
    first_parent: bool = False,
) -> Iterator[LogEntry]:
    """Yield the commits of a revision or a range, newest first; a child comes before its parents.

    Args:
        store: where from.
        revision: a revision, or a range `A..B` or `A...B`.
        limit: at most so many.
        first_parent: follow first parents alone, which is what the context is made of.

    Raises:
        RevisionNotFoundError: there is no such commit.
        ObjectNotFoundError, CorruptObjectError: the history is not whole.
    """

    def parents(oid: ObjectId) -> Sequence[ObjectId]:
        found = parents_of(store.objects.read(oid))
        return found[:1] if first_parent else found

    for oid in islice(walk(store, revision, parents), limit):
        commit = read_commit(oid, store.objects.read)
        yield LogEntry(oid, commit, revisions.created_by(commit))


def walk(
    store: Store, revision: str | ObjectId, parents: Callable[[ObjectId], Sequence[ObjectId]]
) -> Iterator[ObjectId]:
    """Yield the ids of a revision or a range, newest first, a child before its parents.

    A line of history is walked as it is asked for; from the first merge on the rest is looked at as a whole.
    """
    wanted = (
        revisions.Range([revision], [])
        if isinstance(revision, ObjectId)
        else revisions.resolve_range(store, revision)
    )
    hidden: set[ObjectId] = set(ancestors(wanted.exclude, parents)) if wanted.exclude else set()
    starts = wanted.include
    if wanted.symmetric:
        left, right = starts
        hidden = set(ancestors([left], parents)) & set(ancestors([right], parents))
    while len(starts) == 1 and starts[0] not in hidden:
        above = list(dict.fromkeys(parents(starts[0])))
        if len(above) > 1:
            break
        yield starts[0]
        starts = above
    else:
        if len(starts) < 2:
            return
    yield from topological(starts, parents, hidden=hidden)


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


def summary(store: Store, commit: Commit, width: int = 72) -> str:
    """Return a commit as one line, with the first `width` characters of a message's text, or of what happened."""
    event = event_of(commit)
    if event and not commit.message:
        text = " ".join(event_text(commit, store.objects.read)[: 8 * width].split())
        return f"{event}: {text[: width - 1] + '…' if len(text) > width else text}".rstrip(" :")
    return one_line(commit, store.objects.read, width)


__all__ = ["LogEntry", "TokenGrowth", "log", "summary", "token_growth", "walk"]

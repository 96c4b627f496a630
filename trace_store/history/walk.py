"""Walk history: the log, and what each commit did to the size of the context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from trace_store import revision as revisions
from trace_store.context.compiler import ContextCompiler
from trace_store.context.wording import one_line
from trace_store.graph import ancestors, topological
from trace_store.objects.commit import Commit, parents_of
from trace_store.oid import ObjectId
from trace_store.store import Store


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class TokenGrowth:
    """Tokens of the context at a commit.

    Attributes:
        total: tokens of the compiled context.
        added: how many more, or fewer, than at its first parent.
        source: how far to trust them.
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
        commit = Commit.decode(store.objects.read(oid))
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
    """Return the tokens of the context at each commit, and what it added to its first parent's."""
    totals: dict[bytes, tuple[int, str]] = {}

    def total(oid: bytes) -> tuple[int, str]:
        if oid not in totals:
            context = contexts.compile(ObjectId(oid))
            totals[oid] = context.token_count, context.token_source
        return totals[oid]

    growth: dict[bytes, TokenGrowth] = {}
    for entry in entries:
        after, source = total(entry.oid)
        before = total(entry.commit.parents[0])[0] if entry.commit.parents else 0
        growth[entry.oid] = TokenGrowth(after, after - before, source)
    return growth


def summary(store: Store, commit: Commit) -> str:
    """Return a commit as one line."""
    return one_line(commit, store.objects.read)


__all__ = ["LogEntry", "TokenGrowth", "log", "summary", "token_growth", "walk"]

"""Compilation of a revision or a point in time, with a strategy or a custom compiler.

A strategy only replaces the messages of the compiled context.
"""

from __future__ import annotations

from trace_store import errors
from trace_store import revision as revisions
from trace_store.context.compiled import CompiledContext
from trace_store.context.compiler import ContextCompiler
from trace_store.context.content import one_line
from trace_store.objects.message import Message
from trace_store.objects.operations import LEAVES_CONTEXT
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Compiler: TypeAlias = Callable[[CompiledContext], Sequence[Message]]

STRATEGIES = ("full", "messages")


def compile(
    contexts: ContextCompiler,
    revision: str | ObjectId = "HEAD",
    at: str = "",
    strategy: str = "full",
    *,
    reasoning: bool = True,
    model: str = "",
    compiler: Compiler | None = None,
) -> CompiledContext:
    """Return the context of a revision.

    Args:
        contexts: the compiler of a store.
        revision: the commit.
        at: another revision, or a time: the newest commit along first parents that is not later.
        strategy: "full" for all visible content; "messages" for one line per commit, its message.
        reasoning: whether reasoning is rendered.
        model: the model to count and render for.
        compiler: returns other messages for the context; their tokens are counted again.

    Raises:
        InvalidInputError: unknown strategy, or one that makes its own messages, and a compiler.
        RevisionNotFoundError: there is no such commit.
    """
    if strategy not in STRATEGIES:
        raise errors.InvalidInputError(
            f"unknown strategy {strategy!r}; expected one of {', '.join(STRATEGIES)}"
        )
    if compiler is not None and strategy != "full":
        raise errors.InvalidInputError(f"a compiler cannot change the strategy {strategy!r}")
    where: str | ObjectId = _commit_at(contexts, revision, at) if at else revision
    context = contexts.compile(where, model=model, reasoning=reasoning)
    if strategy == "messages":
        return context.plain(_commit_lines(contexts, context))
    if compiler is not None:
        return context.plain(compiler(context))
    return context


def check_budget(contexts: ContextCompiler, context: CompiledContext, budget: int | None) -> None:
    """Check that a context is within a budget in tokens; None is the repository's, if it has one.

    Raises:
        BudgetError: it is over budget.
    """
    limit = contexts.store.config.budget if budget is None else budget
    if limit is not None and context.token_count > limit:
        raise errors.BudgetError(
            f"the context has {context.token_count:,} tokens, and its budget is {limit:,}",
            needed=context.token_count,
            allowed=limit,
        )


def _commit_at(contexts: ContextCompiler, revision: str | ObjectId, at: str) -> ObjectId:
    try:
        return revisions.resolve_commit(contexts.store, at)
    except (errors.NotFoundError, errors.InvalidInputError) as not_a_revision:
        moment = revisions.parse_moment(at, contexts.store)
        if moment is None:
            raise not_a_revision
    start = revisions.resolve_commit(contexts.store, revision)
    found = revisions.newest_not_after(contexts.store, start, moment)
    if found is None:
        raise errors.NotFoundError(f"{revision} has no commit before {at}")
    return found


def _commit_lines(contexts: ContextCompiler, context: CompiledContext) -> list[Message]:
    lines: list[Message] = []
    oid: bytes | None = context.commit
    while oid is not None:
        commit = contexts.read_commit(oid)
        oid, read = (commit.parents[0] if commit.parents else None), contexts.store.objects.read
        if not commit.message and all(o.name in LEAVES_CONTEXT for o in commit.operations):
            continue  # usage or metadata only
        roles = [m["role"] for o in commit.operations for m in o.fields.get("messages", ())]
        role = "assistant" if roles[:1] == ["assistant"] else "user"
        lines.append(Message(role, one_line(commit, read), kind="dialogue"))
    lines.reverse()
    return lines

"""Expansion of compressed, removed or shortened messages, for good or one compile."""

from __future__ import annotations

from collections.abc import Sequence

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.compression.selection import Origins
from trace_store.context.compiled import CompiledContext
from trace_store.context.fold import REPLACED, Fold
from trace_store.context.ghost import ghost_text
from trace_store.context.snapshots import fold_of
from trace_store.history.draft import CommitResult
from trace_store.objects import operations as ops
from trace_store.objects.address import HERE, Address
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.message import Message, load_message
from trace_store.store import revision as revisions
from trace_store.store.store import Store

REASON = "expand"
FULL = "full"
"""The state of a message that is shown as it was written."""


@value
class Expansion:
    """The result of an expansion.

    Attributes:
        result: the commit; unchanged if the message was shown in full already.
        what: the previous state of the message: `compressed`, `removed`, `edited` or `full`.
        messages: the messages that are shown in full now.
        summary: the summary of the message that stays in the context beside it, or None.
        wordings: how many wordings the message has, if the first of several is shown again; else 1.
    """

    JSON = "commit=result.oid changed=result.changed ref=result.ref"

    result: CommitResult
    what: str
    messages: tuple[Address, ...]
    summary: Address | None = None
    wordings: int = 1


def expanded_messages(
    store: Store, context: CompiledContext, targets: Sequence[str]
) -> list[Message]:
    """Return the messages of a context with some of them shown in full; nothing is written.

    Raises:
        MessageNotFoundError, RevisionNotFoundError: the context does not hold the message.
        InvalidInputError: the message is skipped.
    """
    if context.commit is None:
        raise errors.UnbornBranchError("the branch has no commit yet")
    state = fold_of(store, context.commit).copy()
    for target in targets:
        address = revisions.resolve_address(store, target)
        _, operations, _ = expanding_operations(store, state, address)
        state.apply(HERE, Commit((), "", 0, operations))
    return [
        Message(entry.message["role"], ghost_text(entry.address, entry.message, store.objects.read))
        if entry.is_ghost
        else load_message({**entry.message, "parts": entry.parts}, store.objects.read)
        for entry in state.visible()
    ]


def expanding_operations(
    store: Store, state: Fold, address: Address
) -> tuple[str, list[Operation], tuple[Address, ...]]:
    """Return what a message is, the operations that show it in full, and the messages that they show.

    Raises:
        MessageNotFoundError: the context does not hold the message.
        InvalidInputError: the message is skipped.
    """
    entry = state.entry(address)
    unit = state.unit(address)
    if entry.hidden:
        what = "compressed" if entry.hidden == REPLACED else "removed"
        return what, [ops.restore([address], version=0 if entry.is_edited else None)], unit
    if entry.priority == ops.SKIP:
        raise errors.InvalidInputError(f"message {address} is skipped: give it another priority")
    origins = Origins(store, state)
    origin = origins.of(address)
    if origin is not None and origin.targets:
        hidden = origins.hidden(origin.targets)
        shown = [a for a in origin.messages if a in state and not state.entry(a).hidden]
        operations = [ops.replace(shown, [], reason=REASON), ops.restore(hidden)]
        if ghosts := _ghosts(origins, state, hidden, origin.sources):
            operations.append(ops.remove(ghosts, ghost=True))
        return "compressed", operations, tuple(state.in_order(state.units(hidden)))
    if entry.is_edited:
        return "edited", [ops.restore([address], version=0)], (address,)
    return FULL, [ops.restore([address])], (address,)


def summary_of(store: Store, state: Fold, address: Address) -> Address | None:
    """Return the visible summary that replaced a hidden message, or None."""
    entry = state.entry(address)
    if entry.hidden != REPLACED:
        return None
    origins = Origins(store, state)
    # It stands where the first of the messages stood that it replaced.
    before = state.entries[: state.entries.index(entry)]
    visible = (each.address for each in reversed(before) if not each.hidden)
    return next((each for each in visible if address in origins.originals(each)), None)


def _ghosts(
    origins: Origins, state: Fold, targets: Sequence[Address], sources: Sequence[Address]
) -> list[Address]:
    """Return the ghosts that a summary replaced: targets that are neither sources nor summaries."""
    units = set(state.units(a for a in sources if a in state))
    found = [each for each in targets if each not in units]
    return [each for each in found if (origin := origins.of(each)) is None or not origin.is_summary]

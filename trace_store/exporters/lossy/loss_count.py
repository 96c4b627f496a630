"""Losses of an export: a comparison of the session with the finished drafts.

Invariant: compares all values, and nothing else. Values added for the format, such as an id, are not losses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from trace_store.base.frozen import fields
from trace_store.context.usage import Usage
from trace_store.errors import InvalidInputError
from trace_store.exporters.contract import ExportSession, Facts, Loss, Losses, SessionTurn
from trace_store.exporters.lossy.coerce import whole
from trace_store.exporters.lossy.drafts import ASSISTANT, DraftMessage, DraftPart
from trace_store.objects.operations import NORMAL
from trace_store.objects.parts import (
    Data,
    Image,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)


def losses_of(
    session: ExportSession,
    drafts: Sequence[DraftMessage],
    *,
    tools: int = 0,
    moved: int = 0,
    facts: Facts | None = None,
) -> tuple[Loss, ...]:
    """Return the losses if a reader of the file gets these drafts.

    Args:
        session: the session to export.
        drafts: the messages that a reader gets.
        tools: number of tool schemas in the file.
        moved: number of parts of results that are outside their result.
        facts: facts about the session in the file; None if the format has no place for them.

    Raises:
        InvalidInputError: no message is left.
        ObjectNotFoundError, CorruptObjectError: a content or a record is missing or damaged.
    """
    if not drafts:
        raise nothing_left()
    losses = Losses()
    holding: dict[int, list[DraftMessage]] = defaultdict(list)
    pieces: dict[int, list[DraftPart]] = defaultdict(list)
    for draft in drafts:
        losses.add("message-bounds", count=len(draft.turns) - 1)
        for turn in draft.turns:
            holding[turn].append(draft)
        for piece in draft.pieces:
            pieces[piece.turn].append(piece)
    for number, said in enumerate(session.turns):
        there = {piece.index: piece for piece in pieces[number]}
        for index, part in enumerate(said.message.parts):
            _count_part(part, there.get(index), said.message.model, losses)
        if holding[number]:
            _count_message(session, said, holding[number], losses)
        elif not said.message.parts:
            losses.add("empty-message")
    losses.add("message-place", count=_moved(drafts) + moved)
    losses.add("tool-schema", count=len(session.tools) - tools)
    for below in session.subagents:
        losses.add("subagent", below.name)
    _count_facts(session.facts(), facts or Facts(), losses)
    return losses.all()


def nothing_left() -> InvalidInputError:
    """Return the error for a session without a message that the file can hold."""
    return InvalidInputError("this format can hold no message of the session")


def is_own_author(session: ExportSession, author: str) -> bool:
    """Return True if an author follows from the role and the model of a message."""
    return bool(session.format) and f"{author}/".startswith(f"{session.format}/")


def same_usage(one: Usage | None, other: Usage | None) -> bool:
    """Return True if two reports have the same numbers, whatever their format."""
    if one is None or other is None:
        return one is other
    return all(getattr(one, name) == getattr(other, name) for name in fields(one)[:-1])


def _count_message(
    session: ExportSession, turn: SessionTurn, drafts: Sequence[DraftMessage], losses: Losses
) -> None:
    message = turn.message
    draft = next((each for each in drafts if each.role == message.role), drafts[0])
    losses.add("message-bounds", count=len(drafts) - 1)
    for each in drafts:
        if each.role != message.role:
            losses.add("message-role", f"{message.role} as {each.role}")
    model_counts = message.role == ASSISTANT or message.model
    missing = {
        "message-author": not is_own_author(session, turn.author),
        "message-id": message.id and draft.id != message.id,
        "message-kind": draft.read_kind() != message.kind,
        "message-model": model_counts and draft.model != message.model,
        "message-name": message.name and draft.name != message.name,
        "message-time": draft.time != turn.time,
        "priority": message.priority not in (NORMAL, draft.priority),
        "ghost": message.ghost and not draft.ghost,
        "compaction": turn.is_summary and not draft.summary,
        "usage-report": turn.usage is not None and not same_usage(turn.usage, draft.usage),
    }
    for what, is_missing in missing.items():
        if is_missing:
            losses.add(what)
    losses.add("usage-report", "of the context before it was changed", int(turn.has_stale_usage))
    losses.add("label", count=len(message.labels - draft.labels))


def _count_part(original: Part, piece: DraftPart | None, model: str, losses: Losses) -> None:
    part = None if piece is None else piece.part
    if part is None:
        _count_gone(original, model, losses)
    elif isinstance(original, ToolResult) and isinstance(part, ToolResult):
        losses.add("call-id", count=int(part.call_id != original.call_id))
        losses.add("error-flag", count=int(original.is_error and not part.is_error))
        for inner, kept in (piece.inner or ()) if piece is not None else ():
            if kept is None:
                _count_gone(inner, model, losses)
            else:
                _count_changed(inner, kept, losses)
    else:
        _count_changed(original, part, losses)


def _count_gone(part: Part, model: str, losses: Losses) -> None:
    if isinstance(part, Text):
        losses.add("text" if part.text.strip() else "blank-text")
    elif isinstance(part, Image):
        losses.add("image")
    elif isinstance(part, Reasoning):
        if part.text or not part.signature:
            losses.add("reasoning-text")
        if part.signature:
            losses.add("reasoning-signature", f"bound to {model}" if model else "")
    elif isinstance(part, Opaque):
        losses.add("opaque-part", f"in the form of {part.provider}" if part.provider else "")
    elif isinstance(part, ToolCall):
        losses.add("tool-call")
    elif isinstance(part, ToolResult):
        losses.add("tool-result")


def _count_changed(original: Part, part: Part, losses: Losses) -> None:
    if isinstance(original, Text) and isinstance(part, Text):
        losses.add("control-character", count=_characters(original.text, part.text))
        losses.add("data-schema", count=int(type(original) is Data and type(part) is Text))
    elif isinstance(original, Image) and original != part:
        losses.add("image-form")
    elif isinstance(original, Opaque) and original != part:
        losses.add("opaque-form")
    elif isinstance(original, Reasoning) and isinstance(part, Reasoning):
        if original.text and not part.text:
            losses.add("reasoning-text")
        else:
            losses.add("control-character", count=_characters(original.text, part.text))
        if original.signature and not part.signature:
            losses.add("reasoning-signature")
    elif isinstance(original, ToolCall) and isinstance(part, ToolCall):
        losses.add("call-id", count=int(part.id != original.id))
        losses.add("tool-name", count=int(part.name != original.name))
        if part.format != original.format:
            losses.add("call-format")
        elif part.arguments != original.arguments:
            losses.add("argument-text")


def _characters(original: str, text: str) -> int:
    """Return the number of changed characters; a surrogate pair counts once."""
    if original == text:
        return 0
    joined = whole(original)
    changed = sum(one != other for one, other in zip(joined, text, strict=False))
    return len(original) - len(joined) + changed + abs(len(joined) - len(text))


def _moved(drafts: Iterable[DraftMessage]) -> int:
    """Return the number of parts that changed their order."""
    placed = [piece for draft in drafts for piece in draft.pieces if piece.part is not None]
    order = sorted(range(len(placed)), key=lambda at: (placed[at].turn, placed[at].index))
    moved = furthest = 0
    for at in order:
        moved += at < furthest
        furthest = max(furthest, at)
    return moved


def _count_facts(known: Facts, exported: Facts, losses: Losses) -> None:
    for fact in fields(Facts):
        value = getattr(known, fact)
        if value and getattr(exported, fact) != value:
            losses.add("session-fact", fact)

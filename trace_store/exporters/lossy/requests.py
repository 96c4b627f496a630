"""What the forms of requests have in common: messages of one moment, in which every call is answered at once.

Rule: a file of such a form is a request that its provider takes, as far as it is about messages and tools.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from trace_store.exporters.contract import ExportSession
from trace_store.exporters.lossy.calls import answers_behind_calls, only_pairs, settle_calls
from trace_store.exporters.lossy.drafts import (
    ASSISTANT,
    FRONT_ROLES,
    TOOL,
    Draft,
    Fit,
    apart,
    drafts_of,
    fit_parts,
    forget,
    join,
    with_roles,
)
from trace_store.objects.parts import Part, Text, ToolCall, ToolResult
from trace_store.providers.signatures import maker, model_family
from trace_store.providers.wire import scrub

BEGINNING = "[The conversation begins with the assistant.]"
"""What stands before an assistant that speaks first, where a form wants a user there."""


def fit_request(
    session: ExportSession,
    roles: Sequence[str],
    fit: Callable[[Draft, Part], Part | None],
    inside: Fit,
    call_id: Callable[[str], str],
) -> list[Draft]:
    """Return drafts in which calls and results pair up; nothing is known of them but what they say.

    Args:
        session: what is written.
        roles: that the form has.
        fit: what a part is in the form, as in `drafts.fit_parts`.
        inside: the same for what is in a result.
        call_id: gives the id that the form takes for a call's id.
    """
    drafts = apart(drafts_of(session))
    with_roles(drafts, roles)
    drafts = fit_parts(drafts, fit, inside)
    with_roles(drafts, roles)
    return answers_behind_calls(only_pairs(settle_calls(drafts, call_id)))


def bare(drafts: Sequence[Draft], *, names: bool = False) -> None:
    """Take from drafts all that such a form has no place for; names of speakers stay where it has one."""
    for draft in drafts:
        name = draft.name if names and draft.role != TOOL else ""
        forget([draft])
        draft.name = name
        draft.model = draft.id = ""
        draft.usage = None
        draft.time = 0


def joined_front(drafts: Sequence[Draft], late: str) -> list[Draft]:
    """Return drafts in which what system and developer say first is one message; later they have another role."""
    found: list[Draft] = []
    for draft in drafts:
        if draft.role in FRONT_ROLES and all(each.role in FRONT_ROLES for each in found):
            draft.role = FRONT_ROLES[0]
            if found:
                join(found[0], draft)
            else:
                found.append(draft)
            continue
        if draft.role in FRONT_ROLES:
            draft.role = late
        found.append(draft)
    return found


def joined_answers(drafts: Sequence[Draft]) -> list[Draft]:
    """Return drafts in which what the assistant says without interruption is one message."""
    found: list[Draft] = []
    for draft in drafts:
        if found and found[-1].role == ASSISTANT == draft.role:
            join(found[-1], draft)
        else:
            found.append(draft)
    return found


def said_before_calls(draft: Draft) -> None:
    """Put a message's calls behind all else that it says."""
    draft.pieces.sort(key=lambda piece: isinstance(piece.part, ToolCall))


def last_family(session: ExportSession, provider: str) -> str:
    """Return the family of the provider's model that spoke last; "" when none did."""
    return model_family(last_model_of(session, provider))


def last_model_of(session: ExportSession, provider: str) -> str:
    """Return the provider's model that spoke last; "" when none did."""
    for turn in reversed(session.turns):
        message = turn.message
        if message.role == ASSISTANT and message.model and maker(message.model) == provider:
            return message.model
    return ""


def with_a_text(drafts: Sequence[Draft]) -> None:
    """Let results that say nothing say the empty text, where a form cannot do without one."""
    for draft in drafts:
        for piece in draft.pieces:
            result = piece.part
            if not isinstance(result, ToolResult) or result.content:
                continue
            piece.part = ToolResult(result.call_id, "", result.is_error)
            inner = list(piece.inner or ())
            at = next((at for at, (part, _) in enumerate(inner) if part == Text("")), None)
            if at is not None:
                inner[at] = (inner[at][0], Text(""))
                piece.inner = tuple(inner)


def sound_schemas(schemas: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return schemas of tools as every provider takes their text."""
    clean: list[dict[str, Any]] = scrub(list(schemas))[0]
    return clean


def kept_tools(session: ExportSession, schemas: Sequence[Any]) -> int:
    """Return how many of a session's tools are among schemas, by their names or, where they have none, as they are."""
    there = Counter(name for schema in schemas for name in tool_names(schema))
    kept = 0
    for tool in session.tools:
        names = tool_names(tool)
        if all(there[name] for name in names):
            there.subtract(names)
            kept += 1
    return kept


def tool_names(schema: Any) -> list[str]:
    """Return what the tools of a schema are called, in whichever form; one without a name is called by its JSON."""
    if not isinstance(schema, dict):
        return [json.dumps(schema)]
    declared = schema.get("functionDeclarations")
    if isinstance(declared, list):
        return [name for each in declared for name in tool_names(each)]
    inner = next(
        (schema[key] for key in ("function", "custom") if isinstance(schema.get(key), dict)), schema
    )
    name = inner.get("name")
    return [name] if isinstance(name, str) else [json.dumps(schema, sort_keys=True)]

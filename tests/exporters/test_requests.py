"""Exported requests equal `trace compile`; a provider's own blocks go only to it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from tests.exporters.support.cases import CLAUDE, GEMINI, GPT, USER, called, of
from tests.exporters.support.invented import sessions
from tests.exporters.support.sessions import rich_session
from tests.support.examples import examples
from trace_store.errors import InvalidInputError
from trace_store.exporters.contract import ExportSession
from trace_store.exporters.registry import FORMS, writer_named
from trace_store.objects.message import Message
from trace_store.objects.parts import Opaque, Text, ToolResult
from trace_store.providers.documents import parse_messages
from trace_store.providers.fields import UNREAD, damage_kept
from trace_store.providers.rendering import ADAPTATIONS, FAULTS, RENDERERS, Renderable, render
from trace_store.providers.wire import to_bytes

REQUESTS = {
    "anthropic": "anthropic",
    "gemini-contents": "gemini",
    "openai": "openai",
    "openai-responses": "openai-responses",
}
MAKERS = {
    "anthropic": "anthropic",
    "claude-code": "anthropic",
    "codex": "openai",
    "gemini": "gemini",
    "gemini-contents": "gemini",
    "langchain": "langchain",
    "openai": "openai",
    "openai-responses": "openai",
}
"""Whose blocks a request or a transcript holds."""
NEW = {"type": "brand_new", "what": "MARKED"}
# Possible future blocks of each provider: the document, and the provider named in the block.
UNKNOWN: dict[str, tuple[Any, str]] = {
    "anthropic": (
        {"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": [NEW]},
        "anthropic",
    ),
    "openai": ({"role": "assistant", "content": [NEW]}, UNREAD),
    "openai-responses": ({"output": [NEW]}, "openai"),
    "gemini": (
        {"candidates": [{"content": {"role": "model", "parts": [{"brandNew": NEW}]}}]},
        "gemini",
    ),
    "langchain": ({"type": "ai", "content": [NEW]}, "langchain"),
}

# Words of which at least one is among the losses that an export lists for each repair.
LISTED = {
    "arguments-wrapped": {"argument-text"},
    "blank-text": {"blank-text"},
    "call-id-changed": {"call-id"},
    "duplicate-result": {"tool-result"},
    "empty-message": {"blank-text", "empty-message"},
    "image-left-out": {"image"},
    "image-moved": {"message-place"},
    "invalid-image": {"image", "image-form", "opaque-part"},
    "misplaced-call": {"tool-call"},
    "name-changed": {"message-name", "tool-name", "tool-schema"},
    "opaque-left-out": {"opaque-part"},
    "orphan-call": {"tool-call"},
    "orphan-result": {"tool-result"},
    "reasoning-left-out": {"reasoning-signature", "reasoning-text"},
    "surrogate-replaced": {"argument-text", "control-character", "opaque-form", "tool-name"},
    "system-as-user": {"image", "message-role", "opaque-part"},
    "tool-left-out": {"tool-schema"},
    "tool-without-call": {"image", "message-role", "opaque-part"},
    "unknown-block": {"opaque-part"},
}
# These repairs lose nothing: they add something, or change only the order.
NOT_LOST = {
    "call-unsigned",
    "error-without-text",
    "leading-assistant",
    "moved-result",
    "no-messages",
}
NOT_LOST |= {"trailing-space"}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_file_is_what_compile_gives(name: str) -> None:
    session = rich_session()
    request = json.loads(writer_named(name).write(session).to_bytes())
    rendered = render(REQUESTS[name], [t.message for t in session.turns], session.tools)
    beside = {key: request.pop(key) for key in ("model", "max_tokens") if key in request}
    assert request == json.loads(to_bytes(rendered.request))
    assert beside == {"anthropic": {"model": CLAUDE, "max_tokens": 8192}}.get(name, {})


def _unknown(source: str) -> tuple[Message, str]:
    """A message with a block unknown to Trace, and the block's provider."""
    document, provider = UNKNOWN[source]
    with damage_kept():
        (message,) = parse_messages(json.dumps(document))
    (block,) = message.parts
    assert isinstance(block, Opaque)
    assert block.provider == provider
    model = {"anthropic": CLAUDE, "gemini": GEMINI}.get(provider, GPT)
    return Message("assistant", [block, Text("So.")], model=model), provider


@pytest.mark.parametrize("source", UNKNOWN)
@pytest.mark.parametrize("target", sorted(set(RENDERERS) - {"json", "text"}))
def test_an_unknown_block_is_rendered_for_its_own_provider_alone(source: str, target: str) -> None:
    message, provider = _unknown(source)
    block = message.parts[0]
    own = provider == {"openai-responses": "openai"}.get(target, target)
    # The only blocks from the model in chat completions are refusals.
    holds = own and target != "openai"
    assert (b"MARKED" in to_bytes(render(target, [USER, message]).request)) == holds
    # A provider that accepts no unknown blocks of users or tools gets none from others.
    for other in (Message("user", [block, Text("So.")]), _answered(block)):
        sent = to_bytes(render(target, [USER, called(), other]).request)
        assert own or b"MARKED" not in sent


def _answered(block: Any) -> Message:
    return Message("tool", [ToolResult("call_1", [block, Text("v1")])])


@pytest.mark.parametrize("source", UNKNOWN)
def test_an_unknown_block_is_exported_to_its_own_provider_alone(source: str) -> None:
    message, provider = _unknown(source)
    for target, maker in MAKERS.items():
        data = writer_named(target).write(of(USER, message)).to_bytes()
        assert maker == provider or b"MARKED" not in data, target


def test_every_format_for_programs_is_held_to_it() -> None:
    assert set(MAKERS) == set(FORMS) - {"atif", "dagent", "html", "markdown", "trace-json"}


LOST_AS = {
    "image": {"image", "image-form"},
    "opaque": {"opaque-part"},
    "reasoning": {"reasoning-signature", "reasoning-text"},
    "text": {"blank-text", "empty-message", "text"},
    "tool_call": {"tool-call"},
    "tool_result": {"tool-result"},
}
"""The losses of a part that is left out, by its type."""


def _may_be_left_out(message: Renderable, words: set[str]) -> bool:
    """Return True if all parts of a message are listed as lost; what is repaired in its note is lost with them."""
    return all(words & LOST_AS[part.type] for part in message.parts)


@pytest.mark.parametrize("name", REQUESTS)
def test_whatever_a_renderer_repairs_is_listed_as_lost(name: str) -> None:
    assert set(LISTED) | NOT_LOST == ADAPTATIONS | FAULTS

    @settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
    @given(sessions())
    def check(session: ExportSession) -> None:
        try:
            exported = writer_named(name).write(session)
        except InvalidInputError:
            assume(False)
        words = {loss.what for loss in exported.losses}
        messages = [turn.message for turn in session.turns]
        for repair in render(REQUESTS[name], messages, session.tools).repairs:
            if repair.code in NOT_LOST:
                continue
            assert words & LISTED[repair.code] or (
                repair.at is not None and _may_be_left_out(messages[repair.at], words)
            ), repair

    check()

"""One call that renders a context for each provider and holds the requests against everything we know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.gemini_checker import check_gemini
from tests.support.request_checker import check_anthropic, check_openai_chat
from tests.support.request_types import (
    validate_anthropic,
    validate_gemini,
    validate_openai,
    validate_openai_responses,
)
from tests.support.responses_checker import check_openai_responses
from trace_store.providers.rendering import MESSAGE_LISTS, Renderable, Rendered, render
from trace_store.providers.wire import to_bytes

CHECKS = {
    "openai": (check_openai_chat, validate_openai),
    "openai-responses": (check_openai_responses, validate_openai_responses),
    "anthropic": (check_anthropic, validate_anthropic),
    "gemini": (check_gemini, validate_gemini),
}


def assert_valid_requests(
    messages: Sequence[Renderable], tools: Sequence[dict[str, Any]] = (), **options: Any
) -> dict[str, Rendered]:
    """Assert that every provider would accept the context, and return the requests.

    A request without messages, which no provider takes, must say so in its repairs.
    """
    rendered: dict[str, Rendered] = {}
    for name, (check, validate) in CHECKS.items():
        rendered[name] = result = render(name, messages, tools, **options)
        if not messages_of(result):
            assert "no-messages" in {repair.code for repair in result.repairs}
            continue
        problems = check(result.request)
        if name == "gemini" and _old_gemini(messages, options):
            problems = check_gemini(result.request, signed=False)
        assert not problems, f"{name}: {problems}"
        validate(result.request)
        assert to_bytes(result.request) == to_bytes(
            render(name, messages, tools, **options).request
        )
    return rendered


def _old_gemini(messages: Sequence[Renderable], options: dict[str, Any]) -> bool:
    spoke = [m.model for m in messages if m.role == "assistant" and "gemini" in m.model]
    asked = options.get("model") or (spoke[-1] if spoke else "")
    return "gemini-2" in asked


def messages_of(rendered: Rendered) -> list[dict[str, Any]]:
    """Return the list of a request's messages, whatever the provider calls it."""
    name = next(name for name in MESSAGE_LISTS if name in rendered.request)
    found: list[dict[str, Any]] = rendered.request[name]
    return found

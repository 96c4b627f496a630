"""One call that renders a context for each provider and holds the requests against everything we know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.request_checker import check_anthropic, check_openai_chat
from tests.support.request_types import validate_anthropic, validate_openai
from trace_store.context.render import Renderable, Rendered, render, to_bytes

CHECKS = {
    "openai": (check_openai_chat, validate_openai),
    "anthropic": (check_anthropic, validate_anthropic),
}


def assert_valid_requests(
    messages: Sequence[Renderable], tools: Sequence[dict[str, Any]] = (), **options: Any
) -> dict[str, Rendered]:
    """Assert that both providers would take the context, and return what was rendered.

    A request without messages, which no provider takes, must say so in its repairs.
    """
    rendered: dict[str, Rendered] = {}
    for name, (check, validate) in CHECKS.items():
        rendered[name] = result = render(name, messages, tools, **options)
        problems = check(result.request)
        if not result.request["messages"]:
            assert "no-messages" in {repair.code for repair in result.repairs}
            continue
        assert not problems, f"{name}: {problems}"
        validate(result.request)
        assert to_bytes(result.request) == to_bytes(
            render(name, messages, tools, **options).request
        )
    return rendered

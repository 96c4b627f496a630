"""OpenTelemetry: a span processor that records GenAI spans as a run; extra `opentelemetry`.

    provider.add_span_processor(TraceSpanProcessor(repo.runs))

Source of the attributes: OpenTelemetry semantic conventions for generative AI, `gen_ai.*`. Other spans are no steps.
"""

from __future__ import annotations

import json
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import StatusCode

from trace_store.integrations.spans import OpenSpans, counts, guarded
from trace_store.runs.run import Run
from trace_store.runs.runs import Runs

OPERATION = "gen_ai.operation.name"
_TYPES = {
    "chat": "thinking",
    "text_completion": "thinking",
    "generate_content": "thinking",
    "execute_tool": "tool_call",
    "embeddings": "embeddings",
    "retrieval": "workspace_search",
}
_HOLDING = ("invoke_agent", "create_agent", "invoke_workflow")
"""Operations that only hold others; the outermost is a run."""


class TraceSpanProcessor(SpanProcessor):
    """Records spans of models, tools and searches as steps. Its faults are logged once and never stop the agent."""

    def __init__(self, target: Run | Runs) -> None:
        """Record into a run, or with `repo.runs` into a new run for each outermost GenAI span."""
        self._spans = OpenSpans(target)

    @guarded
    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Begin a span."""
        found = dict(span.attributes or {})
        operation = str(found.get(OPERATION) or "")
        if operation not in _TYPES and operation not in _HOLDING:
            return
        parent = span.parent.span_id if span.parent is not None else None
        model = str(found.get("gen_ai.request.model") or "")
        self._spans.start(
            _id(span), parent, _TYPES.get(operation, ""), _title(span, found), model=model
        )

    @guarded
    def on_end(self, span: ReadableSpan) -> None:
        """End a span."""
        found = dict(span.attributes or {})
        failed = span.status.status_code is StatusCode.ERROR
        self._spans.end(
            _id(span),
            _content(found),
            tokens=counts(
                found, input="gen_ai.usage.input_tokens", output="gen_ai.usage.output_tokens"
            ),
            model=str(found.get("gen_ai.response.model") or ""),
            error=(span.status.description or "failed") if failed else None,
        )

    def shutdown(self) -> None:
        """Do nothing: each step is stored when it ends."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Return True: each step is stored when it ends."""
        return True


def _id(span: ReadableSpan) -> object:
    context = span.get_span_context()
    return None if context is None else context.span_id


def _title(span: Span, found: dict[str, Any]) -> str:
    """Return what is called, and with what."""
    tool = found.get("gen_ai.tool.name")
    if tool:
        arguments = found.get("gen_ai.tool.call.arguments") or found.get("tool_arguments") or ""
        return f"{tool} {arguments}".strip()
    return str(found.get("gen_ai.agent.name") or span.name)


def _content(found: dict[str, Any]) -> object:
    """Return what a model wrote or a tool returned."""
    result = found.get("gen_ai.tool.call.result") or found.get("tool_response")
    if result:
        return result
    try:
        messages = json.loads(str(found.get("gen_ai.output.messages") or "[]"))
        parts = [part for each in messages for part in each.get("parts", ())]
        return "\n".join(str(part["content"]) for part in parts if part.get("type") == "text")
    except (ValueError, TypeError, AttributeError, KeyError):
        return ""

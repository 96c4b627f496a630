"""OpenAI Agents SDK: a tracing processor that records a run for each trace; extra `openai-agents`.

agents.add_trace_processor(TraceProcessor(repo.runs))
"""

from __future__ import annotations

from typing import Any

from agents.tracing import Span, Trace, TracingProcessor
from agents.tracing.span_data import (
    AgentSpanData,
    CustomSpanData,
    FunctionSpanData,
    GenerationSpanData,
    GuardrailSpanData,
    HandoffSpanData,
    ResponseSpanData,
)

from trace_store.integrations.spans import OpenSpans, counts, guarded
from trace_store.runs.run import Run
from trace_store.runs.runs import Runs


class TraceProcessor(TracingProcessor):
    """Records models, tools, handoffs and guardrails as steps. Its faults are logged once and never stop the agent."""

    def __init__(self, target: Run | Runs) -> None:
        """Record into a run, or with `repo.runs` into a new run for each trace."""
        self._spans = OpenSpans(target)

    @guarded
    def on_trace_start(self, trace: Trace) -> None:
        """Begin a trace."""
        self._spans.start(trace.trace_id, None, "", trace.name)

    @guarded
    def on_trace_end(self, trace: Trace) -> None:
        """End a trace."""
        self._spans.end(trace.trace_id)

    @guarded
    def on_span_start(self, span: Span[Any]) -> None:
        """Begin a span."""
        type_, title = _step(span.span_data)
        self._spans.start(span.span_id, span.parent_id or span.trace_id, type_, title)

    @guarded
    def on_span_end(self, span: Span[Any]) -> None:
        """End a span."""
        content, tokens, model = _outcome(span.span_data)
        error = span.error["message"] if span.error else None
        _, title = _step(span.span_data)  # the input of a tool is set after its start
        self._spans.end(span.span_id, content, tokens=tokens, model=model, title=title, error=error)

    def shutdown(self) -> None:
        """Do nothing: each step is stored when it ends."""

    def force_flush(self) -> None:
        """Do nothing: each step is stored when it ends."""


def _step(data: object) -> tuple[str, str]:
    """Return the type and title of the step for a span; "" for a span that only holds others."""
    if isinstance(data, GenerationSpanData | ResponseSpanData):
        return "thinking", ""
    if isinstance(data, FunctionSpanData):
        return "tool_call", f"{data.name} {data.input or ''}".strip()
    if isinstance(data, HandoffSpanData):
        return "handoff", f"{data.from_agent or ''} to {data.to_agent or ''}".strip()
    if isinstance(data, GuardrailSpanData):
        return "guardrail", data.name
    if isinstance(data, CustomSpanData):
        return "custom", data.name
    if isinstance(data, AgentSpanData):
        return "", data.name
    return "", ""


def _outcome(data: object) -> tuple[object, dict[str, int], str]:
    """Return the content, token counts and model of the step for a span that has ended."""
    if isinstance(data, ResponseSpanData):
        response = data.response
        usage = getattr(response, "usage", None)
        tokens = counts(usage, input="input_tokens", output="output_tokens")
        return (
            getattr(response, "output_text", ""),
            tokens,
            str(getattr(response, "model", "") or ""),
        )
    if isinstance(data, GenerationSpanData):
        tokens = counts(data.usage, input="input_tokens", output="output_tokens")
        return _text(data.output), tokens, data.model or ""
    if isinstance(data, FunctionSpanData):
        return data.output, {}, ""
    if isinstance(data, GuardrailSpanData):
        return "triggered" if data.triggered else "", {}, ""
    if isinstance(data, CustomSpanData):
        return data.data or "", {}, ""
    return "", {}, ""


def _text(output: object) -> object:
    """Return the text of messages that a model wrote, or the output as it is."""
    if isinstance(output, list):
        texts = [each.get("content") for each in output if isinstance(each, dict)]
        if texts and all(isinstance(text, str) for text in texts):
            return "\n".join(str(text) for text in texts)
    return output

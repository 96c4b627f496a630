"""LangChain and LangGraph: a callback handler that records a run; extra `langchain`.

handler = TraceCallbackHandler(repo.runs)
graph.invoke(state, config={"callbacks": [handler]})
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from trace_store.integrations.spans import OpenSpans, counts, guarded
from trace_store.runs.run import Run
from trace_store.runs.runs import Runs


class TraceCallbackHandler(BaseCallbackHandler):
    """Records calls of models, tools and retrievers as steps. Its faults are logged once and never stop the agent."""

    run_inline = True  # in the agent's own thread, so that steps keep their order

    def __init__(self, target: Run | Runs) -> None:
        """Record into a run, or with `repo.runs` into a new run for each outermost call."""
        self._spans = OpenSpans(target)

    @guarded
    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **more: Any,
    ) -> None:
        """Begin a chain or a node of a graph, which is no step."""
        self._spans.start(run_id, parent_run_id, "", more.get("name") or _name(serialized))

    @guarded
    def on_chain_end(self, outputs: dict[str, Any], *, run_id: UUID, **more: Any) -> None:
        """End a chain."""
        self._spans.end(run_id)

    @guarded
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """End a chain, which failed."""
        self._spans.end(run_id, error=error)

    @guarded
    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **more: Any,
    ) -> None:
        """Begin a call of a chat model."""
        self._start_model(serialized, run_id, parent_run_id, more)

    @guarded
    def on_llm_start(
        self,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **more: Any,
    ) -> None:
        """Begin a call of a model that completes text."""
        self._start_model(serialized, run_id, parent_run_id, more)

    def _start_model(
        self, serialized: dict[str, Any], id: UUID, parent: UUID | None, more: dict[str, Any]
    ) -> None:
        model = str((more.get("metadata") or {}).get("ls_model_name") or "")
        title = str(more.get("name") or _name(serialized))
        self._spans.start(id, parent, "thinking", title, model=model)

    @guarded
    def on_llm_new_token(
        self, token: str | list[str | dict[str, Any]], *, run_id: UUID, **more: Any
    ) -> None:
        """Show text that a model streams."""
        pieces = [token] if isinstance(token, str) else token
        text = "".join(
            piece if isinstance(piece, str) else str(piece.get("text") or "") for piece in pieces
        )
        self._spans.progress(run_id, text)

    @guarded
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **more: Any) -> None:
        """End a call of a model."""
        generation = response.generations[0][0] if response.generations else None
        usage: object = None
        model = ""
        if isinstance(generation, ChatGeneration):
            usage = getattr(generation.message, "usage_metadata", None)
            model = str(generation.message.response_metadata.get("model_name") or "")
        self._spans.end(
            run_id,
            generation.text if generation is not None else "",
            tokens=counts(usage, input="input_tokens", output="output_tokens"),
            model=model,
        )

    @guarded
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """End a call of a model, which failed."""
        self._spans.end(run_id, error=error)

    @guarded
    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **more: Any,
    ) -> None:
        """Begin a call of a tool."""
        title = f"{_name(serialized) or more.get('name') or 'tool'} {input_str}".strip()
        self._spans.start(run_id, parent_run_id, "tool_call", title)

    @guarded
    def on_tool_end(self, output: Any, *, run_id: UUID, **more: Any) -> None:
        """End a call of a tool."""
        self._spans.end(run_id, getattr(output, "content", output))

    @guarded
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """End a call of a tool, which failed."""
        self._spans.end(run_id, error=error)

    @guarded
    def on_retriever_start(
        self,
        serialized: dict[str, Any],
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **more: Any,
    ) -> None:
        """Begin a search."""
        self._spans.start(run_id, parent_run_id, "workspace_search", query)

    @guarded
    def on_retriever_end(self, documents: Sequence[Document], *, run_id: UUID, **more: Any) -> None:
        """End a search; what it found are its sources."""
        for each in documents:
            place = str(each.metadata.get("source") or each.metadata.get("url") or "")
            title = str(each.metadata.get("title") or place or each.page_content[:80])
            self._spans.source(run_id, title, place)
        self._spans.end(run_id)

    @guarded
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """End a search, which failed."""
        self._spans.end(run_id, error=error)


def _name(serialized: dict[str, Any] | None) -> str:
    """Return the name of a component."""
    found = serialized or {}
    return str(found.get("name") or (found.get("id") or [""])[-1])

"""Adapters, with the real packages and models that answer from a list."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trace_store import Repo
from trace_store.runs.steps import StepRecord


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with Repo.init(tmp_path, author="ada", durability="fast") as made:
        yield made


def only_run(repo: Repo) -> tuple[str, str, list[StepRecord]]:
    """Return the name, the status and the steps of the only run."""
    (info,) = repo.runs.list()
    return info.state.name, info.status, list(repo.runs.read(info.id).steps)


def rows(steps: list[StepRecord]) -> list[tuple[str, str, str, str]]:
    return [(step.type, step.title, step.status, step.content) for step in steps]


def langgraph_agent(answers: list[Any]) -> Any:
    """Return a graph with a model node and a tool node."""
    pytest.importorskip("langgraph")
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import tool
    from langgraph.graph import END, START, MessagesState, StateGraph

    @tool
    def look(path: str) -> str:
        """Read a file."""
        if path == "missing":
            raise FileNotFoundError(path)
        return f"the text of {path}"

    model = GenericFakeChatModel(messages=iter(answers))

    def think(state: MessagesState) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    def act(state: MessagesState) -> Any:
        calls = state["messages"][-1].tool_calls
        found = [look.invoke(call["args"]) for call in calls]
        texts = zip(calls, found, strict=True)
        return {"messages": [ToolMessage(text, tool_call_id=call["id"]) for call, text in texts]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("act", act)
    graph.add_edge(START, "think")
    graph.add_conditional_edges(
        "think",
        lambda state: "act" if getattr(state["messages"][-1], "tool_calls", None) else END,
    )
    graph.add_edge("act", "think")
    return graph.compile()


def answers_of_langgraph(path: str) -> list[Any]:
    from langchain_core.messages import AIMessage

    usage = {"input_tokens": 20, "output_tokens": 4, "total_tokens": 24}
    call = {"name": "look", "args": {"path": path}, "id": "c1"}
    return [
        AIMessage("I read it.", tool_calls=[call]),
        AIMessage("It says hello.", usage_metadata=usage, response_metadata={"model_name": "m1"}),
    ]


def test_a_langgraph_graph_is_a_run_and_its_calls_are_steps(repo: Repo) -> None:
    pytest.importorskip("langgraph")
    from trace_store.integrations.langchain import TraceCallbackHandler

    agent = langgraph_agent(answers_of_langgraph("a.txt"))
    handler = TraceCallbackHandler(repo.runs)
    state = {"messages": [{"role": "user", "content": "What does a.txt say?"}]}
    agent.invoke(state, config={"callbacks": [handler]})
    name, status, steps = only_run(repo)
    assert (name, status) == ("LangGraph", "completed")
    assert [(step.type, step.status, step.content) for step in steps] == [
        ("thinking", "completed", "I read it."),
        ("tool_call", "completed", "the text of a.txt"),
        ("thinking", "completed", "It says hello."),
    ]
    assert steps[1].title == "look {'path': 'a.txt'}"
    assert dict(steps[2].tokens) == {"input": 20, "output": 4}
    assert steps[2].model == "m1"


def test_a_tool_that_fails_in_a_graph_fails_its_step_and_the_run(repo: Repo) -> None:
    pytest.importorskip("langgraph")
    from trace_store.integrations.langchain import TraceCallbackHandler

    agent = langgraph_agent(answers_of_langgraph("missing"))
    with pytest.raises(FileNotFoundError):
        agent.invoke(
            {"messages": [{"role": "user", "content": "Read it."}]},
            config={"callbacks": [TraceCallbackHandler(repo.runs)]},
        )
    _, status, steps = only_run(repo)
    assert status == "failed"
    assert [(step.type, step.status) for step in steps] == [
        ("thinking", "completed"),
        ("tool_call", "failed"),
    ]
    assert steps[1].error == "FileNotFoundError: missing"


def test_streamed_tokens_are_progress_of_a_step_in_a_given_run(repo: Repo, tmp_path: Path) -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.language_models import GenericFakeChatModel

    from trace_store.integrations.langchain import TraceCallbackHandler

    model = GenericFakeChatModel(messages=iter(["one two three"]))
    with repo.store.follow(timeout=0.2) as events:
        with repo.runs.start("Count", id="nightly") as run:
            handler = TraceCallbackHandler(run)
            pieces = [
                piece.content for piece in model.stream("count", config={"callbacks": [handler]})
            ]
            assert "".join(map(str, pieces)) == "one two three"
            (step,) = repo.runs.read("nightly").steps
            assert (step.type, step.status, step.content) == (
                "thinking",
                "completed",
                "one two three",
            )
        kinds = [event.kind for event in events]
    assert kinds.count("ref") == 4


def test_documents_of_a_retriever_are_sources(repo: Repo) -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    from trace_store.integrations.langchain import TraceCallbackHandler

    class Found(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document("The harbour.", metadata={"source": "harbour.md"})]

    Found().invoke("harbour", config={"callbacks": [TraceCallbackHandler(repo.runs)]})
    _, status, (step,) = only_run(repo)
    assert (status, step.type, step.title) == ("completed", "workspace_search", "harbour")
    assert [(each.title, each.url) for each in step.sources] == [("harbour.md", "harbour.md")]


def test_a_fault_of_the_handler_is_logged_once_and_the_agent_goes_on(
    repo: Repo, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("langgraph")
    from trace_store.integrations.langchain import TraceCallbackHandler

    run = repo.runs.start("Fix")
    run.complete()  # so each step is refused
    agent = langgraph_agent(answers_of_langgraph("a.txt"))
    with caplog.at_level(logging.ERROR):
        found = agent.invoke(
            {"messages": [{"role": "user", "content": "Read it."}]},
            config={"callbacks": [TraceCallbackHandler(run)]},
        )
    assert found["messages"][-1].content == "It says hello."
    assert len(caplog.records) == 2  # a model's step and a tool's


def test_a_run_of_the_agents_sdk(repo: Repo) -> None:
    agents = pytest.importorskip("agents")
    from agents.items import ModelResponse
    from agents.tracing import generation_span
    from agents.usage import Usage
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    from trace_store.integrations.openai_agents import TraceProcessor

    call = ResponseFunctionToolCall(
        arguments='{"path": "a.txt"}', call_id="c1", name="look", type="function_call"
    )
    text = ResponseOutputText(annotations=[], text="It says hello.", type="output_text")
    answer = ResponseOutputMessage(
        id="m1", content=[text], role="assistant", status="completed", type="message"
    )

    class Fake(agents.Model):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.answers: list[Any] = [call, answer]

        async def get_response(self, *args: Any, **more: Any) -> ModelResponse:
            with generation_span(model="m1") as span:
                item = self.answers.pop(0)
                span.span_data.output = [{"role": "assistant", "content": "I think."}]
                span.span_data.usage = {"input_tokens": 20, "output_tokens": 4}
            return ModelResponse(output=[item], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **more: Any) -> Any:
            raise NotImplementedError

    @agents.function_tool  # type: ignore[untyped-decorator]
    def look(path: str) -> str:
        """Read a file."""
        return f"the text of {path}"

    agents.set_tracing_disabled(False)
    agents.set_trace_processors([TraceProcessor(repo.runs)])
    try:
        agent = agents.Agent(name="reader", model=Fake(), tools=[look])
        result = asyncio.run(agents.Runner.run(agent, "What does a.txt say?"))
    finally:
        agents.set_trace_processors([])
    assert result.final_output == "It says hello."
    name, status, steps = only_run(repo)
    assert (name, status) == ("Agent workflow", "completed")
    assert rows(steps) == [
        ("thinking", "", "completed", "I think."),
        ("tool_call", 'look {"path": "a.txt"}', "completed", "the text of a.txt"),
        ("thinking", "", "completed", "I think."),
    ]
    assert (steps[0].model, dict(steps[0].tokens)) == ("m1", {"input": 20, "output": 4})


def test_a_pydantic_ai_agent_through_opentelemetry(repo: Repo) -> None:
    pytest.importorskip("opentelemetry.sdk")
    pydantic_ai = pytest.importorskip("pydantic_ai")
    from opentelemetry.sdk.trace import TracerProvider
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.models.instrumented import InstrumentationSettings

    from trace_store.integrations.opentelemetry import TraceSpanProcessor

    def answer(messages: list[Any], info: Any) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("look", {"path": "a.txt"})])
        return ModelResponse(parts=[TextPart("It says hello.")])

    provider = TracerProvider()
    provider.add_span_processor(TraceSpanProcessor(repo.runs))
    settings = InstrumentationSettings(tracer_provider=provider)
    agent = pydantic_ai.Agent(FunctionModel(answer), name="reader")
    agent.instrument = settings

    @agent.tool_plain  # type: ignore[untyped-decorator]
    def look(path: str) -> str:
        return f"the text of {path}"

    assert asyncio.run(agent.run("What does a.txt say?")).output == "It says hello."
    _, status, steps = only_run(repo)
    assert status == "completed"
    assert [(step.type, step.status) for step in steps] == [
        ("thinking", "completed"),
        ("tool_call", "completed"),
        ("thinking", "completed"),
    ]
    assert steps[1].title.startswith("look")
    assert steps[2].content == "It says hello."
    assert dict(steps[2].tokens)["output"] > 0


def test_other_spans_of_opentelemetry_are_no_steps(repo: Repo) -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider

    from trace_store.integrations.opentelemetry import TraceSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(TraceSpanProcessor(repo.runs))
    tracer = provider.get_tracer("t")
    with tracer.start_as_current_span("GET /", attributes={"http.request.method": "GET"}):
        pass
    assert repo.runs.list() == []

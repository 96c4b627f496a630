"""Copilot's sessions: conversion of events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.importers.support.checks import (
    JSON,
    assert_counted_once,
    assert_grows,
    assert_recognised,
    damaged,
    heads,
    import_hostile,
    lines_of,
)
from tests.importers.support.states import commits, context, parts_of, tip_of, visible
from tests.support.examples import examples
from tests.support.valid_requests import assert_valid_requests
from trace_store.base.environment import Environment
from trace_store.base.oid import ObjectId
from trace_store.context.compiler import ContextCompiler
from trace_store.disk.files import Disk
from trace_store.importers.formats.copilot import FORMAT
from trace_store.importers.import_paths import import_paths
from trace_store.objects import operations as ops
from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.rendering import RENDERERS, render
from trace_store.store.store import Store
from trace_store.writer import Writer

SESSION = "301561f1-0000-4000-8000-00000000000a"
BRANCH = f"refs/heads/sessions/copilot/{SESSION}"
MODEL = "gpt-4.1"


class Session:
    """Writes events one after the other, each a second after the one before."""

    def __init__(self, cwd: str = "/w/app") -> None:
        self.records: list[dict[str, Any]] = []
        self.add("session.start", sessionId=SESSION, version=1, context={"cwd": cwd})
        self.add("session.model_change", newModel=MODEL)

    def add(self, type_: str, agent: str = "", **data: Any) -> str:
        number = len(self.records)
        event: dict[str, Any] = {
            "type": type_,
            "data": data,
            "id": f"{number:08x}-0000-4000-8000-000000000000",
            "timestamp": f"2026-05-12T00:{number // 60:02d}:{number % 60:02d}.000Z",
            "parentId": self.records[-1]["id"] if self.records else None,
        }
        self.records.append({**event, "agentId": agent} if agent else event)
        return str(event["id"])

    def user(self, text: str, **more: Any) -> str:
        return self.add("user.message", content=text, attachments=[], **more)

    def answer(self, text: str = "", *calls: str, agent: str = "", **more: Any) -> str:
        requests = [
            {"toolCallId": id_, "name": "bash", "arguments": {"command": id_}, "type": "function"}
            for id_ in calls
        ]
        number = len(self.records)
        return self.add(
            "assistant.message",
            agent,
            messageId=f"msg-{number}",
            content=text,
            toolRequests=requests,
            **more,
        )

    def result(self, call: str, text: str, agent: str = "", **more: Any) -> str:
        self.add("tool.execution_start", agent, toolCallId=call, toolName="bash")
        told = {"success": True, "result": {"content": text}, **more}
        return self.add("tool.execution_complete", agent, toolCallId=call, **told)

    @property
    def data(self) -> bytes:
        return lines_of(self.records)

    def write(self, folder: Path) -> str:
        path = folder / "events.jsonl"
        path.write_bytes(self.data)
        return str(path)


def lively() -> Session:
    """A session with one example of each case that an import must distinguish."""
    s = Session()
    s.add("system.message", role="system", content="You are a terminal assistant.")
    s.user("Fix it.", transformedContent="<now>May</now>\n\nFix it.")
    s.add("assistant.turn_start", turnId="0")
    s.answer("I look.", "a", "b", reasoningText="Both.", reasoningOpaque="c2Vh", outputTokens=12)
    s.result("a", "one")
    s.result("b", "", success=False, result=None, error={"message": "no such file"})
    s.answer("Somebody else can look too.", "task")
    s.add("subagent.started", "helper-1", toolCallId="task", agentName="explore")
    s.add("system.message", "helper-1", role="system", content="You explore.")
    s.answer("", "inner", agent="helper-1")
    s.result("inner", "seen", agent="helper-1")
    s.answer("Nothing found.", agent="helper-1")
    s.add("subagent.completed", "helper-1", toolCallId="task", agentName="explore")
    s.result("task", "Nothing found.")
    s.add("session.compaction_start")
    s.answer("Meanwhile I go on.", "c")
    s.result("c", "three")
    s.add("session.compaction_complete", success=True, summaryContent="It was nearly fixed.")
    s.answer("Fixed.")
    s.add("session.resume", eventCount=9)
    s.add("system.message", role="system", content="You are a terminal assistant, once more.")
    s.user("Hidden words.", source="skill-pdf")
    s.answer("Read.")
    return s


def imported(tmp_path: Path, session: Session) -> Store:
    store = Store.memory()
    (report,) = import_paths(Writer(store), [session.write(tmp_path)]).files
    assert (report.format, report.session) == ("copilot", SESSION)
    assert_counted_once(store, report, len(session.records))
    return store


def tip(store: Store, name: str = BRANCH) -> ObjectId:
    return tip_of(store, name)


def test_a_session(tmp_path: Path) -> None:
    store = imported(tmp_path, lively())
    assert set(heads(store)) == {BRANCH, f"{BRANCH}/agents/helper-1"}
    assert context(store, tip(store)) == [
        "system: You are a terminal assistant, once more.",
        "user: It was nearly fixed.",
        "assistant: Meanwhile I go on. | c",
        "tool: c=three",
        "assistant: Fixed.",
        "user: Hidden words.",
        "assistant: Read.",
    ]
    assert context(store, tip(store, f"{BRANCH}/agents/helper-1")) == [
        "system: You explore.",
        "assistant: inner",
        "tool: inner=seen",
        "assistant: Nothing found.",
    ]
    line = commits(store, tip(store))
    replaced = next(c for c in line if any(op.name == ops.REPLACE for op in c.operations))
    assert context(store, replaced.parents[0])[:6] == [
        "system: You are a terminal assistant.",
        "user: <now>May</now>\n\nFix it.",
        "assistant: reasoning | opaque | I look. | a | b",
        "tool: a=one | b=no such file",
        "assistant: Somebody else can look too. | task",
        "tool: task=Nothing found.",
    ]
    assert [c.author for c in line[:4]] == [
        "copilot",
        "copilot/user",
        f"copilot/{MODEL}",
        "copilot",
    ]
    usage = [op.fields for c in line for op in c.operations if op.name == ops.USAGE]
    assert usage == [{"output_total": 12, "source": "copilot", "model": MODEL}]
    kinds = [entry.message["kind"] for entry in visible(store, tip(store))]
    assert kinds[0] == kinds[5] == "instruction"
    for name in heads(store):
        compiled = ContextCompiler(store).compile(name)
        assert_valid_requests(list(compiled.messages))


def test_parts(tmp_path: Path) -> None:
    s = Session()
    image = {"type": "blob", "mimeType": "image/png", "data": "iVBORw=="}
    s.add("user.message", content="See.", attachments=[image, {"type": "file", "path": "/w/a"}, 7])
    s.answer(reasoningText="Hm.", encryptedContent="sealed")
    s.add(
        "assistant.message",
        content="",
        toolRequests=[
            {"toolCallId": "x", "name": "edit", "arguments": '{"a" : 1}', "type": "function"},
            {"toolCallId": "y", "name": "patch", "arguments": "*** Begin", "type": "custom"},
            {"name": "without an id"},
        ],
    )
    result = {"result_type": "failure", "text_result_for_llm": "no"}
    s.add("tool.execution_complete", toolCallId="x", result=result)
    s.add("tool.execution_complete", toolCallId="y", success=True, result={"contents": [1]})
    s.result("typed by the user", "ls", isUserRequested=True)
    store = imported(tmp_path, s)
    found = [parts_of(store, entry) for entry in visible(store, tip(store))]
    sealed = Opaque("copilot", b'{"encryptedContent":"sealed"}')
    assert found == [
        (Text("See."), Image("image/png", b"\x89PNG")),
        (Reasoning("Hm."), sealed),
        (
            ToolCall("x", "edit", '{"a" : 1}'),
            ToolCall("y", "patch", "*** Begin", "text"),
            Opaque("copilot", b'{"name":"without an id"}'),
        ),
        (
            ToolResult("x", "no", True),
            ToolResult("y", [Opaque("copilot", b'{"contents":[1]}')]),
        ),
    ]


def test_a_rewind(tmp_path: Path) -> None:
    s = Session()
    s.user("One.")
    left = s.user("Two.")
    s.answer("Done.")
    s.add("session.snapshot_rewind", upToEventId=left, eventsRemoved=2)
    s.user("Three.")
    store = imported(tmp_path, s)
    assert context(store, tip(store)) == ["user: One.", "user: Three."]
    assert len(heads(store)) == 2


def test_an_older_subagent_is_told_by_its_call(tmp_path: Path) -> None:
    s = Session()
    s.user("Scan.")
    s.answer("", "task")
    s.answer("Inside.", parentToolCallId="task")
    s.result("task", "Seen.")
    store = imported(tmp_path, s)
    assert context(store, tip(store))[1:] == ["assistant: task", "tool: task=Seen."]
    assert context(store, tip(store, f"{BRANCH}/agents/task")) == ["assistant: Inside."]


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (lively().data, True),
        (lines_of(lively().records[3:5]), True),
        (b'{"type":"session.start","data":{}}\n', False),
        (b'{"type":["session.start"],"data":{},"id":1,"timestamp":1,"parentId":1}\n', False),
        (b"", False),
    ],
)
def test_recognising(head: bytes, known: bool) -> None:
    assert_recognised(FORMAT, head, known)


def test_the_sessions_of_a_project(tmp_path: Path) -> None:
    project, home = tmp_path / "app", tmp_path / "home"
    wanted = []
    for folder, cwd in (("one", project), ("two", tmp_path / "apple"), ("three", project / "src")):
        place = home / ".copilot" / "session-state" / folder
        place.mkdir(parents=True)
        path = Session(str(cwd)).write(place)
        wanted += [path] if folder != "two" else []
    (home / ".copilot" / "session-state" / "odd.jsonl").write_text('{"type":"session.start"}\n')
    found = FORMAT.histories(Environment(copilot_dir=str(home / ".copilot")), str(project), Disk())
    assert found == sorted(wanted)
    assert FORMAT.histories(Environment(), str(project), Disk()) == []


def test_a_growing_file(tmp_path: Path) -> None:
    assert_grows(tmp_path, lively().data, "events.jsonl")


def test_a_file_that_ends_in_records_without_words_grows_by_such(tmp_path: Path) -> None:
    session = Session()
    session.add("system.message", role="system", content="You are a terminal assistant.")
    session.add("system.message", "helper-1", role="system", content="You explore.")
    session.add("system.message", role="system", content="You are a terminal assistant.")
    shorter = session.data
    session.add("session.resume", eventCount=9)
    whole = imported(tmp_path, session)
    path = tmp_path / "events.jsonl"
    store = Store.memory()
    for data in (shorter, session.data, shorter):  # an older file does not move the branch back
        path.write_bytes(data)
        import_paths(Writer(store), [str(path)])
        assert data == shorter or heads(store) == heads(whole)
    assert heads(store) == heads(whole)


@pytest.mark.parametrize("begun", [True, False])
def test_records_without_words_that_a_subagent_goes_on_from_are_its_own(
    tmp_path: Path, begun: bool
) -> None:
    """They are on the session's branch only as long as nothing follows; then it goes back, and loses nothing."""
    session = Session()
    session.add("system.message", role="system", content="You are a terminal assistant.")
    session.add("session.compaction_complete", success=True, summaryContent="Nearly fixed.")
    if begun:
        session.add("system.message", "helper-1", role="system", content="You explore.")
        session.user("Go on.")
        session.add("session.compaction_complete", success=True, summaryContent="Fixed.")
    path = tmp_path / "events.jsonl"
    store = Store.memory()
    session.add("session.resume", eventCount=9)
    path.write_bytes(session.data)
    import_paths(Writer(store), [str(path)])
    waiting = heads(store)[BRANCH]
    session.add("system.message", "helper-1", role="system", content="You explore more.")
    path.write_bytes(session.data)
    import_paths(Writer(store), [str(path)])
    assert heads(store) == heads(imported(tmp_path, session))
    assert heads(store)[BRANCH] != waiting
    assert waiting in [tip for _, tip in store.refs.iterate("refs/trash/")]
    path.write_bytes(session.data)
    assert import_paths(Writer(store), [str(path)]).commits == 0


EVENTS = st.fixed_dictionaries(
    {"type": st.sampled_from([*{r["type"] for r in lively().records}]) | JSON, "data": JSON},
    optional=dict.fromkeys(("id", "timestamp", "parentId", "agentId"), JSON),
)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damaged(lively().records) | st.lists(EVENTS, min_size=1, max_size=6))
def test_no_shape_does_harm(tmp_path: Path, records: list[Any]) -> None:
    store = import_hostile(tmp_path, records, "copilot")
    contexts = ContextCompiler(store)
    for name in heads(store):
        for provider in RENDERERS:
            render(provider, list(contexts.compile(name).messages))


def test_a_copy_under_another_name_adds_nothing(tmp_path: Path) -> None:
    store = Store.memory()
    import_paths(Writer(store), [lively().write(tmp_path)])
    other = tmp_path / "copy.jsonl"
    other.write_bytes(lively().data)
    assert import_paths(Writer(store), [str(other)]).commits == 0

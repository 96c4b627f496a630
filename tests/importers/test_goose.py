"""Sessions of Goose: its database, exports, the files of older builds, summaries."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from tests.importers.support.checks import lines_of
from tests.importers.support.sound import (
    branches_of,
    damaged_document,
    import_damaged,
    imported,
    messages,
)
from tests.support.examples import examples
from trace_store.base.environment import Environment, variables_with
from trace_store.contracts.ref_names import FILES
from trace_store.disk.files import Disk
from trace_store.importers.formats.goose import FORMAT
from trace_store.importers.import_paths import import_paths
from trace_store.maintenance.fsck import fsck
from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.store.store import Store
from trace_store.transcripts.segments import restore
from trace_store.writer import Writer

Row = dict[str, Any]
SCHEMA = """
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', working_dir TEXT NOT NULL,
  created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, extension_data TEXT DEFAULT '{}', total_tokens INTEGER,
  model_config_json TEXT, parent_session_id TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL,
  role TEXT NOT NULL, content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL,
  timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tokens INTEGER, metadata_json TEXT);
"""
SHOWN = {"userVisible": True, "agentVisible": True}
HIDDEN = {"userVisible": True, "agentVisible": False}
FOR_AGENT = {"userVisible": False, "agentVisible": True}
ARCHIVED = {"userVisible": False, "agentVisible": False}


def text(words: str) -> Row:
    return {"type": "text", "text": words}


def call(id_: str, name: str, **arguments: Any) -> Row:
    value = {"name": name, "arguments": arguments}
    return {"type": "toolRequest", "id": id_, "toolCall": {"status": "success", "value": value}}


def result(id_: str, *contents: Row, **more: Any) -> Row:
    value = {"content": list(contents), **more}
    return {"type": "toolResponse", "id": id_, "toolResult": {"status": "success", "value": value}}


TALK: list[tuple[str, list[Row]]] = [
    ("user", [text("look"), {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]),
    (
        "assistant",
        [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            text("I look."),
            call("c1", "developer__shell", command="ls"),
            call("c2", "developer__text_editor", path="a.py"),
        ],
    ),
    (
        "user",
        [
            result(
                "c1",
                {**text("a.py"), "annotations": {"audience": ["assistant"]}},
                {**text("shown to the user"), "annotations": {"audience": ["user"]}},
            ),
            {
                "type": "toolResponse",
                "id": "c2",
                "toolResult": {"status": "error", "error": "-32603: no file"},
            },
        ],
    ),
    ("assistant", [text("Done."), {"type": "brandNew", "x": 1}]),
    (
        "assistant",
        [{"type": "systemNotification", "notificationType": "inlineMessage", "msg": "x"}],
    ),
]


def database(path: Path, sessions: list[Row], rows: list[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as base, base:
        base.executescript(SCHEMA)
        for table, values in (("sessions", sessions), ("messages", rows)):
            for row in values:
                names = ", ".join(row)
                marks = ", ".join("?" * len(row))
                base.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))


def session(id_: str, folder: str = "/work", **more: Any) -> Row:
    return {"id": id_, "working_dir": folder, "model_config_json": '{"model_name":"m-1"}', **more}


def row(
    number: int,
    role: str,
    content: list[Row] | str,
    session: str = "s1",
    seen: Mapping[str, bool] = SHOWN,
) -> Row:
    return {
        "message_id": f"m{number}",
        "session_id": session,
        "role": role,
        "content_json": content if isinstance(content, str) else json.dumps(content),
        "created_timestamp": 1_760_000_000 + number,
        "metadata_json": json.dumps(seen),
    }


def import_all(path: Path) -> Store:
    store = Store.memory()
    import_paths(Writer(store), [str(path)])
    assert not [finding for finding in fsck(store) if finding.severity == "error"]
    assert import_paths(Writer(store), [str(path)]).commits == 0
    return store


def assert_talk(store: Store, branch: str, model: str) -> None:
    asked, said, results, done = messages(store, branch)
    assert [type(each) for each in asked.parts] == [Text, Image]
    assert [type(each) for each in said.parts] == [Reasoning, Text, ToolCall, ToolCall]
    assert said.model == model
    assert results.role == "tool"
    first, second = (each for each in results.parts if isinstance(each, ToolResult))
    assert [each.text for each in first.content if isinstance(each, Text)] == ["a.py"]
    assert (first.is_error, second.is_error) == (False, True)
    assert [type(each) for each in done.parts] == [Text, Opaque]


def test_sessions_and_subagents_of_a_database(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    rows = [row(number, role, content) for number, (role, content) in enumerate(TALK)]
    rows += [row(10, "user", [text("sub")], "s2"), row(11, "assistant", "not json", "s2")]
    database(path, [session("s1"), session("s2", parent_session_id="s1")], rows)
    store = import_all(path)
    assert branches_of(store) == {"goose/s1", "goose/s1/agents/s2"}
    assert_talk(store, "goose/s1", "m-1")
    _, unread = messages(store, "goose/s1/agents/s2")
    assert isinstance(unread.parts[0], Opaque)
    with closing(sqlite3.connect(path)) as base:
        base.row_factory = sqlite3.Row
        for _, tip in store.refs.iterate(FILES):
            kept = json.loads(b"".join(restore(tip, store.objects.read)))
            id_ = kept["goose"]["id"]
            query = "SELECT * FROM sessions WHERE id = ?"
            assert kept["goose"] == dict(base.execute(query, (id_,)).fetchone())
            query = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
            assert kept["messages"] == list(map(dict, base.execute(query, (id_,))))


def test_an_export_and_a_file_of_an_older_build(tmp_path: Path) -> None:
    said = [
        {"id": f"m{number}", "role": role, "created": 1_760_000_000 + number, "content": content}
        for number, (role, content) in enumerate(TALK)
    ]
    whole = {
        "id": "20260301_1",
        "working_dir": "/work",
        "name": "look",
        "extension_data": {},
        "model_config": {"model_name": "m-2"},
        "conversation": said,
    }
    store, _ = imported(tmp_path, "export.json", whole)
    assert_talk(store, "goose/20260301_1", "m-2")
    first = {"working_dir": "/work", "description": "look", "message_count": 5}
    store, _ = imported(tmp_path, "20250301_1.jsonl", lines_of([first, *said]))
    assert_talk(store, "goose/20250301_1", "")


def test_a_summary_replaces_what_the_agent_no_longer_sees(tmp_path: Path) -> None:
    rows = [
        row(0, "user", [text("kept")]),
        row(1, "user", [text("old")], seen=HIDDEN),
        row(2, "user", [text("first summary")], seen=ARCHIVED),
        row(3, "assistant", [text("newer")], seen=HIDDEN),
        row(4, "user", [text("second summary")], seen=FOR_AGENT),
        row(5, "assistant", [text("go on")]),
        row(6, "user", [text("/help")], seen=HIDDEN),
    ]
    database(tmp_path / "sessions.db", [session("s1")], rows)
    store = import_all(tmp_path / "sessions.db")
    found = [
        part.text
        for message in messages(store, "goose/s1")
        for part in message.parts
        if isinstance(part, Text)
    ]
    assert found == ["kept", "second summary", "go on"]


def test_which_sessions_are_a_projects(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    folder = tmp_path / "data" / "sessions"
    here, below = session("s1", str(project)), session("s2", str(project / "sub"))
    rows = [row(1, "user", [text("x")], id_) for id_ in ("s1", "s2", "s3")]
    database(folder / "sessions.db", [here, below, session("s3", "/elsewhere")], rows)
    first = {"working_dir": str(project), "description": "", "message_count": 0}
    (folder / "old.jsonl").write_bytes(lines_of([first]))
    (folder / "other.jsonl").write_bytes(lines_of([{**first, "working_dir": "/elsewhere"}]))
    places = Environment.read(variables_with(GOOSE_PATH_ROOT=str(tmp_path)))
    stored = folder / "sessions.db"
    expected = [str(folder / "old.jsonl"), f"{stored}#s1", f"{stored}#s2"]
    assert FORMAT.finds(places, str(project), Disk()) == expected


@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_damage_does_harm(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    rows = [row(number, role, content) for number, (role, content) in enumerate(TALK[:3])]
    document = {
        "goose": {"id": "s1"},
        "messages": [*rows, row(4, "user", [text("y")], seen=HIDDEN)],
    }
    import_damaged(
        tmp_path_factory.mktemp("damaged"), data.draw(damaged_document(document)), "goose"
    )

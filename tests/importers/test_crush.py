"""Sessions in Crush's database: rows, summaries, subagents."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from tests.importers.support.sound import branches_of, damaged_document, import_damaged, messages
from tests.support.examples import examples
from trace_store.base.environment import Environment
from trace_store.contracts.ref_names import FILES
from trace_store.disk.files import Disk
from trace_store.errors import UnreadableInputError
from trace_store.importers.formats.crush import FORMAT
from trace_store.importers.import_paths import import_paths
from trace_store.maintenance.fsck import fsck
from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.store.store import Store
from trace_store.transcripts.segments import restore
from trace_store.writer import Writer

Row = dict[str, Any]
SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL, message_count INTEGER,
  prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL, updated_at INTEGER, created_at INTEGER,
  summary_message_id TEXT);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL,
  parts TEXT NOT NULL default '[]', model TEXT, created_at INTEGER, updated_at INTEGER, finished_at INTEGER,
  is_summary_message INTEGER DEFAULT 0);
"""


def part(type_: str, **data: Any) -> Row:
    return {"type": type_, "data": data}


def text(words: str) -> Row:
    return part("text", text=words)


FINISH = part("finish", reason="end_turn", time=1)


def database(
    path: Path, sessions: dict[str, Row], rows: list[tuple[str, str, str, list[Row] | str, int]]
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as base, base:
        base.executescript(SCHEMA)
        for number, (id_, more) in enumerate(sessions.items()):
            values = (
                id_,
                more.get("parent"),
                f"title {id_}",
                0,
                0,
                0,
                0.5,
                1,
                number,
                more.get("summary"),
            )
            base.execute(f"INSERT INTO sessions VALUES ({', '.join('?' * 10)})", values)
        for number, (id_, session, role, parts, is_summary) in enumerate(rows):
            said = parts if isinstance(parts, str) else json.dumps(parts)
            row = (
                id_,
                session,
                role,
                said,
                "sonnet",
                1_700_000_000 + number // 2,
                1,
                None,
                is_summary,
            )
            base.execute(f"INSERT INTO messages VALUES ({', '.join('?' * 9)})", row)


def import_all(path: Path) -> Store:
    store = Store.memory()
    import_paths(Writer(store), [str(path)])
    assert not [finding for finding in fsck(store) if finding.severity == "error"]
    assert import_paths(Writer(store), [str(path)]).commits == 0
    return store


def test_sessions_and_subagents(tmp_path: Path) -> None:
    path = tmp_path / ".crush" / "crush.db"
    call = part("tool_call", id="c1", name="view", input='{"path":"a.py"}', finished=True)
    result = part("tool_result", tool_call_id="c1", name="view", content="one", is_error=True)
    picture = part(
        "tool_result",
        tool_call_id="c2",
        name="shot",
        content="",
        data="iVBORw0KGgo=",
        mime_type="image/png",
    )
    rows: list[tuple[str, str, str, list[Row] | str, int]] = [
        (
            "m1",
            "s1",
            "user",
            [
                text("look"),
                part("binary", Path="a", MIMEType="image/png", Data="iVBORw0KGgo="),
                FINISH,
            ],
            0,
        ),
        (
            "m2",
            "s1",
            "assistant",
            [
                part("reasoning", thinking="hm", signature="sig"),
                text("I look."),
                call,
                part("tool_call", id="c2", name="shot", input=""),
                FINISH,
            ],
            0,
        ),
        ("m3", "s1", "tool", [result], 0),
        ("m4", "s1", "tool", [picture, part("brand_new", x=1)], 0),
        ("m5", "s1", "assistant", [part("finish", reason="error", message="overloaded")], 0),
        ("m6", "s1", "assistant", [FINISH], 0),
        ("m7", "s1", "assistant", "not json", 0),
        ("a1", "s2", "user", [text("sub"), FINISH], 0),
    ]
    database(path, {"s1": {}, "s2": {"parent": "s1"}}, rows)
    store = import_all(path)
    assert branches_of(store) == {"crush/s1", "crush/s1/agents/s2"}
    # A model is not sent what failed.
    asked, said, results, unread = messages(store, "crush/s1")
    assert [type(each) for each in asked.parts] == [Text, Image]
    assert [type(each) for each in said.parts] == [Reasoning, Text, ToolCall, ToolCall]
    assert said.model == "sonnet"
    (first, second) = [each for each in results.parts if isinstance(each, ToolResult)]
    assert (first.is_error, second.is_error) == (True, False)
    assert isinstance(second.content[0], Image)
    assert isinstance(results.parts[-1], Opaque)
    assert isinstance(unread.parts[0], Opaque)
    with closing(sqlite3.connect(path)) as base:
        base.row_factory = sqlite3.Row
        for _, tip in store.refs.iterate(FILES):
            kept = json.loads(b"".join(restore(tip, store.objects.read)))
            id_ = kept["crush"]["id"]
            assert kept["crush"] == dict(
                base.execute("SELECT * FROM sessions WHERE id = ?", (id_,)).fetchone()
            )
            found = base.execute(
                "SELECT * FROM messages WHERE session_id = ? ORDER BY rowid", (id_,)
            )
            assert kept["messages"] == list(map(dict, found))


@pytest.mark.parametrize("seed", range(30))
def test_a_summary_replaces_the_messages_before_it(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    rows: list[tuple[str, str, str, list[Row] | str, int]] = []
    wanted: list[str] = []
    last = None
    for number in range(chosen.randint(2, 12)):
        id_ = f"m{number}"
        if number and chosen.random() < 0.2:
            is_marked = chosen.randint(0, 1)
            rows.append((id_, "s1", "assistant", [text(f"s{number}"), FINISH], is_marked))
            wanted = [f"s{number}"] if is_marked else [*wanted, f"s{number}"]
            last = (id_, len(wanted) - 1)
            continue
        rows.append((id_, "s1", "user" if number % 2 else "assistant", [text(id_), FINISH], 0))
        wanted.append(id_)
    if last is not None:
        wanted = wanted[last[1] :]
    database(tmp_path / "crush.db", {"s1": {"summary": last and last[0]}}, rows)
    found = messages(import_all(tmp_path / "crush.db"), "crush/s1")
    assert [
        each.text for message in found for each in message.parts if isinstance(each, Text)
    ] == wanted


@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_damage_does_harm(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    row = {"id": "m1", "session_id": "s1", "role": "user", "parts": json.dumps([text("x"), FINISH])}
    document = {"crush": {"id": "s1"}, "messages": [row, {**row, "id": "m2", "parts": [text("y")]}]}
    import_damaged(
        tmp_path_factory.mktemp("damaged"), data.draw(damaged_document(document)), "crush"
    )


def test_which_databases_are_its_own(tmp_path: Path) -> None:
    path = tmp_path / ".crush" / "crush.db"
    database(path, {"s1": {}}, [("m1", "s1", "user", [text("x")], 0)])
    assert FORMAT.sniff(path.read_bytes())
    assert FORMAT.finds(Environment(), str(tmp_path), Disk()) == [f"{path}#s1"]
    assert FORMAT.finds(Environment(), str(tmp_path / "other"), Disk()) == []
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as base, base:
        base.execute("CREATE TABLE notes (prompt_tokens, parent_session_id, parts TEXT)")
    with pytest.raises(UnreadableInputError, match="Crush"):
        import_paths(Writer(Store.memory()), [str(other)])

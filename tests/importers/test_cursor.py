"""Conversations in Cursor's database: bubbles in rows of their own, and in the conversation's row."""

from __future__ import annotations

import json
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
from trace_store.history.log import log
from trace_store.importers.formats.cursor import FORMAT
from trace_store.importers.import_paths import import_paths
from trace_store.maintenance.fsck import fsck
from trace_store.objects.parts import Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.store.store import Store
from trace_store.transcripts.segments import restore
from trace_store.writer import Writer

Row = dict[str, Any]
SESSIONS = "refs/heads/sessions/"
SCHEMA = """
CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
"""


def prompt(id_: str, text: str, **more: Any) -> Row:
    return {"bubbleId": id_, "type": 1, "text": text, **more}


def answer(id_: str, text: str = "", **more: Any) -> Row:
    return {"bubbleId": id_, "type": 2, "text": text, **more}


def tool(id_: str, name: str, **more: Any) -> Row:
    former = {"toolCallId": f"tool_{id_}", "name": name, "rawArgs": '{"a": 1}', **more}
    return answer(id_, toolFormerData=former)


TALK = [
    prompt("b1", "look", images=[{"uuid": "i1"}]),
    answer("b2", thinking={"text": "hm", "signature": "sig"}),
    answer("b3", "I look.", toolFormerData={"additionalData": {}}),
    tool("b4", "read_file", status="completed", result='{"contents":"one"}'),
    tool("b5", "edit_file", status="error", error="no such file"),
    tool("b6", "run_terminal_cmd", status="loading"),
    answer("b7", ""),
    answer("b8", "Done.", modelInfo={"modelName": "m-2"}, createdAt="2026-03-01T10:00:00.000Z"),
]


def database(path: Path, *conversations: tuple[str, list[Row], Row]) -> None:
    """Write conversations: id, bubbles, and more fields of the conversation."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as base, base:
        base.executescript(SCHEMA)
        insert = "INSERT INTO cursorDiskKV VALUES (?, ?)"
        for id_, bubbles, more in conversations:
            for bubble in reversed(bubbles):
                base.execute(insert, (f"bubbleId:{id_}:{bubble['bubbleId']}", json.dumps(bubble)))
            headers = [{"bubbleId": each["bubbleId"], "type": each["type"]} for each in bubbles]
            composer = {
                "composerId": id_,
                "createdAt": 1_760_000_000_000,
                "modelConfig": {"modelName": "m-1"},
                "fullConversationHeadersOnly": headers,
                **more,
            }
            base.execute(insert, (f"composerData:{id_}", json.dumps(composer)))
        base.execute(insert, ("composerData:never-used", None))


def workspace(user: Path, name: str, folder: Path, *ids: str) -> None:
    """Write the files of a workspace: its folder, and a database that lists its conversations."""
    place = user / "workspaceStorage" / name
    place.mkdir(parents=True)
    (place / "workspace.json").write_text(json.dumps({"folder": folder.as_uri()}))
    with closing(sqlite3.connect(place / "state.vscdb")) as base, base:
        base.executescript(SCHEMA)
        listed = json.dumps({"allComposers": [{"composerId": id_} for id_ in ids]})
        base.execute("INSERT INTO ItemTable VALUES ('composer.composerData', ?)", (listed,))


def import_all(path: Path) -> Store:
    store = Store.memory()
    import_paths(Writer(store), [str(path)])
    assert not [finding for finding in fsck(store) if finding.severity == "error"]
    assert import_paths(Writer(store), [str(path)]).commits == 0
    return store


def test_conversations_and_subagents(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    abandoned = prompt("b9", "abandoned")
    parent = {"subagentInfo": {"parentComposerId": "s1"}, "createdAt": 1}
    headers = [{"bubbleId": each["bubbleId"]} for each in [*TALK, prompt("gone", "")]]
    database(
        path,
        ("s2", [prompt("c1", "sub")], parent),
        ("s1", [*TALK, abandoned], {"fullConversationHeadersOnly": headers}),
        ("empty", [], {}),
    )
    store = import_all(path)
    assert branches_of(store) == {"cursor/s1", "cursor/s1/agents/s2"}
    asked, said, read, edit, failed, run, done = messages(store, "cursor/s1")
    assert [type(each) for each in asked.parts] == [Text, Opaque]
    assert [type(each) for each in said.parts] == [Reasoning, Text, ToolCall]
    assert [said.model, done.model] == ["m-1", "m-2"]
    results = [part for each in (read, failed) for part in each.parts]
    assert [part.is_error for part in results if isinstance(part, ToolResult)] == [False, True]
    # A call that still ran has no result.
    assert [type(each.parts[0]) for each in (edit, run, done)] == [ToolCall, ToolCall, Text]
    with closing(sqlite3.connect(path)) as base:
        for _, tip in store.refs.iterate(FILES):
            kept = json.loads(b"".join(restore(tip, store.objects.read)))
            id_ = kept["cursor"]["key"].partition(":")[2]
            query = "SELECT key, value FROM cursorDiskKV WHERE key = ? OR key GLOB ?"
            rows = base.execute(query, (f"composerData:{id_}", f"bubbleId:{id_}:*")).fetchall()
            found = [(each["key"], each["value"]) for each in (kept["cursor"], *kept["bubbles"])]
            assert sorted(found) == sorted(rows)


def test_bubbles_in_the_row_of_their_conversation(tmp_path: Path) -> None:
    database(tmp_path / "state.vscdb", ("s1", [], {"conversation": TALK}))
    found = messages(import_all(tmp_path / "state.vscdb"), "cursor/s1")
    roles = ["user", "assistant", "tool", "assistant", "tool", "assistant", "assistant"]
    assert [each.role for each in found] == roles


def test_times_are_those_of_bubbles_requests_and_the_conversation(tmp_path: Path) -> None:
    sent = answer("b2", "y", timingInfo={"clientRpcSendTime": 1_760_000_060_000})
    last = answer("b3", "z", createdAt="2026-03-01T10:00:00.000Z")
    database(tmp_path / "state.vscdb", ("s1", [prompt("b1", "x"), sent, last], {}))
    store = import_all(tmp_path / "state.vscdb")
    found = [each.time for each in log(store, f"{SESSIONS}cursor/s1")]
    assert found == [1_772_359_200_000, 1_760_000_060_000, 1_760_000_000_000]


def test_which_conversations_are_a_projects(tmp_path: Path) -> None:
    user = tmp_path / ".config" / "Cursor" / "User"
    path = user / "globalStorage" / "state.vscdb"
    database(path, *((id_, [prompt("b1", "x")], {}) for id_ in ("s1", "s2", "s3")))
    project = tmp_path / "my project"
    workspace(user, "one", project, "s1", "never-used")
    workspace(user, "two", project / "sub", "s2")
    workspace(user, "three", tmp_path, "s3")
    assert FORMAT.sniff(path.read_bytes())
    places = Environment(home=str(tmp_path))
    assert FORMAT.finds(places, str(project), Disk()) == [f"{path}#s1", f"{path}#s2"]
    assert FORMAT.finds(places, str(tmp_path / "other"), Disk()) == []
    other = tmp_path / "other.vscdb"
    with closing(sqlite3.connect(other)) as base, base:
        base.execute("CREATE TABLE ItemTable (key, value)")
    with pytest.raises(UnreadableInputError, match="Cursor"):
        import_paths(Writer(Store.memory()), [str(other)], format="cursor")


@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_damage_does_harm(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    headers = [{"bubbleId": each["bubbleId"]} for each in TALK]
    composer = json.dumps({"fullConversationHeadersOnly": headers})
    rows = [{"key": f"bubbleId:s1:{each['bubbleId']}", "value": json.dumps(each)} for each in TALK]
    document = {"cursor": {"key": "composerData:s1", "value": composer}, "bubbles": rows}
    import_damaged(
        tmp_path_factory.mktemp("damaged"), data.draw(damaged_document(document)), "cursor"
    )

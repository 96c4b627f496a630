"""Sessions of opencode: exports, its database, and a dump of it."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.importers.support.hostile import ANYTHING, anything_in
from tests.importers.support.sound import assert_valid
from tests.importers.support.states import commits, context, entries
from tests.importers.support.transcripts import each_real_transcript
from tests.importers.test_transcripts import check
from tests.support.examples import examples
from tests.support.subjects import transcripts
from trace_store.base.environment import Environment
from trace_store.contracts.ref_names import FILES
from trace_store.disk.files import Disk
from trace_store.errors import UnreadableInputError
from trace_store.importers import sqlite_input
from trace_store.importers.contract import Skip
from trace_store.importers.discovery import project_histories
from trace_store.importers.formats.opencode import FORMAT
from trace_store.importers.formats.opencode.rows import ROW, rows_of
from trace_store.importers.import_paths import import_paths
from trace_store.importers.input_files import InputLine
from trace_store.importers.registry import format_of
from trace_store.maintenance.fsck import fsck
from trace_store.objects.commit import Commit
from trace_store.objects.message import load_parts
from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.store.store import Store
from trace_store.transcripts.segments import restore
from trace_store.writer import Writer

PLACE = "refs/heads/sessions/opencode/"
SESSION = "ses_3f0c2a541111"
MODEL = "claude-opus-4-7"
SIGNATURE = "c2lnbmF0dXJl" * 8
PNG = "data:image/png;base64,iVBORw0KGgo="
BEGIN = 1_778_834_704_000
Map = dict[str, Any]

INFO: Map = {
    "id": SESSION,
    "slug": "lively-harbor",
    "projectID": "proj_1",
    "directory": "/w/app",
    "title": "Fix the parser",
    "version": "1.2.3",
    "time": {"created": BEGIN, "updated": BEGIN + 90_000},
}


class Talk:
    """Writes messages one after the other, a second apart."""

    def __init__(self, **info: Any) -> None:
        self.info = {**INFO, **info}
        self.own = "" if self.info["id"] == SESSION else str(self.info["id"])[4:]
        self.messages: list[Map] = []

    def say(self, role: str, *parts: Map, **info: Any) -> str:
        number = len(self.messages) + 1
        name = f"{self.own}{number:03d}"
        id_ = f"msg_{name}"
        base = {"role": role, "time": {"created": BEGIN + 1000 * number}}
        self.messages.append(
            {
                "info": {**base, **info, "id": id_, "sessionID": self.info["id"]},
                "parts": [
                    {
                        **part,
                        "id": f"prt_{name}_{n:03d}",
                        "sessionID": self.info["id"],
                        "messageID": id_,
                    }
                    for n, part in enumerate(parts)
                ],
            }
        )
        return id_

    def user(self, *parts: Map | str, **info: Any) -> str:
        return self.say("user", *(text(p) if isinstance(p, str) else p for p in parts), **info)

    def model(self, *parts: Map | str, **info: Any) -> str:
        asked = [m["info"]["id"] for m in self.messages if m["info"]["role"] == "user"]
        more = {"modelID": MODEL, "providerID": "anthropic", "finish": "stop"}
        more |= {"parentID": asked[-1] if asked else "", **info}
        return self.say("assistant", *(text(p) if isinstance(p, str) else p for p in parts), **more)

    @property
    def document(self) -> Map:
        return {"info": self.info, "messages": self.messages}

    def write(self, folder: Path, name: str = "export") -> str:
        path = folder / f"{name}.json"
        path.write_text(json.dumps(self.document, indent=2, ensure_ascii=False) + "\n")
        return str(path)


def text(words: str, **more: Any) -> Map:
    return {"type": "text", "text": words, **more}


def tool(call: str, output: Any = None, *, name: str = "read", **state: Any) -> Map:
    made = {"status": "completed", "input": {"at": call}, "output": output, "title": call}
    full = {**made, "metadata": {}, "time": {"start": 1, "end": 2}, **state}
    return {"type": "tool", "tool": name, "callID": call, "state": full}


def finished(output: int) -> Map:
    tokens = {"input": 6, "output": output, "reasoning": 2, "cache": {"read": 10, "write": 20}}
    return {"type": "step-finish", "reason": "stop", "cost": 0.01, "tokens": tokens}


START: Map = {"type": "step-start", "snapshot": "4b1d"}
LONG = "parser.py, the one that splits at newlines, and reader.py, which reads it"


def lively() -> Talk:
    """A session with one example of each case that an import must distinguish."""
    t = Talk()
    t.user("List the files, and say what each is for.")
    t.model(
        START,
        {
            "type": "reasoning",
            "text": "A look at the folder will do.",
            "metadata": {"anthropic": {"signature": SIGNATURE}},
            "time": {"start": 1, "end": 2},
        },
        tool("c1", LONG, time={"start": 1, "end": 2, "compacted": BEGIN + 3500}),
        tool("c2", status="error", error="no such folder: lib"),
        finished(30),
        START,
        text("Two files: a parser, and what reads it."),
        finished(12),
        {"type": "patch", "hash": "4b1d", "files": ["/w/app/parser.py"]},
    )
    t.user("Rename one.", text("Called the Read tool.", synthetic=True), text("no", ignored=True))
    t.model(START, "Renamed.", finished(3))
    t.user({"type": "compaction", "auto": True})
    t.model(START, "Two files; one was renamed.", finished(9), summary=True, mode="compaction")
    t.user("What is left?")
    t.model(START, tool("c3", "nothing"), finished(4))
    t.model(START, "Nothing.", finished(5))
    return t


def refs(store: Store, session: str = SESSION) -> dict[str, Any]:
    place = PLACE + session
    return {
        name.removeprefix(place).removeprefix("/"): oid
        for name, oid in store.refs.iterate(PLACE)
        if name == place or name.startswith(place + "/")
    }


def imported(folder: Path, talk: Talk) -> tuple[Store, dict[str, Any]]:
    store = Store.memory()
    import_paths(Writer(store), [talk.write(folder)])
    return store, refs(store, talk.info["id"])


def names_of(commit: Commit) -> list[str]:
    return [operation.name for operation in commit.operations]


def usages(line: list[Commit]) -> list[int]:
    return [o.fields["output_total"] for c in line for o in c.operations if o.name == "usage"]


FIRST = [
    "user: List the files, and say what each is for.",
    "assistant: reasoning | c1 | c2",
    f"tool: c1={LONG} | c2=no such folder: lib",
    "assistant: Two files: a parser, and what reads it.",
    "user: Rename one. | Called the Read tool.",
    "assistant: Renamed.",
]
LAST = [
    "user: What did we do so far?",
    "assistant: Two files; one was renamed.",
    "user: What is left?",
    "assistant: c3",
    "tool: c3=nothing",
    "assistant: Nothing.",
]


def test_a_lively_session(tmp_path: Path) -> None:
    talk = lively()
    check(Path(talk.write(tmp_path)), tmp_path / "checked")
    store, found = imported(tmp_path, talk)
    assert set(found) == {""}
    assert context(store, found[""]) == LAST
    line = commits(store, found[""])
    assert [names_of(c) for c in line] == [
        ["add"],
        ["add", "usage"],
        ["add", "usage"],
        ["add"],
        ["edit"],
        ["add", "usage"],
        ["replace", "usage"],
        ["add"],
        ["add", "usage"],
        ["add", "usage"],
    ]
    # The result is complete until it is cleared, before the next answer.
    assert context(store, line[4].parents[0]) == FIRST[:5]
    cleared = [*FIRST[:2], "tool: c1=[Old tool result content cleared] | c2=no such folder: lib"]
    assert context(store, line[6].parents[0]) == [*cleared, *FIRST[3:]]
    assert [c.meta["record"] for c in line[1:3]] == ["msg_002", "msg_002/2"]
    assert usages(line) == [30, 12, 3, 9, 4, 5]
    (usage,) = [o for o in line[1].operations if o.name == "usage"]
    assert usage.fields["input_total"] == 36
    assert [c.author for c in line[:2]] == ["opencode/user", f"opencode/{MODEL}"]
    assert store.refs.read(PLACE + SESSION) is not None
    parts = [
        part
        for operation in line[1].operations[:1]
        for message in operation.fields["messages"]
        for part in load_parts(message["parts"], store.objects.read)
    ]
    assert parts[0] == Reasoning("A look at the folder will do.", SIGNATURE)
    assert [p.is_error for p in parts if isinstance(p, ToolResult)] == [False, True]
    assert_valid(store, everywhere=True)


def test_a_summary_that_keeps_the_last_words(tmp_path: Path) -> None:
    t = Talk()
    t.user("One.")
    t.model("Two.")
    kept = t.user("Three.")
    t.model(START, tool("c1", "seen"), finished(3))
    t.user({"type": "compaction", "auto": False, "tail_start_id": kept})
    t.model("All was said.", summary=True)
    t.user("Four.")
    store, found = imported(tmp_path, t)
    assert context(store, found[""]) == [
        "user: What did we do so far?",
        "assistant: All was said.",
        "user: Three.",
        "assistant: c1",
        "tool: c1=seen",
        "user: Four.",
    ]
    (compaction,) = [c for c in commits(store, found[""]) if "replace" in names_of(c)]
    assert len(compaction.operations[0].fields["targets"]) == 2
    assert_valid(store)


@pytest.mark.parametrize(
    ("summary", "stays"),
    [
        ({"finish": None}, True),
        ({"error": {"name": "APIError", "data": {}}}, True),
        ({"parentID": "nobody", "finish": None}, False),
    ],
)
def test_summaries_that_failed_and_those_of_old(tmp_path: Path, summary: Map, stays: bool) -> None:
    t = Talk()
    t.user("One.")
    order = t.user({"type": "compaction", "auto": True})
    t.model("All was said.", **{"parentID": order, "summary": True, **summary})
    store, found = imported(tmp_path, t)
    said = context(store, found[""])
    assert ("user: One." in said) == stays
    assert ("user: What did we do so far?" in said) == stays
    failed = entries(store, found[""])[-1].priority == "skip"
    assert ("assistant: All was said." in said) != failed


def test_going_back(tmp_path: Path) -> None:
    """A reverted session ends where it would continue; the reverted part is a branch."""
    for place, left, stays in (
        ({"messageID": "msg_003"}, "msg_003", FIRST[:4]),
        ({"messageID": "msg_002"}, "msg_002", FIRST[:1]),
        ({"messageID": "msg_002", "partID": "prt_002_005"}, "msg_002-2", FIRST[:3]),
        ({"messageID": "msg_002", "partID": "prt_002_003"}, "msg_002", [*FIRST[:1]]),
        ({"messageID": "msg_001", "partID": "nothing"}, "msg_001", None),
        ({"messageID": "nobody"}, "", [*FIRST[:2], "", *FIRST[3:]]),
    ):
        t = lively()
        t.messages = t.messages[:4]
        t.info["revert"] = place
        store, found = imported(tmp_path, t)
        if stays is None:
            assert set(found) == {"rewinds/msg_001"}
            continue
        said = context(store, found[""])
        # What was cleared is so on the way that is left, and on the one that is not.
        cleared = "[Old tool result content cleared]"
        if "partID" in place and left == "msg_002":
            assert said == [FIRST[0], "assistant: reasoning | c1", f"tool: c1={cleared}"]
        else:
            assert [line for line in said if not line.startswith("tool")] == [
                line for line in stays if line and not line.startswith("tool")
            ]
            assert all(f"c1={cleared}" in line for line in said if line.startswith("tool"))
        assert len(found) == (2 if left else 1)
        assert import_paths(Writer(store), [str(tmp_path / "export.json")]).commits == 0
        assert_valid(store)


def test_what_of_a_message_a_model_is_shown(tmp_path: Path) -> None:
    plain = "data:text/plain;base64," + base64.b64encode("naïve\n".encode()).decode()
    t = Talk()
    t.user(
        {"type": "file", "mime": "image/png", "url": PNG, "filename": "a.png"},
        {"type": "file", "mime": "image/png", "url": "https://x.example/a.png"},
        {"type": "file", "mime": "image/png", "url": "file:///w/a.png"},
        {"type": "file", "mime": "application/pdf", "url": "data:application/pdf;base64,JVBERg=="},
        {"type": "file", "mime": "text/plain", "url": plain},
        {"type": "file", "mime": "text/plain", "url": "data:,a%20b"},
        {"type": "agent", "name": "explore"},
        {"type": "subtask", "prompt": "p", "description": "d", "agent": "a"},
        {"type": "unheard-of", "text": "x"},
    )
    t.user(
        text("The file holds:", synthetic=True),
        {"type": "file", "mime": "text/plain", "url": plain},
    )
    t.model(
        START,
        {"type": "reasoning", "text": "", "metadata": {"anthropic": {"redactedData": "QUJD"}}},
        {"type": "reasoning", "text": "plain", "metadata": {"x": 1, "openai": {"itemId": "rs_1"}}},
        {
            **tool("g1", "seen", attachments=[{"type": "file", "mime": "image/png", "url": PNG}]),
            "metadata": {"google": {"thoughtSignature": SIGNATURE}},
        },
        tool("t1", "done", name="task", metadata={"sessionId": "ses_child"}),
        tool("p1", status="pending", input={}, raw='{"at": "half'),
        tool("r1", status="running"),
        tool(
            "e1", status="error", error="aborted", metadata={"interrupted": True, "output": "half"}
        ),
        tool("j1", {"odd": 1}),
        {"type": "retry", "attempt": 1, "error": {}},
        {"type": "snapshot", "snapshot": "4b1d"},
        text("Done.", ignored=True),
    )
    t.model("Sorry", error={"name": "APIError", "data": {"message": "overloaded"}})
    t.model("Half", error={"name": "MessageAbortedError", "data": {"message": "aborted"}})
    store, found = imported(tmp_path, t)
    assert context(store, found[""])[1:] == [
        "user: The file holds:",
        "assistant: opaque | plain | reasoning | g1 | t1 | p1 | r1 | e1 | j1 | Done.".replace(
            "plain", "reasoning"
        ),
        'tool: g1=seen | t1=done | e1=half | j1={"odd":1}',
        "assistant: Half",
    ]
    every = entries(store, found[""])
    shown = [load_parts(entry.parts, store.objects.read) for entry in every]
    assert [type(part) for part in shown[0]] == [Image, Image, Opaque, Opaque, Text, Text, Text]
    assert [part.text for part in shown[0] if isinstance(part, Text)] == [
        "naïve\n",
        "a b",
        "The following tool was executed by the user",
    ]
    assert shown[2][0] == Opaque("anthropic", b'{"type":"redacted_thinking","data":"QUJD"}')
    assert shown[2][2:4] == (Reasoning("", SIGNATURE), ToolCall("g1", "read", '{"at":"g1"}'))
    calls = {part.id: part.arguments for part in shown[2] if isinstance(part, ToolCall)}
    assert calls["p1"] == '{"at": "half'
    pictured = shown[3][0]
    assert isinstance(pictured, ToolResult)
    assert isinstance(pictured.content[1], Image)
    assert [entry.priority == "skip" for entry in every] == [False] * 4 + [True, False]
    line = commits(store, found[""])
    assert [c.meta["agents"] for c in line if "agents" in c.meta] == [["ses_child"]]
    assert [c.author for c in line[:2]] == ["opencode/user", "opencode"]
    assert_valid(store)


def test_a_subagent_is_a_branch_of_its_session(tmp_path: Path) -> None:
    parent = Talk()
    parent.user("Scan everywhere.")
    parent.model(START, tool("t1", "found", name="task", metadata={"sessionId": "ses_child"}))
    child = Talk(id="ses_child", parentID=SESSION)
    child.user("You look in lib.")
    child.model("Found.")
    store = Store.memory()
    import_paths(Writer(store), [parent.write(tmp_path, "parent"), child.write(tmp_path, "child")])
    found = refs(store)
    assert set(found) == {"", "agents/ses_child"}
    assert context(store, found["agents/ses_child"]) == [
        "user: You look in lib.",
        "assistant: Found.",
    ]
    # It begins where it was called.
    first = commits(store, found["agents/ses_child"])
    assert first[0].meta["record"] == "msg_001"
    assert "remove" in names_of(first[1])


# --- the database -------------------------------------------------------------------------------

SCHEMA = """
CREATE TABLE `session` (
    `id` text PRIMARY KEY, `project_id` text NOT NULL, `parent_id` text, `slug` text NOT NULL,
    `directory` text NOT NULL, `title` text NOT NULL, `version` text NOT NULL, `share_url` text,
    `summary_additions` integer, `summary_deletions` integer, `summary_files` integer,
    `summary_diffs` text, `revert` text, `permission` text,
    `time_created` integer NOT NULL, `time_updated` integer NOT NULL,
    `time_compacting` integer, `time_archived` integer,
    CONSTRAINT `fk` CHECK (length(id) > 0)
);
CREATE TABLE `message` (
    `id` text PRIMARY KEY, `session_id` text NOT NULL, `time_created` integer NOT NULL,
    `time_updated` integer NOT NULL, `data` text NOT NULL
);
CREATE TABLE `part` (
    `id` text PRIMARY KEY, `message_id` text NOT NULL, `session_id` text NOT NULL,
    `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `data` text NOT NULL
);
CREATE TABLE `project` (`id` text PRIMARY KEY, `worktree` text);
CREATE INDEX `part_message_idx` ON `part` (`message_id`);
"""


def fill(base: sqlite3.Connection, *talks: Talk) -> None:
    for talk in talks:
        info = talk.info
        row = {
            "id": info["id"],
            "project_id": "proj_1",
            "parent_id": info.get("parentID"),
            "slug": info["slug"],
            "directory": info["directory"],
            "title": info["title"],
            "version": info["version"],
            "revert": packed(info.get("revert")),
            "time_created": info["time"]["created"],
            "time_updated": info["time"]["updated"],
        }
        insert(base, "session", row)
        for message in talk.messages:
            told = dict(message["info"])
            ids = {"id": told.pop("id"), "session_id": told.pop("sessionID")}
            times = {"time_created": told["time"]["created"], "time_updated": BEGIN}
            insert(base, "message", {**ids, **times, "data": packed(told)})
            # The database knows no order but that of ids.
            for part in reversed(message["parts"]):
                rest = dict(part)
                rest.pop("sessionID")
                own = {"id": rest.pop("id"), "message_id": rest.pop("messageID")}
                insert(base, "part", {**own, **ids_of(talk), **times, "data": packed(rest)})
    base.commit()


def ids_of(talk: Talk) -> Map:
    return {"session_id": talk.info["id"]}


def packed(value: Any) -> str | None:
    if value is None:
        return None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def insert(base: sqlite3.Connection, table: str, row: Map) -> None:
    marks = ", ".join("?" for _ in row)
    base.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))


def make_database(path: Path, *talks: Talk, journal: str = "delete") -> sqlite3.Connection:
    base = sqlite3.connect(path)
    base.execute(f"PRAGMA journal_mode = {journal}")
    base.executescript(SCHEMA)
    fill(base, *talks)
    return base


def children() -> tuple[Talk, Talk, Talk]:
    child = Talk(id="ses_child", parentID=SESSION, time={"created": BEGIN + 1, "updated": 0})
    child.user('You look in lib; it\'s a "folder".')
    other = Talk(id="ses_other", directory="/w/other")
    other.user("Elsewhere.")
    parent = lively()
    parent.messages[7]["parts"].append(
        {**tool("t1", "x", name="task", metadata={"sessionId": "ses_child"}), "id": "prt_008_009"}
    )
    for key, value in (("sessionID", SESSION), ("messageID", "msg_008")):
        parent.messages[7]["parts"][-1][key] = value
    return parent, child, other


def test_a_database_is_what_its_exports_are(tmp_path: Path) -> None:
    talks = children()
    path = tmp_path / "opencode.db"
    make_database(path, *talks).close()
    assert format_of(path.read_bytes()) is FORMAT
    before = sorted(os.listdir(tmp_path))
    store, exported = Store.memory(), Store.memory()
    report = import_paths(Writer(store), [str(path)])
    assert sorted(os.listdir(tmp_path)) == before, "nothing is put beside it"
    paths = [talk.write(tmp_path, str(number)) for number, talk in enumerate(talks)]
    import_paths(Writer(exported), paths)
    assert {file.path.removeprefix(str(path)) for file in report.files} == {
        f"#{SESSION}",
        "#ses_child",
        "#ses_other",
    }
    heads = dict(store.refs.iterate("refs/heads/"))
    assert set(heads) == set(dict(exported.refs.iterate("refs/heads/")))
    for name, oid in exported.refs.iterate("refs/heads/"):
        assert context(store, heads[name]) == context(exported, oid)
    # What is kept of it is the document that `opencode export` writes.
    for talk in talks:
        place = f"{FILES}opencode/{talk.info.get('parentID', talk.info['id'])}/"
        kept = [
            json.loads(b"".join(restore(oid, store.objects.read)))
            for name, oid in store.refs.iterate(place)
        ]
        assert talk.document in kept
    assert import_paths(Writer(store), [str(path)]).commits == 0
    assert not [f for f in fsck(store) if f.severity == "error"]
    assert_valid(store)


def test_one_session_of_a_database(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    make_database(path, *children()).close()
    store = Store.memory()
    (report,) = import_paths(Writer(store), [f"{path}#ses_other"]).files
    assert (report.session, report.messages) == ("ses_other", 1)
    for wrong in (f"{path}#ses_nobody", f"{path}#", f"{tmp_path}/no.db#{SESSION}"):
        with pytest.raises(UnreadableInputError, match="no such"):
            import_paths(Writer(store), [wrong])
    # A file may have such a name.
    odd = tmp_path / "a#b.json"
    odd.write_text(json.dumps(lively().document))
    assert import_paths(Writer(Store.memory()), [str(odd)]).messages > 0


def test_a_database_that_grows(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    talk = lively()
    whole, talk.messages = talk.messages, talk.messages[:3]
    base = make_database(path, talk, journal="wal")
    with Store.init(str(tmp_path / "project"), durability="fast") as store:
        import_paths(Writer(store), [str(path)])
        later = Talk()
        later.messages = whole[3:]
        base.execute("DELETE FROM session")
        fill(base, later)
        # The data is still in the write-ahead log, and the program is running.
        assert os.path.getsize(f"{path}-wal")
        import_paths(Writer(store), [str(path)])
        base.close()
        expected = Store.memory()
        import_paths(Writer(expected), [lively().write(tmp_path)])
        assert context(store, refs(store)[""]) == context(expected, refs(expected)[""])
        assert set(refs(store)) == {""}
        assert [file.skipped for file in import_paths(Writer(store), [str(path)]).files] == [
            "unchanged"
        ]


def test_an_export_whose_notes_changed_goes_on(tmp_path: Path) -> None:
    """The program annotates old messages, whose text stays the same."""
    talk = lively()
    whole, talk.messages = talk.messages, talk.messages[:3]
    with Store.init(str(tmp_path / "project"), durability="fast") as store:
        import_paths(Writer(store), [talk.write(tmp_path)])
        first = store.refs.read(PLACE + SESSION)
        talk.messages = whole
        whole[0]["info"]["summary"] = {"title": "Files", "diffs": []}
        whole[1]["info"]["cost"] = 0.25
        path = talk.write(tmp_path)
        (report,) = import_paths(Writer(store), [path]).files
        found = refs(store)
        assert set(found) == {""}
        assert context(store, found[""]) == LAST
        assert first in {c.parents[0] for c in commits(store, found[""]) if c.parents}
        assert (report.commits, report.commits_present) == (5, 5)
        kept = [b"".join(restore(oid, store.objects.read)) for _, oid in store.refs.iterate(FILES)]
        assert Path(path).read_bytes() in kept
        assert not [f for f in fsck(store) if f.severity == "error"]


def test_what_is_no_database_of_opencode(tmp_path: Path) -> None:
    """Nothing in one that a stranger made is run."""
    bad = tmp_path / "bad.db"

    def refused(script: str) -> None:
        bad.unlink(missing_ok=True)
        base = sqlite3.connect(bad)
        base.executescript(script)
        base.close()
        store = Store.memory()
        with pytest.raises(UnreadableInputError):
            import_paths(Writer(store), [str(bad)])
        assert not dict(store.refs.iterate())

    refused("CREATE TABLE notes (id)")
    refused("CREATE TABLE session (id); CREATE TABLE message (id)")
    refused(
        "CREATE TABLE message (id); CREATE TABLE part (id);"
        "CREATE VIEW session AS SELECT hex(randomblob(100)) AS id"
    )
    refused(
        "CREATE TABLE message (id); CREATE TABLE part (id); CREATE VIEW session AS WITH RECURSIVE "
        "n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n"
    )
    refused(
        "CREATE TABLE secret (id); CREATE TABLE message (id); CREATE TABLE part (id);"
        "CREATE VIEW session AS SELECT * FROM secret"
    )
    refused(
        "CREATE TABLE message (id); CREATE TABLE part (id);"
        "CREATE TABLE session (id, more AS (hex(zeroblob(9)))); INSERT INTO session VALUES ('s')"
    )
    make_database(bad.with_name("good.db"), lively()).close()
    data = bytearray((tmp_path / "good.db").read_bytes())
    for start in range(100, len(data), 1000):
        data[start : start + 60] = b"\xff" * 60
    bad.write_bytes(data)
    with pytest.raises(UnreadableInputError):
        import_paths(Writer(Store.memory()), [str(bad)])
    bad.write_bytes(b"SQLite format 3\0")
    with pytest.raises(UnreadableInputError, match=r"bad\.db"):
        import_paths(Writer(Store.memory()), [str(bad)])
    # In a folder it is left.
    (tmp_path / "good.db").unlink()
    (report,) = import_paths(Writer(Store.memory()), [str(tmp_path)]).files
    assert report.skipped == "unreadable"
    with (
        bad.open("rb") as file,
        pytest.raises(UnreadableInputError, match="cannot be imported from standard input"),
    ):
        import_paths(Writer(Store.memory()), ["-"], stdin=file)


def test_the_work_on_a_database_has_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "opencode.db"
    make_database(path, lively()).close()
    monkeypatch.setattr(sqlite_input, "MAXIMUM_STEPS", 20)
    monkeypatch.setattr(sqlite_input, "STEPS_AT_ONCE", 10)
    with pytest.raises(UnreadableInputError):
        import_paths(Writer(Store.memory()), [str(path)])


def test_odd_values_in_a_database(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    base = sqlite3.connect(path)
    base.executescript(
        "CREATE TABLE session (id, directory, time_created, title, revert, summary_files, extra);"
        "CREATE TABLE message (id, session_id, data);"
        "CREATE TABLE part (id, message_id, data);"
    )
    odd: list[Any] = [None, 5, 2.5, float("inf"), b"\xff\x00", "\ud83d".encode("utf-8", "replace")]
    odd += ["not json", "[1]", '{"role": "user"}', '{"role": "assistant", "x": 1e999}', "[" * 9999]
    for number, value in enumerate(odd):
        base.execute(
            "INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?)", (f"ses_{number}", *[value] * 6)
        )
        base.execute("INSERT INTO message VALUES (?, ?, ?)", (f"m{number}", f"ses_{number}", value))
        base.execute(
            "INSERT INTO message VALUES (?, ?, ?)", (value, f"ses_{number}", '{"role":"user"}')
        )
        base.execute("INSERT INTO part VALUES (?, ?, ?)", (f"p{number}", f"m{number}", value))
        base.execute(
            "INSERT INTO part VALUES (?, ?, ?)", (value, value, '{"type":"text","text":"Hello."}')
        )
    base.execute("INSERT INTO session VALUES (NULL, 1, 2, 3, 4, 5, 6)")
    base.commit()
    base.close()
    store = Store.memory()
    report = import_paths(Writer(store), [str(path)])
    assert len(report.files) == len(odd)
    assert import_paths(Writer(store), [str(path)]).commits == 0
    assert not [f for f in fsck(store) if f.severity == "error"]
    assert_valid(store)


def test_a_session_with_an_odd_id(tmp_path: Path) -> None:
    """A session is identified by the path of its file and by this id."""
    path = tmp_path / "opencode.db"
    talk = Talk(id="ses_\0/../x")
    talk.user("Hello.")
    make_database(path, talk).close()
    assert import_paths(Writer(Store.memory()), [str(path)]).messages == 1


def test_where_sessions_are_found(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    data = tmp_path / "data" / "opencode"
    data.mkdir(parents=True)
    inner = str(project / "packages")
    here, below = Talk(directory=str(project)), Talk(id="ses_below", directory=inner)
    other, channel = Talk(id="ses_other"), Talk(id="ses_beta", directory=str(project))
    for talk in (here, below, other, channel):
        talk.user("Hello.")
    make_database(data / "opencode.db", here, below, other).close()
    make_database(data / "opencode-beta.db", channel).close()
    make_database(data / "notes.db", here).close()
    (data / "opencode-bad.db").write_bytes(b"SQLite format 3\0" * 9)
    environment = Environment(data_dir=str(tmp_path / "data"))
    found = FORMAT.histories(environment, str(project), Disk())
    # Messages that cannot be read are listed too, so that the report says why.
    assert [path.removeprefix(str(data)) for path in found] == [
        "/opencode-bad.db",
        "/opencode-beta.db#ses_beta",
        "/opencode.db#ses_3f0c2a541111",
        "/opencode.db#ses_below",
    ]
    assert (
        import_paths(Writer(Store.memory()), project_histories(environment, str(project))).messages
        == 3
    )
    named = Environment(opencode_database=str(data / "opencode-beta.db"))
    assert len(FORMAT.histories(named, str(project), Disk())) == 1
    assert FORMAT.histories(Environment(), str(project), Disk()) == []


# --- dumps --------------------------------------------------------------------------------------


def dump(folder: Path, *talks: Talk) -> str:
    base = make_database(folder / "dumped.db", *talks)
    text = "\n".join(base.iterdump()) + "\n"
    base.close()
    (folder / "dumped.db").unlink()
    path = folder / "opencode.sql"
    path.write_text(text)
    return str(path)


def test_a_dump_is_what_its_export_is(tmp_path: Path) -> None:
    path = dump(tmp_path, lively())
    check(Path(path), tmp_path / "checked")
    store, exported = Store.memory(), Store.memory()
    (report,) = import_paths(Writer(store), [path]).files
    import_paths(Writer(exported), [lively().write(tmp_path)])
    line, other = (commits(s, refs(s)[""]) for s in (store, exported))
    assert [(names_of(c), c.author, c.time, c.meta["record"]) for c in line] == [
        (names_of(c), c.author, c.time, c.meta["record"]) for c in other
    ]
    for mine, theirs in zip(line, other, strict=True):
        assert context_of(store, mine) == context_of(exported, theirs)
    assert usages(line) == usages(other)
    assert report.records["part", "message"] == 12
    for each, name in ((store, f"{SESSION}.sql"), (exported, f"{SESSION}.json")):
        assert transcripts(each).export_original(SESSION).file_name == name
    assert transcripts(store).export_original(SESSION).data == Path(path).read_bytes()
    # What messages hold is not held beside them again.
    source = store.objects.read(line[1].meta["source"])
    assert LONG.encode() not in source
    assert SIGNATURE.encode() not in source


def context_of(store: Store, commit: Commit) -> list[str]:
    return context(store, commit.parents[0]) if commit.parents else []


def test_a_dump_of_several_sessions(tmp_path: Path) -> None:
    parent, child, other = children()
    other.info["revert"] = {"messageID": "msg_other002"}
    other.model("There.")
    path = dump(tmp_path, parent, child, other)
    check(Path(path), tmp_path / "checked")
    store = Store.memory()
    (report,) = import_paths(Writer(store), [path]).files
    assert report.session == "opencode"
    found = refs(store, "opencode")
    assert set(found) == {
        f"conversations/{SESSION}",
        "conversations/ses_child",
        "conversations/ses_other",
        "conversations/ses_other/rewinds/msg_othe",
    }
    assert context(store, found["conversations/ses_other"]) == ["user: Elsewhere."]
    assert context(store, found[f"conversations/{SESSION}"])[:2] == LAST[:2]


PLAIN = "CREATE TABLE message (id, session_id, data); CREATE TABLE part (id, message_id, data);"


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("INSERT INTO part VALUES (1, 'it''s', NULL);", [(1, "it's", None)]),
        ("insert or replace into \"part\" (data, id, message_id) values ('x', -2.5, x'00ff')", 1),
        ("INSERT INTO main.part VALUES (1, 2, 3), (4, 5, 6) , (7,8,9);", 3),
        ("INSERT INTO part VALUES (1, replace('a\\nb', '\\n', char(10)), unistr('\\u0041'));", 1),
        ("/* ; ' */ -- it's\nINSERT INTO part VALUES (1, 2, ';');", [(1, 2, ";")]),
        ("CREATE TRIGGER t AFTER INSERT ON part BEGIN INSERT INTO part VALUES (1,2,3); END;", 0),
        ("INSERT INTO other VALUES (1, 2, 3);", 0),
        ("INSERT INTO part SELECT 1, 2, 3;", ["not-sql"]),
        ("INSERT INTO part VALUES (1, load_extension('x'), 3);", ["not-sql"]),
        ("INSERT INTO part VALUES (1, 2), (1, 2, 3);", ["not-sql", None]),
        ("INSERT INTO part VALUES (1, 'open", ["cut-short"]),
        ("INSERT INTO part VALUES (1, 2, 3); /* open", [None, "cut-short"]),
        ("INSERT INTO part VALUES (1, -'x', 3), (1, (2), 3), (1, 2 3);", ["not-sql"] * 3),
        ("INSERT INTO part VALUES (" + "replace(" * 5000, ["nested-too-deep"]),
        ("INSERT INTO", ["not-sql"]),
        ("INSERT INTO part VALUES", ["not-sql"]),
        ("DELETE FROM part; DROP TABLE part;", 0),
    ],
)
def test_sql_is_read_and_never_run(sql: str, rows: Any) -> None:
    data = f"{PLAIN}\n{sql}".encode()
    found = list(rows_of(InputLine(1, 0, data, len(data), True, whole=True), ("message", "part")))
    if isinstance(rows, int):
        assert len(found) == rows
        assert not any(isinstance(each, Skip) for each in found)
    elif rows and isinstance(rows[0], tuple):
        assert [tuple(r.data[ROW].values()) for r in found if not isinstance(r, Skip)] == rows
    else:
        assert [each.reason if isinstance(each, Skip) else None for each in found] == rows
    for each in found:
        if not isinstance(each, Skip):
            assert data[each.offset :][: each.length] == each.raw
            assert (each.raw[:1], each.raw[-1:]) == (b"(", b")")


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "INSERT INTO part VALUES",
                "(",
                ")",
                ",",
                "'",
                "''",
                "x'",
                '"',
                "[",
                "/*",
                "*/",
                "--",
                "\n",
                ";",
                "1",
                "-",
                "NULL",
                "replace",
                "char",
                "unistr",
                "'\\u0041'",
                "part",
                "CREATE TABLE part",
                "CREATE TRIGGER",
                "END",
                "\x00",
                "é",
                ".",
            ]
        ),
        max_size=25,
    )
)
def test_no_sql_raises(pieces: list[str]) -> None:
    data = " ".join(["CREATE TABLE part (id, x);", *pieces]).encode()
    found = list(rows_of(InputLine(1, 0, data, len(data), True, whole=True), ("part",)))
    for each in found:
        if not isinstance(each, Skip):
            assert data[each.offset :][: each.length] == each.raw


# --- odd shapes ---------------------------------------------------------------------------------


def test_what_is_no_session_of_opencode() -> None:
    for other in (
        b"",
        b'{"info": {"model_stats": {}}, "messages": [{"role": "user", "content": "x"}]}',
        b'{"messages": []}',
        b"CREATE TABLE notes (id);\nINSERT INTO notes VALUES (1);\n",
        b"insert into part of the text",
        b"SQLite",
    ):
        assert not FORMAT.sniff(other), other


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_odd_values_anywhere_are_no_trouble(data: st.DataObject) -> None:
    talk = lively()
    talk.messages = data.draw(anything_in(talk.messages))
    if data.draw(st.booleans()):
        talk.info["revert"] = data.draw(
            st.fixed_dictionaries({"messageID": st.sampled_from(["msg_002", "msg_004", 5])})
            | ANYTHING
        )
    if data.draw(st.booleans()):
        place = data.draw(st.sampled_from(list(INFO)))
        talk.info = {**talk.info, place: data.draw(ANYTHING)}
    store = Store.memory()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "odd.json"
        path.write_text(json.dumps(talk.document))
        (report,) = import_paths(Writer(store), [str(path)], format="opencode").files
        assert import_paths(Writer(store), [str(path)], format="opencode").commits == 0
    assert sum(report.records.values()) == len(talk.messages)
    assert not [f for f in fsck(store) if f.severity == "error"]
    assert_valid(store)


@pytest.mark.parametrize("cut", range(3, 3000, 233))
def test_an_export_that_was_cut_short(tmp_path: Path, cut: int) -> None:
    data = Path(lively().write(tmp_path)).read_bytes()
    (tmp_path / "export.json").write_bytes(data[:-cut])
    (report,) = import_paths(Writer(Store.memory()), [str(tmp_path / "export.json")]).files
    assert [skip.reason for skip in report.skips][-1:] == ["cut-short"]
    assert report.messages > 0


@pytest.mark.parametrize("path", each_real_transcript("opencode"))
def test_real_dumps(path: Path) -> None:
    """Against the rows that SQLite itself makes of it."""
    base = sqlite3.connect(":memory:")
    base.executescript(path.read_text())
    texts = [
        json.loads(data)["text"]
        for (data,) in base.execute("SELECT data FROM part")
        if json.loads(data)["type"] == "text"
    ]
    (session,) = base.execute("SELECT id FROM session").fetchone()
    store = Store.memory()
    (report,) = import_paths(Writer(store), [str(path)]).files
    assert report.session == session
    said = context(store, refs(store, session)[""])
    assert sorted(line.partition(": ")[2] for line in said) == sorted(texts)
    (kept,) = [oid for _, oid in store.refs.iterate(FILES)]
    assert b"".join(restore(kept, store.objects.read)) == path.read_bytes()
    assert not report.skips
    assert_valid(store)

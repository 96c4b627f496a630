"""Chats of Gemini CLI: rewritten messages, rewinds, snapshots, repeated records."""

from __future__ import annotations

import hashlib
import json
import os
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.importers.support.hostile import anything_in
from tests.importers.support.sound import assert_valid
from tests.importers.support.states import commits, context, visible
from tests.importers.support.transcripts import each_real_transcript
from tests.importers.test_transcripts import check
from tests.support.examples import examples
from trace_store.base.environment import Environment
from trace_store.disk.files import Disk
from trace_store.importers.formats.gemini import FORMAT
from trace_store.importers.import_paths import import_paths
from trace_store.importers.registry import format_of
from trace_store.maintenance.fsck import fsck
from trace_store.objects.commit import Commit
from trace_store.objects.message import load_parts
from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolResult
from trace_store.store.store import Store
from trace_store.writer import Writer

PLACE = "refs/heads/sessions/gemini/"
SESSION = "7d3f2c1e-1111-4222-8333-944455556666"
MODEL = "gemini-2.5-pro"
PNG = "iVBORw0KGgo="
Record = dict[str, Any]

HEADER: Record = {
    "sessionId": SESSION,
    "projectHash": "ab" * 32,
    "startTime": "2026-08-01T10:00:00.000Z",
    "lastUpdated": "2026-08-01T10:00:00.000Z",
    "kind": "main",
}


def user(id_: str, content: Any, **more: Any) -> Record:
    return {"id": id_, "timestamp": at(id_), "type": "user", "content": content, **more}


def model(id_: str, content: Any = "", **more: Any) -> Record:
    said = {"id": id_, "timestamp": at(id_), "type": "gemini", "content": content}
    return {**said, "model": MODEL, **more}


def at(id_: str) -> str:
    return f"2026-08-01T10:{sum(id_.encode()) % 60:02d}:00.000Z"


def call(id_: str, output: Any = None, *, name: str = "look", **more: Any) -> Record:
    result = None if output is None else [answer(id_, output, name=name)]
    noted = {"id": id_, "name": name, "args": {"at": id_}, "result": result}
    return {**noted, "status": "success" if result else "executing", **more}


def answer(id_: str, output: Any, *, name: str = "look") -> Record:
    response = output if isinstance(output, dict) else {"output": output}
    return {"functionResponse": {"id": id_, "name": name, "response": response}}


def thought(subject: str) -> Record:
    return {"subject": subject, "description": "As I see it.", "timestamp": at("t")}


def tokens(output: int, **more: int) -> Record:
    shape = {"input": 100, "output": output, "cached": 40, "thoughts": 5, "tool": 0, "total": 0}
    return {**shape, **more}


CONTEXT = user("ctx", [{"text": "<session_context>\nThis is Gemini CLI.\n</session_context>"}])
LIVELY: list[Record] = [
    HEADER,
    {"$set": {"messages": [CONTEXT], "lastUpdated": at("x")}},
    user("u1", [{"text": "List the files, all of them, and say what each is for, please."}]),
    model("g1", thoughts=[thought("Plan")]),
    {"$set": {"lastUpdated": at("y")}},
    model("g1", thoughts=[thought("Plan")], tokens=tokens(30)),
    model("g1", thoughts=[thought("Plan")], tokens=tokens(30), toolCalls=[call("c1")]),
    model(
        "g1",
        thoughts=[thought("Plan")],
        tokens=tokens(30),
        toolCalls=[call("c1", "parser.py, the one that splits at newlines, and reader.py")],
    ),
    user("u2", [answer("c1", "parser.py, the one that splits at newlines, and reader.py")]),
    model("g2", "Two files: a parser, and what reads it."),
    model("g2", "Two files: a parser, and what reads it.", tokens=tokens(12)),
    {"id": "i1", "timestamp": at("i"), "type": "info", "content": "An update is available."},
    user("u3", "Rename one."),
    model("g3", "Renamed."),
    {"$rewindTo": "u3"},
    user("u4", "No, keep both."),
    model("g4", "Kept."),
]


def lines(records: list[Record]) -> bytes:
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records).encode()


def write(folder: Path, records: list[Record], name: str = "session") -> str:
    path = folder / f"{name}.jsonl"
    path.write_bytes(lines(records))
    return str(path)


def imported(folder: Path, records: list[Record]) -> tuple[Store, dict[str, Any]]:
    store = Store.memory()
    import_paths(Writer(store), [write(folder, records)], format="gemini")
    return store, refs(store)


def refs(store: Store) -> dict[str, Any]:
    place = PLACE + SESSION
    return {
        name.removeprefix(place).removeprefix("/"): oid
        for name, oid in store.refs.iterate(PLACE)
        if name.startswith(place)
    }


def names_of(commit: Commit) -> list[str]:
    return [operation.name for operation in commit.operations]


def usages(line: list[Commit]) -> list[int]:
    return [o.fields["output_total"] for c in line for o in c.operations if o.name == "usage"]


SAID = [
    "user: <session_context>\nThis is Gemini CLI.\n</session_context>",
    "user: List the files, all of them, and say what each is for, please.",
    "assistant: reasoning | c1",
    "tool: c1=parser.py, the one that splits at newlines, and reader.py",
    "assistant: Two files: a parser, and what reads it.",
]


def test_a_lively_chat(tmp_path: Path) -> None:
    path = write(tmp_path, LIVELY)
    check(Path(path), tmp_path / "checked")
    store, found = imported(tmp_path, LIVELY)
    assert set(found) == {"", "rewinds/u3"}
    assert context(store, found[""]) == [*SAID, "user: No, keep both.", "assistant: Kept."]
    assert context(store, found["rewinds/u3"]) == [
        *SAID,
        "user: Rename one.",
        "assistant: Renamed.",
    ]
    line = commits(store, found[""])
    # A call, its result and its usage are in one record, so they are one commit.
    assert [names_of(c) for c in line] == [
        ["add"],
        ["add"],
        ["add", "usage"],
        ["add", "usage"],
        ["add"],
        ["add"],
    ]
    assert usages(line) == [35, 17]
    assert [c.author for c in line[:3]] == ["gemini", "gemini/user", f"gemini/{MODEL}"]
    assert_valid(store, everywhere=True)
    (report,) = import_paths(Writer(Store.memory()), [path]).files
    assert sum(report.records.values()) == len(LIVELY)
    assert not report.skips


def test_a_document_says_what_lines_say(tmp_path: Path) -> None:
    ids = {each["id"]: each for each in LIVELY if "id" in each and each["id"] not in ("u3", "g3")}
    document = {**HEADER, "messages": [CONTEXT, *ids.values()], "summary": "Files."}
    stores = []
    for indent in (2, None):
        path = tmp_path / f"old-{indent}.json"
        path.write_text(json.dumps(document, indent=indent))
        check(path, tmp_path / f"checked-{indent}")
        stores.append(Store.memory())
        import_paths(Writer(stores[-1]), [str(path)])
    store, found = imported(tmp_path, LIVELY)
    for each in stores:
        assert context(each, refs(each)[""]) == context(store, found[""])


@pytest.mark.parametrize("seed", range(6))
def test_a_grown_chat_makes_what_one_import_makes(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    records = [*LIVELY, SNAPSHOT, user("u9", "And now?"), model("g9", "Now all is well.")]
    expected = Store.memory()
    import_paths(Writer(expected), [write(tmp_path, records, "whole")])
    with Store.init(str(tmp_path / "project"), durability="fast") as store:
        data = lines(records)
        path = tmp_path / "growing.jsonl"
        for cut in sorted(chosen.sample(range(len(lines(records[:3])), len(data)), 7)):
            path.write_bytes(data[:cut])
            import_paths(Writer(store), [str(path)])
        path.write_bytes(data)
        import_paths(Writer(store), [str(path)])
        assert refs(store) == refs(expected)
        assert import_paths(Writer(store), [str(path)]).files[0].skipped == "unchanged"


# Written by the program after a compaction: new messages, and the last ones unchanged.
SNAPSHOT: Record = {
    "$set": {
        "messages": [
            CONTEXT,
            user("s1", [{"text": "<state_snapshot>Two files.</state_snapshot>"}]),
            model("s2", [{"text": "Got it. Thanks for the additional context!"}]),
            user("u4", [{"text": "No, keep both."}]),
            model("g4", [{"text": "Kept."}]),
        ]
    }
}


def test_a_snapshot_that_sums_up(tmp_path: Path) -> None:
    records = [*LIVELY, SNAPSHOT, user("u5", "What is left?"), model("g5", "Nothing.")]
    store, found = imported(tmp_path, records)
    assert set(found) == {"", "rewinds/u3"}
    summed = [
        SAID[0],
        "user: <state_snapshot>Two files.</state_snapshot>",
        "assistant: Got it. Thanks for the additional context!",
        "user: No, keep both.",
        "assistant: Kept.",
    ]
    assert context(store, found[""]) == [*summed, "user: What is left?", "assistant: Nothing."]
    (compaction,) = [c for c in commits(store, found[""]) if names_of(c) == ["replace"]]
    assert compaction.operations[0].fields["reason"] == "compaction"
    assert len(compaction.operations[0].fields["targets"]) == 6
    assert_valid(store, everywhere=True)

    # A rewind past it leads to the program's state at that point.
    for id_, left in (("u5", 5), ("g4", 4), ("u4", 3), ("s2", 2), ("s1", 1), ("ctx", 0)):
        store, found = imported(tmp_path, [*records, {"$rewindTo": id_}, user("u6", "Again.")])
        assert context(store, found[""]) == [*summed[:left], "user: Again."]


def test_a_snapshot_of_what_is_there_changes_nothing(tmp_path: Path) -> None:
    before, _ = imported(tmp_path, LIVELY)
    ids = {each["id"]: each for each in LIVELY if "id" in each and each["id"] not in ("u3", "g3")}
    # The program writes content as parts then, calls among them, and nothing that is for the user only.
    whole = [CONTEXT]
    for each in ids.values():
        content = each["content"]
        parts = [{"text": content}] if content and isinstance(content, str) else content or []
        for noted in each.get("toolCalls", ()):
            called = {"name": noted["name"], "args": noted["args"]}
            parts = [{"text": "**Plan** As I see it.", "thought": True}, *parts]
            parts.append({"functionCall": called})
        if each["type"] != "info":
            whole.append({**each, "content": parts})
    same = {"$set": {"messages": whole}}
    store, found = imported(tmp_path, [*LIVELY, same, same, user("u5", "More.")])
    line = commits(store, found[""])
    assert context(store, line[-1].parents[0]) == context(before, refs(before)[""])
    assert [c.meta["record"] for c in line][-2:] == ["g4", "u5"]
    assert set(found) == {"", "rewinds/u3"}


def test_a_snapshot_after_a_failure_takes_the_prompt_out(tmp_path: Path) -> None:
    back = {"$set": {"messages": [CONTEXT]}}
    store, found = imported(tmp_path, [*LIVELY[:3], back])
    assert context(store, found[""]) == SAID[:1]
    assert context(store, found["rewinds/u1"]) == SAID[:2]
    # The same prompt under the same id is another turn.
    store, found = imported(
        tmp_path, [*LIVELY[:3], back, LIVELY[2], model("g1", "Gladly."), back, LIVELY[2]]
    )
    assert context(store, found[""]) == SAID[:2]
    assert len(found) == 3


def test_a_snapshot_with_shortened_results(tmp_path: Path) -> None:
    cut = "<tool_output_masked>first line</tool_output_masked>"
    shortened = [
        CONTEXT,
        LIVELY[2],
        # Each call of a turn holds the whole turn then.
        model(
            "g1",
            thoughts=[thought("Plan")],
            toolCalls=[{**call("c1"), "result": [answer("c1", cut)]}],
        ),
        user("u2", [answer("c1", cut)]),
        *(each for each in LIVELY if each.get("id") in ("u4", "g4")),
    ]
    shortened.insert(4, LIVELY[9])
    store, found = imported(tmp_path, [*LIVELY, {"$set": {"messages": shortened}}])
    assert context(store, found[""])[3] == f"tool: c1={cut}"
    assert len(context(store, found[""])) == 7
    line = commits(store, found[""])
    assert names_of(line[-1]) == ["edit", "edit"]
    assert context(store, line[-1].parents[0])[3] == SAID[3]


def test_an_insertion_and_a_removal(tmp_path: Path) -> None:
    a, b, c = user("a", "One."), model("b", "Two."), user("c", "Three.")
    more = model("m", "Between.")
    for now in ([a, more, b, c], [a, c], [b, c], [c, b, a], [], [more], [a, more]):
        store, found = imported(tmp_path, [HEADER, a, b, c, {"$set": {"messages": now}}])
        said = context(store, found[""]) if "" in found else []
        assert [line.partition(": ")[2] for line in said] == [each["content"] for each in now]
        assert not [f for f in fsck(store) if f.severity == "error"]


def test_a_rewind_to_nobody_knows_what_takes_out_all(tmp_path: Path) -> None:
    records = [*LIVELY, {"$rewindTo": "nobody"}, user("u5", "From the beginning.")]
    store, found = imported(tmp_path, records)
    assert context(store, found[""]) == ["user: From the beginning."]
    assert context(store, found["rewinds/ctx"])[-1] == "assistant: Kept."
    store, found = imported(tmp_path, [HEADER, {"$rewindTo": "nobody"}, user("u5", "Hello.")])
    assert context(store, found[""]) == ["user: Hello."]


def test_a_message_that_is_written_again(tmp_path: Path) -> None:
    records = [
        HEADER,
        user("u1", "Fix it."),
        model("g1"),
        model("g1", "Fixing.", toolCalls=[call("c1"), call("c2", "done")]),
        user("u2", "Faster!"),
        # Its round is over, so its additions come at the end.
        model("g1", "Fixing now.", toolCalls=[call("c1", "done as well"), call("c2", "done")]),
        model("g2", "Fixed."),
    ]
    store, found = imported(tmp_path, records)
    assert context(store, found[""]) == [
        "user: Fix it.",
        "assistant: Fixing now. | c1 | c2",
        "tool: c1=done as well | c2=done",
        "user: Faster!",
        "assistant: Fixed.",
    ]
    assert_valid(store)


def test_where_calls_and_results_are_told(tmp_path: Path) -> None:
    """Beside the content, in it, in a message behind; with and without ids."""
    signature = "c2lnbmF0dXJl" * 4
    picture = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    records = [
        HEADER,
        user("u1", ["Scan at", {"text": "this:"}, picture]),
        model(
            "g1",
            [
                {"text": "Thinking aloud.", "thought": True},
                {"text": "Looking."},
                {
                    "functionCall": {"name": "look", "args": {"at": "c1"}},
                    "thoughtSignature": signature,
                },
                {"functionCall": {"id": "c9", "name": "other", "args": {}}},
                {"functionCall": {"name": "nameless", "args": {"deep": [1, None]}}},
            ],
            thoughts=[thought("The same again")],
            toolCalls=[
                call("c1", agentId="helper-1"),
                call("c2", {"error": "no such file"}, status="error"),
                {**call("c3"), "result": "plain text"},
                {**call("c4"), "result": {**answer("c4", {"lines": [1, 2]})}},
                {**call("c5"), "result": [answer("c6", "six"), answer("c5", "five"), picture]},
                call("c6", status="cancelled"),
            ],
        ),
        user("u2", [answer("c1", "seen"), picture, answer("c9", "nine"), {"text": "And hurry."}]),
        user("u3", [answer("c2", "again")]),
        {"id": "i1", "timestamp": at("i"), "type": "info", "content": [picture]},
    ]
    store, found = imported(tmp_path, records)
    said = context(store, found[""])
    assert said == [
        "user: Scan at | this: | image",
        "assistant: reasoning | Looking. | reasoning | c1 | c9 | g1-8 | c2 | c3 | c4 | c5 | c6",
        'tool: c2=no such file | c3=plain text | c4={"lines":[1,2]} | c5=five',
        "tool: c1=seen | c9=nine",
        "user: And hurry.",
        "user: image",
    ]
    entries = visible(store, found[""])
    first = load_parts(entries[1].parts, store.objects.read)
    assert first[:3] == (
        Reasoning("Thinking aloud."),
        Text("Looking."),
        Reasoning("", signature),
    )
    results = load_parts(entries[2].parts, store.objects.read)
    assert [r.is_error for r in results if isinstance(r, ToolResult)] == [True, False, False, False]
    assert isinstance(results[3], ToolResult)
    assert [type(part) for part in results[3].content] == [Text, Image]
    assert commits(store, found[""])[1].meta["agents"] == ["helper-1"]
    assert_valid(store)


def test_numbers_that_are_all_nothing_are_no_usage(tmp_path: Path) -> None:
    nothing = dict.fromkeys(("input", "output", "cached", "thoughts", "tool", "total"), 0)
    records = [
        HEADER,
        user("u1", "Hello."),
        model("g1", "Hello.", tokens=nothing),
        model("g2", "Hello?", tokens=None),
        model("g3", "Hello!", tokens=tokens(7, tool=3)),
    ]
    store, found = imported(tmp_path, records)
    (usage,) = [o for c in commits(store, found[""]) for o in c.operations if o.name == "usage"]
    assert usage.fields == {
        "input_total": 103,
        "cache_read": 40,
        "cache_write": 0,
        "output_total": 12,
        "reasoning": 5,
        "source": "gemini-cli",
        "model": MODEL,
    }


def test_a_chat_without_words_adds_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, [HEADER, {"$set": {"summary": "nothing"}}])
    store = Store.memory()
    (report,) = import_paths(Writer(store), [path]).files
    assert (report.format, report.commits, report.messages) == ("gemini", 0, 0)
    assert [skip.reason for skip in report.skips] == ["no-messages", "no-messages"]
    assert not dict(store.refs.iterate())


def test_whose_chat_it_is(tmp_path: Path) -> None:
    """From the header, from a change of it, from the file's name; of a subagent where the chat tells its session."""
    told = [user("u1", "Hello."), model("g1", "Hello.")]
    store = Store.memory()
    write(tmp_path, told, "nameless")
    write(tmp_path, [{"$set": {"sessionId": "later"}}, *told], "b")
    own = {**HEADER, "kind": "subagent", "sessionId": "own"}
    write(tmp_path, [own, *told], "own")
    write(tmp_path, [{**own, "sessionId": "x/y", "parentSessionId": "parent"}, *told], "c")
    write(tmp_path, [HEADER, *told, {"$set": {"sessionId": "too-late"}}], "d")
    import_paths(Writer(store), [str(tmp_path)])
    found = {name.removeprefix(PLACE) for name, _ in store.refs.iterate(PLACE)}
    assert {"nameless", "later", "own", SESSION} <= found
    (helper,) = found - {"nameless", "later", "own", SESSION}
    assert helper.startswith("parent/agents/x-y-")


def test_what_is_no_chat_of_gemini(tmp_path: Path) -> None:
    assert format_of(lines(LIVELY)) is FORMAT
    assert FORMAT.sniff(lines([user("u1", "Hello."), model("g1", "Hello.")]))
    for other in (
        b"",
        b"{}",
        b'{"sessionId": 5}\n',
        lines([{"type": "user", "uuid": "1", "sessionId": "s", "message": {"content": "x"}}]),
        lines([{"id": "x", "type": "user", "content": "x", "timestamp": "t"}]),
        lines([{"id": "x", "timestamp": "2026"}, {"record_type": "state"}]),
        json.dumps({"sessionId": "s", "messages": [{"role": "user", "content": "x"}]}).encode(),
        b'{"messages": [{"role": "user", "content": "\\"projectHash\\""}]}',
    ):
        assert not FORMAT.sniff(other)


def test_where_chats_are_found(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    root = tmp_path / "home" / ".gemini" / "tmp"
    hashed = hashlib.sha256(os.fsencode(project)).hexdigest()

    def chat(folder: str, name: str, owner: str = "") -> str:
        path = root / folder / "chats" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lines(LIVELY))
        if owner:
            (root / folder / ".project_root").write_text(owner + "\n")
        return str(path)

    wanted = [
        chat(hashed, "session-1.json"),
        chat("project", "session-2.jsonl", str(project)),
        chat("project", os.path.join("parent-id", "child.jsonl")),
        chat("named", "session-3.jsonl"),
    ]
    chat("project-1", "session-4.jsonl", str(tmp_path / "elsewhere"))
    chat("other", "session-5.jsonl")
    chat(hashed, "session-6.json")
    wanted.append(chat(hashed, "session-6.jsonl"))
    listed = {"projects": {str(project): "named", str(tmp_path): "other", "x": 5}}
    (root.parent / "projects.json").write_text(json.dumps(listed))
    environment = Environment.read({"HOME": str(tmp_path / "home")})
    assert sorted(FORMAT.histories(environment, str(project), Disk())) == sorted(wanted)
    elsewhere = Environment.read({"HOME": "/nowhere", "GEMINI_CLI_HOME": str(tmp_path / "home")})
    assert len(FORMAT.histories(elsewhere, str(project), Disk())) == len(wanted)
    (root.parent / "projects.json").write_text("[" * 100_000)
    assert len(FORMAT.histories(environment, str(project), Disk())) == len(wanted) - 1
    assert FORMAT.histories(Environment(), str(project), Disk()) == []


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_odd_values_anywhere_are_no_trouble(data: st.DataObject) -> None:
    records = data.draw(anything_in([*LIVELY, SNAPSHOT]))
    odd(records)


def test_odd_shapes_that_were_found(tmp_path: Path) -> None:
    odd_contents: list[Any] = [None, 5, {}, [None], [{"functionCall": {}}]]
    for content in (*odd_contents, [{"functionCall": {"name": ""}}]):
        for kind in ("user", "gemini", "info"):
            said = {
                "id": "a",
                "type": kind,
                "content": content,
                "toolCalls": [content, {"name": "n"}],
            }
            odd([HEADER, said, {**said, "thoughts": content, "tokens": content, "model": content}])
    image = {"inlineData": {"mimeType": "image/" + "x" * 5000, "data": PNG}}
    odd([HEADER, user("a", [image, {"function_call": {"name": "n", "args": {}}}])])
    odd([HEADER, {"id": "\ud83d", "type": "user", "content": "\ud83d"}, {"$rewindTo": "\ud83d"}])
    odd([HEADER, model("g", toolCalls=[call("c")] * 3), model("g", [{}] * 10_001)])


def odd(records: list[Record]) -> None:
    """Assert that odd records are imported without losing one."""
    store = Store.memory()
    text = "".join(json.dumps(each) + "\n" for each in records)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "odd.jsonl"
        path.write_text(text)
        (report,) = import_paths(Writer(store), [str(path)], format="gemini").files
        assert import_paths(Writer(store), [str(path)], format="gemini").commits == 0
    assert sum(report.records.values()) == len(records)
    assert not [f for f in fsck(store) if f.severity == "error"]
    assert_valid(store)


@pytest.mark.parametrize("path", each_real_transcript("gemini"))
def test_real_chats(path: Path) -> None:
    """Against counts made by means of the standard library alone."""
    data = path.read_bytes()
    try:
        records = json.loads(data)["messages"]
    except ValueError:
        records = [json.loads(line) for line in data.splitlines() if line.strip()]
    messages = [each for each in records if each.get("type") in ("user", "gemini")]
    with_results = [
        each for each in messages if any(c.get("result") for c in each.get("toolCalls", ()))
    ]
    thoughts = sum(len(each.get("thoughts", ())) for each in messages)
    reported = [m for m in messages if any((m.get("tokens") or {}).values())]
    store = Store.memory()
    (report,) = import_paths(Writer(store), [str(path)]).files
    assert report.messages == len(messages) + len(with_results)
    assert report.commits == len(messages)
    (tip,) = [oid for _, oid in store.refs.iterate("refs/heads/")]
    parts = [load_parts(e.parts, store.objects.read) for e in visible(store, tip)]
    kinds = Counter(type(part) for each in parts for part in each)
    assert kinds[Reasoning] == thoughts
    assert kinds[Opaque] == 0
    assert len(usages(commits(store, tip))) == len(reported)
    assert_valid(store, everywhere=True)

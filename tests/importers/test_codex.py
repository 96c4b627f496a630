"""Codex's rollouts of every build: imported sessions, and harmless hostile files."""

from __future__ import annotations

import json
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
)
from tests.importers.support.rollouts import (
    ENVIRONMENT,
    MODEL,
    SEALED,
    SESSION,
    Rollout,
    call,
    dump,
    lively,
    message,
    output,
    patch,
    patched,
    reasoning,
)
from tests.importers.support.states import commits, context, parts_of, tip_of, visible
from tests.importers.support.transcripts import each_real_transcript, records_in
from tests.support.examples import examples
from tests.support.valid_requests import assert_valid_requests, messages_of
from trace_store.base.environment import Environment
from trace_store.base.oid import ObjectId
from trace_store.context.compiler import ContextCompiler
from trace_store.context.content import one_line
from trace_store.disk.files import Disk
from trace_store.history import commit as writing
from trace_store.importers.dedupe import chain
from trace_store.importers.formats.codex import CALLS, FORMAT, OUTPUTS
from trace_store.importers.import_paths import import_paths
from trace_store.maintenance.fsck import fsck
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.openai_responses import messages_from_responses
from trace_store.providers.rendering import RENDERERS, render
from trace_store.store.store import Store
from trace_store.writer import Writer

BRANCH = f"refs/heads/sessions/codex/{SESSION}"
OTHER = "019f0000-ffff-7000-8000-00000000000b"
EARLIER, LATER = "019e0000-0000-7000-8000-000000000001", "019f1111-0000-7000-8000-000000000001"


def imported(tmp_path: Path, rollout: Rollout) -> Store:
    store = Store.memory()
    (report,) = import_paths(Writer(store), [rollout.write(tmp_path)]).files
    assert report.format == "codex"
    assert_counted_once(store, report, len(rollout.records))
    return store


def tip(store: Store, name: str = BRANCH) -> ObjectId:
    return tip_of(store, name)


def reported(commit: Commit) -> list[Any]:
    return [op.fields.get("input_total") for op in commit.operations if op.name == ops.USAGE]


def answers(store: Store) -> list[tuple[str, list[Any]]]:
    """Each commit with an answer of the model, and its reported usage."""
    found = []
    for commit in commits(store, tip(store)):
        roles = [m["role"] for op in commit.operations for m in op.fields.get("messages", ())]
        if roles == ["assistant"]:
            found.append((commit.author, reported(commit)))
    return found


def part(store: Store, *place: int) -> Part:
    """A part of the last context, by the number of its message and its own."""
    found = parts_of(store, visible(store, tip(store))[place[0]])[place[1]]
    for index in place[2:]:
        assert isinstance(found, ToolResult)
        found = found.content[index]
    return found


# --- a session ----------------------------------------------------------------------------------


def test_a_session(tmp_path: Path) -> None:
    store = imported(tmp_path, lively())
    assert list(heads(store)) == [BRANCH]
    assert context(store, tip(store)) == [
        "developer: <permissions instructions>\nAsk before you write.",
        f"user: # AGENTS.md instructions for /w/app\n\nBe brief. | {ENVIRONMENT}",
        "user: Fix the parser, please; it drops the last line of every file without a newline.",
        "assistant: reasoning | opaque | I look at the parser first. | call_a | call_b",
        "tool: call_a=Process exited with code 0\nOutput:\ndef parse(data): ..."
        " | call_b=Process exited with code 0\nOutput:\n2: data.split",
        "assistant: reasoning | call_c",
        "tool: call_c=Exit code: 0\nOutput:\nSuccess.",
        "developer: Approved command prefix saved:\n- pytest",
        "assistant: opaque | opaque | The last line is kept now.",
        "user: Add a test for the empty file.",
        "assistant: call_d",
        "user: <turn_aborted>\nThe user interrupted the previous turn.",
        "user: Go on.",
        "assistant: opaque | The test is there.",
    ]
    assert answers(store) == [
        ("codex/gpt-5.5", [1000]),
        ("codex/gpt-5.5", [1100]),
        ("codex/gpt-5.5", [1200]),
        ("codex/gpt-5.6", []),
        ("codex/gpt-5.6", [1300]),
    ]
    entries = visible(store, tip(store))
    assert [e.message["kind"] for e in entries[:3]] == ["instruction", "instruction", "dialogue"]
    assert [e.message["kind"] for e in entries[11:13]] == ["instruction", "dialogue"]
    line = commits(store, tip(store))
    assert [c.author for c in line[:3]] == ["codex", "codex", "codex/user"]
    assert line[0].time < line[-1].time
    shown = [one_line(commit, store.objects.read) for commit in line]
    said = "assistant: I look at the parser first. [exec_command] cat parser.py [exec_command]"
    assert shown[3].startswith(said)
    assert shown[-1] == "assistant: The test is there."


def test_reasoning_and_calls_are_kept_as_they_are(tmp_path: Path) -> None:
    r = Rollout()
    r.turn()
    r.says(
        reasoning("One.", "Two."),
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm"}]},
        {**call("c1"), "arguments": '{"cmd" : "ls",\u00a0broken'},
        patch("c2", "*** Begin Patch\n+\u2028\n"),
        {**call("c3", "spawn_agent"), "namespace": "collaboration"},
    )
    store = imported(tmp_path, r)
    parts = parts_of(store, visible(store, tip(store))[0])
    assert parts[:5] == (
        Reasoning("One."),
        Reasoning("Two.", SEALED),
        Reasoning("Hm"),
        ToolCall("c1", "exec_command", '{"cmd" : "ls",\u00a0broken'),
        ToolCall("c2", "apply_patch", "*** Begin Patch\n+\u2028\n", "text"),
    )
    assert isinstance(parts[5], Opaque)
    assert json.loads(parts[5].data)["namespace"] == "collaboration"
    assert visible(store, tip(store))[0].message["model"] == MODEL


ANSWERS: dict[str, tuple[Any, tuple[Part, ...], bool]] = {
    "text": ("Process exited with code 1", (Text("Process exited with code 1"),), False),
    "nothing": ("", (Text(""),), False),
    "blocks": (
        [
            {"type": "input_text", "text": "seen"},
            {"type": "input_image", "image_url": "data:image/png;base64,iVBORw=="},
        ],
        (Text("seen"), Image("image/png", b"\x89PNG")),
        False,
    ),
    "a failure beside the text": (
        '{"output":"no","metadata":{"exit_code":2,"duration_seconds":0.1}}',
        (Text('{"output":"no","metadata":{"exit_code":2,"duration_seconds":0.1}}'),),
        True,
    ),
    "a killed command beside the text": (
        '{"output":"","metadata":{"exit_code":-9}}',
        (Text('{"output":"","metadata":{"exit_code":-9}}'),),
        True,
    ),
    "a success beside the text": (
        '{"output":"yes","metadata":{"exit_code":0}}',
        (Text('{"output":"yes","metadata":{"exit_code":0}}'),),
        False,
    ),
    "text that only looks like it": ('{"output', (Text('{"output'),), False),
    "fields": ({"content": "no", "success": False}, (Text("no"),), True),
    "unknown fields": ({"odd": 1}, (Opaque("openai", b'{"odd":1}'),), False),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_outputs(tmp_path: Path, what: str) -> None:
    value, parts, failed = ANSWERS[what]
    r = Rollout()
    r.turn()
    r.says(call("c1"), output("c1", value), patch("c2", "x"), patched("c2", value))
    store = imported(tmp_path, r)
    results = [p for e in visible(store, tip(store)) for p in parts_of(store, e)]
    for call_id in ("c1", "c2"):
        assert ToolResult(call_id, parts, failed) in results


def test_items_that_are_no_messages(tmp_path: Path) -> None:
    r = Rollout()
    r.turn()
    r.prompts("Scan.")
    shell = {"type": "exec", "command": ["ls", "-l"]}
    r.says({"type": "local_shell_call", "call_id": "s1", "status": "completed", "action": shell})
    r.says(output("s1", "parser.py"))
    r.says({"type": "local_shell_call", "call_id": None, "status": "completed", "action": shell})
    r.add("response_item", type="ghost_snapshot", ghost_commit={"id": "abc"})
    mail = {"type": "agent_message", "author": "/root/helper", "recipient": "/root"}
    sealed = {"type": "encrypted_content", "encrypted_content": SEALED}
    r.says({**mail, "content": [{"type": "input_text", "text": "Done."}, sealed]})
    store = imported(tmp_path, r)
    assert context(store, tip(store)) == [
        "user: Scan.",
        "assistant: s1 | opaque",
        "tool: s1=parser.py",
        "user: Done. | opaque",
    ]
    assert part(store, 1, 0) == ToolCall(
        "s1", "local_shell", '{"type":"exec","command":["ls","-l"]}'
    )
    assert visible(store, tip(store))[3].message["name"] == "/root/helper"
    assert part(store, 3, 1) == Opaque("openai", json.dumps(sealed, separators=(",", ":")).encode())
    compiled = ContextCompiler(store).compile(tip(store))
    assert_valid_requests(list(compiled.messages))


# --- where a response ends ----------------------------------------------------------------------


def test_calls_written_with_their_outputs_are_one_response_where_the_file_tells(
    tmp_path: Path,
) -> None:
    r = Rollout()
    r.turn()
    r.prompts("Scan at both.")
    r.used(1000)
    r.says(reasoning(), call("a"), output("a", "1"), call("b"), output("b", "2"))
    r.turn()
    r.used(1100)
    r.says(call("c"), output("c", "3"))
    r.turn()
    r.used(1200)
    r.says(message("assistant", "Done."))
    store = imported(tmp_path, r)
    assert context(store, tip(store))[1:] == [
        "assistant: reasoning | a | b",
        "tool: a=1 | b=2",
        "assistant: c",
        "tool: c=3",
        "assistant: Done.",
    ]
    assert [usage for _, usage in answers(store)] == [[1000], [1100], [1200]]


def test_usage_told_between_calls_and_outputs(tmp_path: Path) -> None:
    r = Rollout()
    r.prompts("Scan.")
    r.turn()
    r.happens("token_count", info=None, rate_limits={})
    for number in (1, 2):
        r.says(reasoning(), call(f"c{number}"))
        r.used(1000 + number)
        r.says(output(f"c{number}", "ok"))
        r.turn()
        r.used(1000 + number, again=True)
    r.says(message("assistant", "Done."))
    r.used(1003)
    store = imported(tmp_path, r)
    assert [usage for _, usage in answers(store)] == [[1001], [1002], [1003]]


def test_without_marks_each_call_is_a_response(tmp_path: Path) -> None:
    r = Rollout()
    r.prompts("Scan at both.")
    r.says(call("a"), output("a", "1"), call("b"), output("b", "2"))
    store = imported(tmp_path, r)
    assert context(store, tip(store))[1:] == [
        "assistant: a",
        "tool: a=1",
        "assistant: b",
        "tool: b=2",
    ]


def test_usage_of_what_was_not_answered_is_nobodys(tmp_path: Path) -> None:
    r = Rollout()
    r.turn()
    r.prompts("Scan.")
    r.used(700)
    r.prompts("Again.")
    r.says(message("assistant", "Done."))
    assert answers(imported(tmp_path, r)) == [("codex/gpt-5.5", [])]


# --- the context starts over --------------------------------------------------------------------


def test_a_compaction_puts_in_exactly_its_items(tmp_path: Path) -> None:
    r = lively()
    sealed = {"type": "compaction", "encrypted_content": SEALED}
    history = [message("developer", "Rules."), message("user", "Fix the parser."), sealed]
    r.add("compacted", message="", replacement_history=history, window_id="w2")
    r.used(1300, again=True)
    r.says(message("assistant", "Going on.", phase="commentary"))
    r.used(400)
    store = imported(tmp_path, r)
    assert context(store, tip(store)) == [
        "developer: Rules.",
        "user: Fix the parser.",
        "assistant: opaque",
        "assistant: opaque | Going on.",
    ]
    assert part(store, 2, 0) == Opaque("openai", json.dumps(sealed, separators=(",", ":")).encode())
    (compaction,) = [
        c for c in commits(store, tip(store)) if any(op.name == ops.REPLACE for op in c.operations)
    ]
    (replaced,) = [op for op in compaction.operations if op.name == ops.REPLACE]
    assert replaced.fields["reason"] == "compaction"
    assert answers(store)[-1] == ("codex/gpt-5.6", [400])
    request = render("openai-responses", list(ContextCompiler(store).compile(BRANCH).messages))
    assert sealed in request.request["input"]


def test_a_compaction_of_old_keeps_what_the_session_began_with_and_the_prompts(
    tmp_path: Path,
) -> None:
    r = lively()
    r.used(900)  # of the request that asked for the summary
    r.add("compacted", message="Another model fixed the parser.")
    r.prompts("What is left?")
    r.says(message("assistant", "Nothing."))
    r.add("compacted", message="All is done.")
    r.prompts("Thanks.")
    store = imported(tmp_path, r)
    assert context(store, tip(store)) == [
        "developer: <permissions instructions>\nAsk before you write.",
        f"user: # AGENTS.md instructions for /w/app\n\nBe brief. | {ENVIRONMENT}",
        "user: Fix the parser, please; it drops the last line of every file without a newline.",
        "user: Add a test for the empty file.",
        "user: Go on.",
        "user: What is left?",
        "user: All is done.",
        "user: Thanks.",
    ]
    usage = [reported(c) for c in commits(store, tip(store)) if reported(c)]
    assert usage[-1] == [900]


def test_a_compaction_at_the_beginning(tmp_path: Path) -> None:
    r = Rollout(forked_from_id=OTHER)
    r.add("compacted", message="", replacement_history=[message("user", "Go on.")])
    r.add("compacted", message="", replacement_history=[])
    r.says(message("assistant", "Yes."))
    assert context(imported(tmp_path, r), tip(imported(tmp_path, r))) == [
        "user: Go on.",
        "assistant: Yes.",
    ]


def test_a_rollback_leaves_a_branch(tmp_path: Path) -> None:
    r = Rollout()
    r.says(message("user", ENVIRONMENT))
    for number in (1, 2, 3):
        r.turn()
        r.prompts(f"Question {number}")
        r.says(message("assistant", f"Answer {number}"))
        r.used(number)
    r.happens("thread_rolled_back", num_turns=2)
    r.prompts("Another question")
    r.says(message("assistant", "Another answer"))
    store = imported(tmp_path, r)
    assert context(store, tip(store))[1:] == [
        "user: Question 1",
        "assistant: Answer 1",
        "user: Another question",
        "assistant: Another answer",
    ]
    (left,) = set(heads(store)) - {BRANCH}
    assert left.startswith(f"{BRANCH}/rewinds/")
    assert context(store, tip(store, left))[-1] == "assistant: Answer 3"


def test_a_rollback_goes_back_behind_a_compaction(tmp_path: Path) -> None:
    r = Rollout()
    r.prompts("Question 1")
    r.says(message("assistant", "Answer 1"))
    r.prompts("Question 2")
    r.add("compacted", message="", replacement_history=[message("user", "Summary")])
    r.says(message("assistant", "Answer 2"))
    r.happens("thread_rolled_back", num_turns=1)
    r.happens("thread_rolled_back", num_turns=99)
    r.prompts("A new beginning")
    store = imported(tmp_path, r)
    assert context(store, tip(store)) == ["user: A new beginning"]
    (left,) = set(heads(store)) - {BRANCH}
    assert context(store, tip(store, left)) == ["user: Summary", "assistant: Answer 2"]


# --- sessions, copies and subagents -------------------------------------------------------------


def test_headers_that_come_again(tmp_path: Path) -> None:
    r = lively()
    r.records.insert(9, r.records[0])
    assert heads(imported(tmp_path, r)) == {BRANCH: tip(imported(tmp_path, r))}


def test_a_session_without_a_header_is_named_by_its_file(tmp_path: Path) -> None:
    r = lively()
    del r.records[0]
    assert list(heads(imported(tmp_path, r))) == [BRANCH]


def test_a_copy_of_the_same_records_shares_the_commits(tmp_path: Path) -> None:
    parent = lively()
    store = Store.memory()
    import_paths(Writer(store), [parent.write(tmp_path)])
    fork = Rollout(OTHER, forked_from_id=SESSION)
    fork.records += parent.records
    fork.turn(turn_id=LATER)
    fork.prompts("And now something else.")
    (report,) = import_paths(Writer(store), [fork.write(tmp_path, OTHER)]).files
    assert report.commits_shared == 14
    assert context(store, tip(store, BRANCH.replace(SESSION, OTHER))) == [
        *context(store, tip(store)),
        "user: And now something else.",
    ]


def test_a_copy_with_other_times_shares_contents_and_its_usage_is_not_counted_again(
    tmp_path: Path,
) -> None:
    parent = Rollout()
    parent.turn(turn_id=EARLIER)
    parent.prompts("Fix the parser; it drops the last line of every file.")
    parent.says(message("assistant", "The last line of every file is kept now, and tested."))
    parent.used(1000)
    store = Store.memory()
    import_paths(Writer(store), [parent.write(tmp_path)])
    before = set(store.objects.iterate())
    fork = Rollout(OTHER, forked_from_id=SESSION)
    fork.records += [{**r, "timestamp": "2026-07-01T00:00:00.000Z"} for r in parent.records]
    fork.turn(turn_id=LATER)
    fork.prompts("And now something else.")
    fork.says(message("assistant", "What?"))
    fork.used(2000)
    import_paths(Writer(store), [fork.write(tmp_path, OTHER)])
    line = commits(store, tip(store, BRANCH.replace(SESSION, OTHER)))
    assert [n for c in line for n in reported(c)] == [2000]
    copied = [m["parts"][0]["blob"] for c in line[:2] for m in c.operations[0].fields["messages"]]
    assert {ObjectId(blob) for blob in copied} <= before


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_subagent_hangs_on_the_call_that_began_it(tmp_path: Path, order: tuple[int, int]) -> None:
    parent = Rollout()
    parent.turn()
    parent.prompts("Review it.")
    parent.says({**call("c1", "spawn_agent"), "namespace": "collaboration"})
    parent.happens("sub_agent_activity", event_id="c1", agent_thread_id=OTHER, kind="started")
    parent.says(output("c1", '{"task_name":"/root/review"}'))
    parent.used(1000)
    parent.says(message("assistant", "It is under review."))
    spawn = {"parent_thread_id": SESSION, "depth": 1}
    child = Rollout(
        OTHER, session_id=SESSION, source={"subagent": {"thread_spawn": spawn}}, thread_source="sub"
    )
    child.prompts("Scan for mistakes.")
    child.says(message("assistant", "None."))
    paths = [parent.write(tmp_path), child.write(tmp_path, OTHER)]
    with Store.init(str(tmp_path / "project")) as store:
        import_paths(Writer(store), [paths[n] for n in order])
        import_paths(Writer(store), paths)
        name = f"{BRANCH}/agents/{OTHER}"
        assert set(heads(store)) == {BRANCH, name}
        assert context(store, tip(store, name)) == ["user: Scan for mistakes.", "assistant: None."]
        (called,) = [c for c in commits(store, tip(store)) if c.meta.get("agents") == [OTHER]]
        behind = {oid for c in commits(store, tip(store, name)) for oid in c.parents}
        assert (called.parents[0] in behind) is (order == (0, 1))
        assert not [finding for finding in fsck(store) if finding.severity == "error"]


# --- older builds -------------------------------------------------------------------------------

BARE: list[dict[str, Any]] = [
    {"id": SESSION, "timestamp": "2025-08-20T10:00:00.000Z", "instructions": None, "git": {}},
    {"record_type": "state"},
    message("user", ENVIRONMENT, id=None),
    message("user", "Fix the parser.", id=None),
    {"record_type": "state"},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
    {**call("c1", "shell", command=["ls"]), "id": "fc_1"},
    output("c1", '{"output":"parser.py\\n","metadata":{"exit_code":0}}'),
    message("assistant", "Fixed.", id=None),
    message("user", "Fix the parser.", id=None),
]


def test_bare_items(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(b"".join(map(dump, BARE)))
    store = Store.memory()
    (report,) = import_paths(Writer(store), [str(path)]).files
    assert (report.format, report.session) == ("codex", SESSION)
    assert report.records["state", "source"] == 2
    assert context(store, tip(store))[1:] == [
        "user: Fix the parser.",
        "assistant: reasoning | c1",
        'tool: c1={"output":"parser.py\\n","metadata":{"exit_code":0}}',
        "assistant: Fixed.",
        "user: Fix the parser.",
    ]
    assert {c.time for c in commits(store, tip(store))} == {1_755_684_000_000}
    assert_grows(tmp_path, b"".join(map(dump, BARE)), "rollout.jsonl")


def test_one_document(tmp_path: Path) -> None:
    items = [record for record in BARE[2:] if "record_type" not in record]
    session = {"id": SESSION, "timestamp": BARE[0]["timestamp"], "instructions": ""}
    path = tmp_path / "rollout-2025-05-01.json"
    path.write_text(json.dumps({"session": session, "items": items}, indent=2))
    lines = tmp_path / "rollout.jsonl"
    lines.write_bytes(b"".join(map(dump, BARE)))
    contexts = []
    for file in (path, lines):
        store = Store.memory()
        import_paths(Writer(store), [str(file)])
        contexts.append(context(store, tip(store)))
    assert contexts[0] == contexts[1]


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (lively().data, True),
        (lively().data[: len(lively().data) // 2], True),
        (b'{"timestamp":"2026","type":"session_meta","payload":{"id":"' + b"x" * 9999, True),
        (b"".join(map(dump, BARE)), True),
        (b"".join(map(dump, BARE[:1])), True),
        (b'{\n "session": {"id": "x"},\n "items": [\n', True),
        (b'{"id":"x","timestamp":"2026","title":"something else"}\n', False),
        (b'{"type":"message","role":"user","content":"Hi"}\n', False),
        (b'{"type":"session_meta"}\n', False),
        (b'{"items":[1],"session":2}', False),
        (b"\xff\xfe{", False),
        (b"", False),
    ],
)
def test_recognising(head: bytes, known: bool) -> None:
    assert_recognised(FORMAT, head, known)


def test_the_rollouts_of_a_project(tmp_path: Path) -> None:
    project, home = tmp_path / "app", tmp_path / "codex"
    day = home / "sessions" / "2026" / "06" / "01"
    day.mkdir(parents=True)
    (home / "archived_sessions").mkdir()
    project.mkdir()
    wanted = [
        Path(Rollout(cwd=str(project)).write(day)),
        Path(Rollout(cwd=str(project / "src")).write(home / "archived_sessions")),
    ]
    bare = day / "rollout-bare.jsonl"
    there = [
        record
        if "content" not in record
        else message("user", ENVIRONMENT.replace("/w/app", str(project)))
        for record in BARE[:3]
    ]
    bare.write_bytes(b"".join(map(dump, there)))
    Rollout(cwd=str(tmp_path / "application")).write(day, OTHER)
    (day / "rollout-empty.jsonl").write_bytes(b"")
    (day / "rollout-odd.jsonl").write_bytes(b'{"payload":{"cwd":7},"content":[7]}\n\xff\n')
    (day / "notes.jsonl").write_bytes(Rollout(cwd=str(project)).data)
    found = FORMAT.histories(Environment(codex_dir=str(home)), str(project), Disk())
    assert found == [*sorted(map(str, [bare, wanted[0]])), str(wanted[1])]
    assert FORMAT.histories(Environment(), str(project), Disk()) == []


def test_a_growing_file(tmp_path: Path) -> None:
    r = lively()
    r.add("compacted", message="The parser is fixed.")
    r.prompts("And now?")
    r.says(message("assistant", "Nothing."))
    r.happens("thread_rolled_back", num_turns=1)
    r.prompts("Goodbye.")
    assert_grows(tmp_path, r.data, "rollout.jsonl")


def test_a_session_at_the_end_of_a_branch_of_ones_own(tmp_path: Path) -> None:
    r = lively()
    r.add("compacted", message="The parser is fixed.")
    r.prompts("And now?")
    r.says(message("assistant", "Nothing."))
    r.happens("thread_rolled_back", num_turns=1)
    r.prompts("Goodbye.")
    alone = imported(tmp_path, r)
    store = Store.memory()
    written = writing.commit(Writer(store, author="ada"), [Message("user", "Mine.")])
    for _ in range(2):
        import_paths(Writer(store), [r.write(tmp_path)], onto="main")
    found = tip(store, "refs/heads/main")
    assert context(store, found) == ["user: Mine.", *context(alone, tip(alone))]
    assert written.oid in {oid for oid, _ in chain(store, found)}


ITEM_FIELDS = (
    *("role", "content", "call_id", "name", "arguments", "input", "output", "summary"),
    *("encrypted_content", "id", "phase", "action", "namespace"),
)
KINDS = st.sampled_from(["message", "reasoning", "compaction", *CALLS, *OUTPUTS]) | JSON
ITEMS = st.fixed_dictionaries({"type": KINDS}, optional=dict.fromkeys(ITEM_FIELDS, JSON))
ANY = st.dictionaries(st.text(max_size=5), JSON)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damaged([*lively().records, *BARE]) | st.lists(ANY, min_size=1))
def test_no_shape_does_harm(tmp_path: Path, records: list[Any]) -> None:
    store = import_hostile(tmp_path, records, "codex")
    contexts = ContextCompiler(store)
    for name in heads(store):
        for provider in RENDERERS:
            render(provider, list(contexts.compile(name).messages))


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ITEMS, max_size=5))
def test_no_item_does_harm(tmp_path: Path, items: list[dict[str, Any]]) -> None:
    r = Rollout()
    for item in items:
        r.records.append({"timestamp": "x", "type": "response_item", "payload": item})
    r.add("compacted", message="", replacement_history=items)
    import_hostile(tmp_path, r.records, "codex")


# --- real ones ----------------------------------------------------------------------------------


def last_items(data: bytes) -> list[dict[str, Any]]:
    """The items of the last context, counted straight from the records."""
    items: list[dict[str, Any]] = []
    for _, record in records_in(data):
        if record["type"] == "compacted":
            items = list(record["payload"]["replacement_history"])
        elif record["type"] == "response_item" and record["payload"]["type"] != "ghost_snapshot":
            items.append(record["payload"])
    return items


def flat(messages: list[Any]) -> list[tuple[str, Any]]:
    """Who says what, without regard to where one message ends."""
    return [(m.role, p) for m in messages for p in m.parts]


@pytest.mark.parametrize("path", each_real_transcript("codex"))
def test_a_real_context_holds_what_its_items_say(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    store = Store.memory()
    import_paths(Writer(store), [str(path)])
    ((name, _),) = heads(store).items()
    compiled = list(ContextCompiler(store).compile(name).messages)
    items = last_items(data)
    said = [(role, p) for role, p in flat(compiled) if not isinstance(p, Opaque)]
    parsed = flat(messages_from_responses(items))
    assert said == [(role, p) for role, p in parsed if not isinstance(p, Opaque)]

    counts = {kind: sum(i["type"] == kind for i in items) for kind in ("message", "reasoning")}
    roles = [m.role for m in compiled]
    spoken = [i["role"] for i in items if i["type"] == "message"]
    others = sum(i["type"] in ("agent_message",) for i in items)
    assert roles.count("developer") == spoken.count("developer")
    assert roles.count("user") == spoken.count("user") + others
    assert sum(isinstance(p, Reasoning) for _, p in said) >= counts["reasoning"]


@pytest.mark.parametrize("path", each_real_transcript("codex"))
def test_a_real_context_goes_back_as_the_items_it_came_from(path: Path, tmp_path: Path) -> None:
    store = Store.memory()
    import_paths(Writer(store), [str(path)])
    ((name, _),) = heads(store).items()
    compiled = list(ContextCompiler(store).compile(name).messages)
    rendered = render("openai-responses", compiled, model=compiled[-1].model)
    items = last_items(path.read_bytes())
    answered = {item["call_id"] for item in items if "output" in item}
    # A call that nothing answers is sent with a result that says so. Reasoning that is empty or that nothing follows
    # cannot be sent.
    sendable = [item for item in items if item.get("call_id", "") in {"", *answered}]
    sendable = [
        item
        for item, behind in zip(sendable, [*sendable[1:], {}], strict=True)
        if item["type"] != "reasoning" or (item.get("encrypted_content") and by_model(behind))
    ]
    sent = [item for item in messages_of(rendered) if item.get("call_id", "") in {"", *answered}]
    assert [simple(item) for item in sent] == [simple(item) for item in sendable]
    given = {item["call_id"] for item in messages_of(rendered) if "output" in item}
    assert given == {item["call_id"] for item in items if "call_id" in item}


def by_model(item: dict[str, Any]) -> bool:
    return item.get("role") == "assistant" or item.get("type") in (*CALLS, "reasoning")


def simple(item: dict[str, Any]) -> dict[str, Any]:
    """An item without fields that are never resent or that vary in spelling."""
    left = {"id", "status", "internal_chat_message_metadata_passthrough"}
    found = {k: v for k, v in item.items() if k not in left and v is not None}
    if found["type"] == "agent_message":
        found = {"type": "message", "role": "user", "content": found["content"]}
    for name in ("content", "output"):
        blocks = found.get(name)
        if isinstance(blocks, str):
            found[name] = [blocks]
        elif isinstance(blocks, list):
            texts = [block["text"] for block in blocks if "text" in block]
            found[name] = [text for text in texts if " not shown: in the form of " not in text]
    return found


@pytest.mark.parametrize("path", each_real_transcript("codex"))
def test_the_usage_of_a_real_session(path: Path, tmp_path: Path) -> None:
    totals: list[Any] = []
    wanted = []
    for _, record in records_in(path.read_bytes()):
        payload = record["payload"]
        if payload.get("type") == "token_count" and payload["info"]:
            if payload["info"]["total_token_usage"] not in totals[-1:]:
                wanted.append(payload["info"]["last_token_usage"]["input_tokens"])
            totals.append(payload["info"]["total_token_usage"])
    store = Store.memory()
    import_paths(Writer(store), [str(path)])
    ((_, oid),) = heads(store).items()
    assert [n for c in commits(store, oid) for n in reported(c)] == wanted


@pytest.mark.parametrize("lines", range(3, 40, 4))
def test_a_backup_of_a_session_that_went_on_adds_nothing(tmp_path: Path, lines: int) -> None:
    story = lively()
    path = story.write(tmp_path)
    data = Path(path).read_bytes().splitlines(keepends=True)
    store = Store.memory()
    import_paths(Writer(store), [path])
    refs = dict(store.refs.iterate())
    backup = tmp_path / "backup" / Path(path).name
    backup.parent.mkdir()
    backup.write_bytes(b"".join(data[:lines]))
    import_paths(Writer(store), [str(backup)])
    assert dict(store.refs.iterate()) == refs

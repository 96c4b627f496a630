"""Conversion of records: messages, parts, usage, and data outside the context."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.importers.support.states import (
    branches,
    commits,
    context,
    entries,
    parts_of,
    raw_records,
    visible,
)
from tests.importers.support.transcripts import (
    MODEL,
    SESSION,
    Transcript,
    call,
    records_in,
    text,
    thinking,
)
from trace_store.base.environment import Environment
from trace_store.importers.import_paths import import_paths
from trace_store.objects.commit import Commit
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.store.store import Store
from trace_store.writer import Writer


def imported(t: Transcript, folder: Path) -> Store:
    store = Store.memory()
    import_paths(Writer(store), [t.write(folder)])
    assert sorted(raw_records(store)) == sorted(raw for raw, _ in records_in(t.data))
    return store


def only(t: Transcript, folder: Path) -> tuple[Part, ...]:
    """The parts of the one message that an import makes."""
    store = imported(t, folder)
    (entry,) = entries(store, branches(store)[SESSION])
    return parts_of(store, entry)


def usages(store: Store) -> list[dict[str, Any]]:
    found: list[Commit] = commits(store, branches(store)[SESSION])
    return [dict(o.fields) for c in found for o in c.operations if o.name == "usage"]


def test_blocks_of_an_api_message(tmp_path: Path) -> None:
    t = Transcript()
    t.assistant("msg_1", thinking("Hm.", "sig+/=" * 20))
    t.assistant("msg_1", thinking("", "other" * 20))
    t.assistant("msg_1", {"type": "redacted_thinking", "data": "b3BhcXVl" * 10})
    t.assistant("msg_1", text("I look."))
    t.assistant("msg_1", call("toolu_1", "Read", file_path="/w/app/naïve.py", limit=1.5))
    t.assistant("msg_1", {"type": "server_tool_use", "id": "srv_1", "name": "web", "input": {}})
    assert only(t, tmp_path) == (
        Reasoning("Hm.", "sig+/=" * 20),
        Reasoning("", "other" * 20),
        Opaque("anthropic", b'{"type":"redacted_thinking","data":"' + b"b3BhcXVl" * 10 + b'"}'),
        Text("I look."),
        ToolCall("toolu_1", "Read", '{"file_path":"/w/app/naïve.py","limit":1.5}'),
        Opaque("anthropic", b'{"type":"server_tool_use","id":"srv_1","name":"web","input":{}}'),
    )


def test_an_api_message_carries_its_model_and_id(tmp_path: Path) -> None:
    t = Transcript()
    t.assistant("msg_1", text("Hello."))
    store = imported(t, tmp_path)
    (entry,) = entries(store, branches(store)[SESSION])
    assert (entry.message["model"], entry.message["id"]) == (MODEL, "msg_1")
    (commit,) = commits(store, branches(store)[SESSION])
    assert (commit.author, commit.time) == (f"claude-code/{MODEL}", 1770613201001)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("plain", (Text("plain"),)),
        ("", ()),
        ([], ()),
        (None, ()),
        ([text("a"), text("b")], (Text("a"), Text("b"))),
        (
            [{"type": "tool_reference", "tool_name": "Grep"}],
            (Opaque("anthropic", b'{"type":"tool_reference","tool_name":"Grep"}'),),
        ),
        ({"odd": 1}, (Opaque("anthropic", b'{"odd":1}'),)),
    ],
)
def test_content_of_a_result(tmp_path: Path, content: Any, expected: tuple[Part, ...]) -> None:
    t = Transcript()
    t.result("toolu_1", content)
    assert only(t, tmp_path) == (ToolResult("toolu_1", expected),)


def test_a_failed_result_and_text_beside_results(tmp_path: Path) -> None:
    t = Transcript()
    t.assistant("msg_1", call("toolu_1"), call("toolu_2"))
    failed = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no", "is_error": True}
    t.user([text("and my name is Ada"), failed])
    t.result("toolu_2", "yes")
    store = imported(t, tmp_path)
    _, entry = entries(store, branches(store)[SESSION])
    assert entry.message["role"] == "tool"
    assert parts_of(store, entry) == (
        ToolResult("toolu_1", "no", True),
        ToolResult("toolu_2", "yes"),
        Text("and my name is Ada"),
    )


def test_images(tmp_path: Path) -> None:
    data = bytes(range(256))
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(data).decode()}
    t = Transcript()
    t.user(
        [
            {"type": "image", "source": source},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "!"}},
        ]
    )
    kept = only(t, tmp_path)
    assert kept[:2] == (Image("image/png", data), Image(url="https://example.org/a.png"))
    assert isinstance(kept[2], Opaque)


def test_usage_is_taken_once_and_from_the_last_line(tmp_path: Path) -> None:
    t = Transcript()
    t.assistant("msg_1", text("One."), output=1)
    t.assistant("msg_1", text("Two."), stop="end_turn", output=77)
    t.user("Go on.")
    t.assistant("msg_2", text("Three."), output=3)
    store = imported(t, tmp_path)
    shared = {"input_total": 123, "cache_read": 100, "cache_write": 20, "model": MODEL}
    assert usages(store) == [
        {**shared, "source": "anthropic", "output_total": 77, "reasoning": 0},
        {**shared, "source": "anthropic"},  # without a stop reason the output is a placeholder
    ]


def test_usage_of_a_message_that_comes_again_is_not_counted_again(tmp_path: Path) -> None:
    t = Transcript()
    t.assistant("msg_1", text("One."), stop="end_turn")
    t.assistant("msg_2", text("Two."), stop="end_turn")
    t.assistant("msg_1", text("One, late."), stop="end_turn")
    assert len(usages(imported(t, tmp_path))) == 2


@pytest.mark.parametrize("usage", [None, 5, {"input_tokens": -1}, {"input_tokens": "many"}])
def test_usage_of_no_known_shape_is_left_out(tmp_path: Path, usage: Any) -> None:
    t = Transcript()
    message = {
        "id": "m",
        "role": "assistant",
        "model": MODEL,
        "content": [text("x")],
        "usage": usage,
    }
    t.add({"type": "assistant", "message": message})
    assert usages(imported(t, tmp_path)) == []


def test_an_error_of_the_api_is_kept_but_not_shown_to_a_model(tmp_path: Path) -> None:
    t = Transcript()
    t.user("Hello?")
    message = {
        "id": "local",
        "role": "assistant",
        "model": "<synthetic>",
        "content": [text("Login expired")],
        "stop_reason": "stop_sequence",
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
    t.add({"type": "assistant", "message": message}, isApiErrorMessage=True)
    t.add(
        {
            "type": "assistant",
            "message": {**message, "id": "two", "content": [text("No response requested.")]},
        }
    )
    store = imported(t, tmp_path)
    tip = branches(store)[SESSION]
    assert context(store, tip) == ["user: Hello?", "assistant: No response requested."]
    error = entries(store, tip)[1]
    assert (error.priority, error.labels) == ("skip", frozenset({"api-error"}))
    assert usages(store) == []


@pytest.mark.parametrize(
    ("attachment", "expected"),
    [
        ({"type": "hook_success", "hookEvent": "SessionStart", "content": "Rules."}, ["Rules."]),
        ({"type": "hook_success", "hookEvent": "PostToolUse", "content": "seen by nobody"}, None),
        ({"type": "hook_success", "hookEvent": "SessionStart", "content": ""}, None),
        ({"type": "hook_additional_context", "content": ["a", "b"]}, ["a", "b"]),
        ({"type": "hook_system_message", "content": "for the user"}, None),
        ({"type": "queued_command", "prompt": "and also this"}, ["and also this"]),
        ({"type": "queued_command", "prompt": [text("and that")]}, ["and that"]),
        ({"type": "skill_listing", "content": "- one: does one"}, ["- one: does one"]),
        ({"type": "deferred_tools_delta", "addedLines": ["A", "B"]}, ["A\nB"]),
        ({"type": "agent_listing_delta", "addedLines": []}, None),
        ({"type": "edited_text_file", "filename": "/w/a", "snippet": "1 x"}, ["/w/a", "1 x"]),
        ({"type": "diagnostics", "files": [{"uri": "a"}]}, ['[{"uri":"a"}]']),
        ({"type": "task_reminder", "content": []}, None),
        ({"type": "date_change", "newDate": "2026-02-10"}, ["2026-02-10"]),
        ({"type": "not_known_yet", "content": "?"}, None),
    ],
)
def test_attachments(
    tmp_path: Path, attachment: dict[str, Any], expected: list[str] | None
) -> None:
    t = Transcript()
    t.user("Hello.")
    t.add({"type": "attachment", "attachment": attachment})
    store = imported(t, tmp_path)
    (first, *rest) = visible(store, branches(store)[SESSION])
    assert first.message["role"] == "user"
    said = [
        part.text for entry in rest for part in parts_of(store, entry) if isinstance(part, Text)
    ]
    assert said == (expected or [])
    assert [entry.message["role"] for entry in rest] == ["user"] * len(rest)
    assert len(commits(store, branches(store)[SESSION])) == (1 if expected else 2)


def test_injected_text_and_markup_are_told_from_prose(tmp_path: Path) -> None:
    t = Transcript()
    t.user("Typed.")
    t.user("<command-name>/clear</command-name>")
    t.user("Injected.", isMeta=True)
    t.system("local_command", content="<local-command-stdout>ok</local-command-stdout>")
    t.user("Shown only.", isVisibleInTranscriptOnly=True)
    store = imported(t, tmp_path)
    found = entries(store, branches(store)[SESSION])
    assert [e.message["kind"] for e in found] == [
        *("dialogue", "freeform", "instruction", "freeform", "dialogue")
    ]
    assert [e.priority for e in found] == ["normal"] * 4 + ["skip"]


def test_a_compaction_stands_in_for_all_before_it(tmp_path: Path) -> None:
    t = Transcript()
    t.user("First.")
    t.assistant("msg_1", call("toolu_1"))
    t.result("toolu_1", "one")
    t.system("compact_boundary", parent=None, compactMetadata={"trigger": "auto"})
    t.user(
        "This session is being continued.", isCompactSummary=True, isVisibleInTranscriptOnly=True
    )
    t.user("Second.")
    store = imported(t, tmp_path)
    history = commits(store, branches(store)[SESSION])
    tips = [c.parents[0] for c in history if c.parents] + [branches(store)[SESSION]]
    assert context(store, tips[2]) == ["user: First.", "assistant: toolu_1", "tool: toolu_1=one"]
    assert context(store, tips[3]) == ["user: This session is being continued."]
    assert context(store, tips[4])[1:] == ["user: Second."]
    (operation,) = history[3].operations
    assert (operation.name, operation.fields["reason"]) == ("replace", "compaction")


def test_a_microcompaction_clears_results_and_leaves_calls_answered(tmp_path: Path) -> None:
    t = Transcript()
    t.assistant("msg_1", call("toolu_1"), call("toolu_2"))
    t.result("toolu_1", "one")
    t.result("toolu_2", "two")
    ids = {"compactedToolIds": ["toolu_2", "not-here"]}
    t.system("microcompact_boundary", microcompactMetadata=ids)
    t.assistant("msg_2", call("toolu_3"))
    t.result("toolu_3", "three")
    t.system("microcompact_boundary", microcompactMetadata={"compactedToolIds": ["toolu_1"]})
    store = imported(t, tmp_path)
    cleared = "[Old tool result content cleared]"
    assert context(store, branches(store)[SESSION]) == [
        "assistant: toolu_1 | toolu_2",
        f"tool: toolu_1={cleared} | toolu_2={cleared}",
        "assistant: toolu_3",
        "tool: toolu_3=three",
    ]
    edited = entries(store, branches(store)[SESSION])[1]
    assert len(edited.versions) == 3, "and the wording of before is still there"


def test_a_late_result_stands_behind_its_call(tmp_path: Path) -> None:
    t = Transcript()
    t.user("Go.")
    t.assistant("msg_1", call("toolu_1"), call("toolu_2"))
    t.result("toolu_1", "one")
    t.assistant("msg_2", text("Meanwhile."))
    t.result("toolu_2", "two, at last")
    store = imported(t, tmp_path)
    assert context(store, branches(store)[SESSION]) == [
        "user: Go.",
        "assistant: toolu_1 | toolu_2",
        "tool: toolu_1=one",
        "tool: toolu_2=two, at last",
        "assistant: Meanwhile.",
    ]


@pytest.mark.parametrize(
    "record",
    [
        {"type": "user"},
        {"type": "user", "message": None},
        {"type": "user", "message": {"role": "user", "contenst": []}},
        {"type": "user", "message": {"role": "user", "content": []}},
        {"type": "assistant", "message": "text"},
        {"type": "assistant", "message": {"content": []}},
        {"type": "system", "subtype": "microcompact_boundary"},
        {"type": "attachment"},
        {"type": 7},
        {"type": "not-known-yet", "x": [1, {"y": None}]},
        {},
    ],
)
def test_records_of_odd_shapes_stay_beside_the_context(
    tmp_path: Path, record: dict[str, Any]
) -> None:
    t = Transcript()
    t.user("Hello.")
    t.add(record)
    store = imported(t, tmp_path)
    assert context(store, branches(store)[SESSION]) == ["user: Hello."]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"type": "user", "message": "bare text"}, "user: bare text"),
        ({"type": "user", "message": {"content": ["odd block"]}}, "user: odd block"),
        ({"type": "user", "message": {"content": [7]}}, "user: opaque"),
        ({"type": "user", "message": {"content": [{"type": "text", "text": 7}]}}, "user: opaque"),
        ({"type": "assistant", "message": {"content": "bare"}}, "assistant: bare"),
        ({"type": "assistant", "message": {"content": "x", "id": 7, "model": 7}}, "assistant: x"),
        (
            {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "i" * 5000}]}},
            "assistant: opaque",
        ),
    ],
)
def test_messages_of_odd_shapes_are_messages_still(
    tmp_path: Path, record: dict[str, Any], expected: str
) -> None:
    t = Transcript()
    t.add(record, timestamp="not a time", uuid="")
    store = imported(t, tmp_path)
    assert context(store, branches(store)[SESSION]) == [expected]


def test_an_id_that_comes_again(tmp_path: Path) -> None:
    t = Transcript()
    t.user("Said once.", uuid="u1")
    t.lines.append(t.lines[0])  # the very same
    t.lines.append(
        t.lines[0].replace("/w/app", "/w/elsewhere")
    )  # the same said, copied from elsewhere
    t.lines.append(t.lines[0].replace("once", "otherwise"))  # another text under the same id
    store = Store.memory()
    (report,) = import_paths(Writer(store), [t.write(tmp_path)]).files
    assert context(store, branches(store)[SESSION]) == ["user: Said once.", "user: Said otherwise."]
    assert dict(report.records) == {
        ("user", "message"): 2,
        ("user", "duplicate"): 1,
        ("user", "source"): 1,
    }
    assert [(skip.line, skip.reason, skip.detail) for skip in report.skips] == [
        (2, "duplicate", "u1")
    ]


def test_a_session_in_which_nobody_speaks_makes_no_branch(tmp_path: Path) -> None:
    t = Transcript()
    t.bare({"type": "summary", "summary": "a title", "leafUuid": "elsewhere"})
    store = Store.memory()
    (report,) = import_paths(Writer(store), [t.write(tmp_path)]).files
    assert dict(report.records) == {("summary", "no-messages"): 1}
    assert not branches(store)
    assert store.refs.head().unborn


def test_texts_pass_the_filter(tmp_path: Path) -> None:
    secret = "hunter2-" * 10
    t = Transcript()
    t.user(f"My password is {secret}, remember it for later.")
    t.assistant("msg_1", call("toolu_1", "Bash", command=f"login {secret}", **{secret: 1}))
    t.result("toolu_1", "ok", toolUseResult={"stdout": secret, "list": [secret]})
    store = Store.memory()
    writer = Writer(store, environment=Environment(secrets=[("SOME_PASSWORD", secret)]))
    (report,) = import_paths(writer, [t.write(tmp_path)]).files
    assert report.secrets == {"known-value": 5}
    assert not any(secret.encode() in store.objects.read(oid) for oid in store.objects.iterate())
    assert not any(secret.encode() in raw for raw in raw_records(store))
    assert len([json.loads(raw) for raw in raw_records(store)]) == 3
    assert context(store, branches(store)[SESSION])[0].startswith(
        "user: My password is [redacted:known-value:"
    )

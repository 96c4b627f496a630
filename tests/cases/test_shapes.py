"""Shapes of messages: damaged blocks, blocks of other programs, messages of other programs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases.support.inputs import case
from tests.support.command_line import Outcome, Run, Trace
from trace_store import Repo
from trace_store.context.content import call_line
from trace_store.errors import InvalidMessageError
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult

SOUND = "SOUND TEXT"
BAD_BLOCKS: list[Any] = [
    None,
    7,
    [],
    {},
    {"type": None},
    {"type": "text"},
    {"type": "text", "text": 5},
    {"type": "image"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "?"}},
    {"type": "tool_use", "name": "f", "input": {}},
    {"type": "tool_use", "id": "t", "input": {}},
    {"type": "thinking", "text": "hidden"},
    {"type": "tool_result", "content": "r"},
    {"type": "hologram", "data": "x"},
]
"""Values in place of a block that are not blocks."""


def compiled(ok: Run, form: str) -> str:
    return ok("compile", "--format", form).out.decode()


def imported(ok: Run, tmp_path: Path, value: Any) -> Outcome:
    (tmp_path / "chat.json").write_text(json.dumps(value))
    return ok("import", "chat.json")


def says_damage(outcome: Outcome, count: int = 1) -> bool:
    noun = "block" if count == 1 else "blocks"
    return f"{count} {noun} could not be read" in outcome.err and "not read: part" in outcome.err


@pytest.mark.parametrize(
    "path",
    [path for number in ("19", "20", "22") for path in sorted(case(number).iterdir())],
    ids=lambda path: path.stem,
)
def test_case_19_20_22_a_bad_block_leaves_the_sound_text(ok: Run, path: Path) -> None:
    outcome = ok("import", str(path))
    assert says_damage(outcome)
    assert SOUND in compiled(ok, "text")
    assert "not read: part 2 of" in outcome.err


def test_case_19_the_report_counts_and_names_the_place(ok: Run) -> None:
    outcome = ok("import", "--json", str(case("19") / "blk-an-null.json"))
    report = json.loads(outcome.out)
    assert (report["unread"], report["hidden"]) == (1, 0)
    [[line, place]] = report["files"][0]["unread_at"]
    assert line == 1
    assert place == "part 2 of 2 of a message (assistant): null"


def sound(number: int) -> str:
    return f"SOUND-{number}."


def chat(contents: list[Any]) -> Any:
    asked = {"role": "user", "content": "hi"}
    return [each for c in contents for each in (asked, {"role": "assistant", "content": c})]


def langchain(contents: list[Any]) -> Any:
    asked = {"type": "human", "data": {"content": "hi", "type": "human"}}
    answers = [{"type": "ai", "data": {"content": c, "type": "ai"}} for c in contents]
    return [each for answer in answers for each in (asked, answer)]


def responses(contents: list[Any]) -> Any:
    text = [{"type": "input_text", "text": "hi"}]
    asked = {"type": "message", "role": "user", "content": text}
    answers = [{"type": "message", "role": "assistant", "content": c} for c in contents]
    return [each for answer in answers for each in (asked, answer)]


def gemini(contents: list[Any]) -> Any:
    asked = {"role": "user", "parts": [{"text": "hi"}]}
    answers = [{"role": "model", "parts": c} for c in contents]
    return {"contents": [each for answer in answers for each in (asked, answer)]}


def lossless(contents: list[Any]) -> Any:
    answers = [{"role": "assistant", "kind": "dialogue", "parts": c} for c in contents]
    return {"format": "trace/1", "messages": answers, "tools": []}


BAD_PARTS: list[Any] = [
    *(None, 7, {"text": 5}, {"functionCall": {}}, {"functionCall": None}, {"functionResponse": {}})
]


@pytest.mark.parametrize(
    ("shape", "bad"),
    [
        (chat, BAD_BLOCKS),
        (langchain, BAD_BLOCKS),
        (responses, BAD_BLOCKS),
        (gemini, BAD_PARTS),
        (lossless, BAD_BLOCKS),
    ],
)
def test_case_19_every_bad_block_in_every_shape(
    ok: Run, tmp_path: Path, shape: Callable[[Any], Any], bad: list[Any]
) -> None:
    """Each message has a valid text and a bad block; providers get their own blocks."""
    kind = "output_text" if shape is responses else "text"
    texts: list[Any] = [{"type": kind, "text": sound(n)} for n in range(len(bad))]
    if shape is gemini:
        texts = [{"text": each["text"]} for each in texts]
    value = shape([[text, block] for text, block in zip(texts, bad, strict=True)])
    outcome = imported(ok, tmp_path, value)
    shown = compiled(ok, "text")
    assert [n for n in range(len(bad)) if sound(n) not in shown] == []
    found = re.search(r"(\d+) blocks could not be read", outcome.err)
    assert found is not None
    assert int(found[1]) >= len(bad) - 2


def test_case_19_bad_fields_of_a_message(ok: Run, tmp_path: Path) -> None:
    fields: list[Any] = [
        {"tool_calls": "none"},
        {"tool_calls": [None]},
        {"tool_calls": [{"id": "c", "type": "function"}]},
        {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
        {"name": 5},
        {"name": "n" * 5000},
        {"id": {"x": 1}},
    ]
    said = [{"role": "assistant", "content": sound(n), **bad} for n, bad in enumerate(fields)]
    imported(ok, tmp_path, [{"role": "user", "content": "hi"}, *said])
    shown = compiled(ok, "text")
    assert [n for n in range(len(fields)) if sound(n) not in shown] == []


@pytest.mark.parametrize("block", [None, {"type": "hologram"}, {"cachePoint": {}}])
def test_case_20_what_is_committed_as_json_is_refused_by_name(
    repository: Trace, block: Any
) -> None:
    outcome = repository("commit", "--json", stdin=json.dumps(chat([[block]])).encode())
    assert outcome.code == 2
    assert "message 2: content[0]" in outcome.err


@pytest.mark.parametrize("name", ["lc-b-exec", "lc-b-media", "lc-b-reasoning-content"])
def test_case_31_blocks_of_others_are_not_sent(ok: Run, name: str) -> None:
    ok("import", str(case("31") / f"{name}.json"))
    for form in ("anthropic", "openai", "openai-responses", "gemini"):
        sent = compiled(ok, form)
        assert SOUND in sent
        for tag in ("executable_code", '"media"', "reasoning_content"):
            assert tag not in sent


def test_case_31_strict_and_repair_name_the_loss(repository: Trace, ok: Run) -> None:
    ok("import", str(case("31") / "lc-b-exec.json"))
    strict = repository("compile", "--strict", "--format", "anthropic")
    assert strict.code == 7
    assert "a block of provider 'langchain' is not allowed here" in strict.err
    assert b"unknown-block" in repository("repair", "--dry-run").out
    ok("repair")
    assert SOUND in compiled(ok, "text")


def test_case_31_media_is_an_image(ok: Run) -> None:
    ok("import", str(case("31") / "lc-b-media.json"))
    assert "(image image/png, 8 bytes)" in compiled(ok, "text")


CALLS = [
    ("27", "o-bedrock.json", "get", "42", "hi"),
    ("28", "o-otel.json", "get", "42", "hi"),
    ("57", "amp.json", "Read", "1: id", "Read"),
    ("57", "flat_tool_calls.jsonl", "Read", "x=1", "Read it"),
    ("57", "hermes.jsonl", "get_weather", '{"t":5}', "Weather?"),
    ("57", "kimi.jsonl", "ReadFile", "body", "Fix it"),
    ("57", "pi.jsonl", "edit", "Applied edit", "Rename."),
    ("57", "qwen.jsonl", "ls", "a.txt", "List files"),
    ("57", "vercel_model.json", "getWeather", '{"t":5}', "Weather?"),
    ("57", "vercel_ui.json", "getWeather", '{"t":5}', "Weather?"),
]


@pytest.mark.parametrize(("number", "file", "tool", "result", "asked"), CALLS, ids=lambda v: v)
def test_case_27_28_57_messages_of_other_programs(
    ok: Run, number: str, file: str, tool: str, result: str, asked: str
) -> None:
    """A provider is shown the question, the call with its result, and the answer."""
    outcome = ok("import", str(case(number) / file))
    assert "not read" not in outcome.err
    sent = json.loads(compiled(ok, "openai"))["messages"]
    calls = [call for message in sent for call in message.get("tool_calls", ())]
    results = {m["tool_call_id"]: m["content"] for m in sent if m["role"] == "tool"}
    assert [call["function"]["name"] for call in calls] == [tool]
    assert isinstance(json.loads(calls[0]["function"]["arguments"]), dict)
    assert result in json.dumps(results[calls[0]["id"]]).replace("\\", "")
    assert any(m["role"] == "user" and asked in json.dumps(m["content"]) for m in sent)


@pytest.mark.parametrize(("number", "file", "tool", "result", "asked"), CALLS[:2] + CALLS[8:])
def test_case_27_28_57_the_same_with_commit(
    ok: Run, number: str, file: str, tool: str, result: str, asked: str
) -> None:
    ok("commit", "--json", stdin=(case(number) / file).read_bytes())
    shown = compiled(ok, "text")
    assert asked in shown
    assert tool in shown
    assert result in shown


def test_case_57_the_id_of_the_session_names_its_branch(ok: Run) -> None:
    assert b"/pi-456 at" in ok("import", str(case("57") / "pi.jsonl")).out
    assert b"/qs-1 at" in ok("import", str(case("57") / "qwen.jsonl")).out


def test_case_30_human_and_ai_are_roles(ok: Run) -> None:
    ok("import", str(case("30") / "o-human-mixed.json"))
    sent = json.loads(compiled(ok, "openai"))["messages"]
    assert {"role": "user", "content": "hi there"} in sent


def test_a_message_of_which_nothing_can_be_shown_fails_the_import(
    repository: Trace, tmp_path: Path
) -> None:
    said = [{"role": "usr", "content": "hi"}, {"role": "user", "content": "there"}]
    (tmp_path / "chat.json").write_text(json.dumps(said))
    outcome = repository("import", "chat.json")
    assert outcome.code == 2
    assert "1 message of 2 could not be read" in outcome.err
    assert b"2 commits, 2 messages" in outcome.out
    assert b"there" in repository("compile", "--format", "text").out


def test_case_48_json_is_committed_with_an_option(ok: Run) -> None:
    script = (case("48") / "run.sh").read_text()
    assert "trace commit --json" in script
    ok("commit", "--json", stdin=b'[{"role":"user","content":"a"}]')
    assert compiled(ok, "text").splitlines()[1] == "a"


TYPOS: list[tuple[Callable[[], Any], str]] = [
    (lambda: {"role": "usr", "content": "x"}, "unknown role 'usr'; did you mean 'user'?"),
    (
        lambda: {"role": "user", "content": [{"type": "txt", "text": "x"}]},
        "content[0]: unknown type of block 'txt'; did you mean 'text'?",
    ),
    (lambda: [{"role": "user", "content": "x"}], "append takes one message"),
    (lambda: 5, "int is not a message"),
    (lambda: Message("user", "x", kind="Dialog"), "did you mean 'dialogue'?"),
    (lambda: Message("user", [Text(5)]), "text of Text is int, not text"),  # type: ignore[arg-type]
    (lambda: Message("user", [Opaque("x", {})]), "data of Opaque is dict"),  # type: ignore[arg-type]
    (lambda: Message("user", [Image("image/png", "abc")]), "data of Image is str, not bytes"),  # type: ignore[arg-type]
    (lambda: Message("assistant", [ToolCall(1, "f", {})]), "id of ToolCall is int"),  # type: ignore[arg-type]
    (lambda: ToolCall("1", "f", {1}), "arguments of ToolCall"),  # type: ignore[arg-type]
    (lambda: ToolResult("1", None), "content of ToolResult is NoneType"),  # type: ignore[arg-type]
    (lambda: Message("tool", [ToolResult("1", ["a"])]), "has str, not parts"),  # type: ignore[list-item]
    (lambda: Message("assistant", [Reasoning("a", b"s")]), "signature of Reasoning is bytes"),  # type: ignore[arg-type]
    (lambda: Message("user", [{"type": "text"}]), "not a message part: dict"),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("make", "told"), TYPOS, ids=[told[:30] for _, told in TYPOS])
def test_a_slip_in_python_is_refused_by_name(
    tmp_path: Path, make: Callable[[], Any], told: str
) -> None:
    with Repo.init(tmp_path) as repo:
        with pytest.raises(InvalidMessageError) as refused:
            repo.append(make())
        assert told in str(refused.value)
        assert "\n" not in str(refused.value)


def test_what_is_meant_is_accepted(tmp_path: Path) -> None:
    with Repo.init(tmp_path) as repo:
        repo.append({"role": "user", "content": "a"})
        repo.append("user", [{"type": "text", "text": "b"}, Text("c")])  # type: ignore[list-item]
        repo.append("user", [Opaque("x", "{}")])
        repo.append(Message("assistant", [ToolCall("1", "f", {})]))
        repo.append("tool", [ToolResult("1", Text("d"))])
        with repo.batch() as draft:
            draft.append({"role": "user", "content": "e"})
        said = [part for message in repo.compile().messages for part in message.parts]
    assert said[:4] == [Text("a"), Text("b"), Text("c"), Opaque("x", b"{}")]
    assert said[-1] == Text("e")


def test_an_unknown_model_is_named_with_the_nearest(repository: Trace) -> None:
    for words in (["compile"], ["status"]):
        outcome = repository(*words, "--model", "gpt-99")
        assert "unknown model 'gpt-99': its tokens are estimated; did you mean 'gpt-" in outcome.err
    for known in ("gpt-5-mini", "claude-sonnet-4-5", "google/gemini-2.5-pro"):
        assert "unknown model" not in repository("compile", "--model", known).err


@pytest.mark.parametrize(
    ("name", "arguments", "line"),
    [
        ("Bash", '{"description": "Run", "command": "pytest -q"}', "[Bash] pytest -q"),
        ("shell", '{"command":["bash","-lc","ls"]}', "[shell] bash -lc ls"),
        ("Write", '{"content":"x","file_path":"a.py"}', "[Write] a.py"),
        ("Bash", '{"command":"echo \\"a\\"\\nls', '[Bash] echo "a" ls'),
        ("now", "{}", "[now]"),
        ("now", "", "[now]"),
        ("apply_patch", "*** Begin", "[apply_patch] *** Begin"),
        ("odd", '{"depth":3}', '[odd] {"depth":3}'),
    ],
)
def test_a_line_says_what_a_call_did(name: str, arguments: str, line: str) -> None:
    assert call_line(name, arguments) == line


def test_log_show_table_and_diff_say_the_same_of_a_call(ok: Run, repository: Trace) -> None:
    ok("import", str(case("57") / "flat_tool_calls.jsonl"))
    for words in (
        ["log", "--oneline"],
        ["log"],
        ["show", "HEAD~2"],
        ["compile", "--table"],
    ):
        assert "Reading. [Read] a.toml" in ok(*words).text, words
    assert "tool: -> x=1" in ok("log", "--oneline").text


def test_subjects_remain_beside_the_branch_of_a_session(ok: Run, tmp_path: Path) -> None:
    name = "89c670d1-13e6-5e56-a540-26baed822c05"
    (tmp_path / f"{name}.json").write_text('[{"role":"user","content":"Count the words"}]')
    ok("import", f"{name}.json")
    [line] = ok("log", "--oneline", terminal=True).lines
    plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
    assert "(HEAD -> …/89c670d1…)" in plain
    assert "Count the" in plain[:80]
    assert name in ok("log", "--oneline").text


def test_calls_whose_results_are_text_stay_visible(
    ok: Run, repository: Trace, tmp_path: Path
) -> None:
    """Cline's files have blocks for calls, and texts for results."""
    said: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "Go."}]}]
    for number in range(3):
        call = {"type": "tool_use", "id": f"t{number}", "name": "read_file", "input": {}}
        answer = {"type": "text", "text": f"[read_file for 'a{number}'] Result:\nx = {number}"}
        said += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    path = tmp_path / "api_conversation_history.json"
    path.write_text(json.dumps(said), encoding="utf-8")
    ok("import", str(path))
    for form, mark in (
        ("anthropic", '"tool_use"'),
        ("openai", '"tool_calls"'),
        ("openai-responses", '"function_call"'),
        ("gemini", '"functionCall"'),
    ):
        shown = ok("compile", "--format", form)
        assert shown.text.count(mark) == 3
        assert shown.err.count("an error result added") == 3
        assert (
            ok("export", "--format", {"gemini": "gemini-contents"}.get(form, form)).text.count(mark)
            == 3
        )
    found = repository("repair", "--dry-run")
    assert found.text.count("an error result added") == 3
    before = ok("compile", "--format", "anthropic").out
    branch = json.loads(ok("status", "--json").out)["branch"]
    ok("repair")
    assert ok("compile", f"repaired/{branch}", "--format", "anthropic").out == before

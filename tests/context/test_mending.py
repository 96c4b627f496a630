"""Faults found in broken contexts, and their repairs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.message_strategies import contexts
from tests.support.valid_requests import assert_valid_requests
from trace_store.context.faults import CODES, PROVIDERS
from trace_store.context.repair_steps import (
    NOTHING_LEFT,
    RepairedContext,
    repair_context,
)
from trace_store.errors import InvalidInputError
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.media import BEGINNING
from trace_store.providers.rendering import FAULTS, render
from trace_store.providers.validity import NOT_RECORDED

ROOT = Path(__file__).resolve().parents[2]
CLAUDE = "claude-opus-4-6"
ASK = Message("user", "Plan the release.")


@dataclass(frozen=True)
class Ghost:
    """The placeholder of a removed message, as a compiled context holds it."""

    role: str
    parts: tuple[Part, ...] = (Text("[removed ab12cd34.0]"),)
    kind: str = "dialogue"
    name: str = ""
    model: str = ""
    id: str = ""
    ghost: bool = True


def call(id_: str, name: str = "Bash", arguments: str = "{}") -> ToolCall:
    return ToolCall(id_, name, arguments)


def says(*parts: Part, id: str = "", model: str = CLAUDE) -> Message:
    return Message("assistant", parts, model=model, id=id)


def answers(*parts: Part) -> Message:
    return Message("tool", parts)


def missing(id_: str) -> ToolResult:
    return ToolResult(id_, NOT_RECORDED, is_error=True)


def mended(messages: Sequence[Any], **options: Any) -> tuple[list[str], list[tuple[str, Any]]]:
    """Return the codes of faults, and the roles and parts of the repaired context."""
    found = repair_context(messages, **options)
    if not options.get("providers"):
        assert_valid_requests(found.items, strict=True)
    codes = [fault.code for fault in found.faults]
    return codes, [(item.role, item.parts) for item in found.items]


def parts_of(messages: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(message.role, message.parts) for message in messages]


ANSWER = says(Text("Done."))
RESULT_A, RESULT_B = ToolResult("a", "one"), ToolResult("b", "two")

# Each: code, broken context, repaired context.
CASES: list[tuple[str, list[Any], list[Any]]] = [
    ("orphan-call", [ASK, says(call("a"))], [ASK, says(call("a")), answers(missing("a"))]),
    (
        "orphan-call",
        [ASK, says(call("a"), call("b")), answers(RESULT_A), ANSWER],
        [ASK, says(call("a"), call("b")), answers(missing("b")), answers(RESULT_A), ANSWER],
    ),
    ("orphan-result", [ASK, answers(RESULT_A), ANSWER], [ASK, ANSWER]),
    (
        "duplicate-result",
        [ASK, says(call("a")), answers(RESULT_A), answers(ToolResult("a", "other")), ANSWER],
        [ASK, says(call("a")), answers(RESULT_A), ANSWER],
    ),
    ("misplaced-call", [Message("user", [Text("Go."), call("a")])], [Message("user", "Go.")]),
    (
        "moved-result",
        [ASK, answers(RESULT_A), says(call("a")), ANSWER],
        [ASK, says(call("a")), answers(RESULT_A), ANSWER],
    ),
    (
        "moved-result",
        [ASK, says(call("a")), Message("user", "Hurry."), answers(RESULT_A), ANSWER],
        [ASK, says(call("a")), answers(RESULT_A), Message("user", "Hurry."), ANSWER],
    ),
    (
        "moved-result",
        [ASK, says(call("a")), answers(RESULT_B, RESULT_A), says(call("b")), ANSWER],
        [ASK, says(call("a")), answers(RESULT_A), says(call("b")), answers(RESULT_B), ANSWER],
    ),
    (
        "moved-result",
        [ASK, says(call("a")), Message("system", "Be brief."), answers(RESULT_A), ANSWER],
        [ASK, says(call("a")), answers(RESULT_A), Message("system", "Be brief."), ANSWER],
    ),
    ("tool-without-call", [ASK, answers(Text("Go on."))], [ASK, Message("user", "Go on.")]),
    ("empty-message", [ASK, says(), ANSWER], [ASK, ANSWER]),
    ("leading-assistant", [ANSWER, ASK], [Message("user", BEGINNING), ANSWER, ASK]),
    (
        "leading-assistant",
        [Message("system", "Be brief."), ANSWER],
        [Message("system", "Be brief."), Message("user", BEGINNING), ANSWER],
    ),
    ("no-messages", [], [Message("user", NOTHING_LEFT)]),
    ("blank-text", [ASK, says(Text(" \n"), Text("Done."))], [ASK, ANSWER]),
    ("blank-text", [ASK, says(Text(""), Text("Done."))], [ASK, ANSWER]),
    (
        "broken-character",
        [ASK, says(Text("a \ud83d"), model="")],
        [ASK, says(Text("a \ufffd"), model="")],
    ),
    (
        "broken-character",
        [ASK, says(Reasoning("a \ud83d", "Eos"), Text("Done."))],
        [ASK, ANSWER],
    ),
    (
        "invalid-arguments",
        [ASK, says(call("a", arguments='{"x": ')), answers(RESULT_A)],
        [ASK, says(call("a", arguments='{"input":"{\\"x\\": "}')), answers(RESULT_A)],
    ),
    (
        "invalid-image",
        [Message("user", [Image("image/png", b"")])],
        [Message("user", "[image not shown: empty]")],
    ),
    (
        "invalid-image",
        [ASK, says(call("a")), answers(ToolResult("a", [Image("image/tiff", b"II*")]))],
        [
            ASK,
            says(call("a")),
            answers(ToolResult("a", "[image not shown: image/tiff, 3 bytes]")),
        ],
    ),
    ("unsigned-reasoning", [ASK, says(Reasoning("Hm."), Text("Done."))], [ASK, ANSWER]),
    (
        "broken-block",
        [ASK, says(Opaque("anthropic", b'{"type":"tool_use","name":"Bash"}'), Text("Done."))],
        [ASK, ANSWER],
    ),
    (
        "unknown-block",
        [ASK, says(Opaque("langchain", b'{"type":"video"}'), Text("Done."))],
        [ASK, ANSWER],
    ),
    (
        "unknown-block",
        [ASK, says(call("a")), answers(ToolResult("a", [Text("one"), Opaque("unread", b"null")]))],
        [
            ASK,
            says(call("a")),
            answers(
                ToolResult(
                    "a",
                    [Text("one"), Text("[content not shown: in the form of unread]")],
                )
            ),
        ],
    ),
    ("cut-turn", [ASK, says(Reasoning("Hm.", "Eos"))], [ASK]),
    (
        "cut-turn",
        [ASK, says(Text("Done."), Reasoning("Hm.", "Eos")), Message("user", "Thanks.")],
        [ASK, ANSWER, Message("user", "Thanks.")],
    ),
    (
        "reused-call-id",
        [ASK, says(call("a")), answers(RESULT_A), says(call("a")), answers(RESULT_A)],
        [
            ASK,
            says(call("a")),
            answers(RESULT_A),
            says(call("a-2")),
            answers(ToolResult("a-2", "one")),
        ],
    ),
    (
        "duplicate-message",
        [ASK, says(Text("Done."), id="m1"), ASK, says(Text("Done."), id="m1")],
        [ASK, says(Text("Done."), id="m1")],
    ),
    (
        "duplicate-message",
        [ASK, says(call("a"), call("a")), answers(RESULT_A)],
        [ASK, says(call("a")), answers(RESULT_A)],
    ),
]


@pytest.mark.parametrize(("code", "broken", "sound"), CASES, ids=[case[0] for case in CASES])
def test_what_is_broken_is_found_and_mended(code: str, broken: list[Any], sound: list[Any]) -> None:
    codes, left = mended(broken)
    assert set(codes) == {code}
    assert left == parts_of(sound)
    assert mended(sound) == ([], left)


def test_every_code_is_explained_and_tried() -> None:
    assert {code for code, _, _ in CASES} == set(CODES)
    assert set(CODES) >= FAULTS


SOUND: dict[str, list[Any]] = {
    "a prompt that was not answered yet": [ASK],
    "a session that ends with the answer": [ASK, ANSWER],
    "calls recorded one by one, results together": [
        ASK,
        says(call("a")),
        says(call("b")),
        answers(RESULT_A, RESULT_B),
        ANSWER,
    ],
    "text beside results": [ASK, says(call("a")), answers(RESULT_A, Text("Hurry.")), ANSWER],
    "a system message in the middle": [ASK, ANSWER, Message("system", "Be brief."), ASK],
    "a tool that printed nothing": [ASK, says(call("a")), answers(ToolResult("a", "")), ANSWER],
    "a ghost between a call and its result": [
        ASK,
        says(call("a")),
        Ghost("user"),
        answers(RESULT_A),
    ],
    "a ghost of a tool message": [ASK, Ghost("tool"), ANSWER],
    "the same question twice": [ASK, says(Text("Yes."), id="m1"), ASK, says(Text("Yes."), id="m2")],
    "a message of the provider in two pieces": [
        ASK,
        says(Text("I look."), id="m1"),
        says(call("a"), id="m1"),
        answers(RESULT_A),
    ],
    "reasoning of another model": [ASK, says(Reasoning("Hm."), Text("Done."), model="qwen3-32b")],
    "the signature at the end of a turn of Gemini": [
        ASK,
        says(Text("Done."), Reasoning("", "U2ln"), Text(""), model="gemini-3-pro"),
    ],
    "reasoning of another provider's model at the end of a turn": [
        ASK,
        says(Reasoning("Hm.", "gAAA"), model="gpt-5.5"),
        Message("user", "Go on."),
    ],
    "the same words twice in a message that came in pieces": [
        ASK,
        says(Text("I look."), Text("I look."), id="msg_1", model="gpt-5.5"),
    ],
    "reasoning in a message before that with the call": [
        ASK,
        says(Reasoning("Hm.", "Eos")),
        says(call("a")),
        answers(RESULT_A),
    ],
    "an id and a name that some providers do not take": [
        ASK,
        says(call("functions.bash:0", "mcp.files/read")),
        answers(ToolResult("functions.bash:0", "one")),
    ],
    "arguments that are free text": [
        ASK,
        says(ToolCall("a", "patch", "*** Begin", "text")),
        answers(RESULT_A),
    ],
    "a call without arguments": [ASK, says(call("a", arguments="")), answers(RESULT_A)],
}


@pytest.mark.parametrize("name", SOUND)
def test_what_is_sound_is_left_alone(name: str) -> None:
    found = repair_context(SOUND[name])
    assert not found.faults
    assert not found.removed
    assert [item.at for item in found.items] == list(range(len(SOUND[name])))
    assert not any(item.reworded or item.moved for item in found.items)


def test_a_finding_says_where_and_for_whom() -> None:
    (fault,) = repair_context([ASK, says(call("a", arguments="[1]")), answers(RESULT_A)]).faults
    assert (fault.at, fault.where, fault.address) == (1, "message 2", None)
    assert set(fault.providers) == {"anthropic", "gemini"} & set(PROVIDERS)
    (fault,) = repair_context([ASK, says(call("a"))]).faults
    assert fault.providers == PROVIDERS


def test_only_what_the_chosen_providers_refuse_is_mended() -> None:
    broken = [says(call("a", arguments="[1]"))]
    codes, left = mended(broken, providers=["openai"])
    assert codes == ["orphan-call"]
    assert left == parts_of([*broken, answers(missing("a"))])
    assert mended(broken)[0] == ["invalid-arguments", "orphan-call", "leading-assistant"]
    with pytest.raises(InvalidInputError):
        repair_context(broken, providers=["nobody"])


def test_a_copied_stretch_goes_whole_and_what_follows_it_stays() -> None:
    stretch = [
        ASK,
        says(call("a"), id="m1"),
        answers(RESULT_A),
        says(Text("Half way."), id="m2"),
    ]
    after = [Message("user", "Go on."), says(Text("There."), id="m3")]
    codes, left = mended([*stretch, *stretch, *after])
    assert codes == ["duplicate-message"] * 4
    assert left == parts_of([*stretch, *after])


def test_a_copy_that_was_cut_short_is_a_copy() -> None:
    whole = says(Text("I look."), call("a"), id="m1")
    context = [ASK, whole, answers(RESULT_A), says(Text("I look."), id="m1"), ANSWER]
    assert mended(context) == (
        ["duplicate-message"],
        parts_of([ASK, whole, answers(RESULT_A), ANSWER]),
    )


def test_a_missing_result_stands_behind_calls_that_belong_together() -> None:
    """Parallel calls that were recorded one by one stay one turn."""
    calling = [ASK, says(call("a"), call("b")), says(call("c"))]
    answered = [answers(RESULT_A), answers(ToolResult("c", "three")), ANSWER]
    codes, left = mended([*calling, *answered])
    assert codes == ["orphan-call"]
    assert left == parts_of([*calling, answers(missing("b")), *answered])


# Few ids and few roles, so that calls and results meet and miss each other in every way.
ids = st.sampled_from("abcd")
calls = ids.map(call)
results = st.builds(ToolResult, ids, st.sampled_from(["x", "y"]))
pieces = st.one_of(calls, calls, results, st.just(Text("hm")), st.just(Reasoning("r", "sig")))
entangled = st.lists(
    st.one_of(
        st.builds(says, st.just(Text("so")) | calls, pieces, id=st.sampled_from(["", "m1", "m2"])),
        st.lists(st.one_of(results, results, st.just(Text("said"))), min_size=1, max_size=3).map(
            lambda parts: answers(*parts)
        ),
        st.sampled_from([ASK, Message("system", "s"), says(Reasoning("r", "sig"))]),
        st.sampled_from(["user", "assistant", "tool"]).map(Ghost),
    ),
    max_size=9,
)
chosen = st.sampled_from([(), *((name,) for name in PROVIDERS)])


def assert_mended(messages: Sequence[Any], providers: tuple[str, ...]) -> RepairedContext:
    found = repair_context(messages, providers=providers)
    for name in providers or PROVIDERS:
        render(name, found.items, strict=True)
    assert not repair_context(found.items, providers=providers).faults, "mended once is mended"
    faults = [
        repair
        for name in providers or PROVIDERS
        for repair in render(name, messages).repairs
        if repair.code in FAULTS
    ]
    assert found.faults or not faults, "what strict refuses is found"
    changed = found.removed or any(i.reworded or i.moved or i.is_new for i in found.items)
    assert bool(found.faults) == bool(changed)
    return found


@settings(max_examples=examples(600), deadline=None)
@given(contexts, chosen)
def test_any_context_is_mended(messages: list[Message], providers: tuple[str, ...]) -> None:
    assert_mended(messages, providers)


@settings(max_examples=examples(600), deadline=None)
@given(entangled, chosen)
def test_any_tangle_of_calls_and_results_is_mended(
    messages: list[Any], providers: tuple[str, ...]
) -> None:
    found = assert_mended(messages, providers)
    ghosts = [message for message in messages if isinstance(message, Ghost)]
    assert [item.parts for item in found.items if item.ghost] == [g.parts for g in ghosts]


@settings(max_examples=examples(200), deadline=None)
@given(entangled)
def test_no_tool_output_is_made_up(messages: list[Any]) -> None:
    """Repairs invent nothing: added text only says that nothing was recorded."""
    said = {part for message in messages for part in message.parts if isinstance(part, ToolResult)}
    contents = {part.content for part in said}
    for item in repair_context(messages).items:
        for part in item.parts:
            if item.is_new and isinstance(part, ToolResult) and part.content not in contents:
                assert part.is_error
                assert part.content == (Text(NOT_RECORDED),)


def test_every_code_is_on_the_page_and_none_disappears() -> None:
    page = (ROOT / "docs" / "repairing.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"(?m)^\| `([a-z-]+)` \|", page)) == sorted(CODES)
    pinned = (ROOT / "tests" / "format" / "repair-codes.txt").read_text(encoding="utf-8").split()
    assert pinned == sorted(CODES), "only ever add lines"

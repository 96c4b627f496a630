"""Calls and results: the rule for each fault, once for every provider."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.valid_requests import assert_valid_requests
from trace_store.base.oid import hash_object
from trace_store.context.repair_steps import repair_context
from trace_store.errors import RenderError
from trace_store.objects.address import Address
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Part, Text, ToolCall, ToolResult
from trace_store.providers.rendering import render
from trace_store.providers.validity import NOT_RECORDED, pair


def asked(*ids: str, text: str = "") -> Message:
    said: list[Part] = [Text(text)] if text else []
    return Message("assistant", [*said, *(ToolCall(id, "Bash", "{}") for id in ids)])


def answered(*ids: str, role: str = "tool") -> Message:
    return Message(role, [ToolResult(id, f"out of {id}") for id in ids])


def user(text: str = "Go on.") -> Message:
    return Message("user", text)


def outline(messages: list[Message]) -> list[str]:
    """Summarize the request for OpenAI; both requests are checked to be valid."""
    shown: list[str] = []
    for message in assert_valid_requests(messages)["openai"].request["messages"]:
        words = [message["role"]]
        if isinstance(message["content"], str):
            words.append(message["content"])
        words += [f"+{call['id']}" for call in message.get("tool_calls", [])]
        words += [f"={message['tool_call_id']}"] if "tool_call_id" in message else []
        shown.append(" ".join(words))
    return shown


def codes(messages: list[Message], renderer: str = "openai") -> list[str]:
    return [repair.code for repair in render(renderer, messages).repairs]


def test_a_sound_context_is_not_repaired() -> None:
    messages = [
        Message("system", "Be brief."),
        user(),
        asked("a", "b"),
        answered("b", "a"),
        user(),
        asked("c"),
        answered("c", role="user"),
        Message("assistant", "Done."),
    ]
    assert codes(messages) == codes(messages, "anthropic") == []
    assert outline(messages)[2:5] == ["assistant +a +b", "tool out of a =a", "tool out of b =b"]


NOTE = f"[tool error]\n{NOT_RECORDED}"


def test_a_call_without_a_result_stays_visible() -> None:
    messages = [user(), asked("a", "b", text="Both."), answered("a"), user()]
    assert outline(messages) == [
        "user Go on.",
        "assistant Both. +a +b",
        "tool out of a =a",
        f"tool {NOTE} =b",
        "user Go on.",
    ]
    assert codes(messages) == ["orphan-call"]


@pytest.mark.parametrize(
    "said",
    [
        [asked("a"), user("The result: 3")],
        [asked("a", "b"), answered("b"), user()],
        [asked("a"), asked("b"), answered("a"), answered("b"), asked("c")],
        [asked("a", text="one"), user(), asked("a", text="two"), answered("a")],
    ],
)
def test_a_renderer_and_a_repair_treat_a_call_without_a_result_alike(said: list[Message]) -> None:
    messages = [user(), *said]
    repaired = repair_context(messages)
    for name in ("anthropic", "openai", "openai-responses", "gemini"):
        request = render(name, messages).request
        assert NOT_RECORDED in str(request) or not repaired.faults
        assert render(name, repaired.items).request == request


def test_c17_a_call_taken_out_takes_its_result_along() -> None:
    messages = [user(), Message("assistant", "Both."), answered("a"), user()]
    assert outline(messages) == ["user Go on.", "assistant Both.", "user Go on."]
    assert codes(messages) == ["orphan-result"]


def test_a_message_that_only_called_stays_with_its_call() -> None:
    assert outline([user("one"), asked("a"), user("two")]) == [
        "user one",
        "assistant +a",
        f"tool {NOTE} =a",
        "user two",
    ]


def test_a_call_that_still_waits_gets_its_result_in_place_of_the_note() -> None:
    waiting = [user(), asked("a", text="Let me see.")]
    assert outline(waiting) == ["user Go on.", "assistant Let me see. +a", f"tool {NOTE} =a"]
    assert outline([*waiting, answered("a")]) == [
        "user Go on.",
        "assistant Let me see. +a",
        "tool out of a =a",
    ]


def test_a_second_result_is_left_out() -> None:
    messages = [user(), asked("a"), answered("a"), Message("tool", [ToolResult("a", "again")])]
    assert outline(messages) == ["user Go on.", "assistant +a", "tool out of a =a"]
    assert codes(messages) == ["duplicate-result"]


def test_a_result_apart_from_its_call_is_moved_to_it() -> None:
    messages = [asked("a"), user("hurry"), answered("a")]
    assert outline(messages) == ["assistant +a", "tool out of a =a", "user hurry"]
    assert codes(messages) == ["moved-result"]


def test_a_result_before_its_call_is_moved_to_it() -> None:
    messages = [user(), answered("a"), asked("a")]
    assert outline(messages) == ["user Go on.", "assistant +a", "tool out of a =a"]
    assert codes(messages) == ["moved-result"]


def test_parallel_calls_recorded_as_several_messages_are_one_turn() -> None:
    messages = [user(), asked("a", text="one"), asked("b"), answered("a"), answered("b")]
    request = assert_valid_requests(messages)["openai"].request
    assert [m["role"] for m in request["messages"]] == ["user", "assistant", "tool", "tool"]
    assert codes(messages) == []


def test_an_id_used_again_is_paired_with_the_newest_call() -> None:
    """Some providers restart the numbering of calls in each message."""
    messages = [asked("0"), answered("0"), asked("0"), Message("tool", [ToolResult("0", "two")])]
    assert outline(messages) == [
        "assistant +0",
        "tool out of 0 =0",
        "assistant +0-2",
        "tool two =0-2",
    ]
    assert codes(messages) == ["call-id-changed"]


def test_an_interrupted_call_made_again_is_understood() -> None:
    messages = [asked("a", text="one"), user(), asked("a", text="two"), answered("a")]
    assert outline(messages) == [
        "assistant one +a",
        f"tool {NOTE} =a",
        "user Go on.",
        "assistant two +a-2",
        "tool out of a =a-2",
    ]


def test_an_id_twice_in_one_message_is_paired_in_order() -> None:
    calls = Message("assistant", [ToolCall("", "Bash", "1"), ToolCall("", "Bash", "2")])
    results = Message("tool", [ToolResult("", "one"), ToolResult("", "two")])
    request = assert_valid_requests([user(), calls, results])["openai"].request
    arguments = [call["function"]["arguments"] for call in request["messages"][1]["tool_calls"]]
    assert arguments == ["1", "2"]
    assert [message["content"] for message in request["messages"][2:]] == ["one", "two"]


def test_a_call_of_another_role_is_left_out_with_its_result() -> None:
    messages = [Message("user", [Text("hi"), ToolCall("a", "Bash", "{}")]), answered("a")]
    assert outline(messages) == ["user hi"]
    assert codes(messages) == ["misplaced-call", "orphan-result"]


def test_text_that_follows_a_result_in_one_assistant_message_stays_behind_it() -> None:
    parts = [ToolCall("a", "Bash", "{}"), ToolResult("a", "out"), Text("So it is.")]
    assert outline([user(), Message("assistant", parts)]) == [
        "user Go on.",
        "assistant +a",
        "tool out =a",
        "assistant So it is.",
    ]


def test_text_before_results_in_one_user_message_is_no_fault() -> None:
    mixed = Message("user", [Text("hurry"), ToolResult("a", "out")])
    assert outline([user(), asked("a"), mixed]) == [
        "user Go on.",
        "assistant +a",
        "tool out =a",
        "user hurry",
    ]
    assert codes([user(), asked("a"), mixed]) == []


def test_a_tool_message_that_answers_nothing_is_user_text() -> None:
    assert outline([Message("tool", "42")]) == ["user 42"]
    assert codes([Message("tool", "42")]) == ["tool-without-call"]


def test_empty_messages_are_left_out() -> None:
    messages = [user(), Message("assistant", ""), Message("user", []), user()]
    assert outline(messages) == ["user Go on.", "user Go on."]
    assert codes(messages) == ["empty-message", "empty-message"]


@pytest.mark.parametrize("renderer", ["openai", "anthropic"])
def test_an_empty_context_says_so(renderer: str) -> None:
    rendered = render(renderer, [])
    assert rendered.request == {"messages": []}
    assert [repair.code for repair in rendered.repairs] == ["no-messages"]
    with pytest.raises(RenderError, match="nothing to send"):
        render(renderer, [], strict=True)


class Ghost(Message):
    """The placeholder of a removed message, as a compiled context gives it."""

    __slots__ = ()
    ghost = True


def test_a_ghost_is_no_fault() -> None:
    ghost = Ghost("tool", "[taken out]")
    messages = [user(), asked("a", "b"), ghost, answered("b")]
    assert outline(messages) == [
        "user Go on.",
        "assistant +a +b",
        f"tool {NOTE} =a",
        "tool out of b =b",
        "user [taken out]",
    ]
    assert codes(messages) == ["orphan-call"]


class Addressed(Message):
    """A message as a compiled context gives it."""

    __slots__ = ("address",)

    def __init__(self, message: Message, address: Any) -> None:
        super().__init__(message.role, message.parts)
        self.address = address


@pytest.mark.parametrize("renderer", ["openai", "anthropic"])
def test_strict_names_the_address_of_the_first_fault(renderer: str) -> None:
    commit = hash_object(b"a commit")
    messages = [
        Addressed(message, Address.of(commit, number))
        for number, message in enumerate([user(), asked("a", text="x"), user(), answered("b")])
    ]
    with pytest.raises(RenderError) as refused:
        render(renderer, messages, strict=True)
    error = refused.value
    assert (error.address, error.repair, error.at) == (
        Address.of(commit, 1),
        "orphan-call",
        1,
    )
    assert str(error) == (
        f"{str(commit)[:12]}.1: call 'a' has no result in the context (and 1 more)"
    )
    assert [repair.where for repair in render(renderer, messages).repairs] == [
        f"{str(commit)[:12]}.1",
        f"{str(commit)[:12]}.3",
    ]


def test_a_result_that_names_its_call_belongs_to_it() -> None:
    """Though the newest call of its id waits as well, and though it comes late."""
    commit = hash_object(b"a commit")
    first, second = Address.of(commit, 0), Address.of(commit, 1)
    said = [
        asked("a"),
        asked("a"),
        Message("tool", [ToolResult("a", "one", call=first)]),
        Message("tool", [ToolResult("a", "two", call=second)]),
        Message("tool", [ToolResult("a", "three", call=first)]),
    ]
    messages = [Addressed(each, Address.of(commit, n)) for n, each in enumerate(said)]
    result_of, faults = pair(messages)
    assert result_of == {(0, 0): (2, 0), (1, 0): (3, 0)}
    assert [(fault.code, fault.place) for fault in faults] == [("duplicate-result", (4, 0))]
    result_of, _ = pair([messages[2], *messages[:2], messages[3]])
    assert result_of == {(1, 0): (0, 0), (2, 0): (3, 0)}


def test_strict_takes_what_only_a_provider_cannot_show() -> None:
    image = Image("image/tiff", b"II")
    messages = [Message("user", [Text("\ud83d"), image]), Message("assistant", "Done. ")]
    for renderer in ("openai", "anthropic"):
        assert render(renderer, messages, strict=True).repairs


def test_many_calls_of_one_id_take_linear_time() -> None:
    messages = [message for _ in range(5000) for message in (asked("0"), answered("0"))]
    request = render("anthropic", messages).request
    ids = [b["id"] for m in request["messages"] for b in m["content"] if b["type"] == "tool_use"]
    assert len(set(ids)) == 5000
    assert ids[:3] == ["0", "0-2", "0-3"]

"""What is rendered can be read again: equal messages from lossless JSON, the documented losses from the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.message_strategies import MODELS, likely_contexts, sound_contexts
from tests.support.pictures import PNG as PNG_BYTES
from tests.support.pictures import PNG_TEXT
from tests.support.request_losses import LOSSES, TAKEN_AWAY, changed, without
from trace_store.objects.message import Message, part_blobs
from trace_store.objects.parts import Data, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.documents import parse_messages
from trace_store.providers.rendering import LOST_BY_DESIGN, render
from trace_store.providers.wire import to_bytes
from trace_store.repo.repository import Repo

PAGE = Path(__file__).resolve().parents[2] / "docs" / "format" / "rendering.md"
PROVIDERS = sorted(MODELS)


def read_again(form: str, messages: list[Message]) -> list[Message]:
    request = render(form, messages, model=MODELS.get(form)).request
    if not any(request.get(key) for key in ("messages", "input", "contents")):
        return []
    return parse_messages(to_bytes(request).decode("utf-8"))


@settings(max_examples=examples(400), deadline=None)
@given(likely_contexts.filter(bool))
def test_lossless_json_gives_equal_messages_blobs_and_prefix_hashes(
    messages: list[Message],
) -> None:
    again = read_again("json", messages)
    assert again == messages
    assert stored(again) == stored(messages)


def stored(messages: list[Message]) -> tuple[list[bytes], list[list[bytes]]]:
    """The prefix hash at each message, and the ids of all content, when the messages are committed."""
    with Repo.memory() as repo:
        with repo.batch() as batch:
            batch.extend(messages)
        context = repo.compile()
        return context.prefix_hashes(), [part_blobs(m.stored["parts"]) for m in context.messages]


@pytest.mark.parametrize("form", PROVIDERS)
def test_a_providers_form_loses_what_is_documented_and_nothing_else(form: str) -> None:
    @settings(max_examples=examples(250, daily=15), deadline=None)
    @given(sound_contexts(form))
    def check(messages: list[Message]) -> None:
        codes = {repair.code for repair in render(form, messages, model=MODELS[form]).repairs}
        assume(not codes - {"call-unsigned"})
        again = read_again(form, messages)
        assert without(form, again) == without(form, messages)

    check()


@pytest.mark.parametrize("form", PROVIDERS)
def test_a_second_round_loses_nothing_more(form: str) -> None:
    """A context round-trips through a request, except for model and provider."""

    @settings(max_examples=examples(100), deadline=None)
    @given(sound_contexts(form))
    def check(messages: list[Message]) -> None:
        spoken = {"assistant": MODELS[form]}
        once = [changed(m, model=spoken.get(m.role, "")) for m in read_again(form, messages)]
        twice = [changed(m, model=spoken.get(m.role, "")) for m in read_again(form, once)]
        assert twice == once

    check()


def call(number: int, arguments: str = "{}", format: str = "json") -> ToolCall:
    return ToolCall(f"call_{number}", "Bash", arguments, format)


def result(number: int, *parts: Text | Image, is_error: bool = False) -> ToolResult:
    return ToolResult(f"call_{number}", parts or "ok", is_error)


USER = Message("user", "Go on.")
# For each loss the least context that has it.
CASES: dict[str, list[Message]] = {
    "kind": [Message("user", "Go on.", kind="artifact")],
    "model": [USER, Message("assistant", "Yes.", model="some-model")],
    "message-id": [USER, Message("assistant", "Yes.", id="msg_1")],
    "name": [Message("user", "Go on.", name="ada")],
    "empty-text": [Message("user", [Text(""), Text("Go on.")])],
    "data-url": [Message("user", [Image(url=f"data:image/png;base64,{PNG_TEXT}")])],
    "data-schema": [USER, Message("assistant", [Data("example/1", {"a": 1})])],
    "results-apart": [
        USER,
        Message("assistant", [call(1), call(2)]),
        Message("user", [Text("Here."), result(2), result(1)]),
    ],
    "split-calls": [
        USER,
        Message("assistant", [call(1)]),
        Message("assistant", [call(2)]),
        Message("tool", [result(1)]),
        Message("tool", [result(2)]),
    ],
    "neighbours": [
        USER,
        Message("assistant", "Yes."),
        Message("assistant", [call(1)]),
        Message("tool", [result(1)]),
    ],
    "answers": [
        USER,
        Message("assistant", "Yes."),
        Message("assistant", [call(1)]),
        Message("tool", [result(1)]),
    ],
    "calls-last": [
        USER,
        Message("assistant", [call(1), Text("So.")]),
        Message("tool", [result(1)]),
    ],
    "reasoning": [USER, Message("assistant", [Reasoning("Hm.", "gAAA"), Text("So.")])],
    "error-flag": [
        USER,
        Message("assistant", [call(1)]),
        Message("tool", [result(1, is_error=True)]),
    ],
    "front": [Message("system", "Be brief."), Message("developer", "Be kind."), USER],
    "arguments": [USER, Message("assistant", [call(1, '{"a": 1}')]), Message("tool", [result(1)])],
}
OPAQUE_CASES = {
    "openai": Opaque("openai", b'{"type": "refusal", "refusal": "no"}'),
    "openai-responses": Opaque("openai", b'{"type": "refusal", "refusal": "no"}'),
    "anthropic": Opaque("anthropic", b'{"type": "compaction", "content": "so far"}'),
    "gemini": Opaque("gemini", b'{"executableCode": {"language": "PYTHON", "code": "1"}}'),
}


def case(form: str, name: str) -> list[Message]:
    if name == "opaque-form":
        return [USER, Message("assistant", [OPAQUE_CASES[form], Text("So.")])]
    return CASES[name]


@pytest.mark.parametrize(
    ("form", "name"), [(form, name) for form in PROVIDERS for name in LOSSES[form]]
)
def test_each_documented_loss_is_one(form: str, name: str) -> None:
    """All losses together explain the difference, and without this one they do not."""
    messages = case(form, name)
    again = read_again(form, messages)
    assert without(form, again) == without(form, messages)
    assert without(form, again, name) != without(form, messages, name)


@pytest.mark.parametrize("form", PROVIDERS)
def test_what_one_form_loses_another_may_keep(form: str) -> None:
    """Minimal contexts of losses of other forms round-trip in this form."""
    for name in set(CASES) - set(LOSSES[form]):
        messages = [
            changed(m, model=MODELS[form] if m.role == "assistant" else "") for m in CASES[name]
        ]
        assert without(form, read_again(form, messages)) == without(form, messages), name


def table() -> str:
    """The losses of each format, as the page shows them."""
    rows = [["", "what is lost", *(f"`{form}`" for form in PROVIDERS)]]
    rows += [["---"] * len(rows[0])]
    for word, meaning in LOST_BY_DESIGN.items():
        rows.append(
            [f"`{word}`", meaning, *("lost" if word in LOSSES[f] else "" for f in PROVIDERS)]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def test_the_page_says_what_each_form_cannot_carry() -> None:
    assert set(TAKEN_AWAY) == set(LOST_BY_DESIGN)
    assert table() in PAGE.read_text(encoding="utf-8"), f"\n{table()}"


@pytest.mark.parametrize("form", PROVIDERS)
def test_lone_surrogates_come_back_as_what_was_sent(form: str) -> None:
    rendered = render(form, [Message("user", "a\ud83db")])
    assert [repair.code for repair in rendered.repairs] == ["surrogate-replaced"]
    assert read_again(form, [Message("user", "a\ud83db")]) == [Message("user", "a\ufffdb")]


def test_everything_at_once() -> None:
    """A context that round-trips unchanged for every provider."""
    png = Image("image/png", PNG_BYTES)
    messages = [
        Message("system", "Be brief."),
        Message("user", [Text("See."), png, Image(url="https://example.org/a.png")]),
        Message("assistant", [Text("I look."), call(1, '{"a":1}'), call(2)]),
        Message("tool", [result(1, Text("one"), Text("two"))]),
        Message("tool", [result(2)]),
        Message("assistant", "Done."),
        Message("user", "Thanks."),
    ]
    for form in ("json", "openai", "openai-responses"):
        assert read_again(form, messages) == messages, form
    for form in ("anthropic", "gemini"):
        assert without(form, read_again(form, messages)) == without(form, messages)


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_reading_never_fails_on_what_was_rendered(data: st.DataObject) -> None:
    """Whatever was repaired, the request can be read."""
    messages = data.draw(likely_contexts)
    for form in PROVIDERS:
        request = render(form, messages).request
        if any(request.get(key) for key in ("messages", "input", "contents")):
            assert parse_messages(to_bytes(request).decode())

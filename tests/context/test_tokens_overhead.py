"""What a message costs beyond its text, and that memory and disk agree on it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_store.base.oid import ObjectId, hash_object
from trace_store.context.tokens.models import REPLY_TOKENS
from trace_store.context.tokens.overhead import (
    MessageTokens,
    TokenMemo,
    count_message,
    count_stored_message,
)
from trace_store.context.tokens.tokenizer import ENCODINGS, CallableTokenizer, get_tokenizer
from trace_store.objects.codec import encode_blob
from trace_store.objects.message import ROLES, Message, store_message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.media_tokens import CLAUDE

WORDS = CallableTokenizer("words", lambda text: len(text.split()))


def cookbook(encoding: str, messages: list[dict[str, str]]) -> int:
    """OpenAI's published rule for chat messages, in its own words."""
    count = get_tokenizer(encoding).count
    tokens = 0
    for message in messages:
        tokens += 3
        for key, value in message.items():
            tokens += count(value)
            if key == "name":
                tokens += 1
    return tokens + 3


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_chat_messages_cost_what_the_cookbook_says(encoding: str) -> None:
    messages = [
        Message("system", "You are a helpful, pattern-following assistant."),
        Message("system", "New synergies will help drive top-line growth.", name="example_user"),
        Message("user", "This late pivot means we don't have time to boil the ocean."),
        Message("assistant", "日本語 <|endoftext|>"),
    ]
    dictionaries = [
        {"role": m.role, "content": m.text, **({"name": m.name} if m.name else {})}
        for m in messages
    ]
    totals = [count_message(get_tokenizer(encoding), message).total for message in messages]
    assert sum(totals) + REPLY_TOKENS == cookbook(encoding, dictionaries)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("role", ROLES)
def test_every_role_is_one_token(encoding: str, role: str) -> None:
    assert get_tokenizer(encoding).count(role) == 1


def test_text_is_apart_from_framing_and_guesses() -> None:
    message = Message(
        "assistant",
        [
            Reasoning("think a little", "c2ln"),
            Text("calling the tool"),
            ToolCall("call_1", "bash", '{"cmd": "ls"}'),
        ],
    )
    assert count_message(WORDS, message) == MessageTokens(text=3 + 3 + 1 + 2, framing=4 + 12)


def test_results_alone_are_messages_of_their_own() -> None:
    one, two = ToolResult("a", "it is done"), ToolResult("b", "so is this")
    assert count_message(WORDS, Message("tool", [one])).framing == 4
    assert count_message(WORDS, Message("user", [one, two])).framing == 8
    assert count_message(WORDS, Message("user", [one, two, Text("go on")])).framing == 12
    assert count_message(WORDS, Message("user", [])).framing == 4


def test_what_cannot_be_counted_is_guessed() -> None:
    image = Image("image/png", b"\x89PNG" * 100_000)
    result = ToolResult("a", [Text("a picture"), image])
    counted = count_message(WORDS, Message("user", [result, Image(url="https://example.org/x")]))
    assert counted == MessageTokens(text=2, framing=8, media=2 * CLAUDE.image_tokens())
    opaque = Message("assistant", [Opaque("anthropic", b'{"type": "x"} \xff')])
    assert count_message(WORDS, opaque) == MessageTokens(framing=4, guessed=3)


def test_a_signature_counts_only_where_the_text_is_gone() -> None:
    signature = "QUJD" * 120  # 480 characters over 360 bytes: 100 tokens
    alone = Message("assistant", [Reasoning("", signature)])
    beside = Message("assistant", [Reasoning("the text", signature)])
    assert count_message(WORDS, alone).guessed == 100
    assert count_message(WORDS, beside) == MessageTokens(text=2, framing=4)
    assert count_message(WORDS, Message("assistant", [Reasoning("")])).total == 4


def test_sums() -> None:
    total = sum((MessageTokens(1, 2, 3), MessageTokens(4, 5, 6)), MessageTokens())
    assert total == MessageTokens(5, 7, 9)
    assert total.total == 21


# --- stored -------------------------------------------------------------------------------------


class Objects:
    """In-memory objects that record reads."""

    def __init__(self) -> None:
        self.data: dict[bytes, bytes] = {}
        self.reads: list[bytes] = []

    def put(self, content: bytes) -> ObjectId:
        data = encode_blob(content)
        oid = hash_object(data)
        self.data[oid] = data
        return oid

    def read(self, oid: bytes) -> bytes:
        self.reads.append(oid)
        return self.data[oid]


texts = st.text(max_size=30) | st.sampled_from(["\ud83d", "<|endoftext|>", "a\nb" * 20])
simple_parts: st.SearchStrategy[Part] = st.one_of(
    texts.map(Text),
    st.builds(Image, st.just("image/png"), st.binary(max_size=20)),
    st.builds(Opaque, st.just("anthropic"), st.binary(max_size=20)),
)
any_parts: st.SearchStrategy[Part] = st.one_of(
    simple_parts,
    st.builds(Reasoning, texts, st.none() | texts),
    st.builds(ToolCall, st.just("id"), st.text(st.characters(codec="utf-8"), max_size=9), texts),
    st.builds(ToolResult, st.just("id"), st.lists(simple_parts, max_size=3)),
)
messages = st.builds(
    Message,
    st.sampled_from(ROLES),
    st.lists(any_parts, max_size=5),
    name=st.sampled_from(["", "ada"]),
)


@given(messages)
def test_a_stored_message_counts_as_the_loaded_one(message: Message) -> None:
    objects, memo, tokenizer = Objects(), TokenMemo("o200k_base"), get_tokenizer()
    stored = store_message(message, objects.put)
    expected = count_message(tokenizer, message)
    assert count_stored_message(tokenizer, stored, objects.read, memo) == expected
    assert count_stored_message(tokenizer, stored, objects.read, memo) == expected


def test_content_in_the_memo_is_not_read() -> None:
    objects, memo = Objects(), TokenMemo("words")
    parts = [Text("one two"), Image("image/png", b"x"), ToolCall("i", "f", "{}")]
    stored = store_message(Message("assistant", parts), objects.put)
    first = count_stored_message(WORDS, stored, objects.read, memo)
    assert len(objects.reads) == 3
    assert count_stored_message(WORDS, stored, objects.read, memo) == first
    assert len(objects.reads) == 3


def test_a_part_of_a_later_version_is_guessed() -> None:
    objects, memo = Objects(), TokenMemo("words")
    stored: dict[str, Any] = {
        "role": "user",
        "kind": "dialogue",
        "parts": [{"type": "video", "blob": objects.put(b"some bytes")}, {"type": "mark"}],
    }
    counted = count_stored_message(WORDS, stored, objects.read, memo)
    assert counted == MessageTokens(framing=4, guessed=2)


def test_arguments_count_as_the_model_wrote_them() -> None:
    written = '{"a":1,   "b":2}'
    assert json.loads(written) == {"a": 1, "b": 2}
    call = Message("assistant", [ToolCall("i", "f", written)])
    expected = get_tokenizer().count(written) + get_tokenizer().count("f")
    assert count_message(get_tokenizer(), call).text == expected

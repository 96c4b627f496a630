"""What runs on every turn of an agent costs the same at any length of history, of context, and number of branches."""

from __future__ import annotations

import json

import pytest

from tests.growth.conftest import Growth, ends_with, looked, messages
from tests.growth.support.stores import Place
from trace_store import Message


def warm(place: Place) -> None:
    """Let the process have compiled, and appended, before."""
    place.repo.append("user", "before")
    _ = place.repo.compile().token_count


def test_open(growth: Growth) -> None:
    growth.check(lambda place: place.repo)


def test_open_and_append(growth: Growth) -> None:
    growth.check(
        lambda place: place.repo.append("user", "one more turn"), right=ends_with("one more turn")
    )


@pytest.mark.parametrize("durability", ["fast", "batch", "durable"])
def test_append(growth: Growth, durability: str) -> None:
    def append(place: Place) -> None:
        place.repo.store.durability = durability
        for number in range(10):
            place.repo.append("user", f"turn {number}")

    growth.check(append, before=warm, right=ends_with("turn 8", "turn 9"))


def test_append_of_many_messages(growth: Growth) -> None:
    messages = [Message("user", f"one of many: {n}") for n in range(100)]
    growth.check(
        lambda place: place.repo.commit(messages),
        before=warm,
        right=ends_with("one of many: 98", "one of many: 99"),
    )


def test_batch(growth: Growth) -> None:
    def batch(place: Place) -> None:
        with place.repo.batch() as draft:
            for number in range(20):
                draft.append("user", f"one of many: {number}")

    growth.check(batch, before=warm, right=ends_with("one of many: 18", "one of many: 19"))


def test_append_and_compile(growth: Growth) -> None:
    def turn(place: Place) -> None:
        place.repo.append("user", "one more turn")
        context = place.repo.compile()
        assert context.token_count > len(context)
        assert context.messages[-1].text == "one more turn"

    growth.check(turn, before=warm)


def test_compile_in_a_new_process(growth: Growth) -> None:
    def turn(place: Place) -> None:
        context = place.repo.compile()
        assert context.token_count > len(context)
        assert [message.role for message in context.messages[-10:]]

    growth.check(turn)


def test_last_messages(growth: Growth) -> None:
    growth.check(
        lambda place: [m.text for m in place.repo.compile().messages[-10:]],
        before=warm,
        right=lambda _, texts: texts[-2:] == ["turn 11", "before"],
    )


def test_token_total(growth: Growth) -> None:
    growth.check(
        lambda place: place.repo.compile().token_count,
        before=warm,
        right=lambda place, count: count == place.open().compile().token_count > messages(place),
    )


def test_status(growth: Growth) -> None:
    def begin(place: Place) -> None:
        looked(place)
        warm(place)

    growth.check(
        lambda place: place.repo.status(),
        before=begin,
        right=lambda place, status: status.message_count == messages(place),
    )


def test_status_command(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("status"),
        before=looked,
        right=lambda place, said: f"context: {messages(place):,} messages, " in said,
    )


def test_unsealed_commit(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("commit", "--no-seal", "--user", "one more turn"),
        right=ends_with("one more turn"),
    )


def test_hook(growth: Growth) -> None:
    line = json.dumps({"role": "user", "content": "one more turn"}).encode() + b"\n"
    growth.check(
        lambda place: place.trace("commit", "-q", "--no-seal", "--jsonl", stdin=line),
        right=ends_with("one more turn"),
    )


def test_emit_and_follow(growth: Growth) -> None:
    def emit_and_follow(place: Place) -> None:
        with place.repo.store.follow(timeout=5) as events:
            place.repo.store.emit("step", {"n": 1})
            assert next(events).data == {"n": 1}

    growth.check(emit_and_follow, before=warm)


def test_record_usage(growth: Growth) -> None:
    usage = {"input_tokens": 10, "output_tokens": 10}
    growth.check(
        lambda place: place.repo.record_usage(usage),
        before=warm,
        right=lambda place, _: next(iter(place.repo.log())).operations == ("usage",),
    )


def test_set_tools(growth: Growth) -> None:
    tool = {"name": "look", "input_schema": {"type": "object"}}
    growth.check(
        lambda place: place.repo.set_tools([tool]),
        before=warm,
        right=lambda place, _: [each["name"] for each in place.repo.compile().tools] == ["look"],
    )


def test_configure(growth: Growth) -> None:
    growth.check(
        lambda place: place.repo.configure("budget", 1000),
        before=warm,
        right=lambda place, _: place.repo.store.config.budget == 1000,
    )

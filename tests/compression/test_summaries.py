"""Summaries made without a model: sentences, facts of tool calls, and the room that both may take."""

from __future__ import annotations

import pytest

from tests.compression.support.agent_session import call, result
from trace_store import Message
from trace_store.compression.extract import Passage, SourceMessage, extract
from trace_store.compression.summaries import facts
from trace_store.context.activity import Activity, activity_of

PATHS = [f"/w/app/module_{number:02}.py" for number in range(10)]


def read_and_written() -> Activity:
    """Return the activity of an agent that read ten files and ran ten commands."""
    messages = []
    for number, path in enumerate(PATHS):
        calls = [
            call(2 * number, "Read", file_path=path),
            call(2 * number + 1, "Bash", command=f"python {path}"),
        ]
        messages.append(Message("assistant", calls))
        messages.append(
            Message("tool", [result(each, "Exit code 0") for each in (2 * number, 2 * number + 1)])
        )
    return activity_of(messages)


@pytest.mark.parametrize("limit", range(60, 700, 20))
def test_facts_take_no_more_than_their_room(limit: int) -> None:
    said = facts(read_and_written(), limit, len, todos=True)
    assert len(said) <= limit


def test_as_many_facts_as_fit_are_named() -> None:
    messages = [
        message
        for number, path in enumerate(PATHS)
        for message in (
            Message("assistant", [call(number, "Read", file_path=path)]),
            Message("tool", [result(number, "x")]),
        )
    ]
    activity = activity_of(messages)
    whole = f"Files read: {'; '.join(PATHS)}"
    room = len(whole) + len(" (+999 more)") + len("; ")
    assert facts(activity, room, len, todos=True) == whole
    newest = "; ".join(PATHS[1:])
    assert facts(activity, room - 1, len, todos=True) == f"Files read: {newest} (+1 more)"


def test_a_text_that_must_stay_is_there_once() -> None:
    alone, within = "port 8080", "never push to main"
    passage = Passage(
        messages=[
            SourceMessage("user", "We agreed on something else entirely.", (alone,)),
            SourceMessage("user", f"Please remember: {within} without a review.", (within,)),
        ],
        budget=500,
        count=len,
        faults=lambda _: [],
    )
    assert extract(passage).splitlines() == [
        f"user: {alone}",
        "user: We agreed on something else entirely.",
        f"user: Please remember: {within} without a review.",
    ]

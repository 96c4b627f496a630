"""Summaries without a model keep requests and decisions; of a model's answers, those that are none are refused."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from trace_store import Repo
from trace_store.compression.extract import Passage, SourceMessage, extract
from trace_store.compression.summaries import answer_faults
from trace_store.errors import ModelNonsenseError
from trace_store.llm.contract import Completion, Prompt


def words(text: str) -> int:
    return len(text.split())


def summary(messages: Sequence[SourceMessage], budget: int, focus: str = "") -> str:
    return extract(Passage(messages, budget, words, lambda text: [], focus))


def asked(text: str, number: int = 1) -> SourceMessage:
    return SourceMessage("user", text, (), f"abcd123{number}.0", is_request=True)


def test_decisions_come_before_routine() -> None:
    messages = [asked("Which store should we use?")]
    messages.append(
        SourceMessage("assistant", "We will use SQLite instead of Redis, it needs no server.")
    )
    for step in range(9):
        messages.append(asked(f"Now do step {step}, please, as agreed before."))
        messages.append(
            SourceMessage("assistant", f"Step {step} is done: all checks were fine now.")
        )
    text = summary(messages, 40)
    assert "We will use SQLite instead of Redis" in text
    assert "Which store should we use?" in text
    assert "Now do step 8, please" in text, "the last request"


def test_constraints_that_differ_in_a_number_are_all_kept() -> None:
    messages = [asked("Tidy up. " + "Very much so, in all the places that you can find. " * 20)]
    for table in range(5):
        messages.append(SourceMessage("user", f"You must never drop table t_{table}. Thanks."))
        messages.append(SourceMessage("assistant", f"I now looked at {table} of 5 tables."))
    text = summary(messages, 90)
    assert all(f"drop table t_{table}." in text for table in range(5))
    assert text.count("of 5 tables") == 1


def test_announcements_and_what_programs_insert_are_left_out() -> None:
    text = summary(
        [
            asked("Make the fold quicker."),
            SourceMessage(
                "user", "Base directory for this skill: /x\n\nAlways use the fold skill with care."
            ),
            SourceMessage(
                "user", "This session is being continued from a previous conversation that ran out."
            ),
            SourceMessage(
                "assistant",
                "Let me check the tests:\nNow I'll run the fold.\nThe cache was never read.",
            ),
        ],
        200,
    )
    assert text.splitlines() == [
        "user: Make the fold quicker.",
        "assistant: The cache was never read.",
    ]


def test_a_long_request_is_cut_to_head_and_tail_with_its_address() -> None:
    long = "Begin here. " + "word " * 900 + "End there."
    text = summary([asked(long), SourceMessage("assistant", "It is done well.")], 200)
    assert text.startswith("user: Begin here.")
    assert "… [trace expand abcd1231.0] …" in text
    assert text.splitlines()[0].endswith("End there.")
    assert words(text.splitlines()[0]) <= 50


def test_the_focus_comes_first() -> None:
    messages = [
        SourceMessage(
            "assistant", f"We will use part {number} instead of the other, as it is stable."
        )
        for number in range(1)
    ]
    messages.append(SourceMessage("assistant", "The schema has two tables and an index."))
    assert "schema" not in summary(messages, 16)
    assert "schema" in summary(messages, 16, "focus on the schema")


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot summarise this conversation.",
        "As an AI language model I have no access to it.",
        "Sure! Here is the summary you asked for:",
        "My apologies, something went wrong.",
        "the fold is done and " * 40,
    ],
)
def test_an_answer_that_is_no_summary_is_refused(text: str) -> None:
    with Repo.memory() as repo:
        for number in range(12):
            repo.append("user", f"Question {number} about the fold, which is slow today.")
            repo.append("assistant", f"Answer {number}: the fold reads each commit twice. " * 9)
        target = repo.compile().token_count // 2
        with pytest.raises(ModelNonsenseError, match="cannot be used"):
            repo.compression.compress(target, model=lambda prompt: Completion(text, "a-model"))
        assert repo.compression.compress(target, model=lambda prompt: text[:60]).changed, (
            "a function"
        )


def test_an_echo_of_a_message_is_no_summary() -> None:
    said = "The fold reads each commit twice, and the second read is needless. " * 5
    assert answer_faults(said, [SourceMessage("assistant", f"Well. {said} So.")])
    assert not answer_faults("The fold reads twice.", [SourceMessage("assistant", said)])
    assert not answer_faults("The user asked why the fold is slow: it reads twice.", [])


def test_instructions_reach_the_model() -> None:
    seen: list[str] = []

    def model(prompt: Prompt) -> Completion:
        seen.append(prompt.system)
        return Completion("The fold reads each commit twice.", "a-model")

    with Repo.memory() as repo:
        for number in range(12):
            repo.append("user", f"Question {number} about the fold, which is slow today.")
            repo.append("assistant", f"Answer {number}: the fold reads each commit twice. " * 9)
        target = repo.compile().token_count // 2
        repo.compression.compress(target, model=model, instructions="focus on the schema")
    assert seen[0].endswith("asks of the summary: focus on the schema")

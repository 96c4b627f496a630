"""Summaries without a model keep requests and decisions; of a model's answers, those that are none are refused."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from trace_store import Repo
from trace_store.compression.extract import Passage, SourceMessage, extract, quotable
from trace_store.compression.summaries import answer_faults, length_faults
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


LINES = [
    "user: Make the import faster, and never drop rows.",
    "assistant: I looked at `reader.py` and at the tests.",
    "assistant: The root cause is a second read.",
    "assistant: All other things are as before.",
    "assistant: We will use one pass instead of two.",
    "assistant: It is done now, 13 of 40 tests pass.",
    "assistant: Nothing else is of note here today.",
    "user: Please also write the changelog.",
    "user: You must keep the names.",
    "user: Some other remark of mine.",
]


@pytest.mark.parametrize(
    ("room", "kept"),
    [
        (10, [8]),
        (15, [7, 8]),
        (20, [0, 8]),
        (30, [0, 7, 8]),
        (40, [0, 4, 7, 8]),
        (50, [0, 2, 4, 7, 8, 9]),
        (60, [0, 2, 4, 5, 7, 8]),
        (70, [0, 2, 3, 4, 5, 7, 8, 9]),
        (80, [0, 1, 2, 3, 4, 5, 7, 8, 9]),
        (87, [0, 1, 2, 3, 4, 5, 7, 8, 9]),
        (88, range(10)),
    ],
)
def test_what_matters_most_is_kept_in_any_room(room: int, kept: Sequence[int]) -> None:
    """Requests and decisions, then findings, then the rest, shorter sentences first; of a count only the last one."""
    said = [line.partition(": ")[2] for line in LINES]
    text = summary(
        [
            asked(said[0]),
            SourceMessage("assistant", " ".join(said[1:4])),
            SourceMessage("tool", "The tool says something, too."),
            SourceMessage(
                "assistant",
                f"{said[4]} It is done now, 12 of 40 tests pass. Let me check the tests:",
            ),
            SourceMessage("assistant", " ".join(said[5:7])),
            asked(said[7], 2),
            SourceMessage("user", " ".join(said[8:])),
        ],
        room,
    )
    assert text.splitlines() == [LINES[at] for at in kept]


def test_sentences_that_can_be_quoted() -> None:
    text = "# Head line\n- * item one. > quoted two! single\n[calls x y] no\n``` ls -l\n12 34. one 2 six"
    assert list(quotable(text)) == ["Head line", "item one.", "quoted two!"]
    longest = "ab cd" + "w" * 395
    assert list(quotable(f"{longest}\n{longest}w")) == [longest, f"{longest[:-1]}…"]


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (" ".join(f"w{at % 11}" for at in range(60)), "it repeats the same words"),
        (" ".join(f"w{at % 11}" for at in range(59)), ""),
        (" ".join(f"w{at % 12}" for at in range(60)), ""),
        ("said" * 50, "it is a copy of one message"),
        ("said" * 49 + "sai", ""),
    ],
)
def test_where_an_answer_begins_to_be_faulty(answer: str, fault: str) -> None:
    source = SourceMessage("user", f"a {('said' * 50).upper()} b")
    assert answer_faults(answer, [source]) == [fault] * bool(fault)


def test_an_answer_of_just_the_budget_fits() -> None:
    assert length_faults("one two three", 3, words) == []
    assert length_faults("one two three", 2, words) == ["it has 3 tokens, and at most 2 fit"]
    assert length_faults(" \n", 2, words) == ["it is empty"]

"""Summaries made without a model: sentences, facts of tool calls, and the room that both may take."""

from __future__ import annotations

import json

import pytest

from tests.compression.support.agent_session import call, result
from trace_store import Message
from trace_store.compression.extract import Passage, SourceMessage, extract
from trace_store.compression.summaries import ModelSummariser, facts
from trace_store.context.activity import Activity, activity_of
from trace_store.errors import InvalidInputError, ModelNonsenseError
from trace_store.llm.contract import Prompt

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


def busy() -> Activity:
    """Return the activity of an agent with to-dos, files, failures and more commands than are listed."""
    messages = []
    open_ = [("one", "pending"), ("two", "completed"), ("three", "in_progress")]
    todos = [{"content": text, "status": status} for text, status in open_]
    made = [
        (call(1, "TodoWrite", todos=todos), "ok", False),
        (call(2, "Edit", file_path="/w/a.py"), "ok", False),
        (call(3, "Read", file_path="/w/b.py"), "ok", False),
        (call(4, "Read", file_path="/w/c.py"), "ok", False),
        (call(5, "Bash", command="make\nall"), "ValueError: x\nExit code 2", True),
        (call(6, "Bash", command="no output"), "", True),
        (call(7, "Read", file_path="/w/d.py"), "File not found: d", True),
        *((call(20 + n, "Bash", command=f"run {n}"), "ok", False) for n in range(12)),
    ]
    for one, said, failed in made:
        messages.append(Message("assistant", [one]))
        messages.append(Message("tool", [result(int(one.id[5:]), said, failed=failed)]))
    return activity_of(messages)


TODOS, WRITTEN = "Open to-dos: one; three", "Files written: /w/a.py"
FAILURE, READ = "d.py: File not found: d", "Files read: /w/b.py; /w/c.py"


@pytest.mark.parametrize(
    ("limit", "errors", "commands", "lines"),
    [
        (300, f"make: ValueError: x; {FAILURE}", range(2, 12), (TODOS, WRITTEN, READ)),
        (250, f"make: ValueError: x; {FAILURE}", range(5, 12), (TODOS, WRITTEN, READ)),
        (200, f"{FAILURE} (+1 more)", range(8, 12), (TODOS, WRITTEN, READ)),
        (150, "", range(7, 12), (WRITTEN, READ)),
        (100, "", range(9, 12), (READ,)),
        (60, "", range(11, 12), ("Files read: /w/c.py (+1 more)",)),
        (20, "", (), ()),
    ],
)
def test_what_each_kind_of_facts_gets_of_the_room(
    limit: int, errors: str, commands: range, lines: tuple[str, ...]
) -> None:
    """Each kind gets an equal share of the room, names its newest facts, and says how many more there are."""
    ran = "; ".join(f"run {number}" for number in commands)
    more = f" (+{10 - len(commands)} more)" if len(commands) < 10 else ""
    wanted = [*lines[:-1]]
    wanted += [f"Errors: {errors}"] if errors else []
    wanted += [f"Commands: {ran}{more}"] if ran else []
    assert facts(busy(), limit, len, todos=True).splitlines() == [*wanted, *lines[-1:]]


def test_only_the_last_summary_lists_what_is_to_be_done() -> None:
    said = facts(busy(), 1_000, len, todos=False).splitlines()
    assert said[0] == WRITTEN
    assert TODOS not in said


def test_how_a_command_ended_is_told() -> None:
    runs = [("make", "Exit code 2", True), ("ls", "no", True), ("true", "Exit code 0", False)]
    messages = []
    for number, (command, output, failed) in enumerate(runs):
        messages.append(Message("assistant", [call(number, "Bash", command=command)]))
        messages.append(Message("tool", [result(number, output, failed=failed)]))
    messages.append(Message("assistant", [call(9, "Bash", command="sleep 9")]))
    said = facts(activity_of(messages), 1_000, len, todos=True).splitlines()
    assert "Commands: make (exit 2); ls (failed); true; sleep 9" in said


@pytest.mark.parametrize(
    ("sizes", "asked"),
    [
        ([400, 594], [(60, [400, 594])]),
        ([400, 595], [(75, [400]), (75, [595]), (60, [2, 2])]),
        ([300, 300, 600, 200], [(75, [300, 300]), (75, [600, 200]), (60, [2, 2])]),
        ([], [(60, [])]),
    ],
)
def test_history_that_exceeds_the_window_is_asked_for_in_parts(
    sizes: list[int], asked: list[tuple[int, list[int]]]
) -> None:
    """Each request: the most words of the answer, and the words of each text; a message needs three more."""
    prompts: list[Prompt] = []

    def model(prompt: Prompt) -> str:
        prompts.append(prompt)
        return " A part.\n"

    def words(text: str) -> int:
        return len(text.split())

    messages = [SourceMessage("user", " ".join(["w"] * size)) for size in sizes]
    summarise = ModelSummariser(model, 1_000)
    assert summarise(Passage(messages, 100, words, lambda _: [], "the schema")) == "A part."
    for each, (most, counts) in zip(prompts, asked, strict=True):
        assert f"at most {most} words" in each.system
        assert each.system.endswith("asks of the summary: the schema")
        texts = [given.get("text") or given["summary"] for given in json.loads(each.messages[0][1])]
        assert list(map(words, texts)) == counts
    assert len(summarise.requests) == len(summarise.answers) == len(asked)


def test_a_small_summary_may_have_ten_words_and_a_small_window_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least 1,000 tokens"):
        ModelSummariser(str, 999)
    prompts: list[Prompt] = []

    def model(prompt: Prompt) -> str:
        prompts.append(prompt)
        return "A part."

    def faults(_: str) -> list[str]:
        return ["it is wrong"]

    passage = Passage([SourceMessage("user", "w")], 15, len, faults)
    with pytest.raises(ModelNonsenseError, match="it is wrong"):
        ModelSummariser(model, 1_000)(passage)
    assert ["at most 10 words" in each.system for each in prompts] == [True, True], "asked twice"

"""The report of losses: a fact is kept when its subject, polarity, number and name are there."""

from __future__ import annotations

import random

import pytest

from tests.compression.support.agent_session import LONG, call, result
from trace_store import Message, Repo, Text
from trace_store.compression.losses import (
    COMMANDS,
    CONSTRAINTS,
    DECISIONS,
    NUMBERS,
    OUTPUTS,
    PATHS,
    Told,
    facts_in,
)

NEIGHBOURS = range(100)
SUBJECTS = ("alpha", "beta", "gamma", "redis", "sqlite", "kafka", "staging", "production", "ledger")
VERBS = ("delete", "deploy", "rename", "migrate", "restart", "publish", "archive")
OBJECTS = ("database", "cluster", "service", "branch", "bucket", "invoices", "sessions")


def parts(chance: random.Random) -> tuple[str, str, str, str]:
    one, other = chance.sample(SUBJECTS, 2)
    return one, other, chance.choice(VERBS), chance.choice(OBJECTS)


@pytest.mark.parametrize("kind", ["polarity", "subject", "number", "rejected"])
def test_another_fact_is_not_the_fact(kind: str) -> None:
    for seed in NEIGHBOURS:
        chance = random.Random(seed)
        one, other, verb, thing = parts(chance)
        number = chance.randrange(10, 900)
        fact, wrong = {
            "polarity": (f"Never {verb} the {one} {thing}", f"{verb.title()} the {one} {thing}"),
            "subject": (f"We must {verb} the {one} {thing}", f"We must {verb} the {other} {thing}"),
            "number": (
                f"Keep at most {number} {thing} of {one}",
                f"Keep at most {number + 1} {thing} of {one}",
            ),
            "rejected": (
                f"Use {one} instead of {other} for the {thing}",
                f"Use {other} instead of {one} for the {thing}",
            ),
        }[kind]
        around = "user: Fix the parser.\nassistant: The parser is done. {}.\nassistant: Next comes the index."
        for one_fact, one_told in ((fact, wrong), (wrong, fact)):
            assert not Told(around.format(one_told)).keeps(CONSTRAINTS, one_fact), f"seed {seed}"
            assert Told(around.format(one_fact)).keeps(CONSTRAINTS, one_fact), f"seed {seed}"


def test_the_same_fact_in_other_forms_is_kept() -> None:
    for seed in NEIGHBOURS:
        one, other, verb, thing = parts(random.Random(seed))
        told = f"- the user wants us to never {verb} the {one} {thing}, and it was agreed"
        assert Told(told).keeps(CONSTRAINTS, f"Never {verb} the {one} {thing}!")
        told = f"Decided: {one} is used instead of {other} for the {thing}, because it is stable."
        assert Told(told).keeps(DECISIONS, f"We will use {one} instead of {other} for the {thing}")


def test_a_fact_in_another_grammatical_form_is_kept() -> None:
    told = Told(
        "- the user wants us to avoid renaming the parser tables, and never deleted any index"
    )
    assert told.keeps(CONSTRAINTS, "Never delete any index!")
    assert Told("never renaming the parser tables").keeps(
        CONSTRAINTS, "Never rename the parser table!"
    )


@pytest.mark.parametrize(
    ("path", "told", "is_kept"),
    [
        ("src/app.py", "changed app.py and ran it", True),
        ("src/app.py", "changed app.pyc and ran it", False),
        ("src/app.py", "changed myapp.py", False),
        ("src/app.py", "see src/app.py.", True),
        ("src/app.py", "see app.py-old", False),
        ("src/app.py", "see SRC/App.py", True),
        ("lib/src/", "in src/", True),
    ],
)
def test_a_path_is_not_a_longer_one(path: str, told: str, is_kept: bool) -> None:
    assert Told(told).keeps(PATHS, path) is is_kept


def test_outputs_of_tools_are_facts() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Run the tests.")
        repo.commit([Message("assistant", [call(1, "Bash", command="pytest")])])
        output = f"{LONG}\nE   ValueError: port 8071 is taken\n3 failed, 41 passed in 2.1s"
        repo.commit([Message("tool", [result(1, output)])])
        repo.append("assistant", "The tests fail.")
        for number in range(8):
            repo.append("user", f"Go on with part {number}, please, and say when it is done.")
            repo.append("assistant", f"Part {number} is done, and its checks were fine. " * 5)
        repo.compression.compress(text="Tests were run; 41 passed.")
        (report,) = repo.compression.report()
        assert report.checked[OUTPUTS] == 2
        assert {each.text for each in report.lost if each.kind == OUTPUTS} == {
            "E   ValueError: port 8071 is taken",
            "3 failed, 41 passed in 2.1s",
        }


@pytest.mark.parametrize(
    ("kind", "fact", "told", "is_kept"),
    [
        (NUMBERS, "8071", "port 8071.", True),
        (NUMBERS, "8071", "ports 80, 8071, and 90", True),
        *((NUMBERS, "8071", f"it is {other}", False) for other in ("18071", "8071x", "v1.8071")),
        *((NUMBERS, "8071", f"it is {other}", False) for other in ("8071.5", "8071,200")),
        (NUMBERS, "200", "it is 1,200", False),
        (COMMANDS, "make all", "ran MAKE all, and more", True),
        (COMMANDS, "make all", "ran make", False),
        (COMMANDS, "make al…", "ran make all", True),
        (DECISIONS, "alpha beta gamma delta", "Alpha beta gamma.", True),
        (DECISIONS, "alpha beta gamma", "alpha beta", False),
        (DECISIONS, "alpha beta gamma delta", "alpha beta gamma omega", False),
        (DECISIONS, "alpha beta gamma delta", "alpha omega gamma delta", False),
        (DECISIONS, "alpha beta gamma delta", "omega beta gamma delta", False),
        (DECISIONS, "alpha beta gamma delta", "omega theta alpha beta gamma", True),
        (DECISIONS, "alpha beta gamma delta", "alpha delta beta omega", False),
        (DECISIONS, "alpha beta gamma delta", "omega delta alpha beta", False),
        (DECISIONS, "alpha beta gamma delta", "alpha omega beta delta", True),
        (DECISIONS, "alpha beta gamma delta", "beta gamma omega delta", True),
        (DECISIONS, "SQLite replaces Redis", "We use SQLite. It replaces Redis.", True),
        (DECISIONS, "SQLite replaces Redis", "We use SQLite. Fine. It replaces Redis.", False),
        (DECISIONS, "deleting the boxes", "delete a box", True),
        (DECISIONS, "used once", "uses once", False),
    ],
)
def test_what_counts_as_told(kind: str, fact: str, told: str, is_kept: bool) -> None:
    """Of the words of a sentence a quarter may be missing, if none stands in the place of one."""
    assert Told(told).keeps(kind, fact) is is_kept


def test_the_facts_of_a_message() -> None:
    text = "Never drop t_1. Use SQLite instead of Redis. See src/app.py: 12:30, 45%. It is 7."
    said = [(DECISIONS, "Use SQLite instead of Redis."), (PATHS, "src/app.py")]
    said += [(NUMBERS, "12:30"), (NUMBERS, "45%")]
    assert list(facts_in(Message("user", text))) == [(CONSTRAINTS, "Never drop t_1."), *said]
    long = "x" * 161
    calls = [
        call(1, "Bash", command=f" {long[1:]}\nmake test"),
        call(2, "Bash", command=long),
        call(3, "Edit", file_path="/w/x.py"),
    ]
    done = [(COMMANDS, long[1:]), (COMMANDS, f"{long[2:]}…"), (PATHS, "/w/x.py")]
    assert list(facts_in(Message("assistant", [Text(text), *calls]))) == [*done, *said]
    assert list(facts_in(Message("tool", [result(1, text)]))) == []


def test_the_facts_of_outputs_are_the_last_results_of_each_command() -> None:
    longest = "x" * 191 + " 3 passed"
    runs = [
        ("make", "1 passed\n2 passed"),
        ("make", f"3 failed\nplain\nx{longest}\n{longest}\nversion: 12\ntotal 8"),
        ("ls", "ValueError: no port"),
    ]
    with Repo.memory() as repo:
        repo.append("user", "Run it. " * 90)
        for number, (command, output) in enumerate(runs):
            repo.commit([Message("assistant", [call(number, "Bash", command=command)])])
            repo.commit([Message("tool", [result(number, output)])])
        repo.append("assistant", "It is done.")
        second, third = (repo.compile().messages[at].address for at in (4, 6))
        repo.compression.compress(text="Something else.")
        (report,) = repo.compression.report()
        told = [(each.text, each.source) for each in report.lost if each.kind == OUTPUTS]
    assert told == [
        *((line, second) for line in (longest, "version: 12", "total 8")),
        ("ValueError: no port", third),
    ]
    assert (report.sources, report.checked) == (8, {COMMANDS: 2, OUTPUTS: 4})

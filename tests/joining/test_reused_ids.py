"""Ids of calls that are used again, as by agents that number their calls: a result stays at the call that it answers.

Each call has a label as its argument, and its result says that; so one sees which call a result answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.joining.support.lines import on
from tests.stateful.support.pictures import broken, picture
from tests.support.examples import examples
from tests.support.valid_requests import assert_valid_requests
from trace_store import Conflict, FixedClock, Message, Repo, Text, ToolCall, ToolResult, context
from trace_store.joining import Settlement
from trace_store.joining.groups import whole
from trace_store.objects.commit import read_commit

Line = Callable[[Repo], object]


def opened() -> Repo:
    repo = Repo.memory(clock=FixedClock())
    repo.append("user", "look")
    return repo


def call(label: str, *, name: str = "call_3") -> Message:
    return Message("assistant", [ToolCall(name, "look", {"at": label})])


def result(text: str, *, name: str = "call_3") -> Message:
    return Message("tool", [ToolResult(name, text)])


def say(repo: Repo, *messages: Message | str) -> None:
    for each in messages:
        repo.commit([each if isinstance(each, Message) else Message("user", each)])


def forked(ours: Line, theirs: Line) -> Repo:
    """Return a repository in which both sides go on from a call that waits; HEAD is on main."""
    repo = opened()
    say(repo, call("A"))
    repo.branch("side")
    ours(repo)
    on(repo, "side")
    theirs(repo)
    on(repo, "main")
    return repo


def shown(repo: Repo) -> list[str]:
    said = []
    for message in repo.compile().messages[1:]:
        for part in message.parts:
            if isinstance(part, ToolCall):
                said.append(f"call {part.arguments[7:-2]}")
            elif isinstance(part, ToolResult):
                said.append(
                    " & ".join(each.text for each in part.content if isinstance(each, Text))
                )
            else:
                said.append(getattr(part, "text", ""))
    return said


def answer_and_call(repo: Repo) -> None:
    """In one commit: a result, and the next call under the same id."""
    repo.commit([result("theirs of A"), call("B")])


def result_of_ours(repo: Repo) -> None:
    say(repo, result("ours of A"))


def test_a_result_before_a_call_of_its_id_is_not_of_that_call() -> None:
    picked = forked(result_of_ours, answer_and_call).cherry_pick("side")
    assert [each.kind for each in picked.conflicts] == ["two-answers"]
    rebased = forked(answer_and_call, result_of_ours).rebase("side")
    assert [each.kind for each in rebased.conflicts] == ["two-answers"]


def test_of_several_picks_each_is_asked_about() -> None:
    repo = opened()
    repo.branch("third")
    say(repo, call("A"))
    repo.branch("side")
    say(repo, result("ours of A"))
    on(repo, "side")
    say(repo, result("theirs of A"))
    on(repo, "third")
    repo.commit([call("B"), result("of B")])
    on(repo, "main")
    assert [each.kind for each in repo.cherry_pick("third", "side").conflicts] == ["two-answers"]


@pytest.mark.parametrize(
    ("choice", "first"),
    [
        ("ours", "theirs of A"),
        ("theirs", "ours of A"),
        ("both", "theirs of A & ours of A"),
        ("text", "as I say"),
    ],
)
def test_the_call_is_asked_about_that_both_answer(choice: str, first: str) -> None:
    """The line that is gone on has used the id once more, and that call is left alone."""

    def further(repo: Repo) -> None:
        say(repo, result("theirs of A"), "on", call("B"), result("of B"))

    asked = []

    def resolver(conflict: Conflict) -> Settlement:
        asked.append(conflict.kind)
        return Settlement(choice, "as I say" if choice == "text" else "")

    repo = forked(result_of_ours, further)
    assert repo.rebase("side", resolver=resolver).outcome == "done"
    assert asked == ["two-answers"]
    assert shown(repo) == ["call A", first, "on", "call B", "of B"]


@pytest.mark.parametrize("answered", [False, True])
def test_a_late_result_goes_to_its_call(answered: bool) -> None:
    def again(repo: Repo) -> None:
        say(repo, "wait", call("B"), *([result("of B")] if answered else []))

    def late(repo: Repo) -> None:
        say(repo, result("of A"))

    expected = ["call A", "of A", "wait", "call B", *(["of B"] if answered else [])]
    for ours, theirs, command in (
        (again, late, "cherry_pick"),
        (late, again, "rebase"),
        (late, again, "merge"),
    ):
        repo = forked(ours, theirs)
        assert getattr(repo, command)("side").conflicts == ()
        assert shown(repo) == expected


def test_a_text_for_an_answer_leaves_later_calls_alone() -> None:
    repo = opened()
    repo.branch("side")
    say(repo, call("A"), result("of A"), "on", call("B"), result("of B"))
    on(repo, "side")
    repo.append("assistant", "mine")
    on(repo, "main")
    found = repo.merge("side", resolver=lambda _: Settlement("text", "as I say"))
    assert found.outcome == "merged"
    assert [each.kind for each in found.settled] == ["two-answers"]
    assert shown(repo)[-3:] == ["on", "call B", "of B"]


@pytest.mark.parametrize("ours_again", [False, True])
def test_both_answers_of_a_call_leave_its_later_namesake_alone(ours_again: bool) -> None:
    def twice(repo: Repo) -> None:
        say(repo, result("long"), call("B"), result("of B"))
        repo.append("assistant", "done")

    def once(repo: Repo) -> None:
        say(repo, result("short"))
        repo.append("assistant", "well")

    repo = forked(*((twice, once) if ours_again else (once, twice)))
    assert repo.merge("side", resolver=lambda _: "both").outcome == "merged"
    assert sorted(shown(repo)) == sorted(
        [
            *("call A", "long & short" if ours_again else "short & long", "call B", "of B"),
            *("done", "well"),
        ]
    )
    assert_valid_requests(repo.compile().messages)


# Any lines.

IDS = st.sampled_from("xxy")


@st.composite
def tails(draw: st.DrawFn, waiting: str = "") -> tuple[list[tuple[str, str]], str]:
    """Draw what is said on a line: ("call" or "result", id), ("user" or "assistant", ""); and what waits in the end."""
    made: list[tuple[str, str]] = []
    for _ in range(draw(st.integers(1, 4))):
        if waiting:
            made.append(("result", waiting))
            waiting = ""
            continue
        kind = draw(st.sampled_from(["call", "call", "user", "assistant"]))
        name = draw(IDS) if kind == "call" else ""
        made.append((kind, name))
        waiting = name
    return made, waiting


@st.composite
def forks(draw: st.DrawFn) -> tuple[list[tuple[str, str]], ...]:
    shared, waiting = draw(tails())
    return shared, draw(tails(waiting))[0], draw(tails(waiting))[0]


def write(repo: Repo, line: Sequence[tuple[str, str]], side: str) -> None:
    """Write a line; what is written has the name of its side in it."""
    calls: dict[str, str] = {}
    before = [
        (part.id, part.arguments[7:-2])
        for message in repo.compile().messages
        for part in message.parts
        if isinstance(part, ToolCall)
    ]
    calls.update(before)
    for number, (kind, name) in enumerate(line):
        label = f"{side}{number}"
        if kind == "call":
            calls[name] = label
            say(repo, call(label, name=name))
        elif kind == "result":
            say(repo, result(f"of {calls[name]}", name=name))
        else:
            repo.append(kind, label)


def strangers(repo: Repo) -> list[tuple[str, str]]:
    """Return (label of a call, text of the result that stands at it) where the result is of another call."""
    waiting: dict[str, list[str]] = {}
    found = []
    for message in repo.compile().messages:
        for part in message.parts:
            if isinstance(part, ToolResult) and waiting.get(part.call_id):
                label = waiting[part.call_id].pop()
                texts = [each.text for each in part.content if isinstance(each, Text)]
                found += [(label, text) for text in texts if text not in (f"of {label}", "said")]
        for part in message.parts:
            if isinstance(part, ToolCall):
                waiting.setdefault(part.id, []).append(part.arguments[7:-2])
    return found


COMMANDS: dict[str, Callable[..., Any]] = {
    "append": lambda repo, **how: repo.merge("side", **how),
    "interleave": lambda repo, **how: repo.merge("side", strategy="interleave", **how),
    "squash": lambda repo, **how: repo.merge("side", squash=True, **how),
    "pick": lambda repo, **how: repo.cherry_pick("HEAD..side", **how),
    "rebase": lambda repo, **how: repo.rebase("side", **how),
}


@pytest.mark.parametrize("command", COMMANDS)
@given(fork=forks(), choice=st.sampled_from(["", "ours", "theirs", "both", "text"]))
@settings(
    max_examples=examples(120),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_no_result_is_at_another_call(
    command: str, fork: tuple[list[tuple[str, str]], ...], choice: str
) -> None:
    shared, ours, theirs = fork
    with Repo.memory(clock=FixedClock()) as repo:
        repo.append("user", "look")
        write(repo, shared, "shared")
        repo.branch("side")
        write(repo, ours, "ours")
        on(repo, "side")
        write(repo, theirs, "theirs")
        on(repo, "main")

        def seen(name: str) -> Any:
            read = repo.store.objects.read
            return picture(context.fold(repo.resolve(name), lambda oid: read_commit(oid, read)))

        before = [seen("main"), seen("side")]

        def resolver(conflict: Conflict) -> Settlement | None:
            if not choice:
                return None
            chosen = choice if choice in conflict.choices else conflict.choices[0]
            return Settlement(chosen, "said" if chosen == "text" else "")

        found = COMMANDS[command](repo, resolver=resolver)
        if found.outcome == "stopped":
            assert not choice, [each.kind for each in found.conflicts]
            return
        assert not strangers(repo)
        new = broken(seen("main"), *before)
        assert not {each for each in new if choice != "both" or each[0] != "call without result"}
        assert_valid_requests(repo.compile().messages)


def test_what_is_whole_is_told_by_the_line_that_it_stands_in() -> None:
    """A result does not belong to an open call of its id because the call that it answers is left out."""
    repo = opened()
    say(repo, call("open"), call("A"), result("of A"))
    read = repo.store.objects.read
    line = context.fold(repo.resolve("HEAD"), lambda oid: read_commit(oid, read)).entries
    _, waits, asks, answers = line
    assert whole([waits, answers], line) == []
    assert whole([asks, answers], line) == [asks, answers]
    assert whole(line, line) == [line[0], asks, answers]

"""Proposals to make room: their reasons, what they point to, and carrying them out."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compression.support.agent_session import LONG, agent_session, call, result
from trace_store import Message, Repo, Text
from trace_store.compression.suggest import (
    Heat,
    Suggestion,
    marks_of,
    near_duplicates,
    topics,
)
from trace_store.context.activity import READ, RUN, action_of, outcome_of
from trace_store.errors import InvalidOperationError, MessageNotFoundError
from trace_store.objects.parts import ToolCall, ToolResult


@pytest.fixture
def repo() -> Iterator[Repo]:
    with Repo.memory() as made:
        agent_session(made)
        yield made


def proposed(repo: Repo) -> dict[str, list[Suggestion]]:
    found: dict[str, list[Suggestion]] = {}
    for each in repo.compression.suggest().proposals:
        found.setdefault(each.reason, []).append(each)
    return found


def test_an_output_is_proposed_for_one_reason(repo: Repo) -> None:
    found = proposed(repo)
    (read,) = found["superseded"]
    assert "parser.py was read again in" in read.explanation
    (same,) = found["duplicate"]
    assert "the same output as" in same.explanation
    targets = [(each.addresses, each.call_id) for group in found.values() for each in group]
    assert len(set(targets)) == len(targets)


def test_savings_are_measured_and_sorted(repo: Repo) -> None:
    found = repo.compression.suggest()
    saved = [each.tokens for each in found.proposals]
    assert saved == sorted(saved, reverse=True)
    before = repo.compile().token_count
    repo.compression.apply([each for each in found.proposals if each.action != "pin"])
    assert repo.compile().token_count == before - sum(saved)


def test_applied_proposals_are_undone_together(repo: Repo) -> None:
    before = repo.compile().prefix_hash
    repo.compression.apply(repo.compression.suggest().proposals, message="make room")
    assert repo.compile().prefix_hash != before
    assert next(repo.log(limit=1)).message == "make room"
    repo.undo()
    assert repo.compile().prefix_hash == before


def test_a_copy_that_is_pointed_to_stays(repo: Repo) -> None:
    """The newest of two equal outputs is cold; shortened as well, it would be gone."""
    found = repo.compression.suggest().proposals
    named = {each.explanation.rsplit(" ", 1)[1] for each in found if each.reason == "duplicate"}
    short = {f"{each.addresses[0].birth.hex()[:8]}.{each.addresses[0].number}" for each in found}
    assert named
    assert not named & short


def test_a_file_that_changed_on_disk_makes_a_read_stale(tmp_path: Path) -> None:
    with Repo.init(tmp_path) as repo:
        repo.append("user", "Read the notes.")
        repo.commit([Message("assistant", [call(1, "Read", file_path="notes.md")])])
        repo.commit([Message("tool", [result(1, LONG)])])
        repo.append("user", "Go on.")
        repo.append("assistant", "Done.")
        (stale,) = proposed(repo)["stale"]
        assert stale.explanation == "notes.md: is gone"


@pytest.mark.parametrize(
    ("changed", "said"),
    [(0, ""), (20, "7% of its lines"), (300, "100% of its lines"), (None, "is gone")],
)
def test_a_file_that_was_rewritten_is_changed_and_not_gone(
    tmp_path: Path, changed: int | None, said: str
) -> None:
    lines = [f"value_{number} = {number * 7919 % 10007}" for number in range(300)]
    path = tmp_path / "values.py"
    with Repo.init(tmp_path) as repo:
        repo.append("user", "Read the values.")
        repo.commit([Message("assistant", [call(1, "Read", file_path=str(path))])])
        numbered = "\n".join(f"{n:6}\t{line}" for n, line in enumerate(lines, 1))
        repo.commit([Message("tool", [result(1, numbered)])])
        repo.append("user", "Go on.")
        if changed is not None:
            path.write_text("\n".join(["new"] * changed + lines[changed:]))
        found = [each.explanation for each in proposed(repo).get("stale", [])]
        assert found == (
            [f"values.py: {said}{'' if changed is None else ' have changed on disk since'}"]
            if said
            else []
        )


def test_topics_are_turns_that_name_the_same_things() -> None:
    with Repo.memory() as repo:
        names = [f"part_{letter}" for letter in "abcdefg"]
        for name in names * 3:
            repo.append("user", f"Look at src/{name}.py and `open_{name}` again.")
            repo.append(
                "assistant", f"In src/{name}.py, `open_{name}` and `close_{name}` are slow."
            )
        found = repo.compression.suggest().topics
        assert [len(each.turns) for each in found] == [3] * 7
        assert all(
            name in said for name, each in zip(names, found, strict=True) for said in each.names
        )
        assert sum(each.tokens for each in found) == sum(repo.compression.suggest().sizes)


def test_what_a_tool_printed_is_not_to_be_pinned() -> None:
    """Some formats file the output of a tool, such as of `pwd`, under the user."""
    with Repo.memory() as repo:
        repo.append("user", "Make src/gateway.py faster, please.")
        repo.append("user", "OBSERVATION: /home/ada/src/gateway.py", kind="tool_io")
        repo.append("user", "<bash-stdout>/home/ada/src/gateway.py</bash-stdout>")
        for number in range(60):
            repo.append(
                "assistant",
                f"Step {number}: `step_{number}` in src/gateway.py" if number < 10 else "-",
            )
        (pin,) = proposed(repo)["pin"]
        assert "Make src/gateway.py faster" in pin.explanation


def test_a_failed_call_keeps_its_error_and_little_else() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Run the tests.")
        repo.commit([Message("assistant", [call(1, "Bash", command="pytest -q")])])
        failure = f"ImportError: no module named lexer\n{LONG}\nExit code 2"
        repo.commit([Message("tool", [result(1, failure, failed=True)])])
        for text in ("It failed.", "Try again.", "Again.", "Go on."):
            repo.append("assistant" if text.startswith(("It", "Again")) else "user", text)
        (failed,) = proposed(repo)["failed"]
        assert "ImportError" in failed.explanation
        assert "ImportError" in failed.text


def test_a_message_that_much_later_work_uses_is_to_be_pinned() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Everything goes through src/gateway.py and `open_gateway`.")
        for number in range(40):
            used = "`open_gateway` in src/gateway.py" if number % 4 == 0 else f"`step_{number}`"
            repo.append("assistant", f"Step {number}: {used} is called.")
            repo.append("user", "Go on.")
        assert [each.action for each in proposed(repo)["pin"]] == ["pin"]


def test_nothing_to_apply_and_messages_that_are_gone(repo: Repo) -> None:
    with pytest.raises(InvalidOperationError, match="no proposal"):
        repo.compression.apply([])
    chosen = proposed(repo)["duplicate"]
    repo.remove(chosen[0].addresses)
    with pytest.raises(MessageNotFoundError):
        repo.compression.apply(chosen)


@pytest.mark.parametrize(
    ("script", "kind", "text"),
    [
        ('const r = await tools.exec_command({\n  cmd: "sed -n \'1,9p\' a.md"\n});', READ, "a.md"),
        ("await Promise.all([tools.exec_command({cmd: `ls`}), tools.exec_command({cmd: 'pwd'})]);",
         RUN, "ls; pwd"),
        ("text(ALL_TOOLS.length);", RUN, "text(ALL_TOOLS.length);"),
    ],
)  # fmt: skip
def test_the_commands_in_a_script_of_codex_are_known(script: str, kind: str, text: str) -> None:
    action = action_of(ToolCall("1", "exec", script))
    assert action.kind == kind
    assert text in (action.text, *action.paths)


def test_pins_are_proposed_from_the_most_used_message_on() -> None:
    """One fixed session: four messages of the user; later work uses each more than the one before."""
    with Repo.memory() as repo:
        for name in "abcd":
            repo.append("user", f"Part {name} goes through src/part_{name}.py only.")
        for number in range(80):
            used = [name for at, name in enumerate("abcd") if number < 9 + 2 * at]
            paths = " and ".join(f"src/part_{name}.py" for name in used)
            repo.append("assistant", f"Step {number}: `step_{number}` {paths} is called.")
        found = proposed(repo)["pin"]
        said = [each.explanation.split(" ", 1)[0] for each in found]
        assert said == ["15", "13", "11"], "how many later messages use each"
        messages = repo.compile().messages
        assert [each.addresses for each in found] == [(messages[at].address,) for at in (3, 2, 1)]


@pytest.mark.parametrize(("uses", "is_proposed"), [(7, False), (8, True)])
def test_a_message_is_to_be_pinned_if_eight_later_ones_use_it(uses: int, is_proposed: bool) -> None:
    with Repo.memory() as repo:
        repo.append("user", "Everything goes through src/gateway.py, please.")
        for number in range(60):
            path = "src/gateway.py" if number < uses else "nothing"
            repo.append("assistant", f"Step {number}: `step_{number}` in {path} is called.")
        assert ("pin" in proposed(repo)) is is_proposed


def test_a_recent_read_is_not_to_go_though_its_file_was_changed() -> None:
    text = "\n".join(f"note {number}: ask {number * 7919 % 101} people" for number in range(40))
    with Repo.memory() as repo:
        repo.append("user", "Read the notes, and change them.")
        repo.commit([Message("assistant", [call(1, "Read", file_path="notes.md")])])
        repo.commit([Message("tool", [result(1, text)])])
        newer = text.replace("note 0", "note zero")
        write = call(2, "Write", file_path="notes.md", content=newer)
        repo.commit([Message("assistant", [write])])
        repo.commit([Message("tool", [result(2, "ok")])])
        repo.append("user", "Go on.")
        assert "superseded" not in proposed(repo), "one of the last two turns"
        repo.append("user", "And on.")
        (read,) = proposed(repo)["superseded"]
        assert read.explanation.startswith("notes.md was written again in ")


@pytest.mark.parametrize(
    ("text", "failed", "code"),
    [
        ("Exit code 0\n", False, 0),
        ("Exit code 1\nno such file", True, 1),
        ("Process exited with code -9\nOutput:\n", True, -9),
        ('{"output":"","metadata":{"exit_code":-15}}', True, -15),
        ("exit status -1", True, -1),
        ("exit statement 5", False, None),
    ],
)
def test_how_a_command_ended_is_read_from_its_output(
    text: str, failed: bool, code: int | None
) -> None:
    """A program that a signal killed has a negative code."""
    outcome = outcome_of(ToolResult("1", text))
    assert (outcome.failed, outcome.exit_code) == (failed, code)


@pytest.mark.parametrize(("words", "is_proposed"), [(100, True), (99, False)])
def test_an_output_that_a_later_one_almost_repeats(words: int, is_proposed: bool) -> None:
    """If it has 400 characters or more, and the later one is in another message."""
    lines = [" ".join(f"{chr(97 + n // 10)}{n % 10}x" for n in range(words))[:-1]]
    assert len("\n".join(lines)) == 4 * words - 2
    with Repo.memory() as repo:
        repo.append("user", "Look.")
        for number, last in enumerate(("one", "two")):
            repo.commit([Message("assistant", [call(number, "Bash", command=f"show {last}")])])
            repo.commit([Message("tool", [result(number, "\n".join((*lines, last[:2])))])])
        address = repo.compile().messages[4].address.short(8)
        found = [each.explanation for each in proposed(repo).get("similar", [])]
    wanted = f"show one is 99% the same as {address}; 1 of its 2 lines are not there"
    assert [re.sub(r"9\d%", "99%", each) for each in found] == [wanted] * is_proposed


def test_what_is_said_of_a_command_or_a_prompt_is_its_first_60_characters() -> None:
    prompt = f"Everything goes through src/gateway.py, please. {'Really. ' * 9}"
    texts = ["\n".join(f"{name} {n * 7 % 90}" for n in range(90)) for name in ("first", "second")]
    failure = "\n".join(["ValueError: no port", *(f"third {n * 7 % 90}" for n in range(300))])
    with Repo.memory() as repo:
        repo.append("user", prompt)
        commands = [f"run {number} {'x' * 70}" for number in range(5)]
        outputs = [texts[0], texts[0], f"{texts[1]}\none", f"{texts[1]}\ntwo", failure]
        for number, (command, output) in enumerate(zip(commands, outputs, strict=True)):
            repo.commit([Message("assistant", [call(number, "Bash", command=command)])])
            repo.commit([Message("tool", [result(number, output, failed=number == 4)])])
        for number in range(60):
            path = "src/gateway.py" if number < 9 else "nothing"
            repo.append("assistant", f"Step {number}: `step_{number}` in {path} is called.")
        for _ in range(2):
            repo.append("user", "Go on.")
        found = proposed(repo)
    for reason, at in (("duplicate", 0), ("similar", 2), ("failed", 4)):
        [each] = found[reason]
        assert each.explanation.startswith(commands[at][:60])
        assert each.explanation[60:].startswith((" is 9", ": "))
    assert found["pin"][0].explanation == f"9 later messages use it: {prompt[:60]}"
    changed = [(each.addresses, each.call_id) for group in found.values() for each in group]
    assert len(changed) == len(set(changed)), "each output for one reason"


@pytest.mark.parametrize(("turns", "is_proposed"), [(0, False), (1, False), (2, True), (3, True)])
def test_what_failed_in_the_last_two_turns_is_not_to_go(turns: int, is_proposed: bool) -> None:
    with Repo.memory() as repo:
        repo.append("user", "Begin.")
        repo.append("user", "Run the tests.")
        repo.commit([Message("assistant", [call(1, "Bash", command="pytest -q")])])
        repo.commit([Message("tool", [result(1, f"ValueError: x\n{LONG}", failed=True)])])
        for _ in range(turns):
            repo.append("user", "Go on.")
            repo.append("assistant", "Done.")
        assert ("failed" in proposed(repo)) is is_proposed


def test_a_file_that_cannot_be_looked_up_is_not_stale() -> None:
    """A repository in memory has no folder that a relative path starts from."""
    with Repo.memory() as repo:
        repo.append("user", "Read it.")
        repo.commit([Message("assistant", [call(1, "Read", file_path="no_such_file.md")])])
        repo.commit([Message("tool", [result(1, LONG)])])
        repo.append("user", "Go on.")
        assert "stale" not in proposed(repo)


def test_heat_is_what_its_formula_says() -> None:
    """Both counted by hand, for messages that name some of 30 things each."""
    chance = random.Random(7)
    names = [f"name_{number}" for number in range(30)]
    with Repo.memory() as repo:
        repo.commit(
            [
                Message("user", " ".join(chance.sample(names, chance.randrange(4))) or "-")
                for _ in range(70)
            ]
        )
        repo.annotate(repo.compile().messages[30].address, priority="pinned")
        messages = repo.compile().messages
        heat = Heat(messages)
        marks = [marks_of(message.parts) for message in messages]
    count = len(marks)
    places = {name: [at for at in range(count) if name in marks[at]] for name in names}
    weigh = [0.5 ** ((count - 1 - at) / 40) for at in range(count)]
    raw = []
    for at, own in enumerate(marks):
        known = [places[each] for each in own if 2 <= len(places[each]) <= count * 0.2]
        used = sum(
            math.log(count / len(where)) * weigh[later]
            for where in known
            for later in where
            if later > at
        )
        raw.append(weigh[at] + used / math.sqrt(len(own) or 1))
        assert heat.mentions[at] == len({n for where in known for n in where if n > at})
    wanted = [each / max(raw) for each in raw]
    wanted[30] = 1.0
    assert heat.values == pytest.approx(wanted, abs=1e-4)


def test_a_name_that_a_fifth_of_the_messages_have_says_nothing() -> None:
    for uses, is_kept in ((1, True), (4, True), (5, False)):
        with Repo.memory() as repo:
            repo.commit([Message("user", "see my_name" if n < uses else "-") for n in range(20)])
            assert Heat(repo.compile().messages).marks[0] == ({"my_name"} if is_kept else set())


def test_the_marks_of_a_text() -> None:
    text = "see src/app.py. and open_it, camelCase, plainwords 12 345 abcdef0 abcdef ./x/y_z.- A1 1234567"
    wanted = {"src/app.py", "app.py", "open_it", "camelCase", "345", "abcdef0", "x/y_z", "y_z"}
    assert marks_of([Text(text)]) == {*wanted, "1234567"}
    many = " ".join(f"name_{number}" for number in range(900))
    assert marks_of([Text(many), Text("one_more")]) == {f"name_{number}" for number in range(400)}
    pairs = " ".join(f"dir/name_{number}" for number in range(900))
    assert len(marks_of([Text(f"single_one {pairs}")])) == 401, "a path and its name come together"
    parts = [call(1, "Read", file_path="src/lexer.py"), result(1, "result_of_it")]
    assert marks_of(parts) == {"src/lexer.py", "lexer.py", "result_of_it"}
    answer = result(2, '{"field_name": "value_of_it", "nested": {"other_field": 5}}')
    assert marks_of([answer]) == {"value_of_it"}, "names of fields are no topics"


def test_sets_of_names_join_the_topic_with_the_largest_overlap() -> None:
    assert topics([{"a", "b"}, {"c"}, {"b", "d"}, set("axyzw"), {"d", "c"}, set()]) == [
        [0, 2, 3],
        [1, 4],
        [5],
    ]
    assert topics([set("abcde"), set("apqrs")]) == [[0, 1]], "a fifth is enough"
    assert topics([set("abcdef"), set("apqrst")]) == [[0], [1]]
    single = [{f"t{number}"} for number in range(31)]
    for name, wanted in (("t0", [[0], [1]]), ("t1", [[0], [1, 31]])):
        assert topics([*single, {name}])[:2] == wanted, "of the last thirty topics"


def test_near_duplicates_are_those_that_share_most_sequences_of_words() -> None:
    chance = random.Random(3)
    words = [f"word{number}" for number in range(400)]
    texts = [" ".join(words)]
    for changed in (1, 4, 8, 60):
        other = list(words)
        for at in chance.sample(range(400), changed):
            other[at] = f"other{at}"
        texts.append(" ".join(other))
    split = [text.split() for text in texts]
    runs = [{tuple(own[at : at + 4]) for at in range(397)} for own in split]
    for text, own in zip(texts[1:], runs[1:], strict=True):
        share = len(runs[0] & own) / len(runs[0] | own)
        found = list(near_duplicates([texts[0], text]))
        assert [each[:2] for each in found] == ([(0, 1)] if share > 0.8 else [])
        assert all(abs(each[2] - share) < 0.1 for each in found)
    assert list(near_duplicates(["a b c d e f g"] * 2)) == [], "too short"
    assert list(near_duplicates(["a b c d e f g h", texts[0]] * 2)) == [(0, 2, 1.0), (1, 3, 1.0)]
    assert list(near_duplicates(texts[:1] * 30)) == [(at, 29, 1.0) for at in range(29)]


def test_what_is_cold_is_proposed_with_the_reason() -> None:
    """One fixed session: four files are read, one of which later work is about, then 60 answers."""
    with Repo.memory() as repo:
        for number, name in enumerate(("alpha", "beta", "gamma", "delta")):
            repo.append("user", f"Look at {name} now, part {number}.")
            repo.commit([Message("assistant", [call(number, "Read", file_path=f"src/{name}.py")])])
            text = "\n".join(f"{name} {n % 90}" for n in range(120 if name == "beta" else 70))
            repo.commit([Message("tool", [result(number, text)])])
            repo.append("assistant", "It is fine.")
        repo.commit([Message("assistant", [call(90, "Bash", command="make all")])])
        made = "\n".join(f"made {number % 90}" for number in range(110))
        repo.commit([Message("tool", [result(90, made)])])
        repo.append("assistant", "In src/beta.py and beta_one it is done.")
        for number in range(60):
            repo.append("assistant", f"Step {number} of `work_{number // 9}` is done.")
        for _ in range(2):
            repo.append("user", "Go on.")
        found = repo.compression.suggest()
        places = {message.address: at for at, message in enumerate(repo.compile().messages)}
        starts = [at for at, each in enumerate(repo.compile().messages) if each.role == "user"]
    said = {
        (each.reason, *(places[address] for address in each.addresses)): each.explanation
        for each in found.proposals
    }
    cold = "its output is hardly used any more (heat {})"
    assert said == {
        ("cold", 6): f"beta.py: {cold.format('2%')}",
        ("cold", 1, 2, 3): "nothing later uses this: alpha.py, src/alpha.py",
        ("cold", 9, 10, 11): "nothing later uses this: gamma.py, src/gamma.py",
        ("cold", 17): f"make all: {cold.format('2%')}",
    }

    def mean(own: list[int]) -> float:
        return round(sum(found.heat[at] for at in own) / len(own), 4)

    for each in found.proposals:
        assert each.heat == mean([places[address] for address in each.addresses])
    ends = [*starts[1:], len(places)]
    for topic in found.topics:
        named = [places[address] for address in topic.turns]
        own = [
            at
            for start, end in zip(starts, ends, strict=True)
            for at in range(start, end)
            if start in named
        ]
        assert (topic.tokens, topic.heat) == (sum(found.sizes[at] for at in own), mean(own))
    assert [(len(each.names), len(each.turns)) for each in found.topics] == [(2, 1), (4, 2), (2, 1)]

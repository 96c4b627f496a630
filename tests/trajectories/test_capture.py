"""Each block in the output of an agent is recorded once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.growth.support.counting import calls_of
from tests.support.command_line import Trace
from trace_store import Repo, errors
from trace_store.trajectories.capture import Block, BlockReader, blocks_in, read_block

TEXT = """\
I looked at both. [[TRAJECTORY:decision]]
{"question": "Where?", "chosen": "in memory", "alternatives": ["redis: to operate"], "cost": 3}
[[/TRAJECTORY]] Then:
[[RETROSPECTIVE]]
**summary**: Tokens are signed
and refreshed
learnings:
- clocks differ
- tests help
confidence: 0.9
[[/RETROSPECTIVE]]
[[TRAJECTORY:note]] first read the docs [[/TRAJECTORY]]
[[TRAJECTORY:note]] {"content": [[TRAJECTORY:chapter]] Tests [[/TRAJECTORY]]
[[TRAJECTORY:error]] {"content": "it timed out"
"""


def read(block: Block) -> Any:
    try:
        (found,) = read_block(block)
        return found
    except errors.InvalidInputError as error:
        return str(error)


def test_blocks_of_a_text() -> None:
    decision, retrospective, note, unclosed, chapter, error = map(read, blocks_in(TEXT))
    assert decision == {
        "type": "decision",
        "content": "in memory",
        "question": "Where?",
        "alternatives": [{"option": "redis", "reason": "to operate"}],
        "raw": {"cost": 3},
    }
    assert retrospective == {
        "type": "retrospective",
        "summary": "Tokens are signed\nand refreshed",
        "learnings": ["clocks differ", "tests help"],
        "confidence": 0.9,
    }
    assert note == {"type": "note", "content": "first read the docs"}
    assert chapter == {"type": "chapter", "title": "Tests"}
    assert "not closed" in unclosed
    assert "not closed" in error


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_a_stream_has_the_same_blocks_as_its_text(size: int) -> None:
    reader = BlockReader()
    pieces = [TEXT[at : at + size] for at in range(0, len(TEXT), size)]
    found = [block for piece in pieces for block in reader.feed(piece)]
    assert [*found, *reader.finish()] == list(blocks_in(TEXT))


@pytest.mark.parametrize(
    "body",
    [
        '{"content": "it\'s", "tags": ["a", "b"]}',
        '{"content": "it\'s", "tags": ["a", "b",],}',
        "{'content': 'it\\'s', 'tags': ['a', 'b']}",
        '```json\n{"content": "it\'s", "tags": ["a", "b"]}\n```',
        "content: it's\ntags:\n- a\n- b",
        "it's\ntags:\n  * a\n  * b\n",
    ],
)
def test_small_faults_are_repaired(body: str) -> None:
    assert read(Block(1, "finding", body)) == {
        "type": "finding",
        "content": "it's",
        "tags": ["a", "b"],
    }


@pytest.mark.parametrize(
    ("type", "body", "reason"),
    [
        ("note", "{content: 1", "not JSON"),
        ("note", '{"confidence": NaN, "content": "x"}', "not a JSON number"),
        ("note", "[" * 9 + "{" * 9_999, None),
        ("note", "{" * 9_999, "not JSON"),
        ("note", "", "no content"),
        ("decision", '{"question": "x"}', "no content"),
        ("retrospective", '{"approach": "x"}', "no summary"),
        ("decision", '{"chosen": "x", "confidence": 7}', "confidence is a number from 0 to 1"),
        ("completed", "{}", "a block cannot record the type 'completed'"),
        ("linked", '{"commit": "ab"}', "a block cannot record"),
        ("note", None, "not closed"),
    ],
)
def test_bad_blocks_have_a_reason(type: str, body: str | None, reason: str | None) -> None:
    found = read(Block(1, type, body))
    assert (reason in found) if reason else found["content"]


def test_a_scan_records_each_block_once(repo: Repo) -> None:
    tr = repo.trajectories
    said = repo.append("assistant", TEXT)
    repo.append("user", "[[TRAJECTORY:note]] people say this [[/TRAJECTORY]]")
    with pytest.raises(errors.StateError, match="no trajectory is active"):
        tr.capture.scan()
    tr.start("Sign in")
    found = tr.capture.scan()
    assert [made.event.type for made in found.recorded] == [
        *("decision", "retrospective", "note", "chapter"),
    ]
    assert [(bad.number, bad.type) for bad in found.bad] == [(4, "note"), (6, "error")]
    event = found.recorded[0].event
    assert event.data["source"].startswith(said.oid.hex()[:12])
    assert event.session == said.oid
    again = tr.capture.scan()
    assert (again.recorded, again.bad) == ((), ())
    Path(repo.store.layout.captured_file).unlink()
    again = tr.capture.scan()
    assert (again.recorded, again.known, len(again.bad)) == ((), 4, 2)


def test_a_fork_records_nothing_twice(repo: Repo) -> None:
    tr = repo.trajectories
    tr.start("Sign in")
    repo.append("assistant", "[[TRAJECTORY:note]] one [[/TRAJECTORY]]")
    repo.branches.create("idea")
    repo.append("assistant", "[[TRAJECTORY:note]] two [[/TRAJECTORY]]", ref="idea")
    found = tr.capture.scan_all()
    assert sorted(made.event.content for made in found.recorded) == ["one", "two"]
    assert tr.capture.scan("idea").recorded == ()


def test_a_scan_reads_new_messages_only(repo: Repo) -> None:
    repo.trajectories.start("Sign in")
    costs = []
    for count in (5, 100):
        for _ in range(count):
            repo.append("assistant", "nothing [[here]]")
        repo.trajectories.capture.scan()
        repo.append("assistant", "nothing")
        costs.append(calls_of(repo.trajectories.capture.scan).total())
    assert costs[1] <= costs[0] + 100


def test_blocks_of_new_messages_are_recorded_if_the_setting_is_on(
    ok: Trace, tmp_path: Path
) -> None:
    block = "[[TRAJECTORY:note]] {} [[/TRAJECTORY]]"
    ok("config", "trajectory_capture", "on")
    ok("commit", "--assistant", block.format("early"), "-q")
    ok("tr", "start", "Sign in", "-q")
    ok("commit", "--assistant", block.format("late") + "[[TRAJECTORY:note]]", "-q")
    chat = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": block.format("far")},
    ]
    (tmp_path / "chat.json").write_text(json.dumps({"messages": chat}))
    ok("import", "-q", "chat.json")
    shown = ok("tr", "show").text
    assert "late" in shown
    assert "far" in shown
    assert "early" not in shown  # it was written before the trajectory was started
    outcome = ok("tr", "capture")
    assert "early" in outcome.text
    assert "late" not in outcome.text
    assert "block 2 of" in outcome.err


def test_a_scan_on_the_command_line(ok: Trace, trace: Trace) -> None:
    ok("tr", "start", "Sign in", "-q")
    ok("commit", "--assistant", "[[TRAJECTORY:note]] {bad [[/TRAJECTORY]]", "-q")
    outcome = trace("tr", "capture", "--strict")
    assert outcome.code == 7
    assert "(note) not recorded: the block is not JSON" in outcome.err
    assert "no new blocks" in ok("tr", "capture", "--strict").err
    assert trace("tr", "capture", "main", "--all").code == 2
    assert trace("tr", "capture", "nothing").code == 4


def test_a_stream_is_recorded_and_passed_on(ok: Trace, trace: Trace) -> None:
    text = b"\xffbefore [[TRAJECTORY:finding]] clocks differ [[/TRAJECTORY]]\n[[TRAJECTORY:x"
    outcome = trace("tr", "feed", "--tee", stdin=text)
    assert outcome.out == text
    assert "block 1 (finding) not recorded: no trajectory is active" in outcome.err
    assert outcome.code == 0
    ok("tr", "start", "Sign in", "-q")
    outcome = ok("tr", "feed", "--agent", "bo", stdin=text)
    assert (outcome.out, outcome.err) == (b"", "1 block recorded\n")
    assert (
        re.search(r"finding d\d bo", ok("tr", "show").text) is None
    )  # only decisions have numbers
    assert "bo: clocks differ" in ok("tr", "show").text
    assert trace("tr", "feed", "--strict", stdin=b"[[RETROSPECTIVE]]").code == 7


DECISION = '[[TRAJECTORY:decision]] {"question": "Q", "chosen": "C"} [[/TRAJECTORY]]'


@pytest.mark.parametrize(
    "text",
    [
        f"Write such a block:\n\n```\n{DECISION}\n```\n\nThen go on.",
        f"  ~~~text\n{DECISION}\n```\n{DECISION}\n  ~~~",
        f"The form is `{DECISION}`, on one line.",
        f"The form is ``a ` {DECISION}``.",
        "> [[TRAJECTORY:decision]]\n> question: q\n> chosen: c\n> [[/TRAJECTORY]]",
        f"> > {DECISION}",
        f"> ```\n> {DECISION}\n> ```",
    ],
)
def test_examples_are_text(text: str) -> None:
    assert list(blocks_in(text)) == []
    assert len(list(blocks_in(f"{text}\n\n{DECISION}"))) == 1
    reader = BlockReader()
    assert [block for each in text for block in reader.feed(each)] == []


@pytest.mark.parametrize(
    "text",
    [
        f"`code` and {DECISION}",
        f"```\ncode\n```\n{DECISION}",
        f"A quote:\n> text\n\n{DECISION}",
        '[[TRAJECTORY:decision]]\n```json\n{"chosen": "C"}\n```\n[[/TRAJECTORY]]',
    ],
)
def test_blocks_after_code_and_quotes_are_no_examples(text: str) -> None:
    (block,) = blocks_in(text)
    assert read(block)["content"] == "C"


def test_the_body_of_an_event_names_its_type() -> None:
    body = (
        '{"type": "decision", "content": "PostgreSQL, not SQLite", "significance": "high", '
        '"alternatives": ["MySQL"], "reasoning": "JSONB"}'
    )
    assert read(Block(1, "event", body)) == {
        "type": "decision",
        "content": "PostgreSQL, not SQLite",
        "significance": "high",
        "alternatives": [{"option": "MySQL"}],
        "reasoning": "JSONB",
    }
    assert read(Block(1, "event", "type: finding\ncontent: it rains"))["type"] == "finding"
    assert "cannot record the type" in read(Block(1, "event", '{"type": "completed"}'))


def test_decisions_of_a_retrospective_are_recorded_once(repo: Repo) -> None:
    decisions = [{"question": "Q", "chosen": "C", "alternatives": ["A"], "reasoning": "R"}]
    body = json.dumps({"summary": "done", "decisions": decisions})
    first, last = read_block(Block(1, "retrospective", body))
    assert (first["type"], first["content"], last["type"]) == ("decision", "C", "retrospective")
    tr = repo.trajectories
    tr.start("Sign in")
    tr.decide("Q", "C")
    more = [*decisions, {"question": "Q2", "chosen": "C2"}]
    tr.complete({"summary": "done", "decisions": more})
    assert [each.content for each in tr.read().decisions] == ["C", "C2"]

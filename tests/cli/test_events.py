"""`trace emit` and `trace follow`: exact output, and refused input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.command_line import Run, Trace
from trace_store.store.store import Store

SINCE = ("--since", "2020-01-01", "--timeout", "0")
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def test_plain_lines(ok: Run) -> None:
    assert ok("emit", "progress", "step=3", "note=a=b \t c").out == b""
    ok("commit", "-q", "--no-seal", "--user", "hello")
    tip = ok("rev-parse", "HEAD").text.strip()
    first, second = ok("follow", *SINCE).lines
    assert re.fullmatch(TIME + r' progress \{"step": "3", "note": "a=b \\t c"\}', first), first
    assert re.fullmatch(f"{TIME} ref refs/heads/main {'0' * 64} {tip}", second), second


def test_json_lines(ok: Run) -> None:
    lines = b'{"share": 0.5}\n\n{"names": ["\xc3\xa9", null]}\n'
    ok("emit", "progress", "--json", stdin=lines)
    ok("commit", "-q", "--no-seal", "--user", "hello")
    tip = ok("rev-parse", "HEAD").text.strip()
    told = [json.loads(line) for line in ok("follow", "--json", *SINCE).lines]
    assert all(re.fullmatch(TIME, each.pop("time")) for each in told)
    assert all(each.pop("author") for each in told)
    emitted = {"kind": "progress", "ref": None, "old": None, "new": None}
    assert told == [
        {**emitted, "data": {"share": 0.5}},
        {**emitted, "data": {"names": ["é", None]}},
        {
            "kind": "ref",
            "data": {"message": "commit"},
            "ref": "refs/heads/main",
            "old": None,
            "new": tip,
        },
    ]


def test_it_stops_after_a_number_of_events(ok: Run) -> None:
    ok("emit", "progress", "--json", stdin=b"{}\n{}\n{}\n")
    assert len(ok("follow", "-n", "2", "--since", "2020-01-01").lines) == 2
    assert ok("follow", "-n", "0").out == b""
    assert ok("follow", "--timeout", "0").out == b""


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (["emit", "Progress"], b""),
        (["emit", "ref"], b""),
        (["emit", "progress", "step"], b""),
        (["emit", "progress", "=3"], b""),
        (["emit", "progress", "--json", "a=b"], b""),
        (["emit", "progress", "--json"], b"[]\n"),
        (["emit", "progress", "--json"], b"{\n"),
        (["emit", "progress", "--json"], b'{"a": NaN}\n'),
        (["emit", "progress", "--json"], b'{"a": "\xff"}\n'),
        (["follow", "--since", "whenever"], b""),
    ],
)
def test_what_is_refused(repository: Trace, words: list[str], stdin: bytes) -> None:
    outcome = repository(*words, stdin=stdin)
    assert outcome.code in (2, 7), outcome.err
    assert outcome.err.startswith("trace: error: ")
    assert repository("follow", *SINCE).out == b""


def test_a_hostile_event_is_shown_safely(ok: Run) -> None:
    ok("emit", "progress", "text=\x1b[31m\u202e\x07")
    assert b"\x1b" not in ok("follow", *SINCE, terminal=True).out
    assert b"\x1b" not in ok("follow", "--json", *SINCE, terminal=True).out


def test_a_purge_removes_emitted_text_too_while_somebody_follows(ok: Run) -> None:
    folder = Path.cwd()
    with Store.open(str(folder / ".trace")) as store, store.follow():
        for number in range(3):
            ok("commit", "-q", "--user", f"correct horse battery {number}")
            ok("seal")
        ok("emit", "progress", "text=correct horse battery 0")
        ok("purge", "--match", "correct horse battery 0", "--yes", "--verify")
    held = [path for path in folder.rglob("*") if path.is_file()]
    assert all(b"correct horse battery 0" not in path.read_bytes() for path in held)

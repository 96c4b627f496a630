"""Reading files in chunks of any size, with anything between valid records."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cases.support.inputs import case
from tests.support.command_line import Run, Trace
from trace_cli.porcelain.progress import Progress
from trace_store.base.environment import Environment
from trace_store.importers import import_file, input_files
from trace_store.importers.formats.chats import reader as chats

CHUNK = input_files.CHUNK_BYTES


def transcript(shift: int = 0, more: int = 20) -> bytes:
    """Return a transcript with a line that ends `shift` bytes after the first chunk.

    Also returns the lines after that.
    """
    out: list[bytes] = []

    def add(text: str) -> None:
        number = len(out)
        said: dict[str, object] = {"role": "user", "content": text}
        if number % 2:
            content = [{"type": "text", "text": text}]
            said = {"id": f"m{number}", "role": "assistant", "model": "m", "content": content}
        record = {
            "type": said["role"],
            "uuid": f"u{number:06d}",
            "parentUuid": f"u{number - 1:06d}" if number else None,
            "sessionId": "s1",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "message": said,
        }
        out.append(json.dumps(record).encode() + b"\n")

    while sum(map(len, out)) < CHUNK - 100_000:
        add("x" * 30_000)
    add("")
    room = CHUNK - sum(map(len, out)) + shift
    out.pop()
    add("y" * room)
    for number in range(more):
        add(f"after {number}")
    return b"".join(out)


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_case_49_a_line_that_ends_with_a_chunk(ok: Run, tmp_path: Path, shift: int) -> None:
    data = transcript(shift)
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    report = json.loads(ok("import", "s.jsonl", "--json").text)
    assert report["outcomes"] == {"message": data.count(b"\n")}
    assert ok("export", "--native").out == data


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_case_49_a_file_that_has_grown(ok: Run, tmp_path: Path, shift: int) -> None:
    first, data = transcript(shift, more=0), transcript(shift)
    path = tmp_path / "s.jsonl"
    for part in (first[:5_000], first, data):
        path.write_bytes(part)
        ok("import", "s.jsonl")
    assert len(ok("log").lines) == data.count(b"\n")
    assert ok("export", "--native").out == data


PIECEWISE = ("08", "24", "25", "33", "34")
"""Cases with files of Codex, ATIF, plain chats, Claude Code, and Copilot."""


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("number", PIECEWISE)
def test_case_49_the_size_of_the_pieces_changes_nothing(
    ok: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: str,
    size: int,
) -> None:
    files = [str(each) for each in sorted(case(number).iterdir())]
    ok("import", *files)
    at_once = [line for line in ok("for-each-ref").lines if "refs/trash/" not in line]
    os.rename(".trace", "at-once")
    ok("init", "-q")
    for module in (import_file, chats):
        monkeypatch.setattr(module, "read_lines", partial(input_files.read_lines, chunk_bytes=size))
    for path in files:  # as they grow, too
        data = Path(path).read_bytes()
        grown = tmp_path / Path(path).name
        for end in (len(data) // 2, len(data)) if path.endswith(".jsonl") else (len(data),):
            grown.write_bytes(data[:end])
            ok("import", str(grown))
        ok("import", path)
    assert [line for line in ok("for-each-ref").lines if "refs/trash/" not in line] == at_once


SOUND = {
    "24-nan-atif/nb-atif.json": ["Q1", "A1", "Q2", "A2"],
    "25-nan-chat/nan-chat.jsonl": ["Q", "A", "Q2"],
    "25-nan-chat/nb-chat.json": ["Q1", "A1", "Q2", "A2"],
    "25-nan-chat/nb-gemini-resp.json": ["Q1", "A1", "Q2"],
    "25-nan-chat/nb-lc.json": ["Q1", "A1", "Q2", "A2"],
    "33-torn-then-whole/jl-torn-in-string-then-whole.jsonl": ["second answer", "third answer"],
    "33-torn-then-whole/jl-torn-self-then-whole.jsonl": ["second answer", "third answer"],
    "33-torn-then-whole/jl-torn-then-whole.jsonl": ["second answer", "third answer"],
    "34-torn-copilot/torn-copilot.jsonl": ["a b c", "the answer is a b c", "question two"],
}


@pytest.mark.parametrize("name", SOUND)
def test_case_24_25_33_34_every_sound_message_is_there(ok: Run, name: str) -> None:
    folder, _, file = name.partition("/")
    path = case(folder[:2]) / file
    outcome = ok("import", str(path))
    text = ok("compile", "--format", "text").text
    for said in SOUND[name]:
        assert said in text
    assert ok("export", "--native").out == path.read_bytes()
    if "torn" in name:
        assert "truncated before the next record" in outcome.err


RECORDS: list[dict[str, Any]] = [
    {"type": "user", "uuid": "u0", "parentUuid": None, "sessionId": "s", "message": {}},
    {"type": "assistant", "uuid": "u1", "parentUuid": "u0", "sessionId": "s", "message": {}},
]
RECORDS[0]["message"] = {"role": "user", "content": "What is 2 + 2? naïve 日本"}
RECORDS[1]["message"] = {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "4"}]}
LINES = [json.dumps(each, ensure_ascii=False).encode() for each in RECORDS]

DAMAGED = {
    "zeros before a record": b"\0" * 512 + LINES[0] + b"\n" + LINES[1] + b"\n",
    "zeros between": LINES[0] + b"\n" + b"\0" * 4096 + LINES[1] + b"\n",
    "half of itself": LINES[0] + b"\n" + LINES[1][:60] + LINES[1] + b"\n",
    "three halves": LINES[0] + b"\n" + LINES[1][:60] * 3 + LINES[1] + b"\n",
    "NaN": LINES[0] + b"\n" + LINES[1].replace(b'"u1"', b'"u1","x":-Infinity,"y":1e999') + b"\n",
    "5,000 digits": LINES[0] + b"\n" + LINES[1].replace(b'"u1"', b'"u1","x":' + b"9" * 5000),
    "a byte that is not UTF-8": LINES[0] + b"\n" + LINES[1].replace(b'"4"', b'"4 \xff"') + b"\n",
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_case_25_33_variants(ok: Run, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "s.jsonl").write_bytes(data)
    ok("import", "s.jsonl")
    text = ok("compile", "--format", "text").text
    assert "What is 2 + 2? naïve 日本" in text
    assert "\n4" in text
    assert ok("export", "--native").out == data


def printed(records: list[object], indent: int | None) -> bytes:
    return "\n".join(json.dumps(each, indent=indent) for each in records).encode()


PLAIN = b"\n".join([*LINES, b""])
ENCODED = {
    "UTF-16 LE": "\ufeff".encode("utf-16-le") + PLAIN.decode().encode("utf-16-le"),
    "UTF-16 BE": "\ufeff".encode("utf-16-be") + PLAIN.decode().encode("utf-16-be"),
    "UTF-32": PLAIN.decode().encode("utf-32"),
    "UTF-8 with a mark": b"\xef\xbb\xbf" + PLAIN,
    "gzip": gzip.compress(PLAIN),
    "pretty-printed": printed(list(RECORDS), 2),
    "concatenated": b"".join(LINES),
    "zeros first": b"\0" * 512 + PLAIN,
    "a large number first": PLAIN.replace(b'{"type"', b'{"n": ' + b"9" * 5000 + b', "type"', 1),
}


@pytest.mark.parametrize("data", ENCODED.values(), ids=ENCODED)
def test_case_46_other_encodings_are_read(ok: Run, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "s.jsonl").write_bytes(data)
    ok("import", "s.jsonl")
    text = ok("compile", "--format", "text").text
    assert "What is 2 + 2? naïve 日本" in text
    assert "\n4" in text


@pytest.mark.parametrize("data", ENCODED.values(), ids=ENCODED)
def test_case_46_standard_input_is_read_as_a_file_is(ok: Run, data: bytes) -> None:
    ok("import", "-", stdin=data)
    assert "What is 2 + 2? naïve 日本" in ok("compile", "--format", "text").text


@pytest.mark.parametrize("format", ["claude-code", "codex", "copilot", "droid", "gemini"])
@pytest.mark.parametrize("indent", [None, 2])
def test_records_in_a_list_are_never_passed_over_without_a_word(
    repository: Trace, tmp_path: Path, format: str, indent: int | None
) -> None:
    (tmp_path / "s.jsonl").write_text(json.dumps(RECORDS, indent=indent), encoding="utf-8")
    outcome = repository("import", "--format", format, "s.jsonl")
    assert outcome.code == 2 or repository("log").lines


def test_case_46_what_powershell_writes(ok: Run) -> None:
    (path,) = case("46").iterdir()
    ok("import", str(path))
    assert ok("log").lines


def test_case_46_nothing_read_is_an_error(repository: Trace, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(LINES[0][:80] + b"\nx\n")
    outcome = repository("import", "--format", "claude-code", "s.jsonl")
    assert outcome.code == 2
    assert "no readable claude-code records: s.jsonl" in outcome.err


@pytest.mark.parametrize("line", ["{}", "x", "[]", '{"a":1}x', '{"a":"'])
def test_case_52_many_short_lines_are_counted(ok: Run, tmp_path: Path, line: str) -> None:
    count = 20_000
    (tmp_path / "s.jsonl").write_bytes(PLAIN + f"{line}\n".encode() * count)
    report = json.loads(ok("import", "s.jsonl", "--json").text)
    assert sum(report["outcomes"].values()) >= count + 2
    assert len(report["files"][0]["skips"]) <= 1_000


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_case_52_a_named_pipe_is_refused(repository: Trace, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    outcome = repository("import", "pipe")
    assert outcome.code == 2
    assert "not a regular file: pipe" in outcome.err


def test_case_08_a_compressed_rollout_is_the_same_session(ok: Run, tmp_path: Path) -> None:
    (path,) = (p for p in case("08").iterdir() if p.suffix == ".zst")
    ok("import", str(path))
    tip = ok("rev-parse", "HEAD").text
    ok("export", "--native", "-o", "plain.jsonl")
    ok("import", "plain.jsonl")
    assert ok("rev-parse", "HEAD").text == tip
    ok("import", str(path))
    assert ok("rev-parse", "HEAD").text == tip
    assert len(ok("branch").lines) == 1


def test_case_08_compressed_rollouts_are_found(repository: Trace, tmp_path: Path) -> None:
    zstd = pytest.importorskip("backports.zstd")
    (path,) = (p for p in case("08").iterdir() if p.suffix == ".jsonl")
    text = path.read_text(encoding="utf-8")
    cwd = json.loads(text.splitlines()[0])["payload"]["cwd"]
    folder = tmp_path / "codex/sessions/2026"
    folder.mkdir(parents=True)
    data = zstd.compress(text.replace(json.dumps(cwd), json.dumps(str(tmp_path))).encode())
    (folder / "rollout-a.jsonl.zst").write_bytes(data)
    (folder / "rollout-b.jsonl.zst").write_bytes(data[: len(data) // 2])
    environment = Environment(codex_dir=str(tmp_path / "codex"), home=str(tmp_path))
    outcome = repository("import", "--all", environment=environment)
    assert "rollout-a.jsonl.zst" in outcome.text
    assert repository("log").code == 0


@pytest.mark.parametrize("kind", ["v1", "v2", "dual"])
def test_case_09_databases_of_opencode(repository: Trace, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "data/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    dump = (case("09") / f"{kind}.sql").read_text(encoding="utf-8")
    with closing(sqlite3.connect(path)) as base:
        base.executescript(dump.replace("/PROJECT", str(tmp_path)))
    environment = Environment(data_dir=str(tmp_path / "data"))
    assert repository("import", "--all", environment=environment).code == 0
    if kind != "v1":
        text = repository("compile", "sessions/opencode/ses_new", "--format", "text").text
        assert all(each in text for each in ("new question", "new answer", "content of a"))


def test_case_09_a_newer_database_is_said_loudly(repository: Trace, tmp_path: Path) -> None:
    path = tmp_path / "data/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as base:
        base.executescript("CREATE TABLE session_v9 (id text)")
    outcome = repository(
        "import", "--all", environment=Environment(data_dir=str(tmp_path / "data"))
    )
    assert outcome.code == 2
    assert "unknown tables" in outcome.err


def test_where_nothing_is_found_other_folders_are_named(repository: Trace, tmp_path: Path) -> None:
    folder = tmp_path / "claude/projects/-elsewhere-app"
    folder.mkdir(parents=True)
    record = {**RECORDS[0], "cwd": "/elsewhere/app"}
    (folder / "s.jsonl").write_bytes(json.dumps(record).encode() + b"\n")
    environment = Environment(claude_dir=str(tmp_path / "claude"))
    outcome = repository("import", "--all", environment=environment)
    assert outcome.code == 4
    assert f"looked in {tmp_path}/claude" in outcome.err
    assert "sessions exist for /elsewhere/app" in outcome.err


@pytest.mark.parametrize("growth", [[], [1], [2, 3, 5]])
@pytest.mark.parametrize(
    "name", ["plain.jsonl", "rollout-2026-08-04-0198f000-0000-7000-8000-00000000000a.jsonl"]
)
def test_a_header_that_comes_late_makes_no_second_session(
    ok: Run, tmp_path: Path, name: str, growth: list[int]
) -> None:
    (path,) = (p for p in case("08").iterdir() if p.suffix == ".jsonl")
    header, *others = path.read_bytes().splitlines(keepends=True)
    late = [*others[:3], header, *others[3:]]
    for count in (*growth, len(late)):
        (tmp_path / name).write_bytes(b"".join(late[:count]))
        ok("import", name)
    assert len(ok("branch").lines) == 1
    assert ok("export", "--native").out == b"".join(late)


def test_a_session_that_has_only_its_header_is_no_error(ok: Run, tmp_path: Path) -> None:
    (path,) = (p for p in case("08").iterdir() if p.suffix == ".jsonl")
    (tmp_path / "s.jsonl").write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    ok("import", "s.jsonl")
    (tmp_path / "s.jsonl").write_bytes(path.read_bytes())
    ok("import", "s.jsonl")
    assert ok("export", "--native").out == path.read_bytes()


def test_an_interrupted_import_says_how_far_it_is(
    repository: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_bytes(PLAIN)
    (tmp_path / "b.jsonl").write_bytes(PLAIN.replace(b'"sessionId": "s"', b'"sessionId": "t"'))
    tell = Progress.tell

    def stop(self: Progress, path: str, done: int, whole: int) -> None:
        tell(self, path, done, whole)
        if path == "b.jsonl":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "tell", stop)
        outcome = repository("import", "a.jsonl", "b.jsonl")
    assert outcome.code == 130
    assert "interrupted at b.jsonl" in outcome.err
    assert "repeat the command to continue" in outcome.err
    assert repository("rev-parse", "sessions/claude-code/s").code == 0
    assert repository("import", "a.jsonl", "b.jsonl").code == 0
    assert len(repository("branch").lines) == 2

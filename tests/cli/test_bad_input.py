"""Bad input: one clear error line, the documented exit code, no traceback, an unchanged store."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.support.command_line import Outcome, Run, Trace
from tests.support.files import flip
from trace_store.base.oid import hash_object


def state(folder: Path) -> dict[str, str]:
    """Name every lasting file under a folder with a hash of its content."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] not in ("index", "cache", "locks")
    }


def refused(outcome: Outcome, code: int, *said: str) -> None:
    assert outcome.code == code, outcome
    assert not outcome.out
    lines = outcome.err.splitlines()
    assert lines[0].startswith("trace: error: ")
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("hint: "))
    for text in said:
        assert text in lines[0]


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    folder = tmp_path / "inputs"
    folder.mkdir()
    (folder / "empty").write_bytes(b"")
    (folder / "binary").write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    (folder / "zero").write_bytes(b"text\x00more")
    (folder / "bad.json").write_text('{"role": "user",\n "content": }')
    (folder / "bad.jsonl").write_text('{"role": "user", "content": "x"}\n{"role": \n')
    (folder / "role.json").write_text('{"role": "robot", "content": "x"}')
    (folder / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
    (folder / "number.json").write_text("5")
    return folder


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["commit", "-F", "inputs/empty"], 2, ["empty"]),
        (["commit", "-F", "inputs/binary"], 2, ["not text", "line 1"]),
        (["commit", "-F", "inputs/zero"], 2, ["not text"]),
        (["commit", "-F", "inputs"], 2, ["inputs", "directory"]),
        (["commit", "-F", "inputs/nothing"], 2, ["No such file"]),
        (["commit", "--json", "-F", "inputs/empty"], 2, ["empty"]),
        (["commit", "--json", "-F", "inputs/binary"], 2, ["not text"]),
        (["commit", "--json", "-F", "inputs/bad.json"], 2, ["line 2", "column 13"]),
        (["commit", "--jsonl", "-F", "inputs/bad.jsonl"], 2, ["line 2", "column"]),
        (["commit", "--json", "-F", "inputs/role.json"], 2, ["robot"]),
        (["commit", "--json", "-F", "inputs/deep.json"], 2, []),
        (["commit", "--json", "-F", "inputs/number.json"], 2, []),
        (["commit", "--role", "robot", "hi"], 2, ["robot"]),
        (["commit", "--json", "--jsonl"], 2, []),
        (["commit", "--user", "x", "--branch", "a..b"], 2, ["a..b"]),
        (["commit"], 2, ["empty"]),
        (["commit", "--user", ""], 2, ["empty"]),
        (["commit", ""], 2, ["empty"]),
        (["edit", "HEAD.0", ""], 2, ["empty"]),
        (["commit", "--user", "caf\udce9"], 2, ["not UTF-8 at character 3"]),
        (["commit", "caf\udce9"], 2, ["not UTF-8"]),
        (["commit", "--user", "x", "-m", "caf\udce9"], 2, []),
        (["edit", "HEAD.0", "caf\udce9"], 2, ["not UTF-8"]),
        (["label", "HEAD.0", "--add", "caf\udce9"], 2, []),
        (["edit", "HEAD.0"], 2, []),
        (["edit", "HEAD.7", "x"], 4, ["7"]),
        (["edit", "nowhere.0", "x"], 4, ["nowhere"]),
        (["edit", "HEAD", "x"], 2, ["HEAD"]),
        (["pin", "HEAD~9.0"], 4, []),
        (["restore", "HEAD.0", "--version", "5"], 2, ["5"]),
        (["label", "HEAD.0", "--add", "two words"], 2, ["two words"]),
        (["label", "HEAD.0"], 2, []),
        (["tools", "set", "inputs/bad.json"], 2, ["line 2 column 13"]),
        (["tools", "set", "inputs/number.json"], 2, ["list"]),
        (["tools", "set", "inputs"], 2, []),
        (["usage", "record", "{}"], 2, []),
        (["usage", "record", "[]"], 2, []),
        (["usage", "record", "{"], 2, ["line 1 column 2"]),
        (["show", "zzzz"], 4, ["zzzz"]),
        (["show", "--versions", "HEAD"], 2, []),
        (["log", "nowhere"], 4, ["nowhere"]),
        (["log", "HEAD..nowhere"], 4, ["nowhere"]),
        (["compile", "-f", "nothing"], 2, ["nothing"]),
        (["compile", "--at", "not a time"], 4, ["not a time"]),
        (["compile", "--strategy", "nothing"], 2, ["nothing"]),
        (["compile", "-o", "inputs"], 14, ["inputs"]),
        (["compile", "--at", "1999-01-01"], 4, []),
        (["cat-file", "-p", "0000000000"], 4, []),
        (["ls-context", "nowhere"], 4, []),
        (["write-commit", "inputs/bad.json"], 2, ["line 2 column 13"]),
        (["write-commit", "inputs/binary"], 2, []),
        (["write-commit", "inputs/deep.json"], 2, []),
        (["hash-object", "-w", "inputs"], 2, ["inputs"]),
        (["update-ref", "refs/heads/a b", "HEAD"], 2, []),
        (["symbolic-ref", "HEAD", "refs/heads/../x"], 2, []),
    ],
    ids=lambda value: " ".join(value).replace("/", "-") if isinstance(value, list) else str(value),
)
def test_refused(
    repository: Trace, inputs: Path, tmp_path: Path, words: list[str], code: int, said: list[str]
) -> None:
    assert repository("commit", "--user", "before").code == 0
    before = state(tmp_path / ".trace")
    refused(repository(*words), code, *said)
    assert state(tmp_path / ".trace") == before
    assert repository("fsck").code == 0


@pytest.mark.parametrize(
    "words", [["status"], ["log"], ["commit", "--user", "x"], ["rev-parse", "HEAD"]]
)
def test_no_repository(trace: Trace, tmp_path: Path, words: list[str]) -> None:
    refused(trace(*words), 10, str(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["status"], ["rev-parse", "HEAD"], ["commit", "--user", "x"]])
def test_a_repository_of_another_format(
    repository: Trace, tmp_path: Path, words: list[str]
) -> None:
    config = tmp_path / ".trace" / "config"
    text = config.read_text()
    for version in ("999", "1"):
        config.write_text(text.replace("format = 2", f"format = {version}"))
        refused(repository(*words), 13, f"format {version}")
    config.write_text(text.replace("requires = []", 'requires = ["telepathy"]'))
    refused(repository(*words), 13, "telepathy")


@pytest.mark.parametrize("text", ["", "not toml [", "format = 'x'\n", "\xff"])
def test_a_damaged_configuration(repository: Trace, tmp_path: Path, text: str) -> None:
    (tmp_path / ".trace" / "config").write_bytes(text.encode("latin-1"))
    refused(repository("status"), 12)


def test_a_damaged_object(repository: Trace, tmp_path: Path) -> None:
    oid = repository("hash-object", "-w", "--stdin", stdin=b"precious").text.strip()
    path = tmp_path / ".trace" / "objects" / oid[:2] / oid[2:]
    flip(path, -1)
    refused(repository("cat-file", "-p", oid), 12, oid[:12])
    refused(repository("show", oid), 12)
    assert repository("cat-file", "--batch-check", stdin=oid.encode()).text == f"{oid} damaged\n"


MALFORMED = {
    "no object": b"\xc1\x00",
    "no kind": b"\x91\x01",
    "torn": b"\x92\xa4list\x93\x01",
    "a key twice": b"\x92\xa4list\x82\xa1a\x01\xa1a\x02",
    "keys out of order": b"\x92\xa4list\x82\xa1b\x01\xa1a\x02",
    "a longer number than needed": b"\x92\xa4list\xcc\x01",
    "a commit without its fields": b"\x92\xa6commit\x80",
    "a tag without its fields": b"\x92\xa3tag\x80",
    "a longer head than needed": b"\x92\xa4blob\xc5\x00\x01x",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_what_fsck_calls_no_object_is_none_for_cat_file(
    repository: Trace, tmp_path: Path, data: bytes
) -> None:
    oid = str(hash_object(data))
    path = tmp_path / ".trace" / "objects" / oid[:2] / oid[2:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\xb0" + data)
    checked = repository("fsck")
    assert checked.code == 12
    assert oid in checked.text
    for option in ("-t", "-s", "-p", "-e"):
        refused(repository("cat-file", option, oid), 12)
    raw = repository("cat-file", "--raw", oid)
    assert (raw.code, raw.out) == (12, data)
    for options in (["--batch"], ["--batch-check"], ["--batch", "--raw"]):
        listed = repository("cat-file", *options, stdin=oid.encode())
        assert (listed.code, listed.text) == (12, f"{oid} damaged\n")
    found = repository("cat-file", "--batch", "--json", stdin=oid.encode())
    assert (found.code, json.loads(found.text)["problem"]) == (12, "damaged")


def test_an_ambiguous_prefix(repository: Trace) -> None:
    oid, seen = "", dict[str, bytes]()
    for text in (str(number).encode() for number in range(2000)):
        oid = repository("hash-object", "--stdin", stdin=text).text.strip()
        if oid[:4] in seen:
            repository("hash-object", "-w", "--stdin", stdin=text)
            repository("hash-object", "-w", "--stdin", stdin=seen[oid[:4]])
            break
        seen[oid[:4]] = text
    outcome = repository("cat-file", "-t", oid[:4])
    refused(outcome, 2, oid[:4])
    assert outcome.err.splitlines()[1].count(oid[:4]) == 2
    asked = repository("cat-file", "--batch-check", stdin=oid[:4].encode())
    assert asked.text == f"{oid[:4]} ambiguous\n"


def test_a_branch_without_a_commit(repository: Trace) -> None:
    for words in (["log"], ["show"], ["pin", "HEAD.0"]):
        outcome = repository(*words)
        refused(outcome, 6)
        assert "creates the first commit" in outcome.err
    assert repository("compile").out == b""
    assert repository("ls-context").out == b""
    refused(
        repository("usage", "record", '{"input_tokens": 1, "output_tokens": 1}', "--about", "HEAD"),
        6,
    )


def test_a_message_where_a_commit_is_needed(ok: Run, repository: Trace) -> None:
    for text in ("a", "b"):
        ok("commit", "-q", "--user", text)
    for words in (
        *(["log"], ["blame"], ["tag", "x"], ["reset"], ["checkout"], ["diff"], ["branch", "q"]),
        *(["revert"], ["merge"], ["rebase"], ["rev-list"], ["compile"], ["switch", "--detach"]),
        *(["export", "--format", "openai"], ["bisect", "start", "HEAD"], ["cherry-pick", "--at"]),
    ):
        for address in ("HEAD.0", "HEAD~1.0"):
            outcome = repository(*words, address, *["HEAD"] * (words[0] == "cherry-pick"))
            assert outcome.code == 4, words
            assert f"error: {address} names a message, not a commit" in outcome.err
            assert f"hint: `trace show {address}` shows it" in outcome.err

"""`trace secrets scan`: searches all stored content, and never prints a value."""

from __future__ import annotations

import json
from pathlib import Path

from tests.secrets.test_engine import OTHER, TOKEN
from tests.support.command_line import Trace
from trace_store.base.oid import hash_object
from trace_store.objects.codec import encode_blob

SAID = f"use {TOKEN} for it"
OID = str(hash_object(encode_blob(SAID.encode())))


def commit(trace: Trace, *words: str) -> None:
    assert trace("commit", "-q", "--secrets", "off", *words).code == 0


def test_it_is_found_in_the_journal_in_a_pack_and_loose_and_told_without_its_value(
    repository: Trace, settings: Path
) -> None:
    clean = repository("secrets", "scan")
    assert (clean.code, clean.out) == (0, b"")
    commit(repository, "--user", SAID)
    for step in (["status"], ["seal", "-q"], ["pack", "-q"]):
        assert repository(*step).code == 0
        found = repository("secrets", "scan", "--json")
        assert found.code == 7
        (record,) = [json.loads(line) for line in found.lines]
        assert (record["rule"], record["object"], record["kind"]) == ("github-token", OID, "blob")
        assert record["refs"] == ["refs/heads/main"]
        assert record["addresses"] == [f"{record['commits'][0][:32]}.0"]
        assert TOKEN not in found.out.decode() + found.err
    assert repository("hash-object", "-w", "--stdin", stdin=f"loose {OTHER}".encode()).code == 0
    shown = repository("secrets", "scan")
    assert "no commit names it" in shown.out.decode()
    assert "2 secrets in 2 objects" in shown.err
    assert "trace purge OID" in shown.err
    assert TOKEN not in shown.out.decode()
    assert OTHER not in shown.out.decode()
    assert repository("purge", OID, "--yes", "--verify").code == 0
    assert OID not in repository("secrets", "scan").out.decode()


def test_a_revision_limits_it_and_a_path_is_searched_instead(
    repository: Trace, settings: Path, tmp_path: Path
) -> None:
    commit(repository, "--user", "nothing yet")
    commit(repository, "--user", SAID)
    assert repository("secrets", "scan", "HEAD~1").code == 0
    assert repository("secrets", "scan", "HEAD").code == 7
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.txt").write_text(f"one\ntwo {TOKEN}\n")
    (folder / "link").symlink_to(tmp_path)
    found = repository("secrets", "scan", "notes")
    assert found.code == 7
    assert found.out.decode().endswith("notes/a.txt:2\n")
    assert TOKEN not in found.out.decode() + found.err
    assert repository("secrets", "scan", "nowhere").code == 4


def test_the_text_of_a_commit_is_searched_too(repository: Trace, settings: Path) -> None:
    commit(repository, "--user", "harmless", "-m", f"with {OTHER}")
    (line,) = repository("secrets", "scan", "--json").lines
    record = json.loads(line)
    assert (record["kind"], record["commits"]) == ("commit", [record["object"]])
    assert record["refs"] == ["refs/heads/main"]

"""Purged text cannot return through any command, and proofs say what they cover."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases.support.inputs import case
from tests.importers.support.transcripts import Transcript
from tests.support.command_line import Run, Trace
from trace_store import Repo
from trace_store.maintenance.purge import plan_purge
from trace_store.maintenance.purge import purge as purge_planned
from trace_store.maintenance.verify_purged import Needles, search
from trace_store.objects.codec import MAXIMUM_BLOB_BYTES, encode_blob
from trace_store.odb.tombstones import Fingerprint, find_text
from trace_store.store.store import Store

TEXT = "Hedwig Wanderlust"
SAID = f"Write to {TEXT}."


def purge(run: Run, text: str = TEXT) -> None:
    run("purge", "--match-file", "-", "--yes", "--reason", "a customer", stdin=text.encode())


def stands_nowhere(folder: Path, text: str = TEXT) -> None:
    """Search all files for the text itself, without the fingerprint."""
    needles = Needles([("text", text.encode())])
    with Store.open(str(folder)) as store:
        found = search(store, frozenset(), needles, Needles())
    assert found.is_proven, found.found or found.unread


def grown(lines: bytes) -> bytes:
    more = {
        "type": "user",
        "uuid": "u2",
        "parentUuid": "u1",
        "sessionId": "pg",
        "timestamp": "2026-01-01T00:00:02Z",
        "message": {"role": "user", "content": f"Did {TEXT} answer?"},
    }
    return lines + json.dumps(more).encode() + b"\n"


def with_a_line_that_is_no_record(lines: bytes) -> bytes:
    return lines + b"{torn " + TEXT.encode() + b"\n"


@pytest.mark.parametrize("change", [bytes, grown, with_a_line_that_is_no_record])
def test_case_51_an_import_brings_nothing_back(
    ok: Run, repository: Trace, tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / "session.jsonl"
    shutil.copy(case("51") / "session.jsonl", file)
    ok("import", "-q", file.name)
    purge(ok)
    file.write_bytes(change(file.read_bytes()))
    assert repository("import", file.name).code == 0
    assert repository("import", file.name).code == 0  # despite the state of the first import
    ok("seal")
    stands_nowhere(tmp_path / ".trace")
    assert "texts of 1 purge: not in any file" in ok("purge", "--verify").text
    given = repository("export", "--native", "pg")
    assert TEXT.encode() not in given.out
    assert given.code != 0
    assert "was purged on" in given.err
    assert "Done." in ok("log", "sessions/claude-code/pg").text


@pytest.mark.parametrize("spelled", ["plain", "json", "json twice", "base64", "hex", "utf-16"])
def test_content_that_holds_a_purged_text_is_refused(
    ok: Run, repository: Trace, tmp_path: Path, spelled: str
) -> None:
    text = 'Hedwig "Wanderlust"\nof Pößneck'
    once = json.dumps({"name": text})
    content = {
        "plain": f"a tool said: {text}!".encode(),
        "json": once.encode(),
        "json twice": json.dumps([once]).encode(),
        "base64": base64.b64encode(f"..{text}..".encode()),
        "hex": f"..{text}..".encode().hex().encode(),
        "utf-16": f"..{text}..".encode("utf-16-le"),
    }[spelled]
    ok("commit", "-q", "--user", text)
    purge(ok, text)
    assert repository("hash-object", "-w", "--stdin", stdin=content).code == 4
    if spelled != "utf-16":
        assert repository("commit", "--user", content.decode()).code == 4
    stands_nowhere(tmp_path / ".trace", text)


@pytest.mark.parametrize(
    "words",
    [
        ["commit", "--user", SAID],
        ["commit", "--user", "a", "-m", f"for {TEXT}"],
        ["tag", "a-tag", "-m", f"for {TEXT}"],
        ["edit", "HEAD.0", f"I wrote to {TEXT}"],
        ["label", "HEAD.0", TEXT],
    ],
)
def test_no_command_takes_a_purged_text(
    ok: Run, repository: Trace, tmp_path: Path, words: list[str]
) -> None:
    ok("commit", "-q", "--user", SAID)
    ok("commit", "-q", "--user", "something else")
    purge(ok)
    assert repository(*words).code != 0
    ok("seal")
    stands_nowhere(tmp_path / ".trace")


def test_a_bundle_and_packs_bring_nothing_back(ok: Run, trace: Trace, tmp_path: Path) -> None:
    ok("commit", "-q", "--user", "hello")
    shutil.copytree(tmp_path / ".trace", tmp_path / "other" / ".trace")
    other = ("--dir", str(tmp_path / "other" / ".trace"))
    for content in (SAID, f"{TEXT} has an invoice"):
        assert trace(*other, "commit", "-q", "--user", content).code == 0
    assert trace(*other, "bundle", "create", "all.bundle", "--all").code == 0
    packed = trace(*other, "pack-objects", "--revs", "--stdout", stdin=b"HEAD\n")
    assert packed.code == 0
    ok("commit", "-q", "--user", SAID)
    purge(ok)
    assert trace("index-pack", "--stdin", stdin=packed.out).code != 0
    assert trace("unpack-objects", stdin=packed.out).code != 0
    ok("bundle", "import", "all.bundle")
    stands_nowhere(tmp_path / ".trace")
    assert ok("fsck").text.count("object-purged") == 2


def test_a_pack_that_git_brought_is_found_and_purged_again(ok: Run, tmp_path: Path) -> None:
    ok("commit", "-q", "--user", SAID)
    purge(ok)
    with Repo.init(str(tmp_path / "other")) as other:
        other.append("user", f"{TEXT} has an invoice")
        other.seal()
    packs = tmp_path / ".trace" / "objects" / "pack"
    packs.mkdir(parents=True, exist_ok=True)
    for file in (tmp_path / "other" / ".trace" / "objects" / "pack").iterdir():
        shutil.copy(file, packs)
    shutil.rmtree(tmp_path / "other")
    assert "purged-object-present" in ok("fsck").text
    ok("purge", "--again", "--yes", "--verify")
    stands_nowhere(tmp_path / ".trace")


def test_a_text_across_two_chunks_is_seen(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        repo.append("user", SAID)
    with Store.open(str(tmp_path / ".trace")) as store:
        purge_planned(store, plan_purge(store, texts=[TEXT]))
    with Repo.open(str(tmp_path)) as repo, pytest.raises(Exception, match="was purged on"):
        repo.append("user", "." * (MAXIMUM_BLOB_BYTES - 5) + TEXT)


def test_without_a_purge_nothing_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("content was searched")

    monkeypatch.setattr("trace_store.odb.tombstones.reduce", refuse)
    with Repo.init(str(tmp_path)) as repo:
        repo.append("user", SAID)
        repo.seal()
        repo.append("user", SAID)


def test_a_fingerprint_tells_no_text() -> None:
    needles = Needles([("text", TEXT.encode())])
    fingerprint = Fingerprint.of(needles.forms(), bytes(16), 1)
    assert find_text(SAID.encode(), [fingerprint]) is fingerprint
    assert find_text(b"Write to Hedwig Wanderlusu.", [fingerprint]) is None
    assert not needles.find(fingerprint.encode())


def test_the_proof_says_what_it_proves(ok: Run) -> None:
    assert "nothing was purged here" in ok("purge", "--verify").text
    ok("commit", "-q", "--user", "short words, and a few")
    oid = ok("ls-context").text.split()[-1]
    ok("purge", oid, "--yes")
    assert "no text was searched for" in ok("purge", "--verify").text


@pytest.mark.parametrize("word", ["yes", "ok", "continue", "Go ahead."])
def test_case_45_short_content_is_purged_only_by_force(
    ok: Run, repository: Trace, word: str
) -> None:
    ok("commit", "-q", "--user", word)
    ok("commit", "-q", "--user", word)
    oid = ok("ls-context").text.split()[-1]
    refused = repository("purge", oid, "--yes")
    assert refused.code == 2
    assert "2 messages have it" in refused.err
    assert "--force" in refused.err
    ok("commit", "-q", "--user", word)
    ok("purge", oid, "--yes", "--force")
    assert repository("commit", "--user", word).code == 4
    ok("commit", "-q", "--user", f"{word} then")  # short content may still occur in other content


def test_salvage_and_undo_bring_nothing_back(ok: Run, repository: Trace, tmp_path: Path) -> None:
    ok("commit", "-q", "--user", SAID)
    ok("commit", "-q", "--user", "more")
    ok("remove", "HEAD~1.0")
    purge(ok)
    repository("undo")
    repository("cherry-pick", "HEAD~1")
    repository("fsck", "--repair")
    ok("seal")
    stands_nowhere(tmp_path / ".trace")
    assert encode_blob(SAID.encode()) not in b"".join(
        path.read_bytes() for path in (tmp_path / ".trace").rglob("*") if path.is_file()
    )


def test_an_import_after_a_purge_says_what_came_in(ok: Run, tmp_path: Path) -> None:
    session = Transcript()
    session.user("please forget PURGEME-TEXT-1234567")
    session.assistant("msg_1", {"type": "text", "text": "Forgotten."}, stop="end_turn")
    path = session.write(tmp_path)
    ok("import", path)
    ok("purge", "--match", "PURGEME-TEXT-1234567", "-y")
    session.user("a new question")
    session.write(tmp_path)
    assert "1 commit, 1 message, " in ok("import", path).text
    assert "1 file: 0 commits, 0 messages" in ok("import", path).text
    shown = ok("compile", "--table").text
    assert "a new question" in shown
    assert "PURGEME" not in shown

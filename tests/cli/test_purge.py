"""`trace purge` and `trace commit --private`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.command_line import Run, Trace
from tests.support.files import flip
from trace_store.base.environment import Environment
from trace_store.base.oid import hash_object
from trace_store.objects.codec import encode_blob
from trace_store.odb.pack import MAGIC

SECRET = "Hedwig Wanderlust"
SAID = f"Write to {SECRET}."
OID = str(hash_object(encode_blob(SAID.encode())))
PIN = "4711"
TOOLS = json.dumps([{"name": "write", "description": SAID, "input_schema": {}}]).encode()


def state(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted((folder / ".trace").rglob("*")) if p.is_file()}


def test_a_text_is_purged_and_told_and_refused_afterwards(
    ok: Run, repository: Trace, tmp_path: Path
) -> None:
    ok("commit", "--user", SAID)
    purged = ok(
        "purge",
        "--match-file",
        "-",
        "--yes",
        "--reason",
        "a customer",
        "--verify",
        stdin=SECRET.encode(),
    )
    assert f"blob {OID}" in purged.out.decode()
    assert "verified: not found in any file of .trace" in purged.out.decode()
    assert SECRET not in purged.out.decode() + purged.err
    assert "[purged" in ok("log").out.decode()
    for words in (["show", OID], ["cat-file", "-p", OID[:8]], ["commit", "--user", SAID]):
        refused = repository(*words)
        assert refused.code == 4
        assert "was purged on" in refused.err
        assert "a customer" in refused.err
    assert repository("hash-object", "-w", "--stdin", stdin=SAID.encode()).code == 4
    assert "object-purged" in ok("fsck").out.decode()
    for words in (
        ["ls-objects"], ["ls-objects", "--all"], ["ls-context"], ["export", "--format", "markdown"],
        ["compile", "--format", "anthropic"], ["show"], ["status"], ["du"], ["verify-pack"],
        ["pack-objects", "--revs", "--stdout"], ["ls-parts", "HEAD"], ["cat-context"], ["compile-index", "--rebuild"],
        ["bundle", "create", "all.bundle", "--all"],
    ):  # fmt: skip
        done = repository(*words, stdin=b"HEAD\n")
        assert done.code == 0, (words, done.err)
        assert SECRET.encode() not in done.out
    assert SECRET.encode() not in b"".join(state(tmp_path).values())


@pytest.mark.parametrize(
    ("words", "stdin", "code"),
    [
        ([], b"", 2),
        ([OID], b"", 2),  # without confirmation
        ([OID, "--yes", "--reason", "two\nlines"], b"", 2),
        (["--match", "abc", "--yes"], b"", 2),
        (["f" * 64, "--yes"], b"", 4),
        (["HEAD", "--yes"], b"", 2),
        (["--match-file", "nowhere.txt", "--yes"], b"", 2),
    ],
)
def test_a_refusal_has_a_code_and_changes_nothing(
    ok: Run,
    repository: Trace,
    tmp_path: Path,
    words: list[str],
    stdin: bytes,
    code: int,
) -> None:
    ok("commit", "--user", SAID)
    ok("status")
    before = state(tmp_path)
    refused = repository("purge", *words, stdin=stdin)
    assert refused.code == code
    assert refused.err.splitlines()[-2 if "hint" in refused.err else -1].startswith(
        "trace: error: "
    )
    assert state(tmp_path) == before


def test_a_dry_run_says_what_would_go_and_writes_nothing(ok: Run, tmp_path: Path) -> None:
    ok("commit", "--user", SAID)
    ok("status")
    before = state(tmp_path)
    record = json.loads(ok("purge", OID[:10], "--dry-run", "--json").out)
    assert (record["tombstones"], record["rewritten"], record["files"]) == (0, 0, 0)
    assert [each["object"] for each in record["objects"]] == [OID]
    assert record["commits"][0]["refs"] == ["refs/heads/main"]
    assert record["purged"] is False
    assert state(tmp_path) == before


def test_the_messages_that_held_it_are_named_by_their_addresses(ok: Run) -> None:
    result = json.loads(ok("commit", "--user", SAID, "--result-json").out)
    (address,) = result["addresses"]
    birth, number = address.split(".")
    assert f"held by {birth[:12]}.{number}: main" in ok("purge", OID, "--dry-run").lines
    ok("switch", "-q", "-c", "other")
    ok("edit", "-q", "HEAD.0", f"{SAID} Again.")
    edited = json.loads(ok("log", "-n", "1", "--json").out)["commit"]
    dry = json.loads(ok("purge", "--match", SECRET, "--dry-run", "--json").out)
    held = {each["commit"]: each["addresses"] for each in dry["commits"]}
    assert held == {result["commit"]: [address], edited: [address]}


def test_a_commit_that_says_it_in_no_message_is_named_by_its_id(ok: Run) -> None:
    ok("commit", "-q", "--user", "hello")
    ok("tools", "set", "-q", "-", stdin=TOOLS)
    commit = json.loads(ok("log", "-n", "1", "--json").out)["commit"]
    assert f"held by {commit[:12]}: main" in ok("purge", "--match", SECRET, "--dry-run").lines
    dry = json.loads(ok("purge", "--match", SECRET, "--dry-run", "--json").out)
    assert [(each["commit"], each["addresses"]) for each in dry["commits"]] == [(commit, [])]


def test_from_16_bytes_on_content_is_purged_by_its_id_without_force(
    ok: Run, repository: Trace
) -> None:
    for said, code in (("x" * 15, 2), ("x" * 16, 0)):
        ok("commit", "-q", "--user", said)
        oid = str(hash_object(encode_blob(said.encode())))
        assert repository("purge", oid, "--yes").code == code


@pytest.mark.parametrize("secret", [SECRET, SECRET.lower()])
def test_the_text_goes_from_the_reflogs(ok: Run, tmp_path: Path, secret: str) -> None:
    ok("commit", "-q", "--user", SAID, "-m", f"about {secret}")
    logs = [tmp_path / ".trace/logs/HEAD.log", tmp_path / ".trace/logs/refs/heads/main.log"]
    assert secret in "".join(each.read_text() for each in logs if each.exists())
    ok("purge", "--match", secret, "--yes")
    left = "".join(each.read_text() for each in logs if each.exists())
    assert secret not in left
    assert "about [purged]" in left


def test_a_journal_that_cannot_be_sealed_is_left_and_named(
    ok: Run, repository: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok("commit", "-q", "--no-seal", "--user", SAID)
    monkeypatch.setattr("trace_store.maintenance.purge.seal", lambda _: None)
    done = repository("purge", OID, "--yes")
    assert done.code == 7
    assert "left: journal/1: cannot be sealed" in done.text


@pytest.mark.parametrize("words", [[], ["--rewrite"]])
def test_a_guess_of_short_content_is_warned_of(ok: Run, words: list[str]) -> None:
    ok("commit", "-q", "--user", SAID)
    note = (
        "1 object short and without a salt: a correct guess of the content can still be confirmed"
    )
    assert note in ok("purge", OID, "--yes", *words).err


def test_a_rewrite_takes_the_text_out_of_commits_and_keeps_addresses(
    ok: Run,
) -> None:
    result = json.loads(ok("commit", "--user", SAID, "--result-json").out)
    ok("commit", "-q", "--user", "hello", "-m", f"about {SECRET}")
    plan = ok("purge", "--match", SECRET, "--dry-run")
    assert "stays: the text in 1 commit or tag" in plan.text
    rewritten = ok("purge", "--match", SECRET, "--yes", "--rewrite")
    assert "rewritten: " in rewritten.out.decode()
    assert "--rewrite removes it" not in rewritten.text
    first = json.loads(ok("compile", "--table", "--json").out)["messages"][0]
    assert first["address"] == result["addresses"][0]
    assert "about [purged]" in ok("log").out.decode()
    assert "nothing was purged here" in ok("purge", "--verify").out.decode()


def test_what_stays_in_the_title_of_a_trajectory_is_part_of_the_answer(
    ok: Run, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    ok("commit", "-q", "--user", SAID)
    ok("tr", "start", f"Ask {SECRET}", "-q")
    done = ok("purge", "--match", SECRET, "--yes")
    assert "stays: the text in 1 commit or tag" in done.text
    assert "first repeat the purge with --rewrite" in done.err
    assert SECRET in ok("tr", "show").text
    again = ok("purge", "--match", SECRET, "--yes", "--rewrite")
    assert "stays" not in again.text
    assert "first repeat" not in again.err
    assert SECRET not in ok("tr", "show").text


def test_a_search_that_finds_something_says_so_by_its_exit_code(
    ok: Run, repository: Trace, tmp_path: Path
) -> None:
    ok("commit", "-q", "--user", "nothing of interest")
    (tmp_path / ".trace" / "notes").write_text(f'{{"said": "{SECRET}"}}')
    found = repository("purge", "--verify", "--dry-run", "--match-file", "-", stdin=SECRET.encode())
    assert found.code == 7
    assert "found: notes: text 1" in found.out.decode()


BROKEN_PACK = MAGIC + b"no pack, but begun like one"


def test_an_unfinished_file_that_cannot_be_read_goes_with_a_purge(ok: Run, tmp_path: Path) -> None:
    """It may hold what was purged, and nothing will ever finish it."""
    ok("commit", "-q", "--user", SAID)
    (tmp_path / ".trace/tmp").mkdir(exist_ok=True)
    left = tmp_path / ".trace/tmp/pack-999999999-0123456789ab"
    left.write_bytes(BROKEN_PACK)
    assert "verified: " in ok("purge", "--match", SECRET, "--yes", "--verify").text
    assert not left.exists()


@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_what_cannot_be_read_proves_nothing(
    ok: Run, repository: Trace, tmp_path: Path, json_too: list[str]
) -> None:
    ok("commit", "-q", "--user", SAID)
    (tmp_path / ".trace/lost-found").mkdir()
    (tmp_path / ".trace/lost-found/piece.pack").write_bytes(BROKEN_PACK)
    for words in (["--match", SECRET, "--yes", "--verify"], ["--verify"]):
        done = repository("purge", *words, *json_too)
        assert done.code == 7
        if json_too:
            found = json.loads(done.out)
            assert (found["absent"], found["found"]) == (False, [])
            assert [path for path, _ in found["unread"]] == ["lost-found/piece.pack"]
        else:
            assert "not read: lost-found/piece.pack: " in done.text
            assert "not proven: 0 places" in done.text
    assert (tmp_path / ".trace/lost-found/piece.pack").exists()


@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_what_another_process_may_be_writing_is_left_and_told(
    ok: Run, repository: Trace, tmp_path: Path, json_too: list[str]
) -> None:
    ok("commit", "-q", "--user", SAID)
    (tmp_path / ".trace/tmp").mkdir(exist_ok=True)
    name = f"tmp/object-{os.getppid()}-0123456789ab"
    (tmp_path / ".trace" / name).write_text(SAID)
    done = repository("purge", "--match", SECRET, "--yes", *json_too)
    assert done.code == 7
    why = f"process {os.getppid()} may be writing it"
    if json_too:
        assert json.loads(done.out)["left"] == [[name, why]]
    else:
        assert f"left: {name}: {why}" in done.lines
    (tmp_path / ".trace" / name).rename(tmp_path / ".trace/tmp/object-999999999-0123456789ab")
    assert repository("purge", "--again", "--match", SECRET, "--yes", *json_too).code == 0


@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_a_pack_that_cannot_be_rewritten_is_told(
    ok: Run, repository: Trace, tmp_path: Path, json_too: list[str]
) -> None:
    ok("commit", "-q", "--user", SAID)
    ok("seal", "-q")
    ok("commit", "-q", "--user", "nothing of interest")
    (pack,) = (tmp_path / ".trace/objects/pack").glob("*.pack")
    ok("status")
    flip(pack, pack.stat().st_size // 2)
    done = repository("purge", OID, "--yes", *json_too)
    assert done.code == 7
    if json_too:
        assert json.loads(done.out)["damaged"] == [pack.stem]
    else:
        assert f"left: pack {pack.stem} is corrupt; see `trace fsck`" in done.lines


def test_a_text_on_the_command_line_is_warned_of(repository: Trace) -> None:
    assert "history" in repository("purge", "--match", SECRET, "--yes").err


def test_a_text_that_is_nowhere_is_not_purged_and_not_refused_later(repository: Trace) -> None:
    repository("commit", "-q", "--user", "token is right-token-of-1234")
    outcome = repository("purge", "--match", "wrong-token-of-1234", "--yes")
    assert (outcome.code, "in no object" in outcome.err) == (4, True)
    assert repository("commit", "-q", "--user", "wrong-token-of-1234").code == 0


def test_private_content_is_committed(repository: Trace, tmp_path: Path) -> None:
    around = Environment(author="Ada", discovery=False, data_dir=str(tmp_path / "data"))
    assert repository("commit", "-q", "--private", "--user", PIN, environment=around).code == 0
    guess = hash_object(encode_blob(PIN.encode()))
    assert repository("cat-file", "-e", str(guess)).code == 4
    assert PIN in repository("compile", "--table").out.decode()
    assert repository("commit", "--private", "--user", PIN).code == 6  # no home to keep a key in

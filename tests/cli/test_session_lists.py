"""Saved lists of sessions: what travels to clones, and that it never says more than the history."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import msgpack
import pytest

from benchmarks.scale import turns
from benchmarks.session_file import write_session
from tests.support.command_line import Run
from trace_store import Repo
from trace_store.base.oid import digest
from trace_store.context import session_lists
from trace_store.context.compiler import ContextCompiler
from trace_store.context.summary import ContextSummary, SummaryView, context_from_summary
from trace_store.objects.message import Message
from trace_store.objects.parts import Text, ToolCall, ToolResult
from trace_store.store.store import Store

MESSAGES = 1200  # a call and its answer are one message in the file
LOCAL = ("HEAD", "journal", "logs", "index", "cache", "tmp", "locks", "local")


@pytest.fixture
def imported(ok: Run, tmp_path: Path) -> Path:
    """Import a session that is worth a file for clones; return its repository's folder."""
    source = tmp_path / "session.jsonl"
    write_session(source, turns(MESSAGES * 4 // 3, random.Random("listed")), 1)
    ok("import", "-q", str(source))
    return Path.cwd()


def clone(folder: Path, target: Path) -> Path:
    """Copy what git carries."""
    shutil.copytree(folder / ".trace", target / ".trace", ignore=shutil.ignore_patterns("*.idx"))
    for name in LOCAL:
        path = target / ".trace" / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return target


def commits_read(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a list that gets the id of each commit that a compiler reads."""
    read: list[bytes] = []
    whole = ContextCompiler.read_commit

    def counting(self: ContextCompiler, oid: bytes) -> Any:
        read.append(oid)
        return whole(self, oid)

    monkeypatch.setattr(ContextCompiler, "read_commit", counting)
    return read


def carried(folder: Path) -> list[Path]:
    return sorted((folder / ".trace/objects/info").glob("*.sessions"))


def test_a_clone_lists_sessions_and_shows_the_status_without_reading_them(
    imported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Repo.open(imported) as repo:
        here = repo.sessions.list()
        size = repo.status(count_tokens=True)
        branch = repo.head.ref
    assert len(carried(imported)) == 1
    read = commits_read(monkeypatch)
    with Repo.open(clone(imported, tmp_path / "clone")) as repo:
        assert repo.sessions.list() == here
        assert not read
        repo.store.refs.set_head(str(branch))
        there = repo.status()
        assert len(read) < 5
        assert (there.message_count, there.token_count) == (size.message_count, size.token_count)
        assert len(repo.compile()) == size.message_count == len(list(repo.compile().messages))


def test_a_commit_after_it_reads_that_commit(
    imported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Repo.open(clone(imported, tmp_path / "clone")) as repo:
        [session] = repo.sessions.list()
        line = repo.line(session.ref)
        line.append(Message("user", (Text("one more"),)))
        read = commits_read(monkeypatch)
        [grown] = repo.sessions.list()
        assert len(set(read)) < 5
        assert grown.message_count == session.message_count + 1
        assert grown.token_count == line.compile().token_count


def test_numbers_of_a_summary_are_those_of_the_history(tmp_path: Path) -> None:
    generator = random.Random(42)
    with Repo.init(tmp_path) as repo:
        contexts = ContextCompiler(repo.store, keeps_files=False)
        known: list[ContextSummary] = []
        calls: list[str] = []
        continued = 0
        for number in range(70):  # no answer is near
            repo.append(Message("user", (Text(f"asked {number}"),)))
        for number in range(150):
            _change(repo, generator, number, calls)
            tip, ref = repo.head.oid, str(repo.head.ref)
            assert tip is not None
            found = context_from_summary(contexts, ref, tip, known[-3:])
            whole = ContextCompiler(repo.store).compile(ref, cold=True)
            if found is not None:
                continued += 1
                assert isinstance(found.view, SummaryView)
                assert (
                    found.view.summary.to_data()[:-1]
                    == ContextSummary.of(contexts, whole).to_data()[:-1]
                )
                for name in (
                    "token_count",
                    "token_source",
                    "reported_token_count",
                    "text_token_count",
                ):
                    assert getattr(found, name) == getattr(whole, name), (number, name)
                assert ContextSummary.from_data(found.view.summary.to_data()) == found.view.summary
            if generator.random() < 0.4:
                known.append(ContextSummary.of(contexts, whole))
        assert continued > 30


def _change(repo: Repo, generator: random.Random, number: int, calls: list[str]) -> None:
    """Append something, or now and then change or hide an earlier message."""
    kind = generator.choice(
        ["user", "answer", "call", "result", "usage", "tools", "edit", "remove"]
    )
    if kind == "call":
        calls.append(f"call{number}")
        call = ToolCall(calls[-1], "read", {"path": f"f{number}"})
        repo.append(Message("assistant", (call,), model="claude-sonnet-4-5"))
    elif kind == "result" and calls:
        repo.append(Message("tool", (ToolResult(calls.pop(), (Text(f"content {number}"),)),)))
    elif kind == "answer":
        repo.append(Message("assistant", (Text(f"said {number} " * 9),), model="claude-opus-4-1"))
    elif kind == "usage" and repo.head.oid:
        repo.record_usage(
            {"input_tokens": 40 * number + 900, "output_tokens": 7}, model="claude-opus-4-1"
        )
    elif kind == "tools" and generator.random() < 0.3:
        repo.set_tools([{"name": f"tool{number}", "description": "x" * number}])
    elif kind in ("edit", "remove") and generator.random() < 0.3 and repo.head.oid:
        messages = list(repo.compile().messages)
        plain = [each for each in messages if each.role == "user"]
        if plain:
            getattr(repo, kind)(plain[0].address, *(["other words"] if kind == "edit" else []))
    else:
        repo.append(Message("user", (Text(f"asked {number}"),)))


def test_a_purge_removes_what_travels(imported: Path, ok: Run) -> None:
    before = carried(imported)[0].read_bytes()
    with Repo.open(imported) as repo:
        prompt = repo.sessions.list()[0].prompt
    assert prompt.encode() in before
    ok("purge", "--yes", "--match", prompt.rstrip("…"), "--reason", "asked")
    assert not carried(imported)
    path = imported / ".trace/objects/info" / f"{digest(before).hex()}.sessions"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(before)  # as a merge with an earlier state does
    with Repo.open(imported) as repo:
        assert prompt not in {each.prompt for each in repo.sessions.list()}


@pytest.mark.parametrize(
    "forge",
    [
        lambda entry: [entry[0], entry[1][:-1]],
        lambda entry: [[*entry[0][:1], "many", *entry[0][2:]], entry[1]],
        lambda entry: [[*entry[0][:5], "", *entry[0][6:]], entry[1]],
        lambda entry: [[b"short", *entry[0][1:]], entry[1]],
        lambda entry: [entry[0], [7, *entry[1][1:]]],
        lambda entry: None,
        lambda entry: [entry[0], {"recorded": []}],
        lambda entry: [[entry[0][0], 2**64 - 1, *entry[0][2:]], entry[1]],
        lambda entry: [entry[0], [*entry[1][:-1], {"session.limit": [1]}]],
        lambda entry: [entry[0], [*entry[1][:6], 2**60, *entry[1][7:]]],
        lambda entry: [[*entry[0][:6], b"1" * 32, *entry[0][7:]], ["", "main", *entry[1][2:]]],
    ],
)
def test_a_forged_file_is_not_used(imported: Path, tmp_path: Path, forge: Any) -> None:
    there = clone(imported, tmp_path / "clone")
    [path] = carried(there)
    saved = msgpack.unpackb(path.read_bytes())
    [ref] = saved[-1]
    saved[-1][ref] = forge(saved[-1][ref])
    path.unlink()
    data = msgpack.packb(saved)
    (path.parent / f"{digest(data).hex()}.sessions").write_bytes(data)
    with Repo.open(there) as repo:
        [session] = repo.sessions.list()
        assert (session.message_count, session.session) == (MESSAGES, ref.rpartition("/")[2])
        repo.store.refs.set_head(ref)
        assert repo.status().message_count == MESSAGES
        repo.append("user", "more")
        assert repo.sessions.list()[0].message_count == MESSAGES + 1


def test_fsck_finds_a_wrong_size_and_a_damaged_file(imported: Path, ok: Run) -> None:
    [path] = carried(imported)
    saved = msgpack.unpackb(path.read_bytes())
    [[summary, _]] = saved[-1].values()
    summary[1] += 1
    data = msgpack.packb(saved)
    (path.parent / f"{digest(data).hex()}.sessions").write_bytes(data)
    path.write_bytes(path.read_bytes()[:-9])
    found = [line for line in ok("fsck").lines if "session-list-differs" in line]
    assert len(found) == 2
    ok("fsck", "--repair")
    assert "session-list-differs" not in ok("fsck").text


def test_small_sessions_are_not_worth_a_file_and_many_files_become_one(
    ok: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok("commit", "--user", "hello")
    ok("sessions")
    ok("commit", "--user", "more")
    assert not carried(Path.cwd())
    monkeypatch.setattr(session_lists, "CARRIED_MESSAGES", 1)
    monkeypatch.setattr(session_lists, "MOST_FILES", 3)
    for number in range(4):
        ok("switch", "-q", "-c", f"side{number}")
        ok("sessions")
        ok("commit", "-q", "--user", f"on side {number}")
        assert 1 <= len(carried(Path.cwd())) <= 3
    ok("commit", "-q", "--user", "the last")
    store = Store.open(".trace")
    known = session_lists.SessionLists(store)
    entries = list(known.carried().values())
    for name, count in (("main", 2), ("side0", 3), ("side1", 4)):
        assert (
            max(
                each[f"refs/heads/{name}"][0][1] for each in entries if f"refs/heads/{name}" in each
            )
            == count
        )
    store.close()
    ok("branch", "-d", "--force", "side0")
    ok("seal")
    store = Store.open(".trace")
    assert "refs/heads/side0" not in [
        ref for each in session_lists.SessionLists(store).carried().values() for ref in each
    ]
    store.close()

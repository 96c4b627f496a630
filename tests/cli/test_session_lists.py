"""Saved lists of sessions: what travels to clones, and that it never says more than the history."""

from __future__ import annotations

import json
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
from trace_store.context import compiler, session_lists
from trace_store.context.compiler import ContextCompiler
from trace_store.context.summary import ContextSummary, SummaryView, context_from_summary
from trace_store.objects.commit import Commit
from trace_store.objects.message import Message
from trace_store.objects.parts import Text, ToolCall, ToolResult
from trace_store.sessions.facts import CLOSED
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


def commits_decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a list that gets the bytes of each commit that is decoded."""
    decoded: list[bytes] = []
    whole = Commit.decode

    def counting(cls: type[Commit], data: bytes) -> Commit:
        decoded.append(data)
        return whole(data)

    monkeypatch.setattr(Commit, "decode", classmethod(counting))
    return decoded


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


def test_the_first_commit_and_edit_of_a_clone_read_the_history_at_most_once(
    imported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = commits_decoded(monkeypatch)
    with Repo.open(clone(imported, tmp_path / "clone")) as repo:
        [session] = repo.sessions.list()
        line = repo.line(session.ref)
        repo.store.refs.set_head(session.ref)
        decoded.clear()
        line.append(Message("user", (Text("one more"),)))
        assert len(decoded) < 100
        decoded.clear()
        line.append(Message("user", (Text("and another"),)))
        assert len(decoded) < 10
        repo.branches.create("side", session.ref)
        repo.append(Message("user", (Text("on the side"),)), ref="side")
        line.append(Message("user", (Text("here"),)))
        line.merge("side")
        decoded.clear()
        line.append(Message("user", (Text("after a merge"),)))
        assert len(decoded) < 20
    with Repo.open(tmp_path / "clone") as repo:  # in another process
        line = repo.line(session.ref)
        decoded.clear()
        line.edit("HEAD~1.0", "other words")
        assert len(decoded) < 1.1 * MESSAGES
        decoded.clear()
        status = repo.status()
        assert len(decoded) < 700
        assert status.message_count == session.message_count + 5


def test_an_edit_and_a_fork_are_listed_without_reading_the_session_again(
    imported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Repo.open(clone(imported, tmp_path / "clone")) as repo:
        [session] = repo.sessions.list()
        first = repo.line(session.ref).compile().messages[0].address
        repo.branches.create("aside", session.ref)
        aside = repo.line("aside")
        aside.edit(first, "Said otherwise.")
        aside.append(Message("user", (Text("one more"),)))
        read = commits_read(monkeypatch)
        listed = {each.ref: each for each in repo.sessions.list()}
        assert len(set(read)) < 100
        fork = listed["refs/heads/aside"]
        assert (fork.agent, fork.session, fork.title) == (session.agent, "aside", session.title)
        assert fork.prompt == "Said otherwise."
        assert fork.message_count == session.message_count + 1
        assert fork.token_count == aside.compile().token_count
        assert listed[session.ref] == session

        monkeypatch.undo()
        shutil.rmtree(tmp_path / "clone/.trace/cache")
        shutil.rmtree(tmp_path / "clone/.trace/objects/info")
        with Repo.open(tmp_path / "clone") as again:
            assert {each.ref: each for each in again.sessions.list()} == listed


def test_the_first_list_reads_a_long_history_three_times(
    imported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its messages, their tokens, and what its commits say."""
    shutil.rmtree(imported / ".trace/cache")
    shutil.rmtree(imported / ".trace/objects/info")
    monkeypatch.setattr(compiler, "ONE_LOOK_COMMITS", 16)
    decoded = commits_decoded(monkeypatch)
    with Repo.open(imported) as repo:
        [session] = repo.sessions.list()
        assert session.message_count == MESSAGES
        assert len(decoded) < 3.1 * MESSAGES


def test_a_merge_is_listed_by_reading_what_it_brings(
    imported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Repo.open(clone(imported, tmp_path / "clone")) as repo:
        [session] = repo.sessions.list()
        line = repo.line(session.ref)
        repo.branches.create("side", f"{session.ref}~3")
        for number in range(3):
            repo.line("side").append("user", f"on the side {number}", meta={"session.type": "dev"})
        line.append("user", "here", meta={"session.task": "T-1"})
        repo.sessions.list()
        line.merge("side")
        read = commits_read(monkeypatch)
        listed = {each.ref: each for each in repo.sessions.list()}
        assert len(set(read)) < 20
        merged = listed[session.ref]
        assert merged.facts is not None
        assert (merged.facts.type, merged.facts.task) == ("dev", "T-1")
        assert merged.message_count == session.message_count + 4
        assert merged.began == session.began
        assert merged.ended > session.ended
        monkeypatch.undo()
        shutil.rmtree(tmp_path / "clone/.trace/cache")
        shutil.rmtree(tmp_path / "clone/.trace/objects/info")
        assert {each.ref: each for each in repo.sessions.list()} == listed


def test_numbers_of_a_summary_are_those_of_the_history(tmp_path: Path) -> None:
    generator = random.Random(42)
    with Repo.init(tmp_path) as repo:
        contexts = ContextCompiler(repo.store, keeps_files=False)
        known: list[ContextSummary] = []
        calls: list[str] = []
        continued = 0
        for number in range(70):  # no answer is near
            repo.append(Message("user", (Text(f"asked {number}"),)))
        for number in range(110):
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
        assert continued > 85


def _side(repo: Repo, address: Any) -> None:
    """Edit a message on another branch, and merge it."""
    repo.branches.create("side")
    repo.remove(address, ref="side")
    repo.append(Message("user", (Text("on the side"),)), ref="side")
    repo.append(Message("user", (Text("here"),)))
    repo.merge("side")
    repo.branches.delete("side")


APPENDS = ["user", "answer", "call", "result", "usage", "tools"]
CHANGES: dict[str, Any] = {
    "edit": lambda repo, address: repo.edit(address, [Text("other words")], force=True),
    "remove": lambda repo, address: repo.remove(address),
    "ghost": lambda repo, address: repo.remove(address, ghost=True),
    "skip": lambda repo, address: repo.annotate(address, priority="skip"),
    "pin": lambda repo, address: repo.annotate(address, priority="pinned"),
    "move": lambda repo, address: repo.move(address, last=True),
    "merge": _side,
}


def _change(repo: Repo, generator: random.Random, number: int, calls: list[str]) -> None:
    """Append something, or now and then change or hide an earlier message."""
    kind = generator.choice([*APPENDS, *CHANGES])
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
    elif kind in CHANGES and repo.head.oid:
        messages = list(repo.compile().messages)
        CHANGES[kind](repo, generator.choice(messages[-30:]).address)
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
        lambda entry: [entry[0], [*entry[1][:-1], {"session.limit": [1, 2]}]],
        lambda entry: [entry[0], [*entry[1][:-1], {CLOSED: [1, "done"]}]],
        lambda entry: [entry[0], [*entry[1][:-1], {CLOSED: ["1", "done"]}]],
        lambda entry: [entry[0], [*entry[1][:6], 2**60, *entry[1][7:]]],
        lambda entry: [[*entry[0][:6], b"1" * 32, *entry[0][7:]], ["", "main", *entry[1][2:]]],
        lambda entry: [entry[0], []],
        lambda entry: [[entry[0][0], float("inf"), *entry[0][2:]], entry[1]],
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


def test_a_forged_name_is_tidied_away(imported: Path, ok: Run) -> None:
    [path] = carried(imported)
    saved = msgpack.unpackb(path.read_bytes())
    [[summary, row]] = saved[-1].values()
    data = msgpack.packb(
        [*saved[:-1], {"../name": [[summary[0], float("inf"), *summary[2:]], row]}]
    )
    forged = path.parent / f"{digest(data).hex()}.sessions"
    forged.write_bytes(data)
    ok("gc")
    assert not forged.exists()
    assert carried(imported)


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


def test_a_list_of_ordinary_branches_writes_no_index(tmp_path: Path) -> None:
    with Repo.init(tmp_path, author="ada") as repo:
        repo.append("user", "first")
        for number in range(20):
            repo.branches.switch(f"topic/{number}", create=True)
            repo.append("user", f"on {number}")
            repo.branches.switch("main")
        assert len(repo.sessions.list()) == 21
    assert not list((tmp_path / ".trace" / "index").glob("*topic*"))


def test_a_picked_commit_with_records_says_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    with Repo.init(folder, author="ada") as repo:
        repo.commit([Message("user", "hi"), Message("assistant", "yes", model="model-1")])
        repo.sessions.list()
        said: dict[str, Any] = {"sessionId": "s1", "cwd": "/home/ada/project", "version": "2.1.20"}
        said |= {"type": "user", "userType": "external", "isSidechain": False, "gitBranch": "main"}
        said |= {"timestamp": "2026-01-01T00:00:00.000Z", "parentUuid": None, "uuid": "u1"}
        said["message"] = {"role": "user", "content": "words"}
        (tmp_path / "s1.jsonl").write_text(json.dumps(said) + "\n")
        repo.transcripts.import_(tmp_path / "s1.jsonl")
        imported = next(e.ref for e in repo.sessions.list() if e.agent)
        repo.cherry_pick(imported)
        shown = next(each for each in repo.sessions.list() if each.ref == repo.head.ref)
    shutil.rmtree(folder / ".trace" / "cache")
    with Repo.open(folder) as repo:
        fresh = next(each for each in repo.sessions.list() if each.ref == repo.head.ref)
    assert shown.folder == fresh.folder

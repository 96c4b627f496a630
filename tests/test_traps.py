"""Traps that earlier tools of this kind fell into, each with the test that would have caught it.

The names are those of a list of such bugs (C1 to C44); a trap that has a test file of its own is pointed to.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import trace_store
from tests.store.support.histories import move
from tests.support.files import flip
from tests.support.valid_requests import assert_valid_requests
from trace_store import Draft, Environment, Message, Repo, Store, Text, ToolCall, ToolResult
from trace_store.base.oid import hash_object
from trace_store.errors import MessageNotFoundError, RepositoryNotFoundError
from trace_store.history import commit
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.seal import seal
from trace_store.objects.commit import Commit
from trace_store.store.revision import resolve
from trace_store.testing.disks import RecordingDisk
from trace_store.writer import Writer

ROOT = Path(trace_store.__file__).parents[1]
SURROUNDINGS = Environment(author="ada")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.init(tmp_path, environment=SURROUNDINGS, durability="fast")


def shown(repo: Repo, revision: str = "HEAD") -> list[str]:
    return [message.text for message in repo.compile(revision).messages]


def run(*arguments: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}",
        "HOME": str(cwd),
        "TRACE_AUTHOR": "ada",
        **more,
    }
    return subprocess.run(
        [sys.executable, "-m", "trace_cli", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_c1_no_helper_walks_history_at_an_append(tmp_path: Path) -> None:
    """Counted to 20,000 messages in tests/context/test_constant_io.py; this is the shape of it."""
    disk = RecordingDisk()
    store = Store.init(str(tmp_path), durability="fast", disk=disk)
    repo = Repo(store, author="ada")
    costs = []
    for i in range(300):
        repo.append("user", f"message {i:03}")
        disk.reset()
        repo.append("user", f"another {i:03}")
        assert len(repo.compile()) == 2 * i + 2
        costs.append(disk.counts())
    assert costs[10] == costs[299]


def test_c2_a_cached_compile_equals_a_cold_one(repo: Repo) -> None:
    """Every random operation is in tests/stateful; this is the shape of it."""
    for i in range(3):
        repo.append("user", f"m{i}")
        repo.compile()
    repo.edit("HEAD.0", "changed")
    repo.remove("HEAD~3.0", ghost=True)
    assert repo.contexts.verify().matches


def test_c9_priority_is_per_branch(repo: Repo) -> None:
    first = repo.append("user", "kept").oid
    move(repo.store, "refs/heads/side", first)
    repo.annotate(f"{first}.0", priority="skip")
    assert shown(repo, "main") == []
    assert shown(repo, "side") == ["kept"]


def test_c10_an_edit_of_what_the_context_does_not_hold_is_refused(repo: Repo) -> None:
    base = repo.append("user", "base").oid
    other = repo.append("user", "only here")
    move(repo.store, "refs/heads/side", base)
    repo.store.refs.set_head("refs/heads/side")
    with pytest.raises(MessageNotFoundError):
        repo.edit(f"{other.oid}.0", "changed")
    with pytest.raises(MessageNotFoundError):
        repo.edit(f"{other.oid}.7", "changed")
    assert shown(repo) == ["base"], "nothing was written"


def test_c14_a_nested_batch_is_a_savepoint(repo: Repo) -> None:
    def add_and_fail(draft: Draft) -> None:
        with draft.savepoint():
            draft.append("user", "inner")
            raise KeyError

    def fail() -> None:
        with repo.batch() as draft:
            draft.append("user", "lost")
            raise KeyError

    with repo.batch() as draft:
        draft.append("user", "outer")
        with suppress(KeyError):
            add_and_fail(draft)
        draft.append("user", "after")
    assert shown(repo) == ["outer", "after"]
    assert draft.result is not None
    assert draft.result.oid == repo.resolve("HEAD")
    with pytest.raises(KeyError):
        fail()
    assert shown(repo) == ["outer", "after"]
    assert len(list(repo.log())) == 1


def test_c15_head_and_its_ancestors_have_names(repo: Repo) -> None:
    """The whole grammar is in tests/history/test_revision.py."""
    ids = [repo.append("user", f"m{i}").oid for i in range(3)]
    assert [resolve(repo.store, r) for r in ("@", "HEAD~1", "main^^")] == ids[::-1]


def test_c16_special_tokens_are_text_and_counting_needs_no_network(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    repo.append("user", "<|endoftext|> and <|fim_prefix|>")
    assert repo.compile().token_count > 8


@pytest.mark.parametrize("take", ["remove", "skip", "ghost"])
@pytest.mark.parametrize("half", [0, 1])
def test_c17_calls_and_results_stay_together(repo: Repo, take: str, half: int) -> None:
    repo.append("user", "look")
    call = repo.append("assistant", [Text("looking"), ToolCall("t1", "read", '{"p": 1}')])
    result = repo.append("tool", [ToolResult("t1", "found")])
    repo.append("assistant", "done")
    target = (call, result)[half].addresses[0]
    if take == "skip":
        repo.annotate([target], priority="skip")
    else:
        repo.remove([target], ghost=take == "ghost")
    context = repo.compile()
    assert_valid_requests([m.message() for m in context.messages], context.tools)
    if take != "ghost":
        assert context.to_openai(strict=True)


def test_c18_the_hash_covers_everything_and_fsck_computes_it_again(
    repo: Repo, tmp_path: Path
) -> None:
    repo.append("user", "true")
    repo.seal()
    oid = repo.resolve("HEAD")
    data = repo.store.objects.read(oid)
    assert hash_object(data) == oid
    original = Commit.decode(data)
    for field, value in (("author", "eve"), ("time", 1), ("message", "x"), ("meta", {"a": 1})):
        changed = Commit.decode(data)
        setattr(changed, field, value)
        assert hash_object(changed.encode()) != oid, field
    assert original.encode() == data
    assert [f for f in fsck(repo.store) if f.severity == "error"] == []
    pack = next((tmp_path / ".trace" / "objects" / "pack").glob("*.pack"))
    flip(pack)
    found = fsck(Store.open(str(tmp_path / ".trace")))
    assert [f for f in found if f.severity == "error"]


def test_c19_derived_files_are_ignored_relative_and_rebuilt(repo: Repo, tmp_path: Path) -> None:
    repo.append("user", "one")
    before = repo.compile().prefix_hash
    root = tmp_path / ".trace"
    ignored = (root / ".gitignore").read_text().splitlines()
    for name in ("/index/", "/cache/", "/logs/", "/journal/", "/HEAD"):
        assert name in ignored
    for path in root.rglob("*"):
        if path.is_file():
            assert str(tmp_path).encode() not in path.read_bytes(), path
    for path in (root / "index").iterdir():
        path.write_bytes(path.read_bytes()[:-7] + b"garbage")
    assert repo.compile().prefix_hash == before
    assert Repo.open(tmp_path, environment=SURROUNDINGS).compile().prefix_hash == before


def _append_until_killed(folder: str, number: int, acknowledged: str) -> None:
    repo = Repo.open(folder, environment=SURROUNDINGS)
    with open(acknowledged, "ab", buffering=0) as log:
        for i in range(10_000):
            result = repo.append("user", f"writer {number}, message {i}")
            log.write(f"{result.oid}\n".encode())


def test_c22_twenty_writers_and_kill(tmp_path: Path) -> None:
    """Nothing that was acknowledged is lost, whenever a writer is killed."""
    Repo.init(tmp_path, environment=SURROUNDINGS).close()
    forks = "fork" in multiprocessing.get_all_start_methods()
    if forks:  # twenty fresh interpreters take longer to start than the test takes
        multiprocessing.set_start_method("fork", force=True)
    logs = [tmp_path / f"acknowledged-{i}" for i in range(20)]
    writers = [
        multiprocessing.Process(target=_append_until_killed, args=(str(tmp_path), i, str(log)))
        for i, log in enumerate(logs)
    ]
    for writer in writers:
        writer.start()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if sum(log.stat().st_size for log in logs if log.exists()) > 200 * 65:
            break
        time.sleep(0.05)
    for writer in writers:
        os.kill(writer.pid or 0, signal.SIGKILL)
    for writer in writers:
        writer.join()
    repo = Repo.open(tmp_path, environment=SURROUNDINGS)
    acknowledged = {line for log in logs if log.exists() for line in log.read_text().split()}
    acknowledged = {oid for oid in acknowledged if len(oid) == 64}
    present = {str(entry.oid) for entry in repo.log()}
    assert len(acknowledged) > 60
    assert acknowledged <= present
    assert [f for f in fsck(repo.store) if f.severity == "error"] == []
    repo.append("user", "goes on")
    seal(repo.store)
    assert acknowledged <= {str(entry.oid) for entry in repo.log()}


def test_c36_fields_of_ours_hold_no_path_of_this_machine(repo: Repo, tmp_path: Path) -> None:
    """Paths in transcripts are content and stay; paths that Trace adds are relative."""
    from trace_store.importers.import_paths import import_paths

    transcript = tmp_path / "session.jsonl"
    record = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": "s1",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {"role": "user", "content": "look at /home/somebody/secret/place"},
    }
    transcript.write_text(json.dumps(record) + "\n")
    import_paths(Writer(repo.store), [str(transcript)], source=False)
    for oid in repo.store.objects.iterate():
        data = repo.store.objects.read(oid)
        assert str(tmp_path).encode() not in data
        if data[:8] == b"\x92\xa6commit":
            assert b"/home/somebody" not in data


def test_c37_discovery_can_be_turned_off(tmp_path: Path) -> None:
    Repo.init(tmp_path, environment=SURROUNDINGS).close()
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    Repo.open(below, create=False, environment=SURROUNDINGS).close()
    with pytest.raises(RepositoryNotFoundError):
        Repo.open(below, create=False, environment=Environment(discovery=False))
    assert run("status", cwd=below, TRACE_DISCOVERY="off").returncode == 10
    assert run("status", cwd=below, HOME=str(tmp_path)).returncode == 0


def test_c38_the_version_is_said_without_heavy_imports(tmp_path: Path) -> None:
    code = (
        "import sys; from trace_cli.main import main\n"
        "try:\n    main(['--version'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'typer', 'rich', 'pydantic', 'httpx', 'tiktoken', 'filelock', 'msgpack'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    path = f"{ROOT}{os.pathsep}{ROOT / 'cli'}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": path, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert trace_store.__version__ in done.stdout


def test_c39_json_loses_no_field(tmp_path: Path) -> None:
    from trace_store.providers.lossless import parse

    messages = [
        Message("system", "be brief"),
        Message("user", [Text("look \ud83d"), Text("twice")], name="ada"),
        Message("assistant", [ToolCall("t1", "read", '{"p":  1}')], model="m", id="msg_1"),
        Message("tool", [ToolResult("t1", "no", is_error=True)]),
    ]
    with Repo.init(tmp_path, environment=SURROUNDINGS) as repo:
        repo.commit(messages)
        repo.annotate("HEAD.0", priority="pinned", labels=["rules"])
    done = run("compile", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert parse(json.loads(done.stdout)) == messages


def test_c42_the_documentation_names_no_command_that_is_not_there() -> None:
    """Every block of every page is also run, by tests/test_docs.py."""
    from trace_cli.commands import BY_NAME

    known = BY_NAME.keys()
    said = re.compile(r"(?:^\$ |`)trace (?:-[-\w]+ )*([a-z][\w-]+)", re.MULTILINE)
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for command in said.findall(page.read_text(encoding="utf-8")):
            assert command in known, f"{page.name}: trace {command}"


def test_c43_speed_is_shown_on_a_real_disk() -> None:
    """No test mocks the file system: I/O counters count calls to the real one."""
    for path in (ROOT / "tests").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        forbidden = ("py" + "fakefs", "unittest" + ".mock", "mock" + "_open")
        assert not any(word in text for word in forbidden), path


def test_writers_of_one_branch_agree(repo: Repo) -> None:
    other = Store.open(repo.store.layout.root)
    commit.commit(Writer(other, author="eve"), [Message("user", "theirs")])
    repo.append("user", "ours")
    assert shown(repo) == ["theirs", "ours"]
    assert repo.store.refs.read("refs/heads/main") == other.refs.read("refs/heads/main")
    move(other, "refs/heads/main", repo.resolve("HEAD~1"))
    assert shown(repo) == ["theirs"]

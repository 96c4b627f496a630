"""Files that worker processes import: the repository is the one that a single process makes."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.importers.support.transcripts import REASON, Transcript, call, lively, real_files, text
from trace_store import Environment, Repo
from trace_store.base.frozen import replace
from trace_store.base.oid import digest
from trace_store.context.session_lists import SessionLists
from trace_store.contracts.ref_names import CHECKPOINTS
from trace_store.disk import system_calls, worker_pool
from trace_store.importers import import_ahead
from trace_store.importers.import_ahead import SessionElsewhere
from trace_store.importers.import_file import ImportContext
from trace_store.maintenance.fsck import fsck
from trace_store.objects.parts import ToolResult
from trace_store.secrets import REDACT

SECRET = "ghp_" + "A1b2C3d4E5" * 3 + "f6G7h8"


def together(patch: pytest.MonkeyPatch) -> None:
    """Let two workers import all new files, however small."""
    patch.setattr(import_ahead, "PROCESS_BYTES", 1)
    patch.setattr(worker_pool, "processor_count", lambda: 2)
    patch.setattr(system_calls, "sync", lambda _: None)
    patch.setattr(system_calls, "sync_directory", lambda _: None)


def session_id(number: int) -> str:
    name = digest(f"session {number}".encode()).hex()
    return "-".join((name[:8], name[8:12], name[12:16], name[16:20], name[20:32]))


def session(number: int, *, output: str = "") -> Transcript:
    t = Transcript(session_id(number), first=100 * number)
    for turn in range(3):
        t.user(f"Question {turn} of session {number}: why does it fail?")
        t.assistant(f"m{number}-{turn}", call(f"c{number}-{turn}", "Bash", command=f"ls {turn}"))
        t.result(f"c{number}-{turn}", output or f"output {turn} of {number}\n" * 20)
    t.assistant(f"m{number}", text("Found it."), stop="end_turn", output=9)
    return t


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Sessions, and what makes one depend on another: a subagent, a copy, a second file, and others' rows."""
    folder = tmp_path / "sources"
    folder.mkdir()
    for number in range(5):
        session(number).write(folder)
    lively().write(folder)
    session(5, output=f"the token is {SECRET}").write(folder)
    agents = folder / session_id(0) / "subagents"
    agents.mkdir(parents=True)
    agent = session(0)
    agent.lines = [
        each.replace('"isSidechain":false', '"isSidechain":true,"agentId":"a1b2c3"')
        for each in agent.lines
    ]
    agent.write(agents, "agent-a1b2c3")
    fork = session(1)
    fork.lines = [each.replace(session_id(1), session_id(6)) for each in fork.lines]
    fork.session = session_id(6)
    fork.user("And on the other machine?")
    fork.assistant("m6", text("There as well."), stop="end_turn")
    fork.write(folder)
    (folder / "again").mkdir()
    longer = session(2)
    longer.user("One more thing.")
    longer.write(folder / "again")
    visited, guest = session(3), session(4)
    guest.user("This row is in the file of another session.")
    (folder / f"{session_id(3)}.jsonl").write_bytes(visited.data + guest.lines[-1].encode() + b"\n")
    (folder / "broken.jsonl").write_bytes(session(7).data[:300] + b"\n{broken\n" + b"\xff\n")
    (folder / "empty.jsonl").touch()
    (folder / "notes.jsonl").write_text('{"what": "no transcript"}\n')
    return folder


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A repository to copy: the placeholders of secrets depend on its id."""
    with Repo.init(tmp_path / "empty", environment=Environment()) as repo:
        repo.configure("automatic_checkpoints", "tests,topic,tokens")
    (tmp_path / "data").mkdir(mode=0o700)
    return tmp_path / "empty"


def opened(empty: Path) -> Repo:
    """Return a copy of a repository, always at the same place: placeholders depend on that, too."""
    folder = empty.parent / "tried"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(empty, folder)
    environment = Environment(data_dir=str(empty.parent / "data"))
    return Repo.open(folder, author="ada", environment=environment, secrets=REDACT)


def imported(empty: Path, *sources: Path) -> dict[str, Any]:
    """Import into a copy of a repository; return all that it has."""
    with opened(empty) as repo:
        report = repo.transcripts.import_(*sources)
        assert repo.transcripts.import_(*sources).commits == 0
        assert not fsck(repo.store)
        return state(repo) | {
            "report": [(replace(each, error=None), str(each.error)) for each in report.files]
        }


def state(repo: Repo) -> dict[str, Any]:
    saved = Path(repo.store.layout.local_dir) / "imports"
    return {
        "refs": dict(
            ref for ref in repo.store.refs.iterate() if not ref[0].startswith(CHECKPOINTS)
        ),
        "checkpoints": [
            (each.commit, each.reason, each.branch) for each in repo.checkpoints.list()
        ],
        "HEAD": repo.store.refs.head().ref,
        "rows": SessionLists(repo.store).own,
        "sessions": list(repo.sessions.list()),
        "saved": {path.name: path.read_bytes() for path in saved.iterdir()},
    }


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each session that a worker imported was taken over."""
    found: list[bool] = []
    take_over = import_ahead._take_over

    def note(context: ImportContext, made: SessionElsewhere) -> bool:
        found.append(take_over(context, made))
        return found[-1]

    monkeypatch.setattr(import_ahead, "_take_over", note)
    return found


def test_the_result_is_that_of_one_process(
    empty: Path, sources: Path, taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = imported(empty, sources)
    assert not taken
    together(monkeypatch)
    assert imported(empty, sources) == wanted
    assert taken.count(True) == 6, "each session that depends on no other"
    assert taken.count(False) == 3, "a copy, the second file of a session, and what is broken"


def test_real_sessions(empty: Path, taken: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    files = [path for path in real_files() if path.stat().st_size < 2_000_000]
    if not files:
        pytest.skip(REASON)
    wanted = imported(empty, *files)
    together(monkeypatch)
    assert imported(empty, *files) == wanted
    assert taken.count(True) > len(files) // 2


@pytest.mark.parametrize(
    "program", ["", "import sys; sys.stdin.buffer.read(1); sys.exit(1)", "print('x' * 5)", "junk("]
)
def test_a_worker_that_fails_is_replaced_by_this_process(
    empty: Path, sources: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    wanted = imported(empty, sources)
    together(monkeypatch)
    monkeypatch.setattr(worker_pool, "_PROGRAM", program)
    assert imported(empty, sources) == wanted


def test_no_worker_for_little_or_for_what_is_known(
    empty: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", None)
        imported(empty, sources)
    together(monkeypatch)
    (sources / "broken.jsonl").unlink()  # no import remembers it
    with opened(empty) as repo:
        repo.transcripts.import_(sources)
        monkeypatch.setattr(subprocess, "Popen", None)
        assert not repo.transcripts.import_(sources).commits


def test_what_was_purged_does_not_come_back_in_a_list(
    empty: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(empty) as repo:
        repo.append("user", "Question 0 of session 2: why does it fail?")
        repo.maintenance.purge(repo.maintenance.plan_purge(texts=["Question 0 of session 2"]))
        together(monkeypatch)
        repo.transcripts.import_(sources)
        assert not [row for row in repo.sessions.list() if "of session 2" in row.prompt]


def test_workers_end_when_the_import_is_interrupted(
    empty: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def note(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **options))
        return started[-1]

    def interrupt(path: str, done: int, size: int) -> None:
        if done == size:
            raise KeyboardInterrupt

    together(monkeypatch)
    monkeypatch.setattr(subprocess, "Popen", note)
    with opened(empty) as repo:
        with pytest.raises(KeyboardInterrupt):
            repo.transcripts.import_(sources, progress=interrupt)
        assert len(started) == 2
        assert all(process.returncode is not None for process in started)
        assert len(list(repo.sessions.list())) == 1, "the first one is kept, and listed"
        assert repo.transcripts.import_(sources).commits


def test_a_secret_has_one_placeholder_without_a_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        session(number, output=f"the token is {SECRET}").write(tmp_path)
    together(monkeypatch)
    with Repo.init(tmp_path / "repo", environment=Environment(), secrets=REDACT) as repo:
        repo.transcripts.import_(tmp_path)
        results = [
            m.parts[0] for row in repo.sessions.list() for m in repo.contexts.compile(row.ref)
        ]
    texts = [str(part.content) for part in results if isinstance(part, ToolResult)]
    assert len(texts) == 12
    assert len(set(texts)) == 1
    assert SECRET not in texts[0]


def test_a_worker_leaves_a_file_that_is_large_once_decompressed(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "session.jsonl.gz"
    path.write_bytes(gzip.compress(session(0).data))
    monkeypatch.setattr(import_ahead, "MAXIMUM_FILE_BYTES", len(session(0).data))
    with opened(empty) as repo:
        root, environment = repo.store.layout.root, Environment()
        setup = import_ahead.ImportSetup(root, environment, REDACT, True, ())
        read = import_ahead.importer_of(setup)
        assert read((str(path), "claude-code")) is not None
        path.write_bytes(gzip.compress(session(0).data + b"\n"))
        assert read((str(path), "claude-code")) is None

"""The worker: branches of captured sessions are those of a plain import, however the transcripts grew."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capture.support.places import environment_in
from tests.importers.support.transcripts import (
    SESSION,
    Transcript,
    call,
    each_chosen_file,
    real_format,
    text,
)
from trace_store import Repo, capture
from trace_store.base.environment import Environment
from trace_store.capture.spool import AGENTS, CLAUDE_CODE, WorkerLock
from trace_store.capture.worker import CaptureRun
from trace_store.errors import NotFoundError

FORMATS = ("claude-code", "codex", "gemini", "copilot")


@pytest.fixture
def user(tmp_path: Path) -> Environment:
    return environment_in(tmp_path / "home")


@pytest.fixture
def repo(tmp_path: Path, user: Environment) -> Iterator[Repo]:
    with Repo.init(tmp_path / "project", environment=user, durability="fast") as opened:
        yield opened


def happens(user: Environment, repo: Repo, agent: str, path: Path, **fields: str) -> None:
    """Let the hook of an agent run."""
    folder = str(Path(repo.store.layout.root).parent)
    given = {"session_id": path.stem, "transcript_path": str(path), "cwd": folder}
    data = json.dumps({**given, "hook_event_name": "Stop", **fields}).encode()
    assert capture.note_event(user, agent, data) == repo.store.layout.root


def branches(repo: Repo) -> dict[str, str]:
    return {name: oid.hex() for name, oid in repo.store.refs.iterate("refs/heads/sessions/")}


def imported(*paths: Path, format: str) -> dict[str, str]:
    """Return the branches of a plain import."""
    other = Repo.memory()
    other.transcripts.import_(*paths, format=format)
    return branches(other)


def catch_up(repo: Repo) -> CaptureRun:
    return capture.catch_up(repo.writer)


def pieces(data: bytes, count: int) -> Iterator[bytes]:
    """Yield longer and longer beginnings of a transcript, some of them torn, and at last all of it."""
    chosen = random.Random(len(data))
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10]
    cuts = {*chosen.sample(ends, min(count, len(ends))), *chosen.sample(range(len(data)), 3)}
    yield from (data[:cut] for cut in sorted(cuts))
    yield data


@pytest.mark.parametrize("path", each_chosen_file(*FORMATS))
def test_a_growing_transcript_becomes_what_a_plain_import_makes(
    user: Environment, repo: Repo, tmp_path: Path, path: Path
) -> None:
    agent, copy = real_format(path), tmp_path / path.name
    if path.suffix == ".json":
        pytest.skip("an old format, which is written as a whole")
    for data in pieces(path.read_bytes(), 12):
        copy.write_bytes(data)
        happens(user, repo, agent, copy)
        assert not catch_up(repo).failures
    assert branches(repo) == imported(copy, format=agent)


def conversation() -> Transcript:
    t = Transcript()
    t.user("Read both files.")
    t.assistant("msg_1", call("toolu_a"))
    t.result("toolu_a", "a")
    t.assistant("msg_2", text("Done."), stop="end_turn")
    return t


def test_nothing_is_captured_twice(user: Environment, repo: Repo, tmp_path: Path) -> None:
    path = Path(conversation().write(tmp_path))
    for _ in range(2):  # two settings files name the hook
        happens(user, repo, CLAUDE_CODE, path)
    done = catch_up(repo)
    assert (done.events, done.messages, len(done.sessions)) == (2, 4, 1)
    happens(user, repo, CLAUDE_CODE, path)
    assert (catch_up(repo).commits, catch_up(repo).events) == (0, 0)


@pytest.mark.parametrize("agent", [each for each in AGENTS if each != "opencode"])
@pytest.mark.parametrize("data", [None, b"", b"{", b"{}\n", b"\0\0\0\0"])
def test_nothing_yet_is_no_failure(
    user: Environment, repo: Repo, tmp_path: Path, agent: str, data: bytes | None
) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    if data is not None:
        path.write_bytes(data)
    happens(user, repo, agent, path, hook_event_name="SessionStart")
    done = catch_up(repo)
    assert (done.events, done.messages, done.failures) == (1, 0, ())
    happens(user, repo, agent, path)
    assert catch_up(repo).failures == ()


def test_a_session_that_was_killed_is_found_by_the_next_one(
    user: Environment, repo: Repo, tmp_path: Path
) -> None:
    t = conversation()
    path = Path(t.write(tmp_path))
    happens(user, repo, CLAUDE_CODE, path)
    catch_up(repo)
    t.user("One more?")
    t.assistant("msg_3", text("One more."), stop="end_turn")
    t.write(tmp_path)  # and then the agent is killed
    other = tmp_path / "other" / "other.jsonl"
    happens(user, repo, CLAUDE_CODE, other, hook_event_name="SessionStart")
    assert catch_up(repo).messages == 2
    assert branches(repo) == imported(path, format=CLAUDE_CODE)


def with_subagent(folder: Path, *, ended: bool) -> tuple[Transcript, Path, Path]:
    """Return a session with a subagent at work, its file, and that of the subagent."""
    t = Transcript()
    t.user("Let an agent look.")
    t.assistant("msg_1", call("toolu_agent", "Task", prompt="Look."))
    folder.mkdir()
    path = Path(t.write(folder))
    inner = Transcript()
    inner.user("Look.")
    inner.assistant("msg_9", text("I looked."), stop="end_turn")
    lines = [json.loads(line) for line in inner.data.splitlines()]
    for line in lines:
        line.update(agentId="a1", isSidechain=True)
    below = folder / path.stem / "subagents" / "agent-a1.jsonl"
    below.parent.mkdir(parents=True)
    below.write_text("".join(json.dumps(line) + "\n" for line in lines))
    facts = {"agentType": "Explore", "toolUseId": "toolu_agent"}
    below.with_name("agent-a1.meta.json").write_text(json.dumps(facts))
    if ended:
        _end(t, folder)
    return t, path, below


def _end(t: Transcript, folder: Path) -> None:
    t.assistant("msg_1", text("It is looking."))  # the model still wrote when the agent began
    t.result("toolu_agent", "I looked.")
    t.assistant("msg_2", text("It looked."), stop="end_turn")
    t.write(folder)


def test_subagents_start_where_a_plain_import_lets_them_start(
    user: Environment, repo: Repo, tmp_path: Path
) -> None:
    t, path, below = with_subagent(tmp_path / "a", ended=False)
    happens(user, repo, CLAUDE_CODE, path, hook_event_name="UserPromptSubmit")
    happens(
        *(user, repo, CLAUDE_CODE, path),
        hook_event_name="SubagentStop",
        agent_transcript_path=str(below),
    )
    assert catch_up(repo).messages == 2
    _end(t, tmp_path / "a")
    happens(user, repo, CLAUDE_CODE, path)
    catch_up(repo)
    assert branches(repo) == imported(tmp_path / "a", format=CLAUDE_CODE)
    assert len(branches(repo)) == 2


def test_a_checkpoint_is_saved_before_a_compaction(
    user: Environment, repo: Repo, tmp_path: Path
) -> None:
    t = conversation()
    path = Path(t.write(tmp_path))
    for _ in range(2):
        happens(user, repo, CLAUDE_CODE, path, hook_event_name="PreCompact", trigger="auto")
    [name] = catch_up(repo).checkpoints
    saved = repo.checkpoints.show(name)
    assert saved.commit.hex() in branches(repo).values()
    t.user("Go on.")
    t.assistant("msg_3", text("I do."), stop="end_turn")
    t.write(tmp_path)
    happens(user, repo, CLAUDE_CODE, path)
    catch_up(repo)
    changed = repo.checkpoints.diff(name, saved.branch)
    assert changed.changes
    assert branches(repo) == imported(path, format=CLAUDE_CODE)


def test_one_worker_at_a_time(user: Environment, repo: Repo, tmp_path: Path) -> None:
    path = Path(conversation().write(tmp_path))
    happens(user, repo, CLAUDE_CODE, path)
    lock = WorkerLock(repo.store.disk, repo.store.layout)
    assert lock.take()
    assert catch_up(repo).is_busy
    lock.release()
    done = catch_up(repo)
    assert (done.is_busy, done.messages) == (False, 4)


def test_what_fails_is_kept_and_tried_again(user: Environment, repo: Repo, tmp_path: Path) -> None:
    t = conversation()
    key = "sk-ant-api03-" + "A1b2C3d4E5" * 9 + "AA"
    t.user(f"My key is {key}.")
    path = Path(t.write(tmp_path))
    happens(user, repo, CLAUDE_CODE, path)
    with Repo.open(
        Path(repo.store.layout.root).parent, environment=user, secrets="block"
    ) as strict:
        [failure] = catch_up(strict).failures
    assert str(path) in failure
    found = capture.capture_status(user, repo.store, folder=str(tmp_path / "project"))
    assert [each.code for each in found.problems] == ["hooks-failed"]
    assert key not in str(found.problems)
    assert catch_up(repo).failures == ()
    found = capture.capture_status(user, repo.store, folder=str(tmp_path / "project"))
    assert found.problems == ()
    assert len(branches(repo)) == 1


def test_a_failed_session_is_given_up_until_its_agent_continues_it(
    user: Environment, repo: Repo, tmp_path: Path
) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_text("this is no transcript\n")
    happens(user, repo, CLAUDE_CODE, path)
    assert catch_up(repo).failures
    problems = capture.capture_status(user, repo.store).problems
    assert f"`trace hooks run --forget {path.stem}` gives it up" in problems[0].advice
    with pytest.raises(NotFoundError, match="no failed session 'nope'"):
        capture.catch_up(repo.writer, forget="nope")
    assert capture.catch_up(repo.writer, forget=path.stem[:8]).failures == ()
    assert capture.capture_status(user, repo.store).problems == ()
    assert catch_up(repo).failures == ()
    conversation().write(tmp_path)
    happens(user, repo, CLAUDE_CODE, path)
    assert catch_up(repo).failures == ()
    assert len(branches(repo)) == 1


def test_damaged_lines_of_the_spool_are_counted(
    user: Environment, repo: Repo, tmp_path: Path
) -> None:
    path = Path(conversation().write(tmp_path))
    happens(user, repo, CLAUDE_CODE, path)
    with Path(repo.store.layout.spool_file).open("ab") as spool:
        spool.write(b'{"agent": "claude-code", "ev\n[1]\n{"agent": "other"}\n')
    assert (catch_up(repo).messages, catch_up(repo).messages) == (4, 0)
    found = capture.capture_status(user, repo.store, folder=str(tmp_path / "project"))
    assert "3 lines" in found.problems[0].detail


def test_lines_of_a_worker_that_was_killed_come_first(
    user: Environment, repo: Repo, tmp_path: Path
) -> None:
    path = Path(conversation().write(tmp_path))
    happens(user, repo, CLAUDE_CODE, path)
    spool = Path(repo.store.layout.spool_file)
    shutil.move(spool, f"{spool}.taken")
    happens(user, repo, CLAUDE_CODE, path)
    assert catch_up(repo).events == 2
    assert not spool.exists()


def test_a_session_moves_with_its_folder(user: Environment, repo: Repo, tmp_path: Path) -> None:
    t = conversation()
    (tmp_path / "before").mkdir()
    path = Path(t.write(tmp_path / "before"))
    happens(user, repo, CLAUDE_CODE, path)
    catch_up(repo)
    (tmp_path / "before").rename(tmp_path / "after")
    t.user("One more?")
    moved = Path(t.write(tmp_path / "after"))
    happens(user, repo, CLAUDE_CODE, moved)
    catch_up(repo)
    assert branches(repo) == imported(moved, format=CLAUDE_CODE)


def test_undo_passes_over_what_hooks_imported(
    user: Environment, repo: Repo, tmp_path: Path
) -> None:
    repo.append("user", "first")
    repo.append("user", "second")
    happens(user, repo, CLAUDE_CODE, Path(conversation().write(tmp_path)))
    assert catch_up(repo).messages == 4
    assert repo.undo().summary == "commit: user: second"
    assert branches(repo)

"""A disk that is full in the middle of a command that makes room: nothing is lost, and with free space it works."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.test_faults_command_line import REFUSED, TOLERATED, Failing, tips
from tests.support.command_line import Run, Trace
from trace_store import Environment, Repo, ToolCall, ToolResult

STRIDE = 1 if os.environ.get("TRACE_TEST_FULL") else 5
FULL = os.strerror(errno.ENOSPC)
COMMANDS = (
    "trim --percent 60 --partial",
    "compress --to 60% --extractive",
    "checkpoint save here",
    "trash restore --all",
    "trash empty",
    "fork merge main idea",
)


class FullDisk(Failing):
    """The kernel refuses, from the n-th call on, all that needs space; removing needs none."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.number = errno.ENOSPC

    def refusing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        return call if call.__name__ == "unlink" else super().refusing(call)

    def fail(self, target: Any, other: str = "") -> None:
        self.count += 1
        if self.count >= self.at:
            raise OSError(self.number, FULL, target)


@pytest.fixture
def session(ok: Run, tmp_path: Path) -> Path:
    """A repository with tool outputs, a fork, and a message and two refs in the trash."""
    with Repo.open(tmp_path, author="ada", environment=Environment()) as repo:
        for turn in range(6):
            call, path = f"c{turn}", f'{{"file_path": "/m{turn % 2}.py"}}'
            repo.append("user", f"Question {turn}: why does it fail?")
            repo.append("assistant", [ToolCall(call, "Read", path)])
            repo.append("tool", [ToolResult(call, f"line of module {turn}\n" * 60)])
            repo.append("assistant", f"Because of line {turn}. " * 40)
        for name in ("old", "idea"):
            repo.forks.create(name)
        repo.append("user", "Go on.")
        repo.remove(repo.compile().messages[-4].address)
    ok("branch", "-d", "-f", "old")
    ok("checkpoint", "save", "past")
    ok("checkpoint", "delete", "past")
    return tmp_path


def seen(folder: Path) -> tuple[list[str], list[str]]:
    """Return what `main` shows and the names of the refs, those of the trash without their time."""
    with Repo.open(folder) as repo:
        names = [name for name, _ in repo.store.refs.iterate()]
        plain = ["/".join(n.split("/")[:3]) if n.startswith("refs/trash/") else n for n in names]
        return [message.text for message in repo.compile("main")], sorted(set(plain))


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_lost_and_the_command_works_once_there_is_space(
    command: str, session: Path, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, here = command.split(), session.parent / "tried"

    def begin() -> None:
        shutil.rmtree(here, ignore_errors=True)
        shutil.copytree(session / ".trace", here / ".trace")

    before = tips(session)
    begin()
    assert trace("-C", str(here), *words).code == 0
    wanted = seen(here)
    refused = 0
    for at in count(1, STRIDE):
        begin()
        disk = FullDisk(at)
        with monkeypatch.context() as patch:
            disk.begin(patch)
            done = trace("-C", str(here), *words)
        if disk.count < at:
            break
        assert done.code in (TOLERATED, REFUSED), f"call {at}: {done}"
        assert "Traceback" not in done.err
        after = tips(here)
        if done.code == REFUSED:
            refused += 1
            assert FULL in done.err, f"call {at}: {done}"
        if after == before:  # otherwise all was written, and only the sync was refused
            assert trace("-C", str(here), *words).code == 0, f"call {at}"
        assert seen(here) == wanted, f"call {at}: {done}"
    assert refused

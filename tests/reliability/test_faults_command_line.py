"""Commands on a failing disk: documented exit code, one error line, usable store."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import trace_store
from tests.support.command_line import Outcome, Trace
from trace_store.disk import system_calls
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.fsck_objects import ERROR
from trace_store.store.store import Store

STRIDE = 1 if os.environ.get("TRACE_TEST_FULL") else 9
CODES = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
TOLERATED = 0
"""Failures of derived files, which are rebuilt, are not reported."""
REFUSED = 14
TRANSCRIPT = str(Path(trace_store.__file__).with_name("samples") / "claude-code.jsonl")


class Failing:
    """The kernel refuses the n-th call of this process that changes the disk."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.count = 0
        self.number = CODES[at // STRIDE % len(CODES)]
        self.opened: dict[int, str] = {}
        self.target = self.other = ""

    def begin(self, patch: pytest.MonkeyPatch) -> None:
        for module, name in (
            *((os, name) for name in ("write", "mkdir", "replace", "link", "unlink")),
            *((system_calls, name) for name in ("sync", "sync_directory", "pwrite")),
        ):
            patch.setattr(module, name, self.refusing(getattr(module, name)))
        patch.setattr(os, "open", self.opening(os.open))

    def refusing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def refuse(*given: Any, **options: Any) -> Any:
            self.fail(*given[: 1 + isinstance(given[-1], str)])
            return call(*given, **options)

        return refuse

    def opening(self, call: Callable[..., int]) -> Callable[..., int]:
        def create(path: Any, flags: int, *given: Any, **options: Any) -> int:
            if flags & os.O_CREAT:
                self.fail(path)
            fd = call(path, flags, *given, **options)
            self.opened[fd] = os.fspath(path)
            return fd

        return create

    def names(self, folder: Path) -> set[str]:
        """Return the possible names of the refused file: its own or its final name."""
        return {os.path.relpath(path, folder) for path in (self.target, self.other) if path}

    def fail(self, target: Any, other: str = "") -> None:
        self.count += 1
        if self.count == self.at:
            self.other = other
            self.target = self.opened[target] if isinstance(target, int) else os.fspath(target)
            raise OSError(self.number, os.strerror(self.number), target)


def tips(folder: Path) -> dict[str, Any]:
    """Return the refs of the repository in a folder, and check every object of it."""
    with Store.open(str(folder / ".trace")) as store:
        assert not [each for each in fsck(store) if each.severity == ERROR]
        return dict(store.refs.iterate_tips())


@pytest.fixture
def busy(ok: Callable[..., Outcome], tmp_path: Path) -> Path:
    """A repository with something in a journal, in packs and loose."""
    for number in range(2):
        ok("commit", "--no-seal", "-q", "--user", f"Question {number}, " + "at length " * 60)
        ok("seal", "-q")
    ok("hash-object", "-w", "--stdin", stdin=b"nothing leads here")
    ok("commit", "--no-seal", "-q", "--user", "not sealed yet")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("commit", "--user", "one more"),
        ("import", TRANSCRIPT),
        ("seal",),
        ("pack",),
        ("gc", "--grace", "0"),
        ("prune", "--now"),
        ("fsck", "--repair"),
    ],
    ids=lambda words: " ".join(words[:2]) if words[0] == "fsck" else words[0],
)
def test_a_command_whose_disk_fails_says_so_and_loses_nothing(
    words: tuple[str, ...], busy: Path, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    if words[0] == "fsck":
        next(busy.glob(".trace/objects/pack/*.idx")).unlink()
    kept, here = busy / ".trace", busy.parent / "tried"
    before = {} if words[0] == "fsck" else tips(busy)
    refused = 0
    for at in count(1, STRIDE):
        shutil.rmtree(here, ignore_errors=True)
        shutil.copytree(kept, here / ".trace")
        failing = Failing(at)
        with monkeypatch.context() as patch:
            failing.begin(patch)
            done = trace("-C", str(here), *words)
        if failing.count < at:
            assert done.code == 0, done.err
            break
        said = [line for line in done.err.splitlines() if line.startswith("trace: error: ")]
        assert done.code in (TOLERATED, REFUSED), f"call {at}: {done}"
        if done.code == REFUSED:
            refused += 1
            assert len(said) == 1, f"call {at}: {done}"
            told = re.fullmatch(r"trace: error: cannot ([a-z ]+) (\S+): (.*)", said[0])
            assert told, f"call {at}: {done}"
            assert told[3] == os.strerror(failing.number), f"call {at}: {done}"
            assert told[2] in failing.names(here), f"call {at}: {done}, not {failing.target}"
        assert "Traceback" not in done.err
        if words[0] == "fsck":  # begun again, it ends
            assert trace("-C", str(here), *words).code in (0, 12)
        after = tips(here)
        if words[0] == "import":  # it goes in part by part
            assert after.items() >= before.items()
        elif words[0] == "commit":  # one that is there is not asked for again
            assert (after == before) == (done.code == REFUSED), f"call {at}: {done}"
        elif before:
            assert after == before, f"call {at}"
        again = trace("-C", str(here), "commit", "-q", "--user", "it goes on")
        assert again.code == 0, f"call {at}: {again.err}"
    assert refused

"""Repositories of chosen sizes, made quickly: few big commits, and a tail of small ones that is not sealed."""

from __future__ import annotations

import io
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from trace_cli.main import main
from trace_cli.runtime import Invocation
from trace_store import FixedClock, Message, Repo, Store, Text, ToolCall, ToolResult
from trace_store.base.environment import Environment
from trace_store.base.oid import ObjectId, hash_object
from trace_store.context.compiler import ContextCompiler
from trace_store.contracts import RefEdit, Transaction
from trace_store.disk.files import Disk
from trace_store.history import commit
from trace_store.history.draft import Draft
from trace_store.history.log import log
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal
from trace_store.objects.commit import Commit
from trace_store.testing.disks import RecordingDisk
from trace_store.writer import Writer

AXES = ("history", "messages", "branches")
FACTOR = 6
TAIL = 12
BATCH = 250


class Size(NamedTuple):
    """How much a repository holds: commits that show nothing, messages that are shown, branches beside `main`."""

    history: int = 200
    messages: int = 200
    branches: int = 40


SMALL = Size()
LARGE = {axis: SMALL._replace(**{axis: getattr(SMALL, axis) * FACTOR}) for axis in AXES}


class QuickDisk(Disk):
    """A disk that syncs nothing: its files live only as long as the tests."""

    __slots__ = ()

    def sync(self, fd: int) -> None:
        pass

    def sync_directory(self, path: str) -> None:
        pass


class QuickRecordingDisk(RecordingDisk):
    """Counts, and makes nothing durable."""

    __slots__ = ()

    def sync(self, fd: int) -> None:
        self.calls += 1
        self.synced += 1

    def sync_directory(self, path: str) -> None:
        self.calls += 1
        self.synced += 1


def text(number: int) -> str:
    """Return the text of message n: a few hundred unique characters."""
    words = Random(number)
    return f"message {number}: " + " ".join(f"{words.getrandbits(32):x}" for _ in range(30))


def prompt(number: int) -> Message:
    """Return message n of a conversation in which only the user speaks."""
    return Message("user", text(number))


def work(number: int) -> Message:
    """Return message n of an agent that reads a file for each prompt, each file twice."""
    turn, step = divmod(number - 1, 4)
    call, path = f"call_{turn}", f"/src/module_{turn // 2}.py"
    if step == 0:
        return prompt(number)
    if step == 1:
        return Message("assistant", [ToolCall(call, "Read", json.dumps({"file_path": path}))])
    if step == 2:
        return Message("tool", [ToolResult(call, [Text(text(8 * (turn // 2)))])])
    return Message("assistant", text(number))


def build(folder: Path, size: Size, message: Callable[[int], Message] = prompt) -> None:
    """Make a repository of a size: all packed and indexed but the last few commits.

    The first messages and commits have the clock of long ago, the tail that of tomorrow, so that no seal is due.
    """
    store = Store.init(str(folder), clock=FixedClock(step=10), durability="fast", disk=QuickDisk())
    usage = {"input_tokens": 10, "output_tokens": 10}
    first = commit.commit(Writer(store, author="ada"), [Message("system", text(0))]).oid
    for _ in range(size.history):
        draft = Draft(Writer(store, author="ada"))
        draft.record_usage(usage)
        commit.write(draft)
    messages = [message(n) for n in range(1, size.messages)]
    for start in range(0, len(messages), BATCH):
        commit.commit(Writer(store, author="ada"), messages[start : start + BATCH])
    add_branches(store, [branch(n) for n in range(size.branches)], first)
    seal(store)
    pack(store, level=3)
    _ = ContextCompiler(store).compile().token_count
    store.close()
    tomorrow = int(time.time() * 1000) + 86_400_000
    clock = FixedClock(tomorrow, step=10)
    with Store.open(str(folder / ".trace"), clock=clock, durability="fast", disk=QuickDisk()) as s:
        for n in range(TAIL):
            commit.commit(Writer(s, author="ada"), [Message("assistant", f"turn {n}")])
        _ = ContextCompiler(s).compile().token_count
        assert all(entry.summary() for entry in log(s))


def branch(number: int) -> str:
    """Return the name of branch n; every other one is a session's."""
    return f"topic-{number:05}" if number % 2 == 0 else f"sessions/codex/{number:08x}-0c4d"


def add_branches(store: Store, names: Sequence[str], parent: ObjectId) -> None:
    """Begin branches with a commit of their own each, in one transaction."""
    objects: list[tuple[ObjectId, bytes]] = []
    edits: list[RefEdit] = []
    for name in names:
        data = Commit([parent], "ada", 1_700_000_000_000, [], f"begin {name}").encode()
        objects.append((hash_object(data), data))
        edits.append(RefEdit(f"refs/heads/{name}", objects[-1][0], None))
    store.transact(lambda _: Transaction(objects, edits, "begin"), author="ada")


def copy(source: Path, target: Path) -> None:
    """Copy a repository; packs, which never change, are hard-linked."""

    def take(a: str, b: str) -> str:
        if a.endswith((".pack", ".idx")):
            os.link(a, b)
            return b
        return shutil.copyfile(a, b)

    shutil.copytree(source, target, copy_function=take)


class Place:
    """A repository to work on, whose disk counts.

    Attributes:
        folder: the folder that has the `.trace`.
        disk: what all that is opened here goes through.
    """

    def __init__(self, folder: Path, disk: RecordingDisk) -> None:
        self.folder = folder
        self.disk = disk
        self._repo: Repo | None = None

    @property
    def repo(self) -> Repo:
        """The repository, opened once."""
        if self._repo is None:
            self._repo = self.open()
        return self._repo

    def open(self, durability: str = "fast") -> Repo:
        """Reopen the repository."""
        store = Store.open(str(self.folder / ".trace"), durability=durability, disk=self.disk)
        return Repo(store, author="ada")

    def close(self) -> None:
        """Close the repository without sealing."""
        if self._repo is not None:
            self._repo.store.close()
            self._repo = None

    def trace(self, *words: str, stdin: bytes = b"", terminal: bool = False, code: int = 0) -> str:
        """Run a command in this process and return its output."""
        output, error = io.BytesIO(), io.BytesIO()
        here = Invocation(
            environment=Environment(author="ada", discovery=False),
            output=output,
            error=error,
            input=io.BytesIO(stdin),
            terminal=terminal,
        )
        before = os.getcwd()
        try:
            found = main(["-C", str(self.folder), *words], here)
        finally:
            os.chdir(before)
        assert found == code, error.getvalue().decode()
        return output.getvalue().decode("utf-8", "replace")

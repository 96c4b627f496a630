"""The repository of a state machine: two stores on one folder, commands, invariants.

Rule: what is known of refs and of what can be undone is kept here plainly, as lists, beside the repository.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.merge_laws import check_sound
from tests.support.valid_requests import assert_valid_requests
from trace_store import FixedClock, ObjectId, Store, history
from trace_store.context.compiler import ContextCompiler
from trace_store.context.fold import Entry, Fold, fold
from trace_store.errors import TraceError
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.fsck_objects import INFO
from trace_store.objects.commit import Commit, read_commit
from trace_store.writer import Writer

AUTHOR = "ada"
SCRATCH = "/dev/shm" if os.path.isdir("/dev/shm") else None
KEPT = ("journal", "refs", "objects", "HEAD", "logs")
"""What a command must not touch that is refused, that stops, or that is given up."""


@dataclass(frozen=True)
class Refused:
    """A command that was refused, and how."""

    error: TraceError


@dataclass(frozen=True)
class Standing:
    """Where HEAD is, and where each branch, tag and staged line stands; the trash apart."""

    head: str | ObjectId
    refs: tuple[tuple[str, tuple[ObjectId, ...]], ...]


@dataclass
class Ground:
    """A repository and its past operations.

    Attributes:
        done: (before, after) of each command that can be taken back, oldest first.
        undone: the same of those that were taken back, in the order of taking back.
        seen: tips whose contexts were looked at.
    """

    folder: str = field(
        default_factory=lambda: tempfile.mkdtemp(prefix="trace-lines-", dir=SCRATCH)
    )
    done: list[tuple[Standing, Standing]] = field(default_factory=list)
    undone: list[tuple[Standing, Standing]] = field(default_factory=list)
    seen: set[ObjectId] = field(default_factory=set)
    numbers: int = 0

    def __post_init__(self) -> None:
        self.clock = FixedClock()
        Store.init(self.folder, clock=self.clock, durability="fast").close()
        self.stores = [self._open(), self._open()]
        self.contexts = [ContextCompiler(store) for store in self.stores]
        self._commits: dict[bytes, Commit] = {}
        self._folds: dict[bytes, Fold] = {}

    @property
    def store(self) -> Store:
        return self.stores[0]

    def _open(self) -> Store:
        return Store.open(os.path.join(self.folder, ".trace"), durability="fast", clock=self.clock)

    def reopen(self, number: int) -> None:
        """Close one of the stores and open it again; which one commands go to changes with it."""
        self.stores[number].close()
        self.stores[number] = self._open()
        self.stores.reverse()
        self.contexts = [ContextCompiler(store) for store in self.stores]

    def close(self) -> None:
        for store in self.stores:
            store.close()
        shutil.rmtree(self.folder)

    def number(self) -> int:
        """Return a number that nothing has yet, so that each text and call is known again."""
        self.numbers += 1
        return self.numbers

    def commit(self, oid: bytes) -> Commit:
        if oid not in self._commits:
            self._commits[oid] = read_commit(oid, self.store.objects.read)
        return self._commits[oid]

    def fold(self, oid: bytes | None) -> Fold:
        """Return the context of a commit, folded from its history alone."""
        if oid is None:
            return Fold()
        if oid not in self._folds:
            self._folds[oid] = fold(oid, self.commit)
        return self._folds[oid]

    def tip(self) -> ObjectId | None:
        return self.store.refs.head().oid

    def now(self) -> Fold:
        """Return the context of HEAD."""
        return self.fold(self.tip())

    def visible(self) -> list[Entry]:
        """Return the messages that HEAD's context shows as themselves."""
        return [each for each in self.now().visible() if not each.is_ghost]

    def branches(self) -> list[str]:
        return [
            name.removeprefix("refs/heads/") for name, _ in self.store.refs.iterate("refs/heads/")
        ]

    def past(self, oid: ObjectId) -> set[ObjectId]:
        """Return a commit and all that it comes from."""
        found: set[ObjectId] = set()
        waiting = [oid]
        while waiting:
            each = waiting.pop()
            if each not in found:
                found.add(each)
                waiting += self.commit(each).parents
        return found

    def bases(self, one: ObjectId, other: ObjectId) -> list[ObjectId]:
        """Return the best common ancestors, by their definition."""
        common = self.past(one) & self.past(other)
        older = {each for oid in common for each in self.past(oid) - {oid}}
        return sorted(common - older)

    def line(self, tip: ObjectId | None) -> list[ObjectId]:
        """Return the first parents of a commit, itself first."""
        found: list[ObjectId] = []
        while tip is not None:
            found.append(tip)
            parents = self.commit(tip).parents
            tip = parents[0] if parents else None
        return found

    def standing(self) -> Standing:
        refs = [
            (name, tips)
            for name, tips in self.store.refs.iterate_tips("refs/")
            if not name.startswith("refs/trash/")
        ]
        return Standing(self.store.refs.head_target(), tuple(refs))

    def files(self) -> dict[str, str]:
        """Return the content of the files that define the history."""
        root = self.store.layout.root
        found: dict[str, str] = {}
        for folder, _, names in os.walk(root):
            for name in names:
                path = os.path.join(folder, name)
                where = os.path.relpath(path, root)
                if where.split(os.sep)[0] in KEPT:
                    with open(path, "rb") as file:
                        found[where] = hashlib.sha256(file.read()).hexdigest()
        return found

    def command(self, run: Callable[[], Any], *refusals: type[TraceError]) -> Any:
        """Run a command that may move refs; return its result, or Refused (no changes)."""
        before, files = self.standing(), self.files()
        try:
            result = run()
        except refusals as error:
            result = Refused(error)
        after = self.standing()
        if isinstance(result, Refused):
            assert self.files() == files, f"refused, and has written: {result.error}"
            assert after == before
        if after != before:
            self.done.append((before, after))
            self.undone.clear()
        return result

    def forget_commands(self) -> None:
        """Take note that something else moved a ref, which no command takes back."""
        self.done.clear()
        self.undone.clear()

    def undo(self) -> None:
        """Undo the last command: refs and contexts are as before."""
        before, after = self.done.pop()
        assert self.standing() == after
        history.undo.undo(Writer(self.store, author=AUTHOR), everyone=True)  # of both stores
        self.assert_stands(before)
        self.undone.append((before, after))

    def redo(self) -> None:
        """Redo the last undone command."""
        before, after = self.undone.pop()
        assert self.standing() == before
        history.undo.redo(Writer(self.store, author=AUTHOR), everyone=True)
        self.assert_stands(after)
        self.done.append((before, after))

    def assert_stands(self, expected: Standing) -> None:
        assert self.standing() == expected
        for contexts in self.contexts:
            assert contexts.compile().prefix_hash == contexts.compile(cold=True).prefix_hash

    def assert_contexts(self) -> None:
        """Assert of each branch that moved that its cached context is the cold one, sound, and taken by providers."""
        tips = [("HEAD", self.tip()), *self.store.refs.iterate("refs/heads/")]
        for name, tip in tips:
            if tip is not None and (name == "HEAD" or tip not in self.seen):
                for contexts in self.contexts:
                    _assert_cached_is_cold(contexts, name, self.fold(tip))
            if tip is not None and tip not in self.seen:
                check_sound(self.fold(tip))
                context = self.contexts[0].compile(name)
                assert_valid_requests(context.messages, context.tools)
                self.seen.add(tip)

    def assert_sound(self) -> None:
        found = [each for each in fsck(self.store) if each.severity != INFO]
        assert not found, found


def _assert_cached_is_cold(contexts: ContextCompiler, name: str, expected: Fold) -> None:
    cached, cold = contexts.compile(name), contexts.compile(name, cold=True)
    wanted = list(expected.visible())
    assert [message.address for message in cached.messages] == [each.address for each in wanted]
    for ours, theirs, each in zip(cached.messages, cold.messages, wanted, strict=True):
        assert (ours.address, ours.parts) == (theirs.address, theirs.parts)
        assert ours.priority == theirs.priority == each.priority
        assert ours.labels == theirs.labels == each.labels
        assert ours.ghost == theirs.ghost == each.is_ghost
    assert cached.prefix_hash == cold.prefix_hash
    assert cached.prefix_hashes() == cold.prefix_hashes()
    assert cached.token_count == cold.token_count
    assert cached.message_tokens() == cold.message_tokens()
    assert list(cached.tools) == list(cold.tools)


def shown(state: Fold) -> tuple[Any, ...]:
    """Return a context's messages with their state, and its tools."""
    said = [(e.address, e.parts, e.is_ghost, e.priority, e.labels, e.keep) for e in state.visible()]
    return (*said, state.tools)

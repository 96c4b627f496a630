"""What the processes of a storm do until they are killed: write, read, seal, pack, collect.

A journal is deleted by a writer that holds it open, and lives until its next commit is acknowledged: that is what
docs/design/004 promises, no more and no less. All others are killed at any moment, this one meanwhile not.
"""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.reliability.support.storm_texts import (
    BODIES,
    RESCUED,
    BadReadError,
    Line,
    Logs,
    Said,
    body_text,
    read_said,
)
from trace_cli.main import main
from trace_cli.porcelain import seal as maintaining  # noqa: F401 - so that no process has to import it
from trace_cli.runtime import Invocation
from trace_store import Repo, errors, writer
from trace_store.base.environment import Environment
from trace_store.base.oid import ObjectId
from trace_store.history import commit
from trace_store.maintenance.seal import seal
from trace_store.objects.content import write_content
from trace_store.objects.message import Message

TRIES = 200
DELETION_SECONDS = 20
"""How long a writer lives, on average, between two journals that it deletes."""
LOCAL = ("local", "logs", "tmp", "index", "cache", "locks")
"""What `git clean -fdX` takes beside the journal and HEAD."""
BUSY = ("locked", "concurrency", "ref-changed", "storage")
"""Codes of refusals that a storm may lead to; nothing was acknowledged then."""


class Role:
    """One process, with its folder and name."""

    journals = True
    """Whether journals are deleted."""

    def __init__(self, folder: Path, logs: Logs, name: str, incarnation: int, seed: int) -> None:
        self.folder = folder
        self.logs = logs
        self.name = name
        self.incarnation = incarnation
        self.random = Random(f"{seed} {name} {incarnation}")

    def refused(self, error: errors.TraceError) -> None:
        """Note a refusal; one that no storm explains is a finding."""
        self.logs.add("refusals", f"{error.code} {self.name}: {error}")
        if error.code not in BUSY:
            self.logs.add("bad", f"{self.name}: {type(error).__name__}: {error}")

    def pause(self, most: float) -> None:
        time.sleep(self.random.uniform(0, most))


class Writer(Role):
    """Appends to a branch, says so outside, and now and then seals, litters, or deletes the journal under all."""

    branch: str | None = None
    durabilities: tuple[str, ...] = ("durable", "batch", "fast", "fast")

    def run(self) -> None:
        durability = self.random.choice(self.durabilities)
        self.number = 0
        self.repo = Repo.open(self.folder, create=False, durability=durability)
        before = time.monotonic()
        while True:
            chance, now = self.random.random(), time.monotonic()
            due, before = self.random.random() < (now - before) / DELETION_SECONDS, now
            try:
                if due and self.journals:
                    self.delete_journals(clean=self.random.random() < 0.3)
                elif chance < 0.01:
                    seal(self.repo.store)
                    self.logs.add("events", "seal")
                elif chance < 0.03:
                    self.litter()
                else:
                    self.write()
            except errors.TraceError as error:
                self.refused(error)
            self.pause(0.02)

    def write(self) -> None:
        """Make one commit, and say so when it was acknowledged."""
        self.number += 1
        said = Said(self.name, self.incarnation, self.number, self.random.randrange(BODIES))
        messages = [Message("user", str(said)), Message("assistant", body_text(said.body))]
        result = commit.commit(
            writer.Writer(self.repo.store, author=self.name).on(self.branch or ""), messages
        )
        self.acknowledge(f"{result.oid} {said}")

    def acknowledge(self, line: str) -> None:
        """Say outside that a commit will stay."""
        self.logs.add(f"acks/{self.name}", line)

    def litter(self) -> None:
        """Store a text that others may be about to commit, and lead nowhere from it."""
        text = body_text(self.random.randrange(BODIES))
        write_content(text.encode(), self.repo.store.objects.write)

    def delete_journals(self, *, clean: bool) -> None:
        """Delete the journals that this process holds, and live until its next commit is acknowledged."""
        guard, turn = self.logs.guard(self.name), self.logs.guard("deleting")
        try:
            fcntl.flock(guard, fcntl.LOCK_EX)
            fcntl.flock(turn, fcntl.LOCK_EX)
            window = f"{self.name}.{self.incarnation}.{self.number}"
            store = self.repo.store
            with store.mutex:
                store.journal.refresh()
                held = [(file.path, file.identity) for file in store.journal.files]
            self.logs.add("windows", f"D {window}")
            for path, identity in held:
                if store.disk.identity(path) == identity and store.disk.remove(path):
                    self.logs.add("events", "journal")
            if clean:
                for name in LOCAL:
                    shutil.rmtree(os.path.join(store.layout.root, name), ignore_errors=True)
                self.logs.add("events", "clean")
            fcntl.flock(turn, fcntl.LOCK_UN)
            self.pause(0.05)
            for _ in range(TRIES):
                try:
                    self.write()
                    break
                except errors.TraceError as error:
                    self.refused(error)
            else:
                self.logs.add("bad", f"{self.name}: the journal does not come back")
            self.logs.add("windows", f"R {window}")
        finally:
            os.close(turn)
            os.close(guard)


class BranchWriter(Writer):
    """A writer on a branch of its own."""

    def run(self) -> None:
        self.branch = self.name
        super().run()


class Reader(Role):
    """Reads without locks; checks bytes, texts, order and acknowledged data."""

    def run(self) -> None:
        self.repo = Repo.open(self.folder, create=False)
        self.lines: dict[str, Line] = {}
        self.seen: dict[str, set[ObjectId]] = {}
        while True:
            before = self.logs.lines("windows")
            try:
                self.look(before)
            except BadReadError as error:
                self.logs.add("bad", f"{self.name}: {error}")
            except errors.ObjectNotFoundError as error:
                self.logs.add("refusals", f"{error.code} {self.name}: {error}")
                if self.calm(before):  # else it may be in a deleted journal
                    self.logs.add("bad", f"{self.name}: {error}")
            except errors.TraceError as error:
                self.refused(error)
                if error.code in BUSY:
                    self.logs.add("bad", f"{self.name}: a reader was refused: {error}")
            self.logs.add("events", "look")
            self.pause(0.05)

    def look(self, before: list[str]) -> None:
        """Read all branches once; `before` says which journals were away when that began."""
        promised = {
            path.name: self.logs.acknowledged(path.name)
            for path in (self.logs.folder / "acks").iterdir()
        }
        store = self.repo.store
        for branch in ("main", *(name for name in promised if name.startswith("own"))):
            line = self.lines.setdefault(branch, Line())
            whole = dict(line.said)
            continued = line.follow(store, store.refs.read(f"refs/heads/{branch}"))
            if not continued and self.calm(before):
                gone = [str(whole[oid]) for oid in whole if oid not in line.said]
                if self.unrescued(gone_oids(whole, line)):
                    raise BadReadError(f"{branch} went back by {len(gone)}: {gone[-1:]}")
            known = self.seen.setdefault(branch, set())
            known.update(line.said)
        for role, oids in promised.items():
            line = self.lines.get(role if role.startswith("own") else "main", Line())
            missing = [oid for oid in oids if oid not in line.said]
            if missing and self.calm(before):
                missing = self.unrescued(missing)
                if missing and self.calm(before):
                    raise BadReadError(f"{len(missing)} acknowledged by {writer} are not there")

    def calm(self, before: list[str]) -> bool:
        """Tell whether no journal was away since `before` was read."""
        now = self.logs.lines("windows")
        opened = {line[2:] for line in before if line.startswith("D")}
        closed = {line[2:] for line in before if line.startswith("R")}
        return now == before and opened == closed

    def unrescued(self, oids: list[ObjectId]) -> list[ObjectId]:
        """Return those that lie in the past of no rescued value either."""
        missing = set(oids)
        store = self.repo.store
        stack = [tip for _, tips in store.refs.iterate_tips(RESCUED) for tip in tips]
        stack += [tip for name in self.lines for tip in store.refs.tips(f"refs/heads/{name}")[1:]]
        met: set[ObjectId] = set()
        while stack and missing:
            oid = stack.pop()
            if oid not in met:
                met.add(oid)
                missing.discard(oid)
                stack += read_said(store, oid)[1]
        return [oid for oid in oids if oid in missing]


def gone_oids(whole: dict[ObjectId, Said], line: Line) -> list[ObjectId]:
    """Return the commits that a line has lost."""
    return [oid for oid in whole if oid not in line.said]


class Upkeep(Role):
    """Runs one command for people again and again."""

    words: tuple[str, ...] = ()
    most = 0.05

    def run(self) -> None:
        environment = Environment(author=self.name)
        while True:
            words, said = self.words, io.BytesIO()
            here = Invocation(
                environment=environment, output=io.BytesIO(), error=said, terminal=False
            )
            code = main(["--dir", str(self.folder / ".trace"), *words], here)
            if code in (0, 11, 14) or (
                code == 6 and self.journals
            ):  # 6: not all is there, so nothing goes
                self.logs.add("events", words[0] if code == 0 else f"{words[0]}-refused")
            else:
                self.logs.add("bad", f"{words} ended with {code}: {said.getvalue().decode()}")
            self.pause(self.most)


class Sealer(Upkeep):
    """`trace seal`."""

    words = ("seal", "-q")


class Packer(Upkeep):
    """`trace pack`."""

    words = ("pack", "-q")
    most = 0.5


class Collector(Upkeep):
    """`trace gc`, and `trace prune --now` of unreachable objects."""

    most = 0.5

    @property
    def words(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.random.choice([("gc", "-q"), ("prune", "--now", "-q")])


Make = Callable[[Path, Logs, str, int, int], "Writer | Reader | Upkeep"]

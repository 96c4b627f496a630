"""Processes on a machine with power cuts, which log acknowledged writes outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.reliability.support import storm_roles as roles
from tests.reliability.support.storm_texts import BODIES, Logs, body_text
from tests.store.support.histories import move
from trace_store import Repo, errors
from trace_store.base.oid import ObjectId, hash_object
from trace_store.maintenance.seal import seal
from trace_store.objects.content import write_content
from trace_store.store.store import Store

NAMES = tuple(f"refs/tags/power-{number}" for number in range(4))
"""The refs that the mover creates, moves and deletes."""
NOTHING = "-"
"""The value of a ref that is not there, in the log."""
DUE = 30
"""Maximum number of commits of `batch` and `fast` that are not yet durable."""


class DurableWriter(roles.Writer):
    """What returned is promised."""

    durabilities = ("durable",)


class DurableBranchWriter(roles.BranchWriter):
    """The same on a branch of its own."""

    durabilities = ("durable",)


class LateWriter(roles.BranchWriter):
    """What was acknowledged is promised after the next call that makes it durable, and not before."""

    def run(self) -> None:
        self.pending: list[str] = []
        super().run()

    def acknowledge(self, line: str) -> None:
        self.pending.append(line)
        if self.random.randrange(DUE) < len(self.pending):
            self.make_durable(self.repo.store)
            for each in self.pending:
                super().acknowledge(each)
            self.pending.clear()

    def make_durable(self, store: Store) -> None:
        raise AssertionError("the durability says how")


class BatchWriter(LateWriter):
    """`batch`: promised after `sync`."""

    durabilities = ("batch",)

    def make_durable(self, store: Store) -> None:
        store.sync()


class FastWriter(LateWriter):
    """`fast`: promised after a seal. What it stores loosely may be damaged by a cut, and has to be made good then."""

    durabilities = ("fast",)

    def litter(self) -> None:
        content = body_text(self.random.randrange(BODIES)).encode()
        write_content(content, self.write_loose)

    def write_loose(self, data: bytes) -> ObjectId:
        """Store an object without acknowledgement, and report that first."""
        self.logs.add("loose", str(hash_object(data)))
        return self.repo.store.objects.write(data)

    def make_durable(self, store: Store) -> None:
        seal(store)


class Mover(roles.Role):
    """Creates, moves and deletes refs; reports each action before and after."""

    def run(self) -> None:
        store = Repo.open(self.folder, create=False).store
        while True:
            name = self.random.choice(NAMES)
            new = self.random.choice((None, store.refs.read("refs/heads/main")))
            said = f"{name} {new or NOTHING}"
            self.logs.add("moves", f"begun {said}")
            try:
                move(store, name, new)
            except errors.TraceError as error:
                self.refused(error)
            else:
                self.logs.add("moves", f"done {said}")
            self.pause(0.02)


Make = Callable[[Path, Logs, str, int, int], roles.Writer | Mover | roles.Upkeep]

CAST: dict[str, Make] = {
    "main-first": DurableWriter,
    "main-second": DurableWriter,
    "own-durable": DurableBranchWriter,
    "own-batch": BatchWriter,
    "own-fast": FastWriter,
    "mover": Mover,
    "sealer": roles.Sealer,
    "packer": roles.Packer,
    "collector": roles.Collector,
}
"""Everybody by name; a writer on `main`, or on a branch of its own, is called so."""
WRITERS = tuple(name for name in CAST if name.startswith(("main", "own")))

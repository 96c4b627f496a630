"""Repositories for tests of gc and prune, disks on which two processes meet, and writers that race with pruning."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.subjects import upkeep
from trace_store import store
from trace_store.base.ident import SystemClock
from trace_store.base.oid import ObjectId, hash_object
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.disk.files import READ, Disk
from trace_store.errors import ConcurrencyError, StateError
from trace_store.maintenance.gc import empty_quarantine
from trace_store.maintenance.reachability import ReachableSet
from trace_store.objects.codec import encode_blob
from trace_store.objects.commit import Commit
from trace_store.odb.database import ObjectDatabase
from trace_store.store.store import Store

LONG = "TRACE_TEST_COLLECTING" in os.environ
"""Whether the tests stop at every call, and race for long."""
LARGE = 40
"""How many large texts there are: too few for writers not to come back to one that was given up."""


def large(number: int) -> bytes:
    """Return a text that is looked for in packs before it is written."""
    return random.Random(number).randbytes(5000).hex().encode()


def commit_of(content: bytes, parents: list[ObjectId], author: str) -> list[tuple[ObjectId, bytes]]:
    """Return a blob and a commit that names it, with their ids; the commit comes last."""
    blob = encode_blob(content)
    commit = Commit(
        parents, author, 1_700_000_000_000, [], message="", meta={"content": hash_object(blob)}
    ).encode()
    return [(hash_object(data), data) for data in (blob, commit)]


def put(
    store: Store, ref: str, content: bytes, parents: Sequence[ObjectId] = (), author: str = "tester"
) -> ObjectId:
    """Move a ref to a commit with this content, whatever stood there."""
    objects = commit_of(content, list(parents), author)
    edits = [RefEdit(ref, objects[-1][0], ANY)]
    store.transact(lambda refs: Transaction(objects, edits, "put"), author="tester")
    return objects[-1][0]


def tag(store: Store, edits: list[RefEdit]) -> None:
    """Move refs to existing objects."""
    store.transact(lambda _: Transaction([], edits, "tag"), author="tester")


def forget_logs(store: Store) -> None:
    """Let reflogs say nothing, as they do in a fresh clone."""
    for path in Path(store.layout.logs_dir).rglob("*.log"):
        path.unlink(missing_ok=True)


def dangling(folder: Path) -> list[str]:
    """Return the refs that reach missing objects; quarantined ones count as missing."""
    store = Store.open(str(folder / ".trace"), durability="fast")
    objects = store.objects
    assert isinstance(objects, ObjectDatabase)

    def read(oid: bytes) -> bytes:
        if not objects.contains(oid):
            store.objects.read(b"\0" * 32)  # says that there is no such object
        return objects.read(oid)

    found: list[str] = []
    for name, tips in list(store.refs.iterate_tips()):
        marking = ReachableSet(read)
        marking.add(tips)
        if marking.absent:
            found.append(name)
    store.close()
    return found


class MeetingDisk(Disk):
    """Lets another process do something before the n-th call, or, while it would have to wait, as soon as it need not.

    Args:
        at: the number of the call, from 1; 0 for never.
        other: what is done then.
    """

    __slots__ = ("_at", "_journals", "_other", "count", "held")

    def __init__(self, at: int, other: Callable[[], None]) -> None:
        self._at = at
        self._other: Callable[[], None] | None = other
        self._journals: set[int] = set()
        self.held: set[int] = set()
        self.count = 0

    def _meet(self) -> None:
        self.count += 1
        other = self._other
        if self._at and self.count >= self._at and other is not None and not self.held:
            self._other = None
            other()

    def open(self, path: str, mode: str = READ) -> int | None:
        self._meet()
        fd = super().open(path, mode)
        if fd is not None and os.path.basename(os.path.dirname(path)) == "journal":
            self._journals.add(fd)
        return fd

    def close(self, fd: int) -> None:
        self._journals.discard(fd)
        self.held.discard(fd)
        super().close(fd)

    def read_at(self, fd: int, offset: int, size: int) -> bytes:
        self._meet()
        return super().read_at(fd, offset, size)

    def write(self, fd: int, data: bytes, at: int | None = None) -> int:
        self._meet()
        return super().write(fd, data, at)

    def scan(self, path: str) -> tuple[list[str], list[str]]:
        self._meet()
        return super().scan(path)

    def names(self, path: str) -> list[str]:
        self._meet()
        return super().names(path)

    def stat(self, path: str) -> os.stat_result | None:
        self._meet()
        return super().stat(path)

    def rename(self, source: str, target: str) -> None:
        self._meet()
        super().rename(source, target)

    def remove(self, path: str) -> bool:
        self._meet()
        return super().remove(path)

    def sync_directory(self, path: str) -> None:
        self._meet()
        super().sync_directory(path)

    def lock(self, fd: int, *, blocking: bool = True) -> bool:
        self._meet()
        taken = super().lock(fd, blocking=blocking)
        if taken and fd in self._journals:
            self.held.add(fd)
        return taken

    def unlock(self, fd: int) -> None:
        self.held.discard(fd)
        super().unlock(fd)
        self._meet()


def let_writers_trust(what: str) -> None:
    """Disable the writers' second check in this process, to show its purpose."""
    if what == "unguarded":
        store.transactions.look_again = lambda *_: None


def write_and_give_up(folder: Path, name: str, seconds: float) -> int:
    """Go on writing commits of few large texts over older ones, and tagging such as were given up, if they are here.

    Returns how many transactions there were.
    """
    rng = random.Random(name)
    store = Store.open(str(folder / ".trace"), durability="fast")
    on: dict[str, ObjectId] = {}
    given_up: list[ObjectId] = []
    done = 0
    end = SystemClock().now() + 1000 * seconds
    while SystemClock().now() < end:
        time.sleep(
            rng.random() / 50
        )  # else no pack would be without something that was just asked for
        try:
            if given_up and rng.random() < 0.2:
                known = given_up.pop(rng.randrange(len(given_up)))
                if store.objects.contains(known):
                    edits = [RefEdit(f"refs/tags/{name}-{done}", known, ANY)]
                    time.sleep(rng.random() / 4)  # between its look and its write
                    tag(store, edits)
            else:
                ref = f"refs/heads/{name}/{rng.randrange(4)}"
                if ref in on:
                    given_up.append(on[ref])
                on[ref] = put(store, ref, large(rng.randrange(LARGE)), [], f"{name} {done}")
            done += 1
        except ConcurrencyError:
            continue  # an object that it named is deleted; nothing was written
    store.close()
    return done


def collect_again_and_again(folder: Path, seconds: float) -> int:
    """Go on with pruning, with no grace at all, for good; return how many objects were taken."""
    store = Store.open(str(folder / ".trace"), durability="fast")
    taken = 0
    end = SystemClock().now() + 1000 * seconds
    while SystemClock().now() < end:
        forget_logs(store)
        try:
            taken += upkeep(store).prune(grace_days=0).taken
        except StateError:
            break  # a ref leads to nothing already
        empty_quarantine(store, store.clock.now())
    store.close()
    return taken


def main(role: str, folder: str, name: str, seconds: str, trust: str) -> None:
    """Run one process of a race, and print its actions."""
    let_writers_trust(trust)
    if role == "writer":
        done = write_and_give_up(Path(folder), name, float(seconds))
    else:
        done = collect_again_and_again(Path(folder), float(seconds))
    sys.stdout.write(f"{done}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

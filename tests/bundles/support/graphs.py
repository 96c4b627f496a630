"""Stores with merges, tags, lists, unknown kinds and diverged branches."""

from __future__ import annotations

import random
from pathlib import Path

from trace_store import FixedClock
from trace_store.base.oid import ObjectId, hash_object
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.objects.codec import encode, encode_blob
from trace_store.objects.commit import Commit, Tag
from trace_store.store.store import Store

MAIN = "refs/heads/main"
BRANCHES = (MAIN, "refs/heads/side", "refs/heads/sessions/tool/one", "refs/heads/a/b")
OTHERS = ("refs/tags/v1", "refs/checkpoints/safe", "refs/transcripts/tool/one/ab12", "refs/trash/x")


class Growing:
    """A store that grows at random, the same for the same seed."""

    def __init__(self, store: Store, seed: int, name: str = "ada") -> None:
        self.store = store
        self.random = random.Random(seed)
        self.name = name
        self.objects: list[ObjectId] = []
        self.commits: list[ObjectId] = []
        self._number = 0

    def put(self, data: bytes) -> ObjectId:
        oid = hash_object(data)
        self.store.transact(lambda refs: Transaction([(oid, data)], [], ""))
        self.objects.append(oid)
        return oid

    def some(self, pool: list[ObjectId], most: int) -> list[ObjectId]:
        count = min(self.random.randint(0, most), len(pool))
        return self.random.sample(pool, count)

    def blob(self) -> ObjectId:
        self._number += 1
        return self.put(
            encode_blob(f"{self.name} {self._number} ".encode() * self.random.randint(1, 60))
        )

    def commit(self, parents: list[ObjectId]) -> ObjectId:
        self._number += 1
        named = [self.blob(), *self.some(self.objects, 2)]
        links = [("see", each) for each in self.some(self.commits, 1)]
        commit = Commit(
            parents,
            self.name,
            1_700_000_000_000 + self._number,
            [],
            message=f"{self.name} {self._number}",
            meta={"content": named},
            links=links,
        )
        oid = self.put(commit.encode())
        self.commits.append(oid)
        return oid

    def structure(self) -> ObjectId:
        """Add a tag, a list, or an object of a kind that this version does not know."""
        self._number += 1
        what = self.random.choice(("tag", "list", "unknown"))
        if what == "tag" and self.objects:
            target = self.random.choice(self.objects)
            return self.put(Tag(target, f"t{self._number}", self.name, 1).encode())
        items = self.some(self.objects, 4)
        fields = {"items": items, "type": "test", "size": self._number}
        return self.put(encode([what, fields] if what == "list" else ["future", [fields, items]]))

    def move(self, ref: str, oid: ObjectId) -> None:
        self.store.transact(lambda refs: Transaction([], [RefEdit(ref, oid, ANY)], "move"))

    def step(self) -> None:
        branch = self.random.choice(BRANCHES)
        tip = self.store.refs.read(branch)
        what = self.random.random()
        if what < 0.25:
            self.move(self.random.choice(OTHERS), self.structure())
        elif what < 0.4 and self.commits:
            merged = [tip] if tip else []
            merged += [each for each in self.some(self.commits, 2) if each != tip]
            self.move(branch, self.commit(merged))
        else:
            self.move(branch, self.commit([tip] if tip else self.some(self.commits, 1)))

    def grow(self, steps: int) -> Growing:
        for _ in range(steps):
            self.step()
        return self


def store_in(folder: Path) -> Store:
    folder.mkdir(parents=True, exist_ok=True)
    return Store.init(str(folder), durability="fast", clock=FixedClock())


def all_refs(store: Store) -> dict[str, tuple[ObjectId, ...]]:
    return dict(store.refs.iterate_tips())


def everything(store: Store) -> dict[ObjectId, bytes]:
    return {oid: store.objects.read(oid) for oid in store.objects.iterate()}


def files(folder: Path) -> dict[str, bytes]:
    """Return the files of a repository that git tracks, and HEAD; no temporary files."""
    root = folder / ".trace"
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    return {
        name: path.read_bytes()
        for name, path in sorted(found.items())
        if not name.startswith(("index/", "cache/", "locks/")) and not name.endswith(".idx")
    }

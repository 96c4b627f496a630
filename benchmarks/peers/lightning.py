"""LMDB with a content-addressed layout: blobs by hash, commits that name parent and blob by hash, refs.

Content is named by blake3, as Trace does; reads check the hash. A commit is 72 bytes: parent, blob, time.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import lmdb
from blake3 import blake3

from benchmarks.compact import PACKAGE, dumps, loads
from benchmarks.messages import characters
from benchmarks.model import Proof, Turn, Work, write_ids

MAP_BYTES = 1 << 34
COMMIT = struct.Struct("<32s32sQ")
NO_PARENT = bytes(32)
BRANCH = b"main"


class Lightning:
    """An environment of three databases."""

    store = "lmdb"
    packages = ("lmdb", PACKAGE)

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Store all in transactions of 1,000 messages."""
        writer = LightningWriter(folder, "nosync")
        held = []
        for turn in turns:
            held.append(turn)
            if len(held) == 1000:
                writer.append(held)
                held.clear()
        if held:
            writer.append(held)
        writer.environment.sync(True)
        write_ids(folder, [blob.hex() for blob in reversed(list(_blobs(writer)))])
        writer.close()

    def writer(self, folder: Path, mode: str) -> LightningWriter:
        """Open for appending; `mode` is "sync" or "nosync"."""
        return LightningWriter(folder, mode)

    def compile(self, folder: Path) -> Proof:
        """Return all messages of the branch as dictionaries, each hash checked."""
        store = LightningWriter(folder, "nosync")
        found = [loads(data) for data in _read(store, _blobs(store))]
        found.reverse()
        return lambda: Work(len(found), characters(found))

    def read(self, folder: Path, ids: str) -> Proof:
        """Return the messages with the ids in a file, each hash checked."""
        wanted = Path(ids).read_text("utf-8").split()
        found = list(_read(LightningWriter(folder, "nosync"), map(bytes.fromhex, wanted)))
        return lambda: Work(len(found), characters(map(loads, found)))


class LightningWriter:
    """An open environment; one transaction a call."""

    def __init__(self, folder: Path, mode: str) -> None:
        self.environment = lmdb.open(
            str(folder),
            map_size=MAP_BYTES,
            max_dbs=3,
            sync=mode == "sync",
            metasync=mode == "sync",
        )
        self.blobs = self.environment.open_db(b"blobs")
        self.commits = self.environment.open_db(b"commits")
        self.refs = self.environment.open_db(b"refs")

    def prepare(self, turn: Turn) -> Turn:
        return turn

    def append(self, messages: list[Turn]) -> None:
        with self.environment.begin(write=True) as writing:
            parent = writing.get(BRANCH, db=self.refs) or NO_PARENT
            for each in messages:
                data = dumps(each)
                blob = blake3(data).digest()
                commit = COMMIT.pack(parent, blob, time.time_ns())
                parent = blake3(commit).digest()
                writing.put(blob, data, db=self.blobs, overwrite=False)
                writing.put(parent, commit, db=self.commits)
            writing.put(BRANCH, parent, db=self.refs)

    def count(self) -> int:
        with self.environment.begin() as reading:
            found: int = reading.stat(self.commits)["entries"]
        return found

    def close(self) -> None:
        self.environment.close()


def _blobs(store: LightningWriter) -> Iterator[bytes]:
    """Yield the hashes of the branch's messages, newest first."""
    with store.environment.begin() as reading:
        tip = reading.get(BRANCH, db=store.refs)
        while tip is not None and tip != NO_PARENT:
            tip, blob, _ = COMMIT.unpack(reading.get(tip, db=store.commits))
            yield blob


def _read(store: LightningWriter, hashes: Iterable[bytes]) -> Iterator[bytes]:
    """Yield blobs, each hash checked."""
    with store.environment.begin() as reading:
        for each in hashes:
            data = reading.get(each, db=store.blobs)
            if blake3(data).digest() != each:
                raise ValueError("a blob does not have its hash")
            yield data

"""What this working copy remembers of files that it imported, so that only what is new is read.

Rule: local, derived, and safe to delete: without it a file is read whole, and what is in the store already is found
there. Whatever looks wrong in it counts as absent.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from trace_store.errors import StorageError
from trace_store.files import read_file, replace_file
from trace_store.frozen import fields, value
from trace_store.importers.files import Input
from trace_store.importers.source_archive import Cut
from trace_store.importers.write import make_durable
from trace_store.objects.content import bytes_of
from trace_store.oid import OID_BYTES, ObjectId, digest
from trace_store.store.handle import Store

VERSION = 6
EDGE_BYTES = 4096
"""How much of the beginning, and of the end of what was read, must be as it was."""

MOST_WAITING = 256
MOST_WAITING_BYTES = 8 << 20
"""As much of what is to be remembered waits for one sync: of so many files the reading is lost when power is."""

_FOLDER = "imports"
_NONE = bytes(OID_BYTES)


@value
class Memory:
    """Where an import of a file ended.

    Attributes:
        ref: the session's branch, or the one it was put onto.
        session: the session's id.
        folder: where its files are kept, as in `keeping.keep_file`.
        stamp: the file's when it was read; see `reading.Input`.
        end: how far the file was read.
        offset, line: where to read on when it has grown, and the number of the line there.
        head, tail: hashes of the edges of what was read.
        plan: what the plan saved.
        oids: commits by their number in the plan; None for one that there was no reason to make.
        names: names of the plan's threads.
        continuation: what the continuation saved, or None.
        cut: where the keeping of the file goes on, or None when it is not kept.
    """

    ref: str
    session: str
    folder: str
    stamp: str
    end: int
    offset: int
    line: int
    head: str
    tail: str
    plan: Any
    oids: Mapping[int, ObjectId | None]
    names: list[tuple[int, str]]
    continuation: Any
    cut: Cut | None


class Memories:
    """What is remembered of the files of an import.

    It is written once what was imported is durable: a sync of each file takes longer than reading a small one.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, bytes] = {}
        self._bytes = 0

    def recall(self, key: str, file: Input) -> Memory | None:
        """Return where the last import of a file ended, when the file has only grown since."""
        store = self._store
        if not store.local:
            return None
        data = self._waiting.get(key)
        try:
            if data is None:
                data = read_file(store.disk, _path(store, key))
        except StorageError:
            return None
        checksum, _, body = (data or b"").partition(b"\n")
        if not body or checksum != digest(body).hex().encode():
            return None
        try:
            saved = json.loads(body)
            if saved.pop("version") != VERSION:
                return None
            cut, oids = saved.pop("cut"), _unpacked(*saved.pop("oids"))
            memory = Memory(**saved, oids=oids, cut=None if cut is None else Cut(**cut))
            grown = _is_sound(memory) and memory.end <= file.size
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return memory if grown and edges(file, memory.end) == (memory.head, memory.tail) else None

    def add(self, key: str, memory: Memory) -> None:
        """Remember where an import ended, when `write` is called or much waits for it.

        Raises:
            StorageError: what was imported cannot be made durable.
        """
        if not self._store.local:
            return
        saved = _values(memory)
        saved["cut"] = None if memory.cut is None else _values(memory.cut)
        saved["oids"] = _packed(memory.oids)
        try:
            body = json.dumps({"version": VERSION, **saved}, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError):
            return  # a reader of another package remembers what JSON has no form for
        self._waiting[key] = digest(body).hex().encode() + b"\n" + body
        self._bytes += len(body)
        if len(self._waiting) >= MOST_WAITING or self._bytes >= MOST_WAITING_BYTES:
            self.write()

    def write(self) -> None:
        """Make durable what was imported, and then keep what waits.

        That it cannot be kept does not matter: then a file is read whole next time.

        Raises:
            StorageError: what was imported cannot be made durable.
        """
        make_durable(self._store)
        waiting, self._waiting, self._bytes = self._waiting, {}, 0
        for key, data in waiting.items():
            try:
                replace_file(self._store.disk, _path(self._store, key), data, durable=False)
            except StorageError:
                return


def _values(record: Memory | Cut) -> dict[str, Any]:
    """Return the attributes as they are: `asdict` copies all that is in them."""
    return {name: getattr(record, name) for name in fields(record)}


def _is_sound(memory: Memory) -> bool:
    texts = (memory.ref, memory.session, memory.folder, memory.stamp, memory.head, memory.tail)
    numbers = (memory.offset, memory.end, memory.line)
    return (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(number, int) for number in numbers)
        and 0 <= memory.offset <= memory.end
    )


def _packed(oids: Mapping[int, ObjectId | None]) -> tuple[int | list[int], str]:
    """Return commits in few values: there may be as many as records, and they are read for each line that is new."""
    numbers = list(oids)
    data = b"".join(_NONE if oid is None else oid for oid in oids.values())
    in_order = numbers == list(range(len(numbers)))
    return len(numbers) if in_order else numbers, b64encode(data).decode()


def _unpacked(numbers: int | list[int], text: str) -> dict[int, ObjectId | None]:
    data = b64decode(text, validate=True)
    pieces = [data[at : at + OID_BYTES] for at in range(0, len(data), OID_BYTES)]
    named = range(numbers) if isinstance(numbers, int) else numbers
    return {
        number: None if piece == _NONE else ObjectId(piece)
        for number, piece in zip(named, pieces, strict=True)
    }


def real_path(path: str) -> str:
    """Return the path of a file without links in it; a session within a file may have any name."""
    return path if "\0" in path else os.path.realpath(path)


def memory_key(path: str, format_name: str, onto: str, *, source: bool) -> str:
    """Return by what an import of a file is remembered."""
    parts = (real_path(path), format_name, onto, "source" if source else "")
    return digest(bytes_of("\0".join(parts))).hex()[:32]


def edges(file: Input, offset: int) -> tuple[str, str]:
    """Return the hashes of the first bytes of a file, and of the last before an offset."""
    size = min(EDGE_BYTES, offset)
    return digest(file.read_at(0, size)).hex(), digest(file.read_at(offset - size, size)).hex()


def _path(store: Store, key: str) -> str:
    return os.path.join(store.layout.local_dir, _FOLDER, key)

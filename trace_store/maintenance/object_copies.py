"""Redundant copies of objects, wherever their bytes may still be.

Besides the regular places, copies may be in sealed journals not yet removed, journal data after damage, damaged or
misnamed files, second copies of packs, `lost-found/`, `quarantine/`, and another repository. Invariant: only the
hash decides what a copy is.
"""

from __future__ import annotations

import os

from trace_store import errors, journal
from trace_store.files import files_below, read_file
from trace_store.layout import INDEX_SUFFIX, PACK_SUFFIX
from trace_store.odb.loose import content_of
from trace_store.odb.pack import MAGIC
from trace_store.odb.quarantine import recover_objects
from trace_store.oid import ObjectId, hash_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.store.handle import Store


class ObjectCopies:
    """Finder of objects that a repository has lost."""

    __slots__ = ("_last", "_other", "_places", "_purged", "_store")

    def __init__(self, store: Store, other: Store | None = None) -> None:
        """Search a repository on disk, and optionally another one."""
        self._store = store
        self._other = other
        self._purged: frozenset[bytes] = getattr(store.objects, "purged", frozenset())
        self._places: dict[ObjectId, str] | None = None
        self._last: tuple[str, dict[ObjectId, bytes]] = ("", {})

    def find(self, oid: ObjectId) -> bytes | None:
        """Return an object's verified bytes from any place, or None."""
        if oid in self._purged:
            return None
        for store in (self._store, self._other):
            try:
                if store is not None:
                    return store.objects.read(oid)
            except (errors.FormatError, errors.NotFoundError, errors.StorageError):
                continue
        if self._places is None:
            self._places = {oid_: path for path in self._files() for oid_, _ in self._objects(path)}
        path = self._places.get(oid)
        if path is None:
            return None
        if self._last[0] != path:
            self._last = path, dict(self._objects(path))
        return self._last[1].get(oid)

    def forget(self) -> None:
        """Rescan: files have been moved to `lost-found/`."""
        self._places = None
        self._last = "", {}

    def _files(self) -> list[str]:
        layout = self._store.layout
        folders = (
            *(layout.journal_dir, layout.lost_found_dir, layout.quarantine_dir),
            *(layout.objects_dir, layout.kept_packs_dir),
        )
        return [
            path
            for folder in folders
            for path in files_below(self._store.disk, folder)
            if INDEX_SUFFIX not in os.path.basename(path) and not self._is_sound(path)
        ]

    def _is_sound(self, path: str) -> bool:
        """Return True for a sound loose object or a pack: regular reads cover these."""
        folder, name = os.path.split(path)
        if folder == self._store.layout.pack_dir:
            return False
        within = os.path.relpath(folder, self._store.layout.objects_dir)
        if len(within) != 2 or within == os.pardir:
            return False
        try:
            data = read_file(self._store.disk, path) or b""
            return hash_object(content_of(data)).hex() == within + name
        except (errors.FormatError, errors.StorageError):
            return False

    def _objects(self, path: str) -> Iterator[tuple[ObjectId, bytes]]:
        folder, name = os.path.split(path)
        stem, suffix, _ = name.partition(PACK_SUFFIX)
        beside = stem + INDEX_SUFFIX if suffix else None
        index: bytes | None = None
        try:
            data = read_file(self._store.disk, path)
            for other in self._store.disk.names(folder) if beside else ():
                if other.startswith(beside or ""):
                    index = read_file(self._store.disk, os.path.join(folder, other))
        except errors.StorageError:
            return
        if data is not None:
            yield from objects_in(data, index)


def line_end_variants(data: bytes) -> list[bytes]:
    """Return file bytes, also with converted line ends undone."""
    return [data, data.replace(b"\r\n", b"\n")] if b"\r\n" in data else [data]


def objects_in(data: bytes, index: bytes | None = None) -> Iterator[tuple[ObjectId, bytes]]:
    """Yield the objects in the bytes of any file; duplicates are possible.

    Args:
        data: the bytes.
        index: bytes of the index, if it may be a pack.
    """
    for each in line_end_variants(data):
        if each.startswith(MAGIC) or index is not None:
            yield from recover_objects(each, index)
            continue
        try:
            content = content_of(each)
            yield hash_object(content), content
            continue
        except errors.FormatError:
            pass
        yield from objects_in_journal(each)


def objects_in_journal(data: bytes) -> Iterator[tuple[ObjectId, bytes]]:
    """Yield the objects of complete and damaged transactions with their ids."""
    return ((actual, content) for _, actual, content in _objects_with_names(data))


def confirmed_in_journal(data: bytes) -> Iterator[tuple[ObjectId, bytes]]:
    """Yield only objects whose id in the journal matches their bytes."""
    named = _objects_with_names(data)
    return ((actual, content) for name, actual, content in named if name == actual)


def _objects_with_names(data: bytes) -> Iterator[tuple[ObjectId, ObjectId, bytes]]:
    """Yield (id in the journal, id of the bytes, bytes)."""
    end = 0
    for frame in [*journal.recovery.transactions_in(data), None]:
        start = len(data) if frame is None else frame.start
        for at in journal.recovery.frame_starts(data, end, start):
            for oid, content in journal.recovery.objects_at(data[:start], at):
                yield oid, hash_object(content), content
        if frame is not None:
            for oid, offset, size in frame.objects:
                content = data[offset : offset + size]
                yield oid, hash_object(content), content
            end = frame.end

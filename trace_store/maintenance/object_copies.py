"""Second copies of objects: wherever the bytes of one may stand besides its proper place.

Besides journals, packs and loose files, which reading looks through anyhow, these are journals that were sealed and are
still there, what stands in a journal behind damage, damaged files themselves, files under a wrong name, the second
places of packs, `lost-found/`, `quarantine/`, and another repository. Rule: what an id names is told by the hash alone.
"""

from __future__ import annotations

import os

from trace_store import errors, journal
from trace_store.files import read_file
from trace_store.layout import INDEX_SUFFIX, PACK_SUFFIX
from trace_store.maintenance.lost_found import files_in
from trace_store.odb.loose import content_of
from trace_store.odb.pack import MAGIC
from trace_store.odb.recovery import objects_of_wreck
from trace_store.oid import ObjectId, hash_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.store.handle import Store


class Copies:
    """Finds objects that their repository has lost."""

    __slots__ = ("_last", "_other", "_places", "_purged", "_store")

    def __init__(self, store: Store, other: Store | None = None) -> None:
        """Say where: a repository on disk, and perhaps another one."""
        self._store = store
        self._other = other
        self._purged: frozenset[bytes] = getattr(store.objects, "purged", frozenset())
        self._places: dict[ObjectId, str] | None = None
        self._last: tuple[str, dict[ObjectId, bytes]] = ("", {})

    def find(self, oid: ObjectId) -> bytes | None:
        """Return an object's bytes, hash-checked, from wherever they stand; None when they stand nowhere."""
        if oid in self._purged:
            return None
        for store in (self._store, self._other):
            try:
                if store is not None:
                    return store.objects.read(oid)
            except (errors.FormatError, errors.NotFoundError, errors.StorageError):
                continue
        if self._places is None:
            self._places = {
                found: path for path in self._files() for found, _ in self._objects(path)
            }
        path = self._places.get(oid)
        if path is None:
            return None
        if self._last[0] != path:
            self._last = path, dict(self._objects(path))
        return self._last[1].get(oid)

    def forget(self) -> None:
        """Look again: files have been set aside, and stand elsewhere now."""
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
            for path in files_in(self._store, folder)
            if INDEX_SUFFIX not in os.path.basename(path) and not self._is_sound(path)
        ]

    def _is_sound(self, path: str) -> bool:
        """Tell whether a file is a loose object in its place, or an open pack: reading has looked there."""
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


def variants(data: bytes) -> list[bytes]:
    """Return the bytes of a file, and what they were when a conversion of line ends has changed them."""
    return [data, data.replace(b"\r\n", b"\n")] if b"\r\n" in data else [data]


def objects_in(data: bytes, index: bytes | None = None) -> Iterator[tuple[ObjectId, bytes]]:
    """Yield the objects that stand in the bytes of a file, whatever file it was; one may come twice.

    Args:
        data: the bytes.
        index: those of the index, when it may be a pack.
    """
    for each in variants(data):
        if each.startswith(MAGIC) or index is not None:
            yield from objects_of_wreck(each, index)
            continue
        try:
            content = content_of(each)
            yield hash_object(content), content
            continue
        except errors.FormatError:
            pass
        yield from objects_in_journal(each)


def objects_in_journal(data: bytes) -> Iterator[tuple[ObjectId, bytes]]:
    """Yield the objects of all whole transactions, and of what stands between them, each with the id of its bytes."""
    return ((found, content) for _, found, content in _objects_with_names(data))


def confirmed_in_journal(data: bytes) -> Iterator[tuple[ObjectId, bytes]]:
    """Yield those of which the journal says itself what they are called: others may be changed bytes."""
    named = _objects_with_names(data)
    return ((found, content) for name, found, content in named if name == found)


def _objects_with_names(data: bytes) -> Iterator[tuple[ObjectId, ObjectId, bytes]]:
    """Yield (id that the journal gives, id of the bytes, bytes)."""
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

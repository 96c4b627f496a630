"""Redundant copies of objects, wherever their bytes may still be.

Besides the regular places, copies may be in sealed journals not yet removed, journal data after damage, damaged or
misnamed files, second copies of packs, `lost-found/`, `quarantine/`, another repository, and git's own objects.
Invariant: only the hash decides what a copy is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from trace_store import errors
from trace_store.base.oid import ObjectId, hash_object
from trace_store.disk.files import files_below, read_file
from trace_store.disk.git import ask_git, find_git, read_git
from trace_store.disk.layout import INDEX_SUFFIX, PACK_SUFFIX
from trace_store.journal.recovery import frame_starts, objects_at, transactions_in
from trace_store.odb.loose import content_of
from trace_store.odb.pack import MAGIC
from trace_store.odb.quarantine import recover_objects
from trace_store.store.store import Store


class ObjectCopies:
    """Finder of objects that a repository has lost."""

    __slots__ = ("_git", "_last", "_other", "_places", "_purged", "_store")

    def __init__(self, store: Store, other: Store | None = None) -> None:
        """Search a repository on disk, and optionally another one."""
        self._store = store
        self._other = other
        self._purged: frozenset[bytes] = getattr(store.objects, "purged", frozenset())
        self._places: dict[ObjectId, str] | None = None
        self._last: tuple[str, dict[ObjectId, bytes]] = ("", {})
        self._git = GitObjects(store)

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
            return self._git.find(oid)
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


class GitObjects:
    """Finder of objects in packs and loose files that some git commit has: of any branch, tag, remote, stash or reflog.

    Files are read newest first, and only as far as needed.
    """

    __slots__ = ("_last", "_places", "_rest", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._places: dict[ObjectId, str] = {}
        """For each object seen so far, git's id of a file with it."""
        self._last: tuple[str, dict[ObjectId, bytes]] = ("", {})
        self._rest: Iterator[str] | None = None

    def find(self, oid: ObjectId) -> bytes | None:
        """Return an object's verified bytes, or None."""
        if oid not in self._places:
            if self._rest is None:
                self._rest = iter(self._files())
            for name in self._rest:
                for each in self._read(name):
                    self._places.setdefault(each, name)
                if oid in self._places:
                    break
        name = self._places.get(oid, "")
        return self._read(name).get(oid) if name else None

    def _read(self, name: str) -> dict[ObjectId, bytes]:
        if self._last[0] != name:
            data = read_git(os.path.dirname(self._store.layout.root), "cat-file", "blob", name)
            self._last = name, dict(objects_in(data or b""))
        return self._last[1]

    def _files(self) -> list[str]:
        """Return git's ids of the files with objects that are not in the work tree, the newest first."""
        root = self._store.layout.root
        if find_git(self._store.disk, root) is None:
            return []
        folder, own = os.path.split(root)
        log = ("log", "--all", "--reflog", "-m", "--format=", "--raw", "--no-abbrev", "-z")
        output = ask_git(
            folder,
            *(*log, "--no-renames", "--diff-filter=A", "--no-show-signature"),
            *("--", f":(literal){own}/objects"),
        )
        # Each entry is ":modes, two ids and A", then the path.
        fields = iter((output or "").split("\0"))
        found: dict[str, None] = {}
        for entry, path in zip(fields, fields, strict=False):
            name = os.path.basename(path)
            pack = self._store.layout.pack_file(name.removesuffix(PACK_SUFFIX))
            if not (name.endswith(PACK_SUFFIX) and self._store.disk.exists(pack)):
                found[entry.split()[3]] = None
        return list(found)


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
    for frame in [*transactions_in(data), None]:
        start = len(data) if frame is None else frame.start
        for at in frame_starts(data, end, start):
            for oid, content in objects_at(data[:start], at):
                yield oid, hash_object(content), content
        if frame is not None:
            for oid, offset, size in frame.objects:
                content = data[offset : offset + size]
                yield oid, hash_object(content), content
            end = frame.end

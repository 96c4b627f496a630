"""Proving that something is in no file of a repository, compressed or not.

Rule: nothing the store says of itself is believed. Every file below `.trace` is read, whatever it is called; packs are
walked frame by frame with the dictionaries that stand in them, and hashed, without their indexes; everything else that
looks like a zstd frame, at any offset, is decompressed. What cannot be read is named, since nothing is proven of it.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.files import read_file
from trace_store.journal.file import open_journal
from trace_store.odb import ObjectDatabase
from trace_store.odb.deflate import inflate_first
from trace_store.odb.fingerprints import find as find_text
from trace_store.odb.loose import RAW
from trace_store.odb.pack import DICTIONARY, MAGIC
from trace_store.odb.pack_stream import pack_of
from trace_store.odb.pack_walk import PackWalk
from trace_store.odb.tombstones import placeholder_of
from trace_store.oid import digest
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from trace_store.files import Disk
    from trace_store.maintenance.spellings import Needles
    from trace_store.odb.fingerprints import Fingerprint
    from trace_store.store import Store

MAXIMUM_FILE_BYTES = 1 << 30
_ZSTD = b"\x28\xb5\x2f\xfd"
_PLACES_OF_OBJECTS = (f"objects{os.sep}", f"journal{os.sep}")
_LONGEST_FRAME_BYTES = 64 << 20
_LONGEST_CONTENT_BYTES = 64 << 20


@value
class Remnant:
    """Something that was to be nowhere, and is somewhere.

    Attributes:
        path: the file, relative to `.trace`.
        what: the id of a purged object, or the name of a text.
        where: how it stands there.
    """

    path: str
    what: str
    where: str


@value
class Absence:
    """What a search found.

    Attributes:
        files, bytes: how many were read.
        frames: how many were decompressed.
        objects: how many were hashed.
        found: what was to be nowhere.
        unread: files of which not all could be read, and why.
    """

    files: int
    bytes: int
    frames: int
    objects: int
    found: tuple[Remnant, ...]
    unread: tuple[tuple[str, str], ...]

    @property
    def is_proven(self) -> bool:
        """Whether all was read, and nothing found."""
        return not self.found and not self.unread


def search(
    store: Store, oids: Container[bytes], texts: Needles, contents: Needles, *, below: str = ""
) -> Absence:
    """Look through every file of a repository on disk.

    Args:
        store: where.
        oids: of purged objects, which must be nowhere.
        texts: which must be nowhere either, in any spelling.
        contents: of purged objects; they may stand within other objects, and nowhere else.
        below: only this folder of `.trace`.
    """
    root = store.layout.root
    looking = _Search(store.disk, root, oids, texts, contents)
    if isinstance(store.objects, ObjectDatabase):
        looking.purged_texts = store.objects.purged_texts
    for path in files_below(store.disk, os.path.join(root, below) if below else root):
        looking.look_into(path)
    return looking.result()


def files_below(disk: Disk, folder: str) -> Iterator[str]:
    """Yield the paths of all files below a folder, sorted; links are not followed."""
    folders, files = disk.scan(folder)
    for name in files:
        yield os.path.join(folder, name)
    for name in folders:
        yield from files_below(disk, os.path.join(folder, name))


class _Search:
    """One search on its way."""

    def __init__(
        self,
        disk: Disk,
        root: str,
        oids: Container[bytes],
        texts: Needles,
        contents: Needles,
    ) -> None:
        self._disk = disk
        self._root = root
        self._oids = oids
        self._needles = [texts]
        self._texts = [texts]
        self.purged_texts: Sequence[Fingerprint] = ()
        self._everything = [texts, contents]
        self._path = ""
        self._files = self._bytes = self._frames = self._objects = 0
        self._found: dict[Remnant, None] = {}
        self._unread: list[tuple[str, str]] = []

    def result(self) -> Absence:
        return Absence(
            self._files,
            self._bytes,
            self._frames,
            self._objects,
            tuple(self._found),
            tuple(self._unread),
        )

    def look_into(self, path: str) -> None:
        """Look through one file, and its name."""
        self._path = os.path.relpath(path, self._root)
        holds_objects = self._path.startswith(_PLACES_OF_OBJECTS)
        self._needles = self._texts if holds_objects else self._everything
        self._look_at(os.fsencode(self._path), "its name")
        try:
            data = read_file(self._disk, path, limit=MAXIMUM_FILE_BYTES)
        except errors.StorageError as error:
            self._unread.append((self._path, str(error)))
            return
        if data is None:
            return  # gone meanwhile
        self._files += 1
        self._bytes += len(data)
        self._look_at(data, "as it is")
        if data.startswith(MAGIC) and self._walk_pack(data):
            return
        if data[:1] == bytes((RAW,)):
            self._hash(data[1:], "a loose object")
        self._inflate_all(data)
        if os.path.basename(os.path.dirname(path)) == "journal":
            self._walk_journal(path)

    def _look_at(self, data: bytes, where: str) -> None:
        names = [name for needles in self._needles for name in needles.find(data)]
        text = find_text(data, self.purged_texts) if self.purged_texts and not names else None
        if text is not None:
            names.append(f"a text {placeholder_of(text.time, text.why)[1:-1]}")
        for name in names:
            self._found[Remnant(self._path, name, where)] = None

    def _hash(self, data: bytes, where: str) -> None:
        self._objects += 1
        oid = digest(data)
        if oid in self._oids:
            self._found[Remnant(self._path, oid.hex(), where)] = None

    def _walk_pack(self, data: bytes) -> bool:
        """Look through a pack; False when it cannot be walked to its end."""
        try:
            pack = pack_of(data, self._path)
            walk = PackWalk(pack)
            for number, place in enumerate(pack.places()):
                where = f"frame {number} of a pack"
                if place.sort == DICTIONARY:
                    where = f"dictionary {number} of a pack"
                    self._look_at(pack.decode(place), where)
                objects = walk.objects(place)
                self._frames += 1
                for _, _, content in objects:
                    self._hash(content, where)
                    self._look_at(content, where)
        except (errors.FormatError, errors.StorageError) as error:
            self._unread.append((self._path, str(error)))
            return False
        return True

    def _walk_journal(self, path: str) -> None:
        """Hash the objects of a journal, whose payloads stand in it as they are."""
        name = os.path.basename(path)
        file = open_journal(self._disk, path, int(name)) if name.isdecimal() else None
        if file is None:
            return
        try:
            file.scan(self._disk)
            for frame in file.frames:
                for _, offset, size in frame.objects:
                    self._hash(self._disk.read_at(file.fd, offset, size), "a journal")
        finally:
            self._disk.close(file.fd)

    def _inflate_all(self, data: bytes) -> None:
        """Look through everything in a file that is a zstd frame of its own."""
        at = data.find(_ZSTD)
        while at >= 0:
            try:
                content = inflate_first(
                    data[at : at + _LONGEST_FRAME_BYTES], _LONGEST_CONTENT_BYTES
                )
            except errors.CorruptObjectError:
                content = b""  # what begins like a frame and is none
            if content:
                self._frames += 1
                self._look_at(content, "compressed")
                self._hash(content, "compressed")
            at = data.find(_ZSTD, at + 1)

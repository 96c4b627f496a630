"""Verification that purged content is in no file, compressed or not.

Invariant: nothing the store claims is trusted. Every file below `.trace` is read. Packs are walked frame by frame
with their dictionaries and hashed, without their indexes; anything like a zstd frame, at any offset, is
decompressed. Unreadable files are listed, since nothing is known of them. Text that is split, encrypted or encoded
in another way is not found.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Collection, Iterable, Sequence

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import digest
from trace_store.disk.files import Disk, files_below, read_file
from trace_store.journal.file import open_journal
from trace_store.objects.content import bytes_of
from trace_store.odb.compression import decompress_first
from trace_store.odb.ingest import pack_of
from trace_store.odb.loose import RAW
from trace_store.odb.pack import DICTIONARY, MAGIC, PackWalk
from trace_store.odb.tombstones import Fingerprint, find_text, placeholder_of
from trace_store.store.store import Store

SHORTEST_BYTES = 6
"""Shorter texts occur in too many files by chance."""
LONGEST_BYTES = 4096
"""For longer texts three pieces are searched: start, middle and end."""
_PIECE_BYTES = 256
_URL_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

ENCODINGS = (
    "plain UTF-8",
    "in a JSON string, escaped once or twice, with and without escapes for non-ASCII characters",
    "base64 at any offset, in both alphabets",
    "UTF-16, in both byte orders",
    "hexadecimal digits, in upper or lower case",
    "percent-encoded, as in a URL",
)
"""Descriptions of what `encodings` covers."""


def encodings(content: bytes) -> set[bytes]:
    """Return a content in all encodings; text encodings only if it is text."""
    encoded_forms = {content, content.hex().encode(), content.hex().upper().encode()}
    for shift in range(3):
        encoded = b64encode(bytes(shift) + content)
        # Characters at the edges also encode neighbouring bits.
        first, last = (0, 2, 3)[shift], -4 if (shift + len(content)) % 3 else len(encoded)
        core = encoded[first:last]
        encoded_forms |= {core, core.translate(bytes.maketrans(b"+/", b"-_"))}
    encoded_forms.add(b"".join(b"%c" % c if c in _URL_SAFE else b"%%%02X" % c for c in content))
    try:
        text = content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return _long_enough(encoded_forms)
    import json  # late, as in all modules that plumbing may load

    for ascii_only in (False, True):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        encoded_forms |= {bytes_of(once), bytes_of(json.dumps(once, ensure_ascii=ascii_only)[1:-1])}
    for encoding in ("utf-16-le", "utf-16-be"):
        encoded_forms.add(text.encode(encoding, "surrogatepass"))
    return _long_enough(encoded_forms)


def search_pieces(content: bytes) -> list[bytes]:
    """Return what to search for.

    The content, three pieces of a long one, nothing for a short one.
    """
    if len(content) < SHORTEST_BYTES:
        return []
    if len(content) <= LONGEST_BYTES:
        return [content]
    middle = len(content) // 2
    return [
        content[:_PIECE_BYTES].decode("utf-8", "ignore").encode() or content[:_PIECE_BYTES],
        content[middle : middle + _PIECE_BYTES],
        content[-_PIECE_BYTES:],
    ]


class Needles:
    """Search terms with names for the results."""

    __slots__ = ("_by_name",)

    def __init__(self, contents: Iterable[tuple[str, bytes]] = ()) -> None:
        """Add (name, content) pairs, in all encodings."""
        self._by_name: dict[str, set[bytes]] = {}
        for name, content in contents:
            self.add(name, content)

    def __len__(self) -> int:
        return len(self._by_name)

    def add(self, name: str, content: bytes) -> bool:
        """Add a content; return False if it is too short."""
        pieces = search_pieces(content)
        for piece in pieces:
            self._by_name.setdefault(name, set()).update(encodings(piece))
        return bool(pieces)

    def find(self, data: bytes) -> list[str]:
        """Return the names of the contents that occur in `data`."""
        return [n for n, forms in self._by_name.items() if any(form in data for form in forms)]

    def forms(self) -> set[bytes]:
        """Return all byte strings to search for."""
        return set().union(*self._by_name.values())

    def replace_in(self, data: bytes, instead: bytes) -> bytes:
        """Replace every match."""
        for forms in self._by_name.values():
            for form in sorted(forms, key=len, reverse=True):
                data = data.replace(form, instead)
        return data


def _long_enough(forms: set[bytes]) -> set[bytes]:
    return {form for form in forms if len(form) >= SHORTEST_BYTES}


MAXIMUM_FILE_BYTES = 1 << 30
_ZSTD = b"\x28\xb5\x2f\xfd"
_PLACES_OF_OBJECTS = (f"objects{os.sep}", f"journal{os.sep}")
_LONGEST_FRAME_BYTES = 64 << 20
_LONGEST_CONTENT_BYTES = 64 << 20


@value
class Remnant:
    """Remaining purged content.

    Attributes:
        path: file, relative to `.trace`.
        what: id of a purged object, or name of a text.
        where: how it is stored there.
    """

    path: str
    what: str
    where: str


@value
class PurgeVerification:
    """Result of a verification.

    Attributes:
        files, bytes: number and size of files read.
        frames: number of frames decompressed.
        objects: number of objects hashed.
        found: remaining purged content.
        unread: unreadable files with the reason.
        purged: number of purged objects searched for.
        purged_texts: number of purges whose texts are on record, and were searched for.
    """

    files: int
    bytes: int
    frames: int
    objects: int
    found: tuple[Remnant, ...]
    unread: tuple[tuple[str, str], ...]
    purged: int
    purged_texts: int

    @property
    def is_proven(self) -> bool:
        """True if everything was read and nothing found."""
        return not self.found and not self.unread


def search(
    store: Store, oids: Collection[bytes], texts: Needles, contents: Needles, *, below: str = ""
) -> PurgeVerification:
    """Search every file of a repository on disk.

    Args:
        store: the repository.
        oids: purged objects, which must not remain.
        texts: texts that must not remain in any encoding.
        contents: contents of purged objects, which may remain only inside other objects.
        below: only this folder of `.trace`.
    """
    root = store.layout.root
    file_search = _FileSearch(store.disk, root, oids, texts, contents)
    file_search.purged_texts = store.objects.purged_texts
    for path in files_below(store.disk, os.path.join(root, below) if below else root):
        file_search.search_file(path)
    return file_search.result()


class _FileSearch:
    """State of one search."""

    def __init__(
        self,
        disk: Disk,
        root: str,
        oids: Collection[bytes],
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

    def result(self) -> PurgeVerification:
        return PurgeVerification(
            self._files,
            self._bytes,
            self._frames,
            self._objects,
            tuple(self._found),
            tuple(self._unread),
            len(self._oids),
            len(self.purged_texts),
        )

    def search_file(self, path: str) -> None:
        """Search a file and its name."""
        self._path = os.path.relpath(path, self._root)
        holds_objects = self._path.startswith(_PLACES_OF_OBJECTS)
        self._needles = self._texts if holds_objects else self._everything
        self._search(os.fsencode(self._path), "its name")
        try:
            data = read_file(self._disk, path, limit=MAXIMUM_FILE_BYTES)
        except errors.StorageError as error:
            self._unread.append((self._path, str(error)))
            return
        if data is None:
            return  # removed meanwhile
        self._files += 1
        self._bytes += len(data)
        self._search(data, "as it is")
        if data.startswith(MAGIC) and self._walk_pack(data):
            return
        if data[:1] == bytes((RAW,)):
            self._hash(data[1:], "a loose object")
        self._inflate_all(data)
        if os.path.basename(os.path.dirname(path)) == "journal":
            self._walk_journal(path)

    def _search(self, data: bytes, where: str) -> None:
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
        """Search a pack; return False if it is damaged."""
        try:
            pack = pack_of(data, self._path)
            walk = PackWalk(pack)
            for number, place in enumerate(pack.places()):
                where = f"frame {number} of a pack"
                if place.flags == DICTIONARY:
                    where = f"dictionary {number} of a pack"
                    self._search(pack.decode(place), where)
                objects = walk.objects(place)
                self._frames += 1
                for _, _, content in objects:
                    self._hash(content, where)
                    self._search(content, where)
        except (errors.FormatError, errors.StorageError) as error:
            self._unread.append((self._path, str(error)))
            return False
        return True

    def _walk_journal(self, path: str) -> None:
        """Hash the objects of a journal."""
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
        """Decompress and search every zstd frame in a file."""
        at = data.find(_ZSTD)
        while at >= 0:
            try:
                content = decompress_first(
                    data[at : at + _LONGEST_FRAME_BYTES], _LONGEST_CONTENT_BYTES
                )
            except errors.CorruptObjectError:
                content = b""  # not a frame after all
            if content:
                self._frames += 1
                self._search(content, "compressed")
                self._hash(content, "compressed")
            at = data.find(_ZSTD, at + 1)

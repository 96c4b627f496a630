"""Bundle file format: refs and everything reachable from them.

    "trace bundle 1" and a newline
    header length u32, then the header: a map in canonical MessagePack
    blake3-256 of everything above
    packs, one after the other
    "TREN", number of packs u32, then blake3-256 of everything above

Integers are little endian. Header fields: `head` (absent if HEAD is on none of the refs), `objects`,
`prerequisites`, `refs` (arrays of a name and its tips, first the tip in the working copy that wrote the bundle),
`requires`, and `tombstones` (arrays of a file name and its bytes; absent if empty).

Invariant: a bundle depends only on its contents; it has no time, host or user name of its own. `BundleReader` checks
the header hash first and the final hash last; callers publish nothing before that.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from trace_store.base.oid import OID_BYTES, Digester, ObjectId, checked_id
from trace_store.contracts.ref_names import is_ref_name
from trace_store.disk.files import Disk
from trace_store.errors import (
    CorruptBundleError,
    CorruptObjectError,
    CorruptPackError,
    InvalidInputError,
    StorageError,
    UnreadableInputError,
    UnsupportedFormatError,
)
from trace_store.objects.codec import MAXIMUM_ELEMENTS, encode, unpack
from trace_store.odb.ingest import read_pack, read_up_to
from trace_store.odb.pack import HEADER as PACK_HEADER
from trace_store.odb.pack import MAGIC as PACK_MAGIC
from trace_store.odb.tombstones import oid_of, parse

Read = Callable[[int], bytes]
"""Returns at most the given number of bytes; empty at the end."""
Write = Callable[[bytes], object]

MAGIC = b"trace bundle "
VERSION = 1
TOMBSTONES = "tombstones"
KNOWN_REQUIREMENTS = frozenset((TOMBSTONES,))
"""Features of `requires` that this version supports."""
MAXIMUM_HEADER_BYTES = 16 * 1024 * 1024
MAXIMUM_REFS = MAXIMUM_ELEMENTS
MAXIMUM_TIPS = 64
END = b"TREN"
_LINE = MAGIC + b"%d\n" % VERSION
_U32 = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class BundledRef:
    """A ref in a bundle: its full name and its tips, the working copy's own tip first."""

    name: str
    tips: tuple[ObjectId, ...]


@dataclass(frozen=True, slots=True)
class BundleHeader:
    """Header of a bundle.

    Attributes:
        refs: refs in name order.
        prerequisites: ids of objects that the receiver must have, with everything reachable from them; in order.
        object_count: number of objects in the packs.
        head: full name of the ref that HEAD was on, or "".
        requires: features that a reader must support.
        tombstones: names and bytes of tombstone files, one for each purged object that the bundle still links to;
            in order.
    """

    JSON = "objects=object_count head? -requires -tombstones"

    refs: tuple[BundledRef, ...]
    prerequisites: tuple[ObjectId, ...]
    object_count: int
    head: str = ""
    requires: tuple[str, ...] = ()
    tombstones: tuple[tuple[str, bytes], ...] = ()

    @property
    def purged(self) -> frozenset[bytes]:
        """Ids of the purged objects that have a tombstone in the bundle."""
        return frozenset(oid for name, _ in self.tombstones if (oid := oid_of(name)) is not None)

    def encode(self) -> bytes:
        """Return the canonical bytes.

        Raises:
            InvalidInputError: too many refs or prerequisites.
        """
        if len(self.refs) > MAXIMUM_REFS or len(self.prerequisites) > MAXIMUM_REFS:
            raise InvalidInputError(
                f"a bundle has at most {MAXIMUM_REFS} refs and {MAXIMUM_REFS} prerequisites"
            )
        fields: dict[str, Any] = {
            "objects": self.object_count,
            "prerequisites": list(self.prerequisites),
            "refs": [[ref.name, list(ref.tips)] for ref in self.refs],
            "requires": list(self.requires),
        }
        if self.head:
            fields["head"] = self.head
        if self.tombstones:
            fields["tombstones"] = [list(file) for file in self.tombstones]
        return encode(fields)

    @classmethod
    def decode(cls, data: bytes) -> BundleHeader:
        """Return the header that canonical bytes encode.

        Raises:
            CorruptBundleError: they are not a valid header.
            UnsupportedFormatError: it requires an unknown feature.
        """
        try:
            fields = unpack(data)
            if not isinstance(fields, dict) or encode(fields) != data:
                raise CorruptBundleError("bundle header is not in canonical form")
            requires = tuple(_text(name) for name in fields["requires"])
            _refuse_unknown(requires)
            header = cls(
                refs=tuple(_ref(*ref) for ref in fields["refs"]),
                prerequisites=tuple(checked_id(oid) for oid in fields["prerequisites"]),
                object_count=_count(fields["objects"]),
                head=_text(fields.get("head", "")),
                requires=requires,
                tombstones=tuple(_tombstone(*file) for file in fields.get("tombstones", ())),
            )
        except (KeyError, TypeError, CorruptObjectError, InvalidInputError) as error:
            raise CorruptBundleError(f"invalid bundle header: {error}") from error
        names = [ref.name for ref in header.refs]
        if names != sorted(set(names)):
            raise CorruptBundleError("bundle header has unsorted or duplicate refs")
        if header.head and header.head not in names:
            raise CorruptBundleError("HEAD in the bundle's header is not one of its refs")
        return header


class BundleWriter:
    """Writer of one bundle: header, packs, trailer. It is the sink to which a `PackEncoder` writes the packs."""

    def __init__(self, write: Write, header: BundleHeader) -> None:
        self.header = header
        self._write = write
        self._hash = Digester()
        self.size_bytes = 0
        self.pack_count = 0
        data = header.encode()
        self.write(_LINE + _U32.pack(len(data)) + data)
        self.write(self._hash.digest())

    def begin(self) -> BundleWriter:
        """Begin a pack; return its sink, which is this."""
        return self

    def write(self, data: bytes) -> None:
        """Write bytes, and add them to the hash and the size."""
        self._write(data)
        self._hash.update(data)
        self.size_bytes += len(data)

    def complete(self, name: str, index: bytes) -> None:
        """Count a finished pack; its name and index are not part of a bundle."""
        self.pack_count += 1

    def finish(self) -> None:
        """Write the trailer."""
        self.write(END + _U32.pack(self.pack_count))
        self.write(self._hash.digest())


class BundleReader:
    """Reader of one bundle.

    Attributes:
        header: the header; its hash was checked.
        pack_count: packs read so far.
        size_bytes: bytes read so far.
    """

    def __init__(self, read: Read) -> None:
        """Read the header.

        Raises:
            CorruptBundleError: the input is not a bundle or is damaged.
            UnsupportedFormatError: a newer version wrote it.
        """
        self._source = read
        self._hash = Digester()
        self.size_bytes = 0
        self.pack_count = 0
        _check_line(self._read(len(_LINE)))
        (length,) = _U32.unpack(self._exactly(_U32.size))
        if length > MAXIMUM_HEADER_BYTES:
            raise CorruptBundleError(f"bundle header is too large: {length} bytes")
        data = self._exactly(length)
        self._check_hash("header")
        self.header = BundleHeader.decode(data)

    def packs(self) -> Iterator[bytes]:
        """Yield the bytes of each pack, then check the trailer.

        Raises:
            CorruptBundleError: the bundle is truncated, damaged or followed by other data.
        """
        while True:
            mark = self._exactly(len(END))
            if mark == END:
                break
            if mark != PACK_MAGIC:
                raise CorruptBundleError("bundle has neither a pack nor a trailer here")
            head = mark + self._exactly(PACK_HEADER.size - len(mark))
            self.pack_count += 1
            try:
                data = read_pack(self._read, head, f"pack {self.pack_count} of the bundle")
            except CorruptPackError as error:
                raise CorruptBundleError(error.message) from error
            yield data
        (count,) = _U32.unpack(self._exactly(_U32.size))
        if count != self.pack_count:
            raise CorruptBundleError(f"bundle has {self.pack_count} packs, expected {count}")
        self._check_hash("file")
        if self._source(1):
            raise CorruptBundleError("unexpected data after the end of the bundle")

    def _check_hash(self, what: str) -> None:
        expected = self._hash.digest()
        if self._exactly(OID_BYTES) != expected:
            raise CorruptBundleError(f"bundle is damaged: {what} hash mismatch")

    def _read(self, size: int) -> bytes:
        data = read_up_to(self._source, size)
        self._hash.update(data)
        self.size_bytes += len(data)
        return data

    def _exactly(self, size: int) -> bytes:
        data = self._read(size)
        if len(data) < size:
            raise CorruptBundleError("bundle is truncated")
        return data


def _check_line(line: bytes) -> None:
    if line == _LINE:
        return
    if line and _LINE.startswith(line):
        raise CorruptBundleError("bundle is truncated")
    if not line.startswith(MAGIC):
        raise CorruptBundleError("not a bundle")
    version = line[len(MAGIC) :].split(b"\n")[0]
    if version.isdigit():
        name = f"bundle version {version.decode('ascii')}"
        raise UnsupportedFormatError(f"unsupported {name}", required=(name,))
    raise CorruptBundleError("not a bundle")


def _refuse_unknown(requires: tuple[str, ...]) -> None:
    unknown = tuple(name for name in requires if name not in KNOWN_REQUIREMENTS)
    if unknown:
        names = ", ".join(name[:40] for name in unknown[:5])
        raise UnsupportedFormatError(f"the bundle requires {names}", required=unknown)


def _ref(name: Any, tips: Any) -> BundledRef:
    if not is_ref_name(_text(name)):
        raise TypeError(f"not a ref name: {name[:80]!r}")
    oids = tuple(checked_id(tip) for tip in tips)
    if not 1 <= len(oids) <= MAXIMUM_TIPS or len(set(oids)) < len(oids):
        raise TypeError(f"ref {name[:80]!r} does not have 1 to {MAXIMUM_TIPS} different tips")
    return BundledRef(name, oids)


def _tombstone(name: Any, data: Any) -> tuple[str, bytes]:
    if not isinstance(data, bytes) or parse(_text(name), data) is None:
        raise TypeError("not a tombstone")
    return name, data


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a string")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError("not a count")
    return value


@contextmanager
def open_bundle(source: str | Read) -> Iterator[BundleReader]:
    """Open a bundle file or stream for a `with` block; symbolic links are followed.

    Raises:
        UnreadableInputError: the file does not exist or cannot be read.
        CorruptBundleError: the input is not a bundle.
        UnsupportedFormatError: a newer version wrote it.
    """
    if not isinstance(source, str):
        yield BundleReader(source)
        return
    disk = Disk()
    try:
        fd = disk.open(os.path.realpath(source))
    except (StorageError, ValueError) as error:
        raise UnreadableInputError(f"cannot read {source}: {error}", path=source) from error
    if fd is None:
        raise UnreadableInputError(f"no such file: {source}", path=source)
    try:
        yield BundleReader(_Descriptor(disk, fd).read)
    finally:
        disk.close(fd)


class _Descriptor:
    """Sequential reader of an open file."""

    __slots__ = ("_at", "_disk", "_fd")

    def __init__(self, disk: Disk, fd: int) -> None:
        self._disk = disk
        self._fd = fd
        self._at = 0

    def read(self, size: int) -> bytes:
        data = self._disk.read_at(self._fd, self._at, size)
        self._at += len(data)
        return data

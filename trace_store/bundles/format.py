"""The bytes of a bundle: refs and what they lead to, in one file.

    "trace bundle 1" and a newline
    length of the header u32, then the header: a map in canonical MessagePack
    blake3-256 of everything above
    packs, one after the other
    "TREN", the number of packs u32, then blake3-256 of everything above

Integers are little endian. The header's fields are `head` (absent when HEAD names none of the refs), `objects`,
`prerequisites`, `refs` (arrays of a name and its tips, this working copy's own first), `requires`, and `tombstones`
(arrays of a file's name and its bytes; absent when there is none).

Rule: a bundle is a function of what it carries: no time, no host, nobody's name. A reader believes nothing before the
last hash, and shows nothing of a header whose own hash is wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trace_store.errors import (
    CorruptBundleError,
    CorruptObjectError,
    CorruptPackError,
    InvalidInputError,
    UnsupportedFormatError,
)
from trace_store.objects.codec import MAXIMUM_ELEMENTS, encode, unpack
from trace_store.odb.ingest import read_exactly, read_pack
from trace_store.odb.pack import HEADER as PACK_HEADER
from trace_store.odb.pack import MAGIC as PACK_MAGIC
from trace_store.odb.tombstones import oid_of, parse
from trace_store.oid import OID_BYTES, Digester, ObjectId
from trace_store.ref_names import is_ref_name

Read = Callable[[int], bytes]
"""Returns up to so many bytes, and none at the end."""
Write = Callable[[bytes], object]

MAGIC = b"trace bundle "
VERSION = 1
TOMBSTONES = "tombstones"
KNOWN_REQUIREMENTS = frozenset((TOMBSTONES,))
"""Features that a bundle may demand in `requires` and this version has."""
MAXIMUM_HEADER_BYTES = 16 * 1024 * 1024
MAXIMUM_REFS = MAXIMUM_ELEMENTS
MAXIMUM_TIPS = 64
END = b"TREN"
_LINE = MAGIC + b"%d\n" % VERSION
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class BundledRef:
    """A ref in a bundle: its full name, and its tips, those of a diverged one after the own."""

    name: str
    tips: tuple[ObjectId, ...]


@dataclass(frozen=True, slots=True)
class BundleHeader:
    """What a bundle says of itself.

    Attributes:
        refs: what it carries, sorted by name.
        prerequisites: objects that it builds upon, sorted; whoever takes it must have them, and all they lead to.
        object_count: how many objects are in its packs.
        head: the full name of the ref that HEAD was on, or "".
        requires: features that a reader must know.
        tombstones: names and bytes of the files that tell of purged objects, sorted: objects of the bundle name these,
            and nobody has them.
    """

    refs: tuple[BundledRef, ...]
    prerequisites: tuple[ObjectId, ...]
    object_count: int
    head: str = ""
    requires: tuple[str, ...] = ()
    tombstones: tuple[tuple[str, bytes], ...] = ()

    @property
    def purged(self) -> frozenset[bytes]:
        """The ids of the purged objects that the bundle tells of."""
        return frozenset(oid for name, _ in self.tombstones if (oid := oid_of(name)) is not None)

    def encode(self) -> bytes:
        """Return the canonical bytes.

        Raises:
            InvalidInputError: there are more refs than a bundle may carry.
        """
        if len(self.refs) > MAXIMUM_REFS or len(self.prerequisites) > MAXIMUM_REFS:
            raise InvalidInputError(f"a bundle carries at most {MAXIMUM_REFS} refs")
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
        """Return what canonical bytes say.

        Raises:
            CorruptBundleError: they are no header.
            UnsupportedFormatError: it demands what this version does not know.
        """
        try:
            fields = unpack(data)
            if not isinstance(fields, dict) or encode(fields) != data:
                raise CorruptBundleError("the header of the bundle is not in canonical form")
            requires = tuple(_text(name) for name in fields["requires"])
            _refuse_unknown(requires)
            header = cls(
                refs=tuple(_ref(*ref) for ref in fields["refs"]),
                prerequisites=tuple(_oid(oid) for oid in fields["prerequisites"]),
                object_count=_count(fields["objects"]),
                head=_text(fields.get("head", "")),
                requires=requires,
                tombstones=tuple(_tombstone(*file) for file in fields.get("tombstones", ())),
            )
        except (KeyError, TypeError, CorruptObjectError, InvalidInputError) as error:
            raise CorruptBundleError(f"the header of the bundle is not valid: {error}") from error
        names = [ref.name for ref in header.refs]
        if names != sorted(set(names)) or (header.head and header.head not in names):
            raise CorruptBundleError("the header of the bundle does not list its refs in order")
        return header


class BundleWriter:
    """Writes one bundle: the header at once, packs as they come, and the end."""

    def __init__(self, write: Write, header: BundleHeader) -> None:
        self._write = write
        self._hash = Digester()
        self.size_bytes = 0
        self.pack_count = 0
        data = header.encode()
        self.write(_LINE + _LENGTH.pack(len(data)) + data)
        self.write(self._hash.digest())

    def begin(self) -> BundleWriter:
        """Return where the next pack is written."""
        return self

    def write(self, data: bytes) -> None:
        """Write bytes of a pack."""
        self._write(data)
        self._hash.update(data)
        self.size_bytes += len(data)

    def complete(self, name: str, index: bytes) -> None:
        """Take note that a pack is written."""
        self.pack_count += 1

    def finish(self) -> None:
        """Write the end."""
        self.write(END + _LENGTH.pack(self.pack_count))
        self.write(self._hash.digest())


class BundleReader:
    """Reads one bundle.

    Attributes:
        header: what it says of itself; its hash was right.
        pack_count: packs that were read.
        size_bytes: bytes that were read.
    """

    def __init__(self, read: Read) -> None:
        """Read the header.

        Raises:
            CorruptBundleError: it is no bundle, or damaged.
            UnsupportedFormatError: a newer version wrote it.
        """
        self._source = read
        self._hash = Digester()
        self.size_bytes = 0
        self.pack_count = 0
        _check_line(self._read(len(_LINE)))
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if length > MAXIMUM_HEADER_BYTES:
            raise CorruptBundleError(f"the header of the bundle declares {length} bytes")
        data = self._exactly(length)
        self._check_hash("its header")
        self.header = BundleHeader.decode(data)

    def packs(self) -> Iterator[bytes]:
        """Yield the bytes of each pack; after the last one the whole bundle has been found to be undamaged.

        Raises:
            CorruptBundleError: it is cut, damaged, or something follows it.
        """
        while True:
            mark = self._exactly(len(END))
            if mark == END:
                break
            if mark != PACK_MAGIC:
                raise CorruptBundleError("neither a pack nor the end of the bundle follows")
            head = mark + self._exactly(PACK_HEADER.size - len(mark))
            self.pack_count += 1
            try:
                data = read_pack(self._read, head, f"pack {self.pack_count} of the bundle")
            except CorruptPackError as error:
                raise CorruptBundleError(error.message) from error
            yield data
        (count,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if count != self.pack_count:
            raise CorruptBundleError(f"the bundle has {self.pack_count} packs, not {count}")
        self._check_hash("it")
        if self._source(1):
            raise CorruptBundleError("something follows the end of the bundle")

    def _check_hash(self, what: str) -> None:
        expected = self._hash.digest()
        if self._exactly(OID_BYTES) != expected:
            raise CorruptBundleError(f"the bundle is damaged: {what} has another hash")

    def _read(self, size: int) -> bytes:
        data = read_exactly(self._source, size)
        self._hash.update(data)
        self.size_bytes += len(data)
        return data

    def _exactly(self, size: int) -> bytes:
        data = self._read(size)
        if len(data) < size:
            raise CorruptBundleError("the bundle ends before it is complete")
        return data


def _check_line(line: bytes) -> None:
    if line == _LINE:
        return
    if line and _LINE.startswith(line):
        raise CorruptBundleError("the bundle ends before it is complete")
    if not line.startswith(MAGIC):
        raise CorruptBundleError("the file does not begin like a bundle")
    version = line[len(MAGIC) :].split(b"\n")[0]
    if version.isdigit():
        name = f"bundle version {version.decode('ascii')}"
        raise UnsupportedFormatError(
            f"a bundle of another version is unknown here: {name}", required=(name,)
        )
    raise CorruptBundleError("the file does not begin like a bundle")


def _refuse_unknown(requires: tuple[str, ...]) -> None:
    unknown = tuple(name for name in requires if name not in KNOWN_REQUIREMENTS)
    if unknown:
        names = ", ".join(name[:40] for name in unknown[:5])
        raise UnsupportedFormatError(f"the bundle requires {names}", required=unknown)


def _ref(name: Any, tips: Any) -> BundledRef:
    if not is_ref_name(_text(name)):
        raise TypeError(f"not a ref name: {name[:80]!r}")
    found = tuple(_oid(tip) for tip in tips)
    if not 1 <= len(found) <= MAXIMUM_TIPS or len(set(found)) < len(found):
        raise TypeError(f"a ref with {len(found)} tips")
    return BundledRef(name, found)


def _tombstone(name: Any, data: Any) -> tuple[str, bytes]:
    if not isinstance(data, bytes) or parse(_text(name), data) is None:
        raise TypeError("not a tombstone")
    return name, data


def _oid(value: Any) -> ObjectId:
    if not isinstance(value, bytes) or len(value) != OID_BYTES:
        raise TypeError("an object id has 32 bytes")
    return ObjectId(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("text expected")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError("a number is expected")
    return value

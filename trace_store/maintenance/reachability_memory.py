"""What the last gc or prune found reachable, so that the next one reads only what is new.

It states a fact about objects: from `roots`, every object of `packs` is reachable, except for `left`. Objects never
change, so the fact stays true. What changes is whether the roots still count: before each use, all of them must be
roots again, or reachable from new ones. If not, everything is read again.

The file is local, so nothing that git brings can forge it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trace_store.base.frozen import field, replace, value
from trace_store.base.oid import OID_BYTES, ObjectId, digest
from trace_store.disk.files import read_file, replace_file
from trace_store.errors import CorruptIndexError, StorageError
from trace_store.odb.index_scan import ids_among
from trace_store.odb.packs import Packs
from trace_store.store.store import Store

MAGIC = b"TRACEREACH"
VERSION = 1
UNNOTICED = 2**64 - 1
"""The time of an object that is not known to be unreachable: that of its pack counts."""
_TIME_BYTES = 8


@value
class KnownReachable:
    """The result of a scan; empty before the first one.

    Attributes:
        roots: objects from which everything known is reachable, each with the file in `local/` that names it, or "".
            None of them is reachable from another.
        files: the stamp of each file in `local/` whose ids were roots.
        packs: the names of packs.
        left: the objects of these packs that are not reachable from the roots, and since when they are unreachable, in
            milliseconds, or UNNOTICED.
        outside: reachable objects that were in none of the packs at the scan, such as loose or missing ones. The next
            scan follows them again.
        unseen: ids in files in `local/` that name no object so far.
        count: number of reachable objects in the packs.
    """

    roots: Mapping[ObjectId, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    packs: frozenset[str] = frozenset()
    left: Mapping[ObjectId, int] = field(default_factory=dict)
    outside: frozenset[ObjectId] = frozenset()
    unseen: frozenset[ObjectId] = frozenset()
    count: int = 0

    def after_rewrite(
        self, replaced: Iterable[str], new: Iterable[str], unknown: Iterable[ObjectId]
    ) -> KnownReachable:
        """Return the same fact about rewritten packs.

        Args:
            replaced: packs whose objects are all in new ones.
            new: the packs that were written.
            unknown: objects in them that were in no known pack. Those in `outside` stay there, so that the next scan
                follows them: some may have been missing in this one.
        """
        return replace(
            self,
            packs=self.packs.difference(replaced).union(new),
            left={**dict.fromkeys(unknown, UNNOTICED), **self.left},
        )

    def among(self, packs: Packs, oids: Iterable[ObjectId]) -> frozenset[bytes] | None:
        """Return the objects that are known to be reachable; None if a pack is gone or its index is damaged."""
        wanted = frozenset(oids).difference(self.left)
        found: set[bytes] = set()
        for name in self.packs if wanted else ():
            packed = packs.get(name)
            try:
                if packed is None:
                    return None
                found |= ids_among(packed.index, wanted)
            except (CorruptIndexError, StorageError):
                return None
        return frozenset(found)


class KnownObjects:
    """The objects that a scan need not follow: those known to be reachable."""

    def __init__(self, packs: Packs, known: KnownReachable) -> None:
        self._packs = packs
        self._known = known
        self._found: set[bytes] = set()

    def __contains__(self, oid: object) -> bool:
        if oid in self._found:
            return True
        assert isinstance(oid, ObjectId)
        if oid in self._known.left:
            return False
        if any(self._has(name, oid) for name in self._known.packs):
            self._found.add(oid)
            return True
        return False

    def _has(self, name: str, oid: ObjectId) -> bool:
        packed = self._packs.get(name)
        try:
            return packed is not None and packed.index.find(oid) is not None
        except (CorruptIndexError, StorageError):
            return False  # it is followed instead


def load_known(store: Store) -> KnownReachable:
    """Return what the last scan found; nothing if its file is missing, damaged or of another version."""
    try:
        data = read_file(store.disk, store.layout.reachable_file) or b""
    except StorageError:
        return KnownReachable()
    body, checksum = data[:-OID_BYTES], data[-OID_BYTES:]
    if not body.startswith(MAGIC) or digest(body) != checksum:
        return KnownReachable()
    import msgpack  # slow to import

    version, *fields = msgpack.unpackb(body[len(MAGIC) :])
    if version != VERSION:
        return KnownReachable()
    roots, places, files, packs, left, times, outside, unseen, count = fields
    times = [
        int.from_bytes(times[at : at + _TIME_BYTES], "little")
        for at in range(0, len(times), _TIME_BYTES)
    ]
    return KnownReachable(
        roots=dict(zip(_split(roots), places, strict=True)),
        files=files,
        packs=frozenset(packs),
        left=dict(zip(_split(left), times, strict=True)),
        outside=frozenset(_split(outside)),
        unseen=frozenset(_split(unseen)),
        count=count,
    )


def save_known(store: Store, known: KnownReachable) -> None:
    """Save this for the next scan; a failed write is ignored."""
    if known == load_known(store):
        return
    import msgpack

    times = b"".join(since.to_bytes(_TIME_BYTES, "little") for since in known.left.values())
    fields: list[Any] = [VERSION, b"".join(known.roots), [*known.roots.values()], {**known.files}]
    fields += [sorted(known.packs), b"".join(known.left), times]
    fields += [b"".join(known.outside), b"".join(known.unseen), known.count]
    body = MAGIC + msgpack.packb(fields)
    try:
        replace_file(
            store.disk,
            store.layout.reachable_file,
            body + digest(body),
            durable=False,
            scratch=store.layout.tmp_dir,
        )
    except StorageError:
        return


def _split(joined: bytes) -> list[ObjectId]:
    return [ObjectId(joined[at : at + OID_BYTES]) for at in range(0, len(joined), OID_BYTES)]

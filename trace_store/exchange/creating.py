"""Make a bundle: refs and everything they lead to, in one file or stream.

Rule: what is shared is sealed first. The same refs give the same bytes, whoever writes them and whenever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from trace_store.errors import ObjectNotFoundError
from trace_store.exchange.bundle_format import (
    TOMBSTONES,
    BundledRef,
    BundleHeader,
    BundleWriter,
    Write,
)
from trace_store.exchange.choosing import Choice, choose
from trace_store.exchange.new_file import NewFile
from trace_store.files import Disk
from trace_store.graph import ancestors
from trace_store.maintenance.sealing import seal
from trace_store.objects.commit import parents_of
from trace_store.odb import ObjectDatabase
from trace_store.odb.pack_writer import SHARED_BYTES, PackEncoder
from trace_store.odb.reachable import reachable, reachable_ids
from trace_store.odb.tombstones import Tombstone, file_name, oid_of
from trace_store.oid import OID_BYTES, ObjectId
from trace_store.store import Store

DEFAULT_LEVEL = 9

Progress = Callable[[int, int], None]
"""Told how many objects are done, and how many there are."""

Look = Callable[[bytes], object]


@dataclass(frozen=True, slots=True)
class BundleReport:
    """A bundle, in figures.

    Attributes:
        refs: what it carries.
        prerequisites: objects that whoever takes it must have.
        object_count: objects in it.
        pack_count: packs in it.
        size_bytes: its size.
        head: the full name of the ref that HEAD was on, or "".
    """

    refs: tuple[BundledRef, ...]
    prerequisites: tuple[ObjectId, ...]
    object_count: int
    pack_count: int
    size_bytes: int
    head: str


def create_bundle(
    store: Store,
    target: str | Write,
    words: Sequence[str] = (),
    *,
    everything: bool = False,
    trash: bool = False,
    since: Iterable[str] = (),
    overwrite: bool = False,
    level: int = DEFAULT_LEVEL,
    progress: Progress | None = None,
    look: Look | None = None,
) -> BundleReport:
    """Write a bundle and return what is in it.

    Args:
        store: where from; it is sealed first.
        target: the path of a file, or a function that takes bytes.
        words: refs, as `choosing.choose` takes them; without any, the branch that HEAD is on.
        everything: every ref but those in the trash.
        trash: those too.
        since: commits whose history the receiver has.
        overwrite: whether a file that is there already is replaced.
        level: how hard to compress, 1 to 19.
        progress: told how far it is.
        look: given the bytes of each object.

    Raises:
        As `choosing.choose`; and
        ObjectNotFoundError: something that a ref leads to is not here.
        AlreadyExistsError: the file is there already.
        StorageError: the disk refuses; there is then no file.
    """
    seal(store)
    choice = choose(store, words, everything=everything, trash=trash, since=since)
    header, oids = _contents(store, choice)
    if not isinstance(target, str):
        return _write(store, target, header, oids, level, progress, look)
    disk = store.disk if store.local else Disk()
    with NewFile(disk, target, overwrite=overwrite) as file:
        return _write(store, file.write, header, oids, level, progress, look)


def _contents(store: Store, choice: Choice) -> tuple[BundleHeader, bytes]:
    """Return the header, and the ids of the objects one after the other."""
    read = store.objects.read
    starts: list[ObjectId] = []
    for ref in choice.refs:
        for tip in ref.tips:
            if not store.objects.contains(tip):
                raise ObjectNotFoundError(
                    f"{ref.name} stands for {tip}, which is not here", oid=tip
                )
            starts.append(tip)

    def parents(oid: ObjectId) -> list[ObjectId]:
        return parents_of(read(oid))

    boundary = _Boundary(set(ancestors(choice.since, parents)))
    purged: set[bytes] = set()

    def absent(oid: ObjectId, namer: ObjectId | None) -> None:
        if oid not in store.objects.purged or namer is None:
            why = f", which {namer} names" if namer else ""
            raise ObjectNotFoundError(f"no object {oid}{why}", oid=oid, named_by=namer)
        purged.add(oid)

    found = [oid for oid, _ in reachable(read, starts, hidden=boundary, absent=absent)]
    # Whoever has a commit has those before it.
    before = set(ancestors((up for oid in boundary.met for up in parents(oid)), parents))
    prerequisites = sorted(boundary.met - before)
    if prerequisites:
        # Only what the prerequisites themselves lead to is at hand on the other side.
        there = reachable_ids(read, prerequisites)
        found = [oid for oid in found if oid not in there]
    head = store.refs.head().ref or ""
    header = BundleHeader(
        refs=choice.refs,
        prerequisites=tuple(prerequisites),
        object_count=len(found),
        head=head if any(ref.name == head for ref in choice.refs) else "",
        requires=(TOMBSTONES,) if purged else (),
        tombstones=tuple(_tombstones(store, purged)),
    )
    return header, b"".join(found)


def _tombstones(store: Store, purged: set[bytes]) -> list[tuple[str, bytes]]:
    """Return the files that tell of some purged objects; where one cannot be read, another is made."""
    if not isinstance(store.objects, ObjectDatabase):
        return []
    tombstones = store.objects.tombstones
    files = [file for file in tombstones.files() if oid_of(file[0]) in purged]
    told = {oid_of(name) for name, _ in files}
    for oid in purged - told:
        data = Tombstone(ObjectId(oid), 1).encode()
        files.append((file_name(oid, data), data))
    return sorted(files)


class _Boundary:
    """Commits that a walk stops at, and those of them that it met."""

    __slots__ = ("_commits", "met")

    def __init__(self, commits: set[ObjectId]) -> None:
        self._commits = commits
        self.met: set[ObjectId] = set()

    def __contains__(self, oid: object) -> bool:
        if oid not in self._commits:
            return False
        assert isinstance(oid, ObjectId)
        self.met.add(oid)
        return True


def _write(
    store: Store,
    write: Write,
    header: BundleHeader,
    oids: bytes,
    level: int,
    progress: Progress | None,
    look: Look | None,
) -> BundleReport:
    writer = BundleWriter(write, header)
    encoder = PackEncoder(writer.begin, level=level, shared_bytes=SHARED_BYTES)
    for at in range(0, len(oids), OID_BYTES):
        oid = oids[at : at + OID_BYTES]
        data = store.objects.read(oid)
        encoder.add(oid, data)
        if look is not None:
            look(data)
        if progress is not None:
            progress(at // OID_BYTES + 1, header.object_count)
    encoder.finish()
    writer.finish()
    return BundleReport(
        refs=header.refs,
        prerequisites=header.prerequisites,
        object_count=header.object_count,
        pack_count=writer.pack_count,
        size_bytes=writer.size_bytes,
        head=header.head,
    )

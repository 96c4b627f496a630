"""Create a bundle of refs and everything reachable from them.

Rule: a bundle carries refs, so every word has to lead to one. A ref goes with the refs under it, and the branch of a
session with the files that are kept of it.

Rule: what is shared is sealed first. The same refs give the same bytes, whoever writes them and whenever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from trace_store.bundles.format import TOMBSTONES, BundledRef, BundleHeader, BundleWriter, Write
from trace_store.bundles.new_file import NewFile
from trace_store.errors import (
    AmbiguousRevisionError,
    InvalidInputError,
    NotFoundError,
    ObjectNotFoundError,
    RefNotFoundError,
    StateError,
    UnbornBranchError,
)
from trace_store.files import Disk
from trace_store.graph import ancestors
from trace_store.maintenance.seal import seal
from trace_store.objects.commit import parents_of
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.pack_writer import SHARED_BYTES, PackEncoder
from trace_store.odb.reachable import reachable, reachable_ids
from trace_store.odb.tombstones import Tombstone, file_name, oid_of
from trace_store.oid import OID_BYTES, ObjectId
from trace_store.refs.names import BRANCHES, FILES, TRASH
from trace_store.revision import ref_of, resolve, resolve_commit
from trace_store.store.handle import Store

SESSIONS = BRANCHES + "sessions/"


@dataclass(frozen=True, slots=True)
class Choice:
    """What goes into a bundle.

    Attributes:
        refs: sorted by name.
        since: commits whose history the receiver has.
    """

    refs: tuple[BundledRef, ...]
    since: tuple[ObjectId, ...]


def choose(
    store: Store,
    words: Sequence[str],
    *,
    everything: bool = False,
    trash: bool = False,
    since: Iterable[str] = (),
) -> Choice:
    """Return the refs that words name, and what they leave out.

    Args:
        store: where from.
        words: refs, sessions by the beginning of their id, folders of refs; `A..B` is `B` without what A reaches, `^A`
            only leaves out. Without any, the branch that HEAD is on.
        everything: every ref but those in the trash.
        trash: those too.
        since: commits whose history is left out.

    Raises:
        RefNotFoundError: a word leads to nothing.
        AmbiguousRevisionError: the ids of several sessions begin like this.
        InvalidInputError: a word names an object that no ref stands for.
        UnbornBranchError: HEAD's branch has no commit.
        StateError: there is no ref, or HEAD is detached.
    """
    every = dict(store.refs.iterate_tips())
    hidden = list(since)
    names: set[str] = set()
    if everything:
        names.update(name for name in every if trash or not name.startswith(TRASH))
    for word in words or ([] if everything else ["HEAD"]):
        if word.startswith("^"):
            hidden.append(word[1:])
            continue
        if "..." in word:
            raise InvalidInputError(f"a bundle carries refs, not what {word[:120]!r} compares")
        left, dots, right = word.partition("..")
        if dots:
            hidden.append(left or "HEAD")
        names.update(_named(store, list(every), (right or "HEAD") if dots else word))
    if not names:
        raise StateError("there is no ref to bundle")
    refs = tuple(BundledRef(name, every[name]) for name in sorted(names))
    return Choice(refs, tuple(resolve_commit(store, word) for word in hidden))


def _named(store: Store, every: list[str], word: str) -> list[str]:
    """Return the refs that a word names, those under them, and the files that are kept of sessions."""
    if word in ("HEAD", "@"):
        head = store.refs.head()
        if head.ref is None:
            raise StateError("HEAD is detached: it stands for a commit, and a bundle carries refs")
        if head.oid is None:
            raise UnbornBranchError("HEAD has no commit yet", revision=word)
        return _with_files(every, _under(every, head.ref))
    full = ref_of(store, word)
    if full is not None:
        return _with_files(every, _under(every, full))
    folder = word.rstrip("/")
    for place in ("", "refs/", BRANCHES, SESSIONS):
        found = _under(every, place + folder) if folder else []
        if found:
            return _with_files(every, found)
    found = _session(every, word)
    if found:
        return _with_files(every, found)
    try:
        oid = resolve(store, word)
    except NotFoundError:
        raise RefNotFoundError(f"there is no ref {word[:120]!r}", ref=word) from None
    raise InvalidInputError(f"a bundle carries refs, and none is named by {word[:120]!r}", oid=oid)


def _under(every: list[str], name: str) -> list[str]:
    return [each for each in every if each == name or each.startswith(name + "/")]


def _session(every: list[str], word: str) -> list[str]:
    """Return the refs of the session whose id begins like this."""
    found = {
        "/".join(parts[:2])
        for parts in (
            name[len(SESSIONS) :].split("/") for name in every if name.startswith(SESSIONS)
        )
        if len(parts) > 1 and (parts[1].startswith(word) or "/".join(parts[:2]).startswith(word))
    }
    if len(found) > 1:
        raise AmbiguousRevisionError(
            f"several sessions begin with {word[:120]!r}", revision=word, candidates=sorted(found)
        )
    return [name for session in found for name in _under(every, SESSIONS + session)]


def _with_files(every: list[str], names: list[str]) -> list[str]:
    found = list(names)
    for name in names:
        if name.startswith(SESSIONS):
            found += _under(every, FILES + name[len(SESSIONS) :])
    return found


DEFAULT_LEVEL = 9

Progress = Callable[[int, int], None]
"""Told how many objects are done, and how many there are."""

Look = Callable[[bytes], object]


@dataclass(frozen=True, slots=True)
class BundleReport:
    """A bundle, in figures.

    Attributes:
        refs: what it carries.
        prerequisites: objects that the receiver must have.
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
    # A repository with a commit has its ancestors.
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

"""Missing objects that refs need, found in other copies and written again.

git removes packs like any other file: `git revert`, `git cherry-pick` and a rebase that drops commits take packs away
that later refs need.

Invariant: only what a ref reaches comes back, and nothing that was purged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.contracts.ref_names import short_name
from trace_store.disk.files import read_file, replace_file
from trace_store.disk.git import git_dir
from trace_store.disk.read_only import ReadOnlyDisk
from trace_store.maintenance.lock_wait import log_restored
from trace_store.maintenance.object_copies import ObjectCopies
from trace_store.maintenance.reachability import ReachableSet
from trace_store.objects.codec import encode_blob, links
from trace_store.objects.commit import Commit, parents_of
from trace_store.odb.pack_writer import PackWriter
from trace_store.odb.tombstones import drop_purged
from trace_store.store.store import Store

_SIGNS = ("index", "packed-refs", "FETCH_HEAD", "ORIG_HEAD", os.path.join("logs", "HEAD"))
"""Files of git that change when it gets objects or moves refs."""


def write_pack(store: Store, objects: Mapping[ObjectId, bytes]) -> None:
    """Write objects to a durable pack of their own.

    Raises:
        StorageError: the disk refuses.
    """
    writer = PackWriter(store.disk, store.layout)
    try:
        for oid, data in objects.items():
            writer.add(oid, data)
        writer.finish()
    finally:
        writer.discard()
    with store.mutex:
        store.objects.packs.refresh()


def find_copies(
    missing: Iterable[ObjectId], copies: ObjectCopies, contains: Callable[[ObjectId], bool]
) -> dict[ObjectId, bytes]:
    """Return copies of missing objects, and of missing objects that those link to.

    Args:
        missing: their ids.
        copies: finds the copies.
        contains: returns True if an object is not missing.
    """
    found: dict[ObjectId, bytes] = {}
    waiting = list(missing)
    while waiting:
        oid = waiting.pop()
        data = None if oid in found else copies.find(oid)
        if data is not None:
            found[oid] = data
            waiting += [each for each in links(data) if not contains(each)]
    return found


def came_back(store: Store, tell: Callable[[int], object] | None = None) -> bool:
    """Write again what refs reach and other copies have, unless that has failed for this state of git.

    Meant for `ObjectDatabase.last_resort`, and so without errors: who reads names what is missing.

    Args:
        store: the repository.
        tell: receives how many objects came back; None logs it.

    Returns:
        Whether anything came back.
    """
    objects, resort = store.objects, store.objects.last_resort
    objects.last_resort = None  # the search itself meets what is missing
    try:
        sign, file = _sign(store), store.layout.missing_file
        if not store.local or sign in (objects.searched, read_file(store.disk, file)):
            return False
        reachable = ReachableSet(objects.read)
        reachable.add(_starts(store))
        missing = [oid for oid in reachable.absent if oid not in objects.purged]
        found = drop_purged(objects, find_copies(missing, ObjectCopies(store), objects.contains))
        if found:
            write_pack(store, found)
            (tell or log_restored)(len(found))
            return True
        objects.searched = sign
        if missing:  # else a caller's id was wrong
            store.disk.make_directory(store.layout.cache_dir)
            replace_file(store.disk, file, sign, durable=False)
        return False
    except (errors.FormatError, errors.NotFoundError, errors.StorageError):
        return False
    finally:
        objects.last_resort = resort


def _starts(store: Store) -> set[ObjectId]:
    """Return what refs and HEAD name."""
    tips = {tip for _, values in store.refs.iterate_tips() for tip in values}
    head = store.refs.head().oid
    return tips if head is None else {*tips, head}


@value
class Gap:
    """Consecutive missing commits in a history.

    Attributes:
        ref: the full name of a ref with that history.
        missing: the missing commits, the newest first; the last may hide others.
        child: the commit that follows them; None if the ref itself is at a missing one.
        before: the commit before them, as the reflog of the ref knows; None if unknown.
    """

    ref: str
    missing: tuple[ObjectId, ...]
    child: ObjectId | None
    before: ObjectId | None

    @property
    def name(self) -> str:
        """The short name of the ref."""
        return short_name(self.ref)


def open_incomplete(path: str) -> tuple[Store, list[Gap]]:
    """Open a repository to read what there is; return it, and the gaps in its histories, in the order of refs.

    A missing commit reads as one without messages, whose parent is what the reflog says, if anything. Missing content
    reads as a text that says so. Nothing can be written, so that nothing derived from this is kept.

    Raises:
        As `Store.open`.
    """
    store = Store.open(path, disk=ReadOnlyDisk("nothing is written while objects are missing"))
    seen, now = set[ObjectId](), store.clock.now()
    gaps = [
        gap for name, tips in store.refs.iterate_tips() for gap in _gaps(store, name, tips, seen)
    ]
    parents = {
        oid: before
        for gap in gaps
        for oid, before in zip(gap.missing, (*gap.missing[1:], gap.before), strict=True)
    }

    def stand_in(oid: bytes) -> bytes:
        name = ObjectId(oid)
        if name not in parents:
            return encode_blob(f"(missing: {name.short()})".encode())
        before = parents[name]
        return Commit([before] if before else [], "", now, [], "(missing)").encode()

    store.objects.stand_in = stand_in
    return store, gaps


def _gaps(store: Store, name: str, tips: Iterable[ObjectId], seen: set[ObjectId]) -> Iterator[Gap]:
    """Yield the gaps in the history of a ref, except from commits that were seen; add what it sees."""
    waiting: list[tuple[ObjectId, ObjectId | None]] = [(tip, None) for tip in tips]
    while waiting:
        oid, child = waiting.pop()
        if oid in seen:
            continue
        seen.add(oid)
        parents = _parents(store, oid)
        if parents is not None:
            waiting += [(each, oid) for each in parents]
            continue
        moves = {each.new: each.old for each in store.refs.reflog(name)}
        missing, before = [oid], moves.get(oid)
        while before is not None and before not in seen and _parents(store, before) is None:
            seen.add(before)
            missing.append(before)
            before = moves.get(before)
        if before is not None:
            waiting.append((before, missing[-1]))
        yield Gap(name, tuple(missing), child, before)


def _parents(store: Store, oid: ObjectId) -> list[ObjectId] | None:
    """Return the parents of a commit, none of another object; None if it is missing."""
    try:
        return parents_of(store.objects.read(oid))
    except errors.ObjectNotFoundError:
        return None
    except errors.FormatError:
        return []  # a tag, or damaged


def _sign(store: Store) -> bytes:
    """Return what changes whenever git may have got the objects, or other refs."""
    disk, layout = store.disk, store.layout
    folder = git_dir(disk, layout.root)
    paths = [layout.kept_packs_dir]
    paths += [] if folder is None else [os.path.join(folder, name) for name in _SIGNS]
    stats = [disk.stat(path) for path in paths]
    signs = ["-" if each is None else f"{each.st_ino}.{each.st_mtime_ns}" for each in stats]
    return " ".join(signs).encode()

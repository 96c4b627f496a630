"""The content of a repository on an in-memory disk, and whether work can continue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.store.support.histories import append
from trace_store.base.ident import FixedClock
from trace_store.base.oid import ObjectId
from trace_store.disk.files import files_below
from trace_store.disk.layout import TEMPORARY_PREFIX
from trace_store.errors import RepositoryNotFoundError, TraceError
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.fsck_objects import INFO
from trace_store.maintenance.seal import seal
from trace_store.maintenance.verify_purged import Needles, search
from trace_store.odb.database import ObjectDatabase
from trace_store.refs.reflog import encode_entry, read_backwards
from trace_store.store.store import Store
from trace_store.testing.power_cuts import DiskImage, PowerCutDisk

FOLDER, ELSEWHERE = "/work", "/elsewhere"
ROOT = "/work/.trace"
AFTER = "refs/heads/after"
START = 1_700_000_000_000
TORN = "root-file-changed"
"""What `fsck` says of `.gitignore` when part of it is there; all else that it merely mentions is harmless."""

TO_BE_ERASED = "purged-object-present"
"""So it is while a purge is on its way; afterwards it is looked for in every file."""

KEPT = ("reissued", "upstreams", "bisect", "stopped-refs%2Fheads%2Fmain", "ORIG_HEAD", "todo")
"""Files in `local/` that cannot be rebuilt."""

Tips = tuple[tuple[str, tuple[str | ObjectId, ...]], ...]


@dataclass(frozen=True)
class Look:
    """What else is looked for.

    Attributes:
        secret: a text that was purged, or is to be.
        logs: whether the entries of reflogs matter.
    """

    secret: bytes = b""
    logs: bool = False


@dataclass(frozen=True)
class Holding:
    """The content of an opened repository, and of its own files.

    Attributes:
        refs: what HEAD names, with the default branch, and the tips of every ref, own tip first; None when there is
            no repository.
        objects: the ids of all that can be read.
        files: what other files there are, and what was set aside, and what they hold.
        purged: the ids of objects that have a tombstone.
        logged: the entries of reflogs, if they matter.
        leaks: where the secret stands.
        faults: what is wrong.
    """

    refs: Tips | None
    objects: frozenset[ObjectId] = frozenset()
    files: frozenset[tuple[str, bytes]] = frozenset()
    purged: frozenset[bytes] = frozenset()
    logged: frozenset[tuple[str, bytes]] = frozenset()
    leaks: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


PLAIN = Look()


def holding_of(
    image: DiskImage, look: Look = PLAIN, *, goes_on: bool = False, thorough: bool = False
) -> Holding:
    """Return the content of a disk; with `goes_on`, also try a commit and a seal."""
    disk = PowerCutDisk(image)
    files = frozenset(_files_of(image))
    try:
        with Store.open(ROOT, disk=disk, clock=FixedClock(START + 10**9)) as store:
            refs, objects, faults = _contents(store)
            logged = frozenset(_entries(store) if look.logs else ())
            leaks = tuple(sorted(_leaks(store, look.secret))) if look.secret else ()
            assert isinstance(store.objects, ObjectDatabase)
            purged = store.objects.purged
    except RepositoryNotFoundError:
        return Holding(None, files=files)
    except TraceError as error:
        return Holding((), files=files, faults=(f"does not open: {error.code}: {error}",))
    if goes_on and not faults:
        faults = [f"going on: {fault}" for fault in _go_on(disk, refs, objects, thorough=thorough)]
    return Holding(refs, objects, files, purged, logged, leaks, tuple(faults))


def _files_of(image: DiskImage) -> Iterator[tuple[str, bytes]]:
    """Yield (path, bytes) of the files beside the repository, and of those that it has set aside."""
    skipped = frozenset({".trace"})
    telling = {"lost-found", *KEPT}
    if any(not telling.isdisjoint(names) for names in image.folders.values()):
        skipped = frozenset()
    for path, number in image.paths(skipped):
        if number not in image.files or path.endswith(".tmp") or TEMPORARY_PREFIX in path:
            continue
        if path.startswith((f"{ROOT}/lost-found/", *(f"{ROOT}/local/{name}" for name in KEPT))) or (
            path.startswith(f"{FOLDER}/") and not path.startswith(f"{ROOT}/")
        ):
            yield path, image.files[number]


def _entries(store: Store) -> Iterator[tuple[str, bytes]]:
    for path in files_below(store.disk, store.layout.logs_dir):
        for entry in read_backwards(store.disk, path):
            yield path, encode_entry(entry)


def _leaks(store: Store, secret: bytes) -> Iterator[str]:
    needles = Needles([("the secret", secret)])
    for found in search(store, (), needles, Needles()).found:
        yield f"{found.path}: {found.where}"


def _contents(store: Store, *, check: bool = True) -> tuple[Tips, frozenset[ObjectId], list[str]]:
    head, settings = str(store.refs.head_target()), str(store.config.get("default_branch"))
    refs: Tips = (("HEAD", (head, settings)), *sorted(store.refs.iterate_tips()))
    objects = frozenset(store.objects.iterate())
    if isinstance(store.objects, ObjectDatabase):
        for taking in store.objects.quarantine.batches():
            objects |= {*taking.packs.iterate(), *taking.loose.iterate()}
    faults = [
        f"fsck: {finding.code}: {finding.what}: {finding.detail}"
        for finding in (fsck(store) if check else ())
        if (finding.severity != INFO or finding.code == TORN) and finding.code != TO_BE_ERASED
    ]
    return refs, objects, faults


def _go_on(
    disk: PowerCutDisk, refs: Tips, objects: frozenset[ObjectId], *, thorough: bool
) -> Iterator[str]:
    """Yield the faults when work continues: a commit, a seal, and a check."""
    try:
        with Store.open(ROOT, disk=disk, clock=FixedClock(START + 2 * 10**9)) as store:
            tip = append(store, "after", AFTER, durability="durable")
        for sealed in (False, True) if thorough else (False,):
            with Store.open(ROOT, disk=disk, clock=FixedClock(START + 3 * 10**9)) as store:
                if sealed:
                    seal(store)
                now, held, faults = _contents(store, check=sealed)
            yield from faults
            if dict(now) != {**dict(refs), AFTER: (tip,)}:
                yield f"refs were {short(refs)}, then {short(now)}"
            if not held >= objects:
                yield f"{len(objects - held)} objects are gone"
    except TraceError as error:
        yield f"{error.code}: {error}"


def short(refs: Tips | None) -> str:
    """Return refs as a failing test shows them."""
    if refs is None:
        return "no repository"
    return (
        "{"
        + ", ".join(
            f"{n.removeprefix('refs/')}: {'+'.join(str(t)[:8] for t in tips)}" for n, tips in refs
        )
        + "}"
    )

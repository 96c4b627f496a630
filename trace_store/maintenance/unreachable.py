"""Unreachable objects, and for how long they have been so.

Rule: local and derived. A pack says when it was written, which for an object that was packed again is later than what
is asked; so who finds an object unreachable notes the time, and forgets it when something leads to it again. An absent
or damaged file says nothing: objects count as younger then, and stay longer.

    offset  size  field
    0       8     TRACEAGE
    8       40 n  id, and milliseconds as u64, little-endian; by id
    …       32    blake3-256 of all before

Rule: everything is looked at outside all locks first. Under the journal's lock the same is done once more, and only
what is new costs anything then. What nothing leads to, but not for long enough yet, keeps what it leads to.
"""

from __future__ import annotations

import struct

from trace_store import errors
from trace_store.errors import StorageError
from trace_store.files import read_file, replace_file
from trace_store.maintenance.expiry import is_expired
from trace_store.maintenance.reachability import Marking, find_roots
from trace_store.odb.database import ObjectDatabase
from trace_store.oid import OID_BYTES, ObjectId, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from trace_store.maintenance.reachability import Roots
    from trace_store.refs.reflog import ReflogEntry
    from trace_store.store.handle import Store

    Progress: TypeAlias = Callable[[str, int, int], None]


MAGIC = b"TRACEAGE"
_RECORD = struct.Struct(f"<{OID_BYTES}sQ")


def load_ages(store: Store) -> dict[ObjectId, int]:
    """Return since when each object is known to be unreachable, in milliseconds."""
    try:
        data = read_file(store.disk, store.layout.ages_file) or b""
    except StorageError:
        return {}
    body, checksum = data[:-OID_BYTES], data[-OID_BYTES:]
    records = body[len(MAGIC) :]
    if not body.startswith(MAGIC) or digest(body) != checksum or len(records) % _RECORD.size:
        return {}
    return {ObjectId(oid): time for oid, time in _RECORD.iter_unpack(records)}


def save_ages(store: Store, ages: Mapping[ObjectId, int]) -> None:
    """Replace what is noted. That it cannot be written does not matter."""
    if ages == load_ages(store):
        return
    body = MAGIC + b"".join(_RECORD.pack(oid, ages[oid]) for oid in sorted(ages))
    try:
        replace_file(
            store.disk,
            store.layout.ages_file,
            body + digest(body),
            durable=False,
            scratch=store.layout.tmp_dir,
        )
    except StorageError:
        return


DAY_MS = 24 * 60 * 60 * 1000
REFLOG_DAYS = 90, 30
"""For how many days reflogs keep an entry, and one that names what no ref leads to."""
_NANOSECONDS = 1_000_000


class Survey:
    """One look at all objects, and at all that names them.

    Attributes:
        roots: what keeps objects.
        expired: the entries of reflogs that are too old to keep any, if these are to go.
        marking: what is reachable, and what is kept by what is young.
        reachable: how many objects are here and reachable.
        loose, packed: since when nothing leads to an object, in milliseconds, by where it stands.
        doomed: those of them that are old enough.
    """

    __slots__ = (
        "_days",
        "_limit",
        "_now",
        "_objects",
        "_progress",
        "_store",
        "doomed",
        "expired",
        "loose",
        "marking",
        "packed",
        "reachable",
        "roots",
    )

    def __init__(
        self,
        store: Store,
        *,
        grace_ms: int,
        reflog_days: tuple[int, int] | None,
        progress: Progress,
    ) -> None:
        """Look at everything, and change nothing.

        Args:
            store: what to look at.
            grace_ms: for how long nothing must have led to an object that is doomed, in milliseconds.
            reflog_days: after how many days an entry of a reflog keeps nothing, and one that names what no ref
                leads to; None when all keep what they name.
            progress: told what is being done, how much of it is done, and of how much.

        Raises:
            StateError: a root cannot be read, or leads to a commit that is not here.
            FormatError: an object is damaged, so that nobody knows what it leads to.
        """
        assert isinstance(store.objects, ObjectDatabase)
        self._store = store
        self._objects = store.objects
        self._now = store.clock.now()
        self._days = reflog_days
        self._limit = self._now - grace_ms
        self._progress = progress
        self.marking = Marking(store.objects.read)
        self.expired: set[ReflogEntry] = set()
        self.roots = self._mark()
        self.reachable = len(self.marking.reached) - len(self.marking.absent)
        self.loose = self._loose()
        self.packed = self._packed()
        self.doomed = self._doomed()

    def look_again(self) -> None:
        """Mark what came since, and spare what something leads to now; raises as at first."""
        self.roots = self._mark()
        self.doomed = {oid for oid in self.doomed if oid not in self.marking.reached}
        touched = {oid for oid in self.doomed & self.loose.keys() if not self._is_old(oid)}
        self.marking.add(touched)
        self.doomed -= self.marking.reached

    def ages(self) -> dict[ObjectId, int]:
        """Return since when nothing leads to what stays in packs, in milliseconds."""
        return {oid: since for oid, since in self.packed.items() if oid not in self.doomed}

    def _mark(self) -> Roots:
        store, marking = self._store, self.marking
        with store.mutex:
            self._objects.packs.refresh()
            whole = sum(each or 0 for each in self._objects.packs.answers(lambda i: i.objects))
        since, unreachable_since = (self._now - DAY_MS * days for days in self._days or REFLOG_DAYS)
        roots = find_roots(store, since=unreachable_since)
        for obstacle in roots.obstacles:
            raise _refusal(obstacle.what, obstacle.detail)

        def step(done: int) -> None:
            self._progress("marking", min(done, whole), whole)

        marking.add(roots.named, step)
        entries = [entry for log in roots.logs.values() for entry in log]
        if self._days is not None:
            self.expired = {
                entry
                for entry in entries
                if is_expired(
                    entry, marking.reached, since=since, unreachable_since=unreachable_since
                )
            }
        logged = [o for e in entries if e not in self.expired for o in (e.old, e.new)]
        marking.add([oid for oid in logged if oid is not None], step)
        for oid, namer in marking.broken().items():
            raise _refusal(f"commit {namer}", f"its parent {oid} is not here")
        return roots

    def _loose(self) -> dict[ObjectId, int]:
        found: dict[ObjectId, int] = {}
        for oid in self._objects.loose.iterate():
            if oid not in self.marking.reached:
                found[oid] = self._changed(self._store.layout.loose_file(oid.hex()))
        return found

    def _packed(self) -> dict[ObjectId, int]:
        """Return since when nothing leads to unreachable objects in packs: as noted, or since they were packed."""
        known = load_ages(self._store)
        found: dict[ObjectId, int] = {}
        packs, reached = self._objects.packs, self.marking.reached
        for name in packs.names():
            packed = packs.get(name)
            if packed is None:
                continue
            written = self._changed(self._store.layout.pack_file(name))
            for oid in packed.index.in_order():
                if oid not in reached:
                    found[oid] = max(found.get(oid, 0), min(written, known.get(oid, written)))
        return found

    def _doomed(self) -> set[ObjectId]:
        """Return what is old enough wherever it stands, and what nothing younger leads to."""
        unreachable = self.loose.keys() | self.packed.keys()
        old = {
            oid
            for oid in unreachable
            if max(self.loose.get(oid, 0), self.packed.get(oid, 0)) <= self._limit
        }
        self.marking.add(unreachable - old)
        return old - self.marking.reached

    def _is_old(self, oid: ObjectId) -> bool:
        return self._changed(self._store.layout.loose_file(oid.hex())) <= self._limit

    def _changed(self, path: str) -> int:
        """Return when a file was written, in milliseconds, at most now: a clock may have been wrong."""
        found = self._store.disk.stat(path)
        return self._now if found is None else min(self._now, found.st_mtime_ns // _NANOSECONDS)


def _refusal(what: str, detail: str) -> errors.StateError:
    return errors.StateError(
        f"nothing was removed, since not all that leads to objects can be followed: {what}: {detail}",
        code=errors.ErrorCode.UNKNOWN_ROOTS,
        what=what,
    )

"""Unreachable objects, and since when they are unreachable.

The pack's time is not enough: repacking renews it. So the time at which an object was found unreachable is stored,
and removed if it becomes reachable again. The file is local and derived; without it, objects count as younger and
stay longer.

    offset  size  field
    0       8     TRACEAGE
    8       40 n  id, and milliseconds as u64, little-endian; sorted by id
    …       32    blake3-256 of everything before

Invariant: the scan runs without locks first. Repeated under the journal lock, it only visits what is new. Objects
within the grace period keep what they reach.
"""

from __future__ import annotations

import struct

from trace_store import errors
from trace_store.errors import StorageError
from trace_store.files import read_file, replace_file
from trace_store.maintenance.expiry import is_expired
from trace_store.maintenance.reachability import ReachableSet, find_roots
from trace_store.oid import OID_BYTES, ObjectId, digest
from trace_store.refs.names import TRASH

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
    """Return since when objects are unreachable, in milliseconds."""
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
    """Save these times; a failed write is ignored."""
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
"""Days to keep reflog entries: reachable, unreachable."""
_NANOSECONDS = 1_000_000


class ReachabilityScan:
    """One scan of all objects and roots.

    Attributes:
        roots: the roots.
        expired: expired reflog entries, if they may go.
        marking: reachable objects, and those kept by young ones.
        reachable: number of existing reachable objects.
        loose, packed: times since when objects are unreachable, in milliseconds.
        doomed: unreachable objects past the grace period.
    """

    def __init__(
        self,
        store: Store,
        *,
        grace_ms: int,
        reflog_days: tuple[int, int] | None,
        progress: Progress,
    ) -> None:
        """Scan everything without changes.

        Args:
            store: the repository.
            grace_ms: grace period in milliseconds.
            reflog_days: days to keep reachable and unreachable reflog entries; None keeps all.
            progress: receives step, steps done and total.

        Raises:
            StateError: a root is unreadable or its commit is missing.
            FormatError: an object is damaged, so its links are unknown.
        """
        self._store = store
        self._objects = store.objects
        self._now = store.clock.now()
        self._days = reflog_days
        self._limit = self._now - grace_ms
        self._progress = progress
        self.marking = ReachableSet(store.objects.read)
        self.expired: set[ReflogEntry] = set()
        self.roots = self._mark()
        self.reachable = len(self.marking.reached) - len(self.marking.absent)
        self.loose = self._loose()
        self.packed = self._packed()
        self.doomed = self._doomed()

    def rescan(self) -> None:
        """Scan what is new, and keep what became reachable; errors as in the first scan."""
        self.roots = self._mark()
        self.doomed = {oid for oid in self.doomed if oid not in self.marking.reached}
        touched = {oid for oid in self.doomed & self.loose.keys() if not self._is_old(oid)}
        self.marking.add(touched)
        self.doomed -= self.marking.reached

    def ages(self) -> dict[ObjectId, int]:
        """Return since when the remaining packed objects are unreachable, in milliseconds."""
        return {oid: since for oid, since in self.packed.items() if oid not in self.doomed}

    def _mark(self) -> Roots:
        store, marking = self._store, self.marking
        with store.mutex:
            self._objects.packs.refresh()
            whole = sum(each or 0 for each in self._objects.packs.query(lambda i: i.objects))
        since, unreachable_since = (self._now - DAY_MS * days for days in self._days or REFLOG_DAYS)
        roots = find_roots(store, since=unreachable_since)
        for obstacle in roots.obstacles:
            raise _unknown_roots_error(obstacle.what, obstacle.detail)

        def step(done: int) -> None:
            self._progress("marking", min(done, whole), whole)

        marking.add(roots.named, step)
        entries = [entry for log in roots.logs.values() for entry in log]
        if self._days is not None:
            # The reflog of a trash ref shows how long it has been there.
            trash = {name for name, _ in store.refs.iterate(TRASH)}
            self.expired = {
                entry
                for name, log in roots.logs.items()
                for entry in (() if name in trash else log)
                if is_expired(
                    entry, marking.reached, since=since, unreachable_since=unreachable_since
                )
            }
        logged = [o for e in entries if e not in self.expired for o in (e.old, e.new)]
        marking.add([oid for oid in logged if oid is not None], step)
        for oid, namer in marking.broken().items():
            raise _unknown_roots_error(f"commit {namer}", f"its parent {oid} is missing")
        return roots

    def _loose(self) -> dict[ObjectId, int]:
        since: dict[ObjectId, int] = {}
        for oid in self._objects.loose.iterate():
            if oid not in self.marking.reached:
                since[oid] = self._changed(self._store.layout.loose_file(oid.hex()))
        return since

    def _packed(self) -> dict[ObjectId, int]:
        """Return since when packed objects are unreachable: the saved time, or the pack's."""
        known = load_ages(self._store)
        since: dict[ObjectId, int] = {}
        packs, reached = self._objects.packs, self.marking.reached
        for name in packs.names():
            packed = packs.get(name)
            if packed is None:
                continue
            written = self._changed(self._store.layout.pack_file(name))
            for oid in packed.index.in_order():
                if oid not in reached:
                    since[oid] = max(since.get(oid, 0), min(written, known.get(oid, written)))
        return since

    def _doomed(self) -> set[ObjectId]:
        """Return objects past the grace period that no younger object reaches."""
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
        """Return a file's mtime in milliseconds, at most now, in case a clock was wrong."""
        status = self._store.disk.stat(path)
        return self._now if status is None else min(self._now, status.st_mtime_ns // _NANOSECONDS)


def _unknown_roots_error(what: str, detail: str) -> errors.StateError:
    return errors.StateError(
        f"nothing was removed, because reachability is unknown: {what}: {detail}",
        code=errors.ErrorCode.UNKNOWN_ROOTS,
        what=what,
    )

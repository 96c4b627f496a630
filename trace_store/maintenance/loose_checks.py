"""Checks of loose objects: each file by itself, and of what is damaged whether anything leads there.

Rule: a loose file that nothing leads to was promised to nobody. One that was stored in `fast` may be cut off by a loss
of power, and that is no damage to a history.
"""

from __future__ import annotations

from trace_store import errors, maintenance
from trace_store.files import read_file
from trace_store.layout import MAXIMUM_OBJECT_BYTES
from trace_store.maintenance.findings import ERROR, WARNING, Finding
from trace_store.maintenance.roots import UNREADABLE, find_roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.maintenance.object_checks import ObjectChecks
    from trace_store.odb import ObjectDatabase
    from trace_store.oid import ObjectId
    from trace_store.store import Store


class LooseChecks:
    """Checks the loose objects of a repository on disk."""

    __slots__ = ("_damaged", "_database", "_objects", "_store")

    def __init__(self, store: Store, database: ObjectDatabase, objects: ObjectChecks) -> None:
        self._store = store
        self._database = database
        self._objects = objects
        self._damaged: dict[ObjectId, str] = {}

    def check(self) -> Iterator[Finding]:
        """Check the files that are whole; take note of the others."""
        loose = self._database.loose
        for stray in loose.stray_names():
            yield Finding("object-stray-file", WARNING, f"objects/{stray}", "not an object")
        for oid in loose.iterate():
            try:
                data = loose.read(oid)
            except errors.TraceError as error:
                detail = f"loose file: {error}"
                self._damaged[oid] = maintenance.with_explanation(detail, self._content(oid))
                continue
            if data is not None:
                yield from self._objects.check(oid, data, "a loose file")

    def damaged(self) -> Iterator[Finding]:
        """Yield the damaged ones, when all other objects were checked: errors where something leads there."""
        if not self._damaged:
            return
        wanted = self._wanted()
        for oid, detail in self._damaged.items():
            if wanted is None or oid in wanted or oid in self._objects.present:
                yield Finding("object-damaged", ERROR, str(oid), detail)
            else:
                detail += "; nothing leads to it, as to what was stored without a sync before the power went"
                yield Finding("unreachable-object-damaged", WARNING, str(oid), detail)

    def _wanted(self) -> set[bytes] | None:
        """Return all that anything leads to; None when that cannot be told."""
        try:
            roots = find_roots(self._store)
        except errors.TraceError:
            return None
        if any(obstacle.reason == UNREADABLE for obstacle in roots.obstacles):
            return None
        named: set[bytes] = {*roots.named, *roots.logged()}
        return named | self._objects.reachable(named)

    def _content(self, oid: ObjectId) -> bytes | None:
        path = self._store.layout.loose_file(oid.hex())
        try:
            return read_file(self._store.disk, path, limit=MAXIMUM_OBJECT_BYTES)
        except errors.StorageError:
            return None

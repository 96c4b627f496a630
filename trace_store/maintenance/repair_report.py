"""Repair report: as values, as JSON and as text."""

from __future__ import annotations

import json
from typing import Protocol

from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.journal.frames import Frame
from trace_store.maintenance.fsck_objects import Finding
from trace_store.maintenance.reachability import ReachableSet
from trace_store.odb.database import ObjectDatabase
from trace_store.records import record
from trace_store.store.store import Store


class RepairContext(Protocol):
    """The running repair, as its steps see it."""

    store: Store
    database: ObjectDatabase
    dry_run: bool
    behind: list[Frame]
    reported_before: set[Frame]

    def has(self, oid: ObjectId) -> bool: ...
    def is_whole(self, oid: ObjectId) -> bool: ...
    def reachable_from(self, starts: list[ObjectId]) -> ReachableSet: ...
    def write(self, objects: dict[ObjectId, bytes]) -> None: ...
    def set_aside(self, path: str, *, remove: bool = True) -> None: ...
    def record_step(self, kind: str, what: str, detail: str) -> None: ...


@value
class RepairStep:
    """One repair, done or planned.

    Attributes:
        kind: `pack`, `object`, `journal`, `ref`, `head`, `derived` or `file`.
        what: the file, object or ref.
        detail: what was done, in one sentence.
    """

    kind: str
    what: str
    detail: str


@value
class LostObject:
    """An object without any copy.

    Attributes:
        oid: its id in hex.
        named_by: objects that link to it, in hex.
        refs: refs that reach it.
        why: one sentence.
    """

    JSON = "object=oid"

    oid: str
    named_by: tuple[str, ...]
    refs: tuple[str, ...]
    why: str


@value
class RepairReport:
    """Result of a repair.

    Attributes:
        mended: repairs in order.
        lost: objects without any copy.
        kept: files in `lost-found/`, relative to `.trace`.
        remaining: fsck findings after the repair, or before it in a dry run.
        report: path of the saved report, relative to `.trace`; "" if none was saved.
        dry_run: True if nothing was written.
    """

    JSON = "report?"

    mended: tuple[RepairStep, ...] = ()
    lost: tuple[LostObject, ...] = ()
    kept: tuple[str, ...] = ()
    remaining: tuple[Finding, ...] = ()
    report: str = ""
    dry_run: bool = False

    def as_json(self) -> bytes:
        """Return the report as JSON bytes."""
        return (json.dumps(record(self), indent=1, sort_keys=True) + "\n").encode()

    def as_text(self) -> bytes:
        """Return the report as text for people."""
        lines = ["What `trace fsck --repair` did", ""]
        lines += [f"{each.kind} {each.what}: {each.detail}" for each in self.mended]
        lines += ["", "Set aside in this folder:"]
        lines += [f"  {path}" for path in self.kept] or ["  nothing"]
        lines += ["", "Lost:"]
        for lost in self.lost:
            lines.append(f"  {lost.oid}: {lost.why}")
            lines += [f"    linked from {oid}" for oid in lost.named_by]
            lines += [f"    on {name}" for name in lost.refs]
        if not self.lost:
            lines.append("  nothing")
        return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")

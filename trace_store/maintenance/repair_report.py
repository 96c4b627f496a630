"""What a repair did, and `lost-found/`, where it puts what it cannot recover.

Rule: nothing is deleted. A file gets its second name there, or a copy, durably, before it loses the first. Names end
with a part of the content's hash, so doing it again after an interruption changes nothing. Git does not ignore the
folder: `git add .trace` takes it along, and from then on no `git clean` removes it.
"""

from __future__ import annotations

import json
import os

from trace_store import errors
from trace_store.files import WRITE, create_file, read_file
from trace_store.frozen import value
from trace_store.maintenance.fsck_objects import Finding
from trace_store.oid import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.store.handle import Store


@value
class Mended:
    """One thing that repair did, or would do.

    Attributes:
        kind: `pack`, `object`, `journal`, `ref`, `head`, `derived` or `file`.
        what: the file, object or ref that it is about.
        detail: what was done, in one sentence.
    """

    kind: str
    what: str
    detail: str


@value
class Lost:
    """An object that was found nowhere.

    Attributes:
        oid: its id, in hex digits.
        named_by: the objects that name it, in hex digits.
        refs: the refs that lead to it.
        why: one sentence.
    """

    oid: str
    named_by: tuple[str, ...]
    refs: tuple[str, ...]
    why: str


@value
class SalvageReport:
    """What a repair did.

    Attributes:
        mended: what was done, in order.
        lost: what was found nowhere.
        kept: the files in `lost-found/`, relative to `.trace`.
        remaining: what a check finds afterwards; without a repair, before.
        report: the file that says the same, relative to `.trace`; "" when there was nothing to write down.
        dry_run: whether nothing was written.
    """

    mended: tuple[Mended, ...] = ()
    lost: tuple[Lost, ...] = ()
    kept: tuple[str, ...] = ()
    remaining: tuple[Finding, ...] = ()
    report: str = ""
    dry_run: bool = False

    def record(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "mended": [{"kind": m.kind, "what": m.what, "detail": m.detail} for m in self.mended],
            "lost": [
                {"object": e.oid, "named_by": [*e.named_by], "refs": [*e.refs], "why": e.why}
                for e in self.lost
            ],
            "kept": list(self.kept),
            "remaining": [
                {"severity": f.severity, "code": f.code, "what": f.what, "detail": f.detail}
                for f in self.remaining
            ],
            "report": self.report or None,
            "dry_run": self.dry_run,
        }

    def as_json(self) -> bytes:
        """Return the bytes of the report for programs."""
        return (json.dumps(self.record(), indent=1, sort_keys=True) + "\n").encode()

    def as_text(self) -> bytes:
        """Return the bytes of the report for people."""
        lines = ["What `trace fsck --repair` did", ""]
        lines += [f"{each.kind} {each.what}: {each.detail}" for each in self.mended]
        lines += ["", "Taken out of use, and kept beside this file:"]
        lines += [f"  {path}" for path in self.kept] or ["  nothing"]
        lines += ["", "Found nowhere:"]
        for lost in self.lost:
            lines.append(f"  {lost.oid}: {lost.why}")
            lines += [f"    named by {oid}" for oid in lost.named_by]
            lines += [f"    on {name}" for name in lost.refs]
        if not self.lost:
            lines.append("  nothing")
        return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")


_HASH_CHARACTERS = 8


def keep_bytes(store: Store, name: str, data: bytes) -> str:
    """Put bytes there under the path of a file, relative to `.trace`; return where they are, relative too.

    Raises:
        StorageError: the disk refuses.
    """
    target = _target(store, name, data)
    store.disk.make_directory(os.path.dirname(target))
    _write(store, target, data)
    _sync(store, target)
    return _relative(store, target)


def is_kept(store: Store, name: str, data: bytes) -> bool:
    """Tell whether these bytes are there already, under the path of this file."""
    return store.disk.exists(_target(store, name, data))


def keep_file(store: Store, path: str, *, remove: bool = True) -> str | None:
    """Give a file a place there, and take it from where it was if asked; return the place, None when it is absent.

    Raises:
        StorageError: the disk refuses.
    """
    data = read_file(store.disk, path)
    if data is None:
        return None
    target = _target(store, _relative(store, path), data)
    store.disk.make_directory(os.path.dirname(target))
    if not _is_durable(store, path) or not store.disk.link(path, target):
        _write(store, target, data)
    _sync(store, target)
    if remove:
        store.disk.remove(path)
        store.disk.sync_directory(os.path.dirname(path))
    return _relative(store, target)


def files_in(store: Store, folder: str) -> list[str]:
    """Return the paths of all files below a folder, sorted."""
    found: list[str] = []
    stack = [folder]
    while stack:
        here = stack.pop()
        folders, files = store.disk.scan(here)
        stack += [os.path.join(here, name) for name in folders]
        found += [os.path.join(here, name) for name in files]
    return sorted(found)


def _target(store: Store, name: str, data: bytes) -> str:
    told = f"{name}-{digest(data).hex()[:_HASH_CHARACTERS]}"
    return os.path.join(store.layout.lost_found_dir, *told.split("/"))


def _write(store: Store, target: str, data: bytes) -> None:
    """Write a file that is there whole or not at all, unless an earlier repair has."""
    disk, scratch = store.disk, store.layout.tmp_dir
    if disk.exists(target):
        return
    disk.make_directory(scratch)
    name = f"{os.path.basename(target)}.{os.getpid()}-{os.urandom(6).hex()}.tmp"
    temporary = os.path.join(scratch, name)
    create_file(disk, temporary, data)
    disk.rename(temporary, target)


def _is_durable(store: Store, path: str) -> bool:
    """Make the content of a file durable, which nobody may have done before; False where it cannot be opened for that.

    Raises:
        StorageError: the disk refuses the sync.
    """
    try:
        fd = store.disk.open(path, WRITE)
    except errors.StorageError:
        return False
    if fd is None:
        return False
    try:
        store.disk.sync(fd)
    finally:
        store.disk.close(fd)
    return True


def _sync(store: Store, target: str) -> None:
    """Make a name durable, with the names of the folders that it is in."""
    folder = os.path.dirname(target)
    while len(folder) >= len(store.layout.root):
        store.disk.sync_directory(folder)
        folder = os.path.dirname(folder)


def _relative(store: Store, path: str) -> str:
    return os.path.relpath(path, store.layout.root).replace(os.sep, "/")

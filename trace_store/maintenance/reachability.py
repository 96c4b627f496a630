"""Reachability: roots, and everything reachable from them.

Invariant: a `ReachableSet` only grows. So most of the walk can run before the lock is taken; repeated under the
lock, it only reads objects that became reachable since.

Invariant: everything that refers to an object is a root: all tips of refs in files, journals and the last published
state; HEAD; reflogs; journal frames, with or without effect; state of operations and importers in `local/`. An
unreadable root, or one whose target is missing, is reported, and then nothing is removed. Tombstones are not roots.
"""

from __future__ import annotations

import binascii
import os
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import OID_BYTES, ObjectId
from trace_store.disk.files import read_file
from trace_store.objects.codec import BLOB, COMMIT, decode, kind_of, links_within
from trace_store.refs.reflog import ReflogEntry, examine_log
from trace_store.store.store import Store


class ReachableSet:
    """The reachable objects.

    Attributes:
        reached: ids of the starts and everything reachable from them, present or not.
        absent: missing objects with one object that links to each; None for a start.
    """

    __slots__ = ("_parents", "_read", "absent", "reached")

    def __init__(self, read: Callable[[bytes], bytes]) -> None:
        """Start empty; `read` returns verified bytes."""
        self._read = read
        self.reached: set[ObjectId] = set()
        self.absent: dict[ObjectId, ObjectId | None] = {}
        self._parents: set[ObjectId] = set()

    def broken(self) -> dict[ObjectId, ObjectId | None]:
        """Return missing parents of commits, with a child of each."""
        return {oid: source for oid, source in self.absent.items() if oid in self._parents}

    def add(self, starts: Iterable[ObjectId], step: Callable[[int], None] | None = None) -> None:
        """Mark everything reachable from some objects; `step` receives the count.

        Raises:
            CorruptObjectError: an object is damaged, so its links are unknown.
            StorageError: the disk refuses.
        """
        reached = self.reached
        stack: list[tuple[ObjectId, ObjectId | None]] = [(oid, None) for oid in starts]
        while stack:
            oid, source = stack.pop()
            if oid in reached:
                continue
            reached.add(oid)
            if step is not None and not len(reached) % 1000:
                step(len(reached))
            try:
                data = self._read(oid)
            except errors.ObjectNotFoundError:
                self.absent[oid] = source
                continue
            if kind_of(data) == BLOB:
                continue
            value = decode(data)
            if value[0] == COMMIT and len(value) > 1 and isinstance(value[1], dict):
                self._parents.update(links_within(value[1].get("parents")))
            stack.extend((link, oid) for link in links_within(value) if link not in reached)


LOG_SUFFIX = ".log"
UNREADABLE, INCOMPLETE = "unreadable", "incomplete"
_HEXADECIMAL = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_BASE64 = re.compile(rb"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{43,}={0,2}")


@value
class Obstacle:
    """A root whose reachable objects are unknown.

    Attributes:
        what: a ref, `HEAD`, or a file below `.trace`.
        reason: UNREADABLE, or INCOMPLETE if its target is missing.
        detail: one sentence.
    """

    what: str
    reason: str
    detail: str


@value
class Roots:
    """Roots of a repository.

    Attributes:
        named: each root object with the first place that refers to it, such as `refs/heads/main`, `HEAD`,
            `journal/3` or `local/imports/5c1e`; reflog entries are in `logs`.
        logs: reflog entries by ref name, oldest first.
        obstacles: unreadable and incomplete roots.
    """

    named: dict[ObjectId, str]
    logs: dict[str, list[ReflogEntry]]
    obstacles: list[Obstacle]

    def logged(self) -> dict[ObjectId, str]:
        """Return each object in a reflog, with the reflog."""
        return {
            oid: f"logs/{name}"
            for name, entries in self.logs.items()
            for entry in entries
            for oid in (entry.old, entry.new)
            if oid is not None
        }


def find_roots(store: Store, *, since: int = 0) -> Roots:
    """Return the current roots of a repository on disk.

    Reflog entries before `since`, in milliseconds, may refer to missing objects.
    """
    return _RootSearch(store, since).run()


class _RootSearch:
    """One search for roots."""

    def __init__(self, store: Store, since: int) -> None:
        self._store = store
        self._since = since
        self._named: dict[ObjectId, str] = {}
        self._obstacles: list[Obstacle] = []

    def run(self) -> Roots:
        with self._store.mutex:
            # Journals come first: a seal writes refs to files before it removes them from a journal, so
            # that a concurrent seal hides nothing.
            self._read_journals()
            self._read_refs()
            self._read_head()
            logs = self._read_logs()
            self._read_local()
        return Roots(self._named, logs, self._obstacles)

    def _add(self, oid: ObjectId | None, where: str) -> None:
        if oid is not None:
            self._named.setdefault(oid, where)

    def _note(self, what: str, reason: str, detail: str) -> None:
        self._obstacles.append(Obstacle(what, reason, detail))

    def _read_journals(self) -> None:
        journal = self._store.journal
        journal.refresh()
        for file in (*journal.files, *journal.lost):
            where = f"journal/{file.number}"
            for kind in file.unknown_kinds():
                detail = f"it holds frames of kind {kind} from a newer version"
                self._note(where, UNREADABLE, detail)
            for frame in file.transactions():
                for oid, _, _ in frame.objects:
                    self._add(oid, where)
                for move in frame.moves:
                    self._add_if_present(move.old, where)
                    self._add_if_present(move.new, where)

    def _add_if_present(self, oid: ObjectId | None, where: str) -> None:
        """Add a root if it is present; a missing one is no problem here."""
        if oid is not None and oid not in self._named and self._store.objects.contains(oid):
            self._named[oid] = where

    def _read_refs(self) -> None:
        refs = self._store.refs
        try:
            for stray in refs.files.strays():
                self._note(stray, UNREADABLE, "not a tip of a ref")
            tips = dict(refs.iterate_tips())
            for name, files in refs.files.iterate():
                tips[name] = (*tips.get(name, ()), *files)
        except errors.StorageError as error:
            self._note("refs", UNREADABLE, str(error))
            return
        for name, values in tips.items():
            for tip in dict.fromkeys(values):
                self._add(tip, name)
                if not self._store.objects.contains(tip):
                    self._note(name, INCOMPLETE, f"missing object {tip}")
        for name, values in self._store.journal.published.tips.all().items():
            for tip in values:
                self._add_if_present(tip, name)

    def _read_head(self) -> None:
        try:
            target = self._store.refs.head_target()
        except (errors.FormatError, errors.StorageError) as error:
            self._note("HEAD", UNREADABLE, str(error))
            return
        if isinstance(target, ObjectId):
            self._add(target, "HEAD")
            if not self._store.objects.contains(target):
                self._note("HEAD", INCOMPLETE, f"missing commit {target}")

    def _read_logs(self) -> dict[str, list[ReflogEntry]]:
        logs: dict[str, list[ReflogEntry]] = {}
        for path, name in self._files(self._store.layout.logs_dir, "logs"):
            where = f"logs/{name}"
            if not name.endswith(LOG_SUFFIX):
                self._note(where, UNREADABLE, "not a reflog")
                continue
            try:
                entries, unreadable = examine_log(self._store.disk, path)
            except errors.StorageError as error:
                self._note(where, UNREADABLE, str(error))
                continue
            if unreadable:
                detail = f"{unreadable} lines are unreadable"
                self._note(where, UNREADABLE, detail)
            logs[name.removesuffix(LOG_SUFFIX)] = entries
            recent = [entry for entry in entries if entry.time >= self._since]
            for oid in {oid for entry in recent for oid in (entry.old, entry.new) if oid}:
                if not self._store.objects.contains(oid):
                    self._note(where, INCOMPLETE, f"missing object {oid}")
        return logs

    def _read_local(self) -> None:
        layout = self._store.layout
        for path, name in self._files(layout.local_dir, "local"):
            if path == layout.published_file or layout.name_of_tip_table(name) is not None:
                continue
            try:
                data = read_file(self._store.disk, path) or b""
            except errors.StorageError as error:
                self._note(f"local/{name}", UNREADABLE, str(error))
                continue
            for oid in ids_within(data):
                self._add_if_present(oid, f"local/{name}")

    def _files(self, folder: str, what: str) -> Iterator[tuple[str, str]]:
        """Yield (path, relative name) of each file below a folder."""
        pending = [(folder, "")]
        while pending:
            path, before = pending.pop()
            try:
                folders, files = self._store.disk.scan(path)
            except errors.StorageError as error:
                self._note(f"{what}/{before}".rstrip("/"), UNREADABLE, str(error))
                continue
            pending += [(os.path.join(path, n), f"{before}{n}/") for n in reversed(folders)]
            yield from ((os.path.join(path, n), before + n) for n in files)


def ids_within(data: bytes) -> Iterator[ObjectId]:
    """Yield everything that may be an id in a text: 64 hex digits, or base64 of ids.

    False positives do no harm: they name no existing object.
    """
    for match in _HEXADECIMAL.finditer(data):
        yield ObjectId(bytes.fromhex(match.group().decode("ascii")))
    for match in _BASE64.finditer(data):
        try:
            packed = b64decode(match.group(), validate=True)
        except binascii.Error:
            continue
        if len(packed) % OID_BYTES == 0:
            for at in range(0, len(packed), OID_BYTES):
                yield ObjectId(packed[at : at + OID_BYTES])

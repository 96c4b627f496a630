"""Roots, and everything reachable from them.

Rule: marking only adds. Begun outside all locks and gone on with inside, it looks only at what is new.

Rule: whatever leads to objects keeps them, whoever wrote it: every tip of every ref, in its files, in the journals and
in what was published last; HEAD; the reflogs; each object that a frame of a journal holds or names, with or without
effect; what operations in progress and importers remember in `local/`. A root that is not readable, or leads to nothing
here, is reported: whoever removes objects then removes none. What is told of removed objects (tombstones) is no root.
"""

from __future__ import annotations

import binascii
import os
import re
from base64 import b64decode

from trace_store import errors
from trace_store.files import read_file
from trace_store.frozen import value
from trace_store.objects.codec import BLOB, COMMIT, decode, kind_of, links_within
from trace_store.oid import OID_BYTES, ObjectId
from trace_store.refs.database import RefDatabase
from trace_store.refs.reflog import ReflogEntry, examine_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trace_store.store.handle import Store


class Marking:
    """The objects that are reachable.

    Attributes:
        reached: the ids of the starts and of everything they lead to, here or not.
        absent: of objects that are not here, the one that names each; None for a start.
    """

    __slots__ = ("_parents", "_read", "absent", "reached")

    def __init__(self, read: Callable[[bytes], bytes]) -> None:
        """Begin with nothing; `read` returns an object's bytes, hash-checked."""
        self._read = read
        self.reached: set[ObjectId] = set()
        self.absent: dict[ObjectId, ObjectId | None] = {}
        self._parents: set[ObjectId] = set()

    def broken(self) -> dict[ObjectId, ObjectId | None]:
        """Return the commits that are not here though a commit has them for a parent, with one that names each."""
        return {oid: namer for oid, namer in self.absent.items() if oid in self._parents}

    def add(self, starts: Iterable[ObjectId], step: Callable[[int], None] | None = None) -> None:
        """Mark what some objects lead to, through every link; `step` is told now and then how many are marked.

        Raises:
            CorruptObjectError: an object is damaged, so that nobody knows what it leads to.
            StorageError: the disk refuses it.
        """
        reached = self.reached
        stack: list[tuple[ObjectId, ObjectId | None]] = [(oid, None) for oid in starts]
        while stack:
            oid, namer = stack.pop()
            if oid in reached:
                continue
            reached.add(oid)
            if step is not None and not len(reached) % 1000:
                step(len(reached))
            try:
                data = self._read(oid)
            except errors.ObjectNotFoundError:
                self.absent[oid] = namer
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
    """A root of which nobody knows all that it leads to.

    Attributes:
        what: a ref, `HEAD`, or a file below `.trace`.
        reason: UNREADABLE, or INCOMPLETE when it names an object that is not here.
        detail: one sentence.
    """

    what: str
    reason: str
    detail: str


@value
class Roots:
    """What keeps objects.

    Attributes:
        named: each object that something names, with the first place that does, such as `refs/heads/main`, `HEAD`,
            `journal/3` or `local/imports/5c1e`; those that only a reflog names are in `logs`.
        logs: the entries of each reflog that has a file, by the name of the ref, oldest first.
        obstacles: what cannot be read, and what leads to a commit that is not here.
    """

    named: dict[ObjectId, str]
    logs: dict[str, list[ReflogEntry]]
    obstacles: list[Obstacle]

    def logged(self) -> dict[ObjectId, str]:
        """Return each object that a reflog names, with that reflog."""
        return {
            oid: f"logs/{name}"
            for name, entries in self.logs.items()
            for entry in entries
            for oid in (entry.old, entry.new)
            if oid is not None
        }


def find_roots(store: Store, *, since: int = 0) -> Roots:
    """Return the roots of a repository on disk, as they are now; changes nothing.

    An entry of a reflog from before `since`, in milliseconds, is no obstacle when what it names is not here.
    """
    return _Search(store, since).run()


class _Search:
    """One look at everything that names objects."""

    def __init__(self, store: Store, since: int) -> None:
        self._store = store
        self._since = since
        self._named: dict[ObjectId, str] = {}
        self._obstacles: list[Obstacle] = []

    def run(self) -> Roots:
        with self._store.mutex:
            # In this order: what a seal takes out of a journal meanwhile is found in the files that it wrote before.
            self._look_at_journals()
            self._look_at_refs()
            self._look_at_head()
            logs = self._read_logs()
            self._look_at_local()
        return Roots(self._named, logs, self._obstacles)

    def _name(self, oid: ObjectId | None, where: str) -> None:
        if oid is not None:
            self._named.setdefault(oid, where)

    def _note(self, what: str, reason: str, detail: str) -> None:
        self._obstacles.append(Obstacle(what, reason, detail))

    def _look_at_journals(self) -> None:
        journal = self._store.journal
        journal.refresh()
        for file in (*journal.files, *journal.lost):
            where = f"journal/{file.number}"
            for kind in file.unknown_kinds():
                detail = f"it holds lasting frames of kind {kind}, from a newer version"
                self._note(where, UNREADABLE, detail)
            for frame in file.transactions():
                for oid, _, _ in frame.objects:
                    self._name(oid, where)
                for move in frame.moves:
                    self._name_if_here(move.old, where)
                    self._name_if_here(move.new, where)

    def _name_if_here(self, oid: ObjectId | None, where: str) -> None:
        """Name what is a root where it is here, and no loss where it is not: nobody counts on finding it."""
        if oid is not None and oid not in self._named and self._store.objects.contains(oid):
            self._named[oid] = where

    def _look_at_refs(self) -> None:
        refs = self._store.refs
        assert isinstance(refs, RefDatabase)
        try:
            for stray in refs.files.strays():
                self._note(stray, UNREADABLE, "it is no tip of a ref")
            tips = dict(refs.iterate_tips())
            for name, files in refs.files.iterate():
                tips[name] = (*tips.get(name, ()), *files)
        except errors.StorageError as error:
            self._note("refs", UNREADABLE, str(error))
            return
        for name, values in tips.items():
            for tip in dict.fromkeys(values):
                self._name(tip, name)
                if not self._store.objects.contains(tip):
                    self._note(name, INCOMPLETE, f"object {tip} is not here")
        for name, values in self._store.journal.published.tips.all().items():
            for tip in values:
                self._name_if_here(tip, name)

    def _look_at_head(self) -> None:
        try:
            target = self._store.refs.head_target()
        except (errors.FormatError, errors.StorageError) as error:
            self._note("HEAD", UNREADABLE, str(error))
            return
        if isinstance(target, ObjectId):
            self._name(target, "HEAD")
            if not self._store.objects.contains(target):
                self._note("HEAD", INCOMPLETE, f"commit {target} is not here")

    def _read_logs(self) -> dict[str, list[ReflogEntry]]:
        logs: dict[str, list[ReflogEntry]] = {}
        for path, name in self._files(self._store.layout.logs_dir, "logs"):
            where = f"logs/{name}"
            if not name.endswith(LOG_SUFFIX):
                self._note(where, UNREADABLE, "it is no reflog")
                continue
            try:
                entries, unreadable = examine_log(self._store.disk, path)
            except errors.StorageError as error:
                self._note(where, UNREADABLE, str(error))
                continue
            if unreadable:
                detail = f"{unreadable} of its lines cannot be read"
                self._note(where, UNREADABLE, detail)
            logs[name.removesuffix(LOG_SUFFIX)] = entries
            recent = [entry for entry in entries if entry.time >= self._since]
            for oid in {oid for entry in recent for oid in (entry.old, entry.new) if oid}:
                if not self._store.objects.contains(oid):
                    self._note(where, INCOMPLETE, f"object {oid} is not here")
        return logs

    def _look_at_local(self) -> None:
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
                self._name_if_here(oid, f"local/{name}")

    def _files(self, folder: str, what: str) -> Iterator[tuple[str, str]]:
        """Yield (path, name relative to the folder) of each file below one."""
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
    """Yield all that may be an id in a text: 64 hex digits, or such bytes one after the other in base64.

    Much that is none is found as well; it names no object that is here.
    """
    for found in _HEXADECIMAL.finditer(data):
        yield ObjectId(bytes.fromhex(found.group().decode("ascii")))
    for found in _BASE64.finditer(data):
        try:
            packed = b64decode(found.group(), validate=True)
        except binascii.Error:
            continue
        if len(packed) % OID_BYTES == 0:
            for at in range(0, len(packed), OID_BYTES):
                yield ObjectId(packed[at : at + OID_BYTES])

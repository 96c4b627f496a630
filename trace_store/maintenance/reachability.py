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
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import TypeAlias

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import OID_BYTES, ObjectId
from trace_store.disk.files import read_file, stamp
from trace_store.maintenance.pack_marks import PackLostError, PackMarks
from trace_store.objects.codec import BLOB, COMMIT, decode, kind_of, links_within
from trace_store.odb.pack import NO_DESCRIPTORS
from trace_store.refs.reflog import ReflogEntry, examine_log
from trace_store.store.store import Store

_Step: TypeAlias = tuple[ObjectId, ObjectId | None, bool]
"""An object to follow, the object that links to it, and whether as to its parent."""
_PENDING, _FOLLOWED = 1, 2
KNOWN = 3
"""The mark of an object that is reachable, but neither followed nor counted."""
_WORTH = 8
"""Objects of a frame that are read together in the time that one takes by itself."""


class ReachableSet:
    """The reachable objects.

    Attributes:
        reached: ids of the starts and everything reachable from them, present or not, except for known objects and
            those of the marked packs.
        absent: missing objects with one object that links to each; None for a start.
        linked: those watched objects that some reached object links to.
    """

    __slots__ = (
        *("_broken", "_followed", "_known", "_marks", "_read", "_unpacked", "_watched"),
        *("absent", "linked", "reached"),
    )

    def __init__(
        self,
        read: Callable[[bytes], bytes],
        known: Container[bytes] = frozenset(),
        watched: frozenset[ObjectId] = frozenset(),
        marks: PackMarks | None = None,
    ) -> None:
        """Start empty.

        Args:
            read: returns verified bytes.
            known: reachable objects that need not be followed.
            watched: the objects that `linked` may name.
            marks: the packs whose objects are marked instead of held by id; KNOWN ones need not be followed.
        """
        self._read = read
        self._known = known
        self._watched = watched
        self._marks = marks
        self._followed = self._unpacked = 0
        self._broken: dict[ObjectId, ObjectId | None] = {}
        self.reached: set[ObjectId] = set()
        self.absent: dict[ObjectId, ObjectId | None] = {}
        self.linked: set[ObjectId] = set()

    def __contains__(self, oid: object) -> bool:
        assert isinstance(oid, bytes)
        is_marked = self._marks is not None and any(self._marks.values(oid))
        return is_marked or oid in self.reached or oid in self._known

    def has_new(self, oid: ObjectId) -> bool:
        """Return True if an object was reached that was not known."""
        marked = () if self._marks is None else self._marks.values(oid)
        return oid in self.reached or any(mark in (_PENDING, _FOLLOWED) for mark in marked)

    def count(self) -> int:
        """Return the number of reached objects, except for known ones."""
        marked = 0 if self._marks is None else self._marks.count(_PENDING, _FOLLOWED)
        return marked + len(self.reached)

    def broken(self) -> dict[ObjectId, ObjectId | None]:
        """Return missing parents of commits, with a child of each."""
        return self._broken

    def add(self, starts: Iterable[ObjectId], step: Callable[[int], None] | None = None) -> None:
        """Mark everything reachable from some objects; `step` receives the count.

        Raises:
            CorruptObjectError: an object is damaged, so its links are unknown.
            PackLostError: a marked pack is damaged or was removed.
            StorageError: the disk refuses.
        """
        stack: list[_Step] = [(oid, None, False) for oid in starts]
        while True:
            while stack:
                oid, source, is_parent = stack.pop()
                if not self._mark(oid) and oid not in self.reached and oid not in self._known:
                    self.reached.add(oid)
                    self._tell(1, step)
                    stack += self._follow(oid, source)
                if is_parent and oid in self.absent:
                    self._broken[oid] = source
            last = None if self._marks is None else self._marks.last(_PENDING)
            if last is None:
                return
            # If links also lead forwards, as between objects that were loose, a frame has few to follow at a time.
            is_worthwhile = self._unpacked <= _WORTH * self._followed
            follow = self._follow_frame if is_worthwhile else self._follow_packed
            stack = follow(*last, step)

    def _mark(self, oid: ObjectId) -> bool:
        """Mark an object in a pack, to be followed later; False if no marked pack has it."""
        found = None if self._marks is None else self._marks.find(oid)
        if found is None:
            return False
        marks, number = found
        marks[number] = marks[number] or _PENDING
        return True

    def _tell(self, followed: int, step: Callable[[int], None] | None) -> None:
        before, self._followed = self._followed, self._followed + followed
        if step is not None and before // 1000 != self._followed // 1000:
            step(self._followed)

    def _follow(self, oid: ObjectId, source: ObjectId | None) -> list[_Step]:
        """Return what an object links to, parents first, so that they are followed last and the stack stays short."""
        try:
            data = self._read(oid)
        except errors.ObjectNotFoundError:
            self.absent[oid] = source
            return []
        parents, others = self._links(data)
        steps: list[_Step] = [(link, oid, True) for link in parents]
        return steps + [(link, oid, False) for link in others if link not in self.reached]

    def _follow_packed(
        self, name: str, number: int, step: Callable[[int], None] | None
    ) -> list[_Step]:
        """Follow one pending object of a pack; return its links."""
        assert self._marks is not None
        oid = self._marks.id_of(name, number)
        self._marks.of(name)[number] = _FOLLOWED
        self._tell(1, step)
        return self._follow(oid, None)

    def _follow_frame(
        self, name: str, last: int, step: Callable[[int], None] | None
    ) -> list[_Step]:
        """Follow the pending objects of the frame with the last of them; return links to what has no number here.

        Links lead backwards, so one pass finds everything in the frame that its own objects link to.
        """
        assert self._marks is not None
        marks, hidden = self._marks.of(name), self._marks.hidden
        try:
            frame = self._marks.packs.read_frame(name, last)
        except (errors.CorruptObjectError, errors.CorruptIndexError, errors.StorageError) as error:
            if error.data.get("errno") in NO_DESCRIPTORS:
                raise
            raise PackLostError(f"pack {name[:12]} is unreadable: {error}", pack=name) from error
        self._unpacked += len(frame.objects)
        steps: list[_Step] = []
        followed, number = 0, last
        while number >= 0:
            marks[number] = _FOLLOWED
            followed += 1
            parents, others = self._links(frame.objects[number - frame.first])
            near = frame.linked_numbers(number) if others else {}
            for link in others:
                target = near.get(link)
                if target is None or link in hidden:
                    steps.append((link, frame.id_of(number), link in parents))
                elif not marks[target]:
                    marks[target] = _PENDING
            number = marks.rfind(_PENDING, frame.first, number)
        self._tell(followed, step)
        return steps

    def _links(self, data: bytes) -> tuple[list[ObjectId], list[ObjectId]]:
        """Return the parents of a commit, and all links of an object."""
        if kind_of(data) == BLOB:
            return [], []
        value = decode(data)
        is_commit = value[0] == COMMIT and len(value) > 1 and isinstance(value[1], dict)
        parents = links_within(value[1].get("parents")) if is_commit else []
        others = links_within(value)
        if self._watched:
            self.linked.update(self._watched.intersection(others))
        return parents, others


LOG_SUFFIX = ".log"
UNREADABLE, INCOMPLETE = "unreadable", "incomplete"
LOCAL = "local/"
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
        files: stamps of the files in `local/`, by their names there.
        unread: names of those files that were not read, since their stamps are known.
        unseen: ids in those files of objects that do not exist.
    """

    named: dict[ObjectId, str]
    logs: dict[str, list[ReflogEntry]]
    obstacles: list[Obstacle]
    files: dict[str, str]
    unread: frozenset[str]
    unseen: frozenset[ObjectId]

    def logged(self) -> dict[ObjectId, str]:
        """Return each object in a reflog, with the reflog."""
        return {
            oid: f"logs/{name}"
            for name, entries in self.logs.items()
            for entry in entries
            for oid in (entry.old, entry.new)
            if oid is not None
        }


def find_roots(
    store: Store, *, since: int = 0, known_files: Mapping[str, str] | None = None
) -> Roots:
    """Return the current roots of a repository on disk.

    Args:
        store: the repository.
        since: reflog entries before this time, in milliseconds, may refer to missing objects.
        known_files: stamps of files in `local/` that need not be read again.
    """
    return _RootSearch(store, since, known_files or {}).run()


class _RootSearch:
    """One search for roots."""

    def __init__(self, store: Store, since: int, known_files: Mapping[str, str]) -> None:
        self._store = store
        self._since = since
        self._known_files = known_files
        self._files: dict[str, str] = {}
        self._unread: set[str] = set()
        self._unseen: set[ObjectId] = set()
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
        return Roots(
            self._named,
            logs,
            self._obstacles,
            self._files,
            frozenset(self._unread),
            frozenset(self._unseen),
        )

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
        if oid is None or oid in self._named or oid in self._unseen:
            return
        if self._store.objects.contains(oid):
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
        for path, name in self._below(self._store.layout.logs_dir, "logs"):
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
        disk, layout = self._store.disk, self._store.layout
        not_roots = layout.published_file, layout.reachable_file
        for path, name in self._below(layout.local_dir, "local"):
            if path in not_roots or layout.name_of_tip_table(name) is not None:
                continue
            if os.path.dirname(path) == layout.kept_packs_dir:
                continue  # copies of packs
            try:
                self._read_local_file(path, name, stamp(disk, path))
            except errors.StorageError as error:
                self._note(f"local/{name}", UNREADABLE, str(error))

    def _read_local_file(self, path: str, name: str, taken: object) -> None:
        if isinstance(taken, tuple):
            self._files[name] = str(taken)
            if self._known_files.get(name) == str(taken):
                self._unread.add(name)
                return
        for oid in ids_within(read_file(self._store.disk, path) or b""):
            self._add_if_present(oid, f"{LOCAL}{name}")
            if oid not in self._named:
                self._unseen.add(oid)

    def _below(self, folder: str, what: str) -> Iterator[tuple[str, str]]:
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

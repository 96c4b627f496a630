"""fsck of objects: hash, schema, canonical form, links."""

from __future__ import annotations

import os

from trace_store import errors, journal, maintenance
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId, hash_object
from trace_store.disk.files import MAXIMUM_READ_BYTES, files_below, read_file
from trace_store.journal.file import FAILED, JournalFile, open_journal
from trace_store.journal.frames import END
from trace_store.journal.view import RefsFold, journal_numbers
from trace_store.objects.codec import (
    BLOB,
    COMMIT,
    LIST,
    TAG,
    decode_checked,
    inspect,
    is_plain_blob,
    kind_of,
    links,
)
from trace_store.objects.commit import Commit, Tag, read_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trace_store.journal.frames import Frame
    from trace_store.journal.journal import Journal
    from trace_store.odb.database import ObjectDatabase
    from trace_store.store.store import Store

    Walk = Callable[[], Iterable[tuple[bytes, bytes]]]


ERROR = "error"
WARNING = "warning"
INFO = "info"


@value
class Finding:
    """A problem or notable fact.

    Attributes:
        code: a stable code.
        severity: `error` (content is damaged or missing), `warning`, or `info`.
        what: the object, ref or file.
        detail: one sentence.
    """

    code: str
    severity: str
    what: str
    detail: str


def examine(oid: ObjectId, data: bytes, where: str) -> tuple[list[Finding], str, tuple[bytes, ...]]:
    """Check an object whose hash is right; return the findings, its kind, and its links without order.

    The kind is "" for an object that is not readable, and BLOB for one that need not be read.
    """
    if is_plain_blob(data):
        return [], BLOB, ()
    findings: list[Finding] = []
    try:
        kind = kind_of(data)
        value, is_canonical, named = inspect(data)
        if not is_canonical:
            findings.append(
                Finding("object-not-canonical", ERROR, str(oid), f"a {kind} in {where}")
            )
        if kind == COMMIT:
            Commit.of(value)
        elif kind == TAG:
            Tag.of(value)
        elif kind not in (BLOB, LIST):
            detail = f"kind {kind[:40]!r}"
            findings.append(Finding("object-unknown-kind", INFO, str(oid), detail))
    except (errors.FormatError, errors.CorruptObjectError, errors.InvalidInputError) as error:
        detail = f"in {where}: {error}"
        return [*findings, Finding("object-unreadable", ERROR, str(oid), detail)], "", ()
    return findings, kind, () if kind == BLOB else tuple(dict.fromkeys(named))


PRESENT, IS_COMMIT = 1, 2
"""Marks of the objects of a proven pack."""


class ObjectChecks:
    """Checks each object once and records its links; contains the objects with a sound copy.

    Attributes:
        links: links by object id, without those of proven packs.
    """

    def __init__(self, database: ObjectDatabase) -> None:
        self.links: dict[bytes, tuple[bytes, ...]] = {}
        self._database = database
        self._proven = maintenance.pack_marks.PackMarks(database.packs)
        self._others: set[bytes] = set()
        self._commits: set[bytes] = set()
        self._named: set[bytes] = set()
        self._rereads: list[Walk] = []
        self._are_readable = True

    def __contains__(self, oid: object) -> bool:
        assert isinstance(oid, bytes)
        return oid in self._others or self._is_proven(oid)

    def __iter__(self) -> Iterator[bytes]:
        yield from self._others
        for name in self._proven:
            yield from self._proven.ids_with(name, PRESENT)
            yield from self._proven.ids_with(name, IS_COMMIT)

    def _is_proven(self, oid: bytes) -> bool:
        try:
            return self._proven.find(oid) is not None
        except (errors.FormatError, errors.StorageError):
            return self._database.contains(oid)  # a pack was consolidated meanwhile

    def add_proven(self, name: str, marks: bytes, named: Iterable[bytes], reread: Walk) -> None:
        """Add the objects of a pack that was proven sound.

        Args:
            name: the name of the pack.
            marks: PRESENT or IS_COMMIT for each object.
            named: links that may lead outside.
            reread: yields the objects again, to find out who links to a missing one.
        """
        self._named.update(named)
        self._rereads.append(reread)
        try:
            self._proven.add(name)[:] = marks
        except errors.StorageError:
            return  # consolidated meanwhile

    def is_commit(self, oid: bytes) -> bool:
        """Return True if a checked object is a commit."""
        if oid in self._commits:
            return True
        try:
            return IS_COMMIT in self._proven.values(oid)
        except (errors.FormatError, errors.StorageError):
            return kind_of(self._database.read(oid)) == COMMIT

    def check_named(self, oid: ObjectId, data: bytes, where: str) -> Iterator[Finding]:
        """Check bytes stored under an id."""
        if hash_object(data) != oid:
            yield Finding("object-damaged", ERROR, str(oid), f"hash mismatch in {where}")
        else:
            yield from self.check(oid, data, where)

    def check(self, oid: ObjectId, data: bytes, where: str) -> Iterator[Finding]:
        """Check an object whose hash is right."""
        if oid in self:
            return
        self._others.add(oid)
        findings, kind, named = examine(oid, data, where)
        yield from findings
        if kind == COMMIT:
            self._commits.add(oid)
        self._are_readable = self._are_readable and kind != ""
        if kind not in ("", BLOB):
            self.links[oid] = named

    def read_commit(self, oid: bytes) -> Commit:
        """Return a commit, whose fields are not checked again if all objects have valid ones; raises as `decode`."""
        if self._are_readable:
            try:
                return Commit.of(decode_checked(self._database.read(oid)), is_checked=True)
            except errors.CorruptObjectError:
                pass
        return read_commit(oid, self._database.read)

    def reachable(self, roots: Iterable[bytes]) -> set[bytes]:
        """Return everything reachable from roots, including missing objects."""
        rereads, self._rereads = self._rereads, []
        for walk in rereads:
            for referrer, data in walk():
                self.links.setdefault(referrer, tuple(dict.fromkeys(links(data))))
        visited: set[bytes] = set()
        stack: list[bytes] = [root for root in roots if root in self]
        while stack:
            oid = stack.pop()
            if oid not in visited:
                visited.add(oid)
                stack.extend(self.links.get(oid, ()))
        return visited

    def missing(
        self, roots: Iterable[ObjectId], purged: frozenset[bytes] = frozenset()
    ) -> Iterator[Finding]:
        """Yield missing link targets: errors if reachable from a ref and not purged."""
        named = self._named.union(*self.links.values()) - self._others
        if not any(oid not in self for oid in self._proven.lacking(named)):
            return
        reachable = self.reachable(roots)
        for referrer, names in sorted(self.links.items()):
            for name in dict.fromkeys(names):
                if name in self or name in purged:
                    continue
                if referrer in reachable:
                    yield Finding(
                        "object-missing", ERROR, name.hex(), f"linked from {referrer.hex()}"
                    )
                else:
                    detail = f"linked from unreachable {referrer.hex()}"
                    yield Finding("unreachable-object-missing", INFO, name.hex(), detail)


def check_journals(store: Store, objects: ObjectChecks) -> Iterator[Finding]:
    """Yield the problems of journals, checking their objects."""
    with store.mutex:
        journal = store.journal
        journal.refresh()
        files = list(journal.files)
        journal.published.tips.all()
        if journal.published.damaged or journal.published.tips.lacking:
            yield Finding("published-unreadable", WARNING, "local/published", "taken as absent")
    for file in files:
        name = f"journal/{file.number}"
        for kind in file.unknown_kinds():
            detail = f"frames of kind {kind} from a newer version"
            yield Finding("journal-unknown-frame", WARNING, name, detail)
        for frame in file.frames:
            for oid, offset, size in frame.objects:
                data = journal.read_from(file, offset, size)
                yield from objects.check_named(oid, data, name)
        yield from _check_tail(store, file, files)
    yield from _check_places(store, journal, files)
    if store.disk.exists(store.layout.lost_found_dir):
        yield from _check_set_aside(store, objects)
    fold = RefsFold()
    for file in files:
        for frame in file.transactions():
            if frame.moves and not fold.apply(frame):
                names = ", ".join(sorted({move.name for move in frame.moves}))
                detail = f"a move of {names} expected a different value"
                yield Finding("journal-move-without-effect", INFO, f"journal/{file.number}", detail)


def is_distrusted(store: Store, file: JournalFile) -> bool:
    """Return True if a sync of the journal failed.

    Its successor decides what has effect.
    """
    return file.failed or file.status(store.disk) is FAILED


def trailing_data(store: Store, file: JournalFile) -> bytes:
    """Return the data after a journal's valid frames; b"" if it is preallocated space."""
    if file.frames and file.frames[-1].kind == END:
        return b""
    size = store.disk.size(file.fd)
    if not file.end < size <= MAXIMUM_READ_BYTES or file.is_free_behind(store.disk):
        return b""
    return store.disk.read_at(file.fd, file.end, size - file.end)


def lost_transactions(rest: bytes, files: list[JournalFile]) -> list[Frame]:
    """Return the complete transactions in `rest` that no journal repeats.

    After a failed sync the successor repeats them, so that they have effect.
    """
    known = [frame for file in files for frame in file.transactions()]
    frames = journal.recovery.transactions_in(rest)
    return [frame for frame in frames if not any(frame.has_same_content(other) for other in known)]


def _check_tail(store: Store, file: JournalFile, files: list[JournalFile]) -> Iterator[Finding]:
    name, rest = f"journal/{file.number}", trailing_data(store, file)
    if not rest:
        return
    distrusted = is_distrusted(store, file)
    lost = [] if distrusted else lost_transactions(rest, files)
    if store.disk.exists(store.layout.lost_found_dir) and maintenance.lost_found.is_kept(
        store, name, rest
    ):
        detail = f"{len(rest)} bytes after the last complete frame are in lost-found"
        yield Finding("journal-tail", INFO, name, detail)
    elif lost:
        detail = f"{len(lost)} complete transactions follow damaged bytes at {file.end}"
        yield Finding("journal-damaged", ERROR, name, f"{detail} and have no effect")
    elif distrusted or journal.recovery.is_cut_off(rest, file.end):
        detail = f"{len(rest)} bytes after the last complete frame have no effect"
        yield Finding("journal-tail", INFO, name, detail)
    else:
        detail = f"the last frame, at {file.end}, has a wrong checksum and no effect"
        yield Finding("journal-damaged", WARNING, name, detail)


def _check_set_aside(store: Store, objects: ObjectChecks) -> Iterator[Finding]:
    """Yield set-aside parts of damaged journals that hold missing objects."""
    folder = os.path.join(store.layout.lost_found_dir, "journal")
    for path in files_below(store.disk, folder):
        data = read_file(store.disk, path) or b""
        missing = {
            oid
            for frame in journal.recovery.transactions_in(data)
            for oid, _, _ in frame.objects
            if oid not in objects and not store.objects.contains(oid)
        }
        if missing:
            what = os.path.relpath(path, store.layout.root).replace(os.sep, "/")
            detail = f"{len(missing)} objects of complete transactions after damage are missing"
            yield Finding("journal-aside", ERROR, what, detail)


def _check_places(store: Store, journal: Journal, files: list[JournalFile]) -> Iterator[Finding]:
    """Yield journals that are missing or have a wrong number."""
    disk, layout, published = store.disk, store.layout, journal.published
    present = set(journal_numbers(disk, layout))
    for number in sorted(present):
        file = open_journal(disk, layout.journal_file(number), number)
        if file is None:
            continue
        if file.is_misplaced(disk):
            detail = "it does not follow the journal before it"
            yield Finding("journal-misplaced", ERROR, f"journal/{number}", detail)
        disk.close(file.fd)
    if published.stamp is None or published.damaged:
        return  # unknown whether a missing journal was sealed
    sealed = published.sealed.highest
    for file in files:
        for number, _ in file.frames[0].closes if file.frames else ():
            if number not in present and sealed < number < file.number:
                detail = f"journal {file.number} follows it, but it was never sealed"
                yield Finding("journal-missing", ERROR, f"journal/{number}", detail)

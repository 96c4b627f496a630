"""Storage of imported source files, so that they can be restored byte for byte.

A stored file is a ref `refs/transcripts/<format>/<session>/<id>` to its last segment; a subagent's is below
`<session>/agents/<agent>/`. The name has the abbreviated segment id, so the ref never moves: a file that has grown
gets a new ref, and the old one is deleted.

Invariant: writes only what `transcripts` lays out, and deletes only refs of files that are a prefix of the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId, digest
from trace_store.contracts import ANY, RefEdit
from trace_store.contracts.ref_names import FILES
from trace_store.errors import CorruptObjectError, ObjectNotFoundError
from trace_store.importers.build_commits import RecordPlaces, load_places
from trace_store.importers.input_files import Input
from trace_store.importers.write import ImportLog
from trace_store.objects.content import ObjectCollector
from trace_store.store.store import Store
from trace_store.transcripts.layout import LaidSegment, Pages, StoredBytes, lay_out
from trace_store.transcripts.segments import CommitCache, Segment, restore_segment, segments_of

Read = Callable[[bytes], bytes]


@value
class ResumeCut:
    """Where to resume the layout of a grown file.

    Attributes:
        begins: byte offset.
        after: id of the segment before it, or "".
        places: record places from there on, from `RecordPlaces.save`.
    """

    begins: int
    after: str
    places: list[list[Any]]


def resume_places(store: Store, file: Input, cut: ResumeCut | None) -> RecordPlaces:
    """Return the saved record places.

    Raises:
        InvalidInputError, TypeError, ValueError: the state is from another version.
        ObjectNotFoundError, CorruptObjectError: objects that it refers to are missing.
    """
    if cut is None:
        return RecordPlaces()
    places = load_places(cut.places)
    if not 0 <= cut.begins <= file.size:
        raise ValueError("file was truncated")
    if cut.after:
        Segment.decode(store.objects.read(ObjectId.parse(cut.after)))
    for oid in {placed.commit for placed in places.values()}:
        if not store.objects.contains(oid):
            raise ObjectNotFoundError("missing commit of the file", oid=oid)
    return RecordPlaces(places)


@value
class ArchiveResult:
    """Result of storing a file.

    Attributes:
        cut: where to resume when the file has grown; None if it must be read whole.
        steady: True if the file did not change since it was read.
    """

    cut: ResumeCut | None
    steady: bool


def keep_file(
    store: Store,
    log: ImportLog,
    file: Input,
    folder: str,
    record_places: RecordPlaces,
    cut: ResumeCut | None,
    literal: StoredBytes | None = None,
) -> ArchiveResult:
    """Store the current file.

    Args:
        store: the repository.
        log: the import's.
        file: the imported file.
        folder: folder of the session's refs below `refs/transcripts/`.
        record_places: places of its records.
        cut: where an earlier import ended.
        literal: as in `lay_out`.

    Raises:
        RefChangedError: another process changed the refs.
        StorageError: the disk refused.
        NotFoundError, FormatError: the saved state is wrong.
    """
    begins, after = 0, None
    if cut is not None and cut.after:
        oid = ObjectId.parse(cut.after)
        begins, after = cut.begins, (oid, Segment.decode(store.objects.read(oid)))
    gathering = ObjectCollector()
    pages = record_places.pages or Pages(file.read_at)
    laid = lay_out(
        pages.reread,
        file.size,
        record_places.places,
        gathering,
        begins=begins,
        after=after,
        literal=literal,
    )
    if not laid:
        return ArchiveResult(None, steady=False)  # the file was truncated
    if cut is not None:
        _check(store, laid[0].segment, gathering)
    steady = not any(piece.changed for piece in laid)
    name = f"{FILES}{folder}/{laid[-1].oid.short()}"
    edits: list[RefEdit] = []
    if store.refs.read(name) is None:
        edits.append(RefEdit(name, laid[-1].oid, ANY))
    mine = [each.segment for each in laid]
    for other, tip in _stored_files(store, folder):
        relation = OTHER if other == name else _compare(store, file, mine, tip, gathering)
        if relation == OLDER:
            edits.append(RefEdit(other, None, tip))
        elif relation == NEWER:
            return ArchiveResult(
                None, steady
            )  # a newer version is stored; do not save state for this one
    if edits:
        log.write(store, dict(gathering.objects), edits)
    next_cut = _next_cut(laid, record_places)
    return ArchiveResult(next_cut, steady and next_cut is not None)


def _check(store: Store, segment: Segment, gathering: ObjectCollector) -> None:
    """Verify the first new segment, whose record places were saved."""
    restore_segment(segment, _object_reader(store, gathering))


def _object_reader(store: Store, gathering: ObjectCollector) -> Read:
    """Return a reader of stored and new objects."""
    new_objects = {bytes(oid): data for oid, data in gathering.objects}

    def read(oid: bytes) -> bytes:
        data = new_objects.get(bytes(oid))
        return store.objects.read(oid) if data is None else data

    return read


def is_kept(store: Store, folder: str, file: Input | None = None) -> bool:
    """Return True if a source file of a session is stored, and equals `file` if given.

    Args:
        store: the repository.
        folder: as in `keep_file`.
        file: the file to compare.
    """
    return any(file is None or _equals(store, file, tip) for _, tip in _stored_files(store, folder))


def _equals(store: Store, file: Input, tip: ObjectId) -> bool:
    try:
        kept = segments_of(tip, store.objects.read)
    except (ObjectNotFoundError, CorruptObjectError):
        return False
    return kept[-1].end == file.size and _has_content(file, kept, ())


def _stored_files(store: Store, folder: str) -> list[tuple[str, ObjectId]]:
    """Return the refs of a session's or subagent's own files."""
    place = f"{FILES}{folder}/"
    return [(ref, tip) for ref, tip in store.refs.iterate(place) if "/" not in ref[len(place) :]]


OLDER, NEWER, OTHER = "older", "newer", "other"


def _compare(
    store: Store, file: Input, mine: Sequence[Segment], tip: ObjectId, gathering: ObjectCollector
) -> str:
    """Return whether a stored file is OLDER (a prefix of this one), NEWER, or OTHER.

    Args:
        store: the repository.
        file: this file.
        mine: its segments, or the last of them.
        tip: last segment of the stored file.
        gathering: objects of this file that are not stored yet.
    """
    read = store.objects.read
    try:
        kept, reached = _segments_after(tip, mine[0].previous, read)
        if not reached and mine[0].previous is not None:
            mine = [*segments_of(mine[0].previous, read), *mine]
        if not kept or kept[-1].end <= mine[-1].end:
            if _has_content(file, kept, mine):
                return OLDER
            # Redacted files differ from the file on disk: compare the stored bytes.
            return (
                OLDER if _is_stored_prefix(kept, mine, _object_reader(store, gathering)) else OTHER
            )
        if _is_prefix(mine[:-1], kept):
            cache: CommitCache = {}
            data = b"".join(restore_segment(s, read, cache) for s in kept[len(mine) - 1 :])
            return NEWER if digest(data[: mine[-1].size]).hex() == mine[-1].hash else OTHER
    except (ObjectNotFoundError, CorruptObjectError):
        pass  # an import never removes a damaged file
    return OTHER


def _segments_after(tip: ObjectId, stop: ObjectId | None, read: Read) -> tuple[list[Segment], bool]:
    """Return the segments after `stop` in order, and True if `stop` was reached.

    A grown file shares all but its last segments with the stored one.
    """
    segments: list[Segment] = []
    oid: ObjectId | None = tip
    while oid is not None and oid != stop:
        segments.append(Segment.decode(read(oid)))
        oid = segments[-1].previous
    return segments[::-1], stop is not None and oid == stop


def _has_content(file: Input, kept: Sequence[Segment], mine: Sequence[Segment]) -> bool:
    """Return True if a file has the content of these segments, however it is split."""
    hashes = {(each.start, each.size): each.hash for each in mine}
    for segment in kept:
        known = hashes.get((segment.start, segment.size))
        if known is None:
            known = digest(file.read_at(segment.start, segment.size)).hex()
        if known != segment.hash:
            return False
    return True


def _is_stored_prefix(kept: Sequence[Segment], mine: Sequence[Segment], read: Read) -> bool:
    """Return True if one stored file is a prefix of another."""
    by_start = {each.start: each for each in mine}
    for segment in kept:
        other = by_start.get(segment.start)
        if other is None or other.size < segment.size:
            return False
        if other.size > segment.size or other.hash != segment.hash:
            whole = restore_segment(other, read)
            if digest(whole[: segment.size]).hex() != segment.hash:
                return False
    return True


def _is_prefix(first: Sequence[Segment], second: Sequence[Segment]) -> bool:
    """Return True if the segments of one file are the first of another's."""
    return len(first) < len(second) and all(
        (one.start, one.size, one.hash) == (other.start, other.size, other.hash)
        for one, other in zip(first, second, strict=False)
    )


def _next_cut(laid: Sequence[LaidSegment], record_places: RecordPlaces) -> ResumeCut | None:
    """Return where to resume.

    Before the first segment that the unfinished end may change.

    None if the file changes meanwhile.
    """
    tail = min(record_places.tail, default=laid[-1].begins)
    number = len(laid) - 1
    while number > 0 and laid[number].begins > tail:
        number -= 1
    begins = laid[number].begins
    before = laid[number].segment.previous
    after = "" if before is None else str(before)
    places = record_places.save(begins)
    return None if places is None else ResumeCut(begins, after, places)

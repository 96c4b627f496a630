"""Keep a file beside its session, so that it can be given back byte for byte.

A kept file is a ref, `refs/transcripts/<format>/<session>/<id>`, that names the last of its segments; that of a
subagent's own file stands below `<session>/agents/<agent>/`. The name holds the beginning of the segment's id, so the
ref of a file never moves: a file that has grown gets another ref, and that of its beginning goes.

Rule: writes only what `transcripts` lays out, and removes only refs of files that the new one begins with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.errors import CorruptObjectError, ObjectNotFoundError
from trace_store.frozen import value
from trace_store.importers.build_commits import Placing, load_places
from trace_store.importers.files import Input
from trace_store.importers.write import kept_of, together
from trace_store.objects.content import Gathering
from trace_store.oid import ObjectId, digest
from trace_store.refs.names import FILES
from trace_store.store.handle import Store
from trace_store.transcripts.layout import Laid, Literal, lay_out
from trace_store.transcripts.reread import Pages
from trace_store.transcripts.segments import Held, Segment, restore_segment, segments_of

Read = Callable[[bytes], bytes]


@value
class Cut:
    """Where the laying out of a grown file goes on.

    Attributes:
        begins: where in the file.
        after: the segment before it, or None.
        places: those of records behind it, as `Placing.save` returns them.
    """

    begins: int
    after: str
    places: list[list[Any]]


def resume_placing(store: Store, file: Input, cut: Cut | None) -> Placing:
    """Return the places that were remembered.

    Raises:
        InvalidInputError, TypeError, ValueError: they were not saved by this version.
        ObjectNotFoundError, CorruptObjectError: what they lead to is not here.
    """
    if cut is None:
        return Placing()
    places = load_places(cut.places)
    if not 0 <= cut.begins <= file.size:
        raise ValueError("the file is shorter")
    if cut.after:
        Segment.decode(store.objects.read(ObjectId.parse(cut.after)))
    for oid in {placed.commit for placed in places.values()}:
        if not store.objects.contains(oid):
            raise ObjectNotFoundError("a commit of the file is not here", oid=oid)
    return Placing(places)


@value
class Kept:
    """How the keeping of a file ended.

    Attributes:
        cut: where to go on when the file has grown; None when it has to be read whole then.
        steady: whether the file held until now what was read of it.
    """

    cut: Cut | None
    steady: bool


def keep_file(
    store: Store,
    file: Input,
    folder: str,
    placing: Placing,
    cut: Cut | None,
    literal: Literal | None = None,
) -> Kept:
    """Keep a file, as it is now.

    Args:
        store: where to.
        file: what was imported.
        folder: what the names of the session's files begin with, behind `refs/transcripts/`.
        placing: where its records are.
        cut: where an earlier import of it ended.
        literal: as in `lay_out`.

    Raises:
        RefChangedError: somebody changed the same refs meanwhile.
        StorageError: the disk refused.
        NotFoundError, FormatError: what is remembered of an earlier import is wrong.
    """
    begins, after = 0, None
    if cut is not None and cut.after:
        oid = ObjectId.parse(cut.after)
        begins, after = cut.begins, (oid, Segment.decode(store.objects.read(oid)))
    gathering = Gathering()
    pages = placing.pages or Pages(file.read_at)
    laid = lay_out(
        pages.again,
        file.size,
        placing.places,
        gathering,
        begins=begins,
        after=after,
        literal=literal,
    )
    if not laid:
        return Kept(None, steady=False)  # it has become shorter than it was
    if cut is not None:
        _check(store, laid[0].segment, gathering)
    steady = not any(piece.changed for piece in laid)
    name = f"{FILES}{folder}/{laid[-1].oid.short()}"
    edits: list[RefEdit] = []
    if store.refs.read(name) is None:
        edits.append(RefEdit(name, laid[-1].oid, ANY))
    mine = [each.segment for each in laid]
    for other, tip in _kept_in(store, folder):
        relation = OTHER if other == name else _compare(store, file, mine, tip, gathering)
        if relation == OLDER:
            edits.append(RefEdit(other, None, tip))
        elif relation == NEWER:
            return Kept(None, steady)  # and nothing is written that could be gone on from
    if edits:
        transaction = Transaction(kept_of(store, dict(gathering.objects)), edits, "import")
        together(store, transaction)
    next_cut = _next_cut(laid, placing)
    return Kept(next_cut, steady and next_cut is not None)


def _check(store: Store, segment: Segment, gathering: Gathering) -> None:
    """See that the segment comes back in which an earlier import ended, whose places were remembered."""
    restore_segment(segment, _reading(store, gathering))


def _reading(store: Store, gathering: Gathering) -> Read:
    """Return what reads objects that are stored, or about to be."""
    made = {bytes(oid): data for oid, data in gathering.objects}

    def read(oid: bytes) -> bytes:
        data = made.get(bytes(oid))
        return store.objects.read(oid) if data is None else data

    return read


def is_kept(store: Store, folder: str, file: Input | None = None) -> bool:
    """Tell whether a file of a session is kept, and holds what another one does, if that is given.

    Args:
        store: where.
        folder: as in `keep_file`.
        file: the other one.
    """
    return any(file is None or _equals(store, file, tip) for _, tip in _kept_in(store, folder))


def _equals(store: Store, file: Input, tip: ObjectId) -> bool:
    try:
        kept = segments_of(tip, store.objects.read)
    except (ObjectNotFoundError, CorruptObjectError):
        return False
    return kept[-1].end == file.size and _holds(file, kept, ())


def _kept_in(store: Store, folder: str) -> list[tuple[str, ObjectId]]:
    """Return the refs of a session's files, or of a subagent's; those of its subagents are below."""
    place = f"{FILES}{folder}/"
    return [(ref, tip) for ref, tip in store.refs.iterate(place) if "/" not in ref[len(place) :]]


OLDER, NEWER, OTHER = "older", "newer", "other"


def _compare(
    store: Store, file: Input, mine: Sequence[Segment], tip: ObjectId, gathering: Gathering
) -> str:
    """Tell whether a kept file is the beginning of this one, goes on behind its end, or is another.

    Args:
        store: where it is kept.
        file: this one.
        mine: its segments, or the last of them, as they were laid out.
        tip: the last segment of the kept one.
        gathering: has the objects of this one that are not stored yet.
    """
    read = store.objects.read
    try:
        kept, met = _segments_behind(tip, mine[0].previous, read)
        if not met and mine[0].previous is not None:
            mine = [*segments_of(mine[0].previous, read), *mine]
        if not kept or kept[-1].end <= mine[-1].end:
            if _holds(file, kept, mine):
                return OLDER
            # What is kept differs from what the file holds where secrets were taken out.
            return OLDER if _holds_as_kept(kept, mine, _reading(store, gathering)) else OTHER
        if _same(mine[:-1], kept):
            held: Held = {}
            there = b"".join(restore_segment(s, read, held) for s in kept[len(mine) - 1 :])
            return NEWER if digest(there[: mine[-1].size]).hex() == mine[-1].hash else OTHER
    except (ObjectNotFoundError, CorruptObjectError):
        pass  # what is damaged is not for an import to remove
    return OTHER


def _segments_behind(
    tip: ObjectId, stop: ObjectId | None, read: Read
) -> tuple[list[Segment], bool]:
    """Return the segments of a file, first to last, and whether they are those behind one that was to be met.

    A file that grew has all but its last segments in common with what was kept of it before.
    """
    found: list[Segment] = []
    oid: ObjectId | None = tip
    while oid is not None and oid != stop:
        found.append(Segment.decode(read(oid)))
        oid = found[-1].previous
    return found[::-1], stop is not None and oid == stop


def _holds(file: Input, kept: Sequence[Segment], mine: Sequence[Segment]) -> bool:
    """Tell whether a file holds all that these segments of a kept one do; it may have been cut elsewhere."""
    hashes = {(each.start, each.size): each.hash for each in mine}
    for segment in kept:
        known = hashes.get((segment.start, segment.size))
        if known is None:
            known = digest(file.read_at(segment.start, segment.size)).hex()
        if known != segment.hash:
            return False
    return True


def _holds_as_kept(kept: Sequence[Segment], mine: Sequence[Segment], read: Read) -> bool:
    """Tell whether what is kept of a file is the beginning of what is kept of another."""
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


def _same(first: Sequence[Segment], second: Sequence[Segment]) -> bool:
    """Tell whether one file's segments are the first of another's."""
    return len(first) < len(second) and all(
        (one.start, one.size, one.hash) == (other.start, other.size, other.hash)
        for one, other in zip(first, second, strict=False)
    )


def _next_cut(laid: Sequence[Laid], placing: Placing) -> Cut | None:
    """Return the cut before the first segment that the unfinished end of the file may change.

    None when the file changes meanwhile.
    """
    unsettled = placing.unsettled
    number = len(laid) - 1
    while number > 0 and unsettled is not None and laid[number].begins > unsettled:
        number -= 1
    begins = laid[number].begins
    before = laid[number].segment.previous
    after = "" if before is None else str(before)
    places = placing.save(begins)
    return None if places is None else Cut(begins, after, places)

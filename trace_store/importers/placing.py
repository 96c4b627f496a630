"""Which commit holds which record of a file, noted while its plan is written.

Rule: notes, and reads commits only where what is there differs from what was planned.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from trace_store.importers.contract import PlannedCommit, Record
from trace_store.objects.commit import Commit
from trace_store.oid import ObjectId
from trace_store.transcripts.laying import Placed, record_hash
from trace_store.transcripts.pages import Pages
from trace_store.transcripts.sources import content_numbers, records_left, without_contents

Read = Callable[[bytes], bytes]


class Placing:
    """The places of a file's records.

    Attributes:
        places: by offset in the file.
        pages: the file, as far as it was read this time.
        unsettled: the first offset of the records whose commits are of the unfinished end; None when there are none.
    """

    def __init__(self, places: dict[int, Placed] | None = None) -> None:
        self.places: dict[int, Placed] = {} if places is None else places
        self.unsettled: int | None = None
        self.pages: Pages | None = None
        self._settling = True

    def unsettle(self) -> None:
        """Take what is noted from here on for the unfinished end of the file."""
        self._settling = False

    def made(self, records: Sequence[Record], oid: ObjectId) -> None:
        """Note records that are, in this order, the source of a commit."""
        start = end = 0
        if self._settling and self.pages is not None:
            start, end = self.pages.start, self.pages.end  # what `covers` asks for
        for number, record in enumerate(records):
            offset, length = record.offset, record.length
            if start <= offset and offset + length <= end and not record.filtered:
                self.places[offset] = Placed(length, oid, number)
            else:
                self._note(record, oid, number)

    def shared(self, planned: PlannedCommit, oid: ObjectId, commit: Commit, read: Read) -> None:
        """Note the records of a planned commit for which another stands, with other records but the same messages."""
        numbers = content_numbers([p for message in planned.messages for p in message.parts])
        for record in self._found(planned.records, oid, commit, read):
            raw = without_contents(record, numbers)
            if raw != record.raw:
                self._note(record, oid, None, raw)

    def spread(self, records: Sequence[Record], commits: Iterable[ObjectId], read: Read) -> None:
        """Note records that some of these commits hold."""
        left: Sequence[Record] = records
        for oid in commits:
            left = self._found(left, oid, Commit.decode(read(oid)), read)

    def _found(
        self, records: Sequence[Record], oid: ObjectId, commit: Commit, read: Read
    ) -> list[Record]:
        """Note the records that are in a commit's source, and return the others."""
        held = {raw: number for number, raw in enumerate(records_left(commit, read))}
        left = []
        for record in records:
            number = held.get(record.raw)
            if number is None:
                left.append(record)
            else:
                self._note(record, oid, number)
        return left

    def _note(self, record: Record, oid: ObjectId, number: int | None, raw: bytes = b"") -> None:
        kept = record.raw if record.filtered else None
        offset, length = record.offset, record.length
        # Its page tells whether the file still holds it.
        noted = kept is not None or (self.pages is not None and self.pages.covers(offset, length))
        known = b"" if noted else record_hash(record.raw)
        self.places[offset] = Placed(length, oid, number, raw, kept, known)
        if not self._settling and (self.unsettled is None or offset < self.unsettled):
            self.unsettled = offset

    def save(self, begin: int) -> list[list[Any]] | None:
        """Return the settled places from an offset on as values that JSON knows; None when the file has changed."""
        end = self.unsettled
        saved: list[list[Any]] = []
        for offset in sorted(self.places):
            if offset < begin or (end is not None and offset >= end):
                continue
            length, commit, number, raw, kept, known = self.places[offset]
            if not known and kept is None and self.pages is not None:
                data, as_read = self.pages.again(offset, length)
                if not as_read:
                    return None
                known = record_hash(data)
            saved.append(
                [offset, length, str(commit), number, _text(raw), _text(kept), known.hex()]
            )
        return saved


def load_places(saved: Iterable[Sequence[Any]]) -> dict[int, Placed]:
    """Return what was saved.

    Raises:
        InvalidInputError, TypeError, ValueError: it was not saved by this version.
    """
    places = {}
    for offset, length, oid, number, raw, kept, known in saved:
        if not (_counts(offset) and _counts(length) and (number is None or _counts(number))):
            raise ValueError("a number expected")
        commit = ObjectId.parse(oid)
        places[offset] = Placed(
            length, commit, number, _bytes(raw) or b"", _bytes(kept), bytes.fromhex(known)
        )
    return places


def _counts(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b85encode(data).decode("ascii")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b85decode(text)

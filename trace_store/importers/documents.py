"""JSON documents: the elements of their lists as records, each with its own bytes.

Invariant: complete elements are kept. A truncated document yields the elements before the damage, and its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from trace_store.frozen import field, mutable
from trace_store.importers.contract import Skip
from trace_store.importers.decode import Line
from trace_store.importers.json_records import (
    NOT_A_RECORD,
    NOT_JSON,
    NOT_UTF8,
    TOO_DEEP,
    TOO_LONG,
    checked,
    record_of,
    scan,
    text_in,
)
from trace_store.objects.content import bytes_of
from trace_store.transcripts.sources import Record

MAXIMUM_DOCUMENT_BYTES = 512 << 20
CUT_SHORT = "cut-short"
LONGEST_WORD = 6
"""Length of the longest JSON escape: an error this close to the end means truncation."""
ROOT = ""
"""Name of the list if the document itself is one."""

_BLANK = " \t\r\n"


@mutable
class Document:
    """One JSON document.

    Attributes:
        fields: members of the object, without the requested lists.
        lists: records of the requested lists; skips for elements that are not objects.
        singles: requested values as single records, by key.
        damage: place and kind of damage, or None.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    lists: dict[str, list[Record | Skip]] = field(default_factory=dict)
    singles: dict[str, Record] = field(default_factory=dict)
    damage: Skip | None = None

    def records(self, name: str) -> Iterator[Record]:
        """Yield the elements of a list that are objects."""
        return (item for item in self.lists.get(name, ()) if isinstance(item, Record))


def read_document(
    line: Line, *names: str, singles: Collection[str] = (), bare: bool = False
) -> Document:
    """Read a document and the elements of its top-level lists with these names.

    Args:
        line: the whole file as one line, or a part of it (`within`).
        names: keys of lists; ROOT for a document that is itself a list.
        singles: keys of values to return as records; their data is {key: value}.
        bare: return non-object elements as records with data {ROOT: value}.
    """
    document = Document()
    if line.data is None:
        document.damage = Skip(line.number, TOO_LONG, f"{line.length} bytes")
        return document
    text, wrong = text_in(line.data)
    _DocumentParser(line, text, document, frozenset(names), frozenset(singles), bare).read()
    if wrong is not None and document.damage is None:
        document.damage = Skip(line.number, NOT_UTF8, f"byte {wrong}, read as ?")
    return document


def within(line: Line, record: Record) -> Line:
    """Return a record as a document of its own, to read its lists."""
    offset, length = record.offset, record.length
    if line.edits is not None:
        edits = line.edits.between(offset, offset + length)
        return Line(record.line, offset, record.raw, length, True, whole=True, edits=edits)
    start = offset - line.offset
    data = (line.data or b"")[start : start + length]
    return Line(record.line, offset, data, length, True, whole=True)


class _DocumentParser:
    """Parser of one document that tracks byte offsets."""

    def __init__(
        self,
        line: Line,
        text: str,
        document: Document,
        names: frozenset[str],
        singles: frozenset[str],
        bare: bool,
    ) -> None:
        self._line = line
        self._text = text
        self._document = document
        self._names = names
        self._singles = singles
        self._bare = bare
        self._at = 0
        self._known = (0, 0)  # a text position and its byte offset
        self._lines = (0, line.number)
        self._ascii = len(text) == len(line.data or b"")

    def read(self) -> None:
        document = self._document
        try:
            if self._text.startswith("\ufeff"):
                self._at = 1
            self._skip_blanks()
            first = self._text[self._at : self._at + 1]
            if first == "{":
                self._object()
            elif first == "[":
                document.lists[ROOT] = []
                self._list(document.lists[ROOT])
            else:
                raise ValueError("neither an object nor a list")
            self._skip_blanks()
            if self._at < len(self._text):
                raise ValueError("data after the end of the document")
        except RecursionError:
            document.damage = Skip(self._line_number(self._at), TOO_DEEP, "")
        except ValueError as error:
            place = getattr(error, "pos", self._at)
            what = getattr(error, "msg", str(error))
            # An unterminated string is reported at its start, a cut token at its end.
            near = len(self._text.rstrip()) - LONGEST_WORD
            cut = place > near or what.startswith("Unterminated")
            document.damage = Skip(
                self._line_number(min(place, len(self._text))),
                CUT_SHORT if cut else NOT_JSON,
                f"{what[:1].lower()}{what[1:]}"[:200],
            )

    def _object(self) -> None:
        self._at += 1
        self._skip_blanks()
        if self._take("}"):
            return
        while True:
            key = self._value()
            if not isinstance(key, str):
                raise ValueError("key is not a string")
            self._skip_blanks()
            self._need(":")
            self._skip_blanks()
            if key in self._names and self._text[self._at : self._at + 1] == "[":
                items = self._document.lists[key] = []
                self._list(items)
            elif key in self._singles:
                start, value = self._at, checked(self._value())
                self._document.singles[key] = self._record_from(start, {key: value})
            else:
                self._document.fields[key] = checked(self._value())
            self._skip_blanks()
            if self._take("}"):
                return
            self._need(",")
            self._skip_blanks()

    def _list(self, items: list[Record | Skip]) -> None:
        self._at += 1
        self._skip_blanks()
        if self._take("]"):
            return
        while True:
            start = self._at
            value = self._value()
            items.append(self._element(start, value))
            self._skip_blanks()
            if self._take("]"):
                return
            self._need(",")
            self._skip_blanks()

    def _element(self, start: int, value: Any) -> Record | Skip:
        checked(value)
        if isinstance(value, dict) or self._bare:
            return self._record_from(start, value if isinstance(value, dict) else {ROOT: value})
        return Skip(self._line_number(start), NOT_A_RECORD, type(value).__name__)

    def _record_from(self, start: int, data: dict[str, Any]) -> Record:
        """Return the record between a position and the current one."""
        at, raw = self._bytes(start, self._at)
        number = self._line_number(start)
        line = self._line
        if line.edits is not None:
            return record_of(line, number, at, at + len(raw), data)
        return Record(number, line.offset + at, len(raw), raw, data)

    def _value(self) -> Any:
        value, self._at = scan(self._text, self._at)
        return value

    def _bytes(self, start: int, end: int) -> tuple[int, bytes]:
        """Return byte offset and bytes of a range of the text."""
        data = self._line.data or b""
        if self._ascii:
            return start, data[start:end]
        place, offset = self._known
        offset += len(bytes_of(self._text[place:start]))
        size = len(bytes_of(self._text[start:end]))
        self._known = (end, offset + size)
        return offset, data[offset : offset + size]

    def _line_number(self, at: int) -> int:
        place, number = self._lines
        if at < place:
            return self._line.number + self._text.count("\n", 0, at)
        number += self._text.count("\n", place, at)
        self._lines = (at, number)
        return number

    def _skip_blanks(self) -> None:
        text, at = self._text, self._at
        while at < len(text) and text[at] in _BLANK:
            at += 1
        self._at = at

    def _take(self, character: str) -> bool:
        if self._text[self._at : self._at + 1] != character:
            return False
        self._at += 1
        return True

    def _need(self, character: str) -> None:
        if not self._take(character):
            raise ValueError(f"{character!r} expected")

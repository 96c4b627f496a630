"""JSON records of lines and of documents.

A line may hold one record, several, or damage. The lists of a document hold records.

Invariant: unreadable data becomes a Skip with line and reason, never an exception. Lines are already redacted. Each
record of a document has its own bytes; a truncated document yields the elements before the damage, and its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

from trace_store.base.frozen import field, mutable
from trace_store.importers.contract import Skip
from trace_store.importers.input_files import InputLine
from trace_store.objects.content import bytes_of
from trace_store.providers.wire import finite, refuse_constant
from trace_store.transcripts.sources import Record

MAXIMUM_NESTING = 200
"""Maximum nesting of a record."""

TOO_LONG = "line-too-long"
NOT_JSON = "not-json"
NOT_UTF8 = "not-utf8"
NOT_A_RECORD = "not-a-record"
TOO_DEEP = "nested-too-deep"
UNFINISHED = "unfinished-line"

_SHALLOW_BYTES = 2 * MAXIMUM_NESTING
"""A line this short cannot exceed the nesting limit."""
_HALF = "\udced[\udca0-\udcbf][\udc80-\udcbf]"
_WRONG_BYTES = re.compile(f"(?P<half>{_HALF})|(?:(?!{_HALF})[\udc80-\udcff])+")
"""Invalid UTF-8 as surrogate escapes: an encoded lone surrogate (3 bytes), or anything else."""
_UNENDED = "Unterminated string"
"""Message of the JSON decoder for text that ends inside a string."""
_OPENING = re.compile(r'\{[ \t\r\n]*"')
"""Start of a non-empty object."""
_FIRST_KEY = re.compile(r'\{[ \t\r\n]*"[^"\\]*"[ \t\r\n]*:')
_BLANK = " \t\r\n"
_BLANK_OR_ZERO = _BLANK + "\0"
_ZEROS = b" \t\r\0"
"""May precede the first record of a line: a power cut leaves zeros."""
MARK = "\ufeff"
_strict = json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite)
_scan_once: Callable[[str, int], tuple[Any, int]] = _strict.scan_once  # type: ignore[attr-defined]

_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

MAXIMUM_DOCUMENT_BYTES = 512 << 20
CUT_SHORT = "cut-short"
LONGEST_WORD = 6
"""Length of the longest JSON escape: an error this close to the end means truncation."""
ROOT = ""
"""Name of the list if the document itself is one."""


def _finite_or_text(text: str) -> float | str:
    value = float(text)
    return text if value in (float("inf"), float("-inf")) else value


def _whole_or_text(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:  # Python limits the digits of an integer
        return text


scan = json.JSONDecoder(
    parse_constant=lambda _: None, parse_float=_finite_or_text, parse_int=_whole_or_text
).raw_decode
"""Parses the JSON value at a position of a text; returns it with its end, or raises ValueError.

NaN and Infinity, which Python and others write, become null. A number that is too large becomes a string.
"""


def compact(value: Any) -> str:
    """Return compact JSON as JavaScript writes it."""
    text = _compact(value)
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    return text


def records_of(line: InputLine) -> tuple[Record] | Iterator[Record | Skip]:
    """Return the records of a line: a tuple for a single record, else an iterator.

    A writer that loses a newline puts two records on one line.
    """
    record = _single_record(line)
    return _each_record(line) if record is None else (record,)


def _single_record(line: InputLine) -> Record | None:
    """Return the record of a line with exactly one record, as most have; else None."""
    number, offset, data, length, _, _, edits = line
    if data is None:
        return None
    try:
        text = data.decode()
        value, end = _scan_once(text, 0)
    except (ValueError, RecursionError, StopIteration):
        return None
    if type(value) is not dict or end != len(text):
        return None
    # Only a line with enough brackets can exceed the limit. Removing them is three times as fast
    # as counting them.
    if len(data) > _SHALLOW_BYTES:
        others = len(data.replace(b"{", b"")) + len(data.replace(b"[", b""))
        if 2 * len(data) - others > MAXIMUM_NESTING + 1 and _is_deep(value):
            return None
    if edits is None:
        return Record(number, offset, length, data, value)
    return Record(number, offset, length, data, value, filtered=True)


def _is_deep(value: Any) -> bool:
    """Return True if a value exceeds the nesting limit."""
    level = [value] if type(value) is dict or type(value) is list else []
    for _ in range(MAXIMUM_NESTING + 1):
        level = [
            item
            for container in level
            for item in (container.values() if type(container) is dict else container)
            if type(item) is dict or type(item) is list
        ]
        if not level:
            return False
    return True


def _each_record(line: InputLine) -> Iterator[Record | Skip]:
    if line.data is None:
        yield Skip(line.number, TOO_LONG, f"{line.length} bytes")
        return
    text, wrong = _text_in(line.data)
    # Some editors and shells start a file with a byte order mark.
    start = len(MARK) if line.offset == 0 and text.startswith(MARK) else 0
    position, size = _skip_blanks(text, start), len(text)
    budget = 8 * size + 4096  # of characters to look at after damage
    known = (0, 0)  # a text position and its byte offset
    while position < size:
        known = (position, known[1] + len(bytes_of(text[known[0] : position])))
        result = _read_one(line, text, *known)
        if isinstance(result, Skip):
            next_start = None
            if result.reason != TOO_DEEP:
                next_start, budget = _find_complete_records(
                    text, position, budget, ended=line.ended
                )
            if next_start is None:
                if wrong is not None and result.reason == NOT_JSON:
                    result = Skip(line.number, NOT_UTF8, f"byte {wrong}")
                yield result
                return
            yield Skip(
                line.number, NOT_JSON, f"column {position + 1}: truncated before the next record"
            )
            position = next_start
            continue
        end, record = result
        if wrong is not None and isinstance(record, Record):
            yield Skip(line.number, NOT_UTF8, f"byte {wrong}, read as ?")
            wrong = None
        yield record
        position = _skip_blanks(text, end)


def values_in(line: bytes) -> Iterator[Any]:
    """Yield the JSON values at the start of a line up to the first unreadable one."""
    text = _text_in(line.lstrip(_ZEROS))[0]
    position = _skip_blanks(text, 0)
    while position < len(text):
        try:
            value, end = scan(text, position)
        except (ValueError, RecursionError):
            return
        yield value
        position = _skip_blanks(text, end)


def _text_in(data: bytes) -> tuple[str, int | None]:
    """Decode bytes.

    Return the text and the offset of the first invalid byte. Each invalid byte becomes `?`.
    """
    try:
        return data.decode("utf-8", "surrogatepass"), None
    except UnicodeDecodeError as error:
        first = error.start
    # A single pass: resuming after each invalid byte would be quadratic.
    text = data.decode("utf-8", "surrogateescape")
    return _WRONG_BYTES.sub(_decode_invalid, text), first


def _decode_invalid(match: re.Match[str]) -> str:
    """Return a lone surrogate for its encoded bytes, `?` for other invalid bytes."""
    if match["half"] is None:
        return "?" * len(match[0])
    return match[0].encode("utf-8", "surrogateescape").decode("utf-8", "surrogatepass")


def _find_complete_records(
    text: str, position: int, budget: int, *, ended: bool
) -> tuple[int | None, int]:
    """Return where complete objects start after a truncated record, or None; and what is left of the budget.

    A killed writer leaves a partial record, and the next one appends to it. Parsing stops at the first quotation
    mark after the cut, so no value spans it and complete values can be skipped whole. The time is linear in the
    text.

    Args:
        text: the line.
        position: start of the truncated record.
        budget: number of characters to look at.
        ended: True if the line has a newline; without one, objects inside the unfinished record do not count.
    """
    alike, budget = _find_alike(text, position, budget)
    if alike is not None:
        return alike, budget
    run = run_end = position  # start of a run of adjacent objects, and end of the last one
    reached = position
    while budget > 0 and (start := _OPENING.search(text, reached)):
        at = start.start()
        try:
            reached = _skip_blanks(text, scan(text, at)[1], _BLANK_OR_ZERO)
        except RecursionError:
            return None, 0
        except ValueError as error:
            stopped = getattr(error, "pos", at)
            budget -= _cost(at, stopped)
            reached = at + 1
            unfinished = _skip_blanks(text, stopped) == len(text) or _UNENDED in str(error)
            if unfinished and not ended:
                return None, budget
            if not unfinished:  # this is the cut: a complete object starts here
                reached = max(reached, text.rfind("{", at, stopped))
            continue
        budget -= reached - at
        run, run_end = (run if at == run_end else at), reached
        # No value is followed by another one without a comma.
        if reached == len(text) or text[reached] == "{":
            return run, budget
    return None, budget


def _cost(at: int, stopped: int) -> int:
    """Return the characters that an error costs: the decoder counts all preceding lines for it."""
    return stopped - at + stopped // 16 + 64


def _find_alike(text: str, position: int, budget: int) -> tuple[int | None, int]:
    """Return where a complete object starts that has the first key of the truncated record, or None.

    Also return what is left of the budget. The object is the next record, although it may look like a value of the
    truncated one: it ends the line, or another one follows.
    """
    start = _skip_blanks(text, position, _BLANK_OR_ZERO)
    opening = _FIRST_KEY.match(text, start)
    at = position if start == position else start - 1
    # Half of the budget is for the search by cuts.
    least = budget // 2
    while opening is not None and budget > least:
        at = text.find(opening[0], at + 1)
        if at < 0:
            break
        try:
            end = _skip_blanks(text, scan(text, at)[1], _BLANK_OR_ZERO)
        except ValueError as error:
            budget -= _cost(at, getattr(error, "pos", at))
            continue
        except RecursionError:
            break
        if end == len(text) or text[end] == "{":
            return at, budget
        budget -= end - at
    return None, budget


def _read_one(
    line: InputLine, text: str, position: int, at: int
) -> tuple[int, Record | Skip] | Skip:
    """Return one value and its end; only a Skip if the rest of the line is unreadable.

    Args:
        line: the line.
        text: its decoded text.
        position: position of the value in the text.
        at: its byte offset in the line.
    """
    try:
        value, end = scan(text, position)
        kept = checked(value)
    except RecursionError:
        return Skip(line.number, TOO_DEEP, "")
    except ValueError as error:
        if not line.ended:
            return Skip(line.number, UNFINISHED, f"{line.length} bytes")
        place = getattr(error, "pos", position)
        return Skip(
            line.number, NOT_JSON, f"column {place + 1}: {getattr(error, 'msg', error)}"[:200]
        )
    if not isinstance(kept, dict):
        # An unterminated number may grow; a complete list may not.
        if not line.ended and end == len(text) and not isinstance(kept, list):
            return Skip(line.number, UNFINISHED, f"{line.length} bytes")
        return end, Skip(line.number, NOT_A_RECORD, type(kept).__name__)
    length = len(bytes_of(text[position:end]))
    if line.edits is not None:
        return end, record_of(line, line.number, at, at + length, kept)
    raw = (line.data or b"")[at : at + length]
    return end, Record(line.number, line.offset + at, length, raw, kept)


def record_of(line: InputLine, number: int, start: int, end: int, data: dict[str, Any]) -> Record:
    """Return the record in a byte range of a line."""
    part = line.part(number, start, end, ended=True)
    raw = part.data or b""
    return Record(number, part.offset, part.length, raw, data, filtered=part.edits is not None)


def _skip_blanks(text: str, position: int, blanks: str = _BLANK) -> int:
    while position < len(text) and text[position] in blanks:
        position += 1
    return position


def checked(value: Any) -> Any:
    """Return the value unchanged.

    Raises:
        RecursionError: it exceeds the nesting limit.
    """
    if _is_deep(value):
        raise RecursionError
    return value


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


def read_document(line: InputLine, *names: str, singles: Collection[str] = ()) -> Document:
    """Read a document and the elements of its top-level lists with these names.

    Args:
        line: the whole file as one line, or a part of it (`within`).
        names: keys of lists; ROOT for a document that is itself a list.
        singles: keys of values to return as records; their data is {key: value}.
    """
    document = Document()
    if line.data is None:
        document.damage = Skip(line.number, TOO_LONG, f"{line.length} bytes")
        return document
    text, wrong = _text_in(line.data)
    _DocumentParser(line, text, document, frozenset(names), frozenset(singles)).read()
    if wrong is not None and document.damage is None:
        document.damage = Skip(line.number, NOT_UTF8, f"byte {wrong}, read as ?")
    return document


def within(line: InputLine, record: Record) -> InputLine:
    """Return a record as a document of its own, to read its lists."""
    offset, length = record.offset, record.length
    if line.edits is not None:
        edits = line.edits.between(offset, offset + length)
        return InputLine(record.line, offset, record.raw, length, True, whole=True, edits=edits)
    start = offset - line.offset
    data = (line.data or b"")[start : start + length]
    return InputLine(record.line, offset, data, length, True, whole=True)


class _DocumentParser:
    """Parser of one document that tracks byte offsets."""

    def __init__(
        self,
        line: InputLine,
        text: str,
        document: Document,
        names: frozenset[str],
        singles: frozenset[str],
    ) -> None:
        self._line = line
        self._text = text
        self._document = document
        self._names = names
        self._singles = singles
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
        if isinstance(value, dict):
            return self._record_from(start, value)
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

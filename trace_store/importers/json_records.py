"""JSON objects, several a file, from lines that may hold one, two, or none that can be read.

Rule: what cannot be read is a Skip with its line and a reason, never an exception. Lines have been looked through for
secrets before they come here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from trace_store.importers.contract import Skip
from trace_store.importers.decode import Line
from trace_store.objects.content import bytes_of
from trace_store.transcripts.records import Record

MAXIMUM_NESTING = 200
"""Levels of lists and maps that a record may have."""

TOO_LONG = "line-too-long"
NOT_JSON = "not-json"
NOT_UTF8 = "not-utf8"
NOT_A_RECORD = "not-a-record"
TOO_DEEP = "nested-too-deep"
UNFINISHED = "unfinished-line"

_SHALLOW_BYTES = 2 * MAXIMUM_NESTING
"""So short a line has no room for brackets that nest deeper than the bound."""
_HALF = "\udced[\udca0-\udcbf][\udc80-\udcbf]"
_WRONG_BYTES = re.compile(f"(?P<half>{_HALF})|(?:(?!{_HALF})[\udc80-\udcff])+")
"""Bytes that are not UTF-8 as Python spells them: three that are half of a surrogate pair, or any others."""
_UNENDED = "Unterminated string"
"""What the decoder says of a text that ends within a string."""
_OPENING = re.compile(r'\{[ \t\r\n]*"')
"""How an object begins that is not empty."""
_BLANK = " \t\r\n"
_ZEROS = b" \t\r\0"
"""What may stand before the first record of a line: a power cut leaves zeros where nothing was written yet."""
MARK = "\ufeff"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite_or_text(text: str) -> float | str:
    value = float(text)
    return text if value in (float("inf"), float("-inf")) else value


def _whole_or_text(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:  # Python converts no more than some thousand digits
        return text


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:40]} is more than a number can be")
    return value


_strict = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
_scan_once: Callable[[str, int], tuple[Any, int]] = _strict.scan_once  # type: ignore[attr-defined]
scan = json.JSONDecoder(
    parse_constant=lambda _: None, parse_float=_finite_or_text, parse_int=_whole_or_text
).raw_decode
"""Given a text and a place in it, return the JSON value there and where it ends, or raise a ValueError.

Python and others write NaN and Infinity, which JSON has not: they become null. A number that is too large stays text.
"""
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def compact(value: Any) -> str:
    """Return a value as JSON without blanks, as JavaScript writes it."""
    text = _compact(value)
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    return text


def records_of(line: Line) -> tuple[Record] | Iterator[Record | Skip]:
    """Return what a line holds: a tuple where that is one record, else as it is read.

    A writer that loses a newline puts two records on one line.
    """
    record = _record_alone(line)
    return _each_record(line) if record is None else (record,)


def _record_alone(line: Line) -> Record | None:
    """Return the record of a line that holds one and nothing else, as almost every line does; None of any other."""
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
    # Only where JSON has so many brackets may it nest deeper than the bound. Taking them out tells how many there
    # are in a third of the time of counting them, which looks at every byte by itself.
    if len(data) > _SHALLOW_BYTES:
        others = len(data.replace(b"{", b"")) + len(data.replace(b"[", b""))
        if 2 * len(data) - others > MAXIMUM_NESTING + 1 and _is_deep(value):
            return None
    if edits is None:
        return Record(number, offset, length, data, value)
    return Record(number, offset, length, data, value, filtered=True)


def _is_deep(value: Any) -> bool:
    """Tell whether a value nests deeper than the bound."""
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


def _each_record(line: Line) -> Iterator[Record | Skip]:
    if line.data is None:
        yield Skip(line.number, TOO_LONG, f"{line.length} bytes")
        return
    text, wrong = text_in(line.data)
    # Some editors and shells put a mark at the beginning of a file.
    start = len(MARK) if line.offset == 0 and text.startswith(MARK) else 0
    position, size = _blanks(text, start), len(text)
    known = (0, 0)  # a place in the text, and the same place in the bytes
    while position < size:
        known = (position, known[1] + len(bytes_of(text[known[0] : position])))
        found = _read_one(line, text, *known)
        if isinstance(found, Skip):
            whole = (
                None
                if found.reason == TOO_DEEP
                else _whole_behind(text, position, ended=line.ended)
            )
            if whole is None:
                if wrong is not None and found.reason == NOT_JSON:
                    found = Skip(line.number, NOT_UTF8, f"byte {wrong}")
                yield found
                return
            yield Skip(
                line.number, NOT_JSON, f"column {position + 1}: cut off before the record behind it"
            )
            position = whole
            continue
        end, record = found
        if wrong is not None and isinstance(record, Record):
            yield Skip(line.number, NOT_UTF8, f"byte {wrong}, read as ?")
            wrong = None
        yield record
        position = _blanks(text, end)


def values_in(line: bytes) -> Iterator[Any]:
    """Yield the JSON values at the beginning of a line, as `records_of` reads them, until one cannot be read."""
    text = text_in(line.lstrip(_ZEROS))[0]
    position = _blanks(text, 0)
    while position < len(text):
        try:
            value, end = scan(text, position)
        except (ValueError, RecursionError):
            return
        yield value
        position = _blanks(text, end)


def text_in(data: bytes) -> tuple[str, int | None]:
    """Return bytes as text, and where the first byte is that is not UTF-8; each such is a `?`, so places stay."""
    try:
        return data.decode("utf-8", "surrogatepass"), None
    except UnicodeDecodeError as error:
        first = error.start
    # One pass in C: to try again behind each wrong byte takes time in the square of the text.
    text = data.decode("utf-8", "surrogateescape")
    return _WRONG_BYTES.sub(_half_or_mark, text), first


def _half_or_mark(found: re.Match[str]) -> str:
    """Return what stands for bytes that are not UTF-8: half of a pair where they spell one, as JavaScript writes it."""
    if found["half"] is None:
        return "?" * len(found[0])
    return found[0].encode("utf-8", "surrogateescape").decode("utf-8", "surrogatepass")


def _whole_behind(text: str, position: int, *, ended: bool) -> int | None:
    """Return where, behind a record that was cut off, objects begin that reach the end of the line.

    A writer that is killed leaves part of a record, and the next one appends to it. A text that was cut ends at the
    first quotation mark of what follows, so no value reaches over the cut, and what parses is passed over whole. Time
    is in proportion to the text.

    Args:
        text: of the line.
        position: where what was cut off begins.
        ended: whether the line has its end. Without it what stands in an unfinished record is none of its own.
    """
    budget = 8 * (len(text) - position) + 4096
    run = behind = (
        position  # where objects without anything between them begin, and where the last one ends
    )
    reached = position
    while budget > 0 and (opening := _OPENING.search(text, reached)):
        at = opening.start()
        try:
            reached = _blanks(text, scan(text, at)[1])
        except RecursionError:
            return None
        except ValueError as error:
            stopped = getattr(error, "pos", at)
            # Such an error counts the lines of all of the text before it.
            budget -= stopped - at + stopped // 16 + 64
            reached = at + 1
            unfinished = _blanks(text, stopped) == len(text) or _UNENDED in str(error)
            if unfinished and not ended:
                return None
            if not unfinished:  # so this is a cut, and what is whole begins there
                reached = max(reached, text.rfind("{", at, stopped))
            continue
        budget -= reached - at
        run, behind = (run if at == behind else at), reached
        if reached == len(text):
            return run
    return None


def _read_one(line: Line, text: str, position: int, at: int) -> tuple[int, Record | Skip] | Skip:
    """Return one value and where it ends; a Skip alone when the rest of the line cannot be read.

    Args:
        line: the line.
        text: what it says.
        position: where in the text the value begins.
        at: where in the line's bytes that is.
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
        # More may be written of a number, but nothing behind a list makes another value of it.
        if not line.ended and end == len(text) and not isinstance(kept, list):
            return Skip(line.number, UNFINISHED, f"{line.length} bytes")
        return end, Skip(line.number, NOT_A_RECORD, type(kept).__name__)
    length = len(bytes_of(text[position:end]))
    if line.edits is not None:
        return end, record_of(line, line.number, at, at + length, kept)
    raw = (line.data or b"")[at : at + length]
    return end, Record(line.number, line.offset + at, length, raw, kept)


def record_of(line: Line, number: int, start: int, end: int, data: dict[str, Any]) -> Record:
    """Return the record that stands between two places in a line's bytes, given its number and what it says."""
    part = line.part(number, start, end, ended=True)
    raw = part.data or b""
    return Record(number, part.offset, part.length, raw, data, filtered=part.edits is not None)


def _blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in _BLANK:
        position += 1
    return position


def checked(value: Any) -> Any:
    """Return a value as it is.

    Raises:
        RecursionError: it nests deeper than the bound.
    """
    if _is_deep(value):
        raise RecursionError
    return value

"""JSON records of lines, which may hold one record, several, or damage.

Invariant: unreadable data becomes a Skip with line and reason, never an exception. Lines are already redacted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from trace_store.importers.contract import Skip
from trace_store.importers.decode import Line
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
_BLANK = " \t\r\n"
_ZEROS = b" \t\r\0"
"""May precede the first record of a line: a power cut leaves zeros."""
MARK = "\ufeff"


def _finite_or_text(text: str) -> float | str:
    value = float(text)
    return text if value in (float("inf"), float("-inf")) else value


def _whole_or_text(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:  # Python limits the digits of an integer
        return text


_strict = json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite)
_scan_once: Callable[[str, int], tuple[Any, int]] = _strict.scan_once  # type: ignore[attr-defined]
scan = json.JSONDecoder(
    parse_constant=lambda _: None, parse_float=_finite_or_text, parse_int=_whole_or_text
).raw_decode
"""Parses the JSON value at a position of a text; returns it with its end, or raises ValueError.

NaN and Infinity, which Python and others write, become null. A number that is too large becomes a string.
"""
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def compact(value: Any) -> str:
    """Return compact JSON as JavaScript writes it."""
    text = _compact(value)
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    return text


def records_of(line: Line) -> tuple[Record] | Iterator[Record | Skip]:
    """Return the records of a line: a tuple for a single record, else an iterator.

    A writer that loses a newline puts two records on one line.
    """
    record = _single_record(line)
    return _each_record(line) if record is None else (record,)


def _single_record(line: Line) -> Record | None:
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


def _each_record(line: Line) -> Iterator[Record | Skip]:
    if line.data is None:
        yield Skip(line.number, TOO_LONG, f"{line.length} bytes")
        return
    text, wrong = text_in(line.data)
    # Some editors and shells start a file with a byte order mark.
    start = len(MARK) if line.offset == 0 and text.startswith(MARK) else 0
    position, size = _skip_blanks(text, start), len(text)
    known = (0, 0)  # a text position and its byte offset
    while position < size:
        known = (position, known[1] + len(bytes_of(text[known[0] : position])))
        result = _read_one(line, text, *known)
        if isinstance(result, Skip):
            next_start = (
                None
                if result.reason == TOO_DEEP
                else _find_complete_records(text, position, ended=line.ended)
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
    text = text_in(line.lstrip(_ZEROS))[0]
    position = _skip_blanks(text, 0)
    while position < len(text):
        try:
            value, end = scan(text, position)
        except (ValueError, RecursionError):
            return
        yield value
        position = _skip_blanks(text, end)


def text_in(data: bytes) -> tuple[str, int | None]:
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


def _find_complete_records(text: str, position: int, *, ended: bool) -> int | None:
    """Return where complete objects start after a truncated record, or None.

    A killed writer leaves a partial record, and the next one appends to it. Parsing stops at the first quotation
    mark after the cut, so no value spans it and complete values can be skipped whole. The time is linear in the
    text.

    Args:
        text: the line.
        position: start of the truncated record.
        ended: True if the line has a newline; without one, objects inside the unfinished record do not count.
    """
    budget = 8 * (len(text) - position) + 4096
    run = run_end = position  # start of a run of adjacent objects, and end of the last one
    reached = position
    while budget > 0 and (start := _OPENING.search(text, reached)):
        at = start.start()
        try:
            reached = _skip_blanks(text, scan(text, at)[1])
        except RecursionError:
            return None
        except ValueError as error:
            stopped = getattr(error, "pos", at)
            # The decoder counts all preceding lines for such an error.
            budget -= stopped - at + stopped // 16 + 64
            reached = at + 1
            unfinished = _skip_blanks(text, stopped) == len(text) or _UNENDED in str(error)
            if unfinished and not ended:
                return None
            if not unfinished:  # this is the cut: a complete object starts here
                reached = max(reached, text.rfind("{", at, stopped))
            continue
        budget -= reached - at
        run, run_end = (run if at == run_end else at), reached
        if reached == len(text):
            return run
    return None


def _read_one(line: Line, text: str, position: int, at: int) -> tuple[int, Record | Skip] | Skip:
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


def record_of(line: Line, number: int, start: int, end: int, data: dict[str, Any]) -> Record:
    """Return the record in a byte range of a line."""
    part = line.part(number, start, end, ended=True)
    raw = part.data or b""
    return Record(number, part.offset, part.length, raw, data, filtered=part.edits is not None)


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in _BLANK:
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

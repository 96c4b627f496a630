"""Rows of an opencode database: read from an SQL dump, and in the form of its `export`.

Invariant: conversion is pure and never fails. Rows have the same columns in a database and in a dump.

Invariant: a dump is parsed, never executed. Anything but rows of requested tables is skipped, and a row with
non-literal values is unreadable. Each row has its own bytes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trace_store.importers.contract import Skip
from trace_store.importers.convert import time_of
from trace_store.importers.input_files import InputLine
from trace_store.importers.json_records import (
    CUT_SHORT,
    NOT_UTF8,
    TOO_DEEP,
    TOO_LONG,
    checked,
    record_of,
    scan,
)
from trace_store.transcripts.sources import Record

TABLES = ("session", "message", "part")
"""Tables to read from a dump."""
_SQL = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:pragma|begin|create|insert|drop)\b",
    re.I | re.S,
)
_TABLE_STATEMENT = re.compile(
    rb"(?:create\s+table\s+(?:if\s+not\s+exists\s+)?|insert\s+into\s+)"
    rb"""["`\[]?(?:message|part)["`\]]?\s*(?:\(|values\b)""",
    re.I,
)
Row = Mapping[str, Any]
Map = dict[str, Any]
_TIMES = ("created", "updated", "compacting", "archived")
_PLAIN = (
    *(("slug", "slug"), ("projectID", "project_id"), ("workspaceID", "workspace_id")),
    *(("directory", "directory"), ("path", "path"), ("parentID", "parent_id")),
    *(("title", "title"), ("version", "version"), ("agent", "agent")),
)
_IN_JSON = ("model", "revert", "permission")
_CHANGES = ("additions", "deletions", "files", "diffs")
NOT_SQL = "not-sql"
"""A row with non-literal values, or with a number of values other than its table's columns."""
TABLE = "table"
ROW = "row"
"""Keys of a record: its table, and its values by column."""
_TOKEN = re.compile(
    rb"""
    (?P<blank> \s+ | \A\xef\xbb\xbf | --[^\n]* | /\*.*?\*/ )
  | (?P<blob> [xX]'[0-9a-fA-F]*' )
  | (?P<text> '[^']*(?:''[^']*)*' )
  | (?P<name> "[^"]*(?:""[^"]*)*" | `[^`]*` | \[[^\]]*\] )
  | (?P<number> (?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)? )
  | (?P<word> [A-Za-z_\x80-\xff][A-Za-z0-9_$\x80-\xff]* )
  | (?P<other> . )
    """,
    re.DOTALL | re.VERBOSE,
)
_CONSTRAINTS = frozenset({"check", "constraint", "foreign", "primary", "unique"})
_OPENING = (b"'", b'"', b"`", b"[")
_ESCAPE = re.compile(
    r"\\(?:(\\)|u([0-9a-fA-F]{4})|\+([0-9a-fA-F]{6})|U([0-9a-fA-F]{8})|([0-9a-fA-F]{4}))"
)


def is_dump(head: bytes) -> bool:
    """Return True if a file is an SQL dump."""
    return _SQL.match(head) is not None and _TABLE_STATEMENT.search(head) is not None


def session_info(row: Row) -> Map:
    """Return a `session` row as an export's `info`, without nulls."""
    info: Map = {"id": row.get("id")}
    info.update((name, row[column]) for name, column in _PLAIN if row.get(column) is not None)
    info.update((name, value) for name in _IN_JSON if (value := decoded(row.get(name))) is not None)
    changes = {name: row.get(f"summary_{name}") for name in _CHANGES}
    if isinstance(changes["diffs"], str):
        changes["diffs"] = decoded(changes["diffs"])
    if any(value is not None for value in changes.values()):
        counts = {name: changes[name] or 0 for name in _CHANGES[:3]}
        diffs = {} if changes["diffs"] is None else {"diffs": changes["diffs"]}
        info["summary"] = {**counts, **diffs}
    if row.get("share_url") is not None:
        info["share"] = {"url": row["share_url"]}
    times = {name: row.get(f"time_{name}") for name in _TIMES}
    info["time"] = {name: value for name, value in times.items() if value is not None}
    return info


def message_info(row: Row) -> Map:
    """Return a `message` row as its `info`."""
    data = _object(row)
    if "time" not in data and row.get("time_created") is not None:
        data["time"] = {"created": row["time_created"]}
    return {**data, "id": row.get("id"), "sessionID": row.get("session_id")}


def part_of(row: Row, session: Any) -> Map:
    """Return a `part` row as in an export.

    Args:
        row: the row.
        session: id of its session, which not every version has in the row.
    """
    own_session = row.get("session_id")
    ids = {"id": row.get("id"), "sessionID": session if own_session is None else own_session}
    return {**_object(row), **ids, "messageID": row.get("message_id")}


def message_of_v2(row: Row) -> Map:
    """Return a `session_message` row of version 2 as an export's message."""
    data = _object(row)
    blocks = data.pop("content", None)
    text = data.pop("text", None)
    if not isinstance(blocks, list):
        blocks = []
    if isinstance(text, str):
        blocks = [{"type": "text", "text": text}, *blocks]
    model = data.get("model")
    if isinstance(model, dict):
        data.update(modelID=model.get("id"), providerID=model.get("providerID"))
    ids = {"id": row.get("id"), "sessionID": row.get("session_id"), "role": row.get("type")}
    if "time" not in data and row.get("time_created") is not None:
        data["time"] = {"created": row["time_created"]}
    parts = [_part_of_v2(block, f"{row.get('id')}_{n}", ids) for n, block in enumerate(blocks)]
    return {"info": {**data, **ids}, "parts": parts}


def _part_of_v2(block: Any, id_: str, ids: Map) -> Map:
    part = dict(block) if isinstance(block, dict) else {"type": "unknown", "data": block}
    if part.get("type") == "tool":
        part["callID"], part["tool"] = part.pop("id", None), part.pop("name", None)
    return {**part, "id": id_, "sessionID": ids["sessionID"], "messageID": ids["id"]}


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Return rows in order of creation time, then id."""
    return sorted(
        rows, key=lambda row: (time_of(row.get("time_created")) or 0, str(row.get("id") or ""))
    )


def decoded(value: Any) -> Any:
    """Return the value of a JSON column, or None."""
    if not isinstance(value, str):
        return None
    try:
        result, end = scan(value, len(value) - len(value.lstrip()))
        return checked(result) if not value[end:].strip() else None
    except (ValueError, RecursionError):
        return None


def _object(row: Row) -> Map:
    data = decoded(row.get("data"))
    if isinstance(data, dict):
        return dict(data)
    return {} if row.get("data") is None else {"data": row["data"]}


class _Token(NamedTuple):
    """A piece of SQL text; `what` is its kind, or the character itself."""

    what: str
    start: int
    end: int


class _UnfitError(ValueError):
    """A statement of unsupported form."""


def rows_of(line: InputLine, tables: Collection[str]) -> Iterator[Record | Skip]:
    """Yield the rows of some tables, in dump order.

    Args:
        line: the whole file as one line.
        tables: table names in lower case.
    """
    if line.data is None:
        yield Skip(line.number, TOO_LONG, f"{line.length} bytes")
        return
    yield from _Dump(line, line.data, tables).rows()


class _Dump:
    """Parser of one dump."""

    def __init__(self, line: InputLine, data: bytes, tables: Collection[str]) -> None:
        self._line = line
        self._data = data
        self._tables = tables
        self._columns: dict[str, list[str]] = {}
        self._lines = (0, line.number)
        self._broken: int | None = None

    def rows(self) -> Iterator[Record | Skip]:
        for tokens in self._statements():
            words = [self._word(token) for token in tokens[:3]]
            if words[:1] == ["create"] and "table" in words:
                self._read_columns(tokens)
            elif words[:1] == ["insert"] or words[:1] == ["replace"]:
                yield from self._insert(tokens)
        if self._broken is not None:
            yield Skip(self._number(self._broken), CUT_SHORT, "unterminated text")

    def _statements(self) -> Iterator[list[_Token]]:
        """Yield the tokens of each statement, without blanks and the semicolon."""
        tokens: list[_Token] = []
        for match in _TOKEN.finditer(self._data):
            what = match.lastgroup or ""
            if what == "blank":
                continue
            if what == "other":
                if match[0] in _OPENING or self._data.startswith(b"/*", match.start()):
                    self._broken = match.start()
                    return
                what = match[0].decode("latin-1")
            if what == ";" and not self._in_trigger(tokens):
                yield tokens
                tokens = []
            else:
                tokens.append(_Token(what, match.start(), match.end()))
        if tokens:
            yield tokens

    def _in_trigger(self, tokens: Sequence[_Token]) -> bool:
        """Return True if a semicolon is inside a trigger body."""
        words = [self._word(token) for token in tokens[:3]]
        return words[:1] == ["create"] and "trigger" in words and self._word(tokens[-1]) != "end"

    def _read_columns(self, tokens: Sequence[_Token]) -> None:
        """Read the columns of a table."""
        at = next((n for n, token in enumerate(tokens) if token.what == "("), 0)
        name = self._name(tokens[at - 1]) if at else ""
        if name.lower() not in self._tables:
            return
        columns: list[str] = []
        depth, first = 0, True
        for token in tokens[at:]:
            if token.what == "(":
                depth += 1
            elif token.what == ")":
                depth -= 1
            elif token.what == "," and depth == 1:
                first = True
            elif first and depth == 1:
                first = False
                if token.what == "name" or self._word(token) not in _CONSTRAINTS:
                    columns.append(self._name(token).lower())
        self._columns[name.lower()] = columns

    def _insert(self, tokens: Sequence[_Token]) -> Iterator[Record | Skip]:
        at = next((n for n, token in enumerate(tokens) if self._word(token) == "into"), -1)
        stream = _TokenStream(self._data, tokens, at + 1)
        try:
            name = self._name(stream.take("name", "word"))
            if stream.accept("."):
                name = self._name(stream.take("name", "word"))
            table = name.lower()
            if at < 0 or table not in self._tables:
                return
            columns = self._columns.get(table, [])
            if stream.accept("("):
                columns = self._column_list(stream)
            if self._word(stream.take("word")) != "values":
                raise _UnfitError("no values")
        except _UnfitError as error:
            yield Skip(self._number(tokens[0].start), NOT_SQL, str(error))
            return
        while True:
            yield self._row(stream, table, columns)
            if not stream.accept(","):
                return

    def _column_list(self, stream: _TokenStream) -> list[str]:
        columns = [self._name(stream.take("name", "word")).lower()]
        while not stream.accept(")"):
            stream.take(",")
            columns.append(self._name(stream.take("name", "word")).lower())
        return columns

    def _row(self, stream: _TokenStream, table: str, columns: Sequence[str]) -> Record | Skip:
        start = stream.offset
        number = self._number(start)
        try:
            stream.take("(")
            values = [stream.value()]
            while not stream.accept(")"):
                stream.take(",")
                values.append(stream.value())
            if len(values) != len(columns):
                raise _UnfitError(f"{table}: {len(values)} values for {len(columns)} columns")
        except UnicodeDecodeError as error:
            stream.skip_row()
            return Skip(number, NOT_UTF8, f"byte {start + error.start}")
        except _UnfitError as error:
            stream.skip_row()
            return Skip(number, NOT_SQL, str(error)[:200])
        except RecursionError:
            stream.skip_row()
            return Skip(number, TOO_DEEP, "")
        row = dict(zip(columns, values, strict=True))
        return record_of(self._line, number, start, stream.end, {TABLE: table, ROW: row})

    def _word(self, token: _Token) -> str:
        """Return a word in lower case; "" for other tokens."""
        if token.what != "word":
            return ""
        return self._data[token.start : token.end].decode("latin-1").lower()

    def _name(self, token: _Token) -> str:
        spelled = self._data[token.start : token.end].decode("utf-8", "replace")
        if token.what != "name":
            return spelled
        return spelled[1:-1].replace('""', '"') if spelled[0] == '"' else spelled[1:-1]

    def _number(self, at: int) -> int:
        """Return the line number of an offset; offsets must increase."""
        place, number = self._lines
        number += self._data.count(b"\n", place, at)
        self._lines = (max(place, at), number)
        return number


class _TokenStream:
    """Token stream of a statement."""

    def __init__(self, data: bytes, tokens: Sequence[_Token], at: int) -> None:
        self._data = data
        self._tokens = tokens
        self._at = at

    @property
    def offset(self) -> int:
        """Offset of the next token."""
        return self._tokens[min(self._at, len(self._tokens) - 1)].start

    @property
    def end(self) -> int:
        """End offset of the last token."""
        return self._tokens[self._at - 1].end

    def take(self, *kinds: str) -> _Token:
        """Return the next token.

        Raises:
            _UnfitError: it is of another kind, or there is none.
        """
        if self._at >= len(self._tokens) or self._tokens[self._at].what not in kinds:
            raise _UnfitError(f"{' or '.join(kinds)} expected")
        self._at += 1
        return self._tokens[self._at - 1]

    def accept(self, what: str) -> bool:
        """Consume the next token if it is `what`; return True if it was."""
        matches = self._at < len(self._tokens) and self._tokens[self._at].what == what
        self._at += matches
        return matches

    def skip_row(self) -> None:
        """Skip to the end of the row."""
        depth = 0
        for token in self._tokens[: self._at]:
            depth += (token.what == "(") - (token.what == ")")
        while depth > 0 and self._at < len(self._tokens):
            what = self._tokens[self._at].what
            depth += (what == "(") - (what == ")")
            self._at += 1

    def value(self) -> Any:
        """Return the next value: a literal, or SQLite's functions for special characters.

        Raises:
            _UnfitError: it is something else.
            UnicodeDecodeError: the text is not UTF-8.
        """
        negative = self.accept("-")
        if not negative:
            self.accept("+")
        token = self.take("text", "blob", "number", "word")
        spelled = self._data[token.start : token.end]
        if token.what == "number":
            text = spelled.decode("ascii")
            number = int(text) if text.isdigit() and len(text) < 20 else float(text)
            return -number if negative else number
        if negative or b"\0" in spelled:
            raise _UnfitError("not a literal value")
        if token.what == "blob":
            return bytes.fromhex(spelled[2:-1].decode("ascii"))
        if token.what == "text":
            return spelled[1:-1].replace(b"''", b"'").decode("utf-8", "surrogatepass")
        return self._word(spelled.decode("latin-1").lower())

    def _word(self, word: str) -> Any:
        if word in ("null", "true", "false"):
            return {"null": None, "true": 1, "false": 0}[word]
        if word == "replace":
            self.take("(")
            text, _, old = self.value(), self.take(","), self.value()
            self.take(",")
            new = self.value()
            self.take(")")
            if not all(isinstance(piece, str) for piece in (text, old, new)):
                raise _UnfitError("not a literal value")
            return text.replace(old, new) if old else text
        if word == "unistr":
            self.take("(")
            text = self.value()
            self.take(")")
            if isinstance(text, str):
                return _ESCAPE.sub(_unescape, text)
        if word == "char":
            self.take("(")
            number = self.value()
            self.take(")")
            if number in (9, 10, 13):
                return chr(number)
        raise _UnfitError("not a literal value")


def _unescape(match: re.Match[str]) -> str:
    digits = next((group for group in match.groups()[1:] if group), "")
    number = int(digits, 16) if digits else 0x110000
    return "\\" if match[1] else chr(number) if number < 0x110000 else match[0]

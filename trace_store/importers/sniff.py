"""Head of a file: the first bytes, by which formats recognise their files.

Invariant: a pure function of bytes that never fails; cached, since many formats ask.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from trace_store.base.frozen import value
from trace_store.disk.files import Disk
from trace_store.errors import TraceError
from trace_store.importers.input_files import InputFile, InputLine
from trace_store.importers.json_records import ROOT, read_document, values_in

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HEAD_BYTES = 256 * 1024
"""Bytes read to detect the format."""
_CACHED_RECORDS = 8


def first_records(head: bytes, count: int) -> list[dict[str, Any]]:
    """Return the first JSON objects that start a line.

    Args:
        head: the first bytes of a file.
        count: maximum number of objects.
    """
    if count > _CACHED_RECORDS:
        return list(islice(_records(head), count))
    return list(_few_records(head)[:count])


@lru_cache(maxsize=2)
def _few_records(head: bytes) -> tuple[dict[str, Any], ...]:
    """Return the first records of a head, cached since every format asks for them."""
    return tuple(islice(_records(head), _CACHED_RECORDS))


def _records(head: bytes) -> Iterator[dict[str, Any]]:
    for line in head.removeprefix(_BYTE_ORDER_MARK).split(b"\n"):
        if line.lstrip(b" \t\r\0").startswith(b"{"):
            yield from (value for value in values_in(line) if isinstance(value, dict))


def read_head(disk: Disk, path: str) -> bytes:
    """Return the head of a file; b"" if it cannot be read."""
    try:
        with InputFile(disk, path) as file:
            return file.read_at(0, HEAD_BYTES)
    except TraceError:
        return b""


def is_below(folder: str, project_dir: str) -> bool:
    """Return True if `folder` is a project's folder or inside it.

    The project's symbolic links are resolved.
    """
    if not folder or not os.path.isabs(folder):
        return False
    path = os.path.normpath(folder)
    for project in {os.path.abspath(project_dir), os.path.realpath(project_dir)}:
        if path == project or path.startswith(project.rstrip(os.sep) + os.sep):
            return True
    return False


BINARY, TEXT, OBJECT, LIST, LINES = "binary", "text", "object", "list", "lines"
MAXIMUM_VALUES = 20
"""Objects to look at."""
MAXIMUM_NAMED_KEYS = 8

# Lists to read in a document that is truncated at the head.
_LISTS = (
    *("messages", "contents", "input", "output", "choices", "candidates"),
    "conversations",
    *("history", "trajectory", "steps", "chapters", "files", "entries"),
)
_EMPTY = {
    OBJECT: "an empty JSON object",
    LIST: "a JSON list without objects",
    LINES: "lines that start with an empty JSON object",
}
_BLANKS = b" \t\r\n"


@value
class FileShape:
    """Shape of a file.

    Attributes:
        kind: OBJECT or LIST for a JSON document, LINES for JSON objects one a line, else TEXT or BINARY.
        values: the first objects: the document itself, list elements, or lines.
    """

    kind: str
    values: Sequence[dict[str, Any]] = ()

    @property
    def is_document(self) -> bool:
        """True if the file is one document."""
        return self.kind in (OBJECT, LIST)

    def single(self, *lists: str) -> dict[str, Any]:
        """Return the only object of the file if it has one of these lists, which may be on one line; else empty."""
        alone = self.kind == OBJECT or (self.kind == LINES and len(self.values) == 1)
        form = self.values[0] if alone and self.values else {}
        return form if any(isinstance(form.get(name), list) for name in lists) else {}


@lru_cache(maxsize=2)
def file_shape(head: bytes) -> FileShape:
    """Return the shape of a file from its first bytes."""
    body = head.removeprefix(_BYTE_ORDER_MARK).lstrip(_BLANKS)
    if body[:1] not in (b"{", b"["):
        return FileShape(TEXT if _is_text(head) else BINARY)
    lines = body.split(b"\n", MAXIMUM_VALUES)[:MAXIMUM_VALUES] if b"\n" in body else []
    if body.startswith(b"{") or (lines and next(values_in(lines[0]), None) is not None):
        # One line with a complete object is enough, since other lines may be damaged. A line of a
        # pretty-printed document never starts with one.
        loaded = [next(values_in(line), None) for line in lines if line.startswith(b"{")]
        objects = [value for value in loaded if isinstance(value, dict) and value]
        if objects:
            return FileShape(LINES, objects)
    document = read_document(
        InputLine(1, 0, _drop_partial_character(body), len(body), True, whole=True), ROOT, *_LISTS
    )
    lists = {name: [record.data for record in document.records(name)] for name in document.lists}
    if ROOT in lists:
        if not document.lists[ROOT] and document.damage is not None:
            return FileShape(TEXT)  # many configuration files start with a bracket
        return FileShape(LIST, lists[ROOT][:MAXIMUM_VALUES])
    form = {**document.fields, **lists}
    if form:
        return FileShape(OBJECT, [form])
    if document.damage is None:
        return FileShape(OBJECT)
    # The head is no document: lines after an empty object, or text.
    return FileShape(LINES if body.startswith(b"{}") else TEXT)


def is_trajectory(head: bytes) -> bool:
    """Return True if the first bytes are those of a trajectory of the program trail."""
    for form in file_shape(head).values[:1]:
        known = ("startedAt", "agents", "task", "status")
        if isinstance(form.get("chapters"), list) and any(key in form for key in known):
            return True
    return head.lstrip()[:1] == b"{" and b'"chapters"' in head and b'"traj_' in head


def describe(head: bytes) -> str:
    """Describe the first bytes of a file for an error."""
    shape = file_shape(head)
    if shape.kind == BINARY:
        return f"binary data that starts with {head[:8].hex(' ')}"
    if shape.kind == TEXT:
        beginning = head[:200].decode("utf-8", "replace").split()
        return f"text that is not JSON: {' '.join(beginning)[:40]!r}"
    if not shape.values:
        return _EMPTY[shape.kind]
    alone = shape.kind == OBJECT or (shape.kind == LINES and len(shape.values) == 1)
    many = "a JSON list of objects" if shape.kind == LIST else "JSON objects, one a line"
    keys = [str(key)[:40] for key in shape.values[0]]
    named = ", ".join(keys[:MAXIMUM_NAMED_KEYS]) + (", …" if len(keys) > MAXIMUM_NAMED_KEYS else "")
    what = "a JSON object" if alone else many
    return f"{what} with the keys {named}" if keys else f"{what} without keys"


def _is_text(head: bytes) -> bool:
    try:
        return "\x00" not in _drop_partial_character(head).decode()
    except UnicodeDecodeError:
        return False


def _drop_partial_character(data: bytes) -> bytes:
    """Remove a truncated character from the end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            width = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if back < width else data
    return data

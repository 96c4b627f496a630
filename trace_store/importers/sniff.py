"""What the beginning of a file looks like: by which formats without a mark of their own are told, and errors tell.

Rule: a pure function of bytes that never fails, and looks at them once, however many formats ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from trace_store.frozen import value
from trace_store.importers.decode import Line
from trace_store.importers.documents import ROOT, read_document
from trace_store.importers.json_records import values_in

BINARY, TEXT, OBJECT, LIST, LINES = "binary", "text", "object", "list", "lines"
MAXIMUM_VALUES = 20
"""Objects that are looked at; a transcript shows what it is in the first ones."""
MAXIMUM_NAMED_KEYS = 8

# Lists that are worth taking apart where the rest of the document is not at hand.
_LISTS = (
    *("messages", "contents", "input", "output", "choices", "candidates"),
    "conversations",
    *("history", "trajectory", "steps", "chapters", "files"),
)
_EMPTY = {
    OBJECT: "an empty JSON object",
    LIST: "a JSON list without objects",
    LINES: "lines that begin with an empty JSON object",
}
_MARK = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\n"


@value
class Glance:
    """What there is to see.

    Attributes:
        kind: OBJECT or LIST for a file that is one JSON document, LINES for JSON objects a line, else TEXT or BINARY.
        values: the first objects: the document itself, as far as it goes; the elements of the list; those of the lines.
    """

    kind: str
    values: Sequence[dict[str, Any]] = ()

    @property
    def is_document(self) -> bool:
        """Whether the file is one document."""
        return self.kind in (OBJECT, LIST)


@lru_cache(maxsize=2)
def look(head: bytes) -> Glance:
    """Return what the first bytes of a file look like."""
    body = head.removeprefix(_MARK).lstrip(_BLANKS)
    if body[:1] not in (b"{", b"["):
        return Glance(TEXT if _is_text(head) else BINARY)
    lines = body.split(b"\n", MAXIMUM_VALUES)[:MAXIMUM_VALUES] if b"\n" in body else []
    if body.startswith(b"{") or (lines and next(values_in(lines[0]), None) is not None):
        # A line may be damaged; but what a document holds does not stand at the beginning of a line, whole.
        loaded = [next(values_in(line), None) for line in lines if line.startswith(b"{")]
        found = [value for value in loaded if isinstance(value, dict) and value]
        if found:
            return Glance(LINES, found)
    document = read_document(Line(1, 0, _whole(body), len(body), True, whole=True), ROOT, *_LISTS)
    lists = {name: [record.data for record in document.records(name)] for name in document.lists}
    if ROOT in lists:
        if not document.lists[ROOT] and document.damage is not None:
            return Glance(TEXT)  # many a file of settings begins with a bracket
        return Glance(LIST, lists[ROOT][:MAXIMUM_VALUES])
    form = {**document.fields, **lists}
    if form:
        return Glance(OBJECT, [form])
    if document.damage is None:
        return Glance(OBJECT)
    # Behind an empty object stand other lines.
    return Glance(LINES if body.startswith(b"{}") else TEXT)


def describe(head: bytes) -> str:
    """Return in words what the first bytes of a file look like, for an error."""
    glance = look(head)
    if glance.kind == BINARY:
        return f"binary data that begins with {head[:8].hex(' ')}"
    if glance.kind == TEXT:
        beginning = head[:200].decode("utf-8", "replace").split()
        return f"text that is no JSON: {' '.join(beginning)[:40]!r}"
    if not glance.values:
        return _EMPTY[glance.kind]
    alone = glance.kind == OBJECT or (glance.kind == LINES and len(glance.values) == 1)
    many = "a JSON list of objects" if glance.kind == LIST else "JSON objects, one a line"
    keys = [str(key)[:40] for key in glance.values[0]]
    named = ", ".join(keys[:MAXIMUM_NAMED_KEYS]) + (", …" if len(keys) > MAXIMUM_NAMED_KEYS else "")
    what = "a JSON object" if alone else many
    return f"{what} with the keys {named}" if keys else f"{what} without keys"


def _is_text(head: bytes) -> bool:
    try:
        return "\x00" not in _whole(head).decode()
    except UnicodeDecodeError:
        return False


def _whole(data: bytes) -> bytes:
    """Return bytes without a character that was cut at their end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            width = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if back < width else data
    return data

"""Object names and contents in the input and output of plumbing commands."""

from __future__ import annotations

from trace_store import objects, odb
from trace_store.base.oid import is_full_id
from trace_store.objects.codec import BLOB, blob_content, is_plain_blob, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def object_name(line: str) -> str:
    """Return the object name in an input line, ignoring everything after a full id.

    So the output of one command can be the input of another, whatever else is on the line.
    """
    first, space, _ = line.partition(" ")
    return first if space and is_full_id(first) else line


def check(data: bytes) -> None:
    """Check that bytes are an object in canonical form, as `trace fsck` does.

    Raises:
        CorruptObjectError: they are not.
    """
    if not is_plain_blob(data):
        odb.verify.check_object(data)


def size_of(data: bytes) -> int:
    """Return the size of a blob's content, or of another object's canonical bytes."""
    return len(content_of(data))


def content_of(data: bytes) -> bytes:
    """Return the content of a blob, and the canonical bytes of any other object."""
    return blob_content(data) if kind_of(data) == BLOB else data


def content_fields(content: bytes) -> dict[str, str]:
    """Return content for JSON: `text`, or `base64` when it is not UTF-8."""
    try:
        return {"text": objects.content.text_of(content)}
    except UnicodeDecodeError:
        from binascii import b2a_base64

        return {"base64": b2a_base64(content, newline=False).decode("ascii")}


def json_line(record: dict[str, Any], *, ascii_only: bool) -> bytes:
    """Return a record as JSON on one line, without its end; lone surrogates as escapes."""
    import json  # its import takes as long as the rest of the command

    text = json.dumps(record, ensure_ascii=ascii_only)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(record).encode()

"""`trace cat-file`: an object, its kind or its size.

    -t       the kind and a newline
    -s       the size of the content in bytes, decimal, and a newline
    -p       content as it is; any other object as JSON (see `trace write-commit`) and a newline
    -e       nothing; the exit code is 0 when the object is here and its hash is right
    --raw    the object's canonical bytes; `trace cat-file --raw OID | b3sum` prints OID

The content of a blob is what was hashed into it, without its salt. The content of a `list` of chunks is the joined
content of the chunks under -p, and of any other object its canonical bytes.

`--batch` reads one object name a line and writes for each `<id> SP <kind> SP <size> LF <content> LF`, where the
content of anything but a blob is its canonical bytes; with `--raw` it is the canonical bytes for blobs too.
`--batch-check` writes the first line only. A name that means no object gives `<name> SP missing LF`, a prefix of
several ids `<name> SP ambiguous LF`, an object whose bytes are damaged `<name> SP damaged LF`; these do not end the
run. On a terminal, content is escaped, and --raw is refused.
"""

from __future__ import annotations

from trace_cli.failures import usage_error
from trace_cli.plumbing.support import open_store
from trace_cli.render.escape import bounded, safe
from trace_cli.render.structure import to_json
from trace_cli.runtime import Invocation
from trace_store.errors import (
    AmbiguousRevisionError,
    FormatError,
    NotFoundError,
    TraceError,
    UnbornBranchError,
)
from trace_store.objects.codec import BLOB, LIST, blob_content, decode, kind_of
from trace_store.objects.content import read_content
from trace_store.revision import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store import Store


def run(
    invocation: Invocation,
    *,
    show_kind: bool,
    show_size: bool,
    pretty: bool,
    exists: bool,
    raw: bool,
    batch: bool,
    batch_check: bool,
    revision: str | None,
) -> int:
    """Print what is asked for of one object, or of each that standard input names."""
    asked = show_kind + show_size + pretty + exists + batch + batch_check + (raw and not batch)
    if asked != 1:
        raise usage_error("give one of -t, -s, -p, -e, --raw, --batch and --batch-check")
    if (batch or batch_check) != (revision is None):
        raise usage_error("an object is named, or --batch reads names from standard input")
    if raw and invocation.terminal:
        raise usage_error(
            "raw bytes are not for a terminal", "send the output to a file or a program"
        )
    with open_store(invocation) as store:
        if revision is None:
            return _batch(invocation, store, content=batch, raw=raw)
        oid = resolve(store, revision)
        data = store.objects.read(oid)
        if show_kind:
            invocation.line(safe(kind_of(data)))
        elif show_size:
            invocation.line(str(len(_content(data))))
        elif raw:
            invocation.write(data)
        elif pretty:
            _print(invocation, store, oid, data)
    return 0


def _content(data: bytes) -> bytes:
    return blob_content(data) if kind_of(data) == BLOB else data


def _print(invocation: Invocation, store: Store, oid: bytes, data: bytes) -> None:
    kind = kind_of(data)
    value = None if kind == BLOB else decode(data)[1:]
    if kind == BLOB or (kind == LIST and value and _is_chunks(value[0])):
        content = read_content(oid, store.objects.read)
        invocation.write(bounded(content).encode() if invocation.terminal else content)
    else:
        invocation.line(to_json(value[0] if value and len(value) == 1 else value))


def _is_chunks(fields: object) -> bool:
    return isinstance(fields, dict) and fields.get("type") == "chunks"


def _batch(invocation: Invocation, store: Store, *, content: bool, raw: bool) -> int:
    for line in invocation.stdin:
        name = line.decode("utf-8", "replace").rstrip("\r\n")
        try:
            oid = resolve(store, name)
            data = store.objects.read(oid)
        except TraceError as error:
            invocation.line(f"{safe(name)} {_trouble(error)}")
        else:
            body = data if raw else _content(data)
            invocation.line(f"{oid} {safe(kind_of(data))} {len(body)}")
            if content:
                shown = bounded(body).encode() if invocation.terminal else body
                invocation.write(shown + b"\n")
        invocation.flush()
    return 0


def _trouble(error: TraceError) -> str:
    if isinstance(error, AmbiguousRevisionError):
        return "ambiguous"
    if isinstance(error, FormatError):
        return "damaged"
    if isinstance(error, NotFoundError | UnbornBranchError | ValueError):
        return "missing"
    raise error

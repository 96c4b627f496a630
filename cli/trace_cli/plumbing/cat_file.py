"""`trace cat-file`: the content, type or size of an object.

    -t       the type and a newline
    -s       the size of the content in bytes, decimal, and a newline
    -p       content as it is; any other object as JSON (see `trace write-commit`) and a newline
    -e       nothing; the exit code is 0 if the object exists, its hash is right and its bytes are an object's
    --raw    the canonical bytes; `trace cat-file --raw OID | b3sum` prints OID

The content of a blob excludes its salt. For a `list` of chunks, -p prints the joined content. The content of any other
object is its canonical bytes.

`--batch` reads one object name per line and writes `<id> SP <type> SP <size> LF <content> LF` for each; with `--raw`
the content of blobs is their canonical bytes, too. `--batch-check` writes only the first line. Anything after a full id
and a space is ignored, so that the output of `trace ls-objects` can be used as input. An unknown name gives `<name> SP
missing LF`, an ambiguous prefix `<name> SP ambiguous LF`, a corrupt object `<name> SP damaged LF`; the command
continues, and ends with 12 if any was corrupt. Corrupt is what `trace fsck` finds unreadable or not canonical; --raw
still prints its bytes, before it ends with 12. On a terminal, content is escaped, and --raw is refused.

`--batch --json` writes one JSON object per line instead: `id`, `kind`, `size`, and for a blob `text`, or `base64` if it
is not UTF-8; for any other object `value`, as -p prints it. If there is no object, the line has `name` and `problem`:
`missing`, `ambiguous` or `damaged`.
"""

from __future__ import annotations

from trace_cli import plumbing, render
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import EXIT_DAMAGED, EXIT_OK, usage_error
from trace_cli.plumbing.support import open_store
from trace_cli.render.escape import bounded, safe
from trace_cli.runtime import Invocation
from trace_store import errors, objects
from trace_store.base.oid import ObjectId, is_full_id
from trace_store.objects.codec import BLOB, LIST, decode, kind_of

DAMAGED = "damaged"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from trace_store.store.store import Store


@takes(
    Option("-t", "show_kind", "Print the type"),
    Option("-s", "show_size", "Print the size of the content in bytes"),
    Option("-p", "pretty", "Print content as it is, other objects as JSON"),
    Option("-e", "exists", "Print nothing; exit 0 if the object exists and is intact"),
    Option("--raw", "raw", "Print the canonical bytes, whose hash is the id"),
    Option("--batch", "batch", "For each line of standard input: id, type, size and content"),
    Option("--batch-check", "batch_check", "For each line of standard input: id, type and size"),
    Option("--json", "as_json", "With --batch: one line of JSON per object"),
    Argument("OBJECT", "revision", "An object id (prefix) or a revision", OPTIONAL),
)
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
    """Print one object, or each object named on standard input."""
    asked = show_kind + show_size + pretty + exists + batch + batch_check + (raw and not batch)
    if asked != 1:
        raise usage_error("give one of -t, -s, -p, -e, --raw, --batch and --batch-check")
    if (batch or batch_check) != (revision is None):
        raise usage_error("name an object, or use --batch to read names from standard input")
    if invocation.as_json and (raw or not batch):
        raise usage_error("--json requires --batch and excludes --raw")
    if raw and invocation.terminal:
        raise usage_error(
            "raw bytes cannot be written to a terminal",
            "redirect the output to a file or a program",
        )
    with open_store(invocation) as store:
        if revision is None:
            if invocation.as_json:
                return _each(invocation, store, _json_writer(invocation))
            return _each(invocation, store, _writer(invocation, content=batch, raw=raw))
        oid = _named(store, revision)
        data = store.objects.read(oid)
        if raw:
            invocation.write(data)
        plumbing.contents.check(data)
        if show_kind:
            invocation.line(safe(kind_of(data)))
        elif show_size:
            invocation.line(str(plumbing.contents.size_of(data)))
        elif pretty:
            _print(invocation, store, oid, data)
    return 0


def _named(store: Store, name: str) -> ObjectId:
    """Resolve a name to an id; a full id needs no lookup."""
    return ObjectId.parse(name) if is_full_id(name) else plumbing.ranges.resolve(store, name)


def _print(invocation: Invocation, store: Store, oid: bytes, data: bytes) -> None:
    kind = kind_of(data)
    if kind == BLOB or (kind == LIST and _is_chunks(decode(data))):
        content = objects.content.read_content(oid, store.objects.read)
        invocation.write(bounded(content).encode() if invocation.terminal else content)
    else:
        invocation.line(render.structure.to_json(_fields(data)))


def _fields(data: bytes) -> Any:
    """Return the content of a structured object without its kind."""
    values = decode(data)[1:]
    return values[0] if len(values) == 1 else values


def _is_chunks(value: list[Any]) -> bool:
    fields = value[1] if len(value) > 1 else None
    return isinstance(fields, dict) and fields.get("type") == "chunks"


def _each(
    invocation: Invocation, store: Store, write: Callable[[str, ObjectId | None, bytes, str], None]
) -> int:
    """Call `write` with each object named on standard input, or with its problem; return the exit code."""
    code = EXIT_OK
    for line in invocation.lines():
        name = plumbing.contents.object_name(line.decode("utf-8", "replace").rstrip("\r\n"))
        try:
            oid = _named(store, name)
            data = store.objects.read(oid)
            plumbing.contents.check(data)
        except errors.TraceError as error:
            problem = _trouble(error)
            write(name, None, b"", problem)
            if problem == DAMAGED:
                code = EXIT_DAMAGED
        else:
            write(name, oid, data, "")
    return code


def _writer(
    invocation: Invocation, *, content: bool, raw: bool
) -> Callable[[str, ObjectId | None, bytes, str], None]:
    def write(name: str, oid: ObjectId | None, data: bytes, problem: str) -> None:
        if problem:
            invocation.line(f"{safe(name)} {problem}")
            return
        body = data if raw else plumbing.contents.content_of(data)
        invocation.line(f"{oid} {safe(kind_of(data))} {len(body)}")
        if content:
            shown = bounded(body).encode() if invocation.terminal else body
            invocation.write(shown + b"\n")

    return write


def _json_writer(
    invocation: Invocation,
) -> Callable[[str, ObjectId | None, bytes, str], None]:
    def write(name: str, oid: ObjectId | None, data: bytes, problem: str) -> None:
        if problem:
            record: dict[str, Any] = {"name": name, "problem": problem}
        else:
            kind = kind_of(data)
            record = {"id": str(oid), "kind": kind, "size": plumbing.contents.size_of(data)}
            record.update(
                plumbing.contents.content_fields(plumbing.contents.content_of(data))
                if kind == BLOB
                else {"value": render.structure.json_value(_fields(data))}
            )
        invocation.write(
            plumbing.contents.json_line(record, ascii_only=invocation.terminal) + b"\n"
        )

    return write


def _trouble(error: errors.TraceError) -> str:
    if isinstance(error, errors.AmbiguousRevisionError):
        return "ambiguous"
    if isinstance(error, errors.FormatError):
        return DAMAGED
    if isinstance(error, errors.NotFoundError | errors.UnbornBranchError | ValueError):
        return "missing"
    raise error

"""`trace hash-object`: the id of content.

One line per input (standard input first, then files, then paths from standard input): the object id, 64 hex characters.

With `-t blob`, the default, the input is content. Up to 8 MiB it becomes one blob; larger content becomes blobs of 8
MiB and a `list` object, whose id is printed. With any other type, the input is a complete object in canonical bytes, as
`trace cat-file --raw` prints it, and has to be valid. `-w` stores the objects. Without `-w` no repository is needed.
"""

from __future__ import annotations

from trace_cli import plumbing
from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.runtime import Invocation
from trace_store import errors, objects
from trace_store.base.oid import ObjectId, hash_object
from trace_store.objects.codec import BLOB, COMMIT, KINDS, TAG, is_canonical, kind_of
from trace_store.objects.content import write_content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@takes(
    Option("-w", "write", "Store the object"),
    Option("-t --type", "kind", "blob (the default), or the type of a complete object", "KIND"),
    Option("--stdin", "stdin", "Read content from standard input, before any file"),
    Option("--stdin-paths", "stdin_paths", "Read file names from standard input, one per line"),
    Argument("FILE", "files", "Files to read", ANY),
)
def run(
    invocation: Invocation,
    *,
    write: bool,
    kind: str | None,
    stdin: bool,
    stdin_paths: bool,
    files: list[str],
) -> int:
    """Print ids, and store the objects with `write`."""
    if stdin and stdin_paths:
        raise usage_error("--stdin and --stdin-paths both read standard input")
    if not (stdin or stdin_paths or files):
        raise usage_error("no content to hash", "name files, or give --stdin")
    kind = kind or BLOB
    if kind not in KINDS:
        raise usage_error(f"unknown kind {kind!r}: one of {', '.join(KINDS)}")
    if write:
        with plumbing.support.open_store(invocation) as store:
            _each(
                invocation,
                _inputs(invocation, stdin, stdin_paths, files),
                kind,
                store.objects.write,
            )
    else:
        _each(invocation, _inputs(invocation, stdin, stdin_paths, files), kind, hash_object)
    return 0


def _each(
    invocation: Invocation,
    inputs: Iterator[tuple[str, bytes]],
    kind: str,
    put: Callable[[bytes], ObjectId],
) -> None:
    for name, data in inputs:
        if kind == BLOB:
            oid = write_content(data, put)
        else:
            _check(name, data, kind)
            oid = put(data)
        invocation.line(str(oid))


def _inputs(
    invocation: Invocation, stdin: bool, stdin_paths: bool, files: list[str]
) -> Iterator[tuple[str, bytes]]:
    if stdin:
        yield "standard input", invocation.read("-")
    for path in files:
        yield repr(path), invocation.read(path)
    if stdin_paths:
        for path in invocation.input_lines():
            yield repr(path), invocation.read(path)


def _check(name: str, data: bytes, kind: str) -> None:
    try:
        if kind_of(data) != kind:
            raise errors.UnreadableInputError(f"{name} is a {kind_of(data)!r}, not a {kind!r}")
        if kind == COMMIT:
            objects.commit.Commit.decode(data)
        elif kind == TAG:
            objects.commit.Tag.decode(data)
        whole = is_canonical(data)
    except errors.CorruptObjectError as error:
        raise errors.UnreadableInputError(
            f"{name} is not a valid {kind}: {error.message}"
        ) from error
    if not whole:
        raise errors.UnreadableInputError(f"{name} is not in canonical form")

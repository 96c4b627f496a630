"""`trace pack-objects`: write objects to packs.

Reads one object name per line from standard input and writes the objects, each once and in that order, to a pack
`BASE-<name>.pack` with its index `BASE-<name>.idx`. Objects that link to others follow the content that is packed with
them. Prints the name, 64 hex characters and a newline: the hash of the pack's bytes. A pack holds at most 32 MiB, or
256 MiB of content; more objects go to further packs, one line each. Without objects there is no pack. Anything after a
full id and a space is ignored, so that the output of `trace ls-objects` can be used as input.

With `--revs` the lines are revisions, and what they reach is packed, as `trace ls-objects --stdin` lists it.

With `--stdout` the packs are written to standard output, one after the other, for `trace index-pack --stdin` and `trace
unpack-objects`. This is refused on a terminal.

The exit code is 4 if an object is missing, 12 if one is corrupt. No pack file is created then. A pack that was started
on standard output is incomplete, which readers detect.
"""

from __future__ import annotations

import os

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.plumbing.contents import object_name
from trace_cli.plumbing.ranges import object_sets
from trace_cli.plumbing.support import open_store
from trace_cli.runtime import Invocation
from trace_store import errors
from trace_store.base.oid import ObjectId, is_full_id
from trace_store.odb.pack_writer import (
    DEFAULT_FRAME_BYTES,
    DEFAULT_LEVEL,
    MAXIMUM_WANTED_FRAME_BYTES,
    SHARED_BYTES,
    SHARING_LEVEL,
    PackEncoder,
    PackFiles,
)
from trace_store.odb.reachable import reachable, reachable_ids
from trace_store.store.revision import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from trace_store.store.store import Store

MAXIMUM_LEVEL = 19


@takes(
    Option("--stdout", "stdout", "Write the packs to standard output"),
    Option("--revs", "revs", "Read revisions, and pack what they reach"),
    Option("--level", "level", "Compression level, 1 to 19 (default: 3)", "N", number=True),
    Option(
        "--frame-size",
        "frame_bytes",
        "Bytes of content per frame (default: 262144)",
        "BYTES",
        number=True,
    ),
    Argument("BASE", "base", "Prefix of the pack paths", OPTIONAL),
)
def run(
    invocation: Invocation,
    *,
    stdout: bool,
    revs: bool,
    level: int | None,
    frame_bytes: int | None,
    base: str | None,
) -> int:
    """Write the packs, and print their names."""
    if stdout == (base is not None):
        raise usage_error("give BASE, or --stdout")
    if stdout and invocation.terminal:
        raise usage_error(
            "a pack cannot be written to a terminal", "redirect it to a file or a program"
        )
    level = DEFAULT_LEVEL if level is None else level
    if not 1 <= level <= MAXIMUM_LEVEL:
        raise usage_error(f"--level is 1 to {MAXIMUM_LEVEL}, not {level}")
    frame_bytes = DEFAULT_FRAME_BYTES if frame_bytes is None else frame_bytes
    if not 1 <= frame_bytes <= MAXIMUM_WANTED_FRAME_BYTES:
        raise usage_error(
            f"--frame-size is 1 to {MAXIMUM_WANTED_FRAME_BYTES} bytes, not {frame_bytes}"
        )
    with open_store(invocation) as store:
        files = None if base is None else _files(store, base)
        begin = _Output(invocation).begin if files is None else files.begin
        shared = SHARED_BYTES if level >= SHARING_LEVEL else 0
        encoder = PackEncoder(begin, level=level, frame_bytes=frame_bytes, shared_bytes=shared)
        try:
            for oid, data in _reached(store, invocation) if revs else _named(store, invocation):
                encoder.add(oid, data)
            encoder.finish()
            names = [] if files is None else files.publish()
        finally:
            if files is not None:
                files.discard()
    for name in names:
        invocation.line(name)
    return 0


def _files(store: Store, base: str) -> PackFiles:
    path = os.path.abspath(base)
    return PackFiles(store.disk, os.path.dirname(path), lambda name: f"{path}-{name}")


class _Output:
    """A destination that writes packs to standard output."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation

    def begin(self) -> _Output:
        """Return the destination of the next pack."""
        return self

    def write(self, data: bytes) -> None:
        self._invocation.write(data)

    def complete(self, name: str, index: bytes) -> None:
        """Do nothing: the next pack follows."""


def _named(store: Store, invocation: Invocation) -> Iterable[tuple[ObjectId, bytes]]:
    oids: list[ObjectId] = []
    for line in invocation.input_lines():
        name = object_name(line)
        oid = ObjectId.parse(name) if is_full_id(name) else resolve(store, name)
        if not store.objects.contains(oid):
            raise errors.ObjectNotFoundError(f"no object {oid}", oid=oid)
        oids.append(oid)
    return store.objects.read_many(dict.fromkeys(oids))


def _reached(store: Store, invocation: Invocation) -> Iterable[tuple[ObjectId, bytes]]:
    starts: list[ObjectId] = []
    excluded: list[ObjectId] = []
    for line in invocation.input_lines():
        included, hidden = object_sets(store, line)
        starts += included
        excluded += hidden
    read = store.objects.read
    return reachable(read, starts, hidden=reachable_ids(read, excluded))

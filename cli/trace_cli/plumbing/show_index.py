"""`trace show-index`: the content of a pack index.

Reads an index from a file or standard input. One line per object, sorted by id:

    <id> SP <frame> SP <offset>

The frame is a number from 0; the offset is that of the object in the frame's uncompressed content. With `--frames`, one
line per frame, in the order of the pack:

    <frame> SP <offset in the file> SP <compressed size> SP <raw size> SP <number of objects> SP <flags>

With `--pack`, one line about its pack: `<size of the pack> SP <hash in its trailer>`. No repository is needed. If the
input is not an index or corrupt, the exit code is 12.
"""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.plumbing.pack_inputs import open_file
from trace_cli.runtime import Invocation
from trace_store import errors
from trace_store.disk.files import Disk
from trace_store.odb.index_scan import IndexContent
from trace_store.odb.ingest import read_up_to
from trace_store.odb.pack_index import MAXIMUM_INDEX_BYTES


@takes(
    Option("--frames", "frames", "List frames instead of objects"),
    Option("--pack", "pack", "Print the size and hash of its pack"),
    Argument("FILE", "file", "The index (default: standard input)", OPTIONAL),
)
def run(invocation: Invocation, *, frames: bool, pack: bool, file: str | None) -> int:
    """Print the content of the index."""
    if frames and pack:
        raise usage_error("give --frames or --pack, not both")
    content = IndexContent(_read(invocation, file))
    if pack:
        invocation.line(f"{content.pack_size} {content.check.hex()}")
    elif frames:
        for number, place in enumerate(content.places):
            sizes = f"{place.compressed} {place.raw} {place.objects} {place.flags}"
            invocation.line(f"{number} {place.offset} {sizes}")
    else:
        for oid, frame, offset in content.rows:
            invocation.line(f"{oid} {frame} {offset}")
    return 0


def _read(invocation: Invocation, path: str | None) -> bytes:
    if path is None or path == "-":
        data = read_up_to(invocation.stdin.read, MAXIMUM_INDEX_BYTES + 1)
    else:
        disk = Disk()
        fd = open_file(disk, path)
        try:
            data = disk.read_at(fd, 0, MAXIMUM_INDEX_BYTES + 1)
        finally:
            disk.close(fd)
    if len(data) > MAXIMUM_INDEX_BYTES:
        raise errors.CorruptIndexError(f"not a pack index: larger than {MAXIMUM_INDEX_BYTES} bytes")
    return data

"""`trace du`: disk usage, and the space saved."""

from __future__ import annotations

from collections.abc import Iterator

from trace_cli.arguments import Option, takes
from trace_cli.porcelain.common import JSON, opened
from trace_cli.render.escape import one_line
from trace_cli.render.tables import LEFT, RIGHT, counted, size, table
from trace_cli.runtime import Invocation
from trace_store.maintenance.du import StoreUsage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

SESSION, BRANCH, KIND = "session", "branch", "kind"


@takes(
    Option(
        "--by",
        "by",
        "What each line is about",
        "WHAT",
        default=SESSION,
        choices=(SESSION, BRANCH, KIND),
    ),
    JSON,
)
def du(invocation: Invocation, *, by: str) -> Results:
    """Show disk usage.

    First the total: imported source files, the objects created from them, and their size on disk. Then one line per
    session (or branch, or type of object), largest first. OWN is the space freed if only this session were deleted;
    content that several sessions share is stored once.

        trace du
        trace du --by branch
    """
    with opened(invocation) as here:
        found = here.maintenance.du()
    yield found, _lines(invocation, found, by)


def _lines(invocation: Invocation, found: StoreUsage, by: str) -> Iterator[str]:
    yield from _summary(found)
    header, rows = _kinds(found) if by == KIND else _parts(found, by)
    if rows:
        yield ""
        yield from table(invocation, header, rows, RIGHT * (len(header) - 1) + LEFT)


def _summary(found: StoreUsage) -> list[str]:
    lines = []
    if found.files:
        lines.append(f"{counted(found.files, 'kept file')}: {size(found.file_bytes)}")
    objects = f"{counted(found.total.objects, 'object')}: {size(found.total.bytes)}"
    if found.repeated:
        objects += f", and {size(found.repeated)} more if nothing were shared"
    lines.append(objects)
    on_disk = f"on the disk: {size(found.disk)}"
    if found.file_bytes and found.disk:
        smaller = found.file_bytes / found.disk
        said = f"{smaller:.1f} times smaller than" if smaller >= 1 else f"{1 / smaller:.1f} times"
        on_disk += f", {said} the files"
    lines.append(on_disk)
    if found.unreachable.objects:
        lines.append(
            f"no ref leads to {counted(found.unreachable.objects, 'object')}:"
            f" {size(found.unreachable.disk)} on the disk"
        )
    return lines


def _parts(found: StoreUsage, by: str) -> tuple[list[str], list[list[str]]]:
    parts = found.sessions if by == SESSION else found.branches
    header = ["FILES", "OBJECTS", "DISK", "OWN", by.upper()]
    rows = []
    for part in sorted(parts, key=lambda part: (-part.whole.disk, part.name)):
        rows.append(
            [
                size(part.file_bytes) if part.files else "-",
                size(part.whole.bytes),
                size(part.whole.disk),
                size(part.own.disk),
                one_line(part.name, 120),
            ]
        )
    if by == SESSION:
        return header, rows
    return header[1:], [row[1:] for row in rows]


def _kinds(found: StoreUsage) -> tuple[list[str], list[list[str]]]:
    rows = []
    for kind, amount in sorted(found.kinds.items(), key=lambda item: -item[1].disk):
        rows.append(
            [f"{amount.objects:,}", size(amount.bytes), size(amount.disk), one_line(kind, 40)]
        )
    return ["NUMBER", "OBJECTS", "DISK", "KIND"], rows

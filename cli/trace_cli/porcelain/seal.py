"""`trace seal` and `trace pack`."""

from __future__ import annotations

from trace_cli.arguments import Option, takes
from trace_cli.porcelain.common import JSON, QUIET, opened
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import one_line
from trace_cli.render.tables import counted, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_cli.runtime import Invocation, Results
    from trace_store.maintenance.repack import PackReport
    from trace_store.maintenance.seal import SealReport


@takes(JSON, QUIET)
def seal(invocation: Invocation) -> Results:
    """Write everything to files that git can commit.

    The journal is written to a pack, and the files of all refs are updated. Then `git add .trace` adds everything.
    """
    with opened(invocation) as repo:
        report = repo.maintenance.seal(fully=True)
    yield report, _seal_lines(invocation, report)


def _seal_lines(invocation: Invocation, report: SealReport) -> Iterator[str]:
    if report.transactions or report.refs or report.packs:
        done = f"{counted(report.transactions, 'change')}, {counted(report.objects, 'object')}"
        yield f"sealed {done}, {counted(len(report.refs), 'ref')}"
    elif not report.sessions:
        invocation.note("everything is sealed")
    if report.sessions:
        yield f"copied the titles and sizes of {counted(report.sessions, 'session')} for clones"


@takes(
    Option(
        "--level",
        "level",
        "Compression level (default: 10); packs of another level are written again",
        "N",
        number=True,
        least=1,
        most=19,
    ),
    Option(
        "--frame-size",
        "frame_size",
        "Content per frame (default: 256): smaller frames read faster but compress less",
        "KIB",
        number=True,
        least=4,
        most=4096,
    ),
    JSON,
    QUIET,
)
def pack(invocation: Invocation, *, level: int | None, frame_size: int | None) -> Results:
    """Combine small packs and loose objects. Every object is kept, reachable or not.

    A pack stays while it is twice as large as all smaller ones together, so the cost depends on what is new.
    """
    with opened(invocation) as here, Progress(invocation) as progress:
        report = here.maintenance.pack(
            level=level,
            frame_bytes=None if frame_size is None else 1024 * frame_size,
            progress=lambda done, whole: progress.tell("packing", done, whole),
        )
    yield report, _pack_lines(invocation, report)
    for name in () if invocation.as_json else report.kept:
        invocation.note(f"note: pack {one_line(name)} is corrupt; it was kept")


def _pack_lines(invocation: Invocation, report: PackReport) -> Iterator[str]:
    if report.packs:
        sizes = f"{size(report.bytes_before)} became {size(report.bytes_after)}"
        where = counted(len(report.packs), "pack")
        yield f"packed {counted(report.objects, 'object')} in {where}: {sizes}"
    else:
        invocation.note("nothing to pack")

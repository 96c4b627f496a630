"""Import transcripts: files and folders in, branches out.

Rule: the verb. What a format means is in its own package, what a plan becomes in `writing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import BinaryIO

from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.environment import Environment
from trace_store.errors import RefChangedError, StorageError, TraceError, UnreadableInputError
from trace_store.files import Disk
from trace_store.frozen import replace
from trace_store.importers.contract import NO_MESSAGES, Format
from trace_store.importers.dedupe import Beginnings, read_commit
from trace_store.importers.discovery import UNREADABLE, Chosen, choose
from trace_store.importers.files import Input, InputFile
from trace_store.importers.import_file import Common, Progress, Run
from trace_store.importers.json_records import UNFINISHED
from trace_store.importers.names import branch_of
from trace_store.importers.registry import failed, format_named, is_own
from trace_store.importers.report import FileReport, ImportReport
from trace_store.importers.resume_state import Memories
from trace_store.importers.strays import Strays
from trace_store.refs.names import BRANCHES, check_ref_name
from trace_store.secrets.guard import Guard
from trace_store.store.handle import Store

AGENTS_PART = "/agents/"
"""In the names of subagents' branches."""

FAILED = "failed"
MAXIMUM_ATTEMPTS = 5
"""How often a file is taken up anew when others move its branch meanwhile."""

__all__ = ["Progress", "import_paths"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.contracts import RefReader


def import_paths(
    store: Store,
    paths: Sequence[str],
    *,
    format: str | None = None,
    onto: str | None = None,
    source: bool = True,
    progress: Progress | None = None,
    stdin: BinaryIO | None = None,
    found: Sequence[str] = (),
    guard: Guard | None = None,
) -> ImportReport:
    """Import transcripts; each session becomes a branch, `sessions/<format>/<id>`.

    An unborn HEAD attaches to the session whose last commit is the newest. Importing again adds what is new. A session
    that was imported before its subagents, or with them, is their branches' beginning. A file that cannot be imported
    stops no other, and its report says why: one that was named has an `error`, and so has one of a folder that a reader
    failed on; what else lies in a folder is left. Only where one file alone was named, its error is raised.

    Args:
        store: where to.
        paths: files, and folders, in which and below which files that end like transcripts are looked at.
        format: the name of a format; None looks at each file.
        onto: a branch to whose end sessions are added instead of becoming branches.
        source: whether raw records are kept beside their commits, without what is in messages already.
        progress: told how far it is.
        stdin: what the path `-` stands for.
        found: transcripts that were found and not named, as by `project_histories`; one that cannot be imported is
            left, as in a folder.
        guard: looks for secrets in what is imported; None makes one that does as the user settled.

    Raises:
        InvalidInputError: there is no such format, or nothing that `-` stands for.
        UnreadableInputError: the one file that was named is not there, is empty, or is of no known format; nothing was
            written. Or a format of another package failed on it.
        InvalidRefNameError: `onto` cannot be a branch.
        SecretFoundError: the one file that was named holds a secret, and the guard lets none pass; nothing of it was
            written.
        RefChangedError: others keep moving a branch of its session.
        StorageError: the disk refused.
    """
    named = None if format is None else format_named(format)
    target = None
    if onto is not None:
        target = check_ref_name(onto if onto.startswith(BRANCHES) else BRANCHES + onto)
    disk = store.disk if store.local else Disk()
    chosen = choose(disk, paths, named, stdin, found)
    guard = Guard.of(store, Environment.read()) if guard is None else guard
    common = Common(
        *(store, disk, target, source, progress, Beginnings(store), Memories(store), Strays(store)),
        guard=guard,
    )
    reports = []
    try:
        for item in chosen:
            if item.reader is None:
                reports.append(FileReport(item.path, skipped=item.reason, error=item.error))
                continue
            try:
                reports.append(_refused_when_fruitless(_import(common, item, item.reader)))
            except StorageError:
                raise
            except Exception as error:  # noqa: BLE001 - one file does not stop the others
                reports.append(_left(item, item.reader, error))
        reports += _join(common)
        if target is None:
            _attach_head(store, reports)
    finally:
        common.memories.write()
        common.beginnings.save()
        common.strays.save()
    if len(chosen) == 1 and chosen[0].named and reports[0].error is not None:
        raise reports[0].error
    return ImportReport(tuple(reports))


def _refused_when_fruitless(report: FileReport) -> FileReport:
    """Return the report of a file as it is, or with an error when nothing came of it but damage."""
    if report.commits or report.commits_present or report.skipped or report.error is not None:
        return report
    if not report.skipped_count or report.skipped_count < report.record_count:
        return report
    if {what for _, what in report.records} <= {UNFINISHED, NO_MESSAGES}:
        return report  # it has just been begun: a header, and nobody has spoken yet
    first = next(iter(report.skips), None)
    why = f"line {first.line}: {first.reason}" if first is not None else "no record"
    error = UnreadableInputError(
        f"nothing in it can be read as {report.format}: {report.path} ({why})", path=report.path
    )
    return replace(report, skipped=UNREADABLE, error=error)


def _attach_head(store: Store, reports: Sequence[FileReport]) -> None:
    """Attach an unborn HEAD to the session with the newest end; a subagent's branch is taken when there is no other."""
    if not store.refs.head().unborn:
        return
    ends: list[tuple[bool, int, str]] = []
    for report in reports:
        # A journal in which nobody speaks is nothing to stand on.
        if report.branches and (report.messages or report.commits_present or report.skipped):
            branch = report.branches[0]  # the session's own, or that of a subagent's file
            own = AGENTS_PART not in branch.ref
            ends.append((own, read_commit(store, branch.oid).time, branch.ref))
    if ends:
        store.refs.set_head(max(ends)[2], message="import")


def _join(common: Common) -> list[FileReport]:
    """Let rows that stand in files of other sessions join their sessions, or wait beside one that is not here yet."""
    reports = []
    for session, file in common.strays.waiting():
        ref = branch_of(common.store, session)
        beside, store = f"{ref}/strays", common.store
        if store.refs.read(ref) is None:
            ref = beside
        elif store.refs.read(beside) is not None:
            store.transact(_without(beside))
        reader = format_named(session.partition("/")[0])
        joining = replace(common, onto=ref, source=False, progress=None)
        report = _attempt(joining, file, reader, stray=True)
        if report.commits:
            # Its records were counted in the file that they stand in.
            reports.append(replace(report, size=0, records={}, secrets={}, is_stray=True))
    return reports


def _without(ref: str) -> Callable[[RefReader], Transaction]:
    edit = RefEdit(ref, None, ANY)
    return lambda _: Transaction((), [edit], "import: its session is here")


def _left(item: Chosen, reader: Format, error: Exception) -> FileReport:
    """Return the report of a file that could not be imported."""
    if not isinstance(error, TraceError) and not is_own(reader.NAME):
        error_of_format = failed(reader.NAME, error, item.path)
        error_of_format.__cause__ = error
        error = error_of_format
    elif isinstance(error, UnreadableInputError):
        told = error if item.named else None
        return FileReport(item.path, format=reader.NAME, skipped=UNREADABLE, error=told)
    return FileReport(item.path, format=reader.NAME, skipped=FAILED, error=error)


def _import(common: Common, item: Chosen, reader: Format) -> FileReport:
    if item.opened is not None:
        return _attempt(common, item.opened(), reader)
    with InputFile(common.disk, item.path) as file:
        return _attempt(common, file, reader)


def _attempt(common: Common, file: Input, reader: Format, *, stray: bool = False) -> FileReport:
    recalls, attempts = True, 0
    while True:
        run = Run(common, file, reader, stray=stray)
        try:
            return run.report(recalls=recalls)
        except RefChangedError:
            attempts += 1
            if attempts == MAXIMUM_ATTEMPTS:
                raise
        except StorageError:
            raise
        except Exception:
            if not run.goes_on:
                raise
            recalls = False  # what is remembered may be wrong in ways that no look at it shows

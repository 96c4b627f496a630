"""Import of transcripts: files and folders to branches.

Invariant: this module runs the import; `formats` parses the files and `write` stores the plans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import BinaryIO

from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.environment import Environment
from trace_store.errors import RefChangedError, StorageError, TraceError, UnreadableInputError
from trace_store.files import Disk
from trace_store.frozen import replace
from trace_store.importers.contract import NO_MESSAGES, Format, Watcher
from trace_store.importers.dedupe import SessionIndex, read_commit
from trace_store.importers.discovery import UNREADABLE, ImportItem, select_items
from trace_store.importers.files import Input, InputFile
from trace_store.importers.import_file import FileImport, ImportContext, Progress
from trace_store.importers.json_records import UNFINISHED
from trace_store.importers.names import branch_of
from trace_store.importers.registry import format_failure, format_named, is_built_in
from trace_store.importers.report import FileReport, ImportReport
from trace_store.importers.resume_state import ResumeStates
from trace_store.importers.strays import Strays
from trace_store.refs.names import BRANCHES, check_ref_name
from trace_store.secrets.guard import Guard
from trace_store.store.handle import Store

AGENTS_PART = "/agents/"
"""Part of the names of subagent branches."""

FAILED = "failed"
MAXIMUM_ATTEMPTS = 5
"""How often to retry a file when another process moves its branch."""

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
    discovered: Sequence[str] = (),
    guard: Guard | None = None,
    watcher: Watcher | None = None,
) -> ImportReport:
    """Import transcripts; each session becomes a branch `sessions/<format>/<id>`.

    An unborn HEAD attaches to the session with the newest commit. A repeated import adds only what is new. A
    subagent's branch starts at its session's commit, if the session is imported before or together with it.

    A file that cannot be imported does not stop the others. Its report has an `error` if it was named, or if its
    reader failed; other files in a folder are skipped. If a single file was named, its error is raised.

    Args:
        store: the repository.
        paths: files, and folders that are searched for transcripts.
        format: name of the format; None detects it.
        onto: a branch to append to instead of creating session branches.
        source: store the raw records, so that the file can be restored.
        progress: receives the progress.
        stdin: input for the path `-`.
        discovered: transcripts that were discovered, as by `project_histories`; one that cannot be imported is
            skipped.
        guard: looks for secrets; None uses the configured one.
        watcher: receives new commits and their branches.

    Raises:
        InvalidInputError: no such format, or no standard input.
        UnreadableInputError: the one named file does not exist, is empty or of unknown format, or a format of
            another package failed on it; nothing was written.
        InvalidRefNameError: `onto` is not a valid branch name.
        SecretFoundError: the one named file holds a secret and the guard blocks; nothing of it was written.
        RefChangedError: other processes keep moving a branch.
        StorageError: the disk refused.
    """
    named = None if format is None else format_named(format)
    target = None
    if onto is not None:
        target = check_ref_name(onto if onto.startswith(BRANCHES) else BRANCHES + onto)
    disk = store.disk if store.local else Disk()
    items = select_items(disk, paths, named, stdin, discovered)
    guard = Guard.of(store, Environment.read()) if guard is None else guard
    context = ImportContext(
        *(
            store,
            disk,
            target,
            source,
            progress,
            SessionIndex(store),
            ResumeStates(store),
            Strays(store),
        ),
        guard=guard,
        watcher=watcher,
    )
    reports = []
    try:
        for item in items:
            if item.reader is None:
                reports.append(FileReport(item.path, skipped=item.reason, error=item.error))
                continue
            try:
                reports.append(_check_readable(_import(context, item, item.reader)))
            except StorageError:
                raise
            except Exception as error:  # noqa: BLE001 - one file does not stop the others
                reports.append(_failure_report(item, item.reader, error))
        reports += _import_strays(context)
        if target is None:
            _attach_head(store, reports)
    finally:
        context.resume_states.write()
        context.session_index.save()
        context.strays.save()
    if len(items) == 1 and items[0].named and reports[0].error is not None:
        raise reports[0].error
    return ImportReport(tuple(reports))


def _check_readable(report: FileReport) -> FileReport:
    """Return the report, with an error if the file held nothing but damage."""
    if report.commits or report.commits_present or report.skipped or report.error is not None:
        return report
    if not report.skipped_count or report.skipped_count < report.record_count:
        return report
    if {outcome for _, outcome in report.records} <= {UNFINISHED, NO_MESSAGES}:
        return report  # a new file with a header and no message yet
    first = next(iter(report.skips), None)
    why = f"line {first.line}: {first.reason}" if first is not None else "no record"
    error = UnreadableInputError(
        f"no readable {report.format} records: {report.path} ({why})", path=report.path
    )
    return replace(report, skipped=UNREADABLE, error=error)


def _attach_head(store: Store, reports: Sequence[FileReport]) -> None:
    """Attach an unborn HEAD to the newest session, or else subagent."""
    if not store.refs.head().unborn:
        return
    ends: list[tuple[bool, int, str]] = []
    for report in reports:
        # A log without messages is not a useful branch.
        if report.branches and (report.messages or report.commits_present or report.skipped):
            branch = report.branches[0]  # the session's own, or a subagent's
            own = AGENTS_PART not in branch.ref
            ends.append((own, read_commit(store, branch.oid).time, branch.ref))
    if ends:
        store.refs.set_head(max(ends)[2], message="import")


def _import_strays(context: ImportContext) -> list[FileReport]:
    """Append stray rows to their session, or to a side branch until it is imported."""
    reports = []
    for session, file in context.strays.pending():
        ref = branch_of(context.store, session)
        beside, store = f"{ref}/strays", context.store
        if store.refs.read(ref) is None:
            ref = beside
        elif store.refs.read(beside) is not None:
            store.transact(_delete_ref(beside))
        reader = format_named(session.partition("/")[0])
        stray_context = replace(context, onto=ref, source=False, progress=None)
        report = _attempt(stray_context, file, reader, stray=True)
        if report.commits:
            # Its records were counted in their file.
            reports.append(replace(report, size=0, records={}, secrets={}, is_stray=True))
    return reports


def _delete_ref(ref: str) -> Callable[[RefReader], Transaction]:
    edit = RefEdit(ref, None, ANY)
    return lambda _: Transaction((), [edit], "import: its session is here")


def _failure_report(item: ImportItem, reader: Format, error: Exception) -> FileReport:
    """Return the report of a file that could not be imported."""
    if not isinstance(error, TraceError) and not is_built_in(reader.NAME):
        format_error = format_failure(reader.NAME, error, item.path)
        format_error.__cause__ = error
        error = format_error
    elif isinstance(error, UnreadableInputError):
        reported = error if item.named else None
        return FileReport(item.path, format=reader.NAME, skipped=UNREADABLE, error=reported)
    return FileReport(item.path, format=reader.NAME, skipped=FAILED, error=error)


def _import(context: ImportContext, item: ImportItem, reader: Format) -> FileReport:
    if item.opened is not None:
        return _attempt(context, item.opened(), reader)
    with InputFile(context.disk, item.path) as file:
        return _attempt(context, file, reader)


def _attempt(
    context: ImportContext, file: Input, reader: Format, *, stray: bool = False
) -> FileReport:
    use_state, attempts = True, 0
    while True:
        run = FileImport(context, file, reader, stray=stray)
        try:
            report = run.report(use_state=use_state)
            if context.watcher is not None:
                context.watcher.end_file((each.ref, each.oid) for each in report.branches)
            return report
        except RefChangedError:
            attempts += 1
            if attempts == MAXIMUM_ATTEMPTS:
                raise
        except StorageError:
            raise
        except Exception:
            if not run.is_resumed:
                raise
            use_state = False  # the saved state may be wrong in ways that no check detects

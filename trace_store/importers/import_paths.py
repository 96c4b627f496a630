"""Import of files: which, in which order, and what follows when all are done."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import BinaryIO

from trace_store.base.frozen import replace
from trace_store.contracts import ANY, RefEdit
from trace_store.contracts.ref_names import BRANCHES, check_ref_name
from trace_store.disk.files import Disk
from trace_store.errors import StorageError, TraceError, UnreadableInputError
from trace_store.importers.contract import NO_MESSAGES, Format
from trace_store.importers.convert import branch_of
from trace_store.importers.dedupe import SessionIndex, read_commit
from trace_store.importers.discovery import UNREADABLE, ImportItem, select_items
from trace_store.importers.import_ahead import ImportsAhead
from trace_store.importers.import_file import (
    CallerMissingError,
    ImportContext,
    Progress,
    import_with_retries,
)
from trace_store.importers.input_files import Input, InputFile
from trace_store.importers.json_records import UNFINISHED
from trace_store.importers.registry import format_failure, format_named, is_built_in
from trace_store.importers.report import FileReport, ImportReport
from trace_store.importers.resume_state import ResumeStates, Strays
from trace_store.importers.write import ImportLog
from trace_store.secrets.guard import Guard
from trace_store.store.store import Store
from trace_store.writer import Writer

MAXIMUM_NAME = 80
"""Number of characters of a file name in the reflogs."""
AGENTS_PART = "/agents/"
"""Part of the names of subagent branches."""

FAILED = "failed"


def import_paths(
    writer: Writer,
    paths: Sequence[str],
    *,
    format: str | None = None,
    onto: str | None = None,
    source: bool = True,
    progress: Progress | None = None,
    stdin: BinaryIO | None = None,
    discovered: Sequence[str] = (),
    secrets: str = "",
) -> ImportReport:
    """Import transcripts, as `Transcripts.import_` describes it.

    Args:
        writer: the repository.
        paths: files, and folders that are searched for transcripts.
        format: name of the format; None detects it.
        onto: a branch to append to instead of creating session branches.
        source: store the raw records, so that the file can be restored.
        progress: receives the progress.
        stdin: input for the path `-`.
        discovered: transcripts that were discovered; one that cannot be imported is skipped.
        secrets: how secrets are handled, one of `secrets.MODES`; "" is how the repository was opened.
    """
    named = None if format is None else format_named(format)
    target = None
    if onto is not None:
        target = check_ref_name(onto if onto.startswith(BRANCHES) else BRANCHES + onto)
    store = writer.store
    disk = store.disk if store.local else Disk()
    items = select_items(disk, paths, named, stdin, discovered)
    guard = Guard.of(store, writer.environment, secrets) if secrets else writer.guard
    watchers = [each for make in writer.observers.importing if (each := make(writer)) is not None]
    context = ImportContext(
        *(
            store,
            ImportLog.of(store, _name_of(items, guard)),
            disk,
            target,
            source,
            progress,
            SessionIndex(store),
            ResumeStates(store),
            Strays(store),
        ),
        guard=guard,
        watchers=watchers,
    )
    run = _Import(context)
    try:
        run.import_all(items, ImportsAhead(context, writer, items))
        run.end()
    except KeyboardInterrupt:
        run.end()  # finished sessions are kept, and listed
        raise
    finally:
        context.resume_states.write()
        context.session_index.save()
        context.strays.save()
    if len(items) == 1 and items[0].named and run.reports[0].error is not None:
        raise run.reports[0].error
    writer.committed()
    return ImportReport(tuple(run.reports))


class _Import:
    """A running import.

    Attributes:
        reports: one for each file that is done.
    """

    def __init__(self, context: ImportContext) -> None:
        self.reports: list[FileReport] = []
        self._context = context
        self._head = UnbornHead(context.store)

    def import_all(self, items: Sequence[ImportItem], ahead: ImportsAhead) -> None:
        """Import files and then stray rows."""
        try:
            self._import_files(items, ahead)
        finally:
            ahead.end()
        for session, file in self._context.strays.pending():
            self._import_strays(session, file)

    def _import_files(self, items: Sequence[ImportItem], ahead: ImportsAhead) -> None:
        waiting, context = list(items), replace(self._context, waits=len(items) > 1)
        while waiting:
            current, waiting = waiting, []
            for item in current:
                try:
                    self.reports.append(self._report_of(context, item, ahead))
                except CallerMissingError:
                    waiting.append(item)
            context = replace(context, waits=len(waiting) < len(current))

    def end(self) -> None:
        """Attach HEAD, and tell the watchers what was imported."""
        context = self._context
        if context.onto is None:
            self._head.attach(context.log)
        tips = {each.ref: each.oid for report in self.reports for each in report.branches}
        for watcher in context.watchers:
            watcher.end(tips)

    def _report_of(
        self, context: ImportContext, item: ImportItem, ahead: ImportsAhead
    ) -> FileReport:
        """Import a file and return its report, also if that failed; raises CallerMissingError, and storage errors."""
        if item.reader is None:
            return FileReport(item.path, skipped=item.reason, error=item.error)
        try:
            taken = ahead.take(item)
            if taken is not None:
                self._end_file(taken)
                return _check_readable(taken)
            return _check_readable(self._import(context, item, item.reader))
        except (CallerMissingError, StorageError):
            raise
        except Exception as error:  # noqa: BLE001 - one file does not stop the others
            return _failure_report(item, item.reader, error)

    def _import(self, context: ImportContext, item: ImportItem, reader: Format) -> FileReport:
        if item.opened is not None:
            return self._attempt(context, item.opened(), reader)
        with InputFile(context.disk, item.path) as file:
            return self._attempt(context, file, reader)

    def _import_strays(self, session: str, file: Input) -> None:
        """Append stray rows to their session, or to a side branch until it is imported."""
        context, store = self._context, self._context.store
        ref = branch_of(store, session)
        beside = f"{ref}/strays"
        if store.refs.read(ref) is None:
            ref = beside
        elif store.refs.read(beside) is not None:
            context.log.write(store, {}, [RefEdit(beside, None, ANY)])
        reader = format_named(session.partition("/")[0])
        onto = replace(context, onto=ref, source=False, progress=None)
        report = self._attempt(onto, file, reader, stray=True)
        if report.commits:
            # Its records were counted in their file.
            self.reports.append(replace(report, size=0, records={}, secrets={}, is_stray=True))

    def _attempt(
        self, context: ImportContext, file: Input, reader: Format, *, stray: bool = False
    ) -> FileReport:
        report = import_with_retries(context, file, reader, stray=stray)
        for watcher in context.watchers:
            watcher.end_file((each.ref, each.oid) for each in report.branches)
        self._end_file(report)
        return report

    def _end_file(self, report: FileReport) -> None:
        """Note the newest session, and end a piece."""
        self._head.note(report)
        self._context.log.end_piece(self._context.store)


def _name_of(items: Sequence[ImportItem], guard: Guard) -> str:
    """Return what is imported, for the reflogs: the name of the only file, or the number of files."""
    if len(items) != 1:
        return f"{len(items):,} files"
    name = "".join(filter(str.isprintable, os.path.basename(items[0].path)))[:MAXIMUM_NAME]
    return name if name and guard.passes([name]) else "1 file"


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


class UnbornHead:
    """HEAD without a commit, which an import attaches to the session, or else subagent, that ended last."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._newest: tuple[bool, int, str] | None = None
        self._is_unborn = store.refs.head().unborn

    def note(self, report: FileReport) -> None:
        """Compare with the branch of a file, whose last commit is still in memory if it is new."""
        # A log without messages is not a useful branch.
        is_useful = bool(report.messages or report.commits_present or report.skipped)
        if self._is_unborn and report.branches and is_useful:
            branch = report.branches[0]  # the session's own, or a subagent's
            own = AGENTS_PART not in branch.ref
            found = (own, read_commit(self._store, branch.oid).time, branch.ref)
            self._newest = found if self._newest is None else max(found, self._newest)

    def attach(self, log: ImportLog) -> None:
        """Attach HEAD, unless something else has."""
        if self._newest is not None and self._store.refs.head().unborn:
            self._store.refs.set_head(self._newest[2], message=log.message)


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

"""Import of new sessions in worker processes, ahead of the one that writes.

A worker imports a file into an empty repository in memory, with the code of every import. What it wrote there is taken
over if the session is new: if the repository has nothing that the import would have read. Otherwise, and if a worker
fails, this process imports the file itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from trace_store.base.environment import Environment
from trace_store.base.frozen import value
from trace_store.contracts.ref_names import FILES, SESSIONS
from trace_store.disk.files import Disk
from trace_store.disk.worker_pool import WorkerPool, worker_count
from trace_store.errors import RefChangedError
from trace_store.importers.convert import branch_of
from trace_store.importers.dedupe import SessionIndex, session_refs
from trace_store.importers.discovery import ImportItem
from trace_store.importers.import_file import ImportContext, import_with_retries
from trace_store.importers.input_files import InputFile, is_of_agent
from trace_store.importers.registry import format_named
from trace_store.importers.report import FileReport
from trace_store.importers.resume_state import ResumeStates, Strays, state_key
from trace_store.importers.write import ImportLog, Written
from trace_store.secrets.guard import Guard
from trace_store.store.scratch import empty_copy
from trace_store.store.store import Store
from trace_store.writer import Writer

if TYPE_CHECKING:
    from concurrent.futures import Future

PROCESS_BYTES = 8 * 1024 * 1024
"""Bytes of new files per process that make up for its start-up time."""
MAXIMUM_WORKERS = 4
"""Writing is a quarter of an import, so more would wait for it."""
MAXIMUM_FILE_BYTES = 16 * 1024 * 1024
"""Larger files are imported by this process: a worker holds all that it writes."""
MAXIMUM_BYTES_AHEAD = 64 * 1024 * 1024
"""Most bytes of files that workers read before this process takes them over."""


@value
class ImportSetup:
    """What a worker needs to know.

    Attributes:
        root: the `.trace` directory, of which it reads the settings.
        environment: the environment variables.
        secrets: how secrets are handled.
        source: as in `import_paths`.
        importing: what makes the watchers.
    """

    root: str
    environment: Environment
    secrets: str
    source: bool
    importing: Sequence[Callable[[Writer], Any]]


@value
class SessionElsewhere:
    """A session as it was imported into an empty repository.

    Attributes:
        report: the report of its file.
        written: its transactions.
        first_key: the key of its first commit.
        states: where to resume the file.
        strays: rows of other sessions in it.
        found: what each watcher found.
    """

    report: FileReport
    written: Sequence[Written]
    first_key: str
    states: Mapping[str, bytes]
    strays: Mapping[str, Mapping[str, Sequence[str]]]
    found: Sequence[Any]


def importer_of(setup: ImportSetup) -> Callable[[tuple[str, str]], SessionElsewhere | None]:
    """Return the function with which a worker imports files, given the path and the format.

    It returns None for a file that must be imported into the repository itself.
    """
    store = Store.open(setup.root)
    guard = Guard.of(store, setup.environment, setup.secrets)
    return partial(_import_alone, setup, store, guard)


def _import_alone(
    setup: ImportSetup, store: Store, guard: Guard, file: tuple[str, str]
) -> SessionElsewhere | None:
    (path, format_name), disk = file, Disk()
    try:
        with empty_copy(store) as copy, InputFile(disk, path) as opened:
            if opened.size > MAXIMUM_FILE_BYTES:
                return None  # it was compressed
            writer = Writer(copy, environment=setup.environment)
            watchers = [each for make in setup.importing if (each := make(writer)) is not None]
            log = ImportLog.of(copy, "", kept=[])
            index, states, strays = SessionIndex(copy), ResumeStates(copy), Strays(copy)
            context = ImportContext(
                *(copy, log, disk, None, setup.source, None, index, states, strays),
                guard=guard,
                watchers=watchers,
                is_alone=True,
            )
            report = import_with_retries(context, opened, format_named(format_name), stray=False)
            if not report.commits:
                return None
            for watcher in watchers:
                watcher.end_file((each.ref, each.oid) for each in report.branches)
            first_key = index.first_key(report.branches[0].ref)
            found = [watcher.found() for watcher in watchers]
            return SessionElsewhere(
                report, log.kept or (), first_key, dict(states.unsaved), dict(strays.rows), found
            )
    except Exception:  # noqa: BLE001 - the import into the repository says what is wrong
        return None


class ImportsAhead:
    """The files of an import that workers read, in order."""

    def __init__(self, context: ImportContext, writer: Writer, items: Sequence[ImportItem]) -> None:
        """Start workers, if there is enough to read."""
        self._context = context
        # Without a folder for it, each process has another key for the placeholders of secrets.
        new = _new_files(context, items) if writer.environment.data_dir else []
        count = min(worker_count(sum(size for _, size in new), PROCESS_BYTES), MAXIMUM_WORKERS)
        self._later = deque(new if count else ())
        self._answers: dict[str, tuple[Future[SessionElsewhere | None], int]] = {}
        self._bytes = 0
        self._most = 2 * count
        setup = None
        if count:
            assert context.guard is not None
            setup = ImportSetup(
                context.store.layout.root,
                writer.environment,
                context.guard.mode,
                context.source,
                writer.observers.importing,
            )
        self._pool = WorkerPool(importer_of, setup, count)

    def end(self) -> None:
        """End the workers."""
        self._pool.end()

    def take(self, item: ImportItem) -> FileReport | None:
        """Write what a worker made of a file, and return its report; None if it must be imported here.

        Raises:
            StorageError: the disk refused.
        """
        self._submit()
        answer, size = self._answers.pop(item.path, (None, 0))
        self._bytes -= size
        if answer is None:
            return None
        try:
            made = answer.result()
        except OSError:
            return None  # the worker ended
        self._submit()
        return made.report if made is not None and _take_over(self._context, made) else None

    def _submit(self) -> None:
        """Give the workers files, as far ahead as memory allows."""
        while self._later and len(self._answers) < self._most:
            item, size = self._later[0]
            if self._answers and self._bytes + size > MAXIMUM_BYTES_AHEAD:
                return
            self._later.popleft()
            assert item.reader is not None
            answer = self._pool.submit((item.path, item.reader.NAME))
            if answer is None:
                self._later.clear()
                return
            self._answers[item.path] = answer, size
            self._bytes += size


def _new_files(context: ImportContext, items: Sequence[ImportItem]) -> list[tuple[ImportItem, int]]:
    """Return the items that workers may import, with their sizes: files that are new here, and of no subagent."""
    store, found = context.store, list[tuple[ImportItem, int]]()
    if context.onto is not None or type(store.disk) is not Disk or store.objects.purged_key():
        return []  # what was purged must not come back in a list of sessions
    for item in items if len(items) > 1 else ():
        if item.reader is None or item.opened is not None or is_of_agent(item.path):
            continue
        status = context.disk.stat(item.path)
        if status is None or status.st_size > MAXIMUM_FILE_BYTES:
            continue
        key = state_key(item.path, item.reader.NAME, "", source=context.source)
        if not context.resume_states.has(key):
            found.append((item, status.st_size))
    return found


def _take_over(context: ImportContext, made: SessionElsewhere) -> bool:
    """Write a session of a worker; return False if it is not new, or another process writes it."""
    store, report = context.store, made.report
    ref = context.session_ref(report.format, report.session)
    folder = ref.removeprefix(SESSIONS)
    is_new = (
        report.branches[0].ref == branch_of(store, folder) == ref
        and not session_refs(store, ref)
        and not any(store.refs.iterate(f"{FILES}{folder}/"))
        and not context.session_index.others_with(ref, made.first_key)
    )
    if not is_new:
        return False
    try:
        for objects, edits in made.written:
            context.log.write(store, dict(objects), edits)
    except RefChangedError:
        return False
    context.session_index.note(ref, report.branches[0].oid, made.first_key)
    context.resume_states.take(made.states)
    context.strays.take(made.strays)
    context.strays.expect(f"{report.format}/{report.session}")
    for watcher, found in zip(context.watchers, made.found, strict=True):
        watcher.take(found)
    if context.progress is not None:
        context.progress(report.path, report.size, report.size)
    return True

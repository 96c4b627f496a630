"""Import of one file: from its start, or from where an earlier import ended.

Invariant: decides how much of a file to read; `write` decides what a plan becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from trace_store.base.frozen import field, replace, value
from trace_store.base.oid import ObjectId
from trace_store.contracts.agent_facts import AGENT, CALL
from trace_store.contracts.ref_names import SESSIONS, TRASH, UsedNames
from trace_store.disk.files import Disk
from trace_store.errors import (
    FormatError,
    InvalidInputError,
    NotFoundError,
    RefChangedError,
    StateError,
    StorageError,
)
from trace_store.importers.append_import import Continuation
from trace_store.importers.build_commits import RecordPlaces
from trace_store.importers.contract import (
    AgentFormat,
    FilePlanner,
    Format,
    MediaFormat,
    Planned,
    PlannedCommit,
    PlannedThread,
    Skip,
    Watcher,
)
from trace_store.importers.convert import branch_of, distinct_component
from trace_store.importers.dedupe import (
    STRAY_KEY,
    KnownCommits,
    SessionIndex,
    caller_of,
    commit_with_call,
    inspect_history,
    session_refs,
)
from trace_store.importers.input_files import Input, InputLine, Redactor, read_lines
from trace_store.importers.json_records import MAXIMUM_DOCUMENT_BYTES, UNFINISHED
from trace_store.importers.report import (
    MAXIMUM_NAMED_SKIPS,
    BranchReport,
    FileReport,
    ImportLosses,
    record_outcomes,
)
from trace_store.importers.resume_state import (
    ResumeState,
    ResumeStates,
    StrayFinder,
    Strays,
    edges,
    state_key,
)
from trace_store.importers.sniff import HEAD_BYTES
from trace_store.importers.source_archive import ResumeCut, is_kept, keep_file, resume_places
from trace_store.importers.write import ImportLog, PlanWriter, WriteResult
from trace_store.secrets import BLOCK
from trace_store.secrets.guard import FACT, Guard, counts
from trace_store.secrets.rules import VERSION
from trace_store.store.store import Store
from trace_store.transcripts.layout import Pages

UNCHANGED = "unchanged"
MAXIMUM_ATTEMPTS = 5
"""How often to retry a file when another process moves its branch."""

MALFORMED = (InvalidInputError, KeyError, IndexError, TypeError, ValueError, AttributeError)
"""Errors caused by saved state from another version."""

Progress = Callable[[str, int, int], None]
"""Receives the path, the bytes read so far, and the file size."""


class CallerMissingError(Exception):
    """A subagent's file names a call that no imported file holds yet."""


@value
class ImportContext:
    """State shared by the files of an import; further attributes as in `import_paths`.

    Attributes:
        waits: whether a subagent waits for the file with its call, which may be another subagent's.
        is_alone: whether the store has no other session, so that each subagent waits.
    """

    store: Store
    log: ImportLog
    disk: Disk
    onto: str | None
    source: bool
    progress: Progress | None
    session_index: SessionIndex
    resume_states: ResumeStates
    strays: Strays
    guard: Guard | None = None
    watchers: Sequence[Watcher] = ()
    waits: bool = False
    is_alone: bool = False
    _spellings: dict[str, UsedNames] = field(default_factory=dict)

    def session_ref(self, format_name: str, session: str) -> str:
        """Return the branch of a session.

        A name that differs from another only by case gets a suffix.
        """
        folder = f"{SESSIONS}{format_name}/"
        plain, other = f"{folder}{session}", f"{folder}{distinct_component(session)}"
        used = self._spellings.get(folder)
        if used is None:
            names = (name for name, _ in self.store.refs.iterate(folder))
            used = self._spellings[folder] = UsedNames(names)
        chosen = other if used.case_conflict(plain) else plain
        used.add(chosen)
        return chosen


class FileImport:
    """Import of one file.

    Attributes:
        is_resumed: True if it continues an earlier import.
    """

    def __init__(
        self, context: ImportContext, file: Input, reader: Format, *, stray: bool = False
    ) -> None:
        self._context = context
        self._stray = stray  # True for rows from another session's file
        self._store = context.store
        self._file = file
        self._redactor = Redactor(context.guard, file)
        self._format = reader
        self._onto = context.onto
        self._source = context.source
        self._progress = context.progress
        self._key = state_key(file.path, reader.NAME, context.onto or "", source=context.source)
        self._writer: PlanWriter | None = None
        self._losses = ImportLosses()
        self._document = False
        self._record_places = RecordPlaces()
        self._resume_cut: ResumeCut | None = None
        self._continuation: Continuation | None = None
        self._branches: dict[str, str] = {}
        self._facts: Mapping[str, str] = {}
        self._with_media = reader.with_media if isinstance(reader, MediaFormat) else None
        self._resumable = True
        self._saved: ResumeState | None = None
        self.is_resumed = False

    def report(self, *, use_state: bool = True) -> FileReport:
        """Import the file and return the report; errors as in `import_paths`.

        Args:
            use_state: use the state saved by an earlier import.
        """
        state = self._load_state() if use_state else None
        self.is_resumed = state is not None
        if state is not None and state.end == self._file.size and self._has_commits(state):
            if self._is_unchanged(state):
                if state.stamp != self._file.stamp:
                    stamped = replace(state, stamp=self._file.stamp)
                    self._context.resume_states.add(self._key, stamped)
                return self._unchanged_report(state)
            state = None
        # A document, or a file without a resumable plan, is read from the start.
        planner = None if state is None or state.plan is None else self._resume(state)
        if state is None or planner is None:
            planner = self._format.plan(self._file.name, self._redactor)
            offset, number = 0, 1
        else:
            offset, number = state.offset, state.line
        if self._context.guard is not None and self._context.guard.mode == BLOCK:
            self._look_ahead(offset, number)
        end, number = self._feed(planner, offset, number)
        self._finish(planner, end, number)
        written = WriteResult() if self._writer is None else self._writer.finish()
        if self._saved is not None and self._writer is not None and self._writer.is_older:
            # A later version is there. As long as the file stays as it is, it has nothing to add.
            self._context.resume_states.add(self._key, replace(self._saved, plan=None, oids={}))
        if isinstance(planner, StrayFinder) and self._onto is None:
            for session, rows in planner.strays.items():
                self._context.strays.add(f"{self._format.NAME}/{session}", self._file.path, rows)
            self._context.strays.expect(f"{self._format.NAME}/{planner.session}")
        return self._report(planner, written)

    def _feed(self, planner: FilePlanner, offset: int, number: int) -> tuple[int, int]:
        """Read the file; return offset and line after the last complete line."""
        file = self._file
        pages = self._record_places.pages = Pages(file.read_at, offset)
        if offset == 0 and self._format.is_document(file.read_at(0, HEAD_BYTES)):
            self._document = True
            self._feed_document(planner, pages)
            return file.size, 1
        progress, redact = self._progress, self._redactor.line
        done: InputLine | None = None  # the last complete line, or one that cannot grow
        for line in read_lines(pages.read, file.size, offset=offset, number=number):
            skipped = 0 if line.ended else len(planner.skips())
            known = 0 if line.ended else _record_count(planner)
            pieces = planner.feed(redact(line))
            if pieces:
                self._take(planner, pieces)
            if line.ended or not _is_unfinished(planner.skips()[skipped:]):
                done = line
            elif _record_count(planner) > known + 1:
                # The line will be read again, and the planner has counted records of it already.
                self._resumable = False
            if progress is not None:
                progress(file.path, line.offset + line.length, file.size)
        if done is None:
            return offset, number
        return done.offset + done.length + done.ended, done.number + done.ended

    def _look_ahead(self, offset: int, number: int) -> None:
        """Check everything to be read for secrets before anything is written."""
        file = self._file
        if offset == 0 and self._format.is_document(file.read_at(0, HEAD_BYTES)):
            if file.size <= MAXIMUM_DOCUMENT_BYTES:
                self._redactor.line(
                    InputLine(1, 0, file.read_at(0, file.size), file.size, True, True)
                )
            return
        for line in read_lines(file.read_at, file.size, offset=offset, number=number):
            self._redactor.line(line)

    def _feed_document(self, planner: FilePlanner, pages: Pages) -> None:
        file = self._file
        short = file.size <= MAXIMUM_DOCUMENT_BYTES
        data = pages.read(0, file.size) if short else None
        line = self._redactor.line(InputLine(1, 0, data, file.size, True, whole=True))
        self._take(planner, planner.feed(line))
        if self._progress is not None:
            self._progress(file.path, file.size, file.size)

    def _take(self, planner: FilePlanner, pieces: Iterable[Planned]) -> None:
        for piece in pieces:
            if self._writer is None:
                self._writer = self._begin(planner)
            before = self._writer.written.commits
            self._writer.take(self._annotate(piece))
            if isinstance(piece, PlannedCommit) and self._writer.written.commits > before:
                self._losses.note(piece)

    def _finish(self, planner: FilePlanner, end: int, number: int) -> None:
        """Write the unfinished end of the file, and save where to resume."""
        # A document cannot be appended to: it is read as a whole again.
        # So is a file without a finished commit of its own: it may turn out to be a copy of another session.
        waits = self._writer is None or not self._writer.oids or self._writer.waits_for_new_commit
        saved = None if self._document or waits or not self._resumable else planner.save()
        resumption = None if saved is None else planner.resumes_at()
        oids = {} if self._writer is None else self._writer.saved_oids(all=saved is not None)
        if resumption is not None:
            oids = {number: oid for number, oid in oids.items() if number < resumption.commits}
        names = {} if self._writer is None else dict(self._writer.names)
        continuation = None if self._continuation is None else self._continuation.save()
        self._record_places.begin_tail()
        self._take(planner, planner.finish())
        if self._writer is None:
            return
        self._writer.flush()
        folder = self._folder(planner).removeprefix(SESSIONS)
        if self._source:
            kept = keep_file(
                *(
                    self._store,
                    self._context.log,
                    self._file,
                    folder,
                    self._record_places,
                    self._resume_cut,
                ),
                literal=self._redactor.redact_bytes,
            )
            if not kept.steady:
                return
            self._resume_cut = None if self._document else kept.cut
            saved = saved if kept.cut is not None else None
        head, tail = edges(self._file, end)
        self._saved = ResumeState(
            ref=self._ref(planner),
            session=planner.session,
            folder=folder,
            stamp=self._file.stamp,
            end=end,
            offset=end if resumption is None else resumption.offset,
            line=number if resumption is None else resumption.line,
            head=head,
            tail=tail,
            plan=saved,
            oids=oids,
            names=list(names.items()),
            continuation=continuation,
            cut=None if saved is None else self._resume_cut,
        )
        self._context.resume_states.add(self._key, self._saved)

    def _ref(self, planner: FilePlanner) -> str:
        if self._onto is not None:
            return self._onto
        folder = self._folder(planner).removeprefix(SESSIONS)
        if folder not in self._branches:
            self._branches[folder] = branch_of(self._store, folder)
        return self._branches[folder]

    def _folder(self, planner: FilePlanner) -> str:
        return self._session_ref(planner) + (f"/agents/{planner.agent}" if planner.agent else "")

    def _session_ref(self, planner: FilePlanner) -> str:
        return self._context.session_ref(self._format.NAME, planner.session)

    def _begin(self, planner: FilePlanner) -> PlanWriter:
        """Return the writer for a file that is read from its start."""
        store, ref = self._store, self._ref(planner)
        known = KnownCommits()
        tip = store.refs.read(ref)
        if tip is not None:
            known.add(store, tip)
        for _, end in session_refs(store, self._folder(planner)):
            known.add(store, end)
        if self._onto is not None or inspect_history(store, tip, ())[1]:
            self._continuation = Continuation(store, tip)
            self._continuation.only_adds = self._stray
        base = None
        if planner.agent and self._onto is None:
            if self._context.is_alone:
                raise CallerMissingError
            session = self._session_ref(planner)
            own = branch_of(store, session.removeprefix(SESSIONS))
            self._facts = self._facts_of(planner)
            call = self._facts.get(CALL, "")
            base = (
                caller_of(store, own, planner.agent)
                or caller_of(store, session, planner.agent)
                or (commit_with_call(store, own, call) if call else None)
            )
            if base is None and call and self._context.waits:
                raise CallerMissingError
        return PlanWriter(
            store,
            ref,
            self._context.log,
            folder=self._folder(planner),
            source=self._source,
            known=known,
            oids={},
            continuation=self._continuation,
            base=base,
            session_index=None
            if self._onto is not None or planner.agent
            else self._context.session_index,
            record_places=self._record_places,
            watchers=self._context.watchers,
        )

    def _facts_of(self, planner: FilePlanner) -> Mapping[str, str]:
        """Return the facts of a subagent; empty if its program wrote none."""
        if not isinstance(self._format, AgentFormat):
            return {}
        found = self._format.facts_of_agent(self._file.path, self._context.disk)
        redact = self._redactor.redact_bytes
        if redact is not None:
            found = {name: redact(text.encode()).decode() for name, text in found.items()}
        return {AGENT: planner.agent, **found} if found else {}

    def _resume(self, state: ResumeState) -> FilePlanner | None:
        """Resume the planner and its writer; None if that is not possible."""
        store = self._store
        try:
            planner = self._format.resume(self._file.name, self._redactor, state.plan)
            record_places = resume_places(store, self._file, state.cut)
        except (StateError, NotFoundError, FormatError, *MALFORMED):
            return None
        commits = frozenset(oid for oid in state.oids.values() if oid is not None)
        tip = store.refs.read(state.ref)
        if tip is None or self._ref(planner) != state.ref:
            return None
        descends, has_foreign = inspect_history(store, tip, commits)
        if commits and not descends:
            return None
        known = KnownCommits()
        for end in (tip, *(end for _, end in session_refs(store, self._folder(planner)))):
            known.add(store, end, commits)
        if self._onto is not None or has_foreign or state.continuation is not None:
            self._continuation = Continuation(store, tip, state.oids, saved=state.continuation)
            self._continuation.only_adds = self._stray
        self._record_places, self._resume_cut = record_places, state.cut
        self._writer = PlanWriter(
            store,
            state.ref,
            self._context.log,
            folder=self._folder(planner),
            source=self._source,
            known=known,
            oids=state.oids,
            continuation=self._continuation,
            record_places=record_places,
            watchers=self._context.watchers,
        )
        self._writer.resume(dict(state.names))
        return planner

    def _annotate(self, piece: Planned) -> Planned:
        """Add metadata about redaction and stray rows to a planned commit."""
        if isinstance(piece, PlannedThread):
            return piece
        if self._with_media is not None:
            piece = self._with_media(piece, self._file.path, self._context.disk)
        if self._facts and not piece.number:
            piece = piece._replace(facts=self._facts)
        if self._stray:
            piece = piece._replace(meta={**piece.meta, STRAY_KEY: True})
        if not self._redactor.findings:
            return piece
        if not any(record.filtered for record in piece.records):
            return piece
        return piece._replace(meta={**piece.meta, FACT: VERSION})

    def _load_state(self) -> ResumeState | None:
        """Return the saved state of the file, with the current name of its branch."""
        state = self._context.resume_states.load(self._key, self._file)
        if state is None or self._onto is not None:
            return state
        try:
            return replace(state, ref=branch_of(self._store, state.folder))
        except (FormatError, NotFoundError, *MALFORMED):
            return None

    def _has_commits(self, state: ResumeState) -> bool:
        """Return True if the imported commits are on their branch, or another version of the session replaced them."""
        refs = self._store.refs
        tip = refs.read(state.ref)
        commits = frozenset(oid for oid in state.oids.values() if oid is not None)
        if tip is None or not commits:
            return tip is not None
        replaced = refs.iterate(f"{TRASH}{state.ref.removeprefix('refs/')}/")
        tips = [tip, *(each for _, each in replaced)]
        return any(inspect_history(self._store, each, commits)[0] for each in tips)

    def _is_unchanged(self, state: ResumeState) -> bool:
        """Return True if a file of the same size is unchanged."""
        if state.stamp and state.stamp == self._file.stamp:
            return not self._source or is_kept(self._store, state.folder)
        if not self._source:
            return state.plan is not None
        return is_kept(self._store, state.folder, self._file)

    def _unchanged_report(self, state: ResumeState) -> FileReport:
        return FileReport(
            self._file.path,
            format=self._format.NAME,
            skipped=UNCHANGED,
            session=state.session,
            branches=tuple(BranchReport(ref, oid) for ref, oid in self._refs_of(state)),
            size=self._file.size,
            bytes_read=self._file.bytes_read,
        )

    def _refs_of(self, state: ResumeState) -> list[tuple[str, ObjectId]]:
        """Return the refs of a session and its branches.

        Branches keep their names on a rename.
        """
        refs = dict(session_refs(self._store, state.ref))
        return [
            *refs.items(),
            *(
                (ref, oid)
                for ref, oid in self._store.refs.iterate(f"{SESSIONS}{state.folder}/")
                if self._onto is None and ref not in refs
            ),
        ]

    def _branch_reports(
        self, planner: FilePlanner, branches: Mapping[str, ObjectId]
    ) -> tuple[BranchReport, ...]:
        """Return the branches of a session, its own first, then by name."""
        own = self._ref(planner)
        refs = sorted(branches, key=lambda ref: (ref != own, ref))
        return tuple(BranchReport(ref, branches[ref]) for ref in refs)

    def _report(self, planner: FilePlanner, written: WriteResult) -> FileReport:
        return FileReport(
            self._file.path,
            format=self._format.NAME,
            session=planner.session,
            branches=self._branch_reports(planner, written.branches),
            trashed=tuple(written.trashed),
            size=self._file.size,
            bytes_read=self._file.bytes_read,
            commits=written.commits,
            commits_present=written.present,
            commits_shared=written.shared,
            messages=written.messages,
            calls=written.calls,
            results=written.results,
            unread=self._losses.unread,
            unread_at=tuple(self._losses.skips[:MAXIMUM_NAMED_SKIPS]),
            hidden=self._losses.hidden,
            records=record_outcomes(planner.counts(), source=self._source),
            skips=tuple(planner.skips()[:MAXIMUM_NAMED_SKIPS]),
            secrets=counts(self._redactor.findings),
        )


def _record_count(planner: FilePlanner) -> int:
    return sum(planner.counts().values())


def _is_unfinished(skips: Sequence[Skip]) -> bool:
    """Return True if an unterminated line is incomplete rather than wrong."""
    return bool(skips) and skips[-1].reason == UNFINISHED


def import_with_retries(
    context: ImportContext, file: Input, reader: Format, *, stray: bool
) -> FileReport:
    """Import a file and return its report; retry if another process moves its branch, or if the saved state is wrong.

    Errors as in `import_paths`.
    """
    use_state, attempts = True, 0
    while True:
        run = FileImport(context, file, reader, stray=stray)
        try:
            return run.report(use_state=use_state)
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

"""Import one file: from its beginning, or from where an earlier import of it ended.

Rule: decides how a file is read, and whether it has to be; what a plan becomes is decided in `writing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from trace_store.errors import FormatError, InvalidInputError, NotFoundError, StateError
from trace_store.files import Disk
from trace_store.frozen import field, replace, value
from trace_store.importers.append_import import Continuation
from trace_store.importers.build_commits import Placing
from trace_store.importers.contract import Format, Plan, Planned, PlannedCommit, PlannedThread, Skip
from trace_store.importers.decode import Line, read_lines
from trace_store.importers.dedupe import (
    STRAY_KEY,
    Beginnings,
    Known,
    caller_of,
    look_back,
    session_refs,
)
from trace_store.importers.documents import MAXIMUM_DOCUMENT_BYTES
from trace_store.importers.file_head import HEAD_BYTES
from trace_store.importers.files import Input
from trace_store.importers.json_records import UNFINISHED
from trace_store.importers.names import branch_of, distinct_component
from trace_store.importers.redact import Screen
from trace_store.importers.report import (
    MAXIMUM_NAMED_SKIPS,
    BranchReport,
    FileReport,
    Losses,
    counted,
)
from trace_store.importers.resume_state import Memories, Memory, edges, memory_key
from trace_store.importers.source_archive import Cut, is_kept, keep_file, resume_placing
from trace_store.importers.strays import Straying, Strays
from trace_store.importers.write import PlanWriter, Written
from trace_store.oid import ObjectId
from trace_store.ref_names import Spellings
from trace_store.revision import SESSIONS
from trace_store.secrets import modes
from trace_store.secrets.guard import FACT, Guard, counts
from trace_store.secrets.rules import VERSION
from trace_store.store.handle import Store
from trace_store.transcripts.reread import Pages

UNCHANGED = "unchanged"

WRONG = (InvalidInputError, KeyError, IndexError, TypeError, ValueError, AttributeError)
"""What is raised of values that were not remembered by this version."""

Progress = Callable[[str, int, int], None]
"""Told the path, the bytes done, and the bytes of the file."""


@value
class Common:
    """What the files of an import have in common; attributes as in `import_paths`, and what is known of other files."""

    store: Store
    disk: Disk
    onto: str | None
    source: bool
    progress: Progress | None
    beginnings: Beginnings
    memories: Memories
    strays: Strays
    guard: Guard | None = None
    _spellings: dict[str, Spellings] = field(default_factory=dict)

    def session_ref(self, format_name: str, session: str) -> str:
        """Return the branch of a session; it is spelled otherwise if another's differs by case only."""
        folder = f"{SESSIONS}{format_name}/"
        plain, other = f"{folder}{session}", f"{folder}{distinct_component(session)}"
        there = self._spellings.get(folder)
        if there is None:
            names = (name for name, _ in self.store.refs.iterate(folder))
            there = self._spellings[folder] = Spellings(names)
        chosen = other if there.twin(plain) else plain
        there.add(chosen)
        return chosen


class Run:
    """One import of one file.

    Attributes:
        goes_on: whether it goes on where an earlier one ended.
    """

    def __init__(self, common: Common, file: Input, reader: Format, *, stray: bool = False) -> None:
        self._common = common
        self._stray = stray  # whether these are rows that another session's file holds
        self._store = common.store
        self._file = file
        self._screen = Screen(common.guard, file)
        self._format = reader
        self._onto = common.onto
        self._source = common.source
        self._progress = common.progress
        self._key = memory_key(file.path, reader.NAME, common.onto or "", source=common.source)
        self._writer: PlanWriter | None = None
        self._losses = Losses()
        self._document = False
        self._placing = Placing()
        self._cut: Cut | None = None
        self._continuation: Continuation | None = None
        self._branches: dict[str, str] = {}
        self.goes_on = False

    def report(self, *, recalls: bool = True) -> FileReport:
        """Import it and return what that did; errors as in `import_paths`.

        Args:
            recalls: whether what is remembered of an earlier import counts.
        """
        memory = self._recall() if recalls else None
        self.goes_on = memory is not None
        if memory is not None and memory.end == self._file.size and self._is_there(memory):
            if self._is_as_it_was(memory):
                if memory.stamp != self._file.stamp:
                    stamped = replace(memory, stamp=self._file.stamp)
                    self._common.memories.add(self._key, stamped)
                return self._unchanged(memory)
            memory = None
        # What was read as one document, or had no end yet, is read again as if for the first time.
        plan = None if memory is None or memory.plan is None else self._resume(memory)
        if memory is None or plan is None:
            plan = self._format.plan(self._file.name, self._screen)
            offset, number = 0, 1
        else:
            offset, number = memory.offset, memory.line
        if self._common.guard is not None and self._common.guard.mode == modes.BLOCK:
            self._look_ahead(offset, number)
        end, number = self._feed(plan, offset, number)
        self._finish(plan, end, number)
        written = Written() if self._writer is None else self._writer.finish()
        if isinstance(plan, Straying) and self._onto is None:
            for session, rows in plan.strays.items():
                self._common.strays.add(f"{self._format.NAME}/{session}", self._file.path, rows)
            self._common.strays.expect(f"{self._format.NAME}/{plan.session}")
        return self._made(plan, written)

    def _feed(self, plan: Plan, offset: int, number: int) -> tuple[int, int]:
        """Read the file and return how far it was understood: behind the last line, or before one that is cut."""
        file = self._file
        pages = self._placing.pages = Pages(file.read_at, offset)
        if offset == 0 and self._format.is_document(file.read_at(0, HEAD_BYTES)):
            self._document = True
            self._feed_document(plan, pages)
            return file.size, 1
        progress, screen = self._progress, self._screen.line
        done: Line | None = (
            None  # the last line that was understood, or that nothing can be added to
        )
        for line in read_lines(pages.read, file.size, offset=offset, number=number):
            skipped = 0 if line.ended else len(plan.skips())
            pieces = plan.feed(screen(line))
            if pieces:
                self._take(plan, pieces)
            if line.ended or not _is_unfinished(plan.skips()[skipped:]):
                done = line
            if progress is not None:
                progress(file.path, line.offset + line.length, file.size)
        if done is None:
            return offset, number
        return done.offset + done.length + done.ended, done.number + done.ended

    def _look_ahead(self, offset: int, number: int) -> None:
        """See that there is no secret in what will be read, before anything of it is written."""
        file = self._file
        if offset == 0 and self._format.is_document(file.read_at(0, HEAD_BYTES)):
            if file.size <= MAXIMUM_DOCUMENT_BYTES:
                self._screen.line(Line(1, 0, file.read_at(0, file.size), file.size, True, True))
            return
        for line in read_lines(file.read_at, file.size, offset=offset, number=number):
            self._screen.line(line)

    def _feed_document(self, plan: Plan, pages: Pages) -> None:
        file = self._file
        short = file.size <= MAXIMUM_DOCUMENT_BYTES
        data = pages.read(0, file.size) if short else None
        line = self._screen.line(Line(1, 0, data, file.size, True, whole=True))
        self._take(plan, plan.feed(line))
        if self._progress is not None:
            self._progress(file.path, file.size, file.size)

    def _take(self, plan: Plan, pieces: Iterable[Planned]) -> None:
        for piece in pieces:
            if self._writer is None:
                self._writer = self._begin(plan)
            before = self._writer.written.commits
            self._writer.take(self._told(piece))
            if isinstance(piece, PlannedCommit) and self._writer.written.commits > before:
                self._losses.note(piece)

    def _finish(self, plan: Plan, end: int, number: int) -> None:
        """Write the unfinished end of the file too, and remember where to take it up when it has grown."""
        # A document has no end that something could be added to: it is read whole again.
        saved = None if self._document else plan.save()
        goes_on = None if saved is None else plan.resumes_at()
        oids = {} if self._writer is None else dict(self._writer.oids)
        if goes_on is not None:
            oids = {number: oid for number, oid in oids.items() if number < goes_on.commits}
        names = {} if self._writer is None else dict(self._writer.names)
        continuation = None if self._continuation is None else self._continuation.save()
        self._placing.unsettle()
        self._take(plan, plan.finish())
        if self._writer is None:
            return
        self._writer.flush()
        folder = self._folder(plan).removeprefix(SESSIONS)
        if self._source:
            kept = keep_file(
                *(self._store, self._file, folder, self._placing, self._cut),
                literal=self._screen.literal,
            )
            if not kept.steady:
                return
            self._cut = None if self._document else kept.cut
            saved = saved if kept.cut is not None else None
        head, tail = edges(self._file, end)
        self._common.memories.add(
            self._key,
            Memory(
                ref=self._ref(plan),
                session=plan.session,
                folder=folder,
                stamp=self._file.stamp,
                end=end,
                offset=end if goes_on is None else goes_on.offset,
                line=number if goes_on is None else goes_on.line,
                head=head,
                tail=tail,
                plan=saved,
                oids=oids,
                names=list(names.items()),
                continuation=continuation,
                cut=self._cut,
            ),
        )

    def _ref(self, plan: Plan) -> str:
        if self._onto is not None:
            return self._onto
        folder = self._folder(plan).removeprefix(SESSIONS)
        if folder not in self._branches:
            self._branches[folder] = branch_of(self._store, folder)
        return self._branches[folder]

    def _folder(self, plan: Plan) -> str:
        return self._session_ref(plan) + (f"/agents/{plan.agent}" if plan.agent else "")

    def _session_ref(self, plan: Plan) -> str:
        return self._common.session_ref(self._format.NAME, plan.session)

    def _begin(self, plan: Plan) -> PlanWriter:
        """Return the writer for a file that is read from its beginning."""
        store, ref = self._store, self._ref(plan)
        known = Known()
        tip = store.refs.read(ref)
        if tip is not None:
            known.add(store, tip)
        for _, end in session_refs(store, self._folder(plan)):
            known.add(store, end)
        if self._onto is not None or look_back(store, tip, ())[1]:
            self._continuation = Continuation(store, tip)
            self._continuation.only_adds = self._stray
        base = None
        if plan.agent and self._onto is None:
            session = self._session_ref(plan)
            own = branch_of(store, session.removeprefix(SESSIONS))
            base = caller_of(store, own, plan.agent) or caller_of(store, session, plan.agent)
        return PlanWriter(
            store,
            ref,
            folder=self._folder(plan),
            source=self._source,
            known=known,
            oids={},
            continuation=self._continuation,
            base=base,
            beginnings=None if self._onto is not None or plan.agent else self._common.beginnings,
            placing=self._placing,
        )

    def _resume(self, memory: Memory) -> Plan | None:
        """Return the plan that goes on, with the writer ready; None when that cannot be done."""
        store = self._store
        try:
            plan = self._format.resume(self._file.name, self._screen, memory.plan)
            placing = resume_placing(store, self._file, memory.cut)
        except (StateError, NotFoundError, FormatError, *WRONG):
            return None
        made = frozenset(oid for oid in memory.oids.values() if oid is not None)
        tip = store.refs.read(memory.ref)
        if tip is None or self._ref(plan) != memory.ref:
            return None
        comes_from, others = look_back(store, tip, made)
        if made and not comes_from:
            return None
        known = Known()
        for end in (tip, *(end for _, end in session_refs(store, self._folder(plan)))):
            known.add(store, end, made)
        if self._onto is not None or others or memory.continuation is not None:
            self._continuation = Continuation(store, tip, memory.oids, saved=memory.continuation)
            self._continuation.only_adds = self._stray
        self._placing, self._cut = placing, memory.cut
        self._writer = PlanWriter(
            store,
            memory.ref,
            folder=self._folder(plan),
            source=self._source,
            known=known,
            oids=memory.oids,
            continuation=self._continuation,
            placing=placing,
        )
        self._writer.resume(dict(memory.names))
        return plan

    def _told(self, piece: Planned) -> Planned:
        """Return a piece of the plan that tells what was taken out of it, and whether it stood in another's file."""
        if isinstance(piece, PlannedThread):
            return piece
        if self._stray:
            piece = piece._replace(meta={**piece.meta, STRAY_KEY: True})
        if not self._screen.found:
            return piece
        if not any(record.filtered for record in piece.records):
            return piece
        return piece._replace(meta={**piece.meta, FACT: VERSION})

    def _recall(self) -> Memory | None:
        """Return what is remembered of the file; its branch may have another name by now."""
        memory = self._common.memories.recall(self._key, self._file)
        if memory is None or self._onto is not None:
            return memory
        try:
            return replace(memory, ref=branch_of(self._store, memory.folder))
        except (FormatError, NotFoundError, *WRONG):
            return None

    def _is_there(self, memory: Memory) -> bool:
        """Tell whether what was made of the file is still here."""
        tip = self._store.refs.read(memory.ref)
        made = frozenset(oid for oid in memory.oids.values() if oid is not None)
        return tip is not None and (not made or look_back(self._store, tip, made)[0])

    def _is_as_it_was(self, memory: Memory) -> bool:
        """Tell whether a file as long as it was holds the same; what is kept of it can tell."""
        if memory.stamp and memory.stamp == self._file.stamp:
            return not self._source or is_kept(self._store, memory.folder)
        if not self._source:
            return memory.plan is not None
        return is_kept(self._store, memory.folder, self._file)

    def _unchanged(self, memory: Memory) -> FileReport:
        return FileReport(
            self._file.path,
            format=self._format.NAME,
            skipped=UNCHANGED,
            session=memory.session,
            branches=tuple(BranchReport(ref, oid) for ref, oid in self._refs_of(memory)),
            size=self._file.size,
            bytes_read=self._file.bytes_read,
        )

    def _refs_of(self, memory: Memory) -> list[tuple[str, ObjectId]]:
        """Return the refs of a session and of its branches; those keep their names when it is renamed."""
        found = dict(session_refs(self._store, memory.ref))
        return [
            *found.items(),
            *(
                (ref, oid)
                for ref, oid in self._store.refs.iterate(f"{SESSIONS}{memory.folder}/")
                if self._onto is None and ref not in found
            ),
        ]

    def _branch_reports(
        self, plan: Plan, found: Mapping[str, ObjectId]
    ) -> tuple[BranchReport, ...]:
        """Return where a session is now: its own branch, then the others by name."""
        own = self._ref(plan)
        refs = sorted(found, key=lambda ref: (ref != own, ref))
        return tuple(BranchReport(ref, found[ref]) for ref in refs)

    def _made(self, plan: Plan, written: Written) -> FileReport:
        return FileReport(
            self._file.path,
            format=self._format.NAME,
            session=plan.session,
            branches=self._branch_reports(plan, written.branches),
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
            records=counted(plan.counts(), source=self._source),
            skips=tuple(plan.skips()[:MAXIMUM_NAMED_SKIPS]),
            secrets=counts(self._screen.found),
        )


def _is_unfinished(skips: Sequence[Skip]) -> bool:
    """Tell whether what was skipped of a line without an end is only its beginning."""
    return bool(skips) and skips[-1].reason == UNFINISHED

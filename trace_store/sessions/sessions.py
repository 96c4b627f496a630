"""`Sessions`, the subject `repo.sessions`."""

from __future__ import annotations

import os
from builtins import list as List  # the method `list` hides it  # noqa: N812
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from trace_store import exporters, history, sessions
from trace_store.base import check
from trace_store.base.frozen import replace, value
from trace_store.base.ident import Randomness, check_author, format_time
from trace_store.base.oid import ObjectId
from trace_store.contracts import RefEdit
from trace_store.contracts.record_names import record_title
from trace_store.contracts.ref_names import BRANCHES, LINES, RECORDS, SESSIONS, branch_ref
from trace_store.disk.files import Disk
from trace_store.errors import (
    AlreadyExistsError,
    AmbiguousRevisionError,
    ErrorCode,
    InvalidInputError,
    RenderError,
    RevisionNotFoundError,
    TraceError,
)
from trace_store.exporters.contract import AGENTS, REWINDS, Exported, ExportSession, Loss
from trace_store.exporters.files import SavedPages, save_page
from trace_store.exporters.registry import writer_named
from trace_store.exporters.session import (
    Window,
    base_length,
    find_branch,
    read_session,
    session_name,
    session_with,
)
from trace_store.history.branch_repair import ContextRepairReport
from trace_store.history.branches import Branches
from trace_store.history.trash_refs import DeletedRef
from trace_store.objects.address import Address
from trace_store.objects.commit import Tag
from trace_store.runs.reading import running
from trace_store.sessions.facts import (
    DEFAULT_LIMIT,
    DEFAULT_REPLY,
    DEFAULT_TARGET,
    INLINE,
    PREFIX,
    SessionFacts,
)
from trace_store.sessions.listing import (
    MAXIMUM_TITLE,
    SessionInfo,
    SessionRow,
    current_rows,
    known_rows,
    read_title,
    title_ref,
)
from trace_store.store.revision import branch_of, name_of, ref_of, resolve_address, resolve_commit
from trace_store.writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.contracts.protocols import RefReader
    from trace_store.llm.contract import Model
    from trace_store.sessions.session import Session
    from trace_store.store.revision import Revision

Path: TypeAlias = str | os.PathLike[str]


@value
class TitledSession:
    """A session whose title was set.

    Attributes:
        session: its id.
        title: the title, without secrets; "" if it was removed.
        changed: whether it had another one before.
    """

    session: str
    title: str
    changed: bool


class Sessions:
    """The sessions of agents, which are branches or records of frameworks: list, read, rename, export, repair, delete.

    A session is named by its title, its id or the beginning of its id, or its branch.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def start(
        self,
        type: str,
        *,
        name: str = "",
        feature: str = "",
        task: str = "",
        state: str = "open",
        description: str = "",
        context: str = "",
        limit: int = DEFAULT_LIMIT,
        target: float = DEFAULT_TARGET,
        reply: int | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        model: Model | None = None,
        compaction: str = INLINE,
    ) -> Session:
        """Start a session on a new branch `sessions/TYPE/NAME`, and return it.

        Args:
            type: such as "pm", "dev", "qa", "harness" or "merge"; any valid ref component.
            name: its name; by default one made from the time.
            feature: its feature.
            task: the id of its task; see `of_task`.
            state: its state.
            description: the agent's role, stored as an instruction message.
            context: the project, stored as an instruction message.
            limit: maximum tokens of a request and its reply, as the provider counts them.
            target: the size after a compaction, as a share of the limit.
            reply: tokens reserved for the reply; by default 8,000, or a quarter of the limit if that is less.
            tools: tool definitions.
            model: a model, or a function from a prompt to a text, that writes summaries; None quotes the most important
                sentences.
            compaction: "inline" (when a request would not fit), "background" (earlier, in a thread) or "off".

        Raises:
            AlreadyExistsError: the session exists.
            InvalidInputError, InvalidRefNameError: an argument is not valid.
            BudgetError: the description, context and tools alone do not fit the limit.
        """
        given = {"feature": feature, "task": task, "state": state}
        check.text(type=type, name=name, description=description, context=context, **given)
        check.integer(1, 2**40, limit=limit)
        reply = min(DEFAULT_REPLY, limit // 4) if reply is None else reply
        check.integer(0, limit, reply=reply)
        check.number(0.05, 0.95, target=target)
        clock = self._writer.store.clock
        name = (
            name or f"{format_time(clock.now())[:19].replace(':', '')}-{Randomness().take(3).hex()}"
        )
        ref = branch_ref(f"sessions/{type}/{name}")
        if self._writer.store.refs.read(ref) is not None:
            raise AlreadyExistsError(
                f"there is a session {type}/{name}", code=ErrorCode.BRANCH_EXISTS, ref=ref
            )
        settings = {"type": type, "limit": limit, "target": target, "reply": reply, **given}
        facts = {f"{PREFIX}{key}": each for key, each in settings.items() if each != ""}
        session = sessions.session.Session(self._writer.on(ref), model=model, compaction=compaction)
        sessions.session.begin(
            session, facts, description=description, context=context, tools=tools
        )
        return session

    def open(
        self, session: str, *, model: Model | None = None, compaction: str = INLINE
    ) -> Session:
        """Open a session, which may be an imported one.

        Args:
            session: its name, as in `get`.
            model: as in `start`.
            compaction: as in `start`.

        Raises:
            As `get`.
        """
        check.text(session=session)
        ref = session if session.startswith(LINES) else f"{SESSIONS}{session}"
        if self._writer.store.refs.read(ref) is None:
            ref = self.get(session).ref
        return sessions.session.Session(self._writer.on(ref), model=model, compaction=compaction)

    def of_task(self, task: str) -> dict[str, List[SessionInfo]]:
        """Return the sessions of a task by state, the latest first."""
        found: dict[str, List[SessionInfo]] = {}
        for each in self.list(task=task):
            found.setdefault(each.facts.state if each.facts else "", []).append(each)
        return found

    def list(
        self,
        *,
        type: str = "",
        feature: str = "",
        task: str = "",
        state: str = "",
        active: bool | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> List[SessionInfo]:
        """Return all sessions, branches and records, with sizes and times, latest end first; damaged ones come last.

        Records that have neither a thread nor messages are left out: they hold other state of a program.

        Args:
            type: only sessions of this type; "" is any.
            feature: only sessions of this feature.
            task: only sessions of this task.
            state: only sessions in this state.
            active: True lists open sessions started by Trace, False closed ones; None lists all.
            progress: called with the numbers of read and of all sessions.

        Raises:
            StorageError: a file cannot be read.
        """
        check.function(progress=progress)
        wanted = {"type": type, "feature": feature, "task": task, "state": state}
        check.text(**wanted)
        store = self._writer.store
        tips = {name: tip for prefix in LINES for name, tip in store.refs.iterate(prefix)}
        below: Counter[tuple[str, str]] = Counter()
        own: List[str] = []
        for ref in tips:
            named = session_name(ref)
            if named is not None and named[2]:
                kind = named[2].partition("/")[0]
                below[ref.removesuffix(f"/{named[2]}"), kind] += 1
            else:
                own.append(ref)
        activities = {each.state.session: each.activity for each in reversed(running(store))}
        found: List[SessionInfo] = []
        for ref, row in current_rows(store, {ref: tips[ref] for ref in own}, progress).items():
            if isinstance(row, TraceError):
                found.append(_damaged(ref, tips[ref], row))
                continue
            title = read_title(store, row.agent or "branch", row.session) or row.title
            facts = SessionFacts.of(row.facts) if row.facts else None
            info = row.info(
                ref,
                tips[ref],
                title=title,
                facts=facts,
                activity=activities.get(ref, ""),
                agents=below[ref, AGENTS],
                rewinds=below[ref, REWINDS],
            )
            if info.is_thread:
                found.append(info)
        chosen = [
            each
            for each in found
            if all(text in ("", getattr(each.facts, name, "")) for name, text in wanted.items())
            and (active is None or (each.facts is not None and (not each.facts.closed) is active))
        ]
        return sorted(chosen, key=lambda each: (-each.ended, each.ref))

    def get(
        self, session: str, *, progress: Callable[[int, int], None] | None = None
    ) -> SessionInfo:
        """Return the session with this id, branch or title, or the only one whose id, title or prompt starts so.

        Raises:
            RevisionNotFoundError, AmbiguousRevisionError: no session has this name, or several have.
        """
        check.text(session=session)
        sessions, text = self.list(progress=progress), session
        latest = self._latest(text)
        tests: tuple[Callable[[SessionInfo], bool], ...] = (
            lambda it: it.ref == latest,
            lambda it: text in (it.session, it.ref, it.ref.removeprefix(BRANCHES), it.title),
            lambda it: it.session.startswith(text) or f"{it.agent}/{it.session}".startswith(text),
            lambda it: it.name.casefold().startswith(text.casefold()),
        )
        for test in tests:
            matches = [each for each in sessions if test(each)]
            if len(matches) == 1:
                return matches[0]
            if matches:
                raise AmbiguousRevisionError(
                    f"{len(matches)} sessions match {text!r}",
                    revision=text,
                    candidates=tuple(each.ref for each in matches),
                )
        raise RevisionNotFoundError(
            f"no session {text!r}", revision=text, code=ErrorCode.SESSION_NOT_FOUND
        )

    def _latest(self, thread: str) -> str:
        """Return the record of a thread that was written last, or ""."""
        try:
            found = branch_of(self._writer.store, thread) if thread else None
        except AmbiguousRevisionError:
            found = None
        return found if found is not None and found.startswith(RECORDS) else ""

    def titles(self, *refs: str) -> dict[str, str]:
        """Return a title for each branch: the user's or the agent's, the first prompt, or else the branch's name.

        Branches and records are given by their full names. The agent's title and the prompt are those of the last
        listing, so that this reads no session.
        """
        check.texts(refs=refs)
        store = self._writer.store
        row_of, titles = known_rows(store), dict[str, str]()
        for ref in refs:
            name, row = ref.removeprefix(BRANCHES), row_of(ref)
            agent, session, *_ = (
                (row.agent, row.session) if row else session_name(ref) or ("", name)
            )
            title = read_title(store, agent or "branch", session)
            titles[ref] = title or self._listed_title(ref, row) or name
        return titles

    def _listed_title(self, ref: str, row: SessionRow | None) -> str:
        if row:
            return row.title or row.prompt
        if not ref.startswith(RECORDS):
            return ""
        facts = history.facts.newest_facts(
            self._writer.contexts, ref, self._writer.store.refs.read(ref)
        )
        return record_title(ref, facts)

    def is_started(self, ref: str) -> bool:
        """Return True if Trace started the session of a branch, given its full name; as last listed, if it was."""
        check.text(ref=ref)
        row = known_rows(self._writer.store)(ref)
        return bool(row.facts if row is not None else self.open(ref).facts.type)

    def rename(
        self, session: str, title: str, *, progress: Callable[[int, int], None] | None = None
    ) -> TitledSession:
        """Give a session a title, without secrets; "" removes it. Errors as in `get`.

        Raises:
            InvalidInputError: the title has several lines, or more than 500 characters.
            SecretFoundError: it holds a secret, and the repository refuses secrets.
        """
        check.text(title=title)
        info, title = self.get(session, progress=progress), title.strip()
        if "\n" in title or len(title) > MAXIMUM_TITLE:
            raise InvalidInputError(
                "a title must be one line of at most 500 characters", value=title[:80]
            )
        ref, change = title_ref(info.agent or "branch", info.session), self._writer.begin()
        time = self._writer.store.clock.now()
        tag = Tag(info.tip, info.session, check_author(change.author), time, title)
        oid = change.add(tag) if title else None

        def edits(refs: RefReader) -> List[RefEdit] | None:
            before = refs.read(ref)
            return [RefEdit(ref, oid, before)] if oid or before else None

        changed = (
            read_title(self._writer.store, info.agent or "branch", info.session) != tag.message
        )
        if changed:
            change.write(edits, f"title: {info.session}")
        return TitledSession(info.session, tag.message, changed)

    def delete(
        self, session: str, *, progress: Callable[[int, int], None] | None = None
    ) -> List[DeletedRef]:
        """Move a session's branch, with its subagents and rewinds, or a record, to the trash. Errors as in `get`.

        Raises:
            StateError: HEAD is on one of them.
        """
        store, ref = self._writer.store, self.get(session, progress=progress).ref
        if ref.startswith(RECORDS):
            return history.trash_refs.delete_refs(self._writer, [ref], what="record")
        names = [ref, *(name for name, _ in store.refs.iterate(f"{ref}/"))]
        short = [name.removeprefix(BRANCHES) for name in names]
        return Branches(self._writer).delete(*short)

    def read(
        self, session: Revision = "HEAD", *, at: str = "", hidden: bool = False
    ) -> ExportSession:
        """Return the content of a session: its messages with commits, times and usage.

        Args:
            session: the session, or any revision.
            at: an earlier time or revision.
            hidden: return hidden messages, too.

        Raises:
            RevisionNotFoundError, AmbiguousRevisionError: no session has this name, or several have.
        """
        check.text(at=at)
        check.flag(hidden=hidden)
        name = self._revision(name_of(session, "session"))
        return read_session(self._writer.store, name, at=at, hidden=hidden)

    def part(
        self,
        session: Revision = "HEAD",
        *,
        start: int | None = None,
        around: str | Address = "",
        count: int = 200,
        at: str = "",
        hidden: bool = False,
    ) -> ExportSession:
        """Return some messages of a session, as `read` returns all; the work depends on the part, not on the session.

        Args:
            session: as in `read`.
            start: number of the first message, from 0; None returns the last ones.
            around: the message in the middle, in place of `start`.
            count: the most messages to return.
            at: as in `read`.
            hidden: as in `read`.

        Raises:
            MessageNotFoundError: the session does not hold the message, or hides it.
            As `read`.
        """
        check.text(at=at)
        check.flag(hidden=hidden)
        check.integer(1, 2**31, count=count)
        if start is not None:
            check.integer(0, 2**31, start=start)
        store, contexts = self._writer.store, self._writer.contexts
        name = self._revision(name_of(session, "session"))
        address = resolve_address(store, name_of(around, "around")) if around else None
        part = Window(count, start, address)
        return read_session(store, name, at=at, hidden=hidden, contexts=contexts, part=part)

    def _revision(self, name: str) -> str:
        """Return a revision whose session, if it starts with one, is named by its branch."""
        branch = find_branch(self._writer.store, name)
        if branch and not name.startswith(("HEAD", "@")):
            return branch + name[base_length(name) :]
        try:
            resolve_commit(self._writer.store, name)
        except RevisionNotFoundError as error:
            try:
                return self.get(name).ref
            except RevisionNotFoundError:
                raise error from None
        return name

    def find(self, message: str | Address, *, hidden: bool = False) -> ExportSession:
        """Return the session that holds a message: `turns[begin]` has it. HEAD's branch comes first.

        Raises:
            NotFoundError: no branch holds the message.
        """
        check.flag(hidden=hidden)
        address = resolve_address(self._writer.store, name_of(message, "message"))
        return session_with(self._writer.store, address, hidden=hidden)

    def export(
        self,
        session: Revision | ExportSession = "HEAD",
        format: str = "markdown",
        *,
        at: str = "",
        hidden: bool = False,
        strict: bool = False,
        path: Path = "",
        overwrite: bool = False,
    ) -> Exported:
        """Return a session as a file in an export format; its `losses` say what the format cannot hold.

        Args:
            session: the session, or any revision; or what `read` returned, which `at` does not change.
            format: such as "claude-code", "html" or "markdown"; "" is the one that it was imported from, and the losses
                say that it is not the original file.
            at: as in `read`.
            hidden: as in `read`; only formats for readers hold hidden messages.
            strict: raise RenderError if anything would be lost.
            path: a file to write to, or a folder for a file of the suggested name.
            overwrite: replace an existing file.

        Raises:
            InvalidInputError: there is no such format, or it cannot hold hidden messages.
            RenderError: the format holds nothing of the session; or something would be lost, and `strict` is set.
            AlreadyExistsError: the file exists.
            As `read`.
        """
        check.text(format=format, at=at)
        check.flag(hidden=hidden, strict=strict, overwrite=overwrite)
        check.path(path=path)
        if not isinstance(session, ExportSession):
            session = self.read(session, at=at, hidden=hidden)
        is_anew = not format
        format = format or session.format
        if not format:
            raise InvalidInputError(f"{session.id} was not imported: name a format")
        writer = writer_named(format)
        shows_hidden = getattr(writer, "SHOWS_HIDDEN", False)
        if hidden and not shows_hidden:
            raise InvalidInputError(f"{format} cannot hold messages hidden from the model")
        if not session.turns and not shows_hidden:
            raise RenderError(f"{session.id} has no messages that {format} could hold")
        exported = writer.write(session)
        if is_anew:
            losses = (Loss("original-bytes", 1), *exported.losses)
            exported = replace(exported, losses=losses)
        if shows_hidden and not hidden:
            exported = replace(exported, hidden_count=session.hidden_count)
        if strict and exported.losses:
            raise RenderError(
                f"{format} cannot hold the session without loss", losses=exported.losses
            )
        if path:
            exported.save(path, overwrite=overwrite)
        return exported

    def export_pages(
        self,
        folder: Path,
        *sessions: Revision,
        hidden: bool = False,
        overwrite: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> SavedPages:
        """Write a page for each session to a folder, and an `index.html` that searches titles and prompts.

        Args:
            folder: the folder; it is created.
            sessions: sessions, or revisions; without any, all branches.
            hidden: as in `read`.
            overwrite: replace files that are no pages of Trace.
            progress: called with the number of pages written, and of all.

        Raises:
            AlreadyExistsError: a file exists that Trace did not write; pages before it are written.
            As `read`.
        """
        check.flag(hidden=hidden, overwrite=overwrite)
        check.path(folder=folder)
        check.function(progress=progress)
        disk, target = Disk(), os.path.abspath(folder)
        disk.make_directory(target)
        names: Sequence[Revision] = sessions
        if not sessions:
            names = [name for name, _ in self._writer.store.refs.iterate(BRANCHES)]
        page, pages = exporters.html.page, []
        for count, name in enumerate(names, 1):
            session = self.read(name, hidden=hidden)
            exported = exporters.html.write(session)
            path = os.path.join(target, exported.file_name)
            save_page(disk, path, exported, overwrite=overwrite)
            pages.append(page.IndexEntry(session, exported.file_name))
            if progress is not None:
                progress(count, len(names))
        index = page.index_page(pages)
        path = os.path.join(target, index.file_name)
        save_page(disk, path, index, overwrite=overwrite)
        return SavedPages(path, tuple((e.session.id, e.file) for e in pages))

    def repair(
        self,
        session: Revision = "HEAD",
        *,
        providers: Sequence[str] = (),
        in_place: bool = False,
        dry_run: bool = False,
    ) -> ContextRepairReport:
        """Create a valid copy of a branch as `repaired/NAME`, unless an earlier repair suffices.

        The report lists the faults of the original, for which providers would refuse it.

        Args:
            session: the session, or any revision.
            providers: repair only what these would refuse.
            in_place: commit on the branch itself.
            dry_run: write nothing.

        Raises:
            RevisionNotFoundError, AmbiguousRevisionError: no session has this name, or several have.
            InvalidInputError: there is no such provider, or `in_place` is set and no branch is named.
            RefChangedError: the branch moved meanwhile.
            StorageError: the disk failed; nothing was written.
        """
        check.flag(in_place=in_place, dry_run=dry_run)
        check.texts(providers=providers)
        writer, store, repairs = self._writer, self._writer.store, history.branch_repair
        name = self._revision(name_of(session, "session"))
        if not any(mark in name for mark in ("~", "^", "@")):
            name = find_branch(store, name) or name
        tip, ref = resolve_commit(store, name), ref_of(store, name) or ""
        if not ref.startswith(BRANCHES) or store.refs.read(ref) != tip:
            ref = ""
        if in_place and not ref:
            raise InvalidInputError(
                f"{name[:80]} is not a branch, so it cannot be repaired in place"
            )
        mended, count = repairs.repaired_context(writer.contexts, ref or tip, providers)
        if not mended.faults:
            return ContextRepairReport(repairs.SOUND, ref, tip, count, (), mended.adaptations)
        target = ref
        if not in_place:
            target, end = repairs.repair_target(writer.contexts, ref, tip)
            if end != tip:
                tip = end
                mended, count = repairs.repaired_context(writer.contexts, target, providers)
                if not mended.faults:
                    return ContextRepairReport(
                        repairs.REPAIRED_BEFORE, ref, tip, count, (), mended.adaptations, target
                    )
        result = None if dry_run else repairs.write_repair(writer.on(target), mended, tip)
        outcome = repairs.BROKEN if dry_run else repairs.REPAIRED
        return ContextRepairReport(
            outcome, ref, tip, count, mended.faults, mended.adaptations, target, result
        )


def _damaged(ref: str, tip: ObjectId, error: TraceError) -> SessionInfo:
    agent, session, _ = session_name(ref) or ("", ref.removeprefix(BRANCHES), "")
    return SessionInfo(ref, tip, agent, session, damage=error.message)

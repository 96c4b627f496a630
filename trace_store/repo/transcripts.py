"""Transcripts: import files of agent programs, list the sessions, export and repair them."""

from __future__ import annotations

import os

from trace_store import check, exporters, history, importers, sessions
from trace_store import secrets as secret_files
from trace_store.errors import (
    CorruptObjectError,
    InvalidInputError,
    ObjectNotFoundError,
    RenderError,
)
from trace_store.files import Disk
from trace_store.frozen import replace
from trace_store.ref_names import BRANCHES
from trace_store.repo.handle import Handle, name_of
from trace_store.revision import resolve_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # the method `list` hides it  # noqa: N812
    from collections.abc import Callable, Sequence
    from typing import BinaryIO, TypeAlias

    from trace_store.errors import TraceError
    from trace_store.exporters.contract import Exported, ExportSession
    from trace_store.exporters.files import SavedFile, SavedOriginal, SavedPages, SourceFile
    from trace_store.history.branches import DeletedRef
    from trace_store.history.repair import ContextRepairReport
    from trace_store.importers.report import ImportReport
    from trace_store.objects.address import Address
    from trace_store.repo.handle import Revision
    from trace_store.sessions.listing import SessionInfo

    Progress: TypeAlias = Callable[[str, int, int], None]
    Path: TypeAlias = str | os.PathLike[str]


class Transcripts:
    """The sessions of agents in a repository, as `repo.transcripts`.

    A session is named by its title, its id or the beginning of its id, or its branch.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def import_(
        self,
        *paths: Path,
        format: str = "",
        onto: str = "",
        source: bool = True,
        discovered: Sequence[Path] = (),
        stdin: BinaryIO | None = None,
        secrets: str = "",
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import transcripts; each session becomes a branch `sessions/FORMAT/ID`. Importing again adds what is new.

        A file that cannot be imported does not stop the others: the report names it with its error.

        Args:
            paths: files, or folders with files; "-" is `stdin`.
            format: the format of all files; "" detects it for each.
            onto: append to this branch, and create none.
            source: keep what messages do not carry of each record, so that the file can be exported byte for byte.
            discovered: files to import, too, such as those of `discover`; one that cannot be imported is skipped.
            stdin: what "-" reads.
            secrets: "redact", "block", "warn" or "off"; "" is how the repository was opened.
            progress: called with the path, the number of bytes done, and of all.

        Raises:
            UnreadableInputError: the only file is not a transcript, or is damaged.
            InvalidInputError: there is no such format.
        """
        check.text(format=format, onto=onto, secrets=secrets)
        check.flag(source=source)
        check.items(discovered=discovered)
        check.function(progress=progress)
        for path in (*paths, *discovered):
            check.path(paths=path)
        handle, store = self._handle, self._handle.store
        guard = handle.guard
        if secrets:
            guard = secret_files.guard.Guard.of(store, handle.environment, secrets)
        milestones = handle.import_milestones()
        report = importers.import_file.import_paths(
            store,
            [os.fspath(path) for path in paths],
            format=format or None,
            onto=onto or None,
            source=source,
            progress=progress,
            stdin=stdin,
            discovered=[os.fspath(path) for path in discovered],
            guard=guard,
            watcher=milestones,
        )
        if milestones is not None:
            milestones.save()
        handle.after_import(report)
        return report

    def discover(self, folder: Path = "", format: str = "") -> List[str]:
        """Return the transcripts of a project, from where each agent program keeps its own.

        Args:
            folder: the folder of the project; "" is the repository's.
            format: only transcripts of this format.

        Raises:
            InvalidInputError: there is no such format, or a repository in memory has no folder.
        """
        check.text(format=format)
        check.path(folder=folder)
        handle = self._handle
        if not folder:
            handle.store.check_local()
            folder = os.path.dirname(handle.store.layout.root)
        folder = os.path.abspath(folder)
        if format:
            named = importers.registry.format_named(format)
            return [*named.histories(handle.environment, folder, Disk())]
        return importers.discovery.project_histories(handle.environment, folder)

    def projects(self) -> dict[str, int]:
        """Return the folders that agent programs worked in, with the number of sessions of each, most first."""
        return importers.discovery.other_folders(self._handle.environment)

    def list(self, *, progress: Callable[[int, int], None] | None = None) -> List[SessionInfo]:
        """Return all sessions and other branches, with sizes and times."""
        check.function(progress=progress)
        return sessions.listing.list_sessions(self._handle.store, progress=progress)

    def get(
        self, session: str, *, progress: Callable[[int, int], None] | None = None
    ) -> SessionInfo:
        """Return one session.

        Raises:
            RevisionNotFoundError, AmbiguousRevisionError: no session has this name, or several have.
        """
        check.text(session=session)
        return sessions.listing.session_named(self.list(progress=progress), session)

    def titles(self, *refs: str) -> dict[str, str]:
        """Return a title for each branch: the user's or the agent's, the first prompt, or else the branch's name.

        Branches are given by their full names. The agent's title and the prompt are those of the last listing, so that
        this reads no session.
        """
        check.texts(refs=refs)
        return sessions.listing.titles(self._handle.store, refs)

    def rename(
        self, session: str, title: str, *, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Give a session a title; "" removes it. Errors as in `get`.

        Raises:
            InvalidInputError: the title has several lines, or more than 500 characters.
        """
        check.text(title=title)
        store, info = self._handle.store, self.get(session, progress=progress)
        agent = info.agent or "branch"
        sessions.listing.rename_session(
            *(store, agent, info.session, info.tip, title), author=self._handle.author
        )

    def delete(
        self, session: str, *, progress: Callable[[int, int], None] | None = None
    ) -> List[DeletedRef]:
        """Move a session's branch, and those of its subagents and rewinds, to the trash. Errors as in `get`.

        Raises:
            StateError: HEAD is on one of them.
        """
        store, ref = self._handle.store, self.get(session, progress=progress).ref
        names = [ref, *(name for name, _ in store.refs.iterate(f"{ref}/"))]
        short = [name.removeprefix(BRANCHES) for name in names]
        return history.branches.delete_branches(store, short, author=self._handle.author)

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
        store = self._handle.store
        name = sessions.listing.revision_of(store, name_of(session, "session"))
        return exporters.session.read_session(store, name, at=at, hidden=hidden)

    def find(self, message: str | Address, *, hidden: bool = False) -> ExportSession:
        """Return the session that holds a message: `turns[begin]` has it. HEAD's branch comes first.

        Raises:
            NotFoundError: no branch holds the message.
        """
        check.flag(hidden=hidden)
        address = resolve_address(self._handle.store, name_of(message, "message"))
        return exporters.session.session_with(self._handle.store, address, hidden=hidden)

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
        if not isinstance(session, exporters.contract.ExportSession):
            session = self.read(session, at=at, hidden=hidden)
        is_anew = not format
        format = format or session.format
        if not format:
            raise InvalidInputError(f"{session.id} was not imported: name a format")
        writer = exporters.registry.writer_named(format)
        shows_hidden = getattr(writer, "SHOWS_HIDDEN", False)
        if hidden and not shows_hidden:
            raise InvalidInputError(f"{format} cannot hold messages hidden from the model")
        if not session.turns and not shows_hidden:
            raise RenderError(f"{session.id} has no messages that {format} could hold")
        exported = writer.write(session)
        if is_anew:
            losses = (exporters.contract.Loss("original-bytes", 1), *exported.losses)
            exported = replace(exported, losses=losses)
        if shows_hidden and not hidden:
            exported = replace(exported, hidden_count=session.hidden_count)
        if strict and exported.losses:
            raise RenderError(
                f"{format} cannot hold the session without loss", losses=exported.losses
            )
        if path:
            self.save(exported, path, overwrite=overwrite)
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
            names = [name for name, _ in self._handle.store.refs.iterate(BRANCHES)]
        page, pages = exporters.html.page, []
        for count, name in enumerate(names, 1):
            session = self.read(name, hidden=hidden)
            exported = exporters.html.write(session)
            path = os.path.join(target, exported.file_name)
            exporters.files.save_page(disk, path, exported, overwrite=overwrite)
            pages.append(page.IndexEntry(session, exported.file_name))
            if progress is not None:
                progress(count, len(names))
        index = page.index_page(pages)
        path = os.path.join(target, index.file_name)
        exporters.files.save_page(disk, path, index, overwrite=overwrite)
        return exporters.files.SavedPages(path, tuple((e.session.id, e.file) for e in pages))

    def originals(
        self, *, lost: Callable[[str, TraceError], object] | None = None
    ) -> List[SourceFile]:
        """Return the imported files that were kept: those that can be exported byte for byte.

        Args:
            lost: called with the ref and the error of each damaged file, which is left out; None raises the error.

        Raises:
            ObjectNotFoundError, CorruptObjectError: a file is damaged, and `lost` is not given.
        """
        check.function(lost=lost)
        return exporters.files.source_files(self._handle.store, lost=lost)

    def original(self, session: str, *, file: str = "") -> SourceFile:
        """Return the file that a session was imported from, without its content.

        Args:
            session: the session.
            file: the id of one of several files, or its beginning.

        Raises:
            RevisionNotFoundError: no file of the session was kept.
            AmbiguousRevisionError: several were.
        """
        check.text(session=session, file=file)
        return exporters.files.find_file(self._handle.store, session, file=file)

    def export_original(
        self,
        session: str | SourceFile,
        *,
        file: str = "",
        path: Path = "",
        overwrite: bool = False,
    ) -> Exported:
        """Return the file that a session was imported from, byte for byte, and checked by hash.

        Args:
            session: the session; or what `original` or `originals` returned.
            file: as in `original`.
            path: a file to write to, or a folder for a file of the suggested name.
            overwrite: replace an existing file.

        Raises:
            ObjectNotFoundError, CorruptObjectError: the file is damaged.
            AlreadyExistsError: the file exists.
            As `original`.
        """
        check.flag(overwrite=overwrite)
        check.path(path=path)
        kept = self.original(session, file=file) if isinstance(session, str) else session
        check.instance(exporters.files.SourceFile, session=kept)
        exported = exporters.files.restore_file(self._handle.store, kept)
        if path:
            self.save(exported, path, overwrite=overwrite)
        return exported

    def export_originals(
        self,
        folder: Path,
        *,
        overwrite: bool = False,
        lost: Callable[[str, TraceError], object] | None = None,
    ) -> List[SavedOriginal]:
        """Write all files of `originals` below a folder, those of each format in one of its own.

        Args:
            folder: the folder; it is created.
            overwrite: replace existing files.
            lost: called with the ref and the error of each damaged file; the others are written.

        Raises:
            ObjectNotFoundError, CorruptObjectError: a file is damaged, and `lost` is not given.
            AlreadyExistsError: a file exists; those before it are written.
        """
        check.flag(overwrite=overwrite)
        check.path(folder=folder)
        disk, taken, saved = Disk(), set[str](), []
        for kept in self.originals(lost=lost):
            try:
                exported = self.export_original(kept)
            except (ObjectNotFoundError, CorruptObjectError) as error:
                if lost is None:
                    raise
                lost(kept.ref, error)
                continue
            name = exporters.files.free_name(kept, exported.file_name, taken)
            path = os.path.abspath(os.path.join(folder, name))
            disk.make_directory(os.path.dirname(path))
            exporters.files.save_file(disk, path, exported, overwrite=overwrite)
            saved.append(
                exporters.files.SavedOriginal(kept, path, exported.blake3, exported.placeholders)
            )
        return saved

    def save(self, exported: Exported, path: Path, *, overwrite: bool = False) -> SavedFile:
        """Write what was exported to a file, or under its suggested name to a folder.

        Raises:
            AlreadyExistsError: the file exists, and `overwrite` is not given.
            StorageError: the disk failed; no file is left.
        """
        check.flag(overwrite=overwrite)
        check.path(path=path)
        check.instance(exporters.contract.Exported, exported=exported)
        return exporters.files.save(exported, path, overwrite=overwrite)

    def repair(
        self,
        session: Revision = "HEAD",
        *,
        providers: Sequence[str] = (),
        in_place: bool = False,
        dry_run: bool = False,
    ) -> ContextRepairReport:
        """Create a valid copy of a branch as `repaired/NAME`.

        The report lists the faults of the original, for which providers would refuse it.

        Args:
            session: the session, or any revision.
            providers: repair only what these would refuse.
            in_place: commit on the branch itself.
            dry_run: write nothing.

        Raises:
            RevisionNotFoundError, AmbiguousRevisionError: no session has this name, or several have.
            InvalidInputError: there is no such provider, or `in_place` is set and no branch is named.
        """
        check.flag(in_place=in_place, dry_run=dry_run)
        check.texts(providers=providers)
        store = self._handle.store
        name = sessions.listing.revision_of(store, name_of(session, "session"))
        if not any(mark in name for mark in ("~", "^", "@")):
            name = exporters.session.find_branch(store, name) or name
        return history.repair.repair(
            self._handle.contexts,
            name,
            providers=providers,
            in_place=in_place,
            dry_run=dry_run,
        )

"""Transcripts: import files of agent programs, list the sessions, export and repair them."""

from __future__ import annotations

import os

from trace_store import exporters, history, importers, sessions
from trace_store import secrets as secret_files
from trace_store.errors import RenderError
from trace_store.files import Disk
from trace_store.refs.names import BRANCHES
from trace_store.repo.handle import Handle, check_flag, check_text, name_of
from trace_store.revision import resolve_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # the method `list` hides it  # noqa: N812
    from collections.abc import Callable, Sequence
    from typing import BinaryIO, TypeAlias

    from trace_store.exporters.contract import Exported, ExportSession
    from trace_store.exporters.source_files import SourceFile
    from trace_store.history.branches import DeletedRef
    from trace_store.history.repair import RepairReport
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
        project: bool = False,
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
            project: import this project's sessions, too, from where each agent program keeps its own.
            stdin: what "-" reads.
            secrets: "redact", "block", "warn" or "off"; "" is how the repository was opened.
            progress: told the path, how many bytes are done, and of how many.

        Raises:
            UnreadableInputError: the only file is not a transcript, or is damaged.
            InvalidInputError: there is no such format.
        """
        check_text(format=format, onto=onto, secrets=secrets)
        check_flag(source=source, project=project)
        handle, store = self._handle, self._handle.store
        environment = handle.environment
        guard = (
            secret_files.guard.Guard.of(store, environment, secrets) if secrets else handle.guard
        )
        discovered: Sequence[str] = ()
        if project:
            discovered = importers.discovery.project_histories(
                environment, os.path.dirname(store.layout.root)
            )
        report = importers.import_all.import_paths(
            store,
            [os.fspath(path) for path in paths],
            format=format or None,
            onto=onto or None,
            source=source,
            progress=progress,
            stdin=stdin,
            discovered=discovered,
            guard=guard,
        )
        self._handle.checkpoint_after_import(report)
        return report

    def list(self, *, progress: Callable[[int, int], None] | None = None) -> List[SessionInfo]:
        """Return all sessions, and branches that are no agent's, with sizes and times."""
        return sessions.listing.list_sessions(self._handle.store, progress=progress)

    def get(
        self, session: str, *, progress: Callable[[int, int], None] | None = None
    ) -> SessionInfo:
        """Return one session.

        Raises:
            RevisionNotFoundError, AmbiguousRevisionError: no session is called so, or several are.
        """
        check_text(session=session)
        return sessions.listing.session_named(self.list(progress=progress), session)

    def rename(
        self, session: str, title: str, *, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Give a session a title; "" removes it. Errors as in `get`.

        Raises:
            InvalidInputError: the title has several lines, or more than 500 characters.
        """
        check_text(title=title)
        store, info = self._handle.store, self.get(session, progress=progress)
        agent = info.agent or "branch"
        sessions.titles.rename_session(
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
        """Return a session as values: its messages with commits, times and usage.

        Args:
            session: the session, or any revision.
            at: an earlier time or revision.
            hidden: return hidden messages, too.

        Raises:
            RevisionNotFoundError, AmbiguousRevisionError: no session is called so, or several are.
        """
        store = self._handle.store
        name = sessions.listing.revision_of(store, name_of(session, "session"))
        return exporters.session.read_session(store, name, at=at, hidden=hidden)

    def find(self, message: str | Address, *, hidden: bool = False) -> ExportSession:
        """Return the session that holds a message: `turns[begin]` has it. HEAD's branch comes first.

        Raises:
            NotFoundError: no branch holds the message.
        """
        address = resolve_address(self._handle.store, name_of(message, "message"))
        return exporters.session.session_with(self._handle.store, address, hidden=hidden)

    def export(
        self,
        session: Revision = "HEAD",
        format: str = "markdown",
        *,
        at: str = "",
        hidden: bool = False,
        strict: bool = False,
        path: Path = "",
        overwrite: bool = False,
    ) -> Exported:
        """Return a session as a file of a format, with a list of what the format cannot hold.

        Args:
            session: the session, or any revision.
            format: such as "claude-code", "html" or "markdown".
            at: as in `read`.
            hidden: as in `read`.
            strict: raise RenderError if anything would be lost.
            path: a file to write to, too.
            overwrite: replace an existing file.

        Raises:
            InvalidInputError: there is no such format.
            RenderError: something would be lost, and `strict` is set.
            AlreadyExistsError: the file exists.
            As `read`.
        """
        check_text(format=format)
        exported = exporters.registry.writer_named(format).write(
            self.read(session, at=at, hidden=hidden)
        )
        if strict and exported.losses:
            raise RenderError(
                f"the session does not go into {format} without loss", losses=exported.losses
            )
        return self._saved(exported, path, overwrite)

    def files(self) -> List[SourceFile]:
        """Return the imported files whose records were kept, so that they can be exported byte for byte."""
        return exporters.source_files.source_files(self._handle.store)

    def export_original(
        self, session: str, *, file: str = "", path: Path = "", overwrite: bool = False
    ) -> Exported:
        """Return the file that a session was imported from, byte for byte, and checked by hash.

        Args:
            session: the session.
            file: the id of one of several files.
            path: a file to write to, too.
            overwrite: replace an existing file.

        Raises:
            RevisionNotFoundError: no file of the session was kept.
            AmbiguousRevisionError: several were.
            AlreadyExistsError: the file exists.
        """
        store = self._handle.store
        exported = exporters.source_files.restore_file(
            store, exporters.source_files.find_file(store, session, file=file)
        )
        return self._saved(exported, path, overwrite)

    def repair(
        self,
        session: Revision = "HEAD",
        *,
        providers: Sequence[str] = (),
        in_place: bool = False,
        dry_run: bool = False,
    ) -> RepairReport:
        """Make a valid branch `repaired/NAME` beside one that providers would refuse, and return its faults.

        Args:
            session: a branch, or any revision.
            providers: repair only what these would refuse.
            in_place: commit on the branch itself.
            dry_run: write nothing.

        Raises:
            RevisionNotFoundError: there is no such branch.
        """
        return history.repair.repair(
            self._handle.contexts,
            name_of(session, "session"),
            providers=providers,
            in_place=in_place,
            dry_run=dry_run,
        )

    def _saved(self, exported: Exported, path: Path, overwrite: bool) -> Exported:
        if path:
            exporters.files.save_file(Disk(), os.path.abspath(path), exported, overwrite=overwrite)
        return exported

"""`Repo`, an open repository.

It has the methods of `Line`, for HEAD's branch, and those of the whole repository.
"""

from __future__ import annotations

import os
from itertools import islice

import trace_store
from trace_store import errors, history
from trace_store.base import check
from trace_store.base.environment import Environment
from trace_store.base.frozen import replace
from trace_store.contracts.ref_names import full_name
from trace_store.disk.layout import is_stopped_file
from trace_store.repo.line import Line
from trace_store.repo.observers import observe
from trace_store.store.discovery import find
from trace_store.store.revision import name_of, resolve_commit
from trace_store.store.store import Store
from trace_store.writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self, TypeAlias

    from trace_store.agents.agents import Agents
    from trace_store.base.ident import Clock
    from trace_store.briefing.brief import Brief
    from trace_store.bundles.bundles import Bundles
    from trace_store.checkpoints.checkpoints import Checkpoints, Forks
    from trace_store.compression.budgets import Compression
    from trace_store.context.tokens.tokenizer import Tokenizer
    from trace_store.history.branches import Branches
    from trace_store.history.tags import Tags
    from trace_store.history.trash import Trash
    from trace_store.history.undo import LoggedOperation, UndoResult
    from trace_store.maintenance.maintenance import Maintenance
    from trace_store.maintenance.seal import SealReport
    from trace_store.merge.stopped import Stopped
    from trace_store.runs.runs import Runs
    from trace_store.search.query import Hit
    from trace_store.sessions.sessions import Sessions
    from trace_store.sessions.transcripts import Transcripts
    from trace_store.store.revision import Revision
    from trace_store.trajectories.trajectories import Trajectories

    Path: TypeAlias = str | os.PathLike[str]


_READ_ONLY = "the repository is open for reading only"


class Repo(Line):
    """An open repository.

    Methods inherited from `Line` work on HEAD's branch; `line(name)` returns another branch with the same methods.

    Properties with more methods: `branches`, `tags`, `forks`, `checkpoints`, `compression`, `trajectories`, `runs`,
    `trash`, `sessions`, `transcripts`, `bundles` and `maintenance`.

    Attributes:
        store: the store on disk or in memory, for functions that take one.
        contexts: the compiler, which keeps indexes open between calls.
    """

    def __init__(
        self,
        store: Store,
        *,
        author: str | None = "unknown",
        tokenizer: Tokenizer | Callable[[str], int] | None = None,
        environment: Environment | None = None,
        secrets: str = "",
    ) -> None:
        writer = Writer(
            store, author=author, tokenizer=tokenizer, environment=environment, secrets=secrets
        )
        observe(writer)
        super().__init__(writer)
        self._closed = False

    @classmethod
    def init(
        cls,
        path: Path = ".",
        *,
        author: str = "",
        directory: Path | None = None,
        environment: Environment | None = None,
        clock: Clock | None = None,
        durability: str = "durable",
        tokenizer: Tokenizer | Callable[[str], int] | None = None,
        secrets: str = "",
    ) -> Repo:
        """Create `.trace/` in a folder, or another directory, and open it; arguments as in `open`.

        Raises:
            AlreadyExistsError: the folder already has a repository.
            StorageError: the disk failed.
        """
        check.path(path=path, directory="" if directory is None else directory)
        check.text(author=author, durability=durability, secrets=secrets)
        environment = Environment.read() if environment is None else environment
        check.instance(Environment, environment=environment)
        named = None if directory is None else os.fspath(directory)
        store = Store.init(os.fspath(path), directory=named, clock=clock, durability=durability)
        return cls._opened(store, environment, author, tokenizer, secrets)

    @classmethod
    def open(
        cls,
        path: Path = ".",
        *,
        author: str = "",
        directory: Path | None = None,
        create: bool = False,
        durability: str = "durable",
        environment: Environment | None = None,
        clock: Clock | None = None,
        tokenizer: Tokenizer | Callable[[str], int] | None = None,
        secrets: str = "",
        damaged: bool = False,
        read_only: bool = False,
    ) -> Repo:
        """Open the repository in a folder or the nearest folder above it.

        Args:
            path: the folder.
            author: the author of new commits; "" is TRACE_AUTHOR, else the user's setting `user.name`, else git's
                `user.name`, else the account.
            directory: the `.trace` directory; overrides the variable TRACE_DIR, which overrides the search from `path`.
            create: create a repository in `path` if the search finds none; without effect if `directory` or TRACE_DIR
                names one.
            durability: "durable" (survives power loss), "batch" (one sync for many commits) or "fast" (survives a
                killed process only).
            environment: what to use instead of the environment of the process.
            clock: tells the time.
            tokenizer: counts tokens instead of the configured encoding: a `Tokenizer`, or a function from text to a
                number.
            secrets: how to handle secrets in stored content: "redact", "block", "warn" or "off"; "" is the user's
                setting, or "redact".
            damaged: open it even if its configuration is corrupt or missing, for `repo.maintenance.repair`.
            read_only: write no file, not even a cache; what would write raises StorageError.

        Raises:
            RepositoryNotFoundError: none is found and `create` is False, or the named directory is not a repository.
            UntrustedRepositoryError: another user owns it, or it lies above the home folder, and it is not trusted.
            NotFoundError: there is no such folder.
            FormatError: its configuration is corrupt or missing, and `damaged` is False.
            UnsupportedFormatError: a newer version wrote it.
            InvalidInputError: `read_only` is given with `create` or `damaged`.
        """
        check.path(path=path, directory="" if directory is None else directory)
        check.text(author=author, durability=durability, secrets=secrets)
        check.flag(create=create, damaged=damaged, read_only=read_only)
        if read_only and (create or damaged):
            raise errors.InvalidInputError(
                "read_only: nothing can be created or repaired", argument="read_only"
            )
        environment = Environment.read() if environment is None else environment
        check.instance(Environment, environment=environment)
        named = None if directory is None else os.fspath(directory)
        try:
            found = find(os.fspath(path), environment, explicit=named, damaged=damaged)
        except errors.RepositoryNotFoundError:
            if not create or named is not None or environment.trace_dir is not None:
                raise
            store = Store.init(os.fspath(path), clock=clock, durability=durability)
        else:
            opens: Callable[..., Store] = Store.open
            options: dict[str, Any] = {"durability": durability, "clock": clock}
            if damaged:
                opens = trace_store.maintenance.repair_files.open_damaged
            elif read_only:
                options["disk"] = trace_store.disk.read_only.ReadOnlyDisk(_READ_ONLY)
            store = opens(found, **options)
            store.folder = os.path.abspath(path)
            if not read_only and store.lacks_files():
                trace_store.maintenance.second_copies.restore_missing(store)
        return cls._opened(store, environment, author, tokenizer, secrets)

    @classmethod
    def open_or_init(cls, path: Path = ".", **options: Any) -> Repo:
        """Open the repository of a folder or of one above it, or create one there; options and errors as in `open`."""
        return cls.open(path, **{"create": True, **options})

    @classmethod
    def _opened(
        cls,
        store: Store,
        environment: Environment,
        author: str,
        tokenizer: Tokenizer | Callable[[str], int] | None,
        secrets: str,
    ) -> Repo:
        """Return a repository that logs when it waits for another process."""
        try:
            store.journal.lock_waiter = trace_store.maintenance.lock_wait.LoggingLockWaiter()
            store.objects.last_resort = lambda: trace_store.maintenance.came_back(store)
            return cls(
                store,
                author=author or None,
                tokenizer=tokenizer,
                environment=environment,
                secrets=secrets,
            )
        except BaseException:
            store.close()
            raise

    @classmethod
    def memory(cls, *, author: str = "unknown", clock: Clock | None = None) -> Repo:
        """Return a repository that lives in memory only."""
        check.text(author=author)
        return cls(Store.memory(clock=clock), author=author)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def seal(self) -> SealReport:
        """Write the journal into a pack, so that git sees all commits."""
        for tell in self.writer.observers.sealing:
            tell(self.writer)
        return trace_store.maintenance.seal.seal(self.store)

    def close(self) -> None:
        """Make all commits durable, seal them, and close; closing again does nothing.

        If sealing fails, for example because the disk is full or another process packs for over a minute, this only
        logs a warning to `trace_store`. The next seal retries.

        Raises:
            StorageError: the final sync failed, so commits written with `batch` or `fast` may not be durable.
            CorruptJournalError: an object in the journal is damaged, with no other copy.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self.store.local and self.store.disk.can_write:
                trace_store.maintenance.seal.seal_or_sync(self.store)
        finally:
            self.store.close()

    def line(self, name: str, *, expect: Revision | None = "") -> Line:
        """Return a branch, which need not be checked out or exist yet, or a record by its full name.

        Args:
            name: the branch, such as `main`, or the record, such as `refs/records/example/thread-1/main`.
            expect: the commit that the branch is at, None if it has none yet: compare and swap. Once another process
                has moved the branch, every write through the returned line raises RefChangedError, and nothing is
                written. "" accepts any commit.

        Raises:
            InvalidRefNameError: the name is not valid.
            RevisionNotFoundError: there is no such commit.
        """
        if expect == "":
            return Line(self.writer.on(full_name(name)))
        tip = None if expect is None else resolve_commit(self.store, name_of(expect, "expect"))
        return Line(self.writer.on(full_name(name), tip))

    @property
    def branches(self) -> Branches:
        """The branches, and switching between them."""
        return history.branches.Branches(self.writer)

    @property
    def tags(self) -> Tags:
        """The tags: list, create, delete."""
        return history.tags.Tags(self.writer)

    @property
    def sessions(self) -> Sessions:
        """The sessions of agents: list, read, rename, export, repair, delete."""
        return trace_store.sessions.sessions.Sessions(self.writer)

    @property
    def agents(self) -> Agents:
        """Agents: sessions that another one sent out; spawn, collapse, expand, list."""
        return trace_store.agents.agents.Agents(self.writer)

    @property
    def transcripts(self) -> Transcripts:
        """The transcripts of agent programs: import them, and export the files that were imported."""
        return trace_store.sessions.transcripts.Transcripts(self.writer)

    @property
    def bundles(self) -> Bundles:
        """Branches, tags and sessions as one file."""
        return trace_store.bundles.bundles.Bundles(self.writer)

    @property
    def checkpoints(self) -> Checkpoints:
        """Checkpoints: save, list, show, diff, restore, delete, inject."""
        return trace_store.checkpoints.checkpoints.Checkpoints(self.writer)

    @property
    def forks(self) -> Forks:
        """Forks: branches with a recorded fork point; create, compare, merge."""
        return trace_store.checkpoints.checkpoints.Forks(self.writer)

    @property
    def trajectories(self) -> Trajectories:
        """Trajectories: what agents did and decided during a task."""
        return trace_store.trajectories.trajectories.Trajectories(self.writer)

    def brief(
        self,
        *,
        task: str = "",
        files: Sequence[str] = (),
        budget: int = 1_500,
        folder: Path = ".",
        for_agent: bool = False,
    ) -> Brief:
        """Return what an agent should know at the start: decisions in force, failed approaches, the last session.

        Args:
            task: the id of a task or trajectory, or words; "" is the current trajectory, and what is recent.
            files: paths, relative to `folder`, whose decisions are wanted; those after the 50th are only returned as
                `skipped`.
            budget: the maximum number of tokens, in the repository's encoding.
            folder: a folder in the git repository of the code.
            for_agent: refuse unless the user allowed it, for callers that hand the brief to an agent by themselves.

        Raises:
            StateError: `for_agent` is given, and the repository is not allowed to brief agents.
            InvalidInputError: the budget is too small.
            NotFoundError: the task has the form of an id, and no task, trajectory or session has it.
        """
        check.text(task=task)
        check.texts(files=files)
        check.integer(1, 2**31, budget=budget)
        check.path(folder=folder)
        check.flag(for_agent=for_agent)
        where = os.fspath(folder)
        given = (task, files, budget, where)
        return trace_store.briefing.briefs.brief(self.writer, *given, for_agent=for_agent)

    @property
    def runs(self) -> Runs:
        """Live runs: what agents do, step by step, while they do it."""
        return trace_store.runs.runs.Runs(self.writer)

    @property
    def compression(self) -> Compression:
        """Fitting a budget: trim, suggestions, expand."""
        return trace_store.compression.budgets.Compression(self.writer)

    @property
    def trash(self) -> Trash:
        """Removed messages and deleted refs: list, restore, empty."""
        return history.trash.Trash(self.writer)

    @property
    def maintenance(self) -> Maintenance:
        """Seal, pack, collect garbage, check, repair and purge."""
        return trace_store.maintenance.maintenance.Maintenance(self.writer)

    @property
    def in_progress(self) -> Stopped | None:
        """The merge, pick, revert or rebase that stopped at conflicts; None if there is none.

        If several branches have one, it is that of HEAD's branch, or else of the first by name.
        """
        self.store.check_open()
        if not any(map(is_stopped_file, self.store.disk.names(self.store.layout.local_dir))):
            return None  # without loading the package
        return next(iter(trace_store.merge.stopped.all_in_progress(self.writer)), None)

    def stopped(self, kind: str = "") -> Stopped:
        """Return the merge, pick, revert or rebase in progress, as `in_progress`, or raise if there is none.

        Args:
            kind: "merge", "cherry-pick", "revert" or "rebase"; "" is any of them.

        Raises:
            StateError: none is in progress, or only others of another kind.
        """
        check.text(kind=kind)
        self.store.check_open()
        return trace_store.merge.stopped.required(self.writer, kind)

    def configure(self, key: str, value: object) -> bool:
        """Change a setting of the repository; None removes it. Return False if it has that value already.

        Raises:
            InvalidInputError: the key is unknown or fixed, or the value is not valid.
        """
        check.text(key=key)
        changed = self.store.config.set(key, value)
        if changed:
            said = f"{key} removed" if value is None else f"{key} = {self.store.config.get(key)}"
            trace_store.store.reflogs.log_command(self.store, f"config: {said}", self.writer.author)
        return changed

    def operations(
        self, limit: int | None = None, *, everyone: bool = False
    ) -> list[LoggedOperation]:
        """Return the last operations of this working copy, newest first; those that `undo` can take back have a number.

        Args:
            limit: at most this many.
            everyone: number operations of others, too: of other authors, and what other processes wrote while this
                repository was open.
        """
        check.count(limit=limit)
        check.flag(everyone=everyone)
        return [*islice(history.undo.operations(self.writer, everyone=everyone), limit)]

    def undo(self, *, ref: str = "", everyone: bool = False, dry_run: bool = False) -> UndoResult:
        """Undo the last command that moved a ref or HEAD in this working copy; call again for the one before.

        Args:
            ref: a branch or record: undo the last command that moved it, whatever others did since.
            everyone: also undo operations of others, as in `operations`.
            dry_run: change nothing.

        Raises:
            StateError: there is nothing to undo; the last command cannot be undone (a purge, a prune or a change of
                settings); a ref has moved since; or a merge, pick, revert or rebase is in progress on one of the
                branches.
        """
        check.flag(everyone=everyone)
        full = history.branches.find_line(self.store, ref) if ref else ""
        return history.undo.undo(self.writer, ref=full, everyone=everyone, dry_run=dry_run)

    def undo_to(
        self, number: int, *, everyone: bool = False, dry_run: bool = False
    ) -> list[UndoResult]:
        """Undo the operations 1 to `number` of `operations`; if one of them cannot be undone, none is.

        Raises:
            InvalidInputError: there is no such operation.
            StateError: as `undo`, except that commands which cannot be undone are passed over.
        """
        check.integer(1, 2**31, number=number)
        check.flag(everyone=everyone)
        return history.undo.undo_to(self.writer, number, everyone=everyone, dry_run=dry_run)

    def redo(self, *, everyone: bool = False, dry_run: bool = False) -> UndoResult:
        """Redo what was undone last, unless another command has moved a ref since; arguments and errors as `undo`."""
        check.flag(everyone=everyone)
        return history.undo.redo(self.writer, everyone=everyone, dry_run=dry_run)

    def search(
        self,
        query: str,
        *,
        limit: int = 20,
        regex: bool = False,
        ranked: bool = False,
        phrases: Sequence[str] = (),
        hidden: bool = True,
        echoes: bool = True,
        progress: Callable[[int, int], None] | None = None,
        unmatched: Callable[[str, str, list[str]], object] | None = None,
        **filters: Any,
    ) -> list[Hit]:
        """Return messages of all branches, and hidden values of records, that match a query, newest first.

        Args:
            query: words, all of which must match; `docs/searching.md` describes the query language.
            limit: at most this many.
            regex: whether the query is an RE2 pattern, matched against every message.
            ranked: whether to sort the newest hits by relevance instead of time.
            phrases: hits that have these word for word come first.
            hidden: whether hidden values match, which no model is sent.
            echoes: whether calls of Trace's own tools match, and what these returned.
            progress: called with the number of commits indexed so far, and of all to index.
            unmatched: called if nothing matches, as in `log`.
            filters: as in `SearchFilter`: session, agent, role, kind, tool, path, label, since, until.

        Raises:
            InvalidInputError: the query or a filter is not valid.
        """
        check.text(query=query)
        check.texts(phrases=phrases)
        check.integer(0, 2**31, limit=limit)
        check.flag(regex=regex, ranked=ranked, hidden=hidden, echoes=echoes)
        check.function(progress=progress, unmatched=unmatched)
        times = {each: filters[each] for each in ("since", "until") if each in filters}
        check.count(**times)
        check.text(**{name: given for name, given in filters.items() if name not in times})
        wanted = trace_store.search.query.SearchFilter(**filters)
        given: dict[str, Any] = {
            "limit": limit,
            "regex": regex,
            "ranked": ranked,
            "phrases": phrases,
            "hidden": hidden,
            "echoes": echoes,
            "progress": progress,
            "unmatched": unmatched,
        }
        find = trace_store.search.query.search
        try:
            return find(self.store, query, wanted, **given)
        except errors.InvalidInputError as error:
            if error.code != errors.ErrorCode.SESSION_NOT_FOUND:
                raise
            try:
                ref = self.sessions.get(wanted.session).ref  # a title, such as the id of a thread
            except errors.TraceError:
                raise error from None
        return find(self.store, query, replace(wanted, session=ref), **given)

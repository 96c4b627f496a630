"""`Repo`, an open repository.

It has the methods of `Line`, for HEAD's branch, and those of the whole repository.
"""

from __future__ import annotations

import os

import trace_store
from trace_store import check, errors, history, repo
from trace_store.environment import Environment
from trace_store.ref_names import full_name
from trace_store.repo.handle import Handle
from trace_store.repo.line import Line
from trace_store.store.discovery import find
from trace_store.store.handle import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self, TypeAlias

    from trace_store.checkpoints.handle import Checkpoints
    from trace_store.context.tokens.tokenizer import Tokenizer
    from trace_store.history.undo import UndoResult
    from trace_store.ident import Clock
    from trace_store.maintenance.seal import SealReport
    from trace_store.repo.in_progress import Stopped
    from trace_store.search.query import Hit
    from trace_store.trajectories.handle import Trajectories

    Path: TypeAlias = str | os.PathLike[str]


class Repo(Line):
    """An open repository.

    Methods inherited from `Line` work on HEAD's branch; `line(name)` returns another branch with the same methods.

    Properties with more methods: `branches`, `tags`, `checkpoints`, `compression`, `trajectories`, `trash`,
    `transcripts`, `bundles` and `maintenance`.

    Attributes:
        store: the store on disk or in memory, for functions that take one.
        contexts: the compiler, which keeps indexes open between calls.
    """

    def __init__(
        self,
        store: Store,
        *,
        author: str = "unknown",
        tokenizer: Tokenizer | Callable[[str], int] | None = None,
        environment: Environment | None = None,
        secrets: str = "",
    ) -> None:
        super().__init__(Handle(store, author, tokenizer, environment, secrets))
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
    ) -> Repo:
        """Open the repository in a folder or the nearest folder above it.

        Args:
            path: the folder.
            author: the author of new commits; "" takes it from the environment.
            directory: the `.trace` directory; overrides the variable TRACE_DIR, which overrides the search from `path`.
            create: create a repository in `path` if none is found.
            durability: "durable" (survives power loss), "batch" (one sync for many commits) or "fast" (survives a
                killed process only).
            environment: what to use instead of the environment of the process.
            clock: tells the time.
            tokenizer: counts tokens instead of the configured encoding: a `Tokenizer`, or a function from text to a
                number.
            secrets: how to handle secrets in stored content: "redact", "block", "warn" or "off"; "" is the user's
                setting, or "redact".
            damaged: open it even if its configuration is corrupt or missing, for `repo.maintenance.repair`.

        Raises:
            RepositoryNotFoundError: none is found and `create` is False, or the named directory is none.
            FormatError: its configuration is corrupt or missing, and `damaged` is False.
            UnsupportedFormatError: a newer version wrote it.
        """
        check.path(path=path, directory="" if directory is None else directory)
        check.text(author=author, durability=durability, secrets=secrets)
        check.flag(create=create, damaged=damaged)
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
            opens = trace_store.maintenance.repair_files.open_damaged if damaged else Store.open
            store = opens(found, durability=durability, clock=clock)
            if store.lacks_files():
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
            author = author or environment.author
            return cls(
                store, author=author, tokenizer=tokenizer, environment=environment, secrets=secrets
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
            if self.store.local:
                trace_store.maintenance.seal.seal_or_sync(self.store)
        finally:
            self.store.close()

    def line(self, name: str) -> Line:
        """Return a branch, which need not be checked out or exist yet.

        Raises:
            InvalidRefNameError: the name is not valid.
        """
        return Line(self._handle, full_name(name))

    @property
    def branches(self) -> repo.branches.Branches:
        """The branches, and switching between them."""
        return repo.branches.Branches(self._handle)

    @property
    def tags(self) -> repo.tags.Tags:
        """The tags."""
        return repo.tags.Tags(self._handle)

    @property
    def transcripts(self) -> repo.transcripts.Transcripts:
        """The sessions of agents: import, list, export, repair."""
        return repo.transcripts.Transcripts(self._handle)

    @property
    def bundles(self) -> repo.bundles.Bundles:
        """Branches, tags and sessions as one file."""
        return repo.bundles.Bundles(self._handle)

    @property
    def checkpoints(self) -> Checkpoints:
        """Checkpoints: save, list, show, diff, restore, delete, inject."""
        handle = self._handle
        subject = trace_store.checkpoints.handle.Checkpoints
        return subject(handle.contexts, author=handle.author, guard=handle.guard)

    @property
    def trajectories(self) -> Trajectories:
        """Trajectories: what agents did and decided during a task."""
        return self._handle.trajectories

    @property
    def compression(self) -> repo.compression.Compression:
        """Fitting a budget: trim, suggestions, expand."""
        return repo.compression.Compression(self._handle)

    @property
    def trash(self) -> repo.trash.Trash:
        """Removed messages and deleted refs: list, restore, empty."""
        return repo.trash.Trash(self._handle)

    @property
    def maintenance(self) -> repo.maintenance.Maintenance:
        """Seal, pack, collect garbage, check, repair and purge."""
        return repo.maintenance.Maintenance(self._handle)

    @property
    def in_progress(self) -> Stopped | None:
        """The merge, pick, revert or rebase that stopped at conflicts on any branch; None if there is none."""
        self.store.check_open()
        return repo.in_progress.in_progress(self._handle) if self._handle.is_stopped else None

    def undo(self, *, dry_run: bool = False) -> UndoResult:
        """Undo the last command that moved a ref or HEAD in this working copy; call again for the one before.

        A purge, a prune or a change of settings moves no ref and cannot be undone. With `dry_run` nothing changes.

        Raises:
            StateError: there is nothing to undo, a ref has moved since, or a merge, pick, revert or rebase is in
                progress.
        """
        if not dry_run:
            self._handle.check_not_stopped()
        return history.undo.undo(self.store, author=self._handle.author, dry_run=dry_run)

    def redo(self, *, dry_run: bool = False) -> UndoResult:
        """Redo what was undone last, unless another command has moved a ref since; raises as `undo`."""
        if not dry_run:
            self._handle.check_not_stopped()
        return history.undo.redo(self.store, author=self._handle.author, dry_run=dry_run)

    def search(
        self,
        query: str,
        *,
        limit: int = 20,
        regex: bool = False,
        ranked: bool = False,
        progress: Callable[[int, int], None] | None = None,
        **filters: Any,
    ) -> list[Hit]:
        """Return messages of all branches that match a query, newest first.

        Args:
            query: words, all of which must match; `docs/searching.md` describes the query language.
            limit: at most this many.
            regex: whether the query is an RE2 pattern, matched against every message.
            ranked: whether to sort the newest hits by relevance instead of time.
            progress: called with the number of commits indexed so far, and of all to index.
            filters: as in `SearchFilter`: session, agent, role, kind, tool, path, label, since, until.

        Raises:
            InvalidInputError: the query or a filter is not valid.
        """
        check.text(query=query)
        check.integer(0, 2**31, limit=limit)
        check.flag(regex=regex, ranked=ranked)
        check.function(progress=progress)
        times = {each: filters[each] for each in ("since", "until") if each in filters}
        check.count(**times)
        check.text(**{name: given for name, given in filters.items() if name not in times})
        wanted = trace_store.search.query.SearchFilter(**filters)
        return trace_store.search.query.search(
            self.store,
            query,
            wanted,
            limit=limit,
            regex=regex,
            ranked=ranked,
            progress=progress,
        )

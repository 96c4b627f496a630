"""`Repo`: an open repository. It is the line of HEAD, and has the verbs and subjects of the whole repository."""

from __future__ import annotations

import os

from trace_store import checkpoints, compression, errors, history, repo, search
from trace_store import revision as revisions
from trace_store.environment import Environment
from trace_store.errors import RepositoryNotFoundError
from trace_store.maintenance.log import LoggedPatience
from trace_store.maintenance.seal import SealReport, seal, seal_or_sync
from trace_store.maintenance.second_copies import restore_missing
from trace_store.objects.codec import COMMIT, kind_of
from trace_store.oid import ObjectId
from trace_store.refs.names import full_name
from trace_store.repo import stopped
from trace_store.repo.handle import Handle, check_callable, check_flag, check_text, name_of
from trace_store.repo.line import Line
from trace_store.store.discovery import find
from trace_store.store.handle import Store, lacks_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any, Self, TypeAlias

    from trace_store.checkpoints.handle import Checkpoints, Forks
    from trace_store.compression.compress import Compression
    from trace_store.compression.expand import Expansion
    from trace_store.compression.suggest import Suggestion, Suggestions
    from trace_store.compression.trim import TrimResult
    from trace_store.context.compiled import CompiledContext
    from trace_store.context.tokens.tokenizer import Tokenizer
    from trace_store.history.draft import CommitResult
    from trace_store.history.undo import UndoResult
    from trace_store.history.whohas import VersionHolders
    from trace_store.ident import Clock
    from trace_store.llm.contract import Model
    from trace_store.objects.address import Address
    from trace_store.repo.handle import Revision
    from trace_store.repo.stopped import Stopped
    from trace_store.search.query import Hit

    Path: TypeAlias = str | os.PathLike[str]


class Repo(Line):
    """An open repository. The verbs of `Line` work on HEAD's branch, those of `line(name)` on any other.

    Subjects: `branches`, `tags`, `transcripts`, `bundles` and `maintenance`.

    Attributes:
        store: the stores below.
        contexts: compiles, and keeps indexes open between compiles.
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
        if store.local and store.journal.patience is None:
            store.journal.patience = LoggedPatience()
        self._closed = False

    @property
    def checkpoints(self) -> Checkpoints:
        """Checkpoints of this repository: save, list, show, diff, restore, delete, inject."""
        return checkpoints.handle.Checkpoints(
            self.contexts, author=self._handle.author, guard=self._handle.guard
        )

    @property
    def fork(self) -> Forks:
        """Forks of this repository: `repo.fork("idea")` creates one, and it compares and merges them."""
        return checkpoints.handle.Forks(
            self.contexts, author=self._handle.author, guard=self._handle.guard
        )

    @classmethod
    def init(
        cls,
        path: Path = ".",
        *,
        author: str = "",
        environment: Environment | None = None,
        clock: Clock | None = None,
        durability: str = "durable",
        tokenizer: Tokenizer | Callable[[str], int] | None = None,
        secrets: str = "",
    ) -> Repo:
        """Create `.trace/` in a folder and open it; arguments as in `open`.

        Raises:
            AlreadyExistsError: the folder has one.
            StorageError: the disk failed.
        """
        _check_opening(path=path, author=author, durability=durability, secrets=secrets)
        environment = environment or Environment.read()
        store = Store.init(os.fspath(path), clock=clock, durability=durability)
        return cls(
            store,
            author=author or environment.author,
            tokenizer=tokenizer,
            environment=environment,
            secrets=secrets,
        )

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
    ) -> Repo:
        """Open the repository of a folder, or of one above it.

        Args:
            path: the folder.
            author: who the commits are by; "" is the author that the environment names.
            directory: a `.trace` directory; it beats the variable TRACE_DIR, which beats looking around.
            create: create a repository in `path` if none is found.
            durability: "durable" (survives power loss), "batch" (one sync for many commits) or "fast" (survives a
                killed process only).
            environment: what to use instead of the environment of the process.
            clock: tells the time.
            tokenizer: counts tokens instead of the configured encoding: a `Tokenizer`, or a function from text to a
                number.
            secrets: what happens to secrets in what is stored: "redact", "block", "warn" or "off"; "" is the user's
                setting, or "redact".

        Raises:
            RepositoryNotFoundError: none is found and `create` is False, or the named directory is none.
            UnsupportedFormatError: a newer version wrote it.
        """
        _check_opening(path=path, author=author, durability=durability, secrets=secrets)
        check_flag(create=create)
        environment = environment or Environment.read()
        named = None if directory is None else os.fspath(directory)
        try:
            found = find(os.fspath(path), environment, explicit=named)
        except RepositoryNotFoundError:
            if not create or named is not None or environment.trace_dir is not None:
                raise
            return cls.init(
                path,
                author=author,
                environment=environment,
                clock=clock,
                durability=durability,
                tokenizer=tokenizer,
                secrets=secrets,
            )
        store = Store.open(found, durability=durability, clock=clock)
        if lacks_files(store):
            restore_missing(store)
        return cls(
            store,
            author=author or environment.author,
            tokenizer=tokenizer,
            environment=environment,
            secrets=secrets,
        )

    @classmethod
    def open_or_init(cls, path: Path = ".", **options: Any) -> Repo:
        """Open the repository of a folder or of one above it, or create one there; options and errors as in `open`."""
        return cls.open(path, **{"create": True, **options})

    @classmethod
    def memory(cls, *, author: str = "unknown", clock: Clock | None = None) -> Repo:
        """Return a repository that lives in memory only."""
        return cls(Store.memory(clock=clock), author=author)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def seal(self) -> SealReport:
        """Write the journal into a pack, so that git sees all commits."""
        return seal(self.store)

    def close(self) -> None:
        """Make all commits durable, seal them, and close; closing again does nothing.

        If sealing fails, since another process has been packing for a minute or the disk is full, the logger
        `trace_store` gets a warning, and the next seal does it.

        Raises:
            StorageError: the disk failed to make durable what `batch` and `fast` have only written so far.
            CorruptJournalError: an object in the journal is damaged, with no other copy.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self.store.local:
                seal_or_sync(self.store)
        finally:
            self.store.close()

    def line(self, name: str) -> Line:
        """Return one branch, with the verbs of every day; it need not be checked out, nor exist yet.

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
    def maintenance(self) -> repo.maintenance.Maintenance:
        """Seal, pack, collect garbage, check, repair and purge."""
        return repo.maintenance.Maintenance(self._handle)

    @property
    def in_progress(self) -> Stopped | None:
        """The merge, pick, revert or rebase that stopped at conflicts on any branch; None if there is none."""
        return stopped.in_progress(self._handle)

    def undo(self, *, dry_run: bool = False) -> UndoResult:
        """Undo the last command that moved a ref or HEAD in this working copy; call again for the one before.

        A purge, a prune or a change of settings moves no ref and cannot be undone. With `dry_run` nothing changes.

        Raises:
            StateError: there is none, a ref has moved since, or a merge, pick, revert or rebase is in progress.
        """
        if not dry_run:
            self._handle.check_not_stopped()
        return history.undo.undo(self.store, author=self.author, dry_run=dry_run)

    def redo(self, *, dry_run: bool = False) -> UndoResult:
        """Redo what was undone last, unless another command has moved a ref since; raises as `undo`."""
        if not dry_run:
            self._handle.check_not_stopped()
        return history.undo.redo(self.store, author=self.author, dry_run=dry_run)

    def trim(
        self,
        to: int | None,
        range: str = "",
        *,
        keep_last: int | None = None,
        partial: bool = False,
        dry_run: bool = False,
        ref: str = "",
    ) -> TrimResult:
        """Make the context fit a number of tokens, without a model; as `compression.trim.trim`, with its errors.

        Args:
            to: the most tokens that the context should have; None leaves out what stands elsewhere in the context.
            range: the messages that may change, such as `A..B`; "" is all.
            keep_last: so many of the last turns of the user stay whole.
            partial: where the target cannot be met, trim as far as possible.
            dry_run: write nothing.
            ref: the branch; "" is HEAD's.
        """
        self._handle.check_not_stopped()
        trim = compression.trim
        return trim.trim(
            self._on(ref).store,
            range,
            to=to,
            author=self.author,
            keep_last=keep_last,
            steps=trim.DEDUPLICATION if to is None else trim.STEPS,
            partial=partial,
            dry_run=dry_run,
        )

    def suggest(self, *, ref: str = "") -> Suggestions:
        """Return what could be shortened, replaced by a note or pinned, and the heat of each message."""
        store = self._on(ref).store
        return compression.suggest.suggest(store, root=os.path.dirname(store.layout.root))

    def apply(self, suggestions: Sequence[Suggestion], *, ref: str = "") -> CommitResult:
        """Carry out suggestions in one commit; raises as `compression.suggest.apply`."""
        self._handle.check_not_stopped()
        return compression.suggest.apply(self._on(ref).store, suggestions, author=self.author)

    def compress(
        self,
        to: int | None = None,
        range: str = "",
        *,
        model: Model | None = None,
        text: str = "",
        force: bool = False,
        ref: str = "",
    ) -> Compression:
        """Replace messages by summaries; as `compression.compress.compress`, with its errors.

        Args:
            to: the most tokens that the context should have; None is 60 % of the repository's budget.
            model: writes the summaries: a model, or a function from a request to a text. None takes the sentences that
                matter most.
            range: the messages to replace, such as `A..B`; "" is all but the newest.
            text: a summary that somebody wrote.
            force: compress even if the branch has hardly grown since the last time.
            ref: the branch; "" is HEAD's.
        """
        self._handle.check_not_stopped()
        store = self._on(ref).store
        self._handle.checkpoint_before(store, "compress")
        return compression.compress.compress(
            *(store, range),
            to=to,
            author=self.author,
            model=model,
            text=text,
            force=force,
            guard=self.guard,
        )

    def expand(self, target: str | Address, *, ref: str = "") -> Expansion:
        """Show a compressed, removed or edited message in full again; as `compression.expand.expand`."""
        self._handle.check_not_stopped()
        return compression.expand.expand(self._on(ref).store, str(target), author=self.author)

    def search(
        self,
        query: str,
        *,
        limit: int = 20,
        regex: bool = False,
        ranked: bool = False,
        **filters: Any,
    ) -> list[Hit]:
        """Return messages of all branches that match a query, newest first.

        Args:
            query: words, which are ANDed; `docs/searching.md` has the rest.
            limit: at most this many.
            regex: whether the query is an RE2 pattern, matched against every message.
            ranked: whether the best of the newest hits come first.
            filters: as in `SearchFilter`: session, agent, role, kind, tool, path, label, since, until.

        Raises:
            InvalidInputError: the query or a filter is not valid.
        """
        check_text(query=query)
        wanted = search.query.SearchFilter(**filters)
        return search.query.search(
            self.store, query, wanted, limit=limit, regex=regex, ranked=ranked
        )

    def whohas(self, what: str | Address | ObjectId) -> list[VersionHolders]:
        """Return the versions of messages that have a text, an address or a blob, with the refs that have them.

        For an address, what a rebase of HEAD's branch made of the message comes first.

        Args:
            what: the address of a message, or its text; another text, in any case; or the id of a blob.

        Raises:
            InvalidInputError: it is none of these, or an empty text; `branches.containing` takes a commit.
        """
        found: object = what
        if isinstance(what, str):
            try:
                found = revisions.resolve_address(self.store, what)
            except (errors.NotFoundError, errors.InvalidInputError):
                return history.whohas.whohas_text(self.contexts, what)
        if isinstance(found, tuple):
            return history.whohas.whohas_message(self.contexts, revisions.as_address(found))
        if not isinstance(found, bytes):
            raise errors.InvalidInputError(
                f"what is text, an address or an id, not {type(what).__name__}", argument="what"
            )
        objects = self.store.objects
        if objects.contains(found) and kind_of(objects.read(found)) == COMMIT:
            raise errors.InvalidInputError(
                "what is a commit: `branches.containing` names the refs that have it",
                argument="what",
            )
        return history.whohas.whohas_content(self.contexts, found)

    def bisect(
        self,
        test: Callable[[CompiledContext], bool | None],
        bad: Revision = "HEAD",
        good: Revision | Sequence[Revision] = (),
    ) -> tuple[ObjectId, ...]:
        """Return the first commit for which a test fails; several if the test cannot tell for some.

        Args:
            test: returns whether a context is good: True, False, or None if it cannot tell.
            bad: a commit for which the test fails.
            good: one or several earlier commits for which it succeeds; without one the search starts at the first.

        Raises:
            StateError: the test finds the bad commit good, or a good one bad.
            RevisionNotFoundError: there is no such commit.
        """
        check_callable(test=test)
        several: Sequence[Any] = good if isinstance(good, list | tuple) else [good]
        return history.bisect.find_first_bad(
            self.contexts, test, name_of(bad, "bad"), [name_of(each, "good") for each in several]
        )


def _check_opening(*, path: object, **words: object) -> None:
    """Raise InvalidInputError if the path is not a path, or an argument that is text is not."""
    if not isinstance(path, str | os.PathLike):
        raise errors.InvalidInputError(
            f"path is a path, not {type(path).__name__}", argument="path"
        )
    check_text(**words)

"""The writer of a branch: the state that all verbs of an open repository share, and the one way to write.

A verb begins a change, puts its content and commits into it, and writes it:

    change = writer.begin("trim")            # refused while a merge is stopped; automatic checkpoints
    change.put(content)                      # secrets are redacted
    change.write(edits, "trim")              # one transaction; then sealing, capture, ...

Rule: what a verb stores goes through its change, so that no text misses the check for secrets. Upper floors register
observers for what they do before and after a change; nothing here calls them by name.
"""

from __future__ import annotations

from trace_store import context, errors, objects
from trace_store import secrets as secret_store
from trace_store import store as stores
from trace_store.base.environment import Environment
from trace_store.base.ident import Randomness
from trace_store.contracts import ANY, Transaction
from trace_store.objects.commit import Commit, Tag
from trace_store.objects.content import ObjectCollector
from trace_store.refs.head import NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, TypeAlias

    from trace_store.base.oid import ObjectId
    from trace_store.context.compiler import ContextCompiler
    from trace_store.context.tokens.tokenizer import Tokenizer
    from trace_store.contracts import AnyValue, RefEdit
    from trace_store.contracts.protocols import RefReader
    from trace_store.objects.content import Put, Salt
    from trace_store.objects.message import Message
    from trace_store.refs.head import Head
    from trace_store.secrets.guard import Guard
    from trace_store.store.store import Store

    Edits: TypeAlias = Callable[[RefReader], Sequence[RefEdit] | None]
    Before: TypeAlias = Callable[["Writer", str, Collection[str]], object]
    Committed: TypeAlias = Callable[["Writer", Any], object]
    Importing: TypeAlias = Callable[["Writer"], Any]
    Sealing: TypeAlias = Callable[["Writer"], object]
    Purging: TypeAlias = Callable[["Writer", Any, bool], Sequence[Any]]


class Observers:
    """What upper floors do when verbs write.

    Attributes:
        before: called with the writer, the name of a change and the full names of the refs that it moves, before it is
            computed. They may refuse it by raising an error.
        committed: called with the writer and the `CommitResult` of a new commit, or None for other changes, once it is
            durable.
        importing: called with the writer when an import begins. They return a `Watcher` that receives what it writes,
            or None.
        purging: called with the writer, the plan of a purge and whether it is a dry run, before anything is purged.
            They return what they changed, for the report.
        sealing: called with the writer before a person seals the repository, to write what waits outside its files.
    """

    __slots__ = ("before", "committed", "importing", "purging", "sealing")

    def __init__(self) -> None:
        self.before: list[Before] = []
        self.committed: list[Committed] = []
        self.importing: list[Importing] = []
        self.purging: list[Purging] = []
        self.sealing: list[Sealing] = []


class _Shared:
    """What the writers of all branches of an open repository share."""

    __slots__ = (
        "author",
        "contexts",
        "environment",
        "guard",
        "mode",
        "observers",
        "salt",
        "tokenizer",
    )

    def __init__(
        self,
        author: str | None,
        tokenizer: Tokenizer | None,
        environment: Environment | None,
        mode: str,
    ) -> None:
        self.author = author
        self.tokenizer = tokenizer
        self.environment = environment
        self.mode = mode
        self.observers = Observers()
        self.contexts: ContextCompiler | None = None
        self.guard: Guard | None = None
        self.salt: Salt | None = None


class Writer:
    """One branch of an open repository, as verbs get it: HEAD's branch, or another one.

    Attributes:
        store: the stores below, as a view whose HEAD is the branch.
    """

    __slots__ = ("_contexts", "_shared", "store")

    def __init__(
        self,
        store: Store,
        *,
        author: str | None = "unknown",
        tokenizer: Tokenizer | Callable[[str], int] | None = None,
        environment: Environment | None = None,
        secrets: str = "",
    ) -> None:
        """Create the writer of a store's HEAD.

        Args:
            store: the stores.
            author: the author of new commits; None is looked up when it is needed, as `store.author` says.
            tokenizer: counts the tokens of all contexts; None counts under the configured encoding.
            environment: the environment variables; None reads those of the process when they are needed.
            secrets: how secrets in stored text are handled, one of `secrets.MODES`; "" is the user's setting.

        Raises:
            InvalidInputError: there is no such mode, or the tokenizer is neither a `Tokenizer` nor a function.
        """
        if tokenizer is not None:
            tokenizer = context.tokens.tokenizer.as_tokenizer(tokenizer)
        self.store = store
        self._shared = _Shared(author, tokenizer, environment, secrets)
        self._contexts: ContextCompiler | None = None
        if secrets:
            self.guard  # noqa: B018 - an unknown mode is reported when the repository is opened

    def on(self, ref: str, expected: ObjectId | AnyValue | None = ANY) -> Writer:
        """Return the writer of another branch or record, which may be unborn; "" is this one.

        With `expected`, as in `Store.on`, all that it writes is compared and swapped.

        Raises:
            InvalidRefNameError: it is not a valid name.
            RefNotFoundError: it is the full name of another kind of ref.
        """
        return self.at(self.store.on(ref, expected)) if ref else self

    def at(self, store: Store) -> Writer:
        """Return the writer of another view of the same stores."""
        view = object.__new__(type(self))
        view.store, view._shared, view._contexts = store, self._shared, None
        return view

    def elsewhere(self, store: Store) -> Writer:
        """Return the writer of another repository's HEAD, opened with the same settings, without observers."""
        shared = self._shared
        return type(self)(
            store,
            author=shared.author,
            tokenizer=shared.tokenizer,
            environment=shared.environment,
            secrets=shared.mode,
        )

    @property
    def author(self) -> str:
        """The author of new commits."""
        author = self._shared.author
        if author is None:
            known, root = self.environment.given_author, self.store.layout.root
            author = self._shared.author = known or stores.author_of(self.environment, root)
        return author

    @property
    def environment(self) -> Environment:
        """The environment variables."""
        if self._shared.environment is None:
            self._shared.environment = Environment.read()
        return self._shared.environment

    @property
    def observers(self) -> Observers:
        """What upper floors do when any branch of the repository changes."""
        return self._shared.observers

    @property
    def ref(self) -> str:
        """The full name of the branch; "HEAD" if HEAD is detached."""
        target = self.store.refs.head_target()
        return target if isinstance(target, str) else NAME

    @property
    def contexts(self) -> ContextCompiler:
        """Compiles the contexts of the branch with the repository's tokenizer, and keeps their indexes open."""
        if self._contexts is None:
            shared, compiler = self._shared, context.compiler.ContextCompiler
            if shared.contexts is None:
                shared.contexts = compiler(self.store, tokenizer=shared.tokenizer)
            known = shared.contexts
            self._contexts = known if known.store is self.store else known.on(self.store)
        return self._contexts

    @property
    def guard(self) -> Guard:
        """Finds secrets in text that is stored."""
        shared = self._shared
        if shared.guard is None:
            guard = secret_store.guard.Guard
            shared.guard = guard.of(self.store, self.environment, shared.mode)
        return shared.guard

    def salt(self) -> Salt:
        """Return what private content is hashed with: the user's own key, outside the repository."""
        shared, store, keys = self._shared, self.store, secret_store.user_files
        if shared.salt is None:
            if store.local:
                key = keys.store_key(
                    self.environment, store.config.store_id, store.layout.root, store.disk
                )
            else:
                key = Randomness().take(keys.KEY_BYTES)  # lasts as long as the repository
            shared.salt = keys.content_salt(key)
        return shared.salt

    def begin(self, name: str = "", *refs: str, author: str = "") -> Change:
        """Begin a change.

        Args:
            name: the change, as in "merge", for the observers. "" is a change that a stopped merge does not block, such
                as an append, a tag, a title or a deletion; they are not asked.
            refs: the full names of the refs that it moves, if not the branch.
            author: the author for the reflogs; "" is that of the writer.

        Raises:
            StateError: a merge, pick, revert or rebase is in progress on one of the refs.
            FormatError: the file of what is in progress is damaged.
            StorageError: an automatic checkpoint could not be written.
        """
        if name:
            for observer in self._shared.observers.before:
                observer(self, name, refs or (self.ref,))
        return Change(self, author or self.author)

    def committed(self, result: Any = None) -> None:
        """Tell the observers that a change is durable; a new commit comes with its `CommitResult`."""
        for observer in self._shared.observers.committed:
            observer(self, result)


class Change:
    """A change that is being made. All text and content that it stores passes the check for secrets.

    Raises, where it takes text or content:
        SecretFoundError: it holds a secret, and the repository refuses secrets.

    Attributes:
        writer: the writer that began it.
        author: the author, for commits and reflogs.
        gathering: the objects that it stores.
        put: stores content with its secrets redacted, and returns its id.
        text: returns a text with its secrets redacted.
    """

    __slots__ = ("author", "gathering", "put", "text", "writer")

    def __init__(self, writer: Writer, author: str) -> None:
        self.writer = writer
        self.author = author
        self.gathering: ObjectCollector = writer.guard.gathering()
        self.put: Put = self.gathering.put
        self.text = self.gathering.text

    def again(self) -> Change:
        """Return the same change without anything in it, to compute it again."""
        return Change(self.writer, self.author)

    @property
    def secrets(self) -> Mapping[str, int]:
        """How many secrets of each kind were found."""
        return self.gathering.secrets

    def screened(self, message: Message) -> Message:
        """Return a message with secrets in its ids and names redacted; `put` redacts its content."""
        names = objects.message.names_of(message)
        if not names or self.gathering.passes(names):
            return message
        return objects.message.renamed(message, self.text)

    def add(self, made: Commit | Tag) -> ObjectId:
        """Redact the message of a commit or a tag in place, add it, and return its id."""
        if made.message:
            made.message = self.text(made.message)
        return self.gathering.put_object(made.encode())

    def write(
        self,
        edits: Edits,
        message: str,
        *,
        durability: str | None = None,
        result: Callable[[], object] | None = None,
    ) -> bool:
        """Write all objects, and the ref moves that `edits` returns, as one transaction.

        Args:
            edits: returns the moves for the current refs, which are locked meanwhile, or None if there is nothing to
                do. It may add objects; if it is called again, those of the earlier call are dropped.
            message: for the reflogs.
            durability: overrides the store's own.
            result: returns the `CommitResult` of a commit, for the observers.

        Returns:
            Whether something was written.

        Raises:
            RefChangedError: a ref does not have the value that an edit expects; nothing is written.
            StorageError: the disk failed; nothing has effect.
        """
        written = self._transact(edits, self.text(message), durability)
        if written:
            self.writer.committed(result and result())
        return written

    def advance(
        self,
        ref: str,
        commit: Callable[[ObjectId | None], ObjectId],
        message: str,
        result: Callable[[], object],
    ) -> None:
        """Advance one branch; like `write`, but much cheaper.

        Args:
            ref: the full name of the branch.
            commit: adds a commit on top of the current tip, which is locked meanwhile, and returns its id; it may be
                called again.
            message: for the reflogs.
            result: as in `write`.
        """
        gathering, message = self.gathering, self.text(message)
        mark = gathering.mark()

        def make(tip: ObjectId | None) -> tuple[ObjectId, Sequence[tuple[ObjectId, bytes]]]:
            gathering.roll_back(mark)
            if tip is None:
                self.writer.guard.check_name(ref)
            return commit(tip), gathering.objects

        self.writer.store.advance(ref, make, self.author, message)
        self.writer.committed(result())

    def move_head(
        self,
        before: Head,
        target: str | ObjectId,
        message: str,
        keep: Edits | None = None,
        *,
        result: Callable[[], object] | None = None,
    ) -> None:
        """Move HEAD, unless it has moved since, and write some edits before that.

        HEAD is a file, so this cannot be one transaction. Both moves get the same time in the reflogs, which marks them
        as one command.

        Args:
            before: HEAD as it was read.
            target: a branch's full name, or a commit.
            message: for the reflogs.
            keep: returns the ref edits, such as those that keep the old commit.
            result: as in `write`.

        Raises:
            RefChangedError: HEAD has moved.
        """
        store, time = self.writer.store, None
        message = self.text(message)
        if keep is not None or self.gathering.objects:
            moved: list[str] = []

            def edits(refs: RefReader) -> Sequence[RefEdit]:
                made = () if keep is None else keep(refs) or ()
                moved[:] = [edit.name for edit in made if refs.read(edit.name) != edit.new]
                return made

            self._transact(edits, message)
            if moved:
                entry = next(stores.reflogs.newest_first(store, moved[0]), None)
                time = None if entry is None or entry.message != message else entry.time

        def move(_: RefReader) -> None:
            at = store.refs.head()
            if at.ref != before.ref or (at.ref is None and at.oid != before.oid):
                raise errors.RefChangedError("HEAD moved meanwhile", ref=NAME, expected=before.oid)
            store.refs.set_head(target, message=message, author=self.author, time=time)

        store.transact(move)
        self.writer.committed(result and result())

    def _transact(self, edits: Edits, message: str, durability: str | None = None) -> bool:
        gathering = self.gathering
        mark = gathering.mark()

        def build(refs: RefReader) -> Transaction | None:
            gathering.roll_back(mark)
            moves = edits(refs)
            if moves is None:
                return None
            for move in moves:
                if move.expected is None and move.new is not None:
                    self.writer.guard.check_name(move.name)
            return Transaction(gathering.objects, moves, message)

        store = self.writer.store
        return store.transact(build, author=self.author, durability=durability) is not None

"""The front door: a repository with the verbs that one types all day.

Rule: each method is one call down. A verb of its own belongs to the floor that knows its subject.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from types import TracebackType
from typing import overload

from trace_store import revision as revisions
from trace_store import secrets
from trace_store.context import compiling
from trace_store.context.compiled import CompiledContext
from trace_store.context.compiler import ContextCompiler
from trace_store.context.parsing import Given
from trace_store.context.plain import PlainContext
from trace_store.context.tokens import Tokenizer, as_tokenizer
from trace_store.environment import Environment
from trace_store.errors import InvalidInputError, RepositoryNotFoundError
from trace_store.history import walk, writing
from trace_store.history.draft import Draft
from trace_store.history.entries import LogEntry
from trace_store.history.rewording import current_parts, reworded
from trace_store.history.status import Status, status
from trace_store.history.writing import CommitResult
from trace_store.ident import Clock, Randomness
from trace_store.maintenance.schedule import SealSchedule
from trace_store.maintenance.sealing import SealReport, seal, seal_or_sync
from trace_store.maintenance.telling import LoggedPatience
from trace_store.objects.message import Message
from trace_store.objects.parts import Part
from trace_store.oid import ObjectId
from trace_store.secrets.guard import Guard
from trace_store.store import Store, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from trace_store.context.compiling import Compiler
    from trace_store.history.draft import Address, Content, Target
    from trace_store.objects.content import Salt


class Repo:
    """A repository that is open.

    Attributes:
        store: the stores below.
        contexts: compiles, and keeps open indexes between compiles.
        author: who the commits are by.
        guard: looks for secrets in what is to be stored.
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
        self.store = store
        self.author = author
        self.guard = Guard.of(store, environment or Environment.read(), secrets)
        self._environment = environment
        self._own_salt: Salt | None = None
        self.contexts = ContextCompiler(store, tokenizer=as_tokenizer(tokenizer))
        self._schedule = SealSchedule(store)
        if store.local and store.journal.patience is None:
            store.journal.patience = LoggedPatience()
        self._closed = False

    @classmethod
    def init(
        cls,
        path: str | os.PathLike[str] = ".",
        *,
        environment: Environment | None = None,
        clock: Clock | None = None,
        durability: str = "durable",
        tokenizer: Tokenizer | Callable[[str], int] | None = None,
        secrets: str = "",
    ) -> Repo:
        """Make `.trace/` in a folder and open it; arguments as in `open`.

        Raises:
            AlreadyExistsError: the folder has one.
            StorageError: the disk refuses.
        """
        environment = environment or Environment.read()
        store = Store.init(os.fspath(path), clock=clock, durability=durability)
        return cls(
            store,
            author=environment.author,
            tokenizer=tokenizer,
            environment=environment,
            secrets=secrets,
        )

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] = ".",
        *,
        directory: str | os.PathLike[str] | None = None,
        create: bool = True,
        durability: str = "durable",
        environment: Environment | None = None,
        clock: Clock | None = None,
        tokenizer: Tokenizer | Callable[[str], int] | None = None,
        secrets: str = "",
    ) -> Repo:
        """Open the repository of a folder or of one above it; make one there when there is none.

        Args:
            path: the folder.
            directory: a `.trace` directory; it beats the variable TRACE_DIR, which beats looking around.
            create: whether to make one in `path` when none is found.
            durability: "durable" (survives power loss), "batch" (one sync for many) or "fast" (survives a
                killed process only).
            environment: what to take for the surroundings; None reads those of the process.
            clock: tells the time.
            tokenizer: counts tokens instead of the configured encoding: a `Tokenizer`, or a function from text
                to a number.
            secrets: what becomes of secrets in what is stored: "redact", "block", "warn" or "off"; empty is what the
                user settled, else "redact".

        Raises:
            RepositoryNotFoundError: none is found and `create` is false, or the one named is none.
            UnsupportedFormatError: a newer version wrote it.
        """
        environment = environment or Environment.read()
        named = None if directory is None else os.fspath(directory)
        try:
            found = find(os.fspath(path), environment, explicit=named)
        except RepositoryNotFoundError:
            if not create or named is not None or environment.trace_dir is not None:
                raise
            return cls.init(
                path,
                environment=environment,
                clock=clock,
                durability=durability,
                tokenizer=tokenizer,
                secrets=secrets,
            )
        store = Store.open(found, durability=durability, clock=clock)
        return cls(
            store,
            author=environment.author,
            tokenizer=tokenizer,
            environment=environment,
            secrets=secrets,
        )

    @classmethod
    def memory(cls, *, author: str = "unknown", clock: Clock | None = None) -> Repo:
        """Return a repository that lives in memory only."""
        return cls(Store.memory(clock=clock), author=author)

    def append(
        self, role: str, content: Content, *, private: bool = False, **fields: Any
    ) -> CommitResult:
        """Append one message as one commit; `fields` are those of `Message`.

        Private content is hashed with a salt, under a key of the user's own outside the repository: its id, which stays
        even when the content is purged, then tells nothing to those who guess it.

        Raises:
            InvalidMessageError: the message is not valid.
            PurgedError: its content was purged.
            SecretFoundError: it holds a secret, and `secrets` is "block"; nothing was written.
            StorageError: the disk failed; nothing was written.
        """
        return self.commit([Message(role, content, **fields)], private=private)

    def commit(
        self, messages: Sequence[Given], *, message: str = "", private: bool = False
    ) -> CommitResult:
        """Append messages as one commit; a provider's own form of a message will do, as in `Draft.extend`.

        Raises:
            As `append`.
        """
        salt = self._salt() if private else None
        result = writing.commit(
            self.store,
            messages,
            author=self.author,
            message=message,
            salt=salt,
            guard=self.guard,
        )
        self._schedule.seal_if_due()
        return result

    @contextmanager
    def batch(self, message: str = "", *, private: bool = False) -> Iterator[Draft]:
        """Gather operations into one commit; nothing is written when the block raises.

        With `private` all content in it is, as in `append`.

        Raises:
            InvalidOperationError: an operation names what the context does not hold.
        """
        with writing.batch(
            self.store,
            author=self.author,
            message=message,
            reword=self._reworded,
            salt=self._salt() if private else None,
            guard=self.guard,
        ) as draft:
            yield draft
        self._schedule.seal_if_due()

    def edit(self, target: Target, content: Content, *, private: bool = False) -> CommitResult:
        """Reword a message; earlier wordings stay readable.

        Args:
            target: the message.
            content: text, which takes the place of its text or of what its tool result says, while calls, images and
                reasoning stay; or all of its parts.
            private: as in `append`.

        Raises:
            MessageNotFoundError: the context does not hold the message.
            InvalidOperationError: text is given, and it has several tool results.
        """
        return self._one(lambda draft: draft.edit(target, content), private=private)

    def annotate(self, targets: Target | Sequence[Target], **marks: Any) -> CommitResult:
        """Set `priority`, `keep` patterns, `labels` and `unlabels` of messages; raises as `edit`."""
        return self._one(lambda draft: draft.annotate(_several(targets), **marks))

    def remove(self, targets: Target | Sequence[Target], *, ghost: bool = False) -> CommitResult:
        """Hide messages, leaving a short placeholder or nothing; raises as `edit`."""
        return self._one(lambda draft: draft.remove(_several(targets), ghost=ghost))

    def restore(
        self, targets: Target | Sequence[Target], *, version: int | None = None
    ) -> CommitResult:
        """Show hidden messages at their place again, or an earlier wording; raises as `edit`."""
        return self._one(lambda draft: draft.restore(_several(targets), version=version))

    def replace(
        self,
        targets: Target | Sequence[Target],
        messages: Sequence[Given],
        **origin: Any,
    ) -> CommitResult:
        """Let messages become others; `origin` is reason, model, prompt, sources. Raises as `edit`."""
        return self._one(lambda draft: draft.replace(_several(targets), messages, **origin))

    def move(self, targets: Target | Sequence[Target], *, after: Target | None) -> CommitResult:
        """Place messages after a neighbour; None puts them first. Raises as `edit`."""
        return self._one(lambda draft: draft.move(_several(targets), after=after))

    def set_tools(self, schemas: Sequence[Mapping[str, Any]]) -> CommitResult:
        """Set the tools that the model is offered."""
        return self._one(lambda draft: draft.set_tools(schemas))

    def record_usage(self, usage: Any, **request: Any) -> CommitResult:
        """Record what a provider reported; `request` is model, about, renderer, renderer_version, sent.

        Raises:
            InvalidInputError: the usage is of no known shape.
        """
        return self._one(lambda draft: draft.record_usage(usage, **request))

    @overload
    def compile(
        self,
        revision: str | ObjectId = ...,
        *,
        at: str = ...,
        reasoning: bool = ...,
        model: str = ...,
    ) -> CompiledContext: ...
    @overload
    def compile(
        self,
        revision: str | ObjectId = ...,
        *,
        at: str = ...,
        strategy: str = ...,
        reasoning: bool = ...,
        model: str = ...,
        compiler: Compiler | None = ...,
    ) -> CompiledContext | PlainContext: ...
    def compile(
        self,
        revision: str | ObjectId = "HEAD",
        *,
        at: str = "",
        strategy: str = "full",
        reasoning: bool = True,
        model: str = "",
        compiler: Compiler | None = None,
    ) -> CompiledContext | PlainContext:
        """Return what a model is shown at a revision; see `trace_store.context.compiling.compile`."""
        return compiling.compile(
            self.contexts,
            revision,
            at=at,
            strategy=strategy,
            reasoning=reasoning,
            model=model,
            compiler=compiler,
        )

    def resolve(self, revision: str) -> ObjectId:
        """Return the id that a revision names.

        Raises:
            RevisionNotFoundError, AmbiguousRevisionError: it names nothing, or several things.
        """
        return revisions.resolve(self.store, revision)

    def log(self, revision: str = "HEAD", *, limit: int | None = None) -> Iterator[LogEntry]:
        """Yield commits, newest first."""
        return walk.log(self.store, revision, limit=limit)

    def status(self, **options: Any) -> Status:
        """Return how things stand; `options` are model and count_tokens."""
        return status(self.contexts, **options)

    def seal(self) -> SealReport:
        """Write what the journal holds into a pack, so that git sees it."""
        return seal(self.store)

    def close(self) -> None:
        """Make durable what was committed, seal it, and close; closing again does nothing.

        That it cannot be sealed now, since another process has been packing for a minute or the disk is full, is no
        error: it is logged as a warning of the logger `trace_store`, and whoever seals next does it.

        Raises:
            StorageError: the disk refuses to make durable what `batch` and `fast` have only written so far.
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

    def __enter__(self) -> Repo:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _reworded(self, address: Address, text: str) -> Sequence[Part]:
        return reworded(current_parts(self.contexts, address), text)

    def _salt(self) -> Salt:
        if self._own_salt is None:
            store = self.store
            if store.local:
                environment = self._environment or Environment.read()
                key = secrets.store_key(
                    environment, store.config.store_id, store.layout.root, store.disk
                )
            else:
                key = Randomness().take(secrets.KEY_BYTES)  # it lasts as long as what it is for
            self._own_salt = secrets.content_salt(key)
        return self._own_salt

    def _one(self, add: Callable[[Draft], object], *, private: bool = False) -> CommitResult:
        salt = self._salt() if private else None
        draft = writing.new_draft(self.store, self._reworded, salt, self.guard)
        add(draft)
        result = writing.write(self.store, draft, author=self.author)
        self._schedule.seal_if_due()
        return result


def _several(targets: Target | Sequence[Target]) -> Sequence[Target]:
    if isinstance(targets, str):
        return [targets]
    if isinstance(targets, tuple) and len(targets) == 2 and isinstance(targets[1], int):
        return [(bytes(targets[0]), targets[1])]
    if not targets:
        raise InvalidInputError("no message is named")
    return list(targets)

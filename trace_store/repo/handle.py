"""An open repository: what all verbs of the front door share.

Rule: state, and no verbs but those that end it. A subject of the front door uses this and the floors below, and no
other subject.
"""

from __future__ import annotations

from types import TracebackType

from trace_store import errors, merge, secrets
from trace_store.context.compiler import ContextCompiler
from trace_store.context.tokens.tokenizer import Tokenizer, as_tokenizer
from trace_store.environment import Environment
from trace_store.history.draft import several
from trace_store.ident import Randomness
from trace_store.maintenance.log import LoggedPatience
from trace_store.maintenance.schedule import SealSchedule
from trace_store.maintenance.seal import SealReport, seal, seal_or_sync
from trace_store.oid import ObjectId
from trace_store.revision import as_address
from trace_store.secrets.guard import Guard
from trace_store.store.handle import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol, Self, TypeAlias

    from trace_store.history.draft import Target
    from trace_store.objects.address import Address
    from trace_store.objects.content import Salt

    class Named(Protocol):
        """What a commit is known by besides its id: the result of a commit, an entry of the log, a branch, a tag."""

        @property
        def oid(self) -> ObjectId: ...

    Revision: TypeAlias = str | ObjectId | Named


class Handle:
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _salt(self) -> Salt:
        if self._own_salt is None:
            store = self.store
            if store.local:
                environment = self._environment or Environment.read()
                key = secrets.user_files.store_key(
                    environment, store.config.store_id, store.layout.root, store.disk
                )
            else:
                key = Randomness().take(
                    secrets.user_files.KEY_BYTES
                )  # it lasts as long as what it is for
            self._own_salt = secrets.user_files.content_salt(key)
        return self._own_salt

    def _said(self, message: str) -> str:
        """Return what is said about a commit or a tag, without secrets; raises SecretFoundError as `append` does."""
        return self.guard.gathering().text(message) if message else message

    def _check_nothing_waits(self, *refs: str) -> None:
        """Raise StateError while a merge, a pick, a revert or a rebase waits, since this moves what it waits for."""
        store = self.store
        if store.local and store.disk.exists(store.layout.stopped_file):
            merge.in_progress.refuse_while_stopped(store, refs)


def name_of(what: Revision | Address) -> str:
    """Return the text that names a commit, or a message by its address; text names itself.

    Raises:
        InvalidInputError: it is nothing of the kind.
    """
    if isinstance(what, str):
        return what
    if isinstance(what, tuple):
        return as_address(what).hex
    oid = getattr(what, "oid", what)
    if not isinstance(oid, ObjectId):
        raise errors.InvalidInputError(
            f"a commit is named by text, its id, or what has one as `oid`, not by {type(what).__name__}"
        )
    return str(oid)


def several_targets(targets: Target | Sequence[Target]) -> Sequence[Target]:
    """Return the messages that are named.

    Raises:
        InvalidInputError: none is.
    """
    found = several(targets)
    if not found:
        raise errors.InvalidInputError("no message is named")
    return found

"""What a model is shown, and how it came to be: the verbs that read."""

from __future__ import annotations

from typing import overload

from trace_store import revision as revisions
from trace_store.context import compiling
from trace_store.history import walk
from trace_store.history.status import Status, status
from trace_store.repo.handle import Handle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from trace_store.context.compiled import CompiledContext
    from trace_store.context.compiling import Compiler
    from trace_store.context.plain import PlainContext
    from trace_store.history.entries import LogEntry
    from trace_store.oid import ObjectId


class Reading(Handle):
    """What is there: nothing here moves a ref or writes a commit."""

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

"""What a model is shown, and how it came to be: the verbs that read."""

from __future__ import annotations

from itertools import islice
from typing import overload

from trace_store import comparing, errors, history
from trace_store import revision as revisions
from trace_store.context import compiling
from trace_store.history import walk
from trace_store.history.status import Status, status
from trace_store.oid import ObjectId
from trace_store.repo.handle import Handle, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from trace_store.comparing import Blame, ContextDiff, Found
    from trace_store.context.compiled import CompiledContext
    from trace_store.context.compiling import Compiler
    from trace_store.context.plain import PlainContext
    from trace_store.history.entries import LogEntry
    from trace_store.repo.handle import Address, Revision


class Reading(Handle):
    """What is there: nothing here moves a ref or writes a commit."""

    @overload
    def compile(
        self,
        revision: Revision = ...,
        *,
        at: str = ...,
        reasoning: bool = ...,
        model: str = ...,
    ) -> CompiledContext: ...
    @overload
    def compile(
        self,
        revision: Revision = ...,
        *,
        at: str = ...,
        strategy: str = ...,
        reasoning: bool = ...,
        model: str = ...,
        compiler: Compiler | None = ...,
    ) -> CompiledContext | PlainContext: ...
    def compile(
        self,
        revision: Revision = "HEAD",
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
            name_of(revision),
            at=at,
            strategy=strategy,
            reasoning=reasoning,
            model=model,
            compiler=compiler,
        )

    def resolve(self, revision: Revision) -> ObjectId:
        """Return the id that a revision names.

        Raises:
            RevisionNotFoundError, AmbiguousRevisionError: it names nothing, or several things.
        """
        return revisions.resolve(self.store, name_of(revision))

    def log(
        self, revision: Revision = "HEAD", *, limit: int | None = None, **wanted: Any
    ) -> Iterator[LogEntry]:
        """Yield the commits of a revision or a range, newest first.

        Args:
            revision: a revision, or a range `A..B` or `A...B`.
            limit: at most so many.
            wanted: those alone that a `history.LogFilter` of these fields lets through: text, kind, role, tool, path,
                priority, author, operation, since, until, merges, and follow, the address of a message.

        Raises:
            RevisionNotFoundError: there is no such commit.
            InvalidInputError: there is no such operation, priority, kind or role, or the limit is no count.
        """
        start = name_of(revision)
        walk.check_limit(limit)
        if not wanted:
            return walk.log(self.store, start, limit=limit)
        if wanted.get("follow"):
            wanted["follow"] = self._address(wanted["follow"])
        tip = revisions.resolve_range(self.store, start).include[-1]
        found = walk.log(self.store, start)
        matching = history.matching(self.contexts, found, history.LogFilter(**wanted), tip)
        return islice(matching, limit)

    def status(self, **options: Any) -> Status:
        """Return how things stand; `options` are model and count_tokens."""
        return status(self.contexts, **options)

    def diff(self, before: Revision, after: Revision = "HEAD", *, model: str = "") -> ContextDiff:
        """Return what differs between the contexts of two revisions: messages, words, tokens, and what a cache loses.

        Args:
            before: the commit to start from.
            after: the commit to come to.
            model: the model to count tokens for.

        Raises:
            RevisionNotFoundError: there is no such commit.
        """
        return comparing.diff(self.contexts, name_of(before), name_of(after), model=model)

    def blame(self, revision: Revision = "HEAD") -> Iterator[Blame]:
        """Yield for each message of a context what brought it, and what was done to it since.

        Raises:
            RevisionNotFoundError: there is no such commit.
        """
        return comparing.blame(self.contexts, name_of(revision))

    def whohas(self, what: str | Address | ObjectId) -> list[Found]:
        """Return the wordings that say a text, of one message, or made of one blob, with the refs that have them.

        Args:
            what: a text, in any case; the address of a message; or the id of a blob.

        Raises:
            InvalidInputError: it is none of these, or an empty text.
        """
        if isinstance(what, str):
            return comparing.whohas_text(self.contexts, what)
        if isinstance(what, tuple):
            return comparing.whohas_message(self.contexts, what)
        if not isinstance(what, bytes):
            raise errors.InvalidInputError(f"there is no looking for {type(what).__name__}")
        return comparing.whohas_content(self.contexts, what)

    def bisect(
        self,
        test: Callable[[CompiledContext], bool | None],
        bad: Revision = "HEAD",
        good: Sequence[Revision] = (),
    ) -> tuple[ObjectId, ...]:
        """Return the commit from which on a test fails, or several when what cannot be told leaves it open.

        Args:
            test: tells of a context whether all is well: True, False, or None where that cannot be told.
            bad: a commit for which it fails.
            good: commits before it for which it holds; without one the search goes back to the first commit.

        Raises:
            StateError: the test finds the bad commit good, or a good one bad.
            RevisionNotFoundError: there is no such commit.
        """
        return comparing.find_first_bad(
            self.contexts, test, name_of(bad), [name_of(each) for each in good]
        )

    def _address(self, what: str | Address) -> Address:
        if isinstance(what, str):
            return revisions.resolve_address(self.store, what)
        return ObjectId(what[0]), what[1]

"""What a model is shown, and how it came to be: the verbs that read."""

from __future__ import annotations

from itertools import islice
from typing import overload

from trace_store import errors, history, search
from trace_store import revision as revisions
from trace_store.context import strategies
from trace_store.history import log as walk
from trace_store.history.status import Status, status
from trace_store.objects.codec import COMMIT, kind_of
from trace_store.oid import ObjectId
from trace_store.repo.handle import Handle, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime
    from typing import Any

    from trace_store.context.compiled import CompiledContext
    from trace_store.context.plain import PlainContext
    from trace_store.context.strategies import Compiler
    from trace_store.history.blame import Blame
    from trace_store.history.diff import ContextDiff
    from trace_store.history.log import LogEntry
    from trace_store.history.whohas import VersionHolders
    from trace_store.objects.address import Address
    from trace_store.repo.handle import Revision
    from trace_store.search.query import Hit


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
        """Return what a model is shown at a revision; see `trace_store.context.strategies.compile`."""
        return strategies.compile(
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
        self,
        revision: Revision = "HEAD",
        *,
        limit: int | None = None,
        text: str = "",
        kind: str = "",
        role: str = "",
        tool: str = "",
        path: str = "",
        priority: str = "",
        label: str = "",
        meta: str = "",
        author: str = "",
        operation: str = "",
        since: int | str | datetime | None = None,
        until: int | str | datetime | None = None,
        merges: bool | None = None,
        follow: str | Address | None = None,
    ) -> Iterator[LogEntry]:
        """Yield the commits of a revision or a range, newest first; those alone for which all holds that is asked.

        Args:
            revision: a revision, or a range `A..B` or `A...B`.
            limit: at most so many.
            text: a part of what a message or the commit says, whatever the case.
            kind: the kind of a message.
            role: the role of a message.
            tool: the name of a tool that a message calls, or whose result it holds.
            path: a file or folder that a message mentions.
            priority: the commit gives this priority, or makes a message that has it in the context.
            label: the commit gives this label to a message.
            meta: the name of a fact or a setting that the commit records, or `name=value`.
            author: a part of who made it, whatever the case.
            operation: the name of one of its operations.
            since: made then or later: milliseconds since the epoch, a `datetime`, or text as in "2 days ago".
            until: made then or earlier.
            merges: whether it has several parents.
            follow: the address of a message that it adds or changes.

        Raises:
            RevisionNotFoundError: there is no such commit.
            InvalidInputError: there is no such operation, priority, kind or role, something is no time, or the limit is
                no count.
        """
        start = name_of(revision)
        walk.check_limit(limit)
        asked = (author, operation, text, kind, role, tool, path, priority, label, meta)
        if not any(asked) and all(each is None for each in (since, until, follow, merges)):
            return walk.log(self.store, start, limit=limit)
        tip = revisions.resolve_range(self.store, start).include[-1]
        wanted = history.log_filters.LogFilter(
            author=author,
            since=self._moment(since),
            until=self._moment(until),
            operation=operation,
            follow=None if follow is None else self._address(follow),
            text=text,
            kind=kind,
            role=role,
            tool=tool,
            path=path,
            priority=priority,
            label=label,
            meta=meta,
            merges=merges,
        )
        found = walk.log(self.store, start)
        return islice(history.log_filters.matching(self.contexts, found, wanted, tip), limit)

    def _moment(self, given: int | str | datetime | None) -> int | None:
        """Return a time in milliseconds."""
        found: object = given
        if isinstance(given, str):
            found = revisions.parse_moment(given, self.store)
        elif given is not None and not isinstance(given, int) and hasattr(given, "timestamp"):
            found = round(given.timestamp() * 1000)
        if given is not None and (not isinstance(found, int) or isinstance(found, bool)):
            raise errors.InvalidInputError(f"not a time: {str(given)[:80]!r}")
        return found  # type: ignore[return-value]

    def status(self, *, model: str = "", count_tokens: bool = True) -> Status:
        """Return how things stand.

        Args:
            model: the model to count tokens for; "" counts under the repository's encoding.
            count_tokens: whether tokens may be counted, which costs when there are new messages.
        """
        return status(self.contexts, model=model, count_tokens=count_tokens)

    def diff(self, before: Revision, after: Revision = "HEAD", *, model: str = "") -> ContextDiff:
        """Return what differs between the contexts of two revisions: messages, words, tokens, and what a cache loses.

        Args:
            before: the commit to start from.
            after: the commit to come to.
            model: the model to count tokens for.

        Raises:
            RevisionNotFoundError: there is no such commit.
        """
        return history.diff.diff(self.contexts, name_of(before), name_of(after), model=model)

    def blame(self, revision: Revision = "HEAD") -> Iterator[Blame]:
        """Yield for each message of a context what brought it, and what was done to it since.

        Raises:
            RevisionNotFoundError: there is no such commit.
        """
        return history.blame.blame(self.contexts, name_of(revision))

    def search(
        self,
        query: str,
        *,
        limit: int = 20,
        regex: bool = False,
        ranked: bool = False,
        **filters: Any,
    ) -> list[Hit]:
        """Return the messages of all branches that say something, newest first.

        Args:
            query: words, which are ANDed; `docs/searching.md` has the rest.
            limit: at most so many.
            regex: whether the query is a pattern of RE2, against which every message is held.
            ranked: whether the best of the newest hits come first.
            filters: what `search.SearchFilter` has: session, agent, role, kind, tool, path, label, since, until.

        Raises:
            As `search.search`.
        """
        wanted = search.query.SearchFilter(**filters)
        return search.query.search(
            self.store, query, wanted, limit=limit, regex=regex, ranked=ranked
        )

    def whohas(self, what: str | Address | ObjectId) -> list[VersionHolders]:
        """Return the wordings that say a text, of one message, or made of one blob, with the refs that have them.

        Of an address, what a rebase of HEAD's branch made of the message comes first.

        Args:
            what: the address of a message, or its text; another text, in any case; or the id of a blob.

        Raises:
            InvalidInputError: it is none of these, or an empty text. The refs that have a commit are told by
                `comparing.whohas_commit`.
        """
        if isinstance(what, str):
            try:
                what = revisions.resolve_address(self.store, what)
            except (errors.NotFoundError, errors.InvalidInputError):
                return history.whohas.whohas_text(self.contexts, str(what))
        if isinstance(what, tuple):
            return history.whohas.whohas_message(self.contexts, revisions.as_address(what))
        if not isinstance(what, bytes):
            raise errors.InvalidInputError(f"there is no looking for {type(what).__name__}")
        if self.store.objects.contains(what) and kind_of(self.store.objects.read(what)) == COMMIT:
            raise errors.InvalidInputError(
                "a commit is no content: `comparing.whohas_commit` names the refs that have it"
            )
        return history.whohas.whohas_content(self.contexts, what)

    def bisect(
        self,
        test: Callable[[CompiledContext], bool | None],
        bad: Revision = "HEAD",
        good: Revision | Sequence[Revision] = (),
    ) -> tuple[ObjectId, ...]:
        """Return the commit from which on a test fails, or several when what cannot be told leaves it open.

        Args:
            test: tells of a context whether all is well: True, False, or None where that cannot be told.
            bad: a commit for which it fails.
            good: a commit before it for which it holds, or several; without one the search goes back to the first.

        Raises:
            StateError: the test finds the bad commit good, or a good one bad.
            RevisionNotFoundError: there is no such commit.
        """
        several = good if isinstance(good, list | tuple) else [good]
        return history.bisect.find_first_bad(
            self.contexts,
            test,
            name_of(bad),
            [name_of(each) for each in several],  # type: ignore[arg-type]
        )

    def _address(self, what: str | Address) -> Address:
        if isinstance(what, str):
            return revisions.resolve_address(self.store, what)
        return revisions.as_address(what)

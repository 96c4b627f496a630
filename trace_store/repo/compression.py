"""Fitting a context into a budget, on any branch: trim, deduplicate, suggest, compress, expand."""

from __future__ import annotations

import os

from trace_store import check, compression, history
from trace_store.context.compiled import RenderableContext
from trace_store.repo.handle import Handle, name_of
from trace_store.store.handle import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.compression.compress import CompressionPlan, CompressionResult
    from trace_store.compression.expand import Expansion
    from trace_store.compression.suggest import Suggestion, Suggestions
    from trace_store.compression.summaries import SummaryReport
    from trace_store.compression.trim import TrimResult
    from trace_store.context.compiled import CompiledContext
    from trace_store.context.compiler import Compiler
    from trace_store.history.draft import CommitResult
    from trace_store.llm.contract import Model
    from trace_store.objects.address import Address


class Compression:
    """Makes room in contexts, as `repo.compression`. Each verb writes one commit, so `undo` takes it back.

    A `range` of messages is as in `A..B`; "" is all. `ref` is the branch; "" is HEAD's.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def target(self, text: str, *, ref: str = "") -> int:
        """Return the tokens that a target such as `60k` or `50%` means; a percentage is of the messages' tokens.

        Raises:
            InvalidInputError: it is neither.
            RefNotFoundError: there is no such branch.
        """
        check.text(text=text)
        return compression.compress.parse_target(self._on(ref), text)

    def trim(
        self,
        to: int,
        range: str = "",
        *,
        keep_last: int | None = None,
        partial: bool = False,
        dry_run: bool = False,
        message: str = "",
        ref: str = "",
    ) -> TrimResult:
        """Make a context fit a number of tokens without a model; raises as `compression.trim.trim`.

        Args:
            to: the most tokens that the context should have.
            range: the messages that may change.
            keep_last: keep the last so many turns of the user whole.
            partial: if the target cannot be met, trim as far as possible.
            dry_run: write nothing.
            message: the message of the commit.
            ref: the branch.
        """
        check.count(to=to, keep_last=keep_last)
        check.flag(partial=partial, dry_run=dry_run)
        check.text(range=range, message=message)
        return compression.trim.trim(
            *(self._on(ref, writes=not dry_run), range),
            to=to,
            author=self._handle.author,
            keep_last=keep_last,
            partial=partial,
            dry_run=dry_run,
            message=self._handle.redacted(message),
            salt=self._handle.salt,
        )

    def dedupe(self, *, dry_run: bool = False, message: str = "", ref: str = "") -> TrimResult:
        """Replace repeated reads of a file, and repeated outputs, by references to the newest one."""
        check.flag(dry_run=dry_run)
        return compression.trim.trim(
            self._on(ref, writes=not dry_run),
            to=None,
            author=self._handle.author,
            steps=compression.trim.DEDUPLICATION,
            dry_run=dry_run,
            message=self._handle.redacted(message),
            salt=self._handle.salt,
        )

    def suggest(self, *, ref: str = "") -> Suggestions:
        """Propose what to shorten, replace by a note or pin, with the heat of each message.

        Files that were read are compared with those beside the repository.
        """
        store = self._on(ref)
        root = os.path.dirname(store.layout.root) if store.local else os.curdir
        return compression.suggest.suggest(store, root=root)

    def apply(
        self, suggestions: Sequence[Suggestion], *, message: str = "", ref: str = ""
    ) -> CommitResult:
        """Apply suggestions in one commit; raises as `compression.suggest.apply`."""
        check.items(suggestions=suggestions)
        suggestions = list(suggestions)
        for each in suggestions:
            check.instance(compression.suggest.Suggestion, suggestions=each)
        return compression.suggest.apply(
            *(self._on(ref, writes=True), suggestions),
            author=self._handle.author,
            message=self._handle.redacted(message),
            salt=self._handle.salt,
        )

    def plan(self, to: int | None = None, range: str = "", *, ref: str = "") -> CompressionPlan:
        """Return what `compress` would replace; raises as `compression.compress.plan`."""
        check.count(to=to)
        check.text(range=range)
        store = self._on(ref)
        limited = compression.compress.limited_target(store, to)
        return compression.compress.plan(store, range, to=limited)

    def compress(
        self,
        to: int | None = None,
        range: str = "",
        *,
        model: Model | None = None,
        text: str = "",
        window: int | None = None,
        force: bool = False,
        message: str = "",
        ref: str = "",
    ) -> CompressionResult:
        """Replace messages by summaries; raises as `compression.compress.compress`.

        Args:
            to: the most tokens that the context should have; None is 60 % of the repository's budget.
            range: the messages to replace; "" is all but the newest.
            model: writes the summaries: a model, or a function from a request to a text. None takes the sentences that
                matter most.
            text: a summary, already written.
            window: how many tokens of history the model is shown at once; None is the default.
            force: compress even if the branch has hardly grown since the last time.
            message: the message of the commit.
            ref: the branch.
        """
        check.count(to=to, window=window)
        check.text(range=range, text=text)
        check.flag(force=force)
        check.function(model=model)
        handle, store = self._handle, self._on(ref, writes=True)
        handle.checkpoint_before(store, "compress")
        return compression.compress.compress(
            *(store, range),
            to=to,
            author=handle.author,
            model=model,
            text=text,
            window=compression.summaries.WINDOW_TOKENS if window is None else window,
            force=force,
            message=handle.redacted(message),
            guard=handle.guard,
            salt=handle.salt,
        )

    def report(self, summary: str | Address = "", *, ref: str = "") -> list[SummaryReport]:
        """List what a summary, or each of the context, no longer mentions; raises as `compression.summaries.report`."""
        return compression.summaries.report(self._on(ref), name_of(summary, "summary"))

    def expand(self, target: str | Address, *, message: str = "", ref: str = "") -> Expansion:
        """Show a compressed, removed or edited message in full again; raises as `compression.expand.expand`."""
        return compression.expand.expand(
            *(self._on(ref, writes=True), name_of(target, "target")),
            author=self._handle.author,
            message=self._handle.redacted(message),
        )

    def in_full(self, *targets: str | Address, ref: str = "") -> Compiler:
        """Return a compiler for `compile`: it shows messages in full, as `expand` does, and writes nothing."""
        store, names = self._on(ref), [name_of(each, "targets") for each in targets]
        return lambda context: compression.expand.expanded_messages(store, context, names)

    def heat(self, context: CompiledContext) -> list[float]:
        """Return how much later messages use each message of a context, from 0 to 1."""
        check.instance(RenderableContext, context=context)
        return compression.suggest.Heat(context.messages).values

    def _on(self, ref: str, *, writes: bool = False) -> Store:
        """Return the store as seen from a branch; if a verb writes, no operation may be in progress on it."""
        check.text(ref=ref)
        store = self._handle.store
        if ref:
            store = store.on(history.branches.find_branch(store, ref))
        if writes:
            self._handle.check_not_stopped(store.refs.head().ref or "HEAD")
        return store

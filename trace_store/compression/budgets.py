"""Fitting a context into a budget, on any branch: trim, deduplicate, suggest, compress, expand."""

from __future__ import annotations

import os

from trace_store import compression, errors, history
from trace_store.base import check
from trace_store.base.frozen import replace
from trace_store.base.ident import count_of, is_count
from trace_store.context.compiled import RenderableContext, tokens_in, tokens_of
from trace_store.context.snapshots import fold_of
from trace_store.store.config import parse_token_count
from trace_store.store.revision import name_of, resolve_address, resolve_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trace_store.compression.compress import (
        CompressionPlan,
        CompressionResult,
        Planner,
        Summaries,
    )
    from trace_store.compression.expand import Expansion
    from trace_store.compression.losses import SummaryReport
    from trace_store.compression.suggest import Suggestion, Suggestions
    from trace_store.compression.trim import TrimResult
    from trace_store.compression.working import WorkingContext
    from trace_store.context.compiled import CompiledContext
    from trace_store.context.compiler import Compiler
    from trace_store.history.draft import CommitResult, Fact
    from trace_store.llm.contract import Model
    from trace_store.objects.address import Address
    from trace_store.objects.message import Message
    from trace_store.providers.documents import Given
    from trace_store.writer import Writer

_ATTEMPTS = 10


class Compression:
    """Fits contexts into a budget, as `repo.compression`.

    `trim`, `dedupe`, `apply`, `compress` and `expand` write one commit each, which `undo` takes back. What is written
    from private messages is private. A `range` of messages is as in `A..B`. `ref` is the branch; "" is HEAD's.

    Each verb raises RefNotFoundError if there is no such branch, UnbornBranchError if it has no commit. Each that
    writes raises StateError while a merge, pick, revert or rebase is in progress on the branch, RefChangedError if
    another process moved it, and StorageError if the disk failed; then nothing was written.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def target(self, text: str, *, ref: str = "") -> int:
        """Return the tokens that a target such as `60k` or `50%` means.

        A percentage is of the messages' tokens, not of tool schemas or a provider's overhead.

        Raises:
            InvalidInputError: it is neither.
        """
        check.text(text=text)
        writer = self._to(ref)
        if not text.endswith("%"):
            return parse_token_count(text)
        digits = text[:-1]
        if not (is_count(digits) and 0 < count_of(digits) < 100):
            raise errors.InvalidInputError(f"not 1% to 99%: {text[:20]!r}")
        compiled = writer.contexts.compile()
        messages = compiled.message_part
        return max(1, compiled.token_count - messages + messages * count_of(digits) // 100)

    def trim(
        self,
        to: int,
        range: str = "",
        *,
        keep_last: int | None = None,
        partial: bool = False,
        dry_run: bool = False,
        message: str = "",
        meta: Mapping[str, Fact] | None = None,
        ref: str = "",
    ) -> TrimResult:
        """Make a context fit a number of tokens without a model.

        Args:
            to: the most tokens that the context should have.
            range: the messages that may change.
            keep_last: keep the last so many turns of the user whole, however large. None keeps two of them, as far as
                they fit in half of the tokens that are not fixed.
            partial: if the target cannot be met, trim as far as possible.
            dry_run: write nothing.
            message: the message of the commit; by default it states the tokens before and after.
            meta: facts about the commit.
            ref: the branch.

        Returns:
            The savings. If the target cannot be met, `stays` explains the rest.

        Raises:
            BudgetError: the target cannot be met; `needed` is the smallest possible number of tokens.
            InvalidInputError: the range is malformed or names no message.
            RevisionNotFoundError, MessageNotFoundError: a side of the range does not exist.
        """
        check.count(to=to, keep_last=keep_last)
        check.flag(partial=partial, dry_run=dry_run)
        check.text(range=range, message=message)
        writer = self._to(ref)
        result, working = compression.trim.plan(writer.contexts, range, to=to, keep_last=keep_last)
        if dry_run:
            return result
        if not (partial or result.met):
            raise errors.BudgetError(
                f"the context cannot be trimmed to {to:,} tokens; the smallest possible is "
                f"{result.after:,}",
                code=errors.ErrorCode.TARGET_UNREACHABLE,
                needed=result.after,
                allowed=to,
            )
        verb = compression.working.REASON
        return self._write_trim(writer, result, working, message, verb, meta)

    def dedupe(self, *, dry_run: bool = False, message: str = "", ref: str = "") -> TrimResult:
        """Replace repeated reads of a file, and repeated outputs, by references to the newest one."""
        check.flag(dry_run=dry_run)
        check.text(message=message)
        writer, steps = self._to(ref), compression.trim.DEDUPLICATION
        result, working = compression.trim.plan(writer.contexts, to=None, steps=steps)
        if dry_run:
            return result
        return self._write_trim(writer, result, working, message, compression.trim.DEDUPE)

    def _write_trim(
        self,
        writer: Writer,
        result: TrimResult,
        working: WorkingContext,
        message: str,
        verb: str,
        meta: Mapping[str, Fact] | None = None,
    ) -> TrimResult:
        if not result.steps:
            return result
        changed = [*(address for address, _ in result.changes), *result.replaced]
        private = compression.selection.is_private(writer.store, working.fold, changed)
        draft = history.draft.Draft(writer, "trim", private=private)
        working.draft_into(draft)
        if meta:
            draft.configure(meta=meta)
        before, after = result.before, result.after
        reason = compression.working.REASON
        commit = history.commit.write(
            draft,
            message=message or f"{verb}: {before:,} to {after:,} tokens",
            meta={reason: {"before": before, "after": after, "target": result.target or 0}},
            onto=working.tip,
        )
        return replace(result, commit=commit)

    def suggest(self, *, ref: str = "") -> Suggestions:
        """Propose what to shorten, replace by a note or pin, with the heat of each message.

        Files that were read are compared with those beside the repository.
        """
        writer = self._to(ref)
        store = writer.store
        root = os.path.dirname(store.layout.root) if store.local else os.curdir
        return compression.suggest.suggest(writer.contexts, root=root)

    def apply(
        self, suggestions: Sequence[Suggestion], *, message: str = "", ref: str = ""
    ) -> CommitResult:
        """Apply suggestions in one commit.

        Raises:
            InvalidOperationError: there are no suggestions.
            MessageNotFoundError: the context does not show a message any more.
        """
        check.items(suggestions=suggestions)
        check.text(message=message)
        suggestions = list(suggestions)
        for each in suggestions:
            check.instance(compression.suggest.Suggestion, suggestions=each)
        if not suggestions:
            raise errors.InvalidOperationError("there is no proposal to apply")
        writer = self._to(ref)
        working = compression.working.working_context(writer.contexts)
        changed = (a for each in suggestions for a in each.addresses if a in working.fold)
        private = compression.selection.is_private(writer.store, working.fold, changed)
        draft = history.draft.Draft(writer, "suggest", private=private)
        compression.suggest.draft_into(draft, suggestions, working)
        saved = sum(each.tokens for each in suggestions)
        message = message or f"suggestions: {len(suggestions)} applied, {saved:,} tokens saved"
        return history.commit.write(draft, message=message, onto=working.tip)

    def trimmer(
        self, to: int, range: str = "", *, keep_last: int | None = None, ref: str = ""
    ) -> Compiler:
        """Return a compiler for `compile` that trims the context; it writes nothing."""
        check.count(to=to, keep_last=keep_last)
        check.text(range=range)
        contexts = self._to(ref).contexts

        def trimmed(context: CompiledContext) -> Sequence[Message]:
            _, working = compression.trim.plan(
                contexts, range, to=to, keep_last=keep_last, compiled=context
            )
            return working.changed_messages()

        return trimmed

    def plan(
        self,
        to: int | None = None,
        range: str = "",
        *,
        keep_last: int | None = None,
        ref: str = "",
    ) -> CompressionPlan:
        """Return the plan of `compress`, which accepts it; arguments and errors are the same."""
        check.count(to=to, keep_last=keep_last)
        check.text(range=range)
        writer = self._to(ref)
        target = compression.compress.limited_target(writer.store, to)
        return compression.compress.Planner(writer.contexts).plan(range, target, keep_last)

    def compress(
        self,
        to: int | None = None,
        range: str = "",
        *,
        plan: CompressionPlan | None = None,
        keep_last: int | None = None,
        model: Model | None = None,
        text: str = "",
        window: int | None = None,
        instructions: str = "",
        force: bool = False,
        progress: Callable[[int, int], None] | None = None,
        message: str = "",
        meta: Mapping[str, Fact] | None = None,
        ref: str = "",
    ) -> CompressionResult:
        """Replace messages by summaries.

        Messages that no model was shown yet stay; so do those that arrive while the model answers, behind the summary.

        Args:
            to: the most tokens that the context should have, at most 60 % of the repository's budget; None is that.
            range: the messages to replace; "" is all but the newest.
            plan: a result of `plan`, instead of `to`, `range` and `keep_last`.
            keep_last: the minimum number of user turns to keep whole at the end.
            model: writes the summaries: a model, or a function from a request to a text. None takes the sentences that
                matter most.
            text: a summary, already written, of a range that is a single run of messages. Its author has read them,
                so that it also replaces what no model was shown.
            window: how many tokens of history the model is shown at once; None is the default.
            instructions: what the summary should dwell on, as in "focus on the schema": told to the model; without one,
                sentences with these words come first.
            force: compress even if the branch has hardly grown since the last time, or the last times saved little.
            progress: called with the numbers of summaries written and of all, before each request to the model. If it
                raises an error, nothing is written.
            message: the message of the commit.
            meta: facts about the commit.
            ref: the branch.

        Raises:
            StateError: code `no-gain` if the summary is not shorter; or, without `text` and `force`, if the branch has
                hardly grown or three compressions saved little.
            BudgetError: the target cannot be reached; `needed` is the smallest that can.
            ModelError: the request failed, or two answers could not be used.
            InvalidInputError: there is neither a target nor a budget nor a text; the range is malformed, or names
                nothing that can be replaced; or the text is empty, loses what must be kept, or is for several runs.
            RevisionNotFoundError, MessageNotFoundError: a side of the range does not exist.
            RefChangedError: another process changed the messages of the range.
        """
        check.count(to=to, window=window, keep_last=keep_last)
        check.text(range=range, text=text, instructions=instructions, message=message)
        check.flag(force=force)
        check.function(model=model, progress=progress)
        writer, compress = self._to(ref), compression.compress
        writer.begin("compress")  # which may refuse, before a model is asked
        planner = compress.Planner(writer.contexts)
        if plan is None:
            target = compress.limited_target(writer.store, to)
            if target is None and not text:
                raise errors.InvalidInputError(
                    "a target in tokens is needed, or a budget of the repository"
                )
            plan = planner.plan(range, target, keep_last, also_unread=bool(text))
        else:
            check.instance(compress.CompressionPlan, plan=plan)
            if to is not None or range or keep_last is not None:
                raise errors.InvalidInputError("a plan has its own target and range")
            plan = planner.renewed(plan)
        if not plan.runs:
            return compress.CompressionResult(plan, None, plan.before)
        if not (force or text):
            planner.check_growth()
        window = compression.summaries.WINDOW_TOKENS if window is None else window
        summaries = compress.Summaries(
            planner, plan, model, text, window, instructions, progress=progress
        )
        return self._write_summaries(writer, planner, plan, summaries, message, meta)

    def _write_summaries(
        self,
        writer: Writer,
        planner: Planner,
        plan: CompressionPlan,
        summaries: Summaries,
        message: str,
        facts: Mapping[str, Fact] | None,
    ) -> CompressionResult:
        """Write the commit on the tip of the branch, which may have grown meanwhile."""
        store, tip, meta = writer.store, plan.tip, summaries.meta()
        private = compression.selection.is_private(store, planner.state, summaries.sources)
        for _ in [None] * _ATTEMPTS:
            draft = history.draft.Draft(writer, private=private)
            summaries.draft_into(draft)
            if facts:
                draft.configure(meta=facts)
            try:
                written = history.commit.write(draft, message=message, meta=meta, onto=tip)
            except errors.RefChangedError:
                tip = planner.unchanged_tip(plan)
                continue
            return compression.compress.CompressionResult(
                *(plan, written, summaries.after, summaries.kind),
                *(summaries.model_name, summaries.texts),
            )
        raise errors.RefChangedError("the branch keeps moving", ref=store.refs.head().ref)

    def report(self, summary: str | Address = "", *, ref: str = "") -> list[SummaryReport]:
        """List what a summary no longer mentions; without one, each summary that the context shows.

        Raises:
            MessageNotFoundError, RevisionNotFoundError: the context does not hold the message.
            InvalidInputError: the message is not a summary whose sources are hidden.
        """
        store, name = self._to(ref).store, name_of(summary, "summary")
        state = fold_of(store, resolve_commit(store, "HEAD"))
        losses, origins = compression.losses, compression.selection.Origins(store, state)
        if name:
            address = resolve_address(store, name)
            if not origins.is_summary(address):
                raise errors.InvalidInputError(
                    f"message {address} is not a summary of hidden messages"
                )
            return [losses.report_on(store, origins, address)]
        shown = [each.address for each in state.visible()]
        return [
            losses.report_on(store, origins, each) for each in shown if origins.is_summary(each)
        ]

    def expand(self, target: str | Address, *, message: str = "", ref: str = "") -> Expansion:
        """Show a message in full for good.

        A summary becomes the messages that it replaced, and a removed message is restored. An edited or trimmed message
        gets its first version back. A message that a summary replaced is visible again next to the summary.

        Raises:
            MessageNotFoundError, RevisionNotFoundError: the context does not hold the message.
            InvalidInputError: the message is skipped.
        """
        check.text(message=message)
        name = name_of(target, "target")
        writer, expand = self._to(ref), compression.expand
        store = writer.store
        tip = resolve_commit(store, "HEAD")
        address = resolve_address(store, name)
        state = fold_of(store, tip)
        what, operations, shown = expand.expanding_operations(store, state, address)
        entry, summary = state.entry(address), expand.summary_of(store, state, address)
        wordings = len(entry.versions) if entry.is_edited else 1
        draft = history.draft.Draft(writer, "expand")
        draft.operations += operations
        written = history.commit.write(draft, message=message, onto=tip)
        return expand.Expansion(written, what, shown, summary, wordings)

    def in_full(self, *targets: str | Address, ref: str = "") -> Compiler:
        """Return a compiler for `compile`: it shows messages in full, as `expand` does, and writes nothing."""
        store, names = self._to(ref).store, [name_of(each, "targets") for each in targets]
        return lambda context: compression.expand.expanded_messages(store, context, names)

    def tokens(self, what: str | Sequence[Given], *, model: str = "", ref: str = "") -> int:
        """Return how many tokens a text or messages would add to the context of a branch, in tokens of `token_count`.

        Args:
            what: a text, or messages as for `commit`.
            model: the model to count for; "" counts as for the model that answered last.
            ref: the branch; it may be unborn.

        Raises:
            InvalidMessageError: a message is not valid.
        """
        check.text(model=model)
        writer = self._to(ref)
        context = writer.contexts.compile(writer.store.refs.head().oid, model=model)
        if isinstance(what, str):
            return tokens_in(context, what)
        return sum(tokens_of(context, each) for each in history.draft.as_messages(what))

    def heat(self, context: CompiledContext) -> list[float]:
        """Return how much later messages use each message of a context, from 0 to 1."""
        check.instance(RenderableContext, context=context)
        return compression.suggest.Heat(context.messages).values

    def _to(self, ref: str) -> Writer:
        """Return the writer of a branch; "" is HEAD's."""
        check.text(ref=ref)
        writer = self._writer
        return writer.on(history.branches.find_line(writer.store, ref)) if ref else writer

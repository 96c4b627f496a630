"""A line: one branch, with the verbs of every day.

Rule: each verb is one call down, on a view of the store whose HEAD is the branch.
"""

from __future__ import annotations

from itertools import islice

import trace_store
from trace_store import history
from trace_store.base import check
from trace_store.base.oid import ObjectId
from trace_store.contracts.ref_names import SESSIONS
from trace_store.store import revision as revisions
from trace_store.store.revision import name_of
from trace_store.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from trace_store.context.compiled import CompiledContext
    from trace_store.context.compiler import Compiler, ContextCompiler
    from trace_store.history.blame import Blame
    from trace_store.history.commit import batch as Batch  # noqa: N812
    from trace_store.history.diff import ContextDiff
    from trace_store.history.draft import CommitResult, Content, Draft, Fact, Target
    from trace_store.history.log import LogEntry
    from trace_store.history.lookup import MessageState, UsageTotal, WordingVersion
    from trace_store.history.reset import Reset, StagedCommit
    from trace_store.history.status import Status
    from trace_store.history.usage_sums import UsageSums
    from trace_store.llm.contract import Model
    from trace_store.merge.conflicts import Answer
    from trace_store.merge.llm_assist.semantic import MergeProposal
    from trace_store.merge.move import MoveResult
    from trace_store.merge.result import Merge, Rewrite
    from trace_store.merge.revert import Revert
    from trace_store.merge.stopped import Stopped
    from trace_store.merge.todo import Step, Todo
    from trace_store.objects.address import Address
    from trace_store.providers.documents import Given
    from trace_store.refs.head import Head
    from trace_store.secrets.guard import Guard
    from trace_store.store.prices import Price
    from trace_store.store.revision import Revision
    from trace_store.writer import Writer


class Line:
    """One branch of an open repository. It need not be checked out, nor have a commit yet.

    Revisions such as `HEAD~2` start from the branch; one that names no commit raises RevisionNotFoundError. Each verb
    that writes makes one commit, or none if it would change nothing: `changed` of the result is False. An argument of
    the wrong type raises InvalidInputError, which names it.

    Arguments that most verbs have:

    - `ref`: another branch to work on.
    - `message`: the message of the commit.
    - `meta`: facts about the commit, such as `{"ticket": "T-12"}`; `log(meta="ticket=T-12")` finds it.
    - `private`: hash the content with a salt, so that its id cannot be used to guess it. The key is the user's own,
      outside the repository.
    - `favour`: "ours" or "theirs" resolves every conflict that it can. In a rebase, ours is the new base.
    - `resolver`: asked about each conflict. It returns "ours", "theirs", "both", a `Resolution`, or None to leave the
      conflict open, or to a model.
    - `judge`: a model, asked which messages may no longer mean what they meant; its use is recorded.
    - `model`, where contexts are read: the model to count tokens for; "" is that of the last report or answer, if any.

    Attributes:
        writer: the branch, for functions that write to one.
        store: a view of the stores below, whose HEAD is the branch.
    """

    store: Store

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.store = writer.store

    @property
    def contexts(self) -> ContextCompiler:
        """Compiles the contexts of the branch, and keeps their indexes open."""
        return self.writer.contexts

    @property
    def guard(self) -> Guard:
        """What looks for secrets in text that is stored."""
        return self.writer.guard

    @property
    def head(self) -> Head:
        """The branch, and the commit that it is at; None for a branch without commits."""
        self.store.check_open()
        return self.store.refs.head()

    def append(
        self,
        role: str | Given,
        content: Content | None = None,
        *,
        kind: str = "",
        name: str = "",
        model: str = "",
        id: str = "",
        message: str = "",
        meta: Mapping[str, Fact] | None = None,
        private: bool = False,
        ref: str = "",
    ) -> CommitResult:
        """Append one message: `append("user", "Hello")`, or a `Message` or provider's dictionary alone.

        Args:
            role, content: the role, and text or parts; or the whole message alone.
            kind: as in `Message`, as are `name`, `model` and `id`.

        Raises:
            InvalidMessageError, PurgedError: the message is not valid, or its content was purged.
            SecretFoundError: it holds a secret, and `secrets` is "block"; nothing was written.
            StateError, StorageError: its session is closed, or the disk failed; nothing was written.
        """
        given = history.draft.given_message(role, content, kind=kind, name=name, model=model, id=id)
        return self.commit([given], message=message, meta=meta, private=private, ref=ref)

    def commit(
        self,
        messages: Sequence[Given],
        *,
        message: str = "",
        private: bool = False,
        meta: Mapping[str, Fact] | None = None,
        settings: Mapping[str, Fact] | None = None,
        links: Sequence[tuple[str, Revision]] = (),
        ref: str = "",
    ) -> CommitResult:
        """Append messages as one commit. It raises as `append`.

        Args:
            messages: `Message` values, or dictionaries and objects of OpenAI, Anthropic, Gemini or LangChain.
            settings: what the messages were generated with, such as `{"temperature": 0.2}`; found like `meta`.
            links: commits that the new one is related to, each after the name of the relation, such as "answers". A
                linked commit stays as long as the one that links it.
        """
        writer = self._to(ref)
        if str(head := writer.store.refs.head_target()).startswith(SESSIONS):
            trace_store.sessions.facts.check_open(writer)
        if meta or settings or links:
            more: dict[str, Any] = {"meta": meta, "settings": settings, "links": links}
            return self._one(lambda d: d.extend(messages), ref, message, private=private, **more)
        check.text(message=message)
        if private is not False:
            check.flag(private=private)
        return history.commit.commit(writer, messages, message=message, private=private, head=head)

    def batch(self, message: str = "", *, private: bool = False, ref: str = "") -> Batch:
        """Collect operations for one commit in a `with` block; if the block raises, nothing is written.

        Raises:
            InvalidOperationError: an operation names a message that the context does not hold.
        """
        check.text(message=message)
        check.flag(private=private)
        return history.commit.batch(self._to(ref), message=message, private=private)

    def edit(
        self,
        target: Target,
        content: Content,
        *,
        call: str = "",
        all_results: bool = False,
        force: bool = False,
        private: bool = False,
        message: str = "",
        meta: Mapping[str, Fact] | None = None,
        ref: str = "",
    ) -> CommitResult:
        """Reword a message; earlier wordings stay readable.

        Args:
            content: text, which replaces its text or that of its tool result; or all of its parts.
            call: the id of a call, or its beginning: replace the text of its result; needed if there are several.
            all_results: replace the text of all its results instead.
            force: allow parts that leave out results, or calls that have results.

        Raises:
            MessageNotFoundError: the context does not hold the message.
            InvalidOperationError: it has no result of that call, or several results; or the new parts leave out a
                result, or a call that has one, without `force`. `.calls` holds the ids of the calls.
        """
        check.text(call=call)
        check.flag(all_results=all_results)

        def add(draft: Draft) -> None:
            draft.edit(target, content, call=call, all_results=all_results, force=force)

        return self._one(add, ref, message, meta, private=private)

    def annotate(
        self,
        targets: Target | Sequence[Target],
        *,
        priority: str | None = None,
        keep: str | Sequence[str] | None = None,
        labels: str | Sequence[str] = (),
        unlabels: str | Sequence[str] = (),
        message: str = "",
        meta: Mapping[str, Fact] | None = None,
        ref: str = "",
    ) -> CommitResult:
        """Set the priority, labels and must-keep patterns of messages.

        Args:
            priority: "pinned", "important", "normal" or "skip".
            keep: patterns that a summary must keep; they replace the ones that are set.
            labels: labels to add.
            unlabels: labels to remove.

        Raises:
            InvalidOperationError: there is no such priority, a label is not valid, or nothing is set.
            MessageNotFoundError: the context does not hold a message.
        """
        named = history.draft.targets_of(targets)
        marks: dict[str, Any] = {"keep": keep, "labels": labels, "unlabels": unlabels}
        return self._one(
            lambda draft: draft.annotate(named, priority=priority, **marks), ref, message, meta
        )

    def remove(
        self,
        targets: Target | Sequence[Target],
        *,
        ghost: bool = False,
        message: str = "",
        meta: Mapping[str, Fact] | None = None,
        ref: str = "",
    ) -> CommitResult:
        """Hide messages, with a short placeholder if `ghost`. It raises as `annotate`."""
        check.flag(ghost=ghost)
        named = history.draft.targets_of(targets)
        return self._one(lambda draft: draft.remove(named, ghost=ghost), ref, message, meta)

    def restore(
        self,
        targets: Target | Sequence[Target],
        *,
        version: int | None = None,
        message: str = "",
        meta: Mapping[str, Fact] | None = None,
        ref: str = "",
    ) -> CommitResult:
        """Show hidden messages again, and take other ones back by one wording.

        Args:
            version: show all of them in this version; 0 is the first.
        """
        check.count(version=version)
        named = history.draft.targets_of(targets)
        return self._one(lambda draft: draft.restore(named, version=version), ref, message, meta)

    def replace(
        self,
        targets: Target | Sequence[Target],
        messages: Sequence[Given],
        *,
        reason: str = "",
        model: str = "",
        prompt: str | None = None,
        sources: Sequence[Target] = (),
        message: str = "",
        meta: Mapping[str, Fact] | None = None,
        ref: str = "",
    ) -> CommitResult:
        """Replace messages at the position of the first one. It raises as `annotate`.

        Args:
            messages: the new messages; with an empty list the old ones are hidden.
            reason: why.
            model: the model that wrote the new ones.
            prompt: what the model was asked.
            sources: the messages that the model was shown.
        """
        named = history.draft.targets_of(targets)
        how: dict[str, Any] = {"model": model, "prompt": prompt, "sources": sources}
        return self._one(
            lambda draft: draft.replace(named, messages, reason=reason, **how), ref, message, meta
        )

    def move(
        self,
        targets: Target | Sequence[Target],
        *,
        after: Target | None = None,
        before: Target | None = None,
        last: bool = False,
        message: str = "",
        dry_run: bool = False,
        ref: str = "",
    ) -> MoveResult:
        """Move messages after or before another one, to the end, or by default to the beginning.

        They keep their order. A call and its results move together, and nothing is put between them.

        Args:
            after: the message to put them after.
            before: the message to put them before.
            last: put them at the end.
            dry_run: return what would move, and write nothing.

        Raises:
            MessageNotFoundError: the context does not show a message.
            InvalidOperationError: a message would be moved beside itself.
            InvalidInputError: no message is named, or several places are.
        """
        check.text(message=message)
        place = trace_store.merge.move.place_of(after, before, last)
        return trace_store.merge.move.move(
            *(self._to(ref), history.draft.targets_of(targets), *place),
            message=message,
            dry_run=dry_run,
        )

    def set_tools(
        self,
        schemas: Sequence[Mapping[str, Any]],
        *,
        message: str = "",
        meta: Mapping[str, Fact] | None = None,
        ref: str = "",
    ) -> CommitResult:
        """Set the tools that the model is offered."""
        return self._one(lambda draft: draft.set_tools(schemas), ref, message, meta)

    def record_usage(
        self,
        usage: Any,
        *,
        model: str = "",
        about: Revision | None = None,
        renderer: str = "",
        renderer_version: int = 0,
        sent: bytes = b"",
        message: str = "",
        ref: str = "",
    ) -> CommitResult:
        """Record the usage that a provider reported.

        Args:
            usage: the provider's dictionary or object, or a whole response.
            model: the model that answered; a whole response names it.
            about: the commit whose context was sent; None is the branch's.
            renderer: what wrote the request, as `renderer_version` its version.
            sent: the 32-byte hash of the exact bytes sent.

        Raises:
            InvalidInputError: the usage has no known shape.
            RevisionNotFoundError: there is no commit `about`.
        """
        writer = self._to(ref)
        named = None if about is None else name_of(about, "about")
        oid = None if named is None else revisions.resolve_commit(writer.store, named)
        sender: dict[str, Any] = {"renderer": renderer, "renderer_version": renderer_version}

        def add(draft: Draft) -> None:
            draft.record_usage(usage, model=model, about=oid, sent=sent, **sender)

        return self._one(add, ref, message)

    def compile(
        self,
        revision: Revision = "HEAD",
        *,
        at: Revision = "",
        strategy: str = "full",
        reasoning: bool = True,
        model: str = "",
        compiler: Compiler | None = None,
        budget: int | None = None,
        strict: bool = False,
        ref: str = "",
    ) -> CompiledContext:
        """Return what a model is shown at a revision.

        Args:
            revision: the commit.
            at: an earlier commit of it, or a time: then the newest commit along first parents that is not younger. A
                commit of another line means its time.
            strategy: "full" for all visible content; "messages" shows each commit as one line.
            reasoning: whether reasoning is rendered.
            compiler: makes other messages of the context, such as `repo.compression.in_full(address)`.
            budget: the most tokens; None is the configured budget, if any.
            strict: raise BudgetError if the context is over budget.

        Raises:
            BudgetError: the context is over budget; `needed` and `allowed` say by how much.
            InvalidInputError: there is no such strategy, or it makes its own messages and a compiler is given.
            RevisionNotFoundError: there is no such commit.
        """
        check.text(model=model)
        check.count(budget=budget)
        check.function(compiler=compiler)
        contexts, name = self._to(ref).contexts, name_of(revision)
        found = trace_store.context.compiler.compile(
            *(contexts, name, name_of(at, "at"), strategy),
            reasoning=reasoning,
            model=model,
            compiler=compiler,
        )
        if strict:
            trace_store.context.compiler.check_budget(contexts, found, budget)
        return found

    def resolve(self, revision: Revision, *, ref: str = "") -> ObjectId:
        """Return the id that a revision names; raises RevisionNotFoundError or AmbiguousRevisionError."""
        return revisions.resolve(self._to(ref).store, name_of(revision))

    def log(
        self,
        revision: Revision | list[Revision] = "HEAD",
        *,
        limit: int | None = None,
        everything: bool = False,
        trash: bool = False,
        first_parent: bool = False,
        in_lines: bool = False,
        tokens: bool = False,
        walked: Callable[[LogEntry], object] | None = None,
        unmatched: Callable[[str, str, list[str]], object] | None = None,
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
        ref: str = "",
    ) -> Iterator[LogEntry]:
        """Yield the commits of revisions or ranges that match all filters, newest first.

        Args:
            revision: a revision, a range `A..B` or `A...B`, or a list; `^A` in it excludes A with all its ancestors.
            limit: at most this many.
            everything: start from all refs and HEAD, too.
            trash: with `everything`, also from the trash.
            first_parent: follow only first parents, which make up the context.
            in_lines: never interleave lines of history, as for a graph.
            tokens: count the tokens of the context at each commit, for `LogEntry.growth`.
            walked: called with each commit that is read, also those that the filters leave out.
            unmatched: called with (filter, value, values there are) for each value that no commit has, if none matches.
            text: part of the text of a message or of the commit's message, ignoring case.
            kind, role: the kind and role of a message.
            tool: a tool that a message calls, or whose result it holds.
            path: a file or folder that a message mentions.
            priority: the commit sets this priority, or adds a message that has it in the context.
            label: the commit adds this label to a message.
            meta: the name of a fact or setting that the commit records, or `name=value`.
            author: part of the author's name, ignoring case.
            operation: the name of one of its operations.
            since, until: the first and last time: milliseconds since the epoch, a `datetime`, or text as "2 days ago".
            merges: True for merges alone, False for all others.
            follow: the address of a message that the commit adds or changes.

        Raises:
            RevisionNotFoundError: there is no such commit.
            InvalidInputError: a filter has no such value, or the limit is not a count.
        """
        line = self._to(ref)
        check.count(limit=limit)
        check.function(walked=walked, unmatched=unmatched)
        texts = {"text": text, "kind": kind, "role": role, "tool": tool, "path": path}
        texts |= {"priority": priority, "label": label}
        texts |= {"meta": meta, "author": author, "operation": operation}
        check.text(**texts)
        wanted = {**texts, "merges": merges, "follow": follow, "since": since, "until": until}
        how: dict[str, Any] = {"everything": everything, "trash": trash, "in_lines": in_lines}
        how |= {"first_parent": first_parent, "tokens": tokens, "walked": walked}
        names = [name_of(each) for each in (revision if isinstance(revision, list) else [revision])]
        return history.log.query(line, names, wanted, limit=limit, unmatched=unmatched, **how)

    def status(self, *, model: str = "", count_tokens: bool = True, ref: str = "") -> Status:
        """Return the state of the branch and of the repository.

        Counting tokens takes time if there are new messages.
        """
        check.text(model=model)
        return history.status.status(self._to(ref).contexts, model=model, count_tokens=count_tokens)

    def diff(
        self, before: Revision | None, after: Revision = "HEAD", *, model: str = "", ref: str = ""
    ) -> ContextDiff:
        """Return the differences between two contexts, in messages, words and tokens.

        `before` is a revision, None for an empty context, or a range `A..B` or `A...B` (from the merge base) for both.
        """
        check.text(model=model)
        old = None if before is None else name_of(before, "before")
        return history.diff.diff(self._to(ref).contexts, old, name_of(after, "after"), model=model)

    def blame(
        self, revision: Revision = "HEAD", *, address: str | Address | None = None, ref: str = ""
    ) -> Iterator[Blame]:
        """Yield for each message of a context, or for one, the commit that added it, and what was done to it since.

        Raises:
            MessageNotFoundError: the context does not hold the message.
        """
        return history.blame.blame(self._to(ref).contexts, name_of(revision), address)

    def get(self, what: Revision, *, ref: str = "") -> Any:
        """Return an object as a value: a `Commit`, a `Tag`, or the bytes of content.

        Raises:
            RevisionNotFoundError, ObjectNotFoundError: there is no such object.
            PurgedError, CorruptObjectError: its content was purged, or is damaged.
        """
        return history.lookup.get(self._to(ref).store, name_of(what, "what"))

    def message(
        self, address: str | Address, revision: Revision = "HEAD", *, ref: str = ""
    ) -> MessageState:
        """Return a message with its state in a context: priority, labels, whether it is hidden, its version.

        A message that HEAD's context does not hold is returned as the commit that created it has it.

        Raises:
            MessageNotFoundError: the context does not hold the message.
        """
        return history.lookup.message(self._to(ref).store, address, name_of(revision))

    def versions(
        self, address: str | Address, revision: Revision = "HEAD", *, ref: str = ""
    ) -> tuple[WordingVersion, ...]:
        """Return all versions of a message, oldest first. Arguments and errors as in `message`."""
        return history.lookup.versions(self._to(ref).store, address, name_of(revision))

    def usage(
        self, revision: Revision = "HEAD", *, limit: int | None = None, ref: str = ""
    ) -> Iterator[UsageTotal]:
        """Yield the usage that providers reported, newest first; `limit` is the most to return."""
        check.count(limit=limit)
        return islice(history.lookup.usage(self._to(ref).store, name_of(revision)), limit)

    def usage_by(
        self,
        way: str,
        revision: Revision = "HEAD",
        *,
        prices: Mapping[str, Price] | None = None,
        ref: str = "",
    ) -> UsageSums:
        """Return the sums of all reported usage, by "model", "tool" or "file".

        By tool or file, the input of each request is divided among the messages of its context by their tokens.

        Args:
            way: the kind of the rows.
            revision: the revision or range whose reports are added up.
            prices: by name of a model, as `store.read_prices` returns them; without them nothing has a cost.
            ref: as in `append`.

        Raises:
            InvalidInputError: there is no such way.
        """
        check.text(way=way)
        line = self._to(ref)
        return history.usage_sums.usage_sums(line.contexts, name_of(revision), way, prices)

    def merge(
        self,
        revision: Revision = "",
        *,
        strategy: str = "append",
        favour: str = "",
        fast_forward: str = "allowed",
        squash: bool = False,
        unrelated: bool = False,
        message: str = "",
        resolver: Answer | None = None,
        model: Model | None = None,
        review: Callable[[MergeProposal], bool] | None = None,
        ref: str = "",
    ) -> Merge | Stopped:
        """Merge another branch into this one.

        With open conflicts nothing is written: what is returned is `Stopped`, with `conflicts`, `resolve`, `continue_`
        and `abort`. In memory a stopped merge cannot be continued; call the verb again with a resolver.

        Args:
            revision: what to merge; "" joins the tips of a diverged branch, and otherwise is its upstream.
            strategy: "append" (theirs after ours), "interleave" (by time), "ours", "theirs", "decisions" (only what
                has that label), or "semantic" (`model` resolves conflicts, and may sum up).
            fast_forward: "allowed", "never" or "only".
            squash: bring the messages in as a commit with one parent.
            unrelated: allow histories that share no commit.
            message: the message of the commit; "" names what was merged.
            model: asked by the strategy "semantic": an `HttpModel` or any callable.
            review: returns whether to accept what the model proposes; None accepts what is valid.

        Raises:
            StateError: another operation is in progress, the branch cannot be fast-forwarded and that was asked for,
                or a semantic merge has no model.
            DetachedHeadError: HEAD is on no branch.
            RevisionNotFoundError: there is no such commit.
            InvalidInputError: there is no such strategy, or the histories share nothing and `unrelated` is False.
            ModelError, BudgetError, ConflictError: the model fails, is asked too much, or its proposal is rejected.
            RefChangedError: others keep moving the branch; each time the merge is retried.
        """
        check.text(message=message, strategy=strategy, favour=favour, fast_forward=fast_forward)
        check.flag(squash=squash, unrelated=unrelated)
        check.function(model=model, review=review)
        merge, writer = trace_store.merge, self._to(ref)
        wanted = (strategy, favour, fast_forward, squash, unrelated, message)
        options = merge.result.MergeOptions(*wanted)
        asked = model if strategy == merge.inputs.SEMANTIC else None
        advisor = asked and merge.llm_assist.semantic.Advisor(writer.contexts, asked, review=review)
        result = merge.merge.merge(
            *(writer, name_of(revision), options),
            resolver=resolver,
            advise=advisor,
        )
        return trace_store.merge.stopped.result_of(writer, result)

    def cherry_pick(
        self,
        *wanted: Revision | Address,
        at: Revision = "",
        after: str | Address = "",
        favour: str = "",
        resolver: Answer | None = None,
        judge: Model | None = None,
        ref: str = "",
    ) -> Rewrite | Stopped:
        """Bring commits, ranges `A..B` or single messages to the end of the branch; stops as `merge`.

        Args:
            wanted: revisions, and addresses of messages, in the order to pick them.
            at: the revision in whose context single messages are taken; "" is the commit that created each.
            after: the message of the branch after which single messages are put; "" is the end.

        Raises:
            MessageNotFoundError: a message is not here.
            InvalidInputError: a range is empty, nothing is wanted, or a commit is to be put after a message.
            As `merge`.
        """
        check.function(judge=judge)
        writer = self._to(ref)
        result = trace_store.merge.cherry_pick.cherry_pick(
            writer,
            [name_of(each, "wanted") for each in wanted],
            at=name_of(at, "at"),
            after=name_of(after, "after"),
            favour=favour,
            resolver=resolver,
            judge=judge,
        )
        return trace_store.merge.stopped.result_of(writer, result)

    def rebase(
        self,
        upstream: Revision | None = "",
        *,
        onto: Revision = "",
        plan: Callable[[Todo], Sequence[Step]] | None = None,
        drop_pinned: bool = False,
        favour: str = "",
        resolver: Answer | None = None,
        judge: Model | None = None,
        ref: str = "",
    ) -> Rewrite | Stopped:
        """Reapply the commits of the branch on top of another base; stops as `merge`.

        Args:
            upstream: what stays as it is, with all its ancestors; "" is the branch's upstream, None reapplies all
                commits of the branch.
            onto: the new base; "" is `upstream`.
            plan: given a `Step` for each commit, oldest first, returns the steps to do, in order.
            drop_pinned: whether a pinned message may be dropped.

        Raises:
            UnbornBranchError, RefChangedError: the branch has no commit, or was moved elsewhere meanwhile.
            ConflictError, InvalidInputError: a pinned message would be dropped, or the plan is not valid.
            As `merge`.
        """
        check.function(plan=plan, judge=judge)
        check.flag(drop_pinned=drop_pinned)
        writer = self._to(ref)
        result = trace_store.merge.rebase.rebase(
            writer,
            None if upstream is None else name_of(upstream, "upstream"),
            onto=name_of(onto, "onto"),
            plan=plan,
            drop_pinned=drop_pinned,
            favour=favour,
            resolver=resolver,
            judge=judge,
        )
        return trace_store.merge.stopped.result_of(writer, result)

    def todo(self, upstream: Revision | None = "", *, onto: Revision = "", ref: str = "") -> Todo:
        """Return the steps of a rebase, oldest first, without doing them: what the `plan` of `rebase` is given.

        They are also a text for an editor: `text` and `read` of the result. Arguments and errors as in `rebase`.
        """
        store = self._to(ref).store
        base = None if upstream is None else name_of(upstream, "upstream")
        return trace_store.merge.rebase.RebaseRange(store, base, name_of(onto, "onto")).steps

    def revert(
        self,
        *wanted: Revision,
        message: str = "",
        favour: str = "",
        resolver: Answer | None = None,
        ref: str = "",
    ) -> Revert | Stopped:
        """Revert commits by new ones, a range newest first; all of them, or none. It stops as `merge`.

        Args:
            wanted: revisions and ranges.
            message: the message of the commits.
            favour: if something later changed the same, "ours" keeps that change and "theirs" reverts it too.

        Raises:
            InvalidInputError: nothing is wanted, or there is no such side to favour.
            SecretFoundError: the message holds a secret, and `secrets` is "block".
            As `merge`.
        """
        check.text(message=message)
        writer = self._to(ref)
        result = trace_store.merge.revert.revert(
            writer,
            [name_of(each, "wanted") for each in wanted],
            message=message,
            favour=favour,
            resolver=resolver,
        )
        return trace_store.merge.stopped.result_of(writer, result)

    def reset(self, revision: Revision = "HEAD", *, hard: bool = False, ref: str = "") -> Reset:
        """Move the branch to a commit, and return where it was and what keeps that.

        What came after the commit is staged for `commit_staged`; with `hard` it goes to the trash.

        Raises:
            RevisionNotFoundError: there is no such commit.
            StateError: an operation of the branch is in progress.
        """
        check.flag(hard=hard)
        step = history.reset.reset_hard if hard else history.reset.reset_soft
        return step(self._to(ref), name_of(revision))

    def commit_staged(self, message: str = "", *, ref: str = "") -> StagedCommit:
        """Commit what `reset` staged, as one commit; "" joins the messages of the staged commits.

        Raises:
            StateError: nothing is staged, the branch has moved since, or it has an operation in progress.
            SecretFoundError: the message holds a secret, and `secrets` is "block".
        """
        check.text(message=message)
        return history.reset.commit_staged(self._to(ref), message)

    def _to(self, ref: str) -> Writer:
        """Return the writer of a branch; "" is this one."""
        check.text(ref=ref)
        return self.writer.on(ref) if ref else self.writer

    def _one(
        self,
        add: Callable[[Draft], object],
        ref: str,
        message: str,
        meta: Mapping[str, Fact] | None = None,
        *,
        private: bool = False,
        settings: Mapping[str, Fact] | None = None,
        links: Sequence[tuple[str, Revision]] = (),
    ) -> CommitResult:
        """Write one commit with the operations that `add` puts in a draft."""
        check.text(message=message)
        check.flag(private=private)
        writer = self._to(ref)
        draft = history.draft.Draft(writer, private=private)
        add(draft)
        if meta or settings:
            draft.configure(meta=meta, settings=settings)
        linked = [
            (relation, revisions.resolve_commit(writer.store, name_of(each, "links")))
            for relation, each in links
        ]
        return history.commit.write(draft, message=message, links=linked)

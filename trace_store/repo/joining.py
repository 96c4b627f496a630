"""Lines of history that come together: merges, picks, rebases, reverts, and what waits for somebody to settle it."""

from __future__ import annotations

from trace_store import merge
from trace_store.errors import InvalidInputError
from trace_store.merge import llm_assist
from trace_store.merge.inputs import APPEND, SEMANTIC
from trace_store.repo.handle import Handle, name_of, several_targets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from trace_store.history.draft import Target
    from trace_store.llm.contract import Model
    from trace_store.merge.conflicts import Conflict, Resolution, Resolver
    from trace_store.merge.in_progress import Stop
    from trace_store.merge.llm_assist.semantic import Proposal
    from trace_store.merge.move import MoveResult
    from trace_store.merge.result import Merge, Rewrite
    from trace_store.merge.revert import Revert
    from trace_store.merge.todo import Step
    from trace_store.objects.address import Address
    from trace_store.repo.handle import Revision

    Settle: TypeAlias = Callable[[Conflict], Resolution | str | None]


class Joining(Handle):
    """Other lines of history, brought to HEAD's branch.

    A `resolver` is asked about each conflict. It returns "ours", "theirs", "both", a `Resolution`, or None to leave the
    conflict open. With open conflicts nothing is written, and the outcome is "stopped": `conflicts` and `settle` see
    to them, `resume` goes on, `abort` gives up. In memory nothing waits: the verb is called again, with a resolver.
    """

    def merge(
        self,
        revision: Revision = "",
        *,
        strategy: str = APPEND,
        favour: str = "",
        fast_forward: str = "allowed",
        squash: bool = False,
        unrelated: bool = False,
        message: str = "",
        resolver: Settle | None = None,
        model: Model | None = None,
        review: Callable[[Proposal], bool] | None = None,
    ) -> Merge:
        """Bring another line of history into HEAD's branch.

        Args:
            revision: what to merge; "" joins the branch's own tips when it is diverged, and else means its upstream.
            strategy: "append" (theirs after ours), "interleave" (by time), "ours", "theirs", "decisions" (only what
                has that label), or "semantic" (`model` settles conflicts, and may sum up).
            favour: "ours" or "theirs" settles every conflict that it can.
            fast_forward: "allowed", "never" or "only".
            squash: bring copies of the messages in, as a commit with one parent.
            unrelated: whether histories that share no commit may be merged.
            message: what to say about the commit; "" names what was merged.
            resolver: asked about each conflict, before a model is asked about those that it leaves.
            model: asked by the strategy "semantic": an `HttpModel` or any callable. Nothing else asks one.
            review: looks at what the model proposes, and returns whether it is taken; None takes what is valid.

        Raises:
            StateError: something waits already, the branch cannot go forward and that was asked for, or a semantic
                merge has no model.
            DetachedHeadError: HEAD is on no branch.
            RevisionNotFoundError: there is no such commit.
            InvalidInputError: there is no such strategy, or the histories share nothing and that was not allowed.
            ModelError, BudgetError, ConflictError: the model fails, is asked too much, or was not followed.
            RefChangedError: others move the branch again and again; each time the merge was made anew on top.
        """
        options = merge.result.MergeOptions(
            strategy=strategy,
            favour=favour,
            fast_forward=fast_forward,
            squash=squash,
            unrelated=unrelated,
            message=message,
        )
        asks = strategy == SEMANTIC and model is not None
        advise = (
            llm_assist.semantic.Advisor(self.store, model, review=review)
            if asks and model
            else None
        )
        found = merge.merge.merge(
            self.store,
            name_of(revision),
            options,
            author=self.author,
            guard=self.guard,
            resolver=_resolver(resolver),
            advise=advise,
        )
        self._schedule.seal_if_due()
        return found

    def cherry_pick(
        self,
        *wanted: Revision | Address,
        at: Revision = "",
        favour: str = "",
        resolver: Settle | None = None,
        judge: Model | None = None,
    ) -> Rewrite:
        """Put copies of commits, ranges `A..B` or single messages at the end of HEAD's branch.

        Args:
            wanted: revisions, and addresses of messages, in the order to pick them.
            at: the revision in whose context single messages are taken; "" is the commit that made each.
            favour: "ours" or "theirs" settles every conflict that it can.
            resolver: asked about each conflict.
            judge: a model, asked which messages may no longer mean what they meant; its use is recorded.

        Raises:
            StateError: something waits already.
            DetachedHeadError: HEAD is on no branch.
            RevisionNotFoundError, MessageNotFoundError: something that is wanted is not here.
            InvalidInputError: a range is empty, or nothing is wanted.
            RefChangedError: others move the branch again and again.
        """
        found = merge.cherry_pick.cherry_pick(
            self.store,
            [name_of(each) for each in wanted],
            author=self.author,
            at=name_of(at),
            favour=favour,
            guard=self.guard,
            resolver=_resolver(resolver),
            judge=None if judge is None else llm_assist.review.Judge(self.store, judge),
        )
        self._schedule.seal_if_due()
        return found

    def rebase(
        self,
        upstream: Revision | None = "",
        *,
        onto: Revision = "",
        plan: Callable[[Sequence[Step]], Sequence[Step]] | None = None,
        drop_pinned: bool = False,
        favour: str = "",
        resolver: Settle | None = None,
        judge: Model | None = None,
    ) -> Rewrite:
        """Make the commits of HEAD's branch since another anew, on top of that.

        Args:
            upstream: what stays as it is: everything in its past; "" is the branch's upstream, None makes all of the
                branch anew.
            onto: what the commits go on; "" is upstream, or nothing.
            plan: given a `joining.Step` for each commit, oldest first, returns those to do, in the order to do them.
            drop_pinned: whether a pinned message may be dropped.
            favour: "ours" or "theirs" settles every conflict that it can; ours is what they go on.
            resolver: asked about each conflict.
            judge: a model, asked which messages may no longer mean what they meant; its use is recorded.

        Raises:
            StateError: something waits already.
            DetachedHeadError, UnbornBranchError: HEAD is on no branch, or its branch has no commit.
            RevisionNotFoundError: there is no such commit, or nothing is named and the branch has no upstream.
            ConflictError: a pinned message would be dropped.
            InvalidInputError: the plan is not sound.
            RefChangedError: the branch moved meanwhile.
        """
        found = merge.rebase.rebase(
            self.store,
            None if upstream is None else name_of(upstream),
            author=self.author,
            onto=name_of(onto),
            plan=plan,
            drop_pinned=drop_pinned,
            favour=favour,
            guard=self.guard,
            resolver=_resolver(resolver),
            judge=None if judge is None else llm_assist.review.Judge(self.store, judge),
        )
        self._schedule.seal_if_due()
        return found

    def revert(
        self,
        *wanted: Revision,
        message: str = "",
        favour: str = "",
        resolver: Settle | None = None,
    ) -> Revert:
        """Take commits back by new commits, those of a range newest first; all of them, or none.

        Args:
            wanted: revisions and ranges.
            message: what to say about it.
            favour: where something later changed the same, "ours" keeps that, and "theirs" takes back all the same.
            resolver: asked about each such conflict.

        Raises:
            StateError: a commit changed nothing that could be taken back, or something waits already.
            RevisionNotFoundError, UnbornBranchError: there is no such commit, or HEAD has none.
            InvalidInputError: nothing is wanted, or there is no such side to favour.
            SecretFoundError: the message holds a secret, and `secrets` is "block".
            RefChangedError: others move the branch again and again.
        """
        found = merge.revert.revert(
            self.store,
            [name_of(each) for each in wanted],
            author=self.author,
            message=self._said(message),
            favour=favour,
            guard=self.guard,
            resolver=_resolver(resolver),
        )
        self._schedule.seal_if_due()
        return found

    def move(
        self,
        targets: Target | Sequence[Target],
        *,
        after: Target | None = None,
        before: Target | None = None,
        last: bool = False,
        message: str = "",
        dry_run: bool = False,
    ) -> MoveResult:
        """Place messages after a neighbour, before one, or last; without any of these first.

        A call and its results move as one, and nothing is put between them.

        Args:
            targets: the messages; they keep their order.
            after: the one that they come after.
            before: the one that they come before.
            last: whether they come last.
            message: what to say about it.
            dry_run: whether to write nothing, and only tell.

        Raises:
            MessageNotFoundError: the context does not show such a message.
            InvalidOperationError: a message would be placed beside itself.
            InvalidInputError: no message is named, or several places are.
        """
        places = [("after", after), ("before", before), ("last", "" if last else None)]
        given = [(where, beside) for where, beside in places if beside is not None]
        if len(given) > 1:
            raise InvalidInputError("give one of after, before and last")
        where, beside = given[0] if given else ("first", "")
        found = merge.move.move(
            self.store,
            several_targets(targets),
            where,
            beside or "",
            author=self.author,
            message=self._said(message),
            dry_run=dry_run,
        )
        self._schedule.seal_if_due()
        return found

    def waiting(self) -> Stop | None:
        """Return what stopped at conflicts and waits for somebody to settle them, or None.

        Raises:
            FormatError: what is known of it is damaged; `abort` forgets it.
        """
        self.store.check_open()
        return merge.in_progress.read_stop(self.store)

    def conflicts(self) -> tuple[Conflict, ...]:
        """Return the conflicts that nobody settled yet, of what waits; nothing when nothing waits."""
        return merge.resolve.open_conflicts(self.store) if self.waiting() else ()

    def settle(
        self, which: str | int | Address | Conflict, how: Resolution | str, text: str = ""
    ) -> tuple[Conflict, ...]:
        """Settle a conflict of what waits, or settle it anew, and return those that are left.

        Args:
            which: the conflict; or its number, the address of its message, "all" open ones, or "" for the only one. A
                number may be text, as may an address.
            how: "ours", "theirs", "both", or "text" with what the message says from now on.
            text: that.

        Raises:
            StateError: nothing waits.
            InvalidInputError: there is no such conflict, or it is not settled so.
        """
        self.store.check_open()
        if text and how != "text":
            raise InvalidInputError('a text stands in the resolution, or beside the word "text"')
        said = merge.conflicts.Resolution(how, text) if isinstance(how, str) else how
        if isinstance(which, merge.conflicts.Conflict):
            found = merge.resolve.met_conflicts(self.store)
            numbers = [each.number for each in found if each.key == which.key]
            which = str(numbers[0]) if numbers else which.key
        elif isinstance(which, tuple):
            which = name_of(which)
        return merge.resolve.resolve(self.store, str(which), said)

    def resume(
        self,
        *,
        skip: bool = False,
        message: str = "",
        resolver: Settle | None = None,
        judge: Model | None = None,
    ) -> Merge | Revert | Rewrite:
        """Go on with what waits, on what the branch is by now; with `skip` without the step that it stopped at.

        Args:
            skip: leave out what stopped.
            message: what to say about a merge.
            resolver: asked about each conflict that is still open.
            judge: a model, as in `rebase`.

        Raises:
            StateError: nothing waits.
            RefChangedError: the branch is gone, or was moved elsewhere than on since a rebase began.
        """
        found = merge.resolve.resume(
            self.store,
            author=self.author,
            message=message,
            guard=self.guard,
            resolver=_resolver(resolver),
            judge=None if judge is None else llm_assist.review.Judge(self.store, judge),
            skip=skip,
        )
        self._schedule.seal_if_due()
        return found

    def abort(self) -> Stop:
        """Give up what waits, and return what it was; refs and journal are as they were before it began.

        Raises:
            StateError: nothing waits.
        """
        return merge.resolve.abort(self.store)


def _resolver(given: Settle | None) -> Resolver | None:
    """Return what answers with resolutions, given what may answer with the word for one."""
    if given is None:
        return None

    def ask(conflict: Conflict) -> Resolution | None:
        said = given(conflict)
        return merge.conflicts.Resolution(said) if isinstance(said, str) else said

    return ask

"""Operations in progress: a stopped merge, pick, revert or rebase, and a bisection.

Rule: what stopped is bound to the branch that it began on, wherever HEAD is by now. A bisection does not move HEAD.
"""

from __future__ import annotations

from trace_store import check, errors, history, merge
from trace_store.repo.handle import name_of, resolver_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias, TypeVar

    from trace_store.context.compiled import CompiledContext
    from trace_store.history.bisect import Bisection, BisectStep, Verdict
    from trace_store.llm.contract import Model
    from trace_store.merge.conflicts import Conflict, Resolution
    from trace_store.merge.in_progress import Stop
    from trace_store.merge.result import Merge, Rewrite
    from trace_store.merge.revert import Revert
    from trace_store.objects.address import Address
    from trace_store.repo.handle import Answer, Handle, Revision

    Outcome: TypeAlias = Merge | Rewrite | Revert
    Made = TypeVar("Made", bound=Outcome)

_OF_SUCCESS = frozenset(
    (
        *("addresses", "after", "changed", "commit", "dropped", "hidden", "included", "made"),
        *("message_count", "oid", "parents", "result", "there", "token_count"),
    )
)
"""What only a finished merge, pick, revert or rebase has."""


class Stopped:
    """A merge, pick, revert or rebase that stopped at conflicts. Nothing was written.

    Reading from it what only a finished one has (`after`, `made`, `oid`, …) raises StateError.

    Attributes:
        outcome: "stopped".
        kind: "merge", "cherry-pick", "revert" or "rebase"; "" if its file is damaged.
        ref: full name of the branch that it began on.
        before: the commit that the branch was at; None for a branch without commits.
        step: the commit or step of a list that it stopped at, as far as this is known.
        so_far: its result up to the stop, of which nothing is written; None unless the verb just returned.
        warnings: messages that may no longer mean what they meant.
    """

    def __init__(self, handle: Handle, stop: Stop | None, found: Outcome | None = None) -> None:
        self._handle = handle
        self._stop = stop
        self.so_far = found
        self._conflicts: tuple[Conflict, ...] | None = None if found is None else found.conflicts
        self._settled: tuple[Conflict, ...] | None = None if found is None else found.settled
        self.outcome = merge.result.STOPPED
        self.kind = "" if stop is None else stop.kind
        self.ref = "" if stop is None else stop.ref
        self.before = None if stop is None else stop.before
        if found is not None:
            self.ref, self.before = found.ref or self.ref, found.before
        self.step: object = getattr(found, "step", None)
        self.warnings: tuple[Any, ...] = getattr(found, "warnings", ())

    def __repr__(self) -> str:
        return f"Stopped({self.description})"

    def __getattr__(self, name: str) -> Any:
        if name in _OF_SUCCESS:
            raise errors.StateError(
                f"{self.description} stopped at conflicts, so it has no {name}",
                code=errors.ErrorCode.IN_PROGRESS,
                ref=self.ref,
                kind=self.kind,
            )
        raise AttributeError(f"a stopped {self.kind or 'operation'} has no {name!r}")

    @property
    def description(self) -> str:
        """What is in progress, in words: `a merge of idea into main`."""
        if self._stop is not None:
            return self._stop.said
        return f"an operation on {self.ref}" if self.ref else "a damaged operation"

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The conflicts that are still open.

        Raises:
            StateError: it is no longer in progress.
            FormatError: its file is damaged; only `abort` helps.
        """
        if self._conflicts is None:
            self._conflicts, self._settled = self._look()
        return self._conflicts

    @property
    def settled(self) -> tuple[Conflict, ...]:
        """The conflicts that are resolved; each can be resolved again. It raises as `conflicts`."""
        if self._settled is None:
            self._conflicts, self._settled = self._look()
        return self._settled

    def conflict(self, which: str) -> Conflict:
        """Return the conflict with a number, or about the message whose address starts with a text.

        Raises:
            InvalidInputError: there is none, or there are several.
        """
        return merge.resolve.find_conflict([*self.conflicts, *self.settled], which)

    def resolve(
        self, which: str | int | Address | Conflict, how: Resolution | str, text: str = ""
    ) -> tuple[Conflict, ...]:
        """Resolve a conflict, or change its resolution, and return the conflicts that are still open.

        Args:
            which: the conflict, its number, the address of its message, "all" open ones, or "" for the only one.
            how: "ours", "theirs", "both", or "text" with the text that the message has from now on.
            text: that text.

        Raises:
            StateError: it is no longer in progress.
            InvalidInputError: there is no such conflict, or it cannot be resolved so.
        """
        self._check()
        store = self._handle.store
        if text and how != "text":
            raise errors.InvalidInputError(
                'text: give it in the resolution, or beside the word "text"', argument="text"
            )
        resolution = merge.conflicts.Resolution(how, text) if isinstance(how, str) else how
        if isinstance(which, merge.conflicts.Conflict):
            met = merge.resolve.met_conflicts(store)
            numbers = [each.number for each in met if each.key == which.key]
            which = str(numbers[0]) if numbers else which.key
        elif isinstance(which, tuple):
            which = name_of(which, "which")
        self._conflicts = merge.resolve.resolve(store, str(which), resolution)
        self._settled = None
        return self._conflicts

    def continue_(
        self,
        *,
        skip: bool = False,
        message: str = "",
        resolver: Answer | None = None,
        judge: Model | None = None,
        drop_pinned: bool = False,
    ) -> Outcome | Stopped:
        """Continue on what the branch is by now. Return the result, or what it stopped at next.

        Args:
            skip: leave out the step that stopped.
            message: the message of a merge commit.
            resolver: asked about each conflict that is still open.
            judge: a model, as in `rebase`.
            drop_pinned: whether a rebase may drop pinned messages.

        Raises:
            StateError: it is no longer in progress.
            RefChangedError: the branch is gone, or was moved elsewhere since a rebase began.
            ConflictError: a pinned message would be dropped.
        """
        check.flag(skip=skip)
        check.text(message=message)
        stop = self._check()
        handle = self._handle
        found = merge.resolve.resume(
            handle.store,
            author=handle.author,
            kind=stop.kind,
            message=handle.redacted(message),
            guard=handle.guard,
            resolver=resolver_of(resolver),
            judge=None if judge is None else merge.llm_assist.review.Judge(handle.store, judge),
            skip=skip,
            drop_pinned=drop_pinned,
        )
        return result_of(handle, found)

    def abort(self) -> None:
        """Give it up; refs and journal are as they were before it began.

        Raises:
            StateError: it is no longer in progress.
        """
        if self._stop is not None:
            self._check()
        merge.resolve.abort(self._handle.store)

    def _look(self) -> tuple[tuple[Conflict, ...], tuple[Conflict, ...]]:
        """Return the conflicts that are open, and those that were resolved."""
        self._check()
        met = merge.resolve.met_conflicts(self._handle.store)
        open_ = tuple(each for each in met if each.resolution is None)
        return open_, tuple(each for each in met if each.resolution is not None)

    def _check(self) -> Stop:
        """Return what the file says, and raise StateError if that is another operation, or none."""
        store = self._handle.store
        store.check_open()
        now = merge.in_progress.required_stop(store)
        if self._stop is not None and _identity(now) != _identity(self._stop):
            raise errors.StateError(
                f"{self.description} is not in progress any more: {now.said} is",
                code=errors.ErrorCode.NOTHING_IN_PROGRESS,
                kind=self.kind,
                waiting=now.kind,
            )
        return now


def _identity(stop: Stop) -> tuple[object, ...]:
    inputs = {name: value for name, value in stop.inputs.items() if name in ("name", "commits")}
    return stop.kind, stop.ref, inputs


def required(handle: Handle, kind: str) -> Stopped:
    """Return the operation in progress, as `Branches.stopped` does."""
    found = in_progress(handle)
    if found is None or (kind and found.kind not in ("", kind)):
        merge.in_progress.required_stop(handle.store, kind)
    assert found is not None
    return found


def in_progress(handle: Handle) -> Stopped | None:
    """Return the merge, pick, revert or rebase that is in progress in a repository, or None."""
    try:
        stop = merge.in_progress.read_stop(handle.store)
    except errors.FormatError:
        return Stopped(handle, None)
    return None if stop is None else Stopped(handle, stop)


def result_of(handle: Handle, found: Made) -> Made | Stopped:
    """Return the result of a merge, pick, revert or rebase, as `Stopped` if it stopped; seal if that is due."""
    handle.schedule.seal_if_due()
    if found.outcome != merge.result.STOPPED:
        return found
    stop = merge.in_progress.read_stop(handle.store)
    return Stopped(handle, stop, found)


class OngoingBisection:
    """A bisection in progress in this working copy. HEAD does not move.

    A point is the id of a commit. In a bisection of messages it is a number n: the context is cut after n messages.

    Attributes:
        state: what is bisected, and the verdicts so far.
    """

    def __init__(self, handle: Handle, state: Bisection) -> None:
        self._handle = handle
        self.state = state

    @property
    def next(self) -> BisectStep:
        """The point to test next, or the result."""
        contexts = self._handle.contexts
        count = history.bisect.message_count(contexts, self.state)
        return history.bisect.next_step(contexts.store, self.state, count)

    def context(self, point: str = "") -> CompiledContext:
        """Return the context at a point; "" is the next one.

        Raises:
            StateError: the bisection is finished, and no point is named.
            RevisionNotFoundError, InvalidInputError: there is no such point.
        """
        contexts = self._handle.contexts
        found = history.bisect.point_of(contexts, self.state, point) if point else self._point()
        return history.bisect.context_at(contexts, self.state, found)

    def mark(self, word: str, *points: Revision | int) -> BisectStep:
        """Mark points as "good", "bad" or "skip", by default the next one; return the next point, or the result.

        Raises:
            InvalidInputError: the marks contradict each other, or there is no such word or message.
            RevisionNotFoundError: there is no such commit.
            StateError: the bisection is finished, and no point is named.
        """
        if word not in history.bisect.WORDS:
            raise errors.InvalidInputError(
                f"not one of {', '.join(history.bisect.WORDS)}: {str(word)[:40]!r}", argument="word"
            )
        before = self.state
        for point in points or (self._point(),):
            text = str(point) if isinstance(point, int) else name_of(point, "points")
            found = history.bisect.point_of(self._handle.contexts, before, text)
            self.state = self.state.with_verdict(history.bisect.Verdict(word, found))
        try:
            step = self.next
        except errors.InvalidInputError:
            self.state = before
            raise
        self._save(self.state)
        return step

    def run(
        self,
        test: Callable[[CompiledContext], bool | None],
        *,
        repeat: int = 1,
        threshold: int | None = None,
        progress: Callable[[Verdict], object] | None = None,
    ) -> BisectStep:
        """Test points until the result is known, and return it. Points that were marked by hand are tested first.

        Args:
            test: returns whether a context is good: True, False, or None if it cannot tell.
            repeat: how often each point is tested.
            threshold: how many failures make a point bad; None requires that all runs agree.
            progress: receives each verdict; its word is "" if the runs disagree.

        Raises:
            StateError: the test contradicts a mark.
            ConflictError: runs disagree, and there is no threshold.
            InvalidInputError: `threshold` exceeds `repeat`.
        """
        check.function(test=test, progress=progress)
        check.count(repeat=repeat, threshold=threshold)
        if threshold is not None and threshold > repeat:
            raise errors.InvalidInputError("threshold exceeds repeat", argument="threshold")
        self.state, step = history.bisect.run(
            self._handle.contexts,
            self.state,
            test,
            repeat=repeat,
            threshold=threshold,
            progress=progress,
            keep=self._save,
        )
        return step

    def _point(self) -> str:
        """Return the next point."""
        step = self.next
        if step.is_done:
            raise errors.StateError(
                "the search is finished", code=errors.ErrorCode.BISECTION_FINISHED
            )
        return step.point

    def _save(self, state: Bisection) -> None:
        self.state = state
        history.bisect.save(self._handle.store, state)

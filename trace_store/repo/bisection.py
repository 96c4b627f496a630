"""A bisection in progress: the search for the first bad commit or message."""

from __future__ import annotations

from trace_store import errors, history
from trace_store.repo.handle import check_callable, check_count, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.context.compiled import CompiledContext
    from trace_store.history.bisect import Bisection, Step, Verdict
    from trace_store.repo.handle import Handle, Revision


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
    def next(self) -> Step:
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

    def mark(self, word: str, *points: Revision | int) -> Step:
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
    ) -> Step:
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
        check_callable(test=test, progress=progress)
        check_count(repeat=repeat, threshold=threshold)
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

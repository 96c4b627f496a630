"""A stopped merge, pick, revert or rebase, as callers get it.

Rule: it is bound to the branch that it began on, wherever HEAD is by now.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base import check
from trace_store.merge import conflicts, in_progress, resolve, result
from trace_store.refs.head import NAME
from trace_store.store.revision import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypeVar

    from trace_store.llm.contract import Model
    from trace_store.merge.conflicts import Answer, Conflict, Resolution
    from trace_store.merge.in_progress import Stop
    from trace_store.merge.result import Merge, Rewrite
    from trace_store.merge.revert import Revert
    from trace_store.objects.address import Address
    from trace_store.store.store import Store
    from trace_store.writer import Writer

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

    JSON = "kind ref"

    def __init__(self, writer: Writer, stop: Stop | None, found: Outcome | None = None) -> None:
        self._writer = writer
        self._stop = stop
        self.so_far = found
        self._conflicts: tuple[Conflict, ...] | None = None if found is None else found.conflicts
        self._settled: tuple[Conflict, ...] | None = None if found is None else found.settled
        self.outcome = result.STOPPED
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
        if name.startswith("_"):  # also on an object that is being copied and has no fields yet
            raise AttributeError(name)
        if name in _OF_SUCCESS:
            raise errors.StateError(
                f"{self.description} stopped at conflicts, so it has no {name}",
                code=errors.ErrorCode.IN_PROGRESS,
                ref=self.ref,
                kind=self.kind,
            )
        raise AttributeError(f"a stopped {self.kind or 'operation'} has no {name!r}")

    @property
    def store(self) -> Store:
        """The stores, as a view whose HEAD is the branch."""
        return self._writer.store

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
        return resolve.find_conflict([*self.conflicts, *self.settled], which)

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
        if text and how != "text":
            raise errors.InvalidInputError(
                'text: give it in the resolution, or beside the word "text"', argument="text"
            )
        resolution = conflicts.Resolution(how, text) if isinstance(how, str) else how
        if isinstance(which, conflicts.Conflict):
            met = resolve.met_conflicts(self._writer)
            numbers = [each.number for each in met if each.key == which.key]
            which = str(numbers[0]) if numbers else which.key
        elif isinstance(which, tuple):
            which = name_of(which, "which")
        self._conflicts = resolve.resolve(self._writer, str(which), resolution)
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
        check.function(judge=judge)
        stop = self._check()
        writer = self._writer
        done = resolve.resume(
            writer,
            kind=stop.kind,
            message=message,
            resolver=resolver,
            judge=judge,
            skip=skip,
            drop_pinned=drop_pinned,
        )
        return result_of(writer, done)

    def abort(self) -> None:
        """Give it up; refs and journal are as they were before it began.

        Raises:
            StateError: it is no longer in progress.
        """
        if self._stop is not None:
            self._check()
        resolve.abort(self._writer.store)

    def _look(self) -> tuple[tuple[Conflict, ...], tuple[Conflict, ...]]:
        """Return the conflicts that are open, and those that were resolved."""
        self._check()
        met = resolve.met_conflicts(self._writer)
        open_ = tuple(each for each in met if each.resolution is None)
        return open_, tuple(each for each in met if each.resolution is not None)

    def _check(self) -> Stop:
        """Return what the file says, and raise StateError if that is another operation, or none."""
        store = self._writer.store
        store.check_open()
        now = in_progress.required_stop(store)
        if self._stop is not None and _identity(now) != _identity(self._stop):
            raise errors.StateError(
                f"{self.description} is not in progress any more: {now.said} is",
                code=errors.ErrorCode.NOTHING_IN_PROGRESS,
                kind=self.kind,
                waiting=now.kind,
            )
        return now


def _identity(stop: Stop) -> tuple[object, ...]:
    inputs = {name: value for name, value in stop.inputs.items() if name == "name"}
    return stop.kind, stop.ref, inputs


def required(writer: Writer, kind: str) -> Stopped:
    """Return the operation in progress, as `Repo.stopped` does."""
    stopped = all_in_progress(writer)
    for each in stopped:
        if not kind or each.kind in ("", kind):
            return each
    # Raises the error that says what is in progress instead.
    in_progress.required_stop(stopped[0].store if stopped else writer.store, kind)
    raise AssertionError


def all_in_progress(writer: Writer) -> list[Stopped]:
    """Return the merges, picks, reverts and rebases in progress: that of HEAD first, then by the branch's name."""
    refs = in_progress.stopped_refs(writer.store)
    others = [writer.on(ref) for ref in refs if ref not in (writer.ref, NAME)]
    return [each for one in (writer, *others) if (each := on_branch(one)) is not None]


def on_branch(writer: Writer) -> Stopped | None:
    """Return the merge, pick, revert or rebase that is in progress on a branch, or None."""
    try:
        stop = in_progress.read_stop(writer.store)
    except errors.FormatError:
        return Stopped(writer, None)
    return None if stop is None else Stopped(writer, stop)


def result_of(writer: Writer, done: Made) -> Made | Stopped:
    """Return the result of a merge, pick, revert or rebase, as `Stopped` if it stopped."""
    if done.outcome != result.STOPPED:
        return done
    return Stopped(writer, in_progress.read_stop(writer.store), done)

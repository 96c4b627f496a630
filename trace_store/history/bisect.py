"""Bisection: the first commit or message that changed an outcome.

The verdicts given so far determine the next step and the result; the state on disk is the list of verdicts. Only one
line is bisected at a time: first the first parents of the bad commit and then, if the first bad commit is a merge, the
first parents of its other parents.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from trace_store import errors
from trace_store.base import check
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.context.compiled import CompiledContext
from trace_store.context.compiler import ContextCompiler
from trace_store.disk.files import read_file, replace_file
from trace_store.store.revision import commits_of, name_of, resolve_commit
from trace_store.store.store import Store
from trace_store.writer import Writer

Outcomes: TypeAlias = Mapping[str, str]
Test: TypeAlias = Callable[[CompiledContext], bool | None]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store.revision import Revision

GOOD, BAD, SKIP = "good", "bad", "skip"
WORDS = (GOOD, BAD, SKIP)
COMMITS, MESSAGES = "commits", "messages"
_VERSION = 1


@value
class Verdict:
    """A verdict on one point.

    Attributes:
        word: "good", "bad" or "skip".
        point: the full id of a commit, or a number of messages.
        failed, runs: how many runs of the command failed, and how many there were; 0 of 0 for a verdict by hand.
    """

    word: str
    point: str
    failed: int = 0
    runs: int = 0


@value
class Bisection:
    """The state of a bisection.

    Attributes:
        kind: "commits" or "messages".
        commit: the commit whose messages are bisected, or the first commit that was marked bad.
        verdicts: all verdicts, oldest first; the last one on a point counts.
    """

    JSON = "told=verdicts"

    kind: str
    commit: ObjectId
    verdicts: tuple[Verdict, ...]

    @property
    def outcomes(self) -> dict[str, str]:
        """The current verdict on each point."""
        return {each.point: each.word for each in self.verdicts}

    def with_verdict(self, verdict: Verdict) -> Bisection:
        """Return the bisection with one more verdict."""
        return Bisection(self.kind, self.commit, (*self.verdicts, verdict))


@value
class BisectStep:
    """The next step of a bisection, or its result.

    Attributes:
        point: the point to test; "" when done.
        left: number of candidates left.
        found: the candidates for the first bad point, in order; more than one only if points were skipped.
    """

    JSON = "next=point?"

    point: str
    left: int
    found: tuple[str, ...]

    @property
    def is_done(self) -> bool:
        """Whether no point is left to test."""
        return not self.point


def next_step(store: Store, search: Bisection, message_count: int = 0) -> BisectStep:
    """Return the next point to test, or the result.

    Args:
        store: has the commits.
        search: the bisection so far.
        message_count: number of messages in the context, for a bisection of messages.

    Raises:
        InvalidInputError: the verdicts contradict each other: a good point comes after a bad one.
        ObjectNotFoundError, CorruptObjectError: the history is incomplete or damaged.
    """
    outcomes = search.outcomes
    if search.kind == MESSAGES:
        return halve([str(count) for count in range(1, message_count + 1)], outcomes)
    goods = [ObjectId.parse(point) for point, word in outcomes.items() if word == GOOD]
    bads = [str(search.commit), *(point for point, word in outcomes.items() if word == BAD)]
    commits = commits_of(store)
    for bad in bads:
        for good in goods:
            if commits.is_ancestor(ObjectId.parse(bad), good):
                raise _contradiction_error(str(good), bad)
    line = _first_parents(store, search.commit, goods)
    step = halve(line, outcomes)
    while step.is_done and len(step.found) == 1:
        further = _merged_lines(store, step.found[0], goods)
        # A merge is to blame only if none of the lines that it merged is bad.
        wrong = next((each for each in further if each[-1] in bads), None)
        untold = next((each for each in further if each[-1] not in outcomes), None)
        if wrong is not None:
            step = halve(wrong, outcomes)
        elif untold is not None:
            return BisectStep(untold[-1], len(untold) + 1, ())
        else:
            break
    return step


def halve(line: Sequence[str], outcomes: Outcomes) -> BisectStep:
    """Return the next point to test on a line, oldest first, whose last point is bad.

    Raises:
        InvalidInputError: a good point comes after a bad one.
    """
    words = [outcomes.get(point) for point in line]
    bad = next((at for at, word in enumerate(words) if word == BAD), len(line) - 1)
    good = max((at for at, word in enumerate(words) if word == GOOD), default=-1)
    if good > bad:
        raise _contradiction_error(line[good], line[bad])
    if not line:
        return BisectStep("", 0, ())
    open_ = [at for at in range(good + 1, bad) if words[at] is None]
    if open_:
        middle = (good + bad) / 2
        best = min(open_, key=lambda at: (abs(at - middle), at))
        return BisectStep(line[best], bad - good, ())
    return BisectStep("", 0, tuple(line[good + 1 : bad + 1]))


def verdict_for(failed: int, runs: int, threshold: int | None) -> str:
    """Return the verdict for a number of failed runs, or "" if the runs are inconclusive.

    Without a threshold all runs must agree. With one, that many failures make a point bad.
    """
    if threshold is not None:
        return BAD if failed >= threshold else GOOD
    return BAD if failed == runs else GOOD if not failed else ""


def load(store: Store) -> Bisection | None:
    """Return the bisection in progress in this working copy, or None.

    Raises:
        StateError: its file is damaged.
    """
    data = read_file(store.disk, store.layout.bisect_file)
    if data is None:
        return None
    try:
        fields = json.loads(data)
        if fields["version"] != _VERSION:
            raise ValueError(fields["version"])
        verdicts = tuple(Verdict(*each) for each in fields["told"])
        if not all(each.word in WORDS for each in verdicts) or fields["kind"] not in (
            COMMITS,
            MESSAGES,
        ):
            raise ValueError(fields["kind"])
        return Bisection(fields["kind"], ObjectId.parse(fields["commit"]), verdicts)
    except (ValueError, KeyError, TypeError, errors.InvalidInputError) as error:
        raise errors.StateError("the state of the bisection is damaged") from error


def save(store: Store, search: Bisection) -> None:
    """Save a bisection for the next command.

    Raises:
        StorageError: the file cannot be written.
    """
    fields = {
        "version": _VERSION,
        "kind": search.kind,
        "commit": str(search.commit),
        "told": [[each.word, each.point, each.failed, each.runs] for each in search.verdicts],
    }
    data = json.dumps(fields, indent=1).encode() + b"\n"
    replace_file(store.disk, store.layout.bisect_file, data, scratch=store.layout.tmp_dir)


def _first_parents(store: Store, end: ObjectId, goods: Sequence[ObjectId]) -> list[str]:
    """Return the first parents of a commit that no good commit can reach, oldest first."""
    commits = commits_of(store)
    found = commits.topological([end], goods, first_parent=False)
    outside = set(found)
    line: list[str] = []
    oid: ObjectId | None = end
    while oid is not None and oid in outside:
        line.append(str(oid))
        parents = commits.parents(oid)
        oid = parents[0] if parents else None
    line.reverse()
    return line


def _contradiction_error(good: str, bad: str) -> errors.InvalidInputError:
    if good == bad:
        return errors.InvalidInputError(f"{bad[:12]} is marked both good and bad")
    return errors.InvalidInputError(f"{good[:12]} is good but comes after {bad[:12]}, which is bad")


def _merged_lines(store: Store, point: str, goods: Sequence[ObjectId]) -> list[list[str]]:
    """Return the lines of a merge's other parents, without commits that a good one can reach."""
    parents = commits_of(store).parents(ObjectId.parse(point))
    lines = [_first_parents(store, parent, [*goods, parents[0]]) for parent in parents[1:]]
    return [line for line in lines if line]


def begin(
    contexts: ContextCompiler,
    bad: str = "HEAD",
    goods: Sequence[str] = (),
    *,
    messages: bool = False,
) -> Bisection:
    """Return the bisection that `Branches.start_bisection` starts; nothing is saved."""
    store = contexts.store
    end, *starts = (resolve_commit(store, each) for each in (bad, *goods))
    if not messages:
        verdicts = (Verdict(BAD, str(end)), *(Verdict(GOOD, str(each)) for each in starts))
        search = Bisection(COMMITS, end, verdicts)
        next_step(store, search)  # checks the commits
        return search
    if starts:
        raise errors.InvalidInputError("a bisection of messages takes one commit")
    count = len(contexts.compile(end))
    if not count:
        raise errors.StateError("the context has no messages")
    return Bisection(MESSAGES, end, (Verdict(BAD, str(count)),))


def message_count(contexts: ContextCompiler, search: Bisection) -> int:
    """Return the number of messages that are bisected; 0 for commits."""
    return len(contexts.compile(search.commit)) if search.kind == MESSAGES else 0


def context_at(contexts: ContextCompiler, search: Bisection, point: str) -> CompiledContext:
    """Return the context of a commit, or the context up to a message."""
    if search.kind == COMMITS:
        return contexts.compile(ObjectId.parse(point))
    whole = contexts.compile(search.commit)
    return whole.plain([each.message() for each in whole.messages[: int(point)]])


def point_of(contexts: ContextCompiler, search: Bisection, text: str) -> str:
    """Return a point in its stored form, given a revision or the number of a message.

    Raises:
        RevisionNotFoundError: there is no such commit.
        InvalidInputError: there is no message of this number.
    """
    if search.kind == COMMITS:
        return str(resolve_commit(contexts.store, text))
    count = message_count(contexts, search)
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= count):
        raise errors.InvalidInputError(f"not a message number from 1 to {count:,}: {text[:40]!r}")
    return str(int(text))


def run(
    contexts: ContextCompiler,
    search: Bisection,
    test: Test,
    *,
    repeat: int = 1,
    threshold: int | None = None,
    progress: Callable[[Verdict], object] | None = None,
    keep: Callable[[Bisection], object] | None = None,
) -> tuple[Bisection, BisectStep]:
    """Test points until the result is known. Points that were marked by hand are tested first.

    Args:
        contexts: compiles the contexts.
        search: the bisection so far.
        test: returns True if a context passes, False if it fails, None if that cannot be decided.
        repeat: how often each point is tested.
        threshold: how many failures make a point bad; None requires that all runs agree.
        progress: receives each verdict; its word is "" if the runs disagree.
        keep: receives the bisection after each verdict, to save it.

    Raises:
        StateError: the test contradicts a mark.
        ConflictError: runs disagree, and there is no threshold.
    """
    count = message_count(contexts, search)

    def verdict_on(point: str) -> Verdict:
        verdict = _verdict(context_at(contexts, search, point), point, test, repeat, threshold)
        if progress is not None:
            progress(verdict)
        if not verdict.word:
            raise errors.ConflictError(
                f"inconclusive: {verdict.failed} of {repeat} runs failed at {point[:12]}",
                code=errors.ErrorCode.INCONCLUSIVE,
            )
        return verdict

    for marked in {each.point: each for each in search.verdicts}.values():
        if marked.word == SKIP or marked.runs:
            continue
        found = verdict_on(marked.point)
        if found.word not in (marked.word, SKIP):
            raise errors.StateError(
                f"{marked.point[:12]} was marked {marked.word}, but the test says {found.word}"
            )
        search = search.with_verdict(Verdict(marked.word, marked.point, found.failed, found.runs))
    while not (step := next_step(contexts.store, search, count)).is_done:
        search = search.with_verdict(verdict_on(step.point))
        if keep is not None:
            keep(search)
    if keep is not None:
        keep(search)
    return search, step


def _verdict(
    context: CompiledContext, point: str, test: Test, repeat: int, threshold: int | None
) -> Verdict:
    failed = 0
    for _ in range(repeat):
        passes = test(context)
        if passes is None:
            return Verdict(SKIP, point)
        failed += not passes
    return Verdict(verdict_for(failed, repeat, threshold), point, failed, repeat)


class OngoingBisection:
    """A bisection in progress in this working copy. HEAD does not move.

    A point is the id of a commit. In a bisection of messages it is a number n: the context is cut after n messages.

    Attributes:
        state: what is bisected, and the verdicts so far.
    """

    def __init__(self, writer: Writer, state: Bisection) -> None:
        self._writer = writer
        self.state = state

    @property
    def next(self) -> BisectStep:
        """The point to test next, or the result."""
        contexts = self._writer.contexts
        count = message_count(contexts, self.state)
        return next_step(contexts.store, self.state, count)

    def context(self, point: str = "") -> CompiledContext:
        """Return the context at a point; "" is the next one.

        Raises:
            StateError: the bisection is finished, and no point is named.
            RevisionNotFoundError, InvalidInputError: there is no such point.
        """
        contexts = self._writer.contexts
        found = point_of(contexts, self.state, point) if point else self._point()
        return context_at(contexts, self.state, found)

    def mark(self, word: str, *points: Revision | int) -> BisectStep:
        """Mark points as "good", "bad" or "skip", by default the next one; return the next point, or the result.

        Raises:
            InvalidInputError: the marks contradict each other, or there is no such word or message.
            RevisionNotFoundError: there is no such commit.
            StateError: the bisection is finished, and no point is named.
        """
        if word not in WORDS:
            raise errors.InvalidInputError(
                f"not one of {', '.join(WORDS)}: {str(word)[:40]!r}", argument="word"
            )
        before = self.state
        for point in points or (self._point(),):
            text = str(point) if isinstance(point, int) else name_of(point, "points")
            found = point_of(self._writer.contexts, before, text)
            self.state = self.state.with_verdict(Verdict(word, found))
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
        self.state, step = run(
            self._writer.contexts,
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
        save(self._writer.store, state)

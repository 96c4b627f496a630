"""`bisect`: which commit, or which message of a context, changed an outcome.

Rule: what to try next, and what was found, follow from what has been told so far and from nothing else; the state on
disk is that list. Points are tried on one line at a time: the first parents of the bad commit, which its context is
made of; and where a merge turns out to be the first bad one there, the line of its other parents.
"""

from __future__ import annotations

import json

from trace_store import errors
from trace_store.files import read_file, replace_file
from trace_store.frozen import value
from trace_store.oid import ObjectId
from trace_store.revision import commits_of, resolve_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from trace_store.context.compiled import CompiledContext
    from trace_store.context.compiler import ContextCompiler
    from trace_store.store.handle import Store

    Outcomes: TypeAlias = Mapping[str, str]

GOOD, BAD, SKIP = "good", "bad", "skip"
WORDS = (GOOD, BAD, SKIP)
COMMITS, MESSAGES = "commits", "messages"
_VERSION = 1


@value
class Told:
    """What was told of one point.

    Attributes:
        word: "good", "bad" or "skip".
        point: the full id of a commit, or how many messages of the context there were.
        failed, runs: of how many runs of a command how many failed; 0 of 0 where somebody just said it.
    """

    word: str
    point: str
    failed: int = 0
    runs: int = 0


@value
class Bisection:
    """A search, as far as it has come.

    Attributes:
        kind: "commits" or "messages".
        commit: whose context is looked at, for messages; else the first bad commit that was told.
        told: everything that was told, in order; the last word on a point counts.
    """

    kind: str
    commit: ObjectId
    told: tuple[Told, ...]

    @property
    def outcomes(self) -> dict[str, str]:
        """The word on each point."""
        return {each.point: each.word for each in self.told}

    def with_told(self, told: Told) -> Bisection:
        """Return the search with one more word."""
        return Bisection(self.kind, self.commit, (*self.told, told))


@value
class Step:
    """What to do next, or what was found.

    Attributes:
        point: what to try; "" when there is nothing left to try.
        left: how many points are still in question.
        found: the points of which one is the first bad one, in order; one alone when nothing was skipped there.
    """

    point: str
    left: int
    found: tuple[str, ...]

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to try."""
        return not self.point


def next_step(store: Store, search: Bisection, message_count: int = 0) -> Step:
    """Return what to try next in a search, or what was found.

    Args:
        store: has the commits.
        search: what was told so far.
        message_count: messages of the context that is looked at, for a search among messages.

    Raises:
        InvalidInputError: what was told contradicts itself: a good point comes after a bad one.
        ObjectNotFoundError, CorruptObjectError: the history is not whole.
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
                raise _contradiction(str(good), bad)
    line = _line(store, search.commit, goods)
    step = halve(line, outcomes)
    while step.is_done and len(step.found) == 1:
        further = _lines_of_merge(store, step.found[0], goods)
        # Of the lines that a merge brought, one that is bad holds the change; one that is good does not.
        wrong = next((each for each in further if each[-1] in bads), None)
        untold = next((each for each in further if each[-1] not in outcomes), None)
        if wrong is not None:
            step = halve(wrong, outcomes)
        elif untold is not None:
            return Step(untold[-1], len(untold) + 1, ())
        else:
            break
    return step


def halve(line: Sequence[str], outcomes: Outcomes) -> Step:
    """Return which point of a line to try, from the oldest to the last, which is bad; before the first it is good.

    Raises:
        InvalidInputError: a good point comes after a bad one.
    """
    words = [outcomes.get(point) for point in line]
    bad = next((at for at, word in enumerate(words) if word == BAD), len(line) - 1)
    good = max((at for at, word in enumerate(words) if word == GOOD), default=-1)
    if good > bad:
        raise _contradiction(line[good], line[bad])
    if not line:
        return Step("", 0, ())
    open_ = [at for at in range(good + 1, bad) if words[at] is None]
    if open_:
        middle = (good + bad) / 2
        best = min(open_, key=lambda at: (abs(at - middle), at))
        return Step(line[best], bad - good, ())
    return Step("", 0, tuple(line[good + 1 : bad + 1]))


def judge(failed: int, runs: int, threshold: int | None) -> str:
    """Return the word on a point whose command failed so often, or "" when that does not decide it.

    Without a threshold all runs have to agree; with one a point is bad from so many failures on.
    """
    if threshold is not None:
        return BAD if failed >= threshold else GOOD
    return BAD if failed == runs else GOOD if not failed else ""


def load(store: Store) -> Bisection | None:
    """Return the search that is going on in this working copy, or None.

    Raises:
        StateError: the file that holds it is damaged.
    """
    data = read_file(store.disk, store.layout.bisect_file)
    if data is None:
        return None
    try:
        fields = json.loads(data)
        if fields["version"] != _VERSION:
            raise ValueError(fields["version"])
        told = tuple(Told(*each) for each in fields["told"])
        if not all(each.word in WORDS for each in told) or fields["kind"] not in (
            COMMITS,
            MESSAGES,
        ):
            raise ValueError(fields["kind"])
        return Bisection(fields["kind"], ObjectId.parse(fields["commit"]), told)
    except (ValueError, KeyError, TypeError, errors.InvalidInputError) as error:
        raise errors.StateError("what is known of the bisection is damaged") from error


def save(store: Store, search: Bisection) -> None:
    """Write a search down for the commands that follow.

    Raises:
        StorageError: the disk refuses.
    """
    fields = {
        "version": _VERSION,
        "kind": search.kind,
        "commit": str(search.commit),
        "told": [[each.word, each.point, each.failed, each.runs] for each in search.told],
    }
    data = json.dumps(fields, indent=1).encode() + b"\n"
    replace_file(store.disk, store.layout.bisect_file, data, scratch=store.layout.tmp_dir)


def forget(store: Store) -> bool:
    """End the search, and tell whether there was one.

    Raises:
        StorageError: the disk refuses.
    """
    return store.disk.remove(store.layout.bisect_file)


def _line(store: Store, end: ObjectId, goods: Sequence[ObjectId]) -> list[str]:
    """Return the first parents of a commit that no good commit has in its past, the oldest first."""
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


def _contradiction(good: str, bad: str) -> errors.InvalidInputError:
    if good == bad:
        return errors.InvalidInputError(f"{bad[:12]} is said to be both good and bad")
    return errors.InvalidInputError(f"{good[:12]} is good and comes after {bad[:12]}, which is bad")


def _lines_of_merge(store: Store, point: str, goods: Sequence[ObjectId]) -> list[list[str]]:
    """Return the lines of a commit's further parents, without those that a good commit has in its past."""
    parents = commits_of(store).parents(ObjectId.parse(point))
    lines = [_line(store, parent, [*goods, parents[0]]) for parent in parents[1:]]
    return [line for line in lines if line]


def search_line(line: Sequence[str], test: Callable[[str], str]) -> tuple[str, ...]:
    """Return the points of which one is the first bad one, given what tells the word on a point."""
    outcomes: dict[str, str] = {}
    while not (step := halve(line, outcomes)).is_done:
        outcomes[step.point] = test(step.point)
    return step.found


def find_first_bad(
    contexts: ContextCompiler,
    test: Callable[[CompiledContext], bool | None],
    bad: str = "HEAD",
    goods: Sequence[str] = (),
) -> tuple[ObjectId, ...]:
    """Return the commits of which one is the first whose context fails a test; one alone when all could be told.

    Args:
        contexts: compiles them.
        test: tells of a context whether all is well: True, False, or None where that cannot be told.
        bad: a commit that fails it.
        goods: commits before it that do not.

    Raises:
        StateError: the test finds the bad commit good, or a good one bad.
        RevisionNotFoundError: there is no such commit.
    """
    store = contexts.store
    end, *starts = (resolve_commit(store, each) for each in (bad, *goods))
    told = (Told(BAD, str(end)), *(Told(GOOD, str(each)) for each in starts))
    search = Bisection(COMMITS, end, told)

    def word(point: str) -> str:
        found = test(contexts.compile(ObjectId.parse(point)))
        return SKIP if found is None else GOOD if found else BAD

    for each in told:
        found = word(each.point)
        if found not in (each.word, SKIP):
            raise errors.StateError(
                f"{each.point[:12]} was said to be {each.word}, and the test finds it {found}"
            )
    while not (step := next_step(store, search)).is_done:
        search = search.with_told(Told(word(step.point), step.point))
    return tuple(ObjectId.parse(point) for point in step.found)

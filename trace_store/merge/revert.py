"""Reverts of earlier commits by new ones.

Messages that a commit added are hidden with their units. Later changes to the same messages are conflicts. History is
unchanged; a reverting commit links to the reverted one.
"""

from __future__ import annotations

from trace_store import errors, graph
from trace_store import revision as revisions
from trace_store.frozen import value
from trace_store.ident import check_author
from trace_store.merge import in_progress
from trace_store.merge.conflicts import check_favour
from trace_store.merge.replay import Replay, continue_replay
from trace_store.merge.result import DONE, STOPPED
from trace_store.merge.todo import REVERT, Step
from trace_store.objects.commit import read_commit
from trace_store.oid import ObjectId
from trace_store.refs.head import NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Set

    from trace_store.merge.conflicts import Conflict, Resolver
    from trace_store.merge.result import Rewrite
    from trace_store.secrets.guard import Guard
    from trace_store.store.handle import Store


@value
class RevertedCommit:
    """A commit that reverts another.

    Attributes:
        oid: its id.
        reverts: the reverted commit.
        ref: the branch that has it; None if HEAD is detached.
        operations: the names of its operations.
        conflicts: conflicts that were resolved.
    """

    oid: ObjectId
    reverts: ObjectId
    ref: str | None
    operations: tuple[str, ...]
    conflicts: tuple[Conflict, ...]


@value
class Revert:
    """The result of a revert.

    Attributes:
        outcome: "done", or "stopped" at conflicts, with nothing written.
        ref: full name of the branch; None if HEAD is detached.
        before: the old tip.
        after: the new tip.
        made: the new commits, in order.
        conflicts: the open ones.
        step: the commit that it stopped at, or None.
        settled: resolved conflicts.
    """

    outcome: str
    ref: str | None
    before: ObjectId
    after: ObjectId
    made: tuple[RevertedCommit, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    step: ObjectId | None = None
    settled: tuple[Conflict, ...] = ()


def revert(
    store: Store,
    wanted: Sequence[str],
    *,
    author: str,
    message: str = "",
    favour: str = "",
    guard: Guard | None = None,
    resolver: Resolver | None = None,
) -> Revert:
    """Revert commits by new ones, in the order given, a range newest first; all or none.

    A range means its first-parent commits. Commits that changed no message, such as usage reports, are skipped.

    Args:
        store: the repository's store.
        wanted: revisions and ranges.
        author: the author of the new commits.
        message: the commit message; "" generates one.
        favour: "ours" keeps later changes to the same messages, "theirs" reverts them too, "" stops.
        guard: redacts secrets in the message and in texts that resolve conflicts.
        resolver: returns the resolution of a conflict, or None to leave it open.

    Raises:
        StateError: another operation is in progress, or there is nothing to revert.
        InvalidInputError: `wanted` is empty, or the side to favour is not valid.
        UnbornBranchError: HEAD has no commit.
        RefChangedError: every attempt lost the race, or HEAD moved.
        As `resolve_commit`.
    """
    in_progress.refuse_while_stopped(store)
    check_favour(favour)
    check_author(author)
    if not wanted:
        raise errors.InvalidInputError("nothing to revert")
    head, oids = store.refs.head(), chosen(store, wanted)
    revisions.resolve_commit(store, "HEAD")
    inputs = {
        "steps": [Step(REVERT, oid, message).as_json() for oid in oids],
        "onto": None,
        "name": " ".join(oid.short() for oid in oids)[:200],
        "favour": favour,
    }
    stop = in_progress.Stop(in_progress.REVERT, head.ref or NAME, head.oid, inputs, {}, [])
    return _result(store, stop, Replay(store, stop, author, guard, resolver).run())


def continue_revert(
    store: Store,
    *,
    author: str,
    skip: bool = False,
    guard: Guard | None = None,
    resolver: Resolver | None = None,
) -> Revert:
    """Continue a stopped revert on the current tip of its branch; `skip` leaves out the commit that it stopped at.

    Raises:
        StateError: no revert is in progress.
        As `continue_replay`.
    """
    stop = in_progress.required_stop(store, in_progress.REVERT)
    found = continue_replay(
        store, stop.kind, author=author, skip=skip, guard=guard, resolver=resolver
    )
    return _result(store, stop, found)


def _result(store: Store, stop: in_progress.Stop, found: Rewrite) -> Revert:
    before, after = found.before, found.after
    assert before is not None  # HEAD had a commit
    assert after is not None
    ref = None if stop.ref == NAME else stop.ref
    step = None if found.step is None else found.step.oid
    numbers = {oid: number for number, (_, oid, *_) in enumerate(stop.inputs["steps"])}
    made = [
        RevertedCommit(
            *(new, old, ref),
            tuple(each.name for each in read_commit(new, store.objects.read).operations),
            tuple(each for each in found.settled if each.step == f"{numbers[str(old)]}:"),
        )
        for old, new in found.made
    ]
    outcome = STOPPED if step else DONE
    return Revert(outcome, ref, before, after, tuple(made), found.conflicts, step, found.settled)


def chosen(store: Store, wanted: Sequence[str]) -> list[ObjectId]:
    """Return the commits that revisions and ranges name, without duplicates, a range newest first.

    A range means its first-parent commits, since reverting a merge reverts what it merged.

    Raises:
        As `resolve_commit`.
    """
    commits = revisions.commits_of(store)
    found: dict[ObjectId, None] = {}
    for text in wanted:
        if ".." in text:
            span = revisions.resolve_range(store, text, commits)
            hidden = list(span.exclude)
            if span.symmetric:
                hidden += commits.merge_bases(*span.include)
            every = list(graph.topological(span.include, commits.parents, hidden=hidden))
            line = _first_parents(span.include, set(every), commits.parents)
            found.update(dict.fromkeys(oid for oid in every if oid in line))
        else:
            found[revisions.resolve_commit(store, text, commits)] = None
    return list(found)


def _first_parents(
    tips: Iterable[ObjectId],
    among: Set[ObjectId],
    parents: Callable[[ObjectId], Sequence[ObjectId]],
) -> set[ObjectId]:
    """Return the commits that are first-parent ancestors of a tip."""
    found: set[ObjectId] = set()
    for tip in tips:
        oid: ObjectId | None = tip
        while oid is not None and oid in among and oid not in found:
            found.add(oid)
            oid = next(iter(parents(oid)), None)
    return found

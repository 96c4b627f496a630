"""Reverts of earlier commits by new ones.

Messages that a commit added are hidden with their units. Later changes to the same messages are conflicts. History is
unchanged; a reverting commit links to the reverted one.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.ident import check_author
from trace_store.base.oid import ObjectId
from trace_store.commit_table import graph
from trace_store.merge import in_progress
from trace_store.merge.conflicts import check_favour
from trace_store.merge.replay import Replay, continue_replay
from trace_store.merge.todo import REVERT, Step
from trace_store.objects.commit import read_commit
from trace_store.refs.head import NAME
from trace_store.store import revision as revisions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Set

    from trace_store.merge.conflicts import Answer, Conflict
    from trace_store.merge.result import Rewrite
    from trace_store.store.store import Store
    from trace_store.writer import Writer


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

    JSON = "commit=oid"

    oid: ObjectId
    reverts: ObjectId
    ref: str | None
    operations: tuple[str, ...]
    conflicts: tuple[Conflict, ...]


@value
class Revert:
    """The result of a revert.

    Attributes:
        outcome: "done", "up-to-date" if there was nothing to revert, or "stopped" at conflicts; the last two write
            nothing.
        ref: full name of the branch; None if HEAD is detached.
        before: the old tip.
        after: the new tip.
        made: the new commits, in order.
        there: commits without a change that is still visible; they are not reverted.
        conflicts: the open ones.
        step: the commit that it stopped at, or None.
        settled: resolved conflicts.
    """

    JSON = "commit=after stopped_at=step"

    outcome: str
    ref: str | None
    before: ObjectId
    after: ObjectId
    made: tuple[RevertedCommit, ...] = ()
    there: tuple[ObjectId, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    step: ObjectId | None = None
    settled: tuple[Conflict, ...] = ()


def revert(
    writer: Writer,
    wanted: Sequence[str],
    *,
    message: str = "",
    favour: str = "",
    resolver: Answer | None = None,
) -> Revert:
    """Revert commits by new ones, in the order given, a range newest first; all or none.

    A range means its first-parent commits. Commits that changed no message, such as usage reports, and those whose
    changes are no longer visible, are skipped.

    Args:
        writer: the branch.
        wanted: revisions and ranges.
        message: the commit message; "" generates one.
        favour: "ours" keeps later changes to the same messages, "theirs" reverts them too, "" stops.
        resolver: returns the resolution of a conflict, or None to leave it open.

    Raises:
        StateError: another operation is in progress.
        InvalidInputError: `wanted` is empty, or the side to favour is not valid.
        UnbornBranchError: HEAD has no commit.
        RefChangedError: every attempt lost the race, or HEAD moved.
        As `resolve_commit`.
    """
    store, change = writer.store, writer.begin("revert")
    check_favour(favour)
    check_author(change.author)
    message = change.text(message)
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
    return _result(store, stop, Replay(change, stop, resolver).run())


def continue_revert(
    writer: Writer, *, skip: bool = False, resolver: Answer | None = None
) -> Revert:
    """Continue a stopped revert on the current tip of its branch; `skip` leaves out the commit that it stopped at.

    Raises:
        StateError: no revert is in progress.
        As `continue_replay`.
    """
    stop = in_progress.required_stop(writer.store, in_progress.REVERT)
    found = continue_replay(writer, stop.kind, skip=skip, resolver=resolver)
    return _result(writer.store, stop, found)


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
    open_, settled = found.conflicts, found.settled
    return Revert(found.outcome, ref, before, after, tuple(made), found.there, open_, step, settled)


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

"""Reverts of earlier commits by new ones.

A revert is a merge of the commit's parent with the commit as the base, so later changes to the same messages are
conflicts. Messages that the commit added are hidden with their units. All commits of one call are written in one
transaction. History is unchanged; a reverting commit links to the reverted one.
"""

from __future__ import annotations

from trace_store import errors, graph
from trace_store import revision as revisions
from trace_store.contracts import RefEdit, Transaction
from trace_store.frozen import value
from trace_store.history.switch import keep_and_move
from trace_store.ident import check_author
from trace_store.merge import in_progress
from trace_store.merge.conflicts import check_favour, resolve_open
from trace_store.merge.inputs import ContextCache
from trace_store.merge.merge3 import three_way
from trace_store.merge.merge_commits import retry_until_written
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit
from trace_store.objects.content import ObjectCollector
from trace_store.oid import ObjectId, hash_object
from trace_store.refs.head import NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Set

    from trace_store.contracts import RefReader
    from trace_store.merge.conflicts import Conflict, Resolver
    from trace_store.merge.inputs import Plan
    from trace_store.secrets.guard import Guard
    from trace_store.store.handle import Store

DONE, STOPPED = "done", "stopped"
RELATION = "reverts"


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
    head = store.refs.head()
    inputs = {
        "commits": [str(oid) for oid in chosen(store, wanted)],
        "message": message,
        "favour": favour,
    }
    stop = in_progress.Stop(in_progress.REVERT, head.ref or NAME, head.oid, inputs, {}, [])
    return retry_until_written(_RevertRun(store, stop, author, guard, resolver).run)


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
        RefChangedError: the branch no longer exists, or it began on a detached HEAD that is now on a branch.
    """
    stop = in_progress.required_stop(store, in_progress.REVERT)
    store = in_progress.on_branch(store, stop)
    if in_progress.is_written(store, stop):
        in_progress.clear_stop(store)
        tip = revisions.resolve_commit(store, "HEAD")
        return Revert(DONE, store.refs.head().ref, tip, tip)
    if skip:
        stop.skipped.append(stop.number)
    return retry_until_written(_RevertRun(store, stop, author, guard, resolver).run)


def look_at_revert(store: Store) -> Revert:
    """Return the current result of the revert in progress without writing it; raises as `continue_revert`."""
    stop = in_progress.required_stop(store, in_progress.REVERT)
    return _RevertRun(in_progress.on_branch(store, stop), stop, "nobody", None, None).look()


class _RevertRun:
    """A revert in progress, from its inputs to the transaction."""

    def __init__(
        self,
        store: Store,
        stop: in_progress.Stop,
        author: str,
        guard: Guard | None,
        resolver: Resolver | None,
    ) -> None:
        self._store = store
        self._stop = stop
        self._author = author
        self._resolver = resolver
        self._cache = ContextCache(store)
        self._gathering = ObjectCollector() if guard is None else guard.gathering()
        self._made: list[tuple[ObjectId, bytes]] = []

    def run(self) -> Revert:
        """Revert all commits and write the result, or stop and save the state."""
        found = self.look()
        if found.outcome == STOPPED:
            in_progress.write_stop(self._store, self._stop)
            return found
        in_progress.save_tip(self._store, self._stop, found.after)
        self._write(found)
        in_progress.clear_stop(self._store)
        return found

    def look(self) -> Revert:
        """Return the result, without writing it."""
        stop = self._stop
        self._made = []
        head = self._store.refs.head()
        tip = before = revisions.resolve_commit(self._store, "HEAD")
        if (head.ref or NAME) != stop.ref:
            raise errors.RefChangedError(
                f"HEAD is no longer on {stop.ref}, where the revert started", ref=stop.ref
            )
        settled: list[Conflict] = []
        made: list[RevertedCommit] = []
        oids = [ObjectId.parse(name) for name in stop.inputs["commits"]]
        for number, oid in enumerate(oids):
            if number in stop.skipped:
                continue
            stop.number = number
            plan = self._plan(tip, oid)
            settled += plan.settled
            if plan.conflicts:
                open_, by_hand = stop.numbered(plan.conflicts), stop.by_hand(settled)
                return Revert(STOPPED, head.ref, before, before, (), open_, oid, by_hand)
            if plan.operations:
                tip = self._create_commit(tip, oid, plan)
                names = tuple(operation.name for operation in plan.operations)
                made.append(RevertedCommit(tip, oid, head.ref, names, plan.settled))
        if oids and not made and not settled and not stop.skipped:
            raise self._nothing_error(oids[0])
        by_hand = stop.by_hand(settled)
        return Revert(DONE, head.ref, before, tip, tuple(made), settled=by_hand)

    def _plan(self, tip: ObjectId, oid: ObjectId) -> Plan:
        """Return the plan that reverts a commit on a tip."""
        stop, cache = self._stop, self._cache
        before = cache.before(oid)  # first, so that the others can share its entries
        base, ours = cache.fold(oid), cache.fold(tip)

        def compute() -> Plan:
            return three_way(
                base,
                ours,
                before,
                resolutions=stop.resolutions,
                favour=stop.inputs["favour"],
                step=f"{stop.number}:",
                reverts=True,
                put=self._gathering.put,
                read=self._store.objects.read,
            )

        said = stop.resolutions
        return resolve_open(self._resolver, said, compute(), compute, lambda plan: plan.conflicts)

    def _create_commit(self, tip: ObjectId, oid: ObjectId, plan: Plan) -> ObjectId:
        """Create the commit that reverts another, and return its id."""
        message = self._stop.inputs["message"]
        new = Commit(
            [tip],
            self._author,
            self._store.clock.now(),
            plan.operations,
            self._gathering.text(message) if message else f"revert {oid.short()}",
            dict(self._gathering.facts),
            [(RELATION, oid)],
        )
        data = new.encode()
        made = hash_object(data)
        self._made.append((made, data))
        self._cache.remember(made, new)
        return made

    def _nothing_error(self, oid: ObjectId) -> errors.StateError:
        operations = self._cache.commit(oid).operations
        why = f"the changes of {oid.short()} are no longer visible"
        if operations and all(each.name in ops.LEAVES_CONTEXT for each in operations):
            why = f"{oid.short()} records only usage or metadata"
        return errors.StateError(f"nothing to revert: {why}", oid=oid)

    def _write(self, found: Revert) -> None:
        """Write the commits and move HEAD to the last one."""
        if not self._made:
            return
        message = "revert " + " ".join(each.reverts.short() for each in found.made)
        head = self._store.refs.head()
        is_elsewhere = head.ref is None and head.oid != found.before
        if head.ref != found.ref or is_elsewhere:
            raise errors.RefChangedError("HEAD moved meanwhile", ref="HEAD", expected=found.before)

        def build(_: RefReader) -> Transaction:
            edits = [] if head.ref is None else [RefEdit(head.ref, found.after, found.before)]
            return Transaction([*self._gathering.objects, *self._made], edits, message)

        self._store.transact(build, author=self._author)
        if head.ref is None:
            keep_and_move(self._store, head, found.after, message, self._author)


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

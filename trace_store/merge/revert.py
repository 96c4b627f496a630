"""Revert: new commits that take earlier ones back.

To take a commit back is to merge what stood before it, with the commit as the base; so what changed the same since is a
conflict. A message that the commit brought is hidden, with its unit.

Rule: all commits of one call are made on top of each other and written in one transaction, or not at all. History stays
as it is; a commit that takes another back links to it.
"""

from __future__ import annotations

from trace_store import errors, graph
from trace_store import revision as revisions
from trace_store.contracts import RefEdit, Transaction
from trace_store.frozen import value
from trace_store.history.switch import keep_and_move
from trace_store.ident import check_author
from trace_store.merge import in_progress
from trace_store.merge.conflicts import check_favour, settle_open
from trace_store.merge.inputs import Reading
from trace_store.merge.merge3 import three_way
from trace_store.merge.merge_commits import until_written
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit
from trace_store.objects.content import Gathering
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
class Reverted:
    """A commit that takes another back.

    Attributes:
        oid: its id.
        reverts: the commit that it takes back.
        ref: the branch that has it; None when HEAD is detached.
        operations: the names of its operations.
        conflicts: what had to be decided.
    """

    oid: ObjectId
    reverts: ObjectId
    ref: str | None
    operations: tuple[str, ...]
    conflicts: tuple[Conflict, ...]


@value
class Revert:
    """What a revert came to.

    Attributes:
        outcome: "done", or "stopped" at conflicts, with nothing written.
        ref: full name of the branch; None when HEAD is detached.
        before: where HEAD stood.
        after: where it stands.
        made: the new commits, each with what it takes back, in order.
        conflicts: what has to be settled before it goes on.
        step: the commit that it stopped at; None when it did not.
        settled: conflicts that were settled.
    """

    outcome: str
    ref: str | None
    before: ObjectId
    after: ObjectId
    made: tuple[Reverted, ...] = ()
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
    """Take commits back by new commits, in the order given, those of a range newest first; all of them, or none.

    Of a range these are the commits along first parents. What did nothing that shows is passed over: a report of usage.

    Args:
        store: the repository.
        wanted: revisions and ranges.
        author: who.
        message: what a person says about it; what it takes back otherwise.
        favour: "ours" keeps, where something later changed the same, what there is now; "theirs" takes back all the
            same; "" stops.
        guard: looks for secrets in the message, and in texts that settle conflicts.
        resolver: asked about each conflict; None as an answer leaves it open.

    Raises:
        StateError: something else is in progress, or no commit changed anything that could be taken back.
        InvalidInputError: nothing is wanted, or there is no such side to favour.
        UnbornBranchError: HEAD has no commit.
        RefChangedError: others move HEAD's branch again and again, or HEAD itself moved.
        As `resolve_commit`.
    """
    in_progress.refuse_while_stopped(store)
    check_favour(favour)
    check_author(author)
    if not wanted:
        raise errors.InvalidInputError("there is nothing to take back")
    head = store.refs.head()
    inputs = {
        "commits": [str(oid) for oid in chosen(store, wanted)],
        "message": message,
        "favour": favour,
    }
    stop = in_progress.Stop(in_progress.REVERT, head.ref or NAME, head.oid, inputs, {}, [])
    return until_written(_Reverting(store, stop, author, guard, resolver).run)


def continue_revert(
    store: Store,
    *,
    author: str,
    skip: bool = False,
    guard: Guard | None = None,
    resolver: Resolver | None = None,
) -> Revert:
    """Continue a revert that stopped, on what its branch is by now; `skip` leaves out the commit that it stopped at.

    Raises:
        StateError: no revert is in progress.
        RefChangedError: the branch is gone, or HEAD, on which it began, is on a branch by now.
    """
    stop = in_progress.required_stop(store, in_progress.REVERT)
    store = in_progress.on_branch(store, stop)
    if in_progress.is_written(store, stop):
        in_progress.clear_stop(store)
        tip = revisions.resolve_commit(store, "HEAD")
        return Revert(DONE, store.refs.head().ref, tip, tip)
    if skip:
        stop.skipped.append(stop.number)
    return until_written(_Reverting(store, stop, author, guard, resolver).run)


def look_at_revert(store: Store) -> Revert:
    """Return what the revert that is in progress comes to by now, and write nothing; raises as `continue_revert`."""
    stop = in_progress.required_stop(store, in_progress.REVERT)
    return _Reverting(in_progress.on_branch(store, stop), stop, "nobody", None, None).look()


class _Reverting:
    """A revert from its inputs to the transaction."""

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
        self._reading = Reading(store)
        self._gathering = Gathering() if guard is None else guard.gathering()
        self._made: list[tuple[ObjectId, bytes]] = []

    def run(self) -> Revert:
        """Take all commits back and write, or stop and write down what is needed to go on."""
        found = self.look()
        if found.outcome == STOPPED:
            in_progress.write_stop(self._store, self._stop)
            return found
        in_progress.note_tip(self._store, self._stop, found.after)
        self._write(found)
        in_progress.clear_stop(self._store)
        return found

    def look(self) -> Revert:
        """Return what it comes to."""
        stop = self._stop
        self._made = []
        head = self._store.refs.head()
        tip = before = revisions.resolve_commit(self._store, "HEAD")
        if (head.ref or NAME) != stop.ref:
            raise errors.RefChangedError(
                f"HEAD is not on {stop.ref}, where the revert began", ref=stop.ref
            )
        settled: list[Conflict] = []
        made: list[Reverted] = []
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
                tip = self._put(tip, oid, plan)
                names = tuple(operation.name for operation in plan.operations)
                made.append(Reverted(tip, oid, head.ref, names, plan.settled))
        if oids and not made and not settled and not stop.skipped:
            raise self._nothing(oids[0])
        by_hand = stop.by_hand(settled)
        return Revert(DONE, head.ref, before, tip, tuple(made), settled=by_hand)

    def _plan(self, tip: ObjectId, oid: ObjectId) -> Plan:
        """Return what takes a commit back on a tip."""
        stop, reading = self._stop, self._reading
        before = reading.before(oid)  # first, since the others go on from it
        base, ours = reading.fold(oid), reading.fold(tip)

        def tried() -> Plan:
            return three_way(
                base,
                ours,
                before,
                settlements=stop.settlements,
                favour=stop.inputs["favour"],
                step=f"{stop.number}:",
                reverts=True,
                put=self._gathering.put,
                read=self._store.objects.read,
            )

        said = stop.settlements
        return settle_open(self._resolver, said, tried(), tried, lambda plan: plan.conflicts)

    def _put(self, tip: ObjectId, oid: ObjectId, plan: Plan) -> ObjectId:
        """Make the commit that takes another back, and return its id."""
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
        self._reading.remember(made, new)
        return made

    def _nothing(self, oid: ObjectId) -> errors.StateError:
        operations = self._reading.commit(oid).operations
        why = f"what {oid.short()} did does not show here any more"
        if operations and all(each.name in ops.LEAVES_CONTEXT for each in operations):
            why = (
                f"{oid.short()} records what a provider reported or facts, which changes no message"
            )
        return errors.StateError(f"there is nothing to take back: {why}", oid=oid)

    def _write(self, found: Revert) -> None:
        """Write the commits, with objects that they name, and let HEAD end in the last."""
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
    """Return the commits that revisions and ranges name, each once; those of a range newest first.

    Of a range these are the commits along first parents: what a merge among them brought goes with the merge.

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
    """Return those of some commits to which first parents lead from a tip."""
    found: set[ObjectId] = set()
    for tip in tips:
        oid: ObjectId | None = tip
        while oid is not None and oid in among and oid not in found:
            found.add(oid)
            oid = next(iter(parents(oid)), None)
    return found

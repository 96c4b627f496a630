"""Reverts that stop where something later changed the same, and go on once that is settled.

Rule: what takes a commit back is `branching.inverting`'s to say; here its conflicts are brought to somebody. All
commits of one call are made on top of each other, and written in one transaction, or not at all.
"""

from __future__ import annotations

from trace_store import branching, errors
from trace_store import revision as revisions
from trace_store.branching.inverting import SEPARATED_CALL
from trace_store.context.folding import REMOVED
from trace_store.context.pairs import callers
from trace_store.joining import stops
from trace_store.joining.conflicts import TEXT, THEIRS, check_favour, settle_open
from trace_store.joining.desk import Desk
from trace_store.joining.outpaced import until_written
from trace_store.joining.three_way.properties import reworded_parts
from trace_store.objects import operations as ops
from trace_store.objects.content import Gathering
from trace_store.oid import ObjectId
from trace_store.refs.head import NAME
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.branching import Reverted, TakingBack
    from trace_store.branching.inverting import Conflict as Standing
    from trace_store.branching.inverting import Inverse
    from trace_store.context.folding import Entry
    from trace_store.joining.conflicts import Conflict, Resolver, Settlement
    from trace_store.objects.commit import Operation
    from trace_store.secrets import Guard
    from trace_store.store import Store

    Address = tuple[bytes, int]

DONE, STOPPED = "done", "stopped"


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
    stops.refuse_while_stopped(store)
    check_favour(favour)
    if not wanted:
        raise errors.InvalidInputError("there is nothing to take back")
    head = store.refs.head()
    inputs = {
        "commits": [str(oid) for oid in branching.chosen(store, wanted)],
        "message": message,
        "favour": favour,
    }
    stop = stops.Stop(stops.REVERT, head.ref or NAME, head.oid, inputs, {}, [])
    return until_written(_Reverting(store, stop, author, guard, resolver).run)


def continue_revert(
    store: Store,
    *,
    author: str,
    skip: bool = False,
    guard: Guard | None = None,
    resolver: Resolver | None = None,
) -> Revert:
    """Go on with a revert that stopped, on what HEAD is by now; with `skip` without the commit that it stopped at.

    Raises:
        StateError: no revert is in progress.
        RefChangedError: HEAD is on another branch.
    """
    stop = stops.required_stop(store, stops.REVERT)
    if stops.is_written(store, stop):
        stops.clear_stop(store)
        tip = revisions.resolve_commit(store, "HEAD")
        return Revert(DONE, store.refs.head().ref, tip, tip)
    if skip:
        stop.skipped.append(stop.number)
    return until_written(_Reverting(store, stop, author, guard, resolver).run)


def look_at_revert(store: Store) -> Revert:
    """Return what the revert that is in progress comes to by now, and write nothing; raises as `continue_revert`."""
    stop = stops.required_stop(store, stops.REVERT)
    found, _ = _Reverting(store, stop, "nobody", None, None).look()
    return found


class _Reverting:
    """A revert from its inputs to the transaction."""

    def __init__(
        self,
        store: Store,
        stop: stops.Stop,
        author: str,
        guard: Guard | None,
        resolver: Resolver | None,
    ) -> None:
        self._store = store
        self._stop = stop
        self._author = author
        self._resolver = resolver
        self._gathering = Gathering() if guard is None else guard.gathering()
        self._texts: list[tuple[Entry, str]] = []

    def run(self) -> Revert:
        """Take all commits back and write, or stop and write down what is needed to go on."""
        found, line = self.look()
        if found.outcome == STOPPED:
            stops.write_stop(self._store, self._stop)
            return found
        stops.note_tip(self._store, self._stop, line.tip)
        line.write(self._gathering.objects)
        stops.clear_stop(self._store)
        return found

    def look(self) -> tuple[Revert, TakingBack]:
        """Return what it comes to, and the commits that are to be written."""
        stop = self._stop
        oids = [ObjectId.parse(name) for name in stop.inputs["commits"]]
        line = branching.TakingBack(self._store, self._author, oids)
        ref, before = line.head.ref, line.tip
        if (ref or NAME) != stop.ref:
            raise errors.RefChangedError(
                f"HEAD is not on {stop.ref}, where the revert began", ref=stop.ref
            )
        message = stop.inputs["message"]
        said = self._gathering.text(message) if message else ""
        settled: list[Conflict] = []
        nothing: list[ObjectId] = []
        for number, oid in enumerate(oids):
            if number in stop.skipped:
                continue
            stop.number = number
            rest = [each for n, each in enumerate(oids) if n > number and n not in stop.skipped]
            inverse, desk = self._inverse(line, oid, rest)
            settled += desk.settled
            if desk.open:
                open_ = stop.numbered(desk.open)
                by_hand = stop.by_hand(settled)
                return Revert(STOPPED, ref, before, before, (), open_, oid, by_hand), line
            if not inverse.operations and not inverse.conflicts:
                nothing.append(oid)
            inverse.operations += self._reworded(line.now.entries)
            line.put(oid, inverse, said, self._gathering.facts)
        if oids and nothing == oids:
            raise line.nothing(oids[0])
        made = tuple(line.found)
        return Revert(DONE, ref, before, line.tip, made, settled=stop.by_hand(settled)), line

    def _inverse(
        self, line: TakingBack, oid: ObjectId, later: Sequence[ObjectId]
    ) -> tuple[Inverse, Desk]:
        """Return what takes a commit back before others, and the desk to which its conflicts were brought."""
        return settle_open(
            self._resolver,
            self._stop.settlements,
            self._tried(line, oid, later),
            lambda: self._tried(line, oid, later),
            lambda tried: tried[1].open,
        )

    def _tried(
        self, line: TakingBack, oid: ObjectId, later: Sequence[ObjectId]
    ) -> tuple[Inverse, Desk]:
        stop = self._stop
        favour, read = stop.inputs["favour"], self._store.objects.read
        desk = Desk(stop.settlements, favour, f"{stop.number}:", reverts=True, read=read)
        was = {entry.address: entry for entry in line.before(oid).entries}
        now = {entry.address: entry for entry in line.now.entries}
        known: dict[tuple[str, Address | None], Settlement] = {}
        self._texts = []

        def decide(standing: Standing) -> bool:
            name = (standing.kind, standing.address)
            if name not in known:  # a property may be asked about twice, and is one conflict
                known[name] = _brought(desk, standing, was, now)
                if known[name].choice == TEXT and standing.address is not None:
                    self._texts.append((now[standing.address], known[name].text))
            return known[name].choice == THEIRS

        return line.inverse(oid, decide, later), desk

    def _reworded(self, now: Sequence[Entry]) -> list[Operation]:
        """Return the operations of texts that settle conflicts: a message says that, and is shown with its exchange."""
        made: list[Operation] = []
        for entry, text in self._texts:
            made.append(
                ops.edit(entry.address, reworded_parts(entry.parts, text, self._gathering.put))
            )
            if entry.hidden:
                made.append(ops.restore(_hidden_exchange(now, entry)))
        return made


def _hidden_exchange(entries: Sequence[Entry], entry: Entry) -> list[Address]:
    """Return a hidden message, and what is hidden of the call and the results that it stands with."""
    exchanges: dict[int, set[int]] = {}
    for (result, _), call in callers(entries).items():
        exchanges.setdefault(call, {call}).add(result)
    own = next(at for at, each in enumerate(entries) if each.address == entry.address)
    together = {own}.union(*(places for places in exchanges.values() if own in places))
    return [entries[at].address for at in sorted(together) if entries[at].hidden]


def _brought(
    desk: Desk,
    standing: Standing,
    was: dict[Address, Entry],
    now: dict[Address, Entry],
) -> Settlement:
    """Bring what stands in the way to a desk, with the message as it is now and as it would be."""
    address = standing.address
    if address is None:
        return desk.bring(standing.kind, ())
    theirs = was.get(address)
    if theirs is None or standing.kind == SEPARATED_CALL:
        theirs = now[address].copy()  # it was not there, so it goes
        theirs.hidden = REMOVED
    return desk.bring(standing.kind, [address], None, [now[address]], [theirs])

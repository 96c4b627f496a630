"""Append an import to a branch that others write to as well.

Somebody edited or appended to a session's branch, or the caller named a branch of their own. Then commits of the plan
are found by their keys; those that are missing are added at the end, and those that have grown since are completed by a
commit that edits their messages. Nothing that stands on the branch is moved.

Rule: decides what one planned commit becomes; `writing` writes it.

Rule: a function of the commits on both sides since they parted. A round has one API message at most; only the
unfinished end of a file, which is a round, is ever planned anew.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from trace_store.context.calls import Calls, find_in_history, link_wording
from trace_store.frozen import field, mutable, value
from trace_store.importers.build_commits import (
    AddressOf,
    Spot,
    StoredParts,
    earlier_operations,
    linked,
    make_commit,
    messages_of,
    note_calls,
    own_operations,
    put_source,
    removal,
    stored_message,
)
from trace_store.importers.contract import Place, PlannedCommit
from trace_store.importers.dedupe import chain, key_of, read_commit
from trace_store.objects import operations as ops
from trace_store.objects.address import Address, absolute, read_address
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.content import Gathering
from trace_store.oid import ObjectId
from trace_store.store.handle import Store
from trace_store.transcripts.event_text import event_of
from trace_store.transcripts.records import Record
from trace_store.transcripts.sources import Read, record_count, records_left

GROWN = "+"
"""Behind a key, with the number of records so far: the commit that completes one that grew."""


@value
class Made:
    """A commit that goes at the end of the branch."""

    oid: ObjectId
    data: bytes
    message_count: int


@mutable
class _Present:
    """What a branch holds of one planned commit: its commit, and those that completed it, oldest first."""

    commits: list[ObjectId] = field(default_factory=list)


class Continuation:
    """The end of a branch, and what it holds of the plan.

    Attributes:
        tip: where the branch is, with what was made so far.
        places: where messages of the plan are that were not born in the commit that stands for theirs.
        only_adds: whether what is here already stays as it is, also where the plan has it otherwise.
    """

    def __init__(
        self,
        store: Store,
        tip: ObjectId | None,
        written: Mapping[int, ObjectId | None] | None = None,
        *,
        saved: Mapping[str, Any] | None = None,
    ) -> None:
        """Look at a branch.

        Args:
            store: where it is.
            tip: its value.
            written: the commits of the plan that are not planned again, by number; nobody looks behind them.
            saved: what `save` returned at the end of the last import.
        """
        self._written = {} if written is None else written
        self._numbers: dict[bytes, int] = {}
        for number, oid in self._written.items():
            if oid is not None:
                self._numbers.setdefault(oid, number)
        self._store = store
        self._calls = Calls(find_in_history(tip, lambda oid: read_commit(store, oid)))
        self.tip = tip
        self.only_adds = False
        self.places: dict[Place, Spot] = {}
        self._present: dict[str, _Present] = {}
        self._carried: set[bytes] = set()
        self._apart: ObjectId | None = None  # parent of the oldest local edit
        self._last: int | None = None
        self._rows: dict[int, tuple[int | None, int]] = {}
        if saved is not None:
            self._last = saved["last"]
            apart = saved.get("apart")
            self._apart = None if apart is None else ObjectId.parse(apart)
            self._rows = {number: (parent, count) for number, parent, count in saved["rows"]}
            self.places = {
                (number, index): Spot(Address.parse(address), ObjectId.parse(oid), n)
                for number, index, address, oid, n in saved["places"]
            }
        for oid, commit in chain(store, tip):
            if oid in self._numbers:
                if saved is None:
                    self._last = self._numbers[oid]
                break
            key = key_of(commit)
            if key and not commit.operations and not event_of(commit):
                self._carried.update(records_left(commit, store.objects.read))
            if not key and commit.parents and any(map(_changes_context, commit.operations)):
                self._apart = commit.parents[0]
            if key:
                self._present.setdefault(_base_key(key), _Present()).commits.insert(0, oid)

    def save(self) -> dict[str, Any]:
        """Return what must be remembered to go on later, as values that JSON knows."""
        return {
            "last": self._last,
            "apart": None if self._apart is None else str(self._apart),
            "rows": [[number, *row] for number, row in self._rows.items()],
            "places": [
                [*place, spot.address.hex, str(spot.commit), spot.number]
                for place, spot in self.places.items()
            ],
        }

    def make(
        self,
        planned: PlannedCommit,
        gathering: Gathering,
        address: AddressOf,
        stored_parts: StoredParts,
        *,
        source: bool,
    ) -> tuple[ObjectId | None, Made | None]:
        """Return the commit that stands for a planned one, and what has to be written for it, if anything."""
        abandoned = self._abandoned(planned)
        self._rows[planned.number] = (planned.parent, len(planned.messages))
        self._last = planned.number
        # Records that stood at the end of the file had a commit of their own.
        records = tuple(r for r in planned.records if r.parts or r.raw not in self._carried)
        whole = planned._replace(removes=(*abandoned, *planned.removes), records=records)
        present = self._present.get(planned.key)
        if present is not None:
            made = self._complete(whole, present, abandoned, gathering, address, source=source)
            return present.commits[0], made
        telling = linked(whole, self._calls, address)
        operations = [
            *earlier_operations(whole, gathering.put, address, stored_parts, self._calls),
            # If the context was edited here, the reported usage measures another context.
            *own_operations(telling, gathering.put, address, self._apart),
        ]
        kept = put_source(whole, gathering.put) if source else None
        if not operations and kept is None and not (whole.meta or whole.links):
            return self.tip, None
        new = self._made(whole, operations, kept, len(planned.messages), gathering)
        return new.oid, new

    def commits_of(self, planned: PlannedCommit) -> Sequence[ObjectId]:
        """Return what the branch held of a planned commit, oldest first."""
        present = self._present.get(planned.key)
        return () if present is None else present.commits

    def _complete(
        self,
        planned: PlannedCommit,
        present: _Present,
        abandoned: Sequence[Place],
        gathering: Gathering,
        address: AddressOf,
        *,
        source: bool,
    ) -> Made | None:
        """Return the commit that brings what a planned commit has gained, or None when it has gained nothing.

        What was abandoned goes when it is here all the same; it may have come since, from another of its branches.
        """
        commits = [read_commit(self._store, oid) for oid in present.commits]
        wording, where = _wording(present.commits, commits)
        for index, spot in enumerate(where):
            if spot != Spot.born(present.commits[0], index):
                self.places[planned.number, index] = spot
        if self.only_adds:
            return None
        fresh = self._fresh(planned, commits) if source else ()
        operations: list[Operation] = []
        for spot, worded, message in zip(where, wording, planned.messages, strict=False):
            stored = stored_message(message, gathering.put)["parts"]
            parts = link_wording(stored, [worded], lambda _: None)
            if parts != worded:
                note_calls(message.parts, spot.address, self._calls)
                parts = link_wording(parts, (), self._calls.answer)
                operations.append(ops.edit(spot.address, parts))
        grown = planned._replace(messages=planned.messages[len(where) :])
        more = linked(grown, self._calls, address).messages
        if more:
            operations.append(ops.add([stored_message(each, gathering.put) for each in more]))
        taken_out = _taken_out(present.commits, commits)
        gone = [target for target in map(address, abandoned) if target not in taken_out]
        if not operations and not fresh and not gone:
            return None
        if planned.usage and operations:
            first = commits[0]
            operations.append(
                ops.usage(planned.usage, about=first.parents[0] if first.parents else None)
            )
        operations = [*removal(gone), *operations]
        rest = planned._replace(
            key=f"{planned.key}{GROWN}{len(planned.records)}",
            messages=grown.messages,
            records=fresh,
            meta={},
        )
        kept = put_source(rest, gathering.put) if source else None
        made = self._made(rest, operations, kept, len(more), gathering)
        for index in range(len(more)):
            self.places[planned.number, len(where) + index] = Spot.born(made.oid, index)
        present.commits.append(made.oid)
        return made

    def _fresh(self, planned: PlannedCommit, commits: Sequence[Commit]) -> tuple[Record, ...]:
        """Return the records that are not kept yet; none where an earlier import was told to keep none."""
        read = self._store.objects.read
        count = sum(record_count(commit, read) for commit in commits)
        if not count or count == len(planned.records):
            return ()
        kept = {raw for commit in commits for raw in records_left(commit, read)}
        return tuple(record for record in planned.records if record.raw not in kept)

    def _made(
        self,
        planned: PlannedCommit,
        operations: list[Operation],
        source: ObjectId | None,
        message_count: int,
        gathering: Gathering,
    ) -> Made:
        parents = () if self.tip is None else (self.tip,)
        data = make_commit(planned, operations, parents, source).encode()
        self.tip = gathering.put_object(data)
        self._calls.written(self.tip)
        return Made(self.tip, data, message_count)

    def _abandoned(self, planned: PlannedCommit) -> tuple[Place, ...]:
        """Return the messages that a rewind went back behind; a branch of one's own is never moved back."""
        if self._last is None or planned.parent == self._last:
            return ()
        found: list[Place] = []
        base = self._written_as(planned.parent)
        number: int | None = self._last
        while number is not None and self._written_as(number) != base:
            row = self._row(number)
            if row is None:
                break
            parent, count = row
            found += [(number, index) for index in range(count)]
            number = parent
        return tuple(sorted(found))

    def _written_as(self, number: int | None) -> int | None:
        """Return the number of the commit that stands for a planned one: that before, where there was nothing in it."""
        if number is None or number in self._rows:
            return number
        oid = self._written.get(number)
        return number if oid is None else self._numbers[oid]

    def _row(self, number: int) -> tuple[int | None, int] | None:
        """Return the parent of a planned commit, and how many messages it adds."""
        if number in self._rows:
            return self._rows[number]
        oid = self._written.get(number)
        if oid is None:
            return None
        commit = read_commit(self._store, oid)
        parent = self._numbers.get(commit.parents[0]) if commit.parents else None
        return parent, len(messages_of(commit))


def _taken_out(oids: Sequence[ObjectId], commits: Sequence[Commit]) -> set[Address]:
    """Return the messages that some commits remove."""
    return {
        target
        for oid, commit in zip(oids, commits, strict=True)
        for operation in commit.operations
        if operation.name == ops.REMOVE
        for target in ops.targets_of(operation, oid)
    }


def _changes_context(operation: Operation) -> bool:
    """Return True if another context is compiled after an operation."""
    if operation.name == ops.ANNOTATE:
        return operation.fields.get("priority") == ops.SKIP
    return operation.name not in ops.LEAVES_CONTEXT


def _base_key(key: str) -> str:
    base, plus, count = key.rpartition(GROWN)
    return base if plus and count.isdigit() else key


def _wording(oids: list[ObjectId], commits: list[Commit]) -> tuple[list[Any], list[Spot]]:
    """Return the parts of the messages as last completed, and where each of them is."""
    wording: list[Any] = []
    where: list[Spot] = []
    for oid, commit in zip(oids, commits, strict=True):
        for operation in commit.operations:
            if operation.name == ops.EDIT and commit is not commits[0]:
                target = read_address(operation.fields["target"], oid)
                for index, spot in enumerate(where):
                    if spot.address == target:
                        wording[index] = absolute(operation.fields["parts"], oid)
        for index, (address, message) in enumerate(ops.added_messages(commit, oid)):
            wording.append(absolute(message["parts"], oid))
            where.append(Spot(address, oid, index))
    return wording, where


def is_older(own: Sequence[Commit], over: Sequence[Commit], read: Read) -> bool:
    """Tell whether a plan ends before a branch does: what it says behind the place where they part is on the branch.

    Args:
        own: the plan's commits since then.
        over: those of the branch.
        read: returns objects.
    """
    keys = {key_of(commit) for commit in over}
    speaking = [commit for commit in own if _speaks(commit)]
    if not speaking and not any(map(_speaks, over)):
        # Both only carry records at the end of the file, of which the younger one has more.
        return sum(record_count(c, read) for c in own) < sum(record_count(c, read) for c in over)
    events = sum(1 for commit in speaking if event_of(commit))
    return (
        len(speaking) < len(over)
        and all(key_of(commit) in keys for commit in speaking)
        and _api_messages(speaking) + events <= 1
    )


def is_made_anew(over: Sequence[Commit], keys: Container[str], *, based: bool) -> bool:
    """Tell whether a plan has all that some commits at the end of a branch have, so that they can give way.

    They do when they were the unfinished end of the file, as it was then. Otherwise the file is another version of the
    session. And all of a subagent's commits give way when it becomes known where it was called from.

    Args:
        over: the commits.
        keys: what the plan's commits are known by.
        based: whether the plan is of a subagent whose caller is known.
    """
    speaking = [commit for commit in over if not _only_carries(commit)]
    if not all(key_of(commit) in keys for commit in speaking):
        return False
    return _api_messages(speaking) <= 1 or (based and not over[-1].parents)


def before_carried(
    tip: ObjectId | None, stop: Container[bytes], read: Read
) -> tuple[ObjectId | None, set[bytes]]:
    """Return where a branch would end without the records it only carries at its end, and these.

    Args:
        tip: where it ends.
        stop: commits at which it is followed no further.
        read: returns objects.
    """
    records: set[bytes] = set()
    while tip is not None and tip not in stop:
        commit = Commit.decode(read(tip))
        if not _only_carries(commit) or not commit.parents:
            break
        records.update(records_left(commit, read))
        tip = commit.parents[0]
    return tip, records


def since_parting(tip: ObjectId | None, over: Sequence[Commit], read: Read) -> list[Commit]:
    """Return the commits that lead to one, newest first, since it parted from those of a branch."""
    shared = {bytes(commit.parents[0]) for commit in over if commit.parents}
    own: list[Commit] = []
    while tip is not None and tip not in shared:
        own.append(Commit.decode(read(tip)))
        tip = own[-1].parents[0] if own[-1].parents else None
    return own


def _only_carries(commit: Commit) -> bool:
    """Tell whether all that an imported commit is for are the records at the end of the file, as it was then."""
    return bool(key_of(commit)) and not _speaks(commit)


def _speaks(commit: Commit) -> bool:
    return bool(commit.operations or event_of(commit))


def _api_messages(commits: Sequence[Commit]) -> int:
    return sum(
        message["role"] == "assistant" for commit in commits for message in messages_of(commit)
    )

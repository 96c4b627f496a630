"""Import onto a branch that has commits of its own.

This is used if a session's branch has other commits or edits, or if the caller named a branch. Planned commits
are matched by key. Missing ones are appended; one that has grown since is completed by a commit that edits its
messages. Nothing on the branch is moved.

Invariant: decides what one planned commit becomes; `write` stores it. The result depends only on the commits of
both sides since they diverged. A round has at most one API message, and only the unfinished round at the end of a
file is planned twice.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.context.calls import Calls, HistoryCalls, link_version
from trace_store.history.summary import event_of
from trace_store.importers.build_commits import (
    AddressOf,
    MessageLocation,
    StoredParts,
    earlier_operations,
    link_calls,
    make_commit,
    messages_of,
    note_calls,
    own_operations,
    put_source,
    remove_operations,
    stored_message,
)
from trace_store.importers.contract import Place, PlannedCommit
from trace_store.importers.dedupe import chain, key_of, read_commit
from trace_store.objects import operations as ops
from trace_store.objects.address import Address, read_address, resolve_calls
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.content import ObjectCollector
from trace_store.store.store import Store
from trace_store.transcripts.sources import Read, Record, record_count, records_unless_purged

COMPLETION = "+"
"""Separator of key and record count in the key of a completing commit."""


@value
class NewCommit:
    """A new commit at the end of the branch."""

    oid: ObjectId
    data: bytes
    message_count: int


class Continuation:
    """Appender of planned commits to a branch.

    Attributes:
        tip: current end of the branch, including new commits.
        places: locations of planned messages that were not born in their own commit.
        only_adds: True if existing commits stay unchanged, even if the plan differs.
    """

    def __init__(
        self,
        store: Store,
        tip: ObjectId | None,
        written: Mapping[int, ObjectId | None] | None = None,
        *,
        saved: Mapping[str, Any] | None = None,
    ) -> None:
        """Read the branch.

        Args:
            store: the repository.
            tip: tip of the branch.
            written: commits of the plan that are not planned again, by number; the branch is read back to the last one.
            saved: state that `save` returned after the last import.
        """
        self._written = {} if written is None else written
        self._numbers: dict[bytes, int] = {}
        for number, oid in self._written.items():
            if oid is not None:
                self._numbers.setdefault(oid, number)
        self._store = store
        self._calls = Calls(HistoryCalls(tip, lambda oid: read_commit(store, oid)))
        self.tip = tip
        self.only_adds = False
        self.places: dict[Place, MessageLocation] = {}
        self._existing: dict[
            str, list[ObjectId]
        ] = {}  # of a planned commit: it and its completions
        self._trailing_records: set[bytes] = set()
        self._edit_base: ObjectId | None = None  # parent of the oldest local edit
        self._last: int | None = None
        self._rows: dict[int, tuple[int | None, int]] = {}
        if saved is not None:
            self._last = saved["last"]
            apart = saved.get("apart")
            self._edit_base = None if apart is None else ObjectId.parse(apart)
            self._rows = {number: (parent, count) for number, parent, count in saved["rows"]}
            self.places = {
                (number, index): MessageLocation(Address.parse(address), ObjectId.parse(oid), n)
                for number, index, address, oid, n in saved["places"]
            }
        newest = self._written.get(max(self._numbers.values(), default=-1))
        for oid, commit in chain(store, tip):
            if oid in self._numbers:
                if self._last is None:
                    self._last = self._numbers[oid]
                # Earlier ones may follow it, if they were missing when the file was read whole.
                if oid == newest:
                    break
                continue
            key = key_of(commit)
            if key and not commit.operations and not event_of(commit):
                self._trailing_records.update(records_unless_purged(commit, store.objects.read))
            if not key and commit.parents and any(map(_changes_context, commit.operations)):
                self._edit_base = commit.parents[0]
            if key:
                self._existing.setdefault(_base_key(key), []).insert(0, oid)

    def save(self) -> dict[str, Any]:
        """Return the state needed to resume, as JSON values."""
        return {
            "last": self._last,
            "apart": None if self._edit_base is None else str(self._edit_base),
            "rows": [[number, *row] for number, row in self._rows.items()],
            "places": [
                [*place, spot.address.hex, str(spot.commit), spot.number]
                for place, spot in self.places.items()
            ],
        }

    def make(
        self,
        planned: PlannedCommit,
        gathering: ObjectCollector,
        address: AddressOf,
        stored_parts: StoredParts,
        *,
        source: bool,
    ) -> tuple[ObjectId | None, NewCommit | None]:
        """Return the commit for a planned one, and the new commit to write, if any."""
        rewound = self._rewound(planned)
        self._rows[planned.number] = (planned.parent, len(planned.messages))
        self._last = planned.number
        # Records at the end of the file got a commit of their own last time.
        records = tuple(
            r for r in planned.records if r.parts or r.raw not in self._trailing_records
        )
        whole = planned._replace(removes=(*rewound, *planned.removes), records=records)
        existing = self._existing.get(planned.key)
        if existing is not None:
            completion = self._complete(whole, existing, rewound, gathering, address, source=source)
            return existing[0], completion
        linked_commit = link_calls(whole, self._calls, address)
        operations = [
            *earlier_operations(whole, gathering.put, address, stored_parts, self._calls),
            # After local edits the reported usage describes another context.
            *own_operations(linked_commit, gathering.put, address, self._edit_base),
        ]
        kept = put_source(whole, gathering.put) if source else None
        if not operations and kept is None and not (whole.meta or whole.links):
            return self.tip, None
        new = self._new_commit(whole, operations, kept, len(planned.messages), gathering)
        return new.oid, new

    def commits_of(self, planned: PlannedCommit) -> Sequence[ObjectId]:
        """Return the commits on the branch for a planned commit, oldest first."""
        return self._existing.get(planned.key, ())

    def _complete(
        self,
        planned: PlannedCommit,
        existing: list[ObjectId],
        rewound: Sequence[Place],
        gathering: ObjectCollector,
        address: AddressOf,
        *,
        source: bool,
    ) -> NewCommit | None:
        """Return the commit that completes a planned one, or None if nothing is new.

        Rewound messages are removed here as well: they may have come from another branch of the session since.
        """
        commits = [read_commit(self._store, oid) for oid in existing]
        current, locations = _current_messages(existing, commits)
        for index, spot in enumerate(locations):
            if spot != MessageLocation.at_birth(existing[0], index):
                self.places[planned.number, index] = spot
        if self.only_adds:
            return None
        unstored = self._unstored_records(planned, commits) if source else ()
        operations: list[Operation] = []
        for spot, worded, message in zip(locations, current, planned.messages, strict=False):
            stored = stored_message(message, gathering.put)["parts"]
            parts = link_version(stored, [worded], lambda _: None)
            if parts != worded:
                note_calls(message.parts, spot.address, self._calls)
                parts = link_version(parts, (), self._calls.answer)
                operations.append(ops.edit(spot.address, parts))
        remainder = planned._replace(messages=planned.messages[len(locations) :])
        more = link_calls(remainder, self._calls, address).messages
        if more:
            operations.append(ops.add([stored_message(each, gathering.put) for each in more]))
        removed = _removed(existing, commits)
        removals = [target for target in map(address, rewound) if target not in removed]
        if not operations and not unstored and not removals:
            return None
        if planned.usage and operations:
            first = commits[0]
            operations.append(
                ops.usage(planned.usage, about=first.parents[0] if first.parents else None)
            )
        operations = [*remove_operations(removals), *operations]
        rest = planned._replace(
            key=f"{planned.key}{COMPLETION}{len(planned.records)}",
            messages=remainder.messages,
            records=unstored,
            meta={},
        )
        kept = put_source(rest, gathering.put) if source else None
        new = self._new_commit(rest, operations, kept, len(more), gathering)
        for index in range(len(more)):
            self.places[planned.number, len(locations) + index] = MessageLocation.at_birth(
                new.oid, index
            )
        existing.append(new.oid)
        return new

    def _unstored_records(
        self, planned: PlannedCommit, commits: Sequence[Commit]
    ) -> tuple[Record, ...]:
        """Return records not stored yet; none if the first import stored no records."""
        read = self._store.objects.read
        count = sum(record_count(commit, read) for commit in commits)
        if not count or count == len(planned.records):
            return ()
        kept = {raw for commit in commits for raw in records_unless_purged(commit, read)}
        return tuple(record for record in planned.records if record.raw not in kept)

    def _new_commit(
        self,
        planned: PlannedCommit,
        operations: list[Operation],
        source: ObjectId | None,
        message_count: int,
        gathering: ObjectCollector,
    ) -> NewCommit:
        parents = () if self.tip is None else (self.tip,)
        data = make_commit(planned, operations, parents, source).encode()
        self.tip = gathering.put_object(data)
        self._calls.written(self.tip)
        return NewCommit(self.tip, data, message_count)

    def _rewound(self, planned: PlannedCommit) -> tuple[Place, ...]:
        """Return the messages that a rewind dropped.

        The branch itself is never moved back.
        """
        if self._last is None or planned.parent == self._last:
            return ()
        dropped: list[Place] = []
        base = self._effective_number(planned.parent)
        number: int | None = self._last
        while number is not None and self._effective_number(number) != base:
            row = self._row(number)
            if row is None:
                break
            parent, count = row
            dropped += [(number, index) for index in range(count)]
            number = parent
        return tuple(sorted(dropped))

    def _effective_number(self, number: int | None) -> int | None:
        """Return the number of the commit for a planned one: its parent's if it was empty."""
        if number is None or number in self._rows:
            return number
        oid = self._written.get(number)
        return number if oid is None else self._numbers[oid]

    def _row(self, number: int) -> tuple[int | None, int] | None:
        """Return the parent and the message count of a planned commit."""
        if number in self._rows:
            return self._rows[number]
        oid = self._written.get(number)
        if oid is None:
            return None
        commit = read_commit(self._store, oid)
        parent = self._numbers.get(commit.parents[0]) if commit.parents else None
        return parent, len(messages_of(commit))


def _removed(oids: Sequence[ObjectId], commits: Sequence[Commit]) -> set[Address]:
    """Return the messages that commits remove."""
    return {
        target
        for oid, commit in zip(oids, commits, strict=True)
        for operation in commit.operations
        if operation.name == ops.REMOVE
        for target in ops.targets_of(operation, oid)
    }


def _changes_context(operation: Operation) -> bool:
    """Return True if the operation changes the compiled context."""
    if operation.name == ops.ANNOTATE:
        return operation.fields.get("priority") == ops.SKIP
    return operation.name not in ops.LEAVES_CONTEXT


def _base_key(key: str) -> str:
    base, plus, count = key.rpartition(COMPLETION)
    return base if plus and count.isdigit() else key


def _current_messages(
    oids: list[ObjectId], commits: list[Commit]
) -> tuple[list[Any], list[MessageLocation]]:
    """Return the current parts of the messages, and their locations."""
    current: list[Any] = []
    locations: list[MessageLocation] = []
    for oid, commit in zip(oids, commits, strict=True):
        for operation in commit.operations:
            if operation.name == ops.EDIT and commit is not commits[0]:
                target = read_address(operation.fields["target"], oid)
                for index, spot in enumerate(locations):
                    if spot.address == target:
                        current[index] = resolve_calls(operation.fields["parts"], oid)
        for index, (address, message) in enumerate(ops.added_messages(commit, oid)):
            current.append(resolve_calls(message["parts"], oid))
            locations.append(MessageLocation(address, oid, index))
    return current, locations


def is_older(own: Sequence[Commit], over: Sequence[Commit], read: Read) -> bool:
    """Return True if a branch already has everything in a plan.

    Args:
        own: commits of the plan since they diverged.
        over: commits of the branch since they diverged.
        read: reads objects.
    """
    keys = {key_of(commit) for commit in over}
    content_commits = [commit for commit in own if _has_content(commit)]
    if not content_commits and not any(map(_has_content, over)):
        # Both have only records of the end of the file; the newer one has more.
        return sum(record_count(c, read) for c in own) < sum(record_count(c, read) for c in over)
    events = sum(1 for commit in content_commits if event_of(commit))
    return (
        len(content_commits) < len(over)
        and all(key_of(commit) in keys for commit in content_commits)
        and _api_messages(content_commits) + events <= 1
    )


def is_superseded(over: Sequence[Commit], keys: Container[str], *, based: bool) -> bool:
    """Return True if a plan covers the end of a branch, so that it can be replaced.

    This holds if the commits are the unfinished end of an earlier import; otherwise the file is another version of
    the session. All commits of a subagent can be replaced once its caller is known.

    Args:
        over: commits at the end of the branch.
        keys: keys of the plan's commits.
        based: True if the plan is a subagent's with a known caller.
    """
    content_commits = [commit for commit in over if not _has_only_records(commit)]
    if not all(key_of(commit) in keys for commit in content_commits):
        return False
    return _api_messages(content_commits) <= 1 or (based and not over[-1].parents)


def without_record_commits(
    tip: ObjectId | None, stop: Container[bytes], read: Read
) -> tuple[ObjectId | None, set[bytes]]:
    """Return the last commit with content of a branch, and the records after it.

    Args:
        tip: tip of the branch.
        stop: commits at which the walk ends.
        read: reads objects.
    """
    records: set[bytes] = set()
    while tip is not None and tip not in stop:
        commit = Commit.decode(read(tip))
        if not _has_only_records(commit) or not commit.parents:
            break
        records.update(records_unless_purged(commit, read))
        tip = commit.parents[0]
    return tip, records


def commits_since_fork(tip: ObjectId | None, over: Sequence[Commit], read: Read) -> list[Commit]:
    """Return the commits of a tip since it diverged from a branch, newest first."""
    shared = {bytes(commit.parents[0]) for commit in over if commit.parents}
    own: list[Commit] = []
    while tip is not None and tip not in shared:
        own.append(Commit.decode(read(tip)))
        tip = own[-1].parents[0] if own[-1].parents else None
    return own


def _has_only_records(commit: Commit) -> bool:
    """Return True if an imported commit only stores records of the end of the file."""
    return bool(key_of(commit)) and not _has_content(commit)


def _has_content(commit: Commit) -> bool:
    return bool(commit.operations or event_of(commit))


def _api_messages(commits: Sequence[Commit]) -> int:
    return sum(
        message["role"] == "assistant" for commit in commits for message in messages_of(commit)
    )

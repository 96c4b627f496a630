"""Storage of a plan, in batches.

Invariant: after every batch the reachable commits are a prefix of the plan, so a killed import leaves a valid store
and can resume. A branch is fast-forwarded, or replaced by commits that cover all of its own; the replaced tip stays
under `refs/trash/`. A branch with foreign commits is appended to. Everything is durable before the state of the
file is saved and before the import returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from trace_store.base.frozen import field, mutable
from trace_store.base.oid import ObjectId, hash_object
from trace_store.context.calls import Calls, HistoryCalls
from trace_store.context.content import message_at
from trace_store.context.snapshots import fold_of
from trace_store.contracts import ANY, BATCH, DURABLE, RefEdit, Transaction
from trace_store.contracts.ref_names import TRASH
from trace_store.importers.append_import import (
    Continuation,
    commits_since_fork,
    is_older,
    is_superseded,
    without_record_commits,
)
from trace_store.importers.build_commits import (
    MessageLocation,
    RecordPlaces,
    earlier_operations,
    encode_plain,
    equal_except_source,
    link_calls,
    make_commit,
    messages_of,
    own_operations,
    put_source,
    remove_operations,
)
from trace_store.importers.contract import (
    Place,
    Planned,
    PlannedCommit,
    PlannedMessage,
    PlannedThread,
    Watcher,
)
from trace_store.importers.dedupe import KnownCommits, SessionIndex, chain, read_commit
from trace_store.maintenance.schedule import SealSchedule
from trace_store.objects.address import Address, resolve_calls
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.content import ObjectCollector
from trace_store.objects.message import Message, load_message
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.objects.reports import report_of, reported_tokens
from trace_store.odb.tombstones import drop_purged
from trace_store.refs.reflog import IMPORT
from trace_store.store.store import Store
from trace_store.transcripts.sources import SOURCE_KEY, Record, record_count, records_unless_purged

BATCH_COMMITS = 256
BATCH_BYTES = 4 * 1024 * 1024
RECENT_BYTES = 4 * 1024 * 1024
"""Most bytes of a file's objects that stay in memory until its sessions are listed."""


Written = tuple[Sequence[tuple[ObjectId, bytes]], Sequence[RefEdit]]
"""The objects and ref moves of a transaction."""


@mutable
class ImportLog:
    """The transactions of an import, which one undo takes back.

    They are sealed in pieces, so that neither the journal nor its view in memory grows with the import.

    Attributes:
        message: the message of the next entry in the reflogs: the first entry names the import, the others continue it.
        kept: all that was written, for another process; or None.
    """

    message: str
    _schedule: SealSchedule
    kept: list[Written] | None = None
    _recent_bytes: int = 0

    @classmethod
    def of(cls, store: Store, name: str, *, kept: list[Written] | None = None) -> ImportLog:
        """Return the log of a new import; `name` is the file, or the number of files."""
        return cls(f"{IMPORT}: {name}", SealSchedule(store, in_pieces=True), kept)

    def write(
        self, store: Store, objects: Mapping[ObjectId, bytes], edits: Sequence[RefEdit]
    ) -> None:
        """Write a transaction that shares its sync with later ones; purged objects are left out.

        Raises:
            PurgedError: a commit itself contains purged text.
            As `Store.transact`.
        """
        durability = BATCH if store.durability == DURABLE else store.durability
        storable = list(drop_purged(store.objects, objects).items())
        transaction = Transaction(storable, list(edits), self.message)
        store.transact(lambda _: transaction, author=store.import_author, durability=durability)
        self.message = IMPORT
        if self.kept is not None:
            self.kept.append((storable, transaction.edits))
        size = sum(len(data) for _, data in storable)
        if self._recent_bytes + size > RECENT_BYTES:
            self.end_piece(store)
        if size <= RECENT_BYTES:
            self._recent_bytes += size
            store.objects.recent.update(storable)

    def end_piece(self, store: Store) -> None:
        """Forget the objects in memory, which were kept to list the sessions of a file, and seal if that is due."""
        store.objects.recent.clear()
        self._recent_bytes = 0
        self._schedule.seal_if_due()


class PlanWriter:
    """Writer of one plan."""

    def __init__(
        self,
        store: Store,
        ref: str,
        log: ImportLog,
        *,
        folder: str,
        source: bool,
        known: KnownCommits,
        oids: Mapping[int, ObjectId | None],
        continuation: Continuation | None = None,
        base: ObjectId | None = None,
        session_index: SessionIndex | None = None,
        record_places: RecordPlaces | None = None,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        """Create a writer.

        Args:
            store: the repository.
            ref: full name of the session's branch.
            log: the import's.
            folder: prefix of its side branches.
            source: store raw records.
            known: commits of the session in the store.
            oids: commits that were written before and are not planned again.
            continuation: appender for a branch with foreign commits.
            base: the commit that a subagent branches from, if the plan is of its own file.
            session_index: other sessions, which may share commits; None if none may.
            record_places: records which commit holds which record.
            watchers: receive new commits.
        """
        self._store = store
        self._ref = ref
        self._log = log
        self._folder = folder
        self._source = source
        self._known = known
        self._oids: dict[int, ObjectId | None] = dict(oids)
        self._continuation = continuation
        self._base = base
        self._session_index = session_index
        self._watchers = watchers
        self._first_key: str | None = None
        self._record_places = RecordPlaces() if record_places is None else record_places
        self._others = KnownCommits()
        self._extra_records: list[Record] = []
        self._own_commits: set[bytes] = {oid for oid in oids.values() if oid is not None}
        if continuation is not None and continuation.tip is not None:
            self._own_commits.add(continuation.tip)
        self._continued: set[bytes] = set()
        self._keys: set[str] = set()
        self._roots: set[int] = set()
        self._names: dict[int, str] = {0: ""}
        self._tips: dict[int, ObjectId] = {}
        self._calls: dict[ObjectId | None, Calls] = {}  # by tip of the line
        self._changed_threads: set[int] = (
            set()
        )  # threads whose tip or name changed since the last batch
        self._refs: dict[str, ObjectId | None] = {}
        self._copies: dict[str, str] = {}
        self._older: set[str] = set()
        self._objects: dict[ObjectId, bytes] = {}
        self._bytes = 0
        self._batch = 0
        self.written = WriteResult()

    @property
    def oids(self) -> Mapping[int, ObjectId | None]:
        """Commits by number in the plan; None for an empty one."""
        return self._oids

    @property
    def names(self) -> Mapping[int, str]:
        """Names of threads."""
        return self._names

    @property
    def is_older(self) -> bool:
        """Whether commits are on no branch, because their branch has a later version of them."""
        return bool(self._older)

    def saved_oids(self, *, all: bool) -> dict[int, ObjectId | None]:
        """Return the commits by number, or only the last one and those that all others descend from."""
        if all or not self._oids:
            return dict(self._oids)
        ends = {*self._roots, min(self._oids), max(self._oids)}
        return {number: oid for number, oid in self._oids.items() if number in ends}

    def resume(self, names: Mapping[int, str]) -> None:
        """Restore the threads of an earlier import."""
        self._names.update(names)

    def take(self, planned: Planned) -> None:
        """Write the next piece of the plan, or queue it for the next batch.

        Raises:
            RefChangedError: another process moved a branch of the session.
            StorageError: the disk refused.
        """
        if isinstance(planned, PlannedThread):
            self._names[planned.thread] = planned.name
            self._changed_threads.add(planned.thread)
            return
        if self._continuation is not None and not self._names.get(planned.thread):
            self._continue(planned, self._continuation)
        else:
            self._write(planned)
        if self._batch >= BATCH_COMMITS or self._bytes >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the batch and move the branches; errors as in `take`."""
        edits = self._edits(sorted(self._changed_threads))
        self._changed_threads.clear()
        self._write_out(edits)

    def _write_out(self, edits: Sequence[RefEdit]) -> None:
        if not edits and not self._objects:
            return
        self._log.write(self._store, self._objects, edits)
        for edit in edits:
            self._refs[edit.name] = edit.new
            if edit.name.startswith(TRASH):
                self.written.trashed.append(edit.name)
        self._objects = {}
        self._bytes = self._batch = 0

    @property
    def waits_for_new_commit(self) -> bool:
        """Whether records of a copied session wait for its first commit of its own."""
        return bool(self._extra_records)

    def finish(self) -> WriteResult:
        """Write the rest and return the result; errors as in `take`."""
        # The whole plan may justify a move that one batch could not.
        edits = self._edits(self._names)
        moved = {edit.name for edit in edits}
        branches = list(map(self._full, self._names.values()))
        self._write_out([*edits, *self._moves_back(ref for ref in branches if ref not in moved)])
        for ref in (*branches, *self._copies.values()):
            tip = self._value(ref)
            if tip is not None:
                self.written.branches[ref] = tip
        now = self.written.branches.get(self._ref)
        if self._session_index is not None and self._first_key is not None and now is not None:
            self._session_index.note(self._ref, now, self._first_key)
        return self.written

    def _write(self, planned: PlannedCommit) -> None:
        parent = self._base if planned.parent is None else self._oids[planned.parent]
        calls = self._calls.pop(parent, None) or Calls(HistoryCalls(parent, self._commit))
        oid = self._build(planned, parent, calls)
        if oid is not None:
            calls.written(oid)
            parent = oid
        self._calls[parent] = calls
        self._note(planned, parent)

    def _build(
        self, planned: PlannedCommit, parent: ObjectId | None, calls: Calls
    ) -> ObjectId | None:
        """Return the commit for a planned one, new or existing; None if it would be empty."""
        linked_commit = link_calls(planned, calls, self._address)
        gathering, data = self._encode(planned, linked_commit, parent, calls)
        if data is None:
            return None
        if self._session_index is not None and self._first_key is None:
            self._first_key = planned.key
            for tip in self._session_index.others_with(self._ref, planned.key):
                self._others.add(self._store, tip)
        oid = hash_object(data)
        if oid not in self._known.oids:
            same = self._find_equivalent(planned, parent, data)
            if same is None:
                if self._extra_records:
                    planned = planned._replace(records=(*self._extra_records, *planned.records))
                    self._extra_records = []
                    gathering, data = self._encode(planned, linked_commit, parent, calls)
                    assert data is not None, "there was something in it without the records"
                    oid = hash_object(data)
                gathering.add(oid, data)
                types = [part.type for message in planned.messages for part in message.parts]
                self._queue(gathering, len(planned.messages), types)
                if self._watchers:
                    is_reported = planned.usage and not planned.replaces
                    count = reported_tokens(planned.usage) if is_reported else 0
                    self._tell(oid, parent, planned.messages, count)
                if self._source:
                    self._record_places.note_source(planned.records, oid)
                return oid
            self._record_places.note_equivalent(
                planned, same, read_commit(self._store, same), self._read
            )
            oid = same
        elif self._source:
            self._record_places.note_source(planned.records, oid)
        self.written.present += 1
        return oid

    def _encode(
        self,
        planned: PlannedCommit,
        linked_commit: PlannedCommit,
        parent: ObjectId | None,
        calls: Calls,
    ) -> tuple[ObjectCollector, bytes | None]:
        """Return the contents and the bytes of a commit; None if it would be empty.

        Args:
            planned: the commit.
            linked_commit: the commit with linked results.
            parent: its parent.
            calls: calls of its line.
        """
        gathering = ObjectCollector()
        source = put_source(planned, gathering.put) if self._source else None
        if planned.parent is not None or parent is None:
            data = encode_plain(linked_commit, parent, gathering.put, source)
            if data is not None:
                return gathering, data
        operations = [
            *earlier_operations(planned, gathering.put, self._address, self._stored_parts, calls),
            *own_operations(linked_commit, gathering.put, self._address),
        ]
        if planned.parent is None and parent is not None:
            operations = [*self._removal_of_all(parent), *operations]
        if not operations and source is None and not (planned.meta or planned.links):
            return gathering, None
        parents = () if parent is None else (parent,)
        return gathering, make_commit(planned, operations, parents, source).encode()

    def _continue(self, planned: PlannedCommit, continuation: Continuation) -> None:
        gathering = ObjectCollector()
        oid, new = continuation.make(
            planned, gathering, self._address, self._stored_parts, source=self._source
        )
        if new is None:
            self.written.present += 1
        else:
            commit = Commit.decode(new.data)
            stored = messages_of(commit)
            types = [part["type"] for message in stored for part in message["parts"]]
            self._queue(gathering, len(stored), types)
            if self._watchers:
                report = report_of(commit)
                self._tell(
                    new.oid,
                    commit.parents[0] if commit.parents else None,
                    [load_message(message, self._read) for message in stored],
                    0 if report is None else report.token_count,
                )
            self._own_commits.add(new.oid)
        if self._source:
            holding = [*continuation.commits_of(planned), *([new.oid] if new is not None else ())]
            self._record_places.note_existing(planned.records, dict.fromkeys(holding), self._read)
        self._oids[planned.number] = oid
        if continuation.tip is not None:
            self._continued.add(continuation.tip)
            self._tips[planned.thread] = continuation.tip
            self._changed_threads.add(planned.thread)

    def _address(self, place: Place) -> Address:
        return self._location(place).address

    def _stored_parts(self, place: Place) -> Sequence[Mapping[str, object]]:
        _, commit, number = self._location(place)
        return resolve_calls(message_at((commit, number), self._commit)["parts"], commit)

    def _location(self, place: Place) -> MessageLocation:
        """Return the location of a planned message."""
        if self._continuation is not None and place in self._continuation.places:
            return self._continuation.places[place]
        number, index = place
        oid = self._oids[number]
        assert oid is not None, "a commit with messages is always made"
        return MessageLocation.at_birth(oid, index)

    def _commit(self, oid: bytes) -> Commit:
        """Return a stored or queued commit."""
        return Commit.decode(self._read(oid))

    def _read(self, oid: bytes) -> bytes:
        """Return a stored or queued object."""
        data = self._objects.get(ObjectId(oid))
        return self._store.objects.read(oid) if data is None else data

    def _removal_of_all(self, base: ObjectId) -> list[Operation]:
        """Return the operations that remove the caller's context for a subagent."""
        entries = fold_of(self._store, base).entries
        return remove_operations([entry.address for entry in entries if not entry.hidden])

    def _note(self, planned: PlannedCommit, oid: ObjectId | None) -> None:
        self._oids[planned.number] = oid
        self._keys.add(planned.key)
        if planned.parent is None:
            self._roots.add(planned.number)
        if oid is not None:
            self._own_commits.add(oid)
            self._tips[planned.thread] = oid
            self._changed_threads.add(planned.thread)

    def _tell(
        self,
        oid: ObjectId,
        parent: ObjectId | None,
        messages: Sequence[PlannedMessage | Message],
        token_count: int,
    ) -> None:
        for watcher in self._watchers:
            watcher.note(oid, parent, messages, token_count)

    def _queue(self, gathering: ObjectCollector, messages: int, types: Sequence[str]) -> None:
        """Queue the objects of a new commit and count its messages and parts."""
        new = dict(gathering.objects)
        self._objects.update(new)
        self._bytes += sum(map(len, new.values()))
        self._batch += 1
        written = self.written
        written.commits += 1
        written.messages += messages
        written.calls += types.count(ToolCall.type)
        written.results += types.count(ToolResult.type)

    def _find_equivalent(
        self, planned: PlannedCommit, parent: ObjectId | None, data: bytes
    ) -> ObjectId | None:
        """Return an existing commit that may represent this one, or None.

        It may if one of them has no source, or if both have as many records: then only surroundings differ, as in a
        rewritten document. It may also if it belongs to the session that this one was copied from, so that a copy
        continues from the session's own commits.
        """
        key = (parent or b"", planned.key)
        candidates: list[ObjectId] = [
            *self._known.by_key.get(key, ()),
            *self._others.by_key.get(key, ()),
        ]
        if not candidates:
            return None
        commit = Commit.decode(data)
        for oid in candidates:
            other = read_commit(self._store, oid)
            if not equal_except_source(commit, other):
                continue
            if oid in self._others.oids:
                self._keep_extra_records(planned, other)
                self.written.shared += 1
                return oid
            if SOURCE_KEY not in other.meta or SOURCE_KEY not in commit.meta:
                return oid
            if record_count(other, self._read) == len(planned.records):
                return oid
        return None

    def _keep_extra_records(self, planned: PlannedCommit, other: Commit) -> None:
        """Queue records that only the copy has for its next commit."""
        stored = set(records_unless_purged(other, self._store.objects.read))
        self._extra_records += [r for r in planned.records if not r.parts and r.raw not in stored]

    def _edits(self, threads: Iterable[int]) -> list[RefEdit]:
        edits: list[RefEdit] = []
        for thread in threads:
            name, tip = self._names.get(thread), self._tips.get(thread)
            # Abandoned turns are on the continued branch itself.
            if name is None or tip is None:
                continue
            if not name or tip not in self._continued:
                edits += self._moves(self._full(name), tip)
        return edits

    def _moves(self, ref: str, tip: ObjectId) -> list[RefEdit]:
        now = self._value(ref)
        if now == tip:
            return []
        if now is None or now in self._own_commits:
            return [RefEdit(ref, tip, now)]
        if tip in self._known.oids:
            return []  # the branch is here or ahead
        over = []
        for oid, commit in chain(self._store, now):
            if oid in self._own_commits:
                break
            over.append(commit)
        aside = self._copies.get(ref)
        if is_older(commits_since_fork(tip, over, self._read), over, self._read):
            self._older.add(ref)
            return []
        self._older.discard(ref)
        if is_superseded(over, self._keys, based=self._base is not None):
            edits = _replace_branch(ref, now, tip)
            if aside is not None:
                edits.append(RefEdit(aside, None, ANY))
                del self._copies[ref]
            return edits
        if aside is None:
            aside = self._copies[ref] = f"{ref}/copies/{tip.short(8)}"
        before = self._value(aside)
        return [] if before == tip else [RefEdit(aside, tip, before)]

    def _moves_back(self, refs: Iterable[str]) -> Iterator[RefEdit]:
        """Yield moves back of branches that end in another branch's records."""
        for ref in refs:
            now = self._value(ref)
            back, records = without_record_commits(now, self._own_commits, self._read)
            if now and back in self._own_commits and records and records <= self._new_records():
                yield from _replace_branch(ref, now, back)

    def _new_records(self) -> set[bytes]:
        """Return the records of the plan's new commits."""
        new = {oid for oid in self._oids.values() if oid is not None} - self._known.oids
        commits = [Commit.decode(self._read(oid)) for oid in new]
        return {raw for commit in commits for raw in records_unless_purged(commit, self._read)}

    def _value(self, ref: str) -> ObjectId | None:
        if ref not in self._refs:
            self._refs[ref] = self._store.refs.read(ref)
        return self._refs[ref]

    def _full(self, name: str) -> str:
        return f"{self._folder}/{name}" if name else self._ref


def _replace_branch(ref: str, now: ObjectId, to: ObjectId) -> list[RefEdit]:
    """Return the edits that replace a branch and keep its tip in the trash."""
    return [
        RefEdit(f"{TRASH}{ref.removeprefix('refs/')}/{now.short()}", now, ANY),
        RefEdit(ref, to, now),
    ]


@mutable
class WriteResult:
    """Result of writing a plan.

    Attributes:
        commits: new commits.
        messages: messages that they create.
        calls, results: tool calls and results in these.
        present: planned commits that already existed.
        shared: of these, commits of the session that this one was copied from.
        branches: refs of the session with their tips.
        trashed: refs that keep replaced tips.
    """

    commits: int = 0
    messages: int = 0
    calls: int = 0
    results: int = 0
    present: int = 0
    shared: int = 0
    branches: dict[str, ObjectId] = field(default_factory=dict)
    trashed: list[str] = field(default_factory=list)


def make_durable(store: Store) -> None:
    """Sync batched transactions, if the store is durable; errors as in `Store.sync`."""
    if store.durability == DURABLE:
        store.sync()

"""Write a plan into a store, in batches.

After every batch the reachable commits are a prefix of the plan, so a killed import leaves a valid store and resumes
there. A branch only moves forward, or over commits that the plan replaces completely; the old tip stays under
`refs/trash/`. If others extended the branch, the import appends to its end.

Everything is durable before the state of the file is saved, and before the import returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from trace_store.context.calls import Calls, find_in_history
from trace_store.context.content import message_at
from trace_store.context.snapshots import fold_of
from trace_store.contracts import ANY, BATCH, DURABLE, RefEdit, Transaction
from trace_store.frozen import field, mutable
from trace_store.importers.append_import import (
    Continuation,
    before_carried,
    is_made_anew,
    is_older,
    since_parting,
)
from trace_store.importers.build_commits import (
    Placing,
    Spot,
    differs_in_source_only,
    earlier_operations,
    encode_plain,
    linked,
    make_commit,
    messages_of,
    own_operations,
    put_source,
    removal,
)
from trace_store.importers.contract import Place, Planned, PlannedCommit, PlannedThread
from trace_store.importers.dedupe import Beginnings, Known, chain, read_commit
from trace_store.objects.address import Address, absolute
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.content import Gathering
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.tombstones import admit
from trace_store.oid import ObjectId, hash_object
from trace_store.refs.names import TRASH
from trace_store.store.handle import Store
from trace_store.transcripts.records import Record
from trace_store.transcripts.sources import SOURCE_KEY, record_count, records_left

BATCH_COMMITS = 256
BATCH_BYTES = 4 * 1024 * 1024
REFLOG_MESSAGE = "import"


class PlanWriter:
    """Takes a plan, one piece after the other."""

    def __init__(
        self,
        store: Store,
        ref: str,
        *,
        folder: str,
        source: bool,
        known: Known,
        oids: Mapping[int, ObjectId | None],
        continuation: Continuation | None = None,
        base: ObjectId | None = None,
        beginnings: Beginnings | None = None,
        placing: Placing | None = None,
    ) -> None:
        """Begin to write.

        Args:
            store: where to.
            ref: the full name of the session's branch.
            folder: what the names of its own branches begin with.
            source: whether raw records are kept.
            known: what the store holds of the session.
            oids: the commits of the plan that were written before and are not planned again.
            continuation: how to go on at the end of a branch that is not the session's alone.
            base: the commit that a subagent branches from, when the plan is of its own file.
            beginnings: of other sessions, which may hold the same commits; None when none may.
            placing: takes note of which commit holds which record.
        """
        self._store = store
        self._ref = ref
        self._folder = folder
        self._source = source
        self._known = known
        self._oids: dict[int, ObjectId | None] = dict(oids)
        self._continuation = continuation
        self._base = base
        self._beginnings = beginnings
        self._first_key: str | None = None
        self._placing = Placing() if placing is None else placing
        self._others = Known()
        self._carried: list[Record] = []
        self._passed: set[bytes] = {oid for oid in oids.values() if oid is not None}
        if continuation is not None and continuation.tip is not None:
            self._passed.add(continuation.tip)
        self._continued: set[bytes] = set()
        self._keys: set[str] = set()
        self._names: dict[int, str] = {0: ""}
        self._tips: dict[int, ObjectId] = {}
        self._calls: dict[ObjectId | None, Calls] = {}  # by the ends of lines
        self._moved: set[int] = set()  # threads with another tip or name than at the last batch
        self._refs: dict[str, ObjectId | None] = {}
        self._asides: dict[str, str] = {}
        self._objects: dict[ObjectId, bytes] = {}
        self._bytes = 0
        self._batch = 0
        self.written = Written()

    @property
    def oids(self) -> Mapping[int, ObjectId | None]:
        """The commits by their number in the plan; None for one that there was no reason to make."""
        return self._oids

    @property
    def names(self) -> Mapping[int, str]:
        """The names of threads."""
        return self._names

    def resume(self, names: Mapping[int, str]) -> None:
        """Take up the threads of an earlier import of the same file."""
        self._names.update(names)

    def take(self, planned: Planned) -> None:
        """Write the next piece of the plan, or hold it for the next batch.

        Raises:
            RefChangedError: somebody moved a branch of the session meanwhile.
            StorageError: the disk refused.
        """
        if isinstance(planned, PlannedThread):
            self._names[planned.thread] = planned.name
            self._moved.add(planned.thread)
            return
        if self._continuation is not None and not self._names.get(planned.thread):
            self._continue(planned, self._continuation)
        else:
            self._write(planned)
        if self._batch >= BATCH_COMMITS or self._bytes >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is held, and move the branches; errors as in `take`."""
        edits = self._edits(sorted(self._moved))
        self._moved.clear()
        self._write_out(edits)

    def _write_out(self, edits: Sequence[RefEdit]) -> None:
        if not edits and not self._objects:
            return
        transaction = Transaction(kept_of(self._store, self._objects), list(edits), REFLOG_MESSAGE)
        together(self._store, transaction)
        for edit in edits:
            self._refs[edit.name] = edit.new
            if edit.name.startswith(TRASH):
                self.written.trashed.append(edit.name)
        self._objects = {}
        self._bytes = self._batch = 0

    def finish(self) -> Written:
        """Write the rest and return what was done; errors as in `take`."""
        # What the whole plan has may let a branch move that one batch could not.
        edits = self._edits(self._names)
        moved = {edit.name for edit in edits}
        branches = list(map(self._full, self._names.values()))
        self._write_out([*edits, *self._retreats(ref for ref in branches if ref not in moved)])
        for ref in (*branches, *self._asides.values()):
            tip = self._value(ref)
            if tip is not None:
                self.written.branches[ref] = tip
        now = self.written.branches.get(self._ref)
        if self._beginnings is not None and self._first_key is not None and now is not None:
            self._beginnings.note(self._ref, now, self._first_key)
        return self.written

    def _write(self, planned: PlannedCommit) -> None:
        parent = self._base if planned.parent is None else self._oids[planned.parent]
        calls = self._calls.pop(parent, None) or Calls(find_in_history(parent, self._commit))
        oid = self._made(planned, parent, calls)
        if oid is not None:
            calls.written(oid)
            parent = oid
        self._calls[parent] = calls
        self._note(planned, parent)

    def _made(
        self, planned: PlannedCommit, parent: ObjectId | None, calls: Calls
    ) -> ObjectId | None:
        """Return the commit that is, or stands for, a planned one; None when there would be nothing in it."""
        telling = linked(planned, calls, self._address)
        gathering, data = self._encode(planned, telling, parent, calls)
        if data is None:
            return None
        if self._beginnings is not None and self._first_key is None:
            self._first_key = planned.key
            for tip in self._beginnings.others_with(self._ref, planned.key):
                self._others.add(self._store, tip)
        oid = hash_object(data)
        if oid not in self._known.oids:
            same = self._same(planned, parent, data)
            if same is None:
                if self._carried:
                    planned = planned._replace(records=(*self._carried, *planned.records))
                    self._carried = []
                    gathering, data = self._encode(planned, telling, parent, calls)
                    assert data is not None, "there was something in it without the records"
                    oid = hash_object(data)
                gathering.add(oid, data)
                types = [part.type for message in planned.messages for part in message.parts]
                self._hold(gathering, len(planned.messages), types)
                if self._source:
                    self._placing.made(planned.records, oid)
                return oid
            self._placing.shared(planned, same, read_commit(self._store, same), self._read)
            oid = same
        elif self._source:
            self._placing.made(planned.records, oid)
        self.written.present += 1
        return oid

    def _encode(
        self, planned: PlannedCommit, telling: PlannedCommit, parent: ObjectId | None, calls: Calls
    ) -> tuple[Gathering, bytes | None]:
        """Return the bytes of the commit with the contents it names; None when there would be nothing in it.

        Args:
            planned: the commit.
            telling: the same with its results linked.
            parent: its parent.
            calls: those of its line.
        """
        gathering = Gathering()
        source = put_source(planned, gathering.put) if self._source else None
        if planned.parent is not None or parent is None:
            data = encode_plain(telling, parent, gathering.put, source)
            if data is not None:
                return gathering, data
        operations = [
            *earlier_operations(planned, gathering.put, self._address, self._stored_parts, calls),
            *own_operations(telling, gathering.put, self._address),
        ]
        if planned.parent is None and parent is not None:
            operations = [*self._removal_of_all(parent), *operations]
        if not operations and source is None and not (planned.meta or planned.links):
            return gathering, None
        parents = () if parent is None else (parent,)
        return gathering, make_commit(planned, operations, parents, source).encode()

    def _continue(self, planned: PlannedCommit, continuation: Continuation) -> None:
        gathering = Gathering()
        oid, made = continuation.make(
            planned, gathering, self._address, self._stored_parts, source=self._source
        )
        if made is None:
            self.written.present += 1
        else:
            stored = messages_of(Commit.decode(made.data))
            types = [part["type"] for message in stored for part in message["parts"]]
            self._hold(gathering, len(stored), types)
            self._passed.add(made.oid)
        if self._source:
            holding = [*continuation.commits_of(planned), *([made.oid] if made is not None else ())]
            self._placing.spread(planned.records, dict.fromkeys(holding), self._read)
        self._oids[planned.number] = oid
        if continuation.tip is not None:
            self._continued.add(continuation.tip)
            self._tips[planned.thread] = continuation.tip
            self._moved.add(planned.thread)

    def _address(self, place: Place) -> Address:
        return self._spot(place).address

    def _stored_parts(self, place: Place) -> Sequence[Mapping[str, object]]:
        _, commit, number = self._spot(place)
        return absolute(message_at((commit, number), self._commit)["parts"], commit)

    def _spot(self, place: Place) -> Spot:
        """Return where a message of the plan is."""
        if self._continuation is not None and place in self._continuation.places:
            return self._continuation.places[place]
        number, index = place
        oid = self._oids[number]
        assert oid is not None, "a commit with messages is always made"
        return Spot.born(oid, index)

    def _commit(self, oid: bytes) -> Commit:
        """Return a commit that is in the store, or will be with the next batch."""
        return Commit.decode(self._read(oid))

    def _read(self, oid: bytes) -> bytes:
        """Return an object that is in the store, or will be with the next batch."""
        data = self._objects.get(ObjectId(oid))
        return self._store.objects.read(oid) if data is None else data

    def _removal_of_all(self, base: ObjectId) -> list[Operation]:
        """Return the operations by which a subagent begins without the context it was called from."""
        entries = fold_of(self._store, base).entries
        return removal([entry.address for entry in entries if not entry.hidden])

    def _note(self, planned: PlannedCommit, oid: ObjectId | None) -> None:
        self._oids[planned.number] = oid
        self._keys.add(planned.key)
        if oid is not None:
            self._passed.add(oid)
            self._tips[planned.thread] = oid
            self._moved.add(planned.thread)

    def _hold(self, gathering: Gathering, messages: int, types: Sequence[str]) -> None:
        """Take the objects of a new commit for the next batch, given its messages and the types of all their parts."""
        new = dict(gathering.objects)
        self._objects.update(new)
        self._bytes += sum(map(len, new.values()))
        self._batch += 1
        written = self.written
        written.commits += 1
        written.messages += messages
        written.calls += types.count(ToolCall.type)
        written.results += types.count(ToolResult.type)

    def _same(
        self, planned: PlannedCommit, parent: ObjectId | None, data: bytes
    ) -> ObjectId | None:
        """Return a commit that is here and differs in nothing but its source, when it may stand for this one.

        It may when one of the two has no source, or as many records: then something beside what was said was noted
        anew, as in a document that is written again. And it may when it is of the session that this one was copied
        from: so a copy goes on from the session's own commits.
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
            if not differs_in_source_only(commit, other):
                continue
            if oid in self._others.oids:
                self._carry(planned, other)
                self.written.shared += 1
                return oid
            if SOURCE_KEY not in other.meta or SOURCE_KEY not in commit.meta:
                return oid
            if record_count(other, self._read) == len(planned.records):
                return oid
        return None

    def _carry(self, planned: PlannedCommit, other: Commit) -> None:
        """Keep what the copy has beside its messages, and the session has not, for the next commit."""
        there = set(records_left(other, self._store.objects.read))
        self._carried += [r for r in planned.records if not r.parts and r.raw not in there]

    def _edits(self, threads: Iterable[int]) -> list[RefEdit]:
        edits: list[RefEdit] = []
        for thread in threads:
            name, tip = self._names.get(thread), self._tips.get(thread)
            # What a rewind went back behind lies on a continued branch itself.
            if name is None or tip is None:
                continue
            if not name or tip not in self._continued:
                edits += self._moves(self._full(name), tip)
        return edits

    def _moves(self, ref: str, tip: ObjectId) -> list[RefEdit]:
        now = self._value(ref)
        if now == tip:
            return []
        if now is None or now in self._passed:
            return [RefEdit(ref, tip, now)]
        if tip in self._known.oids:
            return []  # the branch is at this commit already, or beyond it
        over = []
        for oid, commit in chain(self._store, now):
            if oid in self._passed:
                break
            over.append(commit)
        aside = self._asides.get(ref)
        if is_older(since_parting(tip, over, self._read), over, self._read):
            return []
        if is_made_anew(over, self._keys, based=self._base is not None):
            edits = _over(ref, now, tip)
            if aside is not None:
                edits.append(RefEdit(aside, None, ANY))
                del self._asides[ref]
            return edits
        if aside is None:
            aside = self._asides[ref] = f"{ref}/copies/{tip.short(8)}"
        before = self._value(aside)
        return [] if before == tip else [RefEdit(aside, tip, before)]

    def _retreats(self, refs: Iterable[str]) -> Iterator[RefEdit]:
        """Yield the moves of branches that end with records of which it has turned out that another branch has them."""
        for ref in refs:
            now = self._value(ref)
            back, records = before_carried(now, self._passed, self._read)
            if now and back in self._passed and records and records <= self._new_records():
                yield from _over(ref, now, back)

    def _new_records(self) -> set[bytes]:
        """Return the records that the plan has brought."""
        new = {oid for oid in self._oids.values() if oid is not None} - self._known.oids
        commits = [Commit.decode(self._read(oid)) for oid in new]
        return {raw for commit in commits for raw in records_left(commit, self._read)}

    def _value(self, ref: str) -> ObjectId | None:
        if ref not in self._refs:
            self._refs[ref] = self._store.refs.read(ref)
        return self._refs[ref]

    def _full(self, name: str) -> str:
        return f"{self._folder}/{name}" if name else self._ref


def _over(ref: str, now: ObjectId, to: ObjectId) -> list[RefEdit]:
    """Return the edits that move a branch over what gives way, which stays in the trash."""
    return [
        RefEdit(f"{TRASH}{ref.removeprefix('refs/')}/{now.short()}", now, ANY),
        RefEdit(ref, to, now),
    ]


@mutable
class Written:
    """What a writer did.

    Attributes:
        commits: how many are new.
        messages: how many messages those create.
        calls, results: how many calls of tools are in these, and how many results.
        present: how many commits of the plan were here already.
        shared: how many of these are another session's, which this one was copied from.
        branches: the refs of the session, with their values.
        trashed: refs that keep what a branch was moved over.
    """

    commits: int = 0
    messages: int = 0
    calls: int = 0
    results: int = 0
    present: int = 0
    shared: int = 0
    branches: dict[str, ObjectId] = field(default_factory=dict)
    trashed: list[str] = field(default_factory=list)


AUTHOR = "import"
"""Of the reflogs."""


def together(store: Store, transaction: Transaction) -> None:
    """Write a transaction that shares its sync with those behind it; errors as in `Store.transact`."""
    durability = BATCH if store.durability == DURABLE else store.durability
    store.transact(lambda _: transaction, author=AUTHOR, durability=durability)


def kept_of(store: Store, objects: Mapping[ObjectId, bytes]) -> list[tuple[ObjectId, bytes]]:
    """Return those of some objects that may be stored: what was purged is not stored again, and stays named.

    Raises:
        PurgedError: a commit itself says a text that was purged.
        StorageError: the disk refuses a tombstone.
    """
    if not isinstance(store.objects, ObjectDatabase):
        return list(objects.items())
    return list(admit(store.objects, objects).items())


def make_durable(store: Store) -> None:
    """Make durable what was written together, where the store is to be durable; errors as in `Store.sync`."""
    if store.local and store.durability == DURABLE:
        store.sync()

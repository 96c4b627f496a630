"""Records: what a program stores beside messages, such as the state of an agent framework.

A record is a ref under `refs/records/`. Each of its commits may hold values by name, which no model is sent and which
cost no tokens, and messages, which make its context like that of a branch:

    records = Records(repo.writer)
    name = record_name("example", thread, "main")
    draft = records.draft(name)
    draft.set("state", "json", b'{"step": 1}')
    draft.messages.append("user", "Hello")
    state = draft.write({"example.step": 1})
    records.read(state.values["state"])                  # b'{"step": 1}'
    records.find(name, "example.step", 1)                # the commits that record this fact

A commit holds all values at that point, so one commit is read to get them. Equal content is stored once. A value is
content of any length, or a sequence of contents, of which a longer version shares most nodes. Facts are text; an index
finds the commits that record one. A value comes back byte for byte: a secret in it is reported and never replaced.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from itertools import islice
from threading import RLock
from typing import Any

from trace_store import errors
from trace_store import secrets as secret_store
from trace_store.base import check
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId, digest
from trace_store.contracts import ANY, AnyValue, RefEdit
from trace_store.contracts.protocols import RefReader
from trace_store.contracts.record_names import record_name as record_name
from trace_store.contracts.ref_names import RECORDS, check_ref_name
from trace_store.history.commit import write
from trace_store.history.draft import Draft
from trace_store.maintenance.erase import EraseReport, erase
from trace_store.objects import operations as ops
from trace_store.objects.codec import BLOB, blob_content, chunks_of, kind_of
from trace_store.objects.commit import Commit, Operation, read_commit
from trace_store.objects.content import ObjectCollector, RawContent
from trace_store.objects.sequences import ContentSequence, is_sequence, read_sequence
from trace_store.store.fact_index import SECRETS_FACT, FactIndex, Written
from trace_store.writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.history.draft import Fact

Moves = Mapping[str, tuple[ObjectId | None, ObjectId | None]]
WARN, REFUSE, OFF = "warn", "refuse", "off"
MODES = (WARN, REFUSE, OFF)
_CACHED_STATES = 256
_UNINDEXED = 32
"""How many commits are written before they are indexed together; a look-up indexes them first."""
_log = logging.getLogger("trace_store")


@value
class RecordValue:
    """A value of a record.

    Attributes:
        type: what the program calls its form, such as "json".
        content: the content that holds it, or the sequence of contents.
    """

    type: str
    content: ObjectId


@value
class LoadedValue:
    """The content of a value.

    Attributes:
        pieces: the contents of its sequence; the whole content if it is none.
        sequence: the sequence, or None.
    """

    pieces: tuple[bytes, ...]
    sequence: ContentSequence | None


@value
class RecordState:
    """A record at one of its commits.

    Attributes:
        commit: the commit.
        parent: its first parent, or None.
        values: its values by name.
        facts: the facts that the commit records.
    """

    commit: ObjectId
    parent: ObjectId | None
    values: Mapping[str, RecordValue]
    facts: Mapping[str, str]


class Records:
    """The records of a repository. Threads may share it.

    `expect`, where something is written, is the commit that the record must be at, or None if it must not exist yet:
    compare and swap. If another process has moved the record, RefChangedError is raised and nothing is written.
    """

    def __init__(self, writer: Writer, *, secrets: str = WARN) -> None:
        """Open the records.

        Args:
            writer: the repository's.
            secrets: what happens to a secret in a value: "warn" stores it and says so once, "refuse" raises
                SecretFoundError, "off" does not look.

        Raises:
            InvalidInputError: there is no such mode, or the repository does not look for secrets and "refuse" is given.
        """
        check.text(secrets=secrets)
        if secrets not in MODES:
            raise errors.InvalidInputError(
                f"secrets is one of {', '.join(MODES)}, not {secrets[:40]!r}: values are never changed",
                argument="secrets",
            )
        if secrets == REFUSE and writer.guard.mode == secret_store.OFF:
            raise errors.InvalidInputError(
                "secrets: the repository was opened without a check for secrets", argument="secrets"
            )
        self.secrets = secrets
        self._writer = writer
        self._store = writer.store
        self._mutex = RLock()
        self._index: FactIndex | None = None
        self._unindexed: list[Written] = []
        self._states: dict[ObjectId, RecordState] = {}
        self._warned = False

    # Reading

    def tips(self, prefix: str = RECORDS) -> dict[str, tuple[ObjectId, ...]]:
        """Return the tips of the records under a prefix, by full name; a record has several after clones diverged."""
        return dict(self._store.refs.iterate_tips(prefix))

    def tip(self, name: str) -> ObjectId | None:
        """Return the tip of a record, or None."""
        return self._store.refs.read(name)

    def state(self, commit: ObjectId) -> RecordState:
        """Return the state at a commit: the values of the newest commit that sets them, along first parents.

        Raises:
            ObjectNotFoundError, CorruptObjectError: a commit is missing or damaged.
        """
        if written := self._states.get(commit):
            return written
        first = at = self.commit(commit)
        while (found := ops.records_of(at)) is None and at.parents:
            at = self.commit(at.parents[0])
        return _state(commit, first, found)

    def commit(self, oid: ObjectId) -> Commit:
        """Return a commit of a record; errors as in `state`."""
        return read_commit(oid, self._store.objects.read)

    def read(self, value: RecordValue) -> bytes:
        """Return the content of a value; the pieces of a sequence are joined.

        Raises:
            PurgedError: it was purged.
            ObjectNotFoundError, CorruptObjectError: it is missing or damaged.
        """
        return b"".join(self.load([value])[0].pieces)

    def load(self, values: Sequence[RecordValue]) -> list[LoadedValue]:
        """Return the contents of values, read in one pass; errors as in `read`."""
        read_data = self._store.objects.read_data
        roots = [*read_data([each.content for each in values])]
        sequences = [
            self.sequence(each) if is_sequence(root) else None
            for each, root in zip(values, roots, strict=True)
        ]
        found = read_data([oid for each in sequences if each is not None for oid in each.items])
        return [
            LoadedValue((self._content(root),), None)
            if sequence is None
            else LoadedValue(
                tuple(map(self._content, islice(found, len(sequence.items)))), sequence
            )
            for root, sequence in zip(roots, sequences, strict=True)
        ]

    def contents(self, ids: Sequence[ObjectId]) -> list[bytes]:
        """Return contents by their ids, read in one pass; errors as in `read`."""
        return [*map(self._content, self._store.objects.read_data(ids))]

    def _content(self, data: bytes) -> bytes:
        if kind_of(data) == BLOB:
            return blob_content(data)
        chunks = self._store.objects.read_data(chunks_of(data))
        return b"".join(map(blob_content, chunks))

    def sequence(self, value: RecordValue) -> ContentSequence:
        """Return the sequence of a value; errors as in `read`."""
        return read_sequence(value.content, self._store.objects.read_data)

    def lines(self, tips: Iterable[ObjectId]) -> Iterator[tuple[ObjectId, Commit]]:
        """Yield the commits of some tips and their first parents, each line newest first; shared ones once."""
        seen: set[ObjectId] = set()
        for tip in tips:
            oid: ObjectId | None = tip
            while oid is not None and oid not in seen:
                seen.add(oid)
                commit = self.commit(oid)
                yield oid, commit
                oid = commit.parents[0] if commit.parents else None

    def find(self, prefix: str, name: str, value: Fact) -> list[ObjectId]:
        """Return the commits that record a fact, newest first, in constant time.

        The records under `prefix` are indexed first. The index may also name commits of other records, and commits that
        no record reaches any more.
        """
        with self._mutex:
            index = self._caught_up(prefix)
            return index.commits(name, self.fact(value))

    def newest(self, prefix: str, name: str, start: str) -> list[tuple[str, ObjectId]]:
        """Return each value of a fact that begins with `start`, and the newest commit that records it, as `find`."""
        with self._mutex:
            index = self._caught_up(prefix)
            return index.newest(name, start)

    def fact(self, value: Fact) -> str:
        """Return the text of a fact, as it is stored: a hash if it looks like a secret, so that it can be found."""
        text = str(value)
        if self._writer.guard.passes([text]):
            return text
        return f"hash-{digest(text.encode('utf-8', 'surrogatepass')).hex()[:32]}"

    def _caught_up(self, prefix: str) -> FactIndex:
        self._note_written()
        index = self._open_index()
        index.catch_up(prefix)
        return index

    def _open_index(self) -> FactIndex:
        if self._index is None:
            self._index = FactIndex(self._store)
        return self._index

    # Writing

    def draft(
        self,
        name: str,
        *,
        start: ObjectId | None = None,
        expect: ObjectId | AnyValue | None = ANY,
        values: Mapping[str, RecordValue] | None = None,
        rewinds: bool = False,
    ) -> RecordDraft:
        """Begin a commit of a record.

        Args:
            name: the full name of the record, which need not exist.
            start: the commit that a new record begins after.
            expect: as above.
            values: the values that the commit keeps, such as those of `state(…)`.
            rewinds: whether the commit follows `start`, wherever the record is now, so that the context is reset to
                `start`; if `start` is None, to an empty one. `moves` of `write` can keep the old tip in another record.

        Raises:
            InvalidRefNameError: the name is not valid.
        """
        if not name.startswith(RECORDS):
            raise errors.InvalidRefNameError(f"not the name of a record: {name[:80]!r}", name=name)
        check_ref_name(name)
        writer = self._writer.on(name, expect)
        return RecordDraft(self, Draft(writer), name, start, dict(values or {}), rewinds=rewinds)

    def move(self, moves: Moves, why: str) -> None:
        """Move records, or delete or create them, in one transaction.

        Args:
            moves: by full name, the current tip of the record and the new one; None is no record. If both are equal,
                the move only checks the tip.
            why: what the reflog says.

        Raises:
            RefChangedError: a record has another tip; nothing was moved.
        """
        edits = edits_of(moves)
        if edits:
            self._writer.begin().write(lambda _: edits, why)

    def delete(self, *names: str) -> EraseReport:
        """Delete records, and erase what only they hold: it does not go to the trash.

        Raises:
            StateError, StorageError: the records are deleted, but their content could not be erased; `prune` does it.
        """
        tips: list[ObjectId] = []

        def edits(refs: RefReader) -> list[RefEdit] | None:
            found = {name: refs.tips(name) for name in dict.fromkeys(names)}
            tips[:] = [tip for each in found.values() for tip in each]
            return [RefEdit(name, None, each[0]) for name, each in found.items() if each] or None

        self._writer.begin().write(edits, f"records: deleted {len(names)}")
        return self.erase(names, tips)

    def erase(self, names: Iterable[str], tips: Iterable[ObjectId]) -> EraseReport:
        """Erase what only these former tips of records hold; errors as in `delete`."""
        with self._mutex:
            self.close()
            self._states.clear()
            return erase(self._store, names, tips)

    def close(self) -> None:
        """Close the index; it opens again when it is needed."""
        with self._mutex:
            self._note_written()
            if self._index is not None:
                self._index.close()
                self._index = None

    def _written(
        self, name: str, before: ObjectId | None, state: RecordState, *, is_on_top: bool
    ) -> None:
        """Keep a state that has just been written for the next look, and its facts for the index."""
        with self._mutex:
            if len(self._states) >= _CACHED_STATES:
                self._states.clear()
            self._states[state.commit] = state
            if state.facts and is_on_top:  # else a look-up indexes it
                self._unindexed.append(
                    Written(name, before, state.parent, state.commit, state.facts)
                )
                if len(self._unindexed) >= _UNINDEXED:
                    self._note_written()

    def _note_written(self) -> None:
        """Index the commits that were written; a failure is ignored, since a look-up indexes them again."""
        written, self._unindexed = self._unindexed, []
        if written:
            with suppress(errors.TraceError, sqlite3.Error):
                self._open_index().note(written)

    def keep_only(
        self, lines: Mapping[str, ObjectId], kept: Iterable[ObjectId]
    ) -> dict[str, ObjectId | None]:
        """Rewrite records so that they consist of the kept commits alone, erase the others, and return the new tips.

        A kept commit keeps its author, time, facts and values. It shows the same messages; those that were removed
        before the first kept commit are gone. A record without kept commits is deleted.

        Args:
            lines: the tip of each record, by full name.
            kept: the commits that stay.

        Raises:
            RefChangedError: another process moved one of the records; nothing was changed.
            As `delete`.
        """
        change, wanted = self._writer.begin(), frozenset(kept)
        put_object = change.gathering.put_object
        new = {tip: self._rewrite(tip, wanted, put_object) for tip in lines.values()}
        moves = {name: (tip, new[tip]) for name, tip in lines.items() if new[tip] != tip}
        edits = edits_of(moves)
        if edits:
            change.write(lambda _: edits, "records: pruned")
            self.erase(moves, [old for old, _ in moves.values()])
        return {name: new[tip] for name, tip in lines.items()}

    def _rewrite(
        self, tip: ObjectId, wanted: Set[ObjectId], put_object: Callable[[bytes], ObjectId]
    ) -> ObjectId | None:
        """Write the line of a tip with the wanted commits alone, and return its new tip; None if no commit stays."""
        last: ObjectId | None = None
        gap: list[
            Operation
        ] = []  # what commits that go do to messages, since the last one that stays
        is_unchanged = True
        is_behind_gap = False
        for oid, commit in [*self.lines([tip])][::-1]:
            if oid not in wanted:
                is_unchanged, is_behind_gap = False, True
                gap += _message_operations(oid, commit)
                continue
            if is_unchanged:
                last = oid
                continue
            if last is None:
                others = [o for o in commit.operations if o.name in ops.LEAVES_CONTEXT]
                operations = [*self._carried(oid), *others]
            else:
                operations = [*gap, *ops.carried_operations(oid, commit)]
            if is_behind_gap and ops.records_of(commit) is None:
                # Its values are in a commit that is removed.
                stored = {n: (v.type, v.content) for n, v in self.state(oid).values.items()}
                operations += [ops.records(stored)] if stored else []
            gap, is_behind_gap = [], False
            rewritten = Commit(
                [] if last is None else [last],
                commit.author,
                commit.time,
                operations,
                commit.message,
                commit.meta,
                commit.links,
            )
            last = put_object(rewritten.encode())
        return last

    def _carried(self, oid: ObjectId) -> list[Operation]:
        """Return the operations that give the context of a commit without its history."""
        state = self._writer.contexts.fold(oid)
        carried = [entry.to_carried() for entry in state.visible()]
        found = [ops.add(carried)] if carried else []
        if state.tools:
            found.append(ops.tools([ObjectId(each) for each in state.tools]))
        return found

    def _report(self, gathered: ObjectCollector) -> None:
        """Report secrets in values, as the mode says."""
        found = gathered.unchanged_secrets
        if not found or self.secrets == OFF:
            return
        kinds = ", ".join(f"{count} {kind}" for kind, count in found.items())
        if self.secrets == REFUSE:
            raise errors.SecretFoundError(
                f"secret found in a value ({kinds}); nothing was stored",
                rule=next(iter(found)),
                place="a value",
                count=sum(found.values()),
            )
        if not self._warned:
            self._warned = True
            _log.warning(
                "%s: a value with what looks like a secret was stored unchanged (%s). A scan for secrets shows where; "
                "a purge removes it. This is said once",
                self._store.layout.root,
                kinds,
            )


class RecordDraft:
    """One commit of a record before it is written.

    Attributes:
        messages: the operations on its messages.
        name: the full name of the record.
        values: all values of the new commit by name.
    """

    def __init__(
        self,
        records: Records,
        messages: Draft,
        name: str,
        start: ObjectId | None,
        values: dict[str, RecordValue],
        *,
        rewinds: bool = False,
    ) -> None:
        self.messages = messages
        self.name = name
        self.values = values
        self._records = records
        self._start = start
        self._rewinds = rewinds
        self._raw = ObjectCollector() if records.secrets == OFF else messages.change.gathering

    def put(self, content: bytes) -> ObjectId:
        """Store content byte for byte, and return its id.

        Raises:
            SecretFoundError: it holds a secret, and the repository refuses secrets.
        """
        return self._raw.put(RawContent(content))

    def set(self, name: str, type: str, content: bytes) -> None:
        """Set a value; errors as in `put`."""
        self.values[name] = RecordValue(type, self.put(content))

    def set_sequence(
        self,
        name: str,
        type: str,
        pieces: Iterable[bytes],
        *,
        before: ContentSequence | None = None,
        keep: int = 0,
    ) -> ContentSequence:
        """Set a value to a sequence: the first `keep` pieces of an earlier one, and these; errors as in `put`."""
        items, put_object = [*map(self.put, pieces)], self._raw.put_object
        sequence = (before or ContentSequence([[]])).extended(keep, items, put_object)
        self.values[name] = RecordValue(type, sequence.oid)
        return sequence

    def write(
        self,
        facts: Mapping[str, Fact] | None = None,
        message: str = "",
        *,
        meta: Mapping[str, Any] | None = None,
        moves: Moves | None = None,
    ) -> RecordState:
        """Write the commit, and return the state that it makes.

        Args:
            facts: facts that the commit can be found by.
            message: the message of the commit.
            meta: the commit's own metadata, as in `Commit`: what the program reads together with it.
            moves: moves of other records in the same transaction, as in `Records.move`.

        Raises:
            RefChangedError: this record or one of `moves` is not at the expected commit; nothing was written.
            SecretFoundError: a value holds a secret, and secrets are refused; nothing was written.
            StorageError: the disk failed; nothing was written.
        """
        draft, records = self.messages, self._records
        gathering = draft.change.gathering
        records._report(gathering)
        if self._raw is not gathering:
            for oid, data in self._raw.objects:
                gathering.add(oid, data)
        named = {name: records.fact(given) for name, given in (facts or {}).items()}
        if unchanged := sum(gathering.unchanged_secrets.values()):
            named[SECRETS_FACT] = str(unchanged)
        if named:
            draft.operations.append(ops.config(dict(sorted(named.items())), {}))
        stored = {name: (each.type, each.content) for name, each in sorted(self.values.items())}
        draft.operations.append(ops.records(stored))
        along = (lambda _: edits_of(moves)) if moves else None
        rewinds = self._rewinds
        done = write(
            draft, message=message, meta=meta, onto=self._start, along=along, rewinds=rewinds
        )
        parent = done.parents[0] if done.parents else None
        state = RecordState(done.oid, parent, dict(self.values), named)
        before = None if self._start else parent
        records._written(self.name, before, state, is_on_top=not rewinds)
        return state


def edits_of(moves: Moves) -> list[RefEdit]:
    """Return the edits of refs for moves of records, as in `Records.move`."""
    return [RefEdit(name, new, old) for name, (old, new) in moves.items()]


def _state(
    oid: ObjectId, commit: Commit, found: Mapping[str, tuple[str, bytes]] | None
) -> RecordState:
    values = {name: RecordValue(type_, ObjectId(at)) for name, (type_, at) in (found or {}).items()}
    parent = commit.parents[0] if commit.parents else None
    return RecordState(oid, parent, values, ops.facts_of(commit, ops.META))


def _message_operations(oid: ObjectId, commit: Commit) -> list[Any]:
    carried = ops.carried_operations(oid, commit)
    return [each for each in carried if each.name not in ops.LEAVES_CONTEXT]

"""pydantic-ai: a conversation store; extra `pydantic-ai`.

    store = TraceConversationStore(repo)
    conversation = await store.load("support-17") or Conversation(conversation_id="support-17")

A conversation is a folder of records: `main`, and one more for each branch that it left. A save is a commit with the
new entries, whose messages are the context of the record, and with the record of pydantic-ai. A fork begins after the
commit that has its last entry, so nothing is copied.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cache
from threading import Lock
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter

from trace_store import errors
from trace_store.base.oid import ObjectId, digest
from trace_store.history.records import WARN, Moves, RecordDraft, RecordState
from trace_store.importers.formats.pydantic_ai import messages_of
from trace_store.integrations.framework_store import FrameworkStore
from trace_store.integrations.item_lists import ItemLists, finished, retried, write_lock
from trace_store.objects.message import Message
from trace_store.repo.repository import Repo

PROGRAM = META = "pydantic-ai"
"""The folder of the records; and the field of a commit's metadata with the id of its conversation."""
CONVERSATION, ENTRY = "pydantic-ai.conversation", "pydantic-ai.entry."
_MAIN, _LEFT = "main", "left"
_ENTRIES, _RECORD, _INSTRUCTIONS = "entries", "record", "instructions"
_LONGEST_ID = 64
_KNOWN_HEADS = 1024


class TraceConversationStore(ConversationStore):
    """Keeps conversations of pydantic-ai in a repository. Threads and processes may share it.

    `delete` erases a conversation's messages, except for those that a fork shares.
    """

    def __init__(self, repo: Repo, *, secrets: str = WARN) -> None:
        """Open the store.

        Args:
            repo: the repository, which the caller closes.
            secrets: "warn" stores messages with secrets unchanged and says so once, "refuse" raises SecretFoundError,
                "off" does not look.
        """
        self._store = FrameworkStore(repo, PROGRAM, secrets=secrets)
        self._records = self._store.records
        self._lists = ItemLists(self._records, _ENTRIES)
        self._mutex = write_lock(repo)
        self._heads_lock = Lock()
        self._heads: OrderedDict[str, RecordState] = OrderedDict()

    def ref(self, conversation_id: str) -> str:
        """Return the record of a conversation, for `repo.log`, `repo.compile` and `ref=`."""
        return self._store.name(conversation_id, _MAIN)

    def commit(self, entry_id: str) -> ObjectId:
        """Return the commit of the save that added an entry.

        Raises:
            KeyError: there is no such entry.
        """
        return self._find(entry_id)[0].commit

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation; None if there is none."""
        return await asyncio.to_thread(self._read_main, conversation_id)

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """Return the records of all scopes or of one, the last saved first."""
        return await asyncio.to_thread(self._read_all, scope, limit)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return an entry.

        Raises:
            KeyError: there is none.
        """
        return (await asyncio.to_thread(self._read_history, entry_id, 1))[0]

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """Return the entries up to one, or only the last of them; errors as in `read_entry`."""
        if head_id is None or limit == 0:
            return []
        return await asyncio.to_thread(self._read_history, head_id, limit)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record with new entries in one transaction.

        Raises:
            ConversationConflict: the conversation has another revision, or the entry that they follow is gone.
        """
        await finished(self._write, record, new_entries, expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a conversation, and erase what only it holds.

        Raises:
            ConversationConflict: the conversation has another revision.
        """
        await finished(self._delete, conversation_id, expected_revision)

    # Reading

    def _read_main(self, conversation: str) -> ConversationRecord | None:
        state = self._store.state(self.ref(conversation))
        return None if state is None else self._record(state)

    def _record(self, state: RecordState) -> ConversationRecord:
        found = _records_form().validate_json(self._records.read(state.values[_RECORD]))
        self._remember(found.head_id, state)
        return found

    def _remember(self, head: str | None, state: RecordState) -> None:
        """Remember where a history ends, which is read next."""
        if head is not None:
            with self._heads_lock:
                self._heads[head] = state
                if len(self._heads) > _KNOWN_HEADS:
                    self._heads.popitem(last=False)

    def _read_all(self, scope: str | None, limit: int | None) -> list[ConversationRecord]:
        tips = self._records.tips(self._store.name())
        states = [
            self._records.state(at[0]) for name, at in tips.items() if name.endswith(f"/{_MAIN}")
        ]
        values = self._records.load([state.values[_RECORD] for state in states])
        found = [_records_form().validate_json(b"".join(each.pieces)) for each in values]
        found = [each for each in found if scope is None or each.scope == scope]
        return sorted(found, key=lambda each: each.updated_at, reverse=True)[:limit]

    def _read_history(self, head: str, limit: int | None) -> list[ConversationEntry]:
        state, end = self._heads.get(head), None
        if state is None:
            state, position = self._find(head)
            end = position + 1
        pieces = self._lists.pieces(state)[:end]
        return _decode(pieces if limit is None else pieces[-limit:])

    def _find(self, entry: str) -> tuple[RecordState, int]:
        """Return the state of a record that has an entry, and the position of the entry."""
        fact, prefix = _fact(entry), self._store.name()
        for text, _ in self._records.newest(prefix, fact, ""):
            for oid in self._records.find(prefix, fact, text):
                try:
                    return self._records.state(oid), int(text)
                except errors.ObjectNotFoundError:
                    continue  # the index may name commits that were erased
        raise KeyError(entry)

    # Writing

    def _write(
        self,
        record: ConversationRecord,
        entries: Sequence[ConversationEntry],
        expected: str | None,
    ) -> None:
        with self._mutex:
            retried(lambda: self._try_to_write(record, entries, expected))

    def _try_to_write(
        self,
        record: ConversationRecord,
        entries: Sequence[ConversationEntry],
        expected: str | None,
    ) -> None:
        name = self.ref(record.conversation_id)
        state = self._store.state(name)
        stored = None if state is None else self._record(state)
        if (None if stored is None else stored.revision) != expected:
            raise ConversationConflict(record.conversation_id)
        base = entries[0].parent_id if entries else record.head_id
        if _end(base, entries) != record.head_id:
            raise errors.InvalidInputError(
                "new_entries: each follows the one before, up to the head of the record"
            )
        tip = None if state is None else state.commit
        moves: dict[str, tuple[ObjectId | None, ObjectId | None]] = {}
        rest: Sequence[bytes] = ()
        if state is not None and stored is not None and base == stored.head_id:
            source: RecordState | None = state
            at = self._lists.count(state)
            draft = self._records.draft(name, expect=tip, values=state.values)
        else:
            try:
                found = None if base is None else self._find(base)
            except KeyError:
                raise ConversationConflict(record.conversation_id) from None
            source, start, at = state, None, 0
            if found is not None:
                source, position = found
                cut = self._lists.cut(source, META, position + 1)
                start, at, rest = cut.start, cut.at, cut.rest
                moves |= self._there(source, record)
            values = {} if start is None else self._records.state(start).values
            draft = self._records.draft(
                name, start=start, expect=tip, values=values, rewinds=state is not None
            )
            if tip is not None and stored is not None and stored.head_id in record.branches:
                left = self._store.name(record.conversation_id, f"{_LEFT}-{stored.head_id}")
                moves[left] = (self._records.tip(left), tip)
        self._add(draft, record, source, at, [*_decode(rest), *entries], moves)

    def _add(
        self,
        draft: RecordDraft,
        record: ConversationRecord,
        source: RecordState | None,
        at: int,
        entries: Sequence[ConversationEntry],
        moves: Moves,
    ) -> None:
        """Write a commit that adds entries to the first ones of a list."""
        pieces = [*map(_encode, entries)]
        meta = self._lists.fill(draft, source, pieces, keep=at)
        if made := self._messages(draft, pieces):
            draft.messages.extend(made)
        draft.set(_RECORD, "json", _records_form().dump_json(record))
        facts = {_fact(entry.id): str(at + number) for number, entry in enumerate(entries)}
        facts[CONVERSATION] = record.conversation_id
        said = {META: {"conversation": record.conversation_id, **meta}}
        self._remember(record.head_id, draft.write(facts, meta=said, moves=moves))

    def _there(self, source: RecordState, record: ConversationRecord) -> Moves:
        """Return moves that fail if a conversation, whose entries another one shares, is deleted meanwhile."""
        said = self._records.commit(source.commit).meta.get(META) or {}
        owners = (said.get("conversation"), record.forked_from)
        names = {self.ref(each) for each in owners if each} - {self.ref(record.conversation_id)}
        tips = {name: self._records.tip(name) for name in names}
        return {name: (tip, tip) for name, tip in tips.items() if tip is not None}

    def _messages(self, draft: RecordDraft, pieces: Sequence[bytes]) -> list[Message]:
        """Return the messages of entries, and the instructions of a request where they change."""
        before = draft.values.get(_INSTRUCTIONS)
        shown = "" if before is None else self._records.read(before).decode()
        found: list[Message] = []
        for piece in pieces:
            data: Mapping[str, Any] = json.loads(piece.partition(b"\n")[2])
            text = data.get("instructions")
            if isinstance(text, str) and text not in ("", shown):
                draft.set(_INSTRUCTIONS, "text", text.encode())
                shown = text
            else:
                text = None
            for each in messages_of(data):
                if text and each.role != "tool":
                    found.append(Message("system", text, kind="instruction"))
                    text = None
                said = {"kind": each.kind, "model": each.model, "id": each.id, "name": each.name}
                found.append(Message(each.role, each.parts, **said))
            if text:
                found.append(Message("system", text, kind="instruction"))
        return found

    def _delete(self, conversation: str, expected: str) -> None:
        def attempt() -> tuple[list[str], list[ObjectId]]:
            state = self._store.state(self.ref(conversation))
            if state is None or self._record(state).revision != expected:
                raise ConversationConflict(conversation)
            tips = self._records.tips(self.ref(conversation).removesuffix(_MAIN))
            self._records.move({name: (at[0], None) for name, at in tips.items()}, "deleted")
            return [*tips], [oid for at in tips.values() for oid in at]

        with self._mutex:
            names, tips = retried(attempt)
            with self._heads_lock:
                self._heads.clear()
            self._lists.forget()
            self._records.erase(names, tips)


@cache
def _records_form() -> TypeAdapter[ConversationRecord]:
    return TypeAdapter(ConversationRecord)


def _fact(entry: str) -> str:
    """Return the name of the fact that has the position of an entry."""
    is_plain = 0 < len(entry) <= _LONGEST_ID and entry.isascii() and entry.isprintable()
    return ENTRY + (entry if is_plain else digest(entry.encode("utf-8", "surrogatepass")).hex())


def _end(base: str | None, entries: Sequence[ConversationEntry]) -> str | None:
    """Return the id of the last entry of a chain that begins after another one; "" if it is no chain."""
    for entry in entries:
        if entry.parent_id != base:
            return ""
        base = entry.id
    return base


def _encode(entry: ConversationEntry) -> bytes:
    """Return an entry as two lines of JSON: what it is, and its message."""
    head = {"id": entry.id, "kind": entry.kind, "parent_id": entry.parent_id}
    message = ModelMessagesTypeAdapter.dump_json([entry.message])[1:-1]
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + message


def _decode(pieces: Sequence[bytes]) -> list[ConversationEntry]:
    split = [piece.partition(b"\n") for piece in pieces]
    messages = ModelMessagesTypeAdapter.validate_json(
        b"[" + b",".join(message for _, _, message in split) + b"]"
    )
    heads: list[dict[str, Any]] = [json.loads(head) for head, _, _ in split]
    return [
        ConversationEntry(message=message, **head)
        for head, message in zip(heads, messages, strict=True)
    ]

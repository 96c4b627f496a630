"""What the stores of all frameworks share: where they write, and how their messages become those of a context.

A store keeps what the framework gave it as values of a record (`history.records`), byte for byte. Besides, the messages
among these values become messages of the record's context, so that log, search, diff and compile show them:

    class ExampleSession:
        def __init__(self, repo: Repo, id: str) -> None:
            self._store = FrameworkStore(repo, "example")
            self._name = self._store.name(id, "main")

        def add(self, items: list[dict]) -> None:
            def change(draft: RecordDraft, state: RecordState | None) -> None:
                old = self._store.pieces(state, "items")
                new = [*old, *map(encode, items)]
                self._store.set_list(draft, state, "items", "json", old, new, as_message=decode)

            self._store.update(self._name, change)

`update` reads the state, lets a function change it, and writes it by compare and swap; if another process wins the
race, it retries from the new state. `set_list` stores the pieces as one sequence and makes the context show them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgpack

from trace_store import errors
from trace_store.base.oid import ObjectId
from trace_store.contracts.ref_names import RECORDS
from trace_store.disk.git import find_git
from trace_store.history.records import (
    WARN,
    RecordDraft,
    Records,
    RecordState,
    record_name,
)
from trace_store.objects.address import Address
from trace_store.objects.message import Message
from trace_store.objects.parts import Text
from trace_store.objects.sequences import ContentSequence
from trace_store.providers.documents import read_messages
from trace_store.repo.repository import Repo

MAXIMUM_ATTEMPTS = 100
ARRAY = "array of "
"""Begins the type of an array whose elements are the pieces of a sequence."""
_SMALL_BYTES = 48
"""Arrays whose elements are smaller on average stay whole."""
_log = logging.getLogger("trace_store")
_told: set[str] = set()

Change = Callable[[RecordDraft, RecordState | None], Mapping[str, Any] | None]


class FrameworkStore:
    """The records of one framework in a repository.

    Attributes:
        repo: the repository.
        records: its records.
    """

    def __init__(self, repo: Repo, program: str, *, secrets: str = WARN) -> None:
        """Open the records of a framework.

        Args:
            repo: the repository. The caller closes it.
            program: the framework: its records are below `refs/records/PROGRAM/`.
            secrets: what happens to a secret in a value, as in `Records`. The text of messages in the context is
                redacted as the repository says.

        Raises:
            InvalidInputError: as in `Records`.
        """
        self.repo = repo
        self.records = Records(repo.writer, secrets=secrets)
        self._program = program
        _say_where(repo)

    def name(self, *parts: str) -> str:
        """Return the full name of a record of the framework, or without parts the prefix of all."""
        return record_name(self._program, *parts) if parts else f"{RECORDS}{self._program}/"

    def state(self, name: str) -> RecordState | None:
        """Return the current state of a record; None if there is none."""
        tip = self.records.tip(name)
        return None if tip is None else self.records.state(tip)

    def pieces(self, state: RecordState | None, name: str) -> list[bytes]:
        """Return the pieces of a value that is a sequence, read in one pass; none if it is not set."""
        found = None if state is None else state.values.get(name)
        return [] if found is None else [*self.records.load([found])[0].pieces]

    def update(self, name: str, change: Change, message: str = "") -> RecordState:
        """Change a record by compare and swap, and return its new state.

        Args:
            name: the full name of the record, which is created if missing.
            change: given a draft that has the values of the current state, and that state (None if there is none). It
                returns the facts to record. It is called again if another process wins the race.
            message: the message of the commit.

        Raises:
            RefChangedError: other processes won the race at every attempt.
            As `RecordDraft.write`.
        """
        for attempt in range(MAXIMUM_ATTEMPTS):
            state = self.state(name)
            tip, values = (None, {}) if state is None else (state.commit, state.values)
            draft = self.records.draft(name, expect=tip, values=values)
            facts = change(draft, state)
            try:
                return draft.write(facts, message)
            except errors.RefChangedError:
                if attempt == MAXIMUM_ATTEMPTS - 1:
                    raise
        raise AssertionError

    def set_list(
        self,
        draft: RecordDraft,
        state: RecordState | None,
        name: str,
        type: str,
        old: Sequence[bytes],
        new: Sequence[bytes],
        *,
        as_message: Callable[[bytes], Any] | None = None,
    ) -> ContentSequence:
        """Set a value to a sequence, and make the context show its messages.

        Args:
            draft: of the new commit.
            state: the state that the draft follows, or None.
            name: the value.
            type: what the form of a piece is called, such as "json".
            old: the pieces in the state.
            new: the new pieces.
            as_message: returns a piece as a message in a form that Trace reads (a dictionary or object of a provider or
                framework, or a `Message`), or None if it is no message; without it the context stays as it is.
        """
        keep = common_length(old, new)
        found = None if state is None else state.values.get(name)
        before = None if found is None or not keep else self.records.sequence(found)
        made = draft.set_sequence(name, type, new[keep:], before=before, keep=keep)
        if as_message is not None:
            tip = None if state is None else state.commit
            self.show(
                draft, tip, old[keep:], new[keep:], lambda piece: message_of(as_message(piece))
            )
        return made

    def show(
        self,
        draft: RecordDraft,
        tip: ObjectId | None,
        old: Sequence[bytes],
        new: Sequence[bytes],
        convert: Callable[[bytes], Message | None],
    ) -> None:
        """Replace the messages at the end of a context; a message in both lists keeps its identity.

        Args:
            draft: of the new commit.
            tip: the commit that the draft follows.
            old: the pieces of the messages at the end of the context.
            new: the pieces of the messages that replace them.
            convert: returns the message of a piece, or None if it has none.
        """
        if not old:
            if made := [each for piece in new if (each := convert(piece)) is not None]:
                draft.messages.extend(made)
            return
        _Alignment(self.repo, draft, tip, convert).apply(old, new)


class _Alignment:
    """Replaces the messages of a context by additions, edits and removals."""

    def __init__(
        self,
        repo: Repo,
        draft: RecordDraft,
        tip: ObjectId | None,
        convert: Callable[[bytes], Message | None],
    ) -> None:
        self._draft = draft
        self._convert = convert
        self._shown: list[tuple[Address, Message]] = []
        if tip is not None:
            context = repo.compile(tip)
            self._shown = [(each.address, each.message()) for each in context.messages]

    def apply(self, old: Sequence[bytes], new: Sequence[bytes]) -> None:
        places = self._addresses(old)
        by_id = {m.id: at for at, piece in enumerate(old) if (m := self._convert(piece)) and m.id}
        positions: dict[bytes, list[int]] = {}
        for at, piece in enumerate(old):
            positions.setdefault(piece, []).append(at)
        draft, last, next_old = self._draft.messages, self._before(places), 0
        kept: set[int] = set()
        for piece in new:
            message = self._convert(piece)
            if message is None:
                continue
            same = next((each for each in positions.get(piece, ()) if each >= next_old), None)
            edited = by_id.get(message.id) if same is None else None
            place = same if same is not None else edited
            address = None if place is None or place < next_old else places[place]
            if place is not None and address is not None:
                kept.add(place)
                last, next_old = address, place + 1
                if edited is not None:
                    draft.edit(address, message.parts, force=True)
            else:
                is_end = next_old >= len(old)
                if last is None and not is_end:
                    (last,) = draft.extend([message])
                    draft.move([last], after=None)
                else:
                    (last,) = draft.extend([message], after=None if is_end else last)
        gone = [places[at] for at in range(len(old)) if at not in kept]
        if removed := [each for each in gone if each is not None]:
            draft.remove(removed)

    def _addresses(self, pieces: Sequence[bytes]) -> list[Address | None]:
        """Return the address of the message that the context shows for each piece; None if a user has removed it."""
        found: list[Address | None] = []
        at = 0
        for piece in pieces:
            message = self._convert(piece)
            hit = None
            for position in range(at, len(self._shown)):
                address, shown = self._shown[position]
                if message is not None and self._is_same(shown, message):
                    hit, at = address, position + 1
                    break
            found.append(hit)
        return found

    def _is_same(self, shown: Message, message: Message) -> bool:
        """Return True if a message of the context is that of a piece: by its id, else by what it says."""
        if message.id or shown.id:
            return shown.id == message.id
        redact = self._draft.messages.change.text  # as it was when the message was stored
        said = [redact(part.raw.decode("utf-8", "replace")) for part in message.parts]
        stored = [part.raw.decode("utf-8", "replace") for part in shown.parts]
        return shown.role == message.role and stored == said

    def _before(self, places: Sequence[Address | None]) -> Address | None:
        """Return the message before the first of some."""
        first = next((each for each in places if each is not None), None)
        shown = [address for address, _ in self._shown]
        at = shown.index(first) if first is not None else len(shown)
        return shown[at - 1] if at else None


def message_of(given: Any) -> Message | None:
    """Return a message in a form that Trace reads; what has no known form becomes its text."""
    if given is None or isinstance(given, Message):
        return given
    try:
        found = read_messages([given])
    except errors.TraceError:
        found = []
    if len(found) == 1:
        return found[0]
    text = getattr(given, "content", given)
    return Message("user", [Text(text if isinstance(text, str) else repr(text))], kind="freeform")


def common_length(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Return how many pieces two sequences begin with in common."""
    most = min(len(one), len(other))
    return next((at for at in range(most) if one[at] != other[at]), most)


def split_array(data: bytes) -> list[bytes] | None:
    """Return the elements of a msgpack array, which `join_array` puts together again; None if it is to stay whole."""
    try:
        unpacker = msgpack.Unpacker(max_buffer_size=len(data) or 1)
        unpacker.feed(data)
        count = unpacker.read_array_header()
    except (ValueError, msgpack.UnpackException):
        return None
    head = array_head(count)
    if not count or len(data) < count * _SMALL_BYTES or not data.startswith(head):
        return None
    return split_elements(data[len(head) :], count)


def split_elements(data: bytes, count: int) -> list[bytes] | None:
    """Return msgpack values that follow each other; None if there are not as many."""
    unpacker = msgpack.Unpacker(max_buffer_size=len(data) or 1)
    unpacker.feed(data)
    ends = [0]
    try:
        for _ in range(count):
            unpacker.skip()
            ends.append(unpacker.tell())
    except (ValueError, msgpack.UnpackException):
        return None
    return [data[ends[at] : ends[at + 1]] for at in range(count)] if ends[-1] == len(data) else None


def array_head(count: int) -> bytes:
    """Return the bytes that begin a msgpack array."""
    return bytes(msgpack.Packer().pack_array_header(count))


def join_array(pieces: Sequence[bytes]) -> bytes:
    """Return the msgpack array of some elements."""
    return array_head(len(pieces)) + b"".join(pieces)


def _say_where(repo: Repo) -> None:
    """Say once that a store writes inside a git work tree, where it may be committed."""
    root = repo.store.layout.root
    git = find_git(repo.store.disk, root) if repo.store.local and root not in _told else ""
    if git:
        _told.add(root)
        folder = os.path.dirname(git)
        _log.warning("states are stored in %s, which git may commit: it is inside %s", root, folder)

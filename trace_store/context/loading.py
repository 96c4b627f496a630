"""Loading many messages: what neighbours say, with few reads and tight loops.

Rule: what is loaded here equals what `load_message` makes of the stored form. What is out of the ordinary (a ghost, an
edit, content in chunks, damage) is left out and read the slow way when it is asked for, which then says what is wrong
with it. Nothing is read ahead until messages are asked for one after the other.
"""

from __future__ import annotations

from itertools import islice

from trace_store import errors
from trace_store.collector import paused
from trace_store.context.index_records import (
    EDITED,
    GHOST,
    MARKER,
    MESSAGE_BYTES,
    ordinal_at,
    unpack_places,
)
from trace_store.context.wording import created_messages
from trace_store.objects.codec import blob_content
from trace_store.objects.commit import Commit
from trace_store.objects.message import load_parts, part_blobs
from trace_store.objects.moulds import CALL, RESULT, TEXT, MessagePlan, Moulds
from trace_store.objects.parts import Part, Reasoning, Text, ToolCall, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from trace_store.objects.moulds import PartPlan, Place

    Stored = Mapping[str, Any]
    """A message in stored form."""

    ReadData: TypeAlias = Callable[[Iterable[bytes]], Iterator[bytes]]
    Said: TypeAlias = tuple[str, str, str, tuple[Part, ...]]
    """Name, model, id and parts of a message."""


LONGEST_WINDOW = 2048
GROWTH = 8
MAXIMUM_BYTES = 8 * 1024 * 1024
"""Of content that is read ahead; the message that goes over it is the last."""
_UNUSUAL = MARKER | GHOST | EDITED
_SHORT_BLOB = b"\x92\xa4blob\xc4"
_BLOB = b"\x92\xa4blob\xc5"


class Loader:
    """Loads messages of one context, more at a time as long as they are asked for one after the other."""

    __slots__ = ("_ahead", "_block", "_decoded", "_last", "_moulds", "_read_data", "_size")

    def __init__(self, read_data: ReadData) -> None:
        self._read_data = read_data
        self._moulds = Moulds()
        self._decoded: tuple[bytes, list[Stored]] = (b"", [])
        self._block = b""
        self._ahead: dict[int, Said | None] = {}
        """What messages say, by the offsets of their records in the block."""
        self._last = -1
        self._size = 1

    def load(self, block: bytes, at: int) -> Said | None:
        """Return what a message says; None when it has to be read the slow way.

        Args:
            block: records of the index; those behind the message's may be read ahead.
            at: the offset of its record.
        """
        if block is not self._block or at not in self._ahead:
            self._look_ahead(block, at)
        self._last = at
        return self._ahead.pop(at, None)

    def _look_ahead(self, block: bytes, at: int) -> None:
        """Load messages from this one on, if the one before it was asked for last."""
        self._ahead = {}
        before = ordinal_at(self._block, self._last) if self._last >= 0 else -1
        if ordinal_at(block, at) == before + 1:
            self._size = min(self._size * GROWTH, LONGEST_WINDOW)
            stop = min(at + self._size * MESSAGE_BYTES, len(block))
            self._ahead = self._window(block[at:stop], at)
        else:
            self._size = 1
        self._block = block

    def _window(self, records: bytes, start: int) -> dict[int, Said | None]:
        """Return what messages say, by their offsets from `start` on, up to the first that cannot be read."""
        found: dict[int, Said | None] = {}
        oids: list[bytes] = []
        current = b""
        at = start
        for commit, _, flags, _ in unpack_places(records):
            if not flags & _UNUSUAL:
                if commit != current:
                    oids.append(commit)
                    current = commit
            elif not flags & MARKER:
                found[at] = None
            at += MESSAGE_BYTES
        try:
            with paused:
                self._fill(found, records, start, self._read_data(oids))
        except errors.TraceError:
            return found  # whoever asks for that message is told
        return found

    def _fill(
        self, found: dict[int, Said | None], records: bytes, start: int, commits: Iterator[bytes]
    ) -> None:
        """Put in what usual messages say, until so much is held that it is enough."""
        # Each line here is run for each message of a context, so there are few calls.
        blobs: list[bytes] = []
        planned = self._plan(records, start, commits, blobs)
        asked = iter(blobs)
        contents = self._read_data(dict.fromkeys(blobs))  # each once, in the order of the messages
        objects: dict[bytes, bytes] = {}
        texts: dict[bytes, str] = {}
        held = 0
        for at, count, data, message in planned:
            ids = list(islice(asked, count))
            for oid in ids:
                if oid not in objects:
                    objects[oid] = content = next(contents)
                    held += len(content)
            try:
                if isinstance(message, MessagePlan):
                    for oid in ids:
                        if oid not in texts:
                            texts[oid] = _text_of(objects[oid])
                    # Most have no name and no model, and spare these calls.
                    name, model, id_ = message.name, message.model, message.id
                    found[at] = (
                        name and str(data[name], "utf-8"),
                        model and str(data[model], "utf-8"),
                        id_ and str(data[id_], "utf-8"),
                        _parts(message.parts, data, map(texts.__getitem__, ids)),
                    )
                else:
                    found[at] = _said_of_stored(message, objects)
            except (UnicodeDecodeError, errors.TraceError):
                found[at] = None
            if held > MAXIMUM_BYTES:
                return

    def _plan(
        self, records: bytes, start: int, commits: Iterator[bytes], blobs: list[bytes]
    ) -> list[tuple[int, int, bytes, MessagePlan | Stored]]:
        """Return offset, number of ids of content, commit, and plan or stored form of each message, and add the ids."""
        planned: list[tuple[int, int, bytes, MessagePlan | Stored]] = []
        find = self._moulds.find
        current = data = b""
        plans: Sequence[MessagePlan] = ()
        created: Sequence[Stored] = ()
        at = start - MESSAGE_BYTES
        for commit, number, flags, _ in unpack_places(records):
            at += MESSAGE_BYTES
            if flags & _UNUSUAL:
                continue
            if commit != current:
                current = commit
                data = next(commits)
                mould = find(data)
                plans = mould.messages if mould else ()
                created = () if mould else self._created(commit, data)
            if number < len(plans):
                plan = plans[number]
                for blob in plan.blobs:
                    blobs.append(data[blob])
                planned.append((at, len(plan.blobs), data, plan))
            elif number < len(created):
                ids = part_blobs(created[number]["parts"])
                blobs += ids
                planned.append((at, len(ids), data, created[number]))
            else:
                break
        return planned

    def _created(self, commit: bytes, data: bytes) -> list[Stored]:
        """Return a commit's messages; one that has more than a window is decoded once for all of them."""
        if self._decoded[0] != commit:
            self._decoded = (commit, created_messages(Commit.decode(data)))
        return self._decoded[1]


def _said_of_stored(stored: Stored, objects: Mapping[bytes, bytes]) -> Said:
    parts = load_parts(stored["parts"], objects.__getitem__)
    return stored.get("name", ""), stored.get("model", ""), stored.get("id", ""), parts


def _parts(plans: Sequence[PartPlan], commit: bytes, texts: Iterator[str]) -> tuple[Part, ...]:
    """Return parts; `texts` gives the content of each in order."""
    # A loop, and what most parts are at its beginning: a context has very many of them.
    parts: list[Part] = []
    id_: Place
    name: Place
    for plan in plans:
        kind = plan[0]
        if kind == TEXT:
            parts.append(Text(next(texts)))
        elif kind == RESULT:
            _, id_, error, inner = plan
            call_id = id_ and str(commit[id_], "utf-8")
            parts.append(ToolResult(call_id, _parts(inner, commit, texts), error))
        elif kind == CALL:
            _, _, id_, name, form = plan
            call_id, called = id_ and str(commit[id_], "utf-8"), name and str(commit[name], "utf-8")
            parts.append(ToolCall(call_id, called, next(texts), form))
        elif plan[2] is None:
            parts.append(Reasoning(next(texts)))
        else:
            parts.append(Reasoning(next(texts), next(texts)))
    return tuple(parts)


def _text_of(data: bytes) -> str:
    """Return the text that a blob holds."""
    head = data[:7]
    if head == _BLOB and data[7] << 8 | data[8] == len(data) - 9:
        content = data[9:]
    elif head == _SHORT_BLOB and data[7] == len(data) - 8:
        content = data[8:]
    else:
        content = blob_content(data)
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("utf-8", "surrogatepass")

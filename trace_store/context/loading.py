"""Loading many messages: what neighbours say, with few reads and tight loops.

Rule: what is loaded here equals what `load_message` makes of the stored form. What is out of the ordinary (a ghost, an
edit, content in chunks, damage) is left out and read the slow way when it is asked for, which then says what is wrong
with it. Nothing is read ahead until messages are asked for one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter

from trace_store.context.index_records import (
    EDITED,
    GHOST,
    MARKER,
    MESSAGE_BYTES,
    ordinal_at,
    unpack_places,
)
from trace_store.context.wording import created_messages
from trace_store.errors import TraceError
from trace_store.objects.codec import blob_content
from trace_store.objects.commit import Commit
from trace_store.objects.message import load_parts, part_blobs
from trace_store.objects.moulds import CALL, RESULT, TEXT, MessagePlan, Moulds
from trace_store.objects.parts import Part, Reasoning, Text, ToolCall, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.objects.moulds import PartPlan

    Stored = Mapping[str, Any]
    """A message in stored form."""

ReadData = Callable[[Iterable[bytes]], Iterator[bytes]]
Said = tuple[str, str, str, tuple[Part, ...]]
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
        usual: list[tuple[bytes, int, int]] = []
        at = start
        for commit, number, flags, _ in unpack_places(records):
            if not flags & _UNUSUAL:
                usual.append((commit, number, at))
            elif not flags & MARKER:
                found[at] = None
            at += MESSAGE_BYTES
        try:
            for place, said in self._said(usual):
                found[place] = said
        except TraceError:
            pass  # whoever asks for that message is told
        return found

    def _said(self, wanted: list[tuple[bytes, int, int]]) -> Iterator[tuple[int, Said | None]]:
        """Yield what messages say; `wanted` has commit, number there and offset of each."""
        planned: list[tuple[int, int, bytes, MessagePlan | Stored]] = []
        blobs: list[bytes] = []
        find = self._moulds.find
        commits = self._read_data([commit for commit, _ in groupby(wanted, itemgetter(0))])
        current = data = b""
        plans: tuple[MessagePlan, ...] | None = None
        created: list[Stored] = []
        for commit, number, at in wanted:
            if commit != current:
                current = commit
                data = next(commits)
                mould = find(data)
                plans = None if mould is None else mould.messages
                created = self._created(commit, data) if plans is None else []
            if plans is not None and number < len(plans):
                plan = plans[number]
                ids = [data[blob] for blob in plan.blobs]
                planned.append((at, len(ids), data, plan))
            elif number < len(created):
                ids = part_blobs(created[number]["parts"])
                planned.append((at, len(ids), data, created[number]))
            else:
                break
            blobs += ids
        contents = self._read_data(blobs)
        held = 0
        for at, count, data, message in planned:
            objects = list(islice(contents, count))
            if isinstance(message, MessagePlan):
                yield at, _said_of(data, message, objects)
            else:
                yield at, _said_of_stored(message, objects)
            held += sum(map(len, objects))
            if held > MAXIMUM_BYTES:
                return

    def _created(self, commit: bytes, data: bytes) -> list[Stored]:
        """Return a commit's messages; one that has more than a window is decoded once for all of them."""
        if self._decoded[0] != commit:
            self._decoded = (commit, created_messages(Commit.decode(data)))
        return self._decoded[1]


def _said_of(commit: bytes, plan: MessagePlan, objects: list[bytes]) -> Said | None:
    try:
        parts = _parts(plan.parts, commit, map(_text_of, objects))
    except (UnicodeDecodeError, TraceError):
        return None
    return _text(plan.name, commit), _text(plan.model, commit), _text(plan.id, commit), parts


def _said_of_stored(stored: Stored, objects: list[bytes]) -> Said | None:
    known = dict(zip(part_blobs(stored["parts"]), objects, strict=True))
    try:
        parts = load_parts(stored["parts"], known.__getitem__)
    except TraceError:
        return None
    return stored.get("name", ""), stored.get("model", ""), stored.get("id", ""), parts


def _parts(plans: Sequence[PartPlan], commit: bytes, texts: Iterator[str]) -> tuple[Part, ...]:
    """Return parts; `texts` gives the content of each in order."""
    # A loop, and what most parts are at its beginning: a context has very many of them.
    parts: list[Part] = []
    for plan in plans:
        kind = plan[0]
        if kind == TEXT:
            parts.append(Text(next(texts)))
        elif kind == RESULT:
            _, id_, error, inner = plan
            parts.append(ToolResult(_text(id_, commit), _parts(inner, commit, texts), error))
        elif kind == CALL:
            _, _, id_, name, form = plan
            called = _text(id_, commit), _text(name, commit)
            parts.append(ToolCall(*called, next(texts), form))
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


def _text(place: slice | str, commit: bytes) -> str:
    return place if isinstance(place, str) else str(commit[place], "utf-8")

"""Loading many messages: what neighbours say, with few reads and tight loops.

Rule: what is loaded here equals what `load_message` makes of the stored form. What is out of the ordinary (a ghost, an
edit, content in chunks, damage) is left out and read the slow way when it is asked for, which then says what is wrong
with it. Nothing is read ahead until messages are asked for one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby, islice
from operator import itemgetter

from trace_store.context.index_records import EDITED, GHOST, MARKER, MESSAGE_BYTES, unpack_places
from trace_store.context.wording import created_messages
from trace_store.errors import TraceError
from trace_store.objects.codec import blob_content
from trace_store.objects.commit import Commit
from trace_store.objects.message import load_parts, part_blobs
from trace_store.objects.moulds import CALL, RESULT, TEXT, MessagePlan, Moulds
from trace_store.objects.parts import Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.objects.moulds import PartPlan

    Planned = tuple[bytes, MessagePlan] | Mapping[str, Any]
    """A commit with the plan of one of its messages, or that message in stored form."""

ReadMany = Callable[[Iterable[bytes]], Iterator[tuple[ObjectId, bytes]]]
Said = tuple[str, str, str, tuple[Part, ...]]
"""Name, model, id and parts of a message."""

LONGEST_WINDOW = 2048
GROWTH = 8
MAXIMUM_BYTES = 8 * 1024 * 1024
"""Of content that is read ahead; the message that goes over it is the last."""
_UNUSUAL = MARKER | GHOST | EDITED
_BLOB_16 = b"\x92\xa4blob\xc5"


class Loader:
    """Loads messages of one context, more at a time as long as they are asked for one after the other."""

    __slots__ = ("_ahead", "_decoded", "_moulds", "_next", "_read_many", "_size")

    def __init__(self, read_many: ReadMany) -> None:
        self._read_many = read_many
        self._moulds = Moulds()
        self._decoded: tuple[bytes, list[Mapping[str, Any]]] = (b"", [])
        self._ahead: dict[int, Said | None] = {}
        self._next = -1
        self._size = 1

    def load(self, ordinal: int, block: bytes, at: int) -> Said | None:
        """Return what a message says; None when it has to be read the slow way.

        Args:
            ordinal: its place in the context, from 1.
            block: records of the index; those behind the message's may be read ahead.
            at: the offset of its record.
        """
        ahead = self._ahead
        if ordinal not in ahead:
            ahead = {}
            if ordinal == self._next:
                self._size = min(self._size * GROWTH, LONGEST_WINDOW)
                stop = min(at + self._size * MESSAGE_BYTES, len(block))
                ahead = self._window(block[at:stop])
            else:
                self._size = 1
            self._ahead = ahead
        self._next = ordinal + 1
        return ahead.pop(ordinal, None)

    def _window(self, records: bytes) -> dict[int, Said | None]:
        """Return what messages say, by their ordinals, up to the first that cannot be read."""
        found: dict[int, Said | None] = {}
        usual: list[tuple[bytes, int, int]] = []
        for commit, number, flags, ordinal in unpack_places(records):
            if not flags & _UNUSUAL:
                usual.append((commit, number, ordinal))
            elif not flags & MARKER:
                found[ordinal] = None
        try:
            for ordinal, said in self._said(usual):
                found[ordinal] = said
        except TraceError:
            pass  # whoever asks for that message is told
        return found

    def _said(self, wanted: list[tuple[bytes, int, int]]) -> Iterator[tuple[int, Said | None]]:
        planned: list[tuple[int, Planned]] = []
        blobs: list[bytes] = []
        counts: list[int] = []
        for ordinal, message, ids in self._plan(wanted):
            planned.append((ordinal, message))
            blobs += ids
            counts.append(len(ids))
        contents = self._read_many(blobs)
        held = 0
        for (ordinal, message), count in zip(planned, counts, strict=True):
            if isinstance(message, tuple):
                data, plan = message
                objects = [data for _, data in islice(contents, count)]
                yield ordinal, _said_of(data, plan, objects)
            else:
                known: dict[bytes, bytes] = dict(islice(contents, count))
                objects = list(known.values())
                yield ordinal, _said_of_stored(message, known)
            held += sum(map(len, objects))
            if held > MAXIMUM_BYTES:
                return

    def _plan(
        self, wanted: list[tuple[bytes, int, int]]
    ) -> Iterator[tuple[int, Planned, list[bytes]]]:
        """Yield ordinal, message and ids of content of each message."""
        find = self._moulds.find
        commits = self._read_many([commit for commit, _ in groupby(wanted, itemgetter(0))])
        current = b""
        data = b""
        plans: tuple[MessagePlan, ...] | None = None
        created: list[Mapping[str, Any]] = []
        for commit, number, ordinal in wanted:
            if commit != current:
                current = commit
                _, data = next(commits)
                mould = find(data)
                plans = None if mould is None else mould.messages
                created = self._created(commit, data) if plans is None else []
            if plans is not None and number < len(plans):
                plan = plans[number]
                yield ordinal, (data, plan), [data[blob] for blob in plan.blobs]
            elif number < len(created):
                yield ordinal, created[number], part_blobs(created[number]["parts"])
            else:
                return

    def _created(self, commit: bytes, data: bytes) -> list[Mapping[str, Any]]:
        """Return a commit's messages; one that has more than a window is decoded once for all of them."""
        if self._decoded[0] != commit:
            self._decoded = (commit, created_messages(Commit.decode(data)))
        return self._decoded[1]


def _said_of(commit: bytes, plan: MessagePlan, objects: list[bytes]) -> Said | None:
    texts = iter(objects)
    try:
        parts = tuple([_part(part, commit, texts) for part in plan.parts])
    except (UnicodeDecodeError, TraceError):
        return None
    return _text(plan.name, commit), _text(plan.model, commit), _text(plan.id, commit), parts


def _said_of_stored(stored: Mapping[str, Any], known: dict[bytes, bytes]) -> Said | None:
    try:
        parts = load_parts(stored["parts"], known.__getitem__)
    except TraceError:
        return None
    return stored.get("name", ""), stored.get("model", ""), stored.get("id", ""), parts


def _part(plan: PartPlan, commit: bytes, objects: Iterator[bytes]) -> Part:
    kind = plan[0]
    if kind == RESULT:
        _, id_, error, inner = plan
        content = tuple([_part(part, commit, objects) for part in inner])
        return ToolResult(_text(id_, commit), content, error)
    data = next(objects)
    if data[:7] == _BLOB_16 and data[7] << 8 | data[8] == len(data) - 9:
        text = data[9:].decode("utf-8", "surrogatepass")
    else:
        text = blob_content(data).decode("utf-8", "surrogatepass")
    if kind == TEXT:
        return Text(text)
    if kind == CALL:
        _, _, id_, name, form = plan
        return ToolCall(_text(id_, commit), _text(name, commit), text, form)
    if plan[2] is None:
        return Reasoning(text)
    return Reasoning(text, blob_content(next(objects)).decode("utf-8", "surrogatepass"))


def _text(place: slice | str, commit: bytes) -> str:
    return place if isinstance(place, str) else str(commit[place], "utf-8")

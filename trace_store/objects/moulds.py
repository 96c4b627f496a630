"""Moulds: commits of one form, of which the first is decoded and the others are compared with it.

Most commits of a history append one message and differ in ids, times and names alone, which stand at the same
offsets. A mould knows those offsets, its holes; what stands between them has to be equal, byte for byte. So a commit
that fits says in its holes what the decoder would have said.

Rule: a mould answers as `Commit.decode` would have answered, or not at all. It is made of a commit that the decoder
took and that is canonical. The holes are contents of ids, of text (checked to be UTF-8) and of unsigned integers
beside the messages: nothing that a shape depends on.
"""

from __future__ import annotations

from trace_store import errors, objects
from trace_store.objects.codec import COMMIT
from trace_store.objects.commit import Commit
from trace_store.oid import OID_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    Place = slice | Literal[""]
    """Where a text stands in the commit, or that there is none."""
    PartPlan = tuple[Any, ...]

LONGEST = 4096
"""Commits of more bytes hold many messages, and are hardly ever of one form."""
MAXIMUM_MOULDS = 512
FREE_ATTEMPTS = 64
"""So many forms are learned at once; further ones, as commits of known forms are met."""
HITS_PER_ATTEMPT = 16
MAXIMUM_DEPTH = 12

TEXT = 0
CALL = 1
RESULT = 2
REASONING = 3

_FIELDS = frozenset(("author", "links", "message", "meta", "ops", "parents", "time"))
_MESSAGE_FIELDS = frozenset(("id", "kind", "model", "name", "parts", "role"))


class MessagePlan:
    """Where the fields of one message stand.

    Attributes:
        role, kind: as the commit has them; kind is "" when it says none.
        name, model, id: each a slice of the commit, or "".
        parts: for each part (TEXT, blob), (CALL, blob, id, name, format), (RESULT, id, error, parts) or
            (REASONING, blob, signature or None).
        blobs: the ids of all content, as slices, in the order in which parts are loaded.
        span: the canonical bytes of the parts; `name_span` those of the name, None when there is none.
    """

    __slots__ = ("blobs", "id", "kind", "model", "name", "name_span", "parts", "role", "span")

    def __init__(
        self,
        role: str,
        kind: str,
        names: tuple[Place, Place, Place],
        parts: tuple[PartPlan, ...],
        blobs: tuple[slice, ...],
        spans: tuple[slice, slice | None],
    ) -> None:
        self.role = role
        self.kind = kind
        self.name, self.model, self.id = names
        self.parts = parts
        self.blobs = blobs
        self.span, self.name_span = spans


class Mould:
    """The form of a commit that only appends.

    Attributes:
        messages: those that it appends, in order.
        parent: where the id of the first parent stands; None when there is none.
        is_measured: whether it has a report that measures its context.
    """

    __slots__ = (
        "_fixed",
        "_mask",
        "_size",
        "_texts",
        "_value",
        "is_measured",
        "messages",
        "parent",
    )

    def __init__(
        self,
        data: bytes,
        fixed: tuple[slice, ...],
        texts: tuple[slice, ...],
        messages: tuple[MessagePlan, ...],
        parent: slice | None,
        *,
        is_measured: bool,
    ) -> None:
        # As numbers, since then one operation compares all that is fixed, and sees that texts are ASCII.
        mask = bytearray(len(data))
        for piece in fixed:
            mask[piece] = b"\xff" * len(data[piece])
        self._fixed = int.from_bytes(mask, "little")
        for text in texts:
            mask[text] = b"\x80" * len(data[text])
        self._mask = int.from_bytes(mask, "little")
        self._size = len(data)
        self._value = int.from_bytes(data, "little") & self._fixed
        self._texts = texts
        self.messages = messages
        self.parent = parent
        self.is_measured = is_measured

    def fits(self, data: bytes) -> bool:
        """Tell whether bytes have the form."""
        return len(data) == self._size and self.fits_number(int.from_bytes(data, "little"), data)

    def fits_number(self, number: int, data: bytes) -> bool:
        """Tell whether bytes of the right length, which are this number with the lowest first, have the form."""
        if number & self._mask == self._value:
            return True
        if number & self._fixed != self._value:
            return False
        try:
            for text in self._texts:
                str(data[text], "utf-8")
        except UnicodeDecodeError:
            return False
        return True


class Moulds:
    """The forms that were met, by the length of the commit."""

    __slots__ = ("_attempts", "_by_length", "_hits")

    def __init__(self) -> None:
        self._by_length: dict[int, list[Mould]] = {}
        self._attempts = 0
        self._hits = 0

    def find(self, data: bytes) -> Mould | None:
        """Return the form of a commit's bytes; None leaves them to the decoder."""
        moulds = self._by_length.get(len(data), ())
        number = int.from_bytes(data, "little") if moulds else 0
        for mould in moulds:
            if mould.fits_number(number, data):
                self._hits += 1
                return mould
        if len(data) > LONGEST or self._attempts > FREE_ATTEMPTS + self._hits // HITS_PER_ATTEMPT:
            return None
        self._attempts += 1
        made = make_mould(data)
        if made is not None:
            if len(self._by_length) > MAXIMUM_MOULDS or len(moulds) > MAXIMUM_MOULDS:
                self._by_length.clear()
            self._by_length.setdefault(len(data), []).insert(0, made)
        return made


def make_mould(data: bytes) -> Mould | None:
    """Return the form of a commit; None when it does more than append, or is none, or is not canonical."""
    try:
        commit = Commit.decode(data)
        if commit.encode() != data:
            return None
        walk = _Walk(data)
        kind, fields = walk.value().items
        if walk.text(kind) != COMMIT or not _FIELDS.issuperset(fields):
            return None
        walk.text(fields["author"])  # as good as always the same: compared, not checked
        messages: list[MessagePlan] = []
        is_measured = False
        for operation_pair in fields["ops"].items:
            name, said = operation_pair.items
            operation = walk.text(name)
            if operation == "append":
                messages += [walk.message(message) for message in said["messages"].items]
            elif operation != "usage" or commit.links or "about" in said:
                return None  # what stands in a hole may say whether a report measures the context
            else:
                is_measured = objects.report_of(commit) is not None
        parents = fields["parents"].items
        parent = parents[0].place if parents else None
        return Mould(data, *walk.gaps(), tuple(messages), parent, is_measured=is_measured)
    except (errors.CorruptObjectError, errors.InvalidInputError, _OtherFormError):
        return None


class _OtherFormError(Exception):
    """The commit is of a form that no mould is made of."""


class _Scalar:
    """A value that may be a hole: what it is, and where it and its content stand."""

    __slots__ = ("kind", "place", "whole")

    def __init__(self, kind: str, whole: int, start: int, stop: int) -> None:
        self.kind = kind
        self.whole = slice(whole, stop)
        self.place = slice(start, stop)


class _List:
    """An array, and where it stands."""

    __slots__ = ("items", "whole")

    def __init__(self, items: list[Any], whole: slice) -> None:
        self.items = items
        self.whole = whole


class _Walk:
    """Goes through canonical bytes and notes where scalars stand."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._holes: dict[int, _Scalar] = {}

    def value(self, depth: int = 0) -> Any:
        """Return the next value: a dict, a `_List`, a `_Scalar`, or what is compared as it stands."""
        if depth > MAXIMUM_DEPTH:
            raise _OtherFormError
        start = self._at
        head = self._data[start]
        self._at += 1
        if head & 0xF0 == 0x80 or head == 0xDE:
            count = self._number(2) if head == 0xDE else head & 0x0F
            return {self.text(self.value(depth + 1)): self.value(depth + 1) for _ in range(count)}
        if head & 0xF0 == 0x90 or head == 0xDC:
            count = self._number(2) if head == 0xDC else head & 0x0F
            items = [self.value(depth + 1) for _ in range(count)]
            return _List(items, slice(start, self._at))
        if head & 0xE0 == 0xA0:
            return self._scalar("text", start, head & 0x1F)
        if head in (0xD9, 0xDA):
            return self._scalar("text", start, self._number(head - 0xD8))
        if head in (0xC4, 0xC5):
            return self._scalar("bytes", start, self._number(head - 0xC3))
        if 0xCC <= head <= 0xCF:
            return self._scalar("integer", start, 1 << (head - 0xCC))
        if head < 0x80 or head in _CONSTANTS:
            return _CONSTANTS.get(head, head)
        raise _OtherFormError

    def text(self, value: Any) -> str:
        """Return a text, which is then compared and no hole."""
        if not isinstance(value, _Scalar) or value.kind != "text":
            raise _OtherFormError
        self._holes.pop(value.place.start, None)
        return str(self._data[value.place], "utf-8")

    def message(self, fields: Any) -> MessagePlan:
        """Return the plan of an appended message."""
        if not _MESSAGE_FIELDS.issuperset(fields):
            raise _OtherFormError
        blobs: list[slice] = []
        parts = self._parts(fields["parts"], blobs)
        name = fields.get("name")
        return MessagePlan(
            self.text(fields["role"]),
            self.text(fields["kind"]) if "kind" in fields else "",
            (_text(name), _text(fields.get("model")), _text(fields.get("id"))),
            parts,
            tuple(blobs),
            (fields["parts"].whole, None if name is None else name.whole),
        )

    def gaps(self) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Return what stands between the holes, and the holes that have to be UTF-8."""
        fixed: list[slice] = []
        texts: list[slice] = []
        at = 0
        for start, hole in sorted(self._holes.items()):
            fixed.append(slice(at, start))
            at = hole.place.stop
            if hole.kind == "text":
                texts.append(hole.place)
        fixed.append(slice(at, len(self._data)))
        return tuple(fixed), tuple(texts)

    def _parts(self, parts: Any, blobs: list[slice]) -> tuple[PartPlan, ...]:
        return tuple(self._part(part, blobs) for part in parts.items)

    def _part(self, part: Any, blobs: list[slice]) -> PartPlan:
        type_ = self.text(part["type"])
        keys = frozenset(part)
        if type_ == "tool_result" and keys - {"error"} == {"id", "parts", "type"}:
            if part.get("error", True) is not True:
                raise _OtherFormError
            return (RESULT, _text(part["id"]), "error" in part, self._parts(part["parts"], blobs))
        blob = _id(part.get("blob"))
        blobs.append(blob)
        if type_ == "text" and keys == {"blob", "type"}:
            return (TEXT, blob)
        if type_ == "tool_call" and keys - {"format"} == {"blob", "id", "name", "type"}:
            form = self.text(part["format"]) if "format" in part else "json"
            return (CALL, blob, _text(part["id"]), _text(part["name"]), form)
        if type_ == "reasoning" and keys - {"signature"} == {"blob", "type"}:
            if "signature" not in part:
                return (REASONING, blob, None)
            blobs.append(_id(part["signature"]))
            return (REASONING, blob, blobs[-1])
        raise _OtherFormError

    def _scalar(self, kind: str, whole: int, size: int) -> _Scalar:
        found = _Scalar(kind, whole, self._at, self._at + size)
        self._holes[self._at] = found
        self._at += size
        return found

    def _number(self, size: int) -> int:
        self._at += size
        return int.from_bytes(self._data[self._at - size : self._at], "big")


def _text(value: Any) -> Place:
    if value is None:
        return ""
    if not isinstance(value, _Scalar) or value.kind != "text":
        raise _OtherFormError
    return value.place


def _id(value: Any) -> slice:
    if not isinstance(value, _Scalar) or value.kind != "bytes":
        raise _OtherFormError
    if value.place.stop - value.place.start != OID_BYTES:
        raise _OtherFormError
    return value.place


_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True} | {head: head - 256 for head in range(0xE0, 256)}

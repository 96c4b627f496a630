"""Commits and tags: the structured objects of a history.

Rule: pure values. A commit's map has `author`, `ops`, `parents`, `time` and, if not empty, `links`, `message`, `meta`.
Unknown fields are preserved.

Rule: only the structure of operations is checked; `context/fold.py` checks meaning. Unknown operations and fields pass,
because they are preserved.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.oid import OID_BYTES, ObjectId, checked_id
from trace_store.objects.address import BIRTH_BYTES
from trace_store.objects.codec import COMMIT, TAG, check_readable, decode, encode, ordered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from trace_store.base.ident import Time

    Check = Callable[[Any], bool]

PICKED, REWRITES = "picked", "rewrites"
"""Links from a picked or rebased commit to the original; text, because the original need not stay."""
REVERTS = "reverts"
SQUASHES = "squashes"
"""The link from a squash commit to the squashed tip; text, for the same reason."""


class Operation:
    """One change of the context: a name and fields.

    Created by `trace_store.objects.operations`.
    """

    __slots__ = ("fields", "name")

    def __init__(self, name: str, fields: Mapping[str, Any]) -> None:
        self.name = name
        self.fields = dict(fields)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Operation):
            return NotImplemented
        return (self.name, self.fields) == (other.name, other.fields)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Operation({self.name!r}, {self.fields!r})"


class Commit:
    """Operations on the context, with parents, author and time.

    Attributes:
        parents: ids; the commit continues the context of the first.
        author: plain text.
        time: milliseconds since the epoch, UTC.
        operations: in order.
        message: the commit message, or "".
        meta: small facts about its origin: text, integers, ids.
        links: (relation, target) pairs; a 32-byte target is an id and must exist, text is a mention.
    """

    __slots__ = ("_unknown", "author", "links", "message", "meta", "operations", "parents", "time")

    def __init__(
        self,
        parents: Sequence[ObjectId],
        author: str,
        time: int,
        operations: Sequence[Operation],
        message: str = "",
        meta: Mapping[str, Any] | None = None,
        links: Sequence[tuple[str, ObjectId | str]] = (),
    ) -> None:
        self.parents = tuple(parents)
        self.author = author
        self.time = time
        self.operations = tuple(operations)
        self.message = message
        self.meta = dict(meta) if meta else {}
        self.links = tuple(links)
        self._unknown: dict[str, Any] = {}

    def encode(self) -> bytes:
        """Return the canonical bytes.

        Raises:
            InvalidInputError: a value cannot be stored, or the commit is too large.
        """
        fields: dict[str, Any] = dict(self._unknown)
        # Sorted, so that the encoder need not sort.
        fields["author"] = self.author
        if self.links:
            fields["links"] = [list(link) for link in self.links]
        if self.message:
            fields["message"] = self.message
        if self.meta:
            fields["meta"] = ordered(self.meta)
        fields["ops"] = [[operation.name, operation.fields] for operation in self.operations]
        fields["parents"] = self.parents
        fields["time"] = self.time
        return _encode_object([COMMIT, fields])

    @property
    def stored(self) -> list[Any]:
        """What the object holds, as it is stored."""
        return decode(self.encode())[1:]

    @classmethod
    def decode(cls, data: bytes) -> Commit:
        """Decode the canonical bytes of a commit.

        Raises:
            CorruptObjectError: they are not a commit.
        """
        return cls.of(decode(data))

    @classmethod
    def of(cls, value: list[Any], *, is_checked: bool = False) -> Commit:
        """Return the commit of a decoded object, which becomes a part of it; raises as `decode`.

        Args:
            value: the object.
            is_checked: whether the fields of its operations were checked before.
        """
        fields = _fields_of(value, COMMIT)
        pop = fields.pop
        commit = cls.__new__(cls)
        try:
            commit.parents = tuple([checked_id(parent) for parent in pop("parents")])
            commit.author = _text(pop("author"))
            commit.time = _integer(pop("time"))
            operation = _stored_operation if is_checked else _operation
            commit.operations = tuple([operation(*each) for each in pop("ops")])
            commit.message = _text(pop("message", ""))
            commit.meta = _map(pop("meta")) if "meta" in fields else {}
            commit.links = (
                tuple([_link(*link) for link in pop("links")]) if "links" in fields else ()
            )
        except (KeyError, TypeError, ValueError) as error:
            raise errors.CorruptObjectError(f"not a valid commit: {error}") from error
        commit._unknown = fields
        return commit


class Tag:
    """A named, annotated pointer to an object; a detached signature is a tag too.

    Attributes:
        target: the id it points to.
        name: the tag's name.
        author, time, message: as in a commit.
        meta: other facts, such as a signature.
    """

    __slots__ = ("author", "message", "meta", "name", "target", "time")
    time: Time

    def __init__(
        self,
        target: ObjectId,
        name: str,
        author: str,
        time: int,
        message: str = "",
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        self.target = target
        self.name = name
        self.author = author
        self.time = time
        self.message = message
        self.meta = dict(meta) if meta else {}

    def encode(self) -> bytes:
        """Return the canonical bytes."""
        # Sorted, so that the encoder need not sort.
        fields: dict[str, Any] = {"author": self.author}
        if self.message:
            fields["message"] = self.message
        if self.meta:
            fields["meta"] = self.meta
        fields |= {"name": self.name, "target": self.target, "time": self.time}
        return _encode_object([TAG, fields])

    @property
    def stored(self) -> list[Any]:
        """What the object holds, as it is stored."""
        return decode(self.encode())[1:]

    @classmethod
    def decode(cls, data: bytes) -> Tag:
        """Decode the canonical bytes of a tag.

        Raises:
            CorruptObjectError: they are not a tag.
        """
        return cls.of(decode(data))

    @classmethod
    def of(cls, value: list[Any]) -> Tag:
        """Return the tag of a decoded object; raises as `decode`."""
        fields = _fields_of(value, TAG)
        try:
            return cls(
                target=checked_id(fields["target"]),
                name=_text(fields["name"]),
                author=_text(fields["author"]),
                time=_integer(fields["time"]),
                message=_text(fields.get("message", "")),
                meta=_map(fields.get("meta", {})),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise errors.CorruptObjectError(f"not a valid tag: {error}") from error


def _encode_object(value: list[Any]) -> bytes:
    data = encode(value)
    check_readable(value, len(data))
    return data


def read_commit(oid: bytes, read: Callable[[bytes], bytes]) -> Commit:
    """Return the commit with this id.

    Raises:
        ObjectNotFoundError: it is missing.
        CorruptObjectError: it is damaged or not a commit; the message has its id.
    """
    try:
        return Commit.decode(read(oid))
    except errors.CorruptObjectError as error:
        name = ObjectId(oid)
        if name.short() in error.message:
            raise
        raise errors.CorruptObjectError(
            f"object {name.short()}: {error.message}", oid=name
        ) from error


def parents_of(data: bytes) -> list[ObjectId]:
    """Return a commit's parents from its bytes.

    Raises:
        CorruptObjectError: they are not a commit.
    """
    try:
        return [checked_id(parent) for parent in structure(data, COMMIT)["parents"]]
    except (KeyError, TypeError) as error:
        raise errors.CorruptObjectError("not a valid commit") from error


def structure(data: bytes, kind: str) -> dict[str, Any]:
    """Return the map of a structured object of this kind.

    Raises:
        CorruptObjectError: it has another kind or structure.
    """
    return _fields_of(decode(data), kind)


def _fields_of(value: list[Any], kind: str) -> dict[str, Any]:
    if value[0] != kind or len(value) != 2 or not isinstance(value[1], dict):
        raise errors.CorruptObjectError(f"not a {kind}: it is a {value[0][:40]!r}")
    return value[1]


def _operation(name: Any, fields: Any) -> Operation:
    check_operation(_text(name), _map(fields))
    return _stored_operation(name, fields)


def _stored_operation(name: str, fields: dict[str, Any]) -> Operation:
    operation = Operation.__new__(Operation)
    operation.name, operation.fields = name, fields  # a decoded map has no other user
    return operation


def _link(relation: Any, target: Any) -> tuple[str, ObjectId | str]:
    return _text(relation), checked_id(target) if isinstance(target, bytes) else _text(target)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is expected")
    return value


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("an integer is expected")
    return value


def _map(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("a map is expected")
    return value


def check_operation(name: str, fields: Mapping[str, Any]) -> None:
    """Check the structure of an operation's known fields.

    Raises:
        CorruptObjectError: a field is missing or invalid.
    """
    required, optional = _SCHEMAS.get(name, ((), ()))
    for field, check in required:
        if not check(fields.get(field)):  # no check accepts None
            raise errors.CorruptObjectError(f"the operation {name} has no valid {field}")
    for field, check in optional:
        if field in fields and not check(fields[field]):
            raise errors.CorruptObjectError(f"the operation {name} has no valid {field}")


def _is_address(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and isinstance(value[0], bytes)
        and len(value[0]) in (0, BIRTH_BYTES)
        and _is_number(value[1])
    )


def _are_addresses(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_address, value))


def _is_oid(value: Any) -> bool:
    return isinstance(value, bytes) and len(value) == OID_BYTES


def _are_oids(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_oid, value))


def _are_parts(value: Any) -> bool:
    # Loops, because every commit that is read is checked here.
    if not isinstance(value, list):
        return False
    for part in value:
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            return False
        if "parts" in part and not _are_parts(part["parts"]):
            return False
        if "call" in part and not _is_address(part["call"]):
            return False
    return True


def _are_versions(value: Any) -> bool:
    return isinstance(value, list) and all(map(_are_parts, value))


def _are_messages(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    for message in value:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return False
        if not _are_parts(message.get("parts")):
            return False
        for field in _MESSAGE_TEXTS:
            if field in message and not isinstance(message[field], str):
                return False
        if "born" in message and not all(
            check(message[field]) for field, check in _CARRIED.items() if field in message
        ):
            return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_named_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _are_records(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(each, dict) and _is_oid(each.get("content")) and _is_text(each.get("type"))
        for each in value.values()
    )


_MESSAGE_TEXTS = ("kind", "name", "model", "id")
_CARRIED: dict[str, Check] = {
    "born": _is_address,
    "edits": _are_versions,
    "current": _is_number,
    "hidden": _is_text,
    "priority": _is_text,
    "labels": _are_texts,
    "keep": _are_oids,
}
"""Additional fields of a carried message."""
_SCHEMAS: dict[str, tuple[tuple[tuple[str, Check], ...], tuple[tuple[str, Check], ...]]] = {
    "add": ((("messages", _are_messages),), (("after", _is_address),)),
    "edit": ((("target", _is_address), ("parts", _are_parts)), ()),
    "annotate": (
        (("targets", _are_addresses),),
        (
            ("priority", _is_text),
            ("keep", _are_oids),
            ("labels", _are_texts),
            ("unlabels", _are_texts),
        ),
    ),
    "remove": ((("targets", _are_addresses),), ()),
    "restore": ((("targets", _are_addresses),), (("version", _is_number),)),
    "replace": (
        (("targets", _are_addresses), ("messages", _are_messages)),
        (("sources", _are_addresses), ("prompt", _is_oid), ("reason", _is_text)),
    ),
    "move": ((("targets", _are_addresses),), (("after", _is_address),)),
    "tools": ((("schemas", _are_oids),), ()),
    "usage": ((), (("about", _is_oid),)),
    "config": ((), (("meta", _are_named_texts), ("settings", _are_named_texts))),
    "records": ((("values", _are_records),), ()),
}

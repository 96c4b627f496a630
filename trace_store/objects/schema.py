"""Structure of the known operations.

Rule: structure only; `context/fold.py` checks meaning. Unknown operations and fields pass, because they are preserved.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.objects.address import BIRTH_BYTES
from trace_store.oid import OID_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Check = Callable[[Any], bool]


def check_operation(name: str, fields: Mapping[str, Any]) -> None:
    """Check the structure of an operation's known fields.

    Raises:
        CorruptObjectError: a field is missing or invalid.
    """
    required, optional = _SCHEMAS.get(name, ((), ()))
    for field, check in required:
        if field not in fields or not check(fields[field]):
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
            if not isinstance(message.get(field, ""), str):
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
}

"""The JSON form of results, which `record` reads off their fields.

A key is the name of a field; a flag `is_hidden` is the key `hidden`. Hidden fields have no key. Ids and other bytes are
hex, addresses `<32 hex characters>.<n>`, times ISO 8601 in UTC (null if unknown), sets sorted lists, messages lossless
JSON, errors their text. A time is a field or property of the type `Time`.

A class whose JSON differs says how in `JSON`, next to its fields, in terms separated by spaces:

    name                      a key for a property, or for a method without arguments
    commit=oid                the key `commit` in place of the field `oid`, and of a field `commit`
    behind=tracking.behind    a key for a part of a field; null if the field is None
    branch?                   null instead of an empty text
    kept:ref,commit           each tuple of a list as an object with these keys
    *state                    the keys of a field in place of the field
    -line                     no key for a field

`docs/json.md` says what each key means.
"""

from __future__ import annotations

from trace_store import providers
from trace_store.base.ident import known_time
from trace_store.objects.address import Address
from trace_store.objects.message import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Key: TypeAlias = tuple[str, tuple[str, ...], bool, tuple[str, ...]]
    """A key ("*" for those of the value), the path of its value, whether empty is null, and the keys of tuples."""

_FLAG = "is_"
_TIMES = ("Time", "Time | None")


def record(result: object, **more: object) -> dict[str, Any]:
    """Return a result, or the values of a dictionary, as JSON values; `more` adds or replaces keys."""
    found: dict[str, Any] = plain(result)
    return {**found, **plain(more)}


def plain(value: Any) -> Any:
    """Return any value as JSON values."""
    if isinstance(value, str | int | float) or value is None:
        return value
    if isinstance(value, Address):
        return value.hex
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Exception):
        return str(value) or type(value).__name__
    if isinstance(value, Message):
        return providers.rendering.render("json", [value]).request["messages"][0]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value))
    if hasattr(value, "items"):
        return {plain(key): plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if hasattr(value, "JSON") or hasattr(value, "__match_args__"):
        return _fields(value)
    return [plain(each) for each in value]


_keys: dict[type, list[Key]] = {}


def _fields(result: object) -> dict[str, Any]:
    cls = type(result)
    if cls not in _keys:
        _keys[cls] = _keys_of(cls)
    found: dict[str, Any] = {}
    for key, path, empty_is_null, columns in _keys[cls]:
        value = _at(result, path)
        if columns:
            value = [dict(zip(columns, each, strict=True)) for each in value]
        if key == "*":
            found |= plain(value)
        else:
            found[key] = plain(None if empty_is_null and not value else value)
    return found


def _keys_of(cls: type) -> list[Key]:
    """Return the keys of a class; one that is read from a field has the field's place."""
    names: tuple[str, ...] = getattr(cls, "__shown__", ()) or getattr(cls, "__match_args__", ())
    places: dict[str, list[Key]] = {name: [] for name in names}
    for term in getattr(cls, "JSON", "").split():
        left, _, columns = term.rstrip("?").partition(":")
        key, _, source = left.partition("=")
        if key[0] in "*-":
            key, source = key[0], key[1:]
        path = tuple((source or key).split("."))
        name = key if source else key.removeprefix(_FLAG)
        keys = tuple(filter(None, columns.split(",")))
        places.setdefault(path[0], []).append((name, path, term.endswith("?"), keys))
    named = {each[0] for keys in places.values() for each in keys}
    for name in names:
        key = name.removeprefix(_FLAG)
        if not places[name] and key not in named:
            places[name] = [(key, (name,), False, ())]
    return [each for keys in places.values() for each in keys if each[0] != "-"]


def _at(value: Any, path: tuple[str, ...]) -> Any:
    *parts, name = path
    for part in parts:
        value = None if value is None else getattr(value, part)
    if value is None:
        return None
    found = getattr(value, name)
    if callable(found):
        return found()
    return known_time(found) if _is_time(type(value), name) else found


def _is_time(cls: type, name: str) -> bool:
    """Return True if a field or property has the type `Time`."""
    own = getattr(cls, name, None)
    if isinstance(own, property):
        return own.fget.__annotations__.get("return") in _TIMES
    return any(getattr(base, "__annotations__", {}).get(name) in _TIMES for base in cls.__mro__)

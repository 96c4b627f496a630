"""Differences between two JSON values, so that the original can be restored from the derived one.

An imported trajectory is stored in Trace's own fields. Details that these fields lose, such as whether a list was
missing or empty, are stored beside them as leftovers. A leftover applies only while its field is unchanged.
"""

from __future__ import annotations

import json

from trace_store.oid import hash_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DIGEST_CHARACTERS = 16


class _Missing:
    __slots__ = ()


MISSING = _Missing()
"""Marks a key that is absent, which is not the same as a key with the value null."""


def leftover(original: Any, derived: Any) -> dict[str, Any]:
    """Return the differences that turn `derived` into `original`, as JSON values; empty if they are equal."""
    if isinstance(original, dict) and isinstance(derived, dict):
        inside = {
            name: found
            for name in sorted(original.keys() | derived.keys())
            if (found := leftover(original.get(name, MISSING), derived.get(name, MISSING)))
        }
        return {"in": inside} if inside else {}
    was = _digest(derived)
    if was == _digest(original):
        return {}
    return {
        **({} if was is None else {"was": was}),
        **({} if isinstance(original, _Missing) else {"is": original}),
    }


def restored(derived: Any, difference: object) -> Any:
    """Return the original value, with later changes of `derived`; MISSING if there was no value."""
    if not isinstance(difference, dict):
        return derived
    inside = difference.get("in")
    if isinstance(inside, dict):
        if not isinstance(derived, dict):
            return derived
        found = {name: restored(derived.get(name, MISSING), each) for name, each in inside.items()}
        return {name: each for name, each in {**derived, **found}.items() if each is not MISSING}
    if not difference.keys() & {"was", "is"} or difference.get("was") != _digest(derived):
        return derived
    return difference.get("is", MISSING)


def _digest(value: Any) -> str | None:
    if isinstance(value, _Missing):
        return None
    text = json.dumps(value, ensure_ascii=True, sort_keys=True)
    return hash_object(text.encode("ascii")).hex()[:_DIGEST_CHARACTERS]

"""Names of refs made from ids that transcripts hold.

Rule: the same id always gives the same name, and every name is fit for a ref on every file system.
"""

from __future__ import annotations

import string

from trace_store.objects.content import bytes_of
from trace_store.oid import digest
from trace_store.ref_names import is_ref_name
from trace_store.refs import BRANCHES

MAXIMUM_CHARACTERS = 80
SHORT_CHARACTERS = 8

_GOOD = frozenset(string.ascii_letters + string.digits + "._-")
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))]
)


def ref_component(text: str) -> str:
    """Return an id as one component of a ref name; ids that are fit for it stay as they are."""
    clean = "".join(c if c in _GOOD else "-" for c in text)
    if (
        clean == text
        and 0 < len(text) <= MAXIMUM_CHARACTERS
        and text[0] not in ".-"
        and text[-1] != "."
        and ".." not in text
        and not text.lower().endswith((".lock", ".log"))
        and text.split(".")[0].lower() not in _DEVICES
        and not (len(text) == 64 and set(text) <= set(string.hexdigits))
        and is_ref_name(f"{BRANCHES}{text}")
    ):
        return text
    return distinct_component(text)


def distinct_component(text: str) -> str:
    """Return an id as a component that no other id has, also where names that differ by case only are one."""
    # Two ids must not share a name because of the characters they lost.
    clean = "".join(c if c in _GOOD else "-" for c in text)
    kept = clean.replace(".", "-").strip("-")[: MAXIMUM_CHARACTERS // 2].rstrip("-")
    return f"{kept or 'id'}-{digest(bytes_of(text)).hex()[:12]}"


def short_id(text: str) -> str:
    """Return the first characters of an id, as a component of a ref name."""
    return ref_component(text[:SHORT_CHARACTERS])

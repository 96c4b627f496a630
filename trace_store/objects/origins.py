"""Links that tell what a commit was made from.

Rule: what was made anew names all that it was made from before, each with the number that its messages begin at, where
that is not the first (`ID+2`); a copy names its own origin.
"""

from __future__ import annotations

from trace_store.ident import count_of, is_count
from trace_store.objects.commit import Commit
from trace_store.oid import ObjectId, is_full_id

REWRITES, PICKED, SQUASHES = "rewrites", "picked", "squashes"
"""Links of a commit that was made anew: from which it was; SQUASHES names the tip of what was squashed into it.

The target is text, since that one need not stay.
"""
_MARKS = REWRITES.encode(), PICKED.encode()


def origins_of(data: bytes) -> list[tuple[str, str, int]]:
    """Return (relation, id, number) of each commit that another, given its bytes, was made from.

    Its messages begin at that number in what was made of it. Copies of single messages are not told.
    """
    if not any(mark in data for mark in _MARKS):
        return []  # few have been made anew, and the others need not be decoded
    found: list[tuple[str, str, int]] = []
    for relation, target in Commit.decode(data).links:
        name, _, first = str(target).partition("+")
        if relation in (REWRITES, PICKED) and is_count(first or "0") and is_full_id(name):
            found.append((relation, name, count_of(first or "0")))
    return found


def picked_message(relation: str, target: ObjectId | str) -> tuple[ObjectId, int] | None:
    """Return the address that a link names whose commit has a copy of a single message; None for other links."""
    name, dot, digits = str(target).rpartition(".")
    if relation != PICKED or not dot or not (is_full_id(name) and is_count(digits)):
        return None
    return ObjectId.parse(name), count_of(digits)


def later_name(name: str, first: int) -> str:
    """Return the name of a commit whose messages begin at a number, given one that begins earlier by so many."""
    oid, _, had = name.partition("+")
    at = first + (count_of(had) if is_count(had) else 0)
    return f"{oid}+{at}" if at else oid


def later_link(relation: str, target: ObjectId | str, first: int) -> tuple[str, ObjectId | str]:
    """Return a link of a commit whose messages begin at a number in what is made of it.

    What names a commit that they were made from is moved by so many; other links stay, as those of single messages do.
    """
    of_one = picked_message(relation, target) is not None
    if of_one or relation not in (REWRITES, PICKED) or not isinstance(target, str):
        return relation, target
    return relation, later_name(target, first)

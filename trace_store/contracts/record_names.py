"""Names of records: `refs/records/PROGRAM/PART/…`, of which one part is the thread, and the last ones its branch."""

from __future__ import annotations

from trace_store.base.oid import digest
from trace_store.contracts.ref_names import RECORDS, is_ref_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAIN_PARTS = ("main", "root")
"""Parts that name the main branch of a thread."""
_THREAD_FACTS = ("session", "thread", "conversation")
"""What frameworks call a thread: its id is the fact `PROGRAM.thread`, or with another of these names."""
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
_PLAIN_LENGTH = 64
_SLUG_LENGTH = 40
_HASH_DIGITS = 16


def record_name(program: str, *parts: str) -> str:
    """Return the full name of a record; a part that is not valid in a ref becomes a readable name with a hash."""
    return RECORDS + "/".join([program, *map(record_part, parts)])


def record_part(text: str) -> str:
    """Return an id as a part of a name."""
    plain = 0 < len(text) <= _PLAIN_LENGTH and _PLAIN.issuperset(text) and text[0].isalnum()
    if plain and is_ref_name(RECORDS + text):
        return text
    slug = "".join(c if c in _PLAIN else "-" for c in text.lower())[:_SLUG_LENGTH].strip("-_")
    hashed = digest(text.encode("utf-8", "surrogatepass")).hex()[:_HASH_DIGITS]
    found = f"{slug or 'x'}.{hashed}"
    return found if is_ref_name(RECORDS + found) else f"x-{found}"  # else a device name of Windows


def thread_in(ref: str, facts: Mapping[str, str]) -> str:
    """Return the id of the thread that a record (full name) with some facts belongs to, or ""."""
    return next(filter(None, (facts.get(name, "") for name in thread_facts(ref))), "")


def thread_facts(ref: str) -> list[str]:
    """Return the names of the facts that may hold the id of a record's thread."""
    program = ref.removeprefix(RECORDS).partition("/")[0]
    return [f"{program}.{each}" for each in _THREAD_FACTS]


def parts_below(ref: str, part: str) -> list[str] | None:
    """Return the parts of a record's name after a thread's; None if it is not a record of this thread."""
    parts = ref.removeprefix(RECORDS).split("/")[1:]
    return parts[parts.index(part) + 1 :] if part in parts else None


def record_title(ref: str, facts: Mapping[str, str]) -> str:
    """Return the id of the thread that a record (full name) belongs to, and its branch if that is not the main one.

    "" if the facts of the record name no thread.
    """
    thread = thread_in(ref, facts)
    below = parts_below(ref, record_part(thread)) if thread else None
    rest = ref.removeprefix(RECORDS).split("/")[1:] if below is None else below
    branch = "/".join(each for each in rest if each not in MAIN_PARTS)
    return f"{thread} ({branch})" if thread and branch else thread

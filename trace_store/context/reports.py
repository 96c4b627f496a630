"""The provider's report that holds for a context: what it measured, instead of what is counted here.

Rule: a report is the size of the context at the commit that records it. It also holds for the commits after that one;
what they add or take out counts at its estimate. A compaction or a merge makes another context, for which it ends.
"""

from __future__ import annotations

from trace_store.objects.operations import APPEND, REPLACE, USAGE, message_count
from trace_store.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.objects.commit import Commit

MAXIMUM_AGE = 32
MAXIMUM_MESSAGES = 100
"""For so many commits and messages a report holds: looking for one takes the same time in every history."""


@value
class Report:
    """What a provider reported.

    Attributes:
        commit: the commit that records it.
        token_count: tokens of the context there: all input, cached or not, and the output.
        name: the model that answered, else the form of the report.
        age: how many commits came after it.
        created: how many messages these create.
        messages_since: how many messages these append; None when they do anything else.
    """

    commit: bytes
    token_count: int
    name: str
    age: int = 0
    created: int = 0
    messages_since: int | None = 0


def report_at(
    tip: bytes, read: Callable[[bytes], Commit], known: dict[bytes, Report | None] | None = None
) -> Report | None:
    """Return the report that holds at a commit, or None.

    Args:
        tip: the commit.
        read: gives a commit by its id.
        known: answers for commits; those that are found are added.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit is not here, or damaged.
    """
    found: Report | None = None
    oid, age = tip, 0
    since: int | None = 0
    created = 0
    while age < MAXIMUM_AGE:
        if known is not None and oid in known:
            found = known[oid]
            break
        commit = read(oid)
        found = _own_report(oid, commit)
        if found is not None or not commit.parents or _makes_another_context(commit):
            break
        since = _sum(since, _appended(commit))
        created += sum(map(message_count, commit.operations))
        if created > MAXIMUM_MESSAGES:
            break
        oid, age = commit.parents[0], age + 1
    if found is not None:
        age += found.age
        since = _sum(since, found.messages_since)
        created += found.created
        is_held = age < MAXIMUM_AGE and created <= MAXIMUM_MESSAGES
        found = replace(found, age=age, created=created, messages_since=since) if is_held else None
    if known is not None:
        known[tip] = found
    return found


def _appended(commit: Commit) -> int | None:
    if any(each.name not in (APPEND, USAGE) for each in commit.operations):
        return None
    return sum(map(message_count, commit.operations))


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _makes_another_context(commit: Commit) -> bool:
    return len(commit.parents) > 1 or any(each.name == REPLACE for each in commit.operations)


def _own_report(oid: bytes, commit: Commit) -> Report | None:
    """Return the last report of a commit that is about its own context, not about an earlier or a replaced one."""
    if _makes_another_context(commit):
        return None
    parent = commit.parents[0] if commit.parents else None
    for operation in reversed(commit.operations):
        fields = operation.fields
        if operation.name != USAGE or fields.get("about", parent) != parent:
            continue
        token_count = _number(fields.get("input_total")) + _number(fields.get("output_total"))
        if token_count:
            name = fields.get("model") or fields.get("source")
            return Report(oid, token_count, name if isinstance(name, str) and name else "unknown")
    return None


def _number(field: object) -> int:
    return field if type(field) is int and field > 0 else 0

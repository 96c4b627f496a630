"""One-line summaries of commits.

An event is a commit that records what happened without a message.
"""

from __future__ import annotations

from trace_store import context, errors
from trace_store.context.content import SummaryLine, lines_of, message_line
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, read_commit
from trace_store.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.base.oid import ObjectId

EVENT_KEY = "event"
"""Metadata key: the kind of event. Imported commits without messages have it."""

SILENT_COMMITS = 256
"""How many commits are searched for one that says something."""


def summary(store: Store, commit: Commit, width: int = 72) -> str:
    """Return a one-line summary that quotes at most `width` characters of a message."""
    return "; ".join(line.cut(width) for line in lines_for(commit, store.objects.read))


def tip_summary(store: Store, commit: Commit, width: int = 72) -> str:
    """Return the summary of the newest commit of a line that says something; arguments as in `summary`.

    Imports end with commits that only hold records of the program. They say nothing to a person.
    """
    at = commit
    for _ in range(SILENT_COMMITS):
        if at.operations or at.message or not at.parents:
            break
        at = read_commit(at.parents[0], store.objects.read)
    says_something = at.operations or at.message
    return summary(store, at if says_something else commit, width)


def lines_for(commit: Commit, read: Callable[[bytes], bytes]) -> list[SummaryLine]:
    """Return the lines for a commit, at least one."""
    event = event_of(commit)
    if not event or commit.message:
        return lines_of(commit, read)
    return [SummaryLine(event.rstrip(" :"))]


def event_of(commit: Commit) -> str:
    """Return the kind of event; "" if the commit is not an event."""
    kind = commit.meta.get(EVENT_KEY)
    return kind if isinstance(kind, str) and not commit.operations else ""


def target_line(store: Store, oid: ObjectId, commit: Commit, width: int) -> str:
    """Return a line for the message that a commit changes; "" if it changes none or several, or the message is gone."""
    targets = [each for operation in commit.operations for each in ops.targets_of(operation, oid)]
    if len(targets) != 1:
        return ""
    try:
        message = context.snapshots.fold_of(store, oid).entry(targets[0]).message
    except (errors.NotFoundError, errors.FormatError):
        return ""
    return message_line(message, store.objects.read, width)

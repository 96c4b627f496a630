"""One-line summaries of commits, and the text of events.

An event is a commit that records what happened without a message.

Invariant: read-only. The text of an event never raises: a missing or non-text record counts as empty.
"""

from __future__ import annotations

from trace_store import context, errors, transcripts
from trace_store.context.content import LINE_WIDTH, SummaryLine, lines_of, message_line
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit
from trace_store.store.handle import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from trace_store.oid import ObjectId

EVENT_KEY = "event"
"""Metadata key: the kind of event. Imported commits without messages have it."""

_TEXT_KEYS = ("content", "summary", "title", "description")


def summary(store: Store, commit: Commit, width: int = 72) -> str:
    """Return a one-line summary that quotes at most `width` characters of a message."""
    return "; ".join(line.cut(width) for line in lines_for(commit, store.objects.read))


def lines_for(commit: Commit, read: Callable[[bytes], bytes]) -> list[SummaryLine]:
    """Return the lines for a commit, at least one."""
    event = event_of(commit)
    if not event or commit.message:
        return lines_of(commit, read)
    text = " ".join(event_text(commit, read)[: 8 * LINE_WIDTH].split()).rstrip(" :")
    return [SummaryLine(f"{event}: ", text) if text else SummaryLine(event.rstrip(" :"))]


def event_of(commit: Commit) -> str:
    """Return the kind of event; "" if the commit is not an event."""
    kind = commit.meta.get(EVENT_KEY)
    return kind if isinstance(kind, str) and not commit.operations else ""


def event_text(commit: Commit, read: Callable[[bytes], bytes]) -> str:
    """Return the event's text as the transcript words it; "" if unknown or missing."""
    if not event_of(commit):
        return ""
    try:
        records = transcripts.sources.source_records(commit, read)
    except (errors.NotFoundError, errors.FormatError):
        return ""
    return next((text for raw in records if (text := _text_of_record(raw))), "")


def _text_of_record(raw: bytes) -> str:
    import json

    try:
        value: Any = json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return ""
    if isinstance(value, dict):
        value = next((value[key] for key in _TEXT_KEYS if isinstance(value.get(key), str)), "")
    return value if isinstance(value, str) else ""


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

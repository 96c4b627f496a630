"""What a commit tells in which nobody speaks: what happened, read from the record that is kept with it.

Rule: reads, and never fails. What is not here, or is no text, is told as nothing.
"""

from __future__ import annotations

from trace_store import errors, transcripts
from trace_store.objects.commit import Commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

EVENT_KEY = "event"
"""In a commit's metadata: what kind of thing happened. Commits of an import without messages have it."""

_WORDS = ("content", "summary", "title", "description")


def event_of(commit: Commit) -> str:
    """Return what kind of thing happened; "" for a commit that is not about an event."""
    kind = commit.meta.get(EVENT_KEY)
    return kind if isinstance(kind, str) and not commit.operations else ""


def event_text(commit: Commit, read: Callable[[bytes], bytes]) -> str:
    """Return in the transcript's own words what happened; "" when they are not kept, or not here."""
    if not event_of(commit):
        return ""
    try:
        records = transcripts.sources.source_records(commit, read)
    except (errors.NotFoundError, errors.FormatError):
        return ""
    return next((words for raw in records if (words := _words_of(raw))), "")


def _words_of(raw: bytes) -> str:
    import json

    try:
        value: Any = json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return ""
    if isinstance(value, dict):
        value = next((value[key] for key in _WORDS if isinstance(value.get(key), str)), "")
    return value if isinstance(value, str) else ""

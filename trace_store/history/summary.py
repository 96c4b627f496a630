"""One-line summaries of commits."""

from __future__ import annotations

from trace_store import context, errors
from trace_store.context.content import LINE_WIDTH, SummaryLine, lines_of, message_line
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit
from trace_store.store.handle import Store
from trace_store.transcripts.event_text import event_of, event_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.oid import ObjectId


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

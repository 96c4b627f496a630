"""Which kind of conflict an operation meets in a message that another line has changed as well.

Rule: pure; asked of one message, as it was before the operation's commit and as it is by now.
"""

from __future__ import annotations

from trace_store.context.folding import REMOVED, REPLACED, Entry, Version
from trace_store.joining import conflicts as kinds
from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.objects.commit import Operation


def contradiction(operation: Operation, base: Entry, now: Entry, *, hides: bool) -> str:
    """Return the kind of conflict between what an operation does and what the context has by then, or "".

    Args:
        operation: what is done.
        base: the message before the commit.
        now: the message on the new line.
        hides: whether the commit's own line hides it as well by then.
    """
    if operation.name == ops.EDIT:
        if now.hidden and not hides:
            return (
                kinds.COMPRESSED_AND_EDITED if now.hidden == REPLACED else kinds.EDITED_AND_REMOVED
            )
        changed = now.parts != base.parts and now.parts != operation.fields["parts"]
        return kinds.BOTH_EDITED if changed else ""
    if operation.name in (ops.REMOVE, ops.REPLACE) and not now.hidden:
        if now.parts != base.parts:
            replaces = operation.name == ops.REPLACE
            return kinds.COMPRESSED_AND_EDITED if replaces else kinds.EDITED_AND_REMOVED
        pinned = now.priority == ops.PINNED != base.priority
        return kinds.PINNED_AND_REMOVED if pinned else ""
    priority = operation.fields.get("priority")
    if operation.name == ops.ANNOTATE and now.hidden and not hides:
        return kinds.PINNED_AND_REMOVED if priority == ops.PINNED != base.priority else ""
    if operation.name == ops.ANNOTATE and priority not in (None, now.priority):
        return kinds.CONTRADICTING_PRIORITIES if now.priority != base.priority else ""
    return ""


def as_left(entry: Entry, operation: Operation) -> Entry:
    """Return a message after an operation, to be shown as what theirs wants."""
    if operation.name == ops.EDIT:
        entry.versions[entry.current] = Version(operation.fields["parts"], entry.place)
    elif operation.name == ops.ANNOTATE:
        entry.priority = operation.fields["priority"]
    else:
        entry.hidden = REPLACED if operation.name == ops.REPLACE else REMOVED
    return entry

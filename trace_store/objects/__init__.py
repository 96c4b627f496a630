"""Objects: the immutable values of a repository and their canonical bytes.

Import from the modules themselves; by way of this package only what few commands come to, and is imported then.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.objects.commit import Commit, Tag, parents_of, read_commit
    from trace_store.objects.content import read_content, text_of
    from trace_store.objects.operations import added_by, added_messages, message_count
    from trace_store.objects.reports import report_of

__all__ = [
    "Commit",
    "Tag",
    "added_by",
    "added_messages",
    "message_count",
    "parents_of",
    "read_commit",
    "read_content",
    "report_of",
    "text_of",
]

__getattr__ = door(
    __name__,
    {
        "Commit": "commit",
        "Tag": "commit",
        "added_by": "operations",
        "added_messages": "operations",
        "message_count": "operations",
        "parents_of": "commit",
        "read_commit": "commit",
        "read_content": "content",
        "report_of": "reports",
        "text_of": "content",
    },
)

"""The commit table: which commits there are, and what follows what, without opening an object.

It is imported when a walk first asks for it: most revisions are found without one.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.commit_table.commits import Commits
    from trace_store.commit_table.rows import CommitRows
    from trace_store.commit_table.table import CommitTable
    from trace_store.commit_table.walking import Spans

__all__ = ["CommitRows", "CommitTable", "Commits", "Spans"]

__getattr__ = door(
    __name__,
    {"CommitRows": "rows", "CommitTable": "table", "Commits": "commits", "Spans": "walking"},
)

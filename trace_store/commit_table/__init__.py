"""The commit table: which commits there are, and what follows what, without opening an object."""

from trace_store.commit_table.commits import Commits
from trace_store.commit_table.rows import CommitRows
from trace_store.commit_table.table import CommitTable
from trace_store.commit_table.walking import Spans

__all__ = ["CommitRows", "CommitTable", "Commits", "Spans"]

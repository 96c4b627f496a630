"""Refs: names of objects, their tips as files, HEAD, and the reflogs."""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.ref_names import is_ref_name
    from trace_store.refs.database import RefDatabase
    from trace_store.refs.head import Head
    from trace_store.refs.memory import MemoryRefs
    from trace_store.refs.names import BRANCHES, CHECKPOINTS, TAGS, TRASH, check_ref_name
    from trace_store.refs.overview import Overview, Standing
    from trace_store.refs.reflog import (
        ReflogEntry,
        append_log,
        join_logs,
        read_log,
        unreadable_lines,
    )

__all__ = [
    "BRANCHES",
    "CHECKPOINTS",
    "TAGS",
    "TRASH",
    "Head",
    "MemoryRefs",
    "Overview",
    "RefDatabase",
    "ReflogEntry",
    "Standing",
    "append_log",
    "check_ref_name",
    "is_ref_name",
    "join_logs",
    "read_log",
    "unreadable_lines",
]

__getattr__ = door(
    __name__,
    {
        "BRANCHES": "names",
        "CHECKPOINTS": "names",
        "Head": "head",
        "MemoryRefs": "memory",
        "Overview": "overview",
        "RefDatabase": "database",
        "ReflogEntry": "reflog",
        "Standing": "overview",
        "TAGS": "names",
        "TRASH": "names",
        "append_log": "reflog",
        "check_ref_name": "names",
        "is_ref_name": "names",
        "join_logs": "reflog",
        "read_log": "reflog",
        "unreadable_lines": "reflog",
    },
)

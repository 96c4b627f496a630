"""Refs: names of objects, their tips as files, HEAD, and the reflogs."""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.ref_names import is_ref_name
    from trace_store.refs.database import RefDatabase
    from trace_store.refs.head import Head
    from trace_store.refs.looking_back import branch_left, stood_at
    from trace_store.refs.memory import MemoryRefs
    from trace_store.refs.names import BRANCHES, CHECKPOINTS, RECOVERED, TAGS, TRASH, check_ref_name
    from trace_store.refs.overview import Overview, Standing
    from trace_store.refs.reflog import (
        ReflogEntry,
        append_log,
        entries_of,
        join_logs,
        newest_first,
        read_log,
        through_renames,
    )
    from trace_store.refs.rewinding import Witness, note_adopted
    from trace_store.refs.upstreams import read_upstreams, upstream_in

__all__ = [
    "BRANCHES",
    "CHECKPOINTS",
    "RECOVERED",
    "TAGS",
    "TRASH",
    "Head",
    "MemoryRefs",
    "Overview",
    "RefDatabase",
    "ReflogEntry",
    "Standing",
    "Witness",
    "append_log",
    "branch_left",
    "check_ref_name",
    "entries_of",
    "is_ref_name",
    "join_logs",
    "newest_first",
    "note_adopted",
    "read_log",
    "read_upstreams",
    "stood_at",
    "through_renames",
    "upstream_in",
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
        "RECOVERED": "names",
        "TRASH": "names",
        "Witness": "rewinding",
        "append_log": "reflog",
        "branch_left": "looking_back",
        "check_ref_name": "names",
        "entries_of": "reflog",
        "is_ref_name": "names",
        "join_logs": "reflog",
        "newest_first": "reflog",
        "note_adopted": "rewinding",
        "read_log": "reflog",
        "read_upstreams": "upstreams",
        "stood_at": "looking_back",
        "through_renames": "reflog",
        "upstream_in": "upstreams",
    },
)

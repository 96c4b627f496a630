"""Refs: names of objects, their tips as files, HEAD, and the reflogs."""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.ref_names import is_ref_name
    from trace_store.refs.database import RefDatabase
    from trace_store.refs.head import Head
    from trace_store.refs.memory import MemoryRefs
    from trace_store.refs.names import BRANCHES, CHECKPOINTS, TAGS, TRASH, check_ref_name
    from trace_store.refs.reflog import ReflogEntry

__all__ = [
    "BRANCHES",
    "CHECKPOINTS",
    "TAGS",
    "TRASH",
    "Head",
    "MemoryRefs",
    "RefDatabase",
    "ReflogEntry",
    "check_ref_name",
    "is_ref_name",
]

__getattr__ = door(
    __name__,
    {
        "BRANCHES": "names",
        "CHECKPOINTS": "names",
        "Head": "head",
        "MemoryRefs": "memory",
        "RefDatabase": "database",
        "ReflogEntry": "reflog",
        "TAGS": "names",
        "TRASH": "names",
        "check_ref_name": "names",
        "is_ref_name": "names",
    },
)

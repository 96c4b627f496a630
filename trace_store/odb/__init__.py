"""The object database: objects by id, from journals, packs and loose files, or in memory.

What writes packs, and what keeps objects in memory, is imported when it is first asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.odb.database import ObjectDatabase
    from trace_store.odb.loose import LooseObjects
    from trace_store.odb.memory import MemoryObjects
    from trace_store.odb.pack_writer import PackWriter
    from trace_store.odb.packs import Packs
    from trace_store.odb.quarantine import Quarantine
    from trace_store.odb.tombstones import Tombstone, Tombstones, holding, text_error

__all__ = [
    "LooseObjects",
    "MemoryObjects",
    "ObjectDatabase",
    "PackWriter",
    "Packs",
    "Quarantine",
    "Tombstone",
    "Tombstones",
    "holding",
    "text_error",
]

__getattr__ = door(
    __name__,
    {
        "LooseObjects": "loose",
        "MemoryObjects": "memory",
        "ObjectDatabase": "database",
        "PackWriter": "pack_writer",
        "Packs": "packs",
        "Quarantine": "quarantine",
        "Tombstone": "tombstones",
        "Tombstones": "tombstones",
        "holding": "tombstones",
        "text_error": "tombstones",
    },
)

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
    from trace_store.odb.purged_content import admit, with_purged_text
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
    "admit",
    "holding",
    "text_error",
    "with_purged_text",
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
        "admit": "purged_content",
        "holding": "tombstones",
        "text_error": "tombstones",
        "with_purged_text": "purged_content",
    },
)

"""The object database: objects by id, from journals, packs and loose files, or in memory."""

from trace_store.odb.database import ObjectDatabase
from trace_store.odb.loose import LooseObjects
from trace_store.odb.memory import MemoryObjects
from trace_store.odb.pack_writer import PackWriter
from trace_store.odb.packs import Packs

__all__ = ["LooseObjects", "MemoryObjects", "ObjectDatabase", "PackWriter", "Packs"]

"""The object database: objects by id, from journals, packs and loose files, or in memory.

What writes packs, and what keeps objects in memory, is imported when it is first asked for.
"""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.odb import loose as loose
    from trace_store.odb import memory as memory
    from trace_store.odb import packs as packs
    from trace_store.odb import quarantine as quarantine
    from trace_store.odb import tombstones as tombstones

__getattr__ = submodules(__name__)

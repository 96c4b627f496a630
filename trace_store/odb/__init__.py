"""The object database: objects in journals, packs and loose files."""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.odb import loose as loose
    from trace_store.odb import packs as packs
    from trace_store.odb import quarantine as quarantine
    from trace_store.odb import tombstones as tombstones
    from trace_store.odb import verify as verify

__getattr__ = submodules(__name__)

"""Importers: transcripts of other programs read into branches."""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.importers import discovery as discovery
    from trace_store.importers import import_file as import_file

__getattr__ = submodules(__name__)

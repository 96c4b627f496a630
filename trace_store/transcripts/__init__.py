"""Transcripts: imported source files, restorable byte for byte."""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.transcripts import sources as sources

__getattr__ = submodules(__name__)

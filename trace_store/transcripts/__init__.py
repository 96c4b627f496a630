"""Transcripts: imported source files, stored so that they can be restored byte for byte."""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.transcripts import sources as sources

__getattr__ = submodules(__name__)

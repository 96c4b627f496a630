"""Transcripts: the files that sessions were imported from, kept so that they come back byte for byte."""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.transcripts.sources import source_records

__all__ = ["source_records"]

__getattr__ = door(__name__, {"source_records": "sources"})

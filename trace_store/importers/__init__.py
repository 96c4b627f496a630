"""Importers: transcripts of other programs become branches."""

from trace_store.importers.claude_code import claude_code_history
from trace_store.importers.importing import Progress, import_paths
from trace_store.importers.report import FileReport, ImportReport
from trace_store.importers.sources import source_records

__all__ = [
    "FileReport",
    "ImportReport",
    "Progress",
    "claude_code_history",
    "import_paths",
    "source_records",
]

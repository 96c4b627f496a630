"""Importers: transcripts of other programs become branches.

Exporters use what knows the other programs' forms; what imports is loaded when it is first asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.importers.choosing import project_histories
    from trace_store.importers.importing import Progress, import_paths
    from trace_store.importers.report import FileReport, ImportReport
    from trace_store.transcripts.sources import source_records

__all__ = [
    "FileReport",
    "ImportReport",
    "Progress",
    "import_paths",
    "project_histories",
    "source_records",
]

_own = door(
    __name__,
    {
        "FileReport": "report",
        "ImportReport": "report",
        "Progress": "importing",
        "import_paths": "importing",
        "project_histories": "choosing",
    },
)


def __getattr__(name: str) -> object:
    if name != "source_records":
        return _own(name)
    from trace_store.transcripts.sources import source_records

    return source_records

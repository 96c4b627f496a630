"""Importers: transcripts of other programs read into branches."""

from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.importers import discovery as discovery
    from trace_store.importers import import_paths as import_paths
    from trace_store.importers.contract import PlannedMessage as PlannedMessage
    from trace_store.importers.discovery import project_folder as project_folder
    from trace_store.importers.registry import format_names as format_names
    from trace_store.importers.report import FileReport as FileReport
    from trace_store.importers.report import ImportReport as ImportReport
    from trace_store.importers.turn_plan import TurnFormat as TurnFormat
    from trace_store.importers.turns import Compaction as Compaction
    from trace_store.importers.turns import DocumentReader as DocumentReader
    from trace_store.importers.turns import Rewind as Rewind
    from trace_store.importers.turns import Switch as Switch
    from trace_store.importers.turns import Turn as Turn
    from trace_store.importers.turns import TurnEdit as TurnEdit
    from trace_store.importers.turns import TurnReader as TurnReader
    from trace_store.importers.turns import UsageReport as UsageReport

_HOMES = {
    "Compaction": "turns",
    "DocumentReader": "turns",
    "FileReport": "report",
    "format_names": "registry",
    "ImportReport": "report",
    "PlannedMessage": "contract",
    "project_folder": "discovery",
    "Rewind": "turns",
    "Switch": "turns",
    "Turn": "turns",
    "TurnEdit": "turns",
    "TurnFormat": "turn_plan",
    "TurnReader": "turns",
    "UsageReport": "turns",
}

__all__ = [*_HOMES]
__getattr__ = names(__name__, _HOMES)

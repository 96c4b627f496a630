"""Exporters: branches written as files, for readers or to resume a session."""

from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.exporters import contract as contract
    from trace_store.exporters import files as files
    from trace_store.exporters import html as html
    from trace_store.exporters import overview as overview
    from trace_store.exporters import registry as registry
    from trace_store.exporters import session as session
    from trace_store.exporters.contract import Exported as Exported
    from trace_store.exporters.contract import ExportSession as ExportSession
    from trace_store.exporters.contract import Facts as Facts
    from trace_store.exporters.contract import FormatWriter as FormatWriter
    from trace_store.exporters.contract import Loss as Loss
    from trace_store.exporters.contract import Losses as Losses
    from trace_store.exporters.contract import SessionTurn as SessionTurn
    from trace_store.exporters.contract import SubBranch as SubBranch
    from trace_store.exporters.contract import file_name as file_name
    from trace_store.exporters.registry import writer_named as writer_named
    from trace_store.exporters.registry import writer_names as writer_names

_HOMES = {
    "SubBranch": "contract",
    "Exported": "contract",
    "ExportSession": "contract",
    "Facts": "contract",
    "file_name": "contract",
    "FormatWriter": "contract",
    "Loss": "contract",
    "Losses": "contract",
    "SessionTurn": "contract",
    "writer_named": "registry",
    "writer_names": "registry",
}

__all__ = [*_HOMES]
__getattr__ = names(__name__, _HOMES)

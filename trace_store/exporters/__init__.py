"""Exporters: branches written as files, for readers or to resume a session."""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.exporters import contract as contract
    from trace_store.exporters import files as files
    from trace_store.exporters import html as html
    from trace_store.exporters import overview as overview
    from trace_store.exporters import registry as registry
    from trace_store.exporters import session as session

__getattr__ = submodules(__name__)

"""Chats: messages as providers and many programs write them to files."""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.importers.formats.chats import rows as rows

__getattr__ = submodules(__name__)

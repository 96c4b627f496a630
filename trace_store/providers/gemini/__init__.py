"""Google's Gemini."""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.providers.gemini import render as render

__getattr__ = submodules(__name__)

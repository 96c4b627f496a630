"""Anthropic's Messages."""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.providers.anthropic import render as render

__getattr__ = submodules(__name__)

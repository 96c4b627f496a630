"""Google's Gemini API: contents of parts.

- `parse`: contents as messages
- `render`: the request, and the allowed positions of parts
"""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.providers.gemini import parse as parse
    from trace_store.providers.gemini import render as render

PROVIDER = "gemini"
CANNOT_CARRY = (
    "front",
    "answers",
    "results-apart",
    "name",
    "arguments",
)
"""Losses besides `values.LOST_EVERYWHERE`; codes of `values.LOST_BY_DESIGN`."""

__getattr__ = submodules(__name__)

"""Google's Gemini API: contents of parts.

- `parse`: contents as messages
- `render`: the request, and what may stand where in it
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
"""What a request has no place for, beside `values.LOST_EVERYWHERE`; words of `values.LOST_BY_DESIGN`."""

__getattr__ = submodules(__name__)

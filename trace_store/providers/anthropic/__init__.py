"""Anthropic's Messages API: system blocks, and alternating messages.

- `parse`: blocks of content as parts
- `render`: the request, the allowed positions of blocks, and cache marks
"""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.providers.anthropic import parse as parse
    from trace_store.providers.anthropic import render as render

PROVIDER = "anthropic"
CANNOT_CARRY = (
    "front",
    "neighbours",
    "results-apart",
    "name",
    "arguments",
)
"""Losses besides `values.LOST_EVERYWHERE`; codes of `values.LOST_BY_DESIGN`."""

__getattr__ = submodules(__name__)

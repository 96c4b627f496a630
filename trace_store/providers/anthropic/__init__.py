"""Anthropic's Messages API: system blocks, and user and assistant messages that alternate.

- `parse`: blocks of content as parts
- `render`: the request, what may stand where in it, and the marks for its cache
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
"""What a request has no place for, beside `values.LOST_EVERYWHERE`; words of `values.LOST_BY_DESIGN`."""

__getattr__ = submodules(__name__)

"""OpenAI's Responses API: items instead of messages.

- `parse`: items as messages
- `render`: the request, the allowed positions of items, and items that must not stand alone
"""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.providers.openai_responses import parse as parse
    from trace_store.providers.openai_responses import render as render

PROVIDER = "openai"
CANNOT_CARRY = (
    "error-flag",
    "answers",
    "results-apart",
    "name",
)
"""Losses besides `values.LOST_EVERYWHERE`; codes of `values.LOST_BY_DESIGN`."""

__getattr__ = submodules(__name__)

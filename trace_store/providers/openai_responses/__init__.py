"""OpenAI's Responses API: items instead of messages.

- `parse`: items as messages
- `render`: the request, what may stand where in it, and which items may not stand alone
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
"""What a request has no place for, beside `values.LOST_EVERYWHERE`; words of `values.LOST_BY_DESIGN`."""

__getattr__ = submodules(__name__)

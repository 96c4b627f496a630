"""OpenAI's chat completions, and compatible APIs.

- `parse`: calls and links to images; `providers.chat` reads the messages around them
- `render`: the request, and the allowed positions of parts
"""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.providers.openai_chat import parse as parse
    from trace_store.providers.openai_chat import render as render

PROVIDER = "openai"
CANNOT_CARRY = (
    "reasoning",
    "error-flag",
    "split-calls",
    "calls-last",
    "results-apart",
)
"""Losses besides `values.LOST_EVERYWHERE`; codes of `values.LOST_BY_DESIGN`."""

__getattr__ = submodules(__name__)

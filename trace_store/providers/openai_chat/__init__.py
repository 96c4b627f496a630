"""OpenAI's chat completions, and what speaks like them.

- `parse`: calls and links to images; `providers.chat` reads the messages around them
- `render`: the request, and what may stand where in it
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
"""What a request has no place for, beside `values.LOST_EVERYWHERE`; words of `values.LOST_BY_DESIGN`."""

__getattr__ = submodules(__name__)

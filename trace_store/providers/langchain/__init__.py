"""LangChain's messages, as in chat stores.

- `parse`: messages as `messages_to_dict`, `dumpd` and `model_dump` write them
- `render`: messages as `messages_to_dict` writes them
"""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.providers.langchain import parse as parse
    from trace_store.providers.langchain import render as render

PROVIDER = "langchain"

__getattr__ = submodules(__name__)

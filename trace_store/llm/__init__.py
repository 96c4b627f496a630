"""A small client for language models, over HTTP or as any callable.

    model = llm.http_model.HttpModel(llm.settings.read_settings(disk, environment))
    answer = llm.contract.ask(model, llm.contract.Prompt((("user", "Which of the two is right?"),)))

The model's address and key come from the user's environment and settings, never from a repository. A key is sent only
to the address that it belongs to, and no error, log or `repr` contains it. The modules here and httpx are loaded late.
"""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.llm import contract as contract
    from trace_store.llm import http as http
    from trace_store.llm import http_model as http_model
    from trace_store.llm import settings as settings

__getattr__ = submodules(__name__)

"""Models: one small client for what answers a prompt, over HTTP or as any callable.

    model = llm.HttpModel(llm.read_settings(disk, environment))
    answer = llm.ask(model, llm.Prompt((("user", "Which of the two is right?"),)))

Rule: where a model is and what opens it comes from the user's own surroundings, never from a repository. A key is sent
to the address that it was put beside and nowhere else, and stands in no error, no log and no `repr`. httpx is imported
when a request is made; whatever asks no model loads nothing of this package but this door.
"""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.llm import cancel as cancel
    from trace_store.llm import contract as contract
    from trace_store.llm import http_model as http_model
    from trace_store.llm import keys as keys
    from trace_store.llm import retry as retry
    from trace_store.llm import settings as settings
    from trace_store.llm import settings_file as settings_file

__getattr__ = submodules(__name__)

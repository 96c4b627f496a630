"""Models: one small client for what answers a prompt, over HTTP or as any callable.

    model = llm.HttpModel(llm.read_settings(disk, environment))
    answer = llm.ask(model, llm.Prompt((("user", "Which of the two is right?"),)))

Rule: where a model is and what opens it comes from the user's own surroundings, never from a repository. A key is sent
to the address that it was put beside and nowhere else, and stands in no error, no log and no `repr`. httpx is imported
when a request is made; whatever asks no model loads nothing of this package but this door.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.llm.cancelling import Cancellation
    from trace_store.llm.contract import DONE, Completion, Model, Prompt, ask
    from trace_store.llm.http_model import HttpModel
    from trace_store.llm.keys import Secret
    from trace_store.llm.retrying import Timing
    from trace_store.llm.settings import ModelSettings, read_settings
    from trace_store.llm.settings_file import KEYS, kept_settings, set_setting

__all__ = [
    "DONE",
    "KEYS",
    "Cancellation",
    "Completion",
    "HttpModel",
    "Model",
    "ModelSettings",
    "Prompt",
    "Secret",
    "Timing",
    "ask",
    "kept_settings",
    "read_settings",
    "set_setting",
]

__getattr__ = door(
    __name__,
    {
        "Cancellation": "cancelling",
        "Completion": "contract",
        "DONE": "contract",
        "HttpModel": "http_model",
        "KEYS": "settings_file",
        "Model": "contract",
        "ModelSettings": "settings",
        "Prompt": "contract",
        "Secret": "keys",
        "Timing": "retrying",
        "ask": "contract",
        "kept_settings": "settings_file",
        "read_settings": "settings",
        "set_setting": "settings_file",
    },
)

"""A small client for language models, over HTTP or as any callable.

    model = llm.HttpModel(llm.read_settings())
    answer = llm.ask(model, llm.Prompt((("user", "Which of the two is right?"),)))

The model's address and key come from the user's environment and settings, never from a repository. A key is sent only
to the address that it belongs to, and no error, log or `repr` contains it. The modules here and httpx are loaded late.
"""

from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.llm import contract as contract
    from trace_store.llm import http as http
    from trace_store.llm import http_model as http_model
    from trace_store.llm import settings as settings
    from trace_store.llm.contract import Cancellation as Cancellation
    from trace_store.llm.contract import Completion as Completion
    from trace_store.llm.contract import Prompt as Prompt
    from trace_store.llm.contract import ask as ask
    from trace_store.llm.http import Timing as Timing
    from trace_store.llm.http_model import HttpModel as HttpModel
    from trace_store.llm.settings import KEYS as KEYS
    from trace_store.llm.settings import ModelSettings as ModelSettings
    from trace_store.llm.settings import Secret as Secret
    from trace_store.llm.settings import read_settings as read_settings
    from trace_store.llm.settings import read_settings_file as read_settings_file
    from trace_store.llm.settings import set_setting as set_setting

_HOMES = {
    "KEYS": "settings",
    "ask": "contract",
    "Cancellation": "contract",
    "Completion": "contract",
    "HttpModel": "http_model",
    "ModelSettings": "settings",
    "Prompt": "contract",
    "read_settings": "settings",
    "read_settings_file": "settings",
    "Secret": "settings",
    "set_setting": "settings",
    "Timing": "http",
}

__all__ = [*_HOMES]
__getattr__ = names(__name__, _HOMES)

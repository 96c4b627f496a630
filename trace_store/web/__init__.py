"""A web page of a repository, served on this machine, where people watch, read and compare what a model was shown.

It needs the extra `web`. `server` starts it, `access` decides who may use it, `app` answers requests, `live` tells open
pages what changed, and `actions` does what a page asks for. `pages` and `session_page` make HTML, with the code that
makes exported pages. It calls only what any user of the library could call.
"""

from importlib.util import find_spec

from trace_store import errors
from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.web.server import Server as Server

_HOMES = {"Server": "server"}
_find = names(__name__, _HOMES)

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name in _HOMES and not all(map(find_spec, ("starlette", "uvicorn"))):
        raise errors.StateError(
            "the packages starlette and uvicorn are not installed",
            code=errors.ErrorCode.PACKAGE_MISSING,
            extra="web",
        )
    return _find(name)

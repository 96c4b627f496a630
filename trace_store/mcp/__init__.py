"""An MCP server: agents search and read the history of one repository, and may record in it if the user allows it.

It needs the extra `mcp`. `server` puts it together, `tools` and `resources` answer, `answers` keeps answers small and
marked as data, `http` serves clients on this machine that send a token, and `install` adds the server to the settings
of agents. It calls only what any user of the library could call.
"""

from importlib.util import find_spec

from trace_store import errors
from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.mcp.http import McpHttpServer as McpHttpServer
    from trace_store.mcp.install import McpEntry as McpEntry
    from trace_store.mcp.install import install_server as install_server
    from trace_store.mcp.install import manual_entry as manual_entry
    from trace_store.mcp.install import server_status as server_status
    from trace_store.mcp.install import uninstall_server as uninstall_server
    from trace_store.mcp.read_only import open_for_reading as open_for_reading
    from trace_store.mcp.server import mcp_server as mcp_server
    from trace_store.mcp.server import serve_stdio as serve_stdio

_NEEDING_THE_PACKAGE = {
    "mcp_server": "server",
    "McpHttpServer": "http",
    "serve_stdio": "server",
}
_HOMES = {
    "install_server": "install",
    "manual_entry": "install",
    "McpEntry": "install",
    "open_for_reading": "read_only",
    "server_status": "install",
    "uninstall_server": "install",
    **_NEEDING_THE_PACKAGE,
}
_find = names(__name__, _HOMES)

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name in _NEEDING_THE_PACKAGE and find_spec("mcp") is None:
        raise errors.StateError(
            "the package mcp is not installed",
            code=errors.ErrorCode.PACKAGE_MISSING,
            extra="mcp",
        )
    return _find(name)

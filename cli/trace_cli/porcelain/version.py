"""`trace version`."""

from __future__ import annotations

from trace_cli.arguments import takes
from trace_store import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation


@takes()
def show_version(invocation: Invocation) -> None:
    """Print the version."""
    invocation.line(f"trace {__version__}")

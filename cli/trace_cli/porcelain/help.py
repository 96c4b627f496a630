"""`trace help`: what `--help` shows, asked for as a command."""

from __future__ import annotations

from trace_cli.arguments import ANY, Argument, takes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation


@takes(Argument("COMMAND", "command", "What to show help for; all commands without one", ANY))
def show_help(invocation: Invocation, *, command: list[str]) -> int:
    """Show help, as `trace COMMAND --help` does.

    trace help
    trace help bundle create
    """
    assert invocation.run is not None
    return invocation.run([*command, "--help"])

"""Groups of subcommands: `trace bundle create`, `trace bundle import`.

Rule: each subcommand declares its options above its function; a group only lists them.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Command = Callable[..., Any] | str


class Group:
    """A command with subcommands.

    Attributes:
        help: what the help text says after the line in the table; may be empty.
        commands: the functions by subcommand name. One may be given as "module:function" of `trace_cli.porcelain`; then
            only its own use loads the module.
        bare: the function that runs without a subcommand and takes options only; None if a subcommand is required.
    """

    __slots__ = ("_commands", "bare", "help")

    def __init__(
        self,
        help: str,
        commands: Mapping[str, Command],
        bare: Callable[..., Any] | None = None,
    ) -> None:
        self.help = help
        self._commands = commands
        self.bare = bare

    @property
    def commands(self) -> dict[str, Callable[..., Any]]:
        return {name: _function(command) for name, command in self._commands.items()}

    def choose(self, words: list[str]) -> tuple[Callable[..., Any] | None, list[str]]:
        """Return (function, its words); the function is None if no subcommand matches and none runs without one."""
        named = self._commands.get(words[0]) if words else None
        return (self.bare, words) if named is None else (_function(named), words[1:])


def _function(command: Command) -> Callable[..., Any]:
    if not isinstance(command, str):
        return command
    name, _, attribute = command.partition(":")
    module = f"trace_cli.porcelain.{name}"
    __import__(module)
    function: Callable[..., Any] = getattr(sys.modules[module], attribute)
    return function

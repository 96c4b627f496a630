"""Groups of subcommands: `trace bundle create`, `trace bundle import`.

Rule: each subcommand declares its options above its function; a group only lists them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class Group:
    """A command with subcommands.

    Attributes:
        help: what the help text says after the line in the table; may be empty.
        commands: the functions by subcommand name.
        bare: the function that runs without a subcommand and takes options only; None if a subcommand is required.
    """

    __slots__ = ("bare", "commands", "help")

    def __init__(
        self,
        help: str,
        commands: Mapping[str, Callable[..., Any]],
        bare: Callable[..., Any] | None = None,
    ) -> None:
        self.help = help
        self.commands = commands
        self.bare = bare

    def choose(self, words: list[str]) -> tuple[Callable[..., Any] | None, list[str]]:
        """Return (function, its words); the function is None if no subcommand matches and none runs without one."""
        named = self.commands.get(words[0]) if words else None
        return (self.bare, words) if named is None else (named, words[1:])

"""Commands of several: `trace bundle create`, `trace bundle import`.

Rule: as with other commands, each says above its function what it takes, and this says only which there are.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class Group:
    """A command whose first word says what it does: `trace bundle create`.

    Attributes:
        help: what help says of the whole, its first line first.
        commands: the functions by that word, each with what it `takes`.
        bare: the function, which takes options alone, that runs without such a word; None when there has to be one.
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
        """Return the function that words are for, and the words that are left for it; None when there is none."""
        named = self.commands.get(words[0]) if words else None
        return (self.bare, words) if named is None else (named, words[1:])

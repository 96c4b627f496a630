"""Options and arguments of commands, and a small parser for plain command lines.

A command declares its options above its function:

    @takes(Option("-n", "limit", "Stop after this many", "N", number=True), Argument("REVISION", "revision", "Where"))
    def run(invocation, *, limit, revision): ...

Rule: the parser below and the Typer command, which adds help, errors and completion, are both generated from this
declaration. The parser returns None for anything that it does not fully understand.

Every command imports this module, so it must stay cheap.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

ONE, OPTIONAL, ANY, SOME, COMMAND = "1", "?", "*", "+", "$"


class Option:
    """An option of a command.

    Attributes: flags: its spellings, such as ("-t", "--type"). name: the parameter that receives it. help: one line.
    metavar: the placeholder of its value; "" for a switch. number: whether the value is an integer from `least` to
    `most` (None: unlimited). off: the flag that turns off a switch that is on by default; "" for other options. many:
    whether it can be repeated, so that the parameter is a list. joins: the parameter that receives (name, value) of
    this and other options in the given order; "" if the option has its own parameter. default: the value if it is not
    given. completes: what completes its value; by default `metavar`. choices: the accepted values; empty if any text
    is. bare: whether `-5` is short for this option with value 5, as in `log -5`.
    """

    __slots__ = (
        "bare",
        "choices",
        "completes",
        "default",
        "flags",
        "help",
        "joins",
        "least",
        "many",
        "metavar",
        "most",
        "name",
        "number",
        "off",
    )

    def __init__(
        self,
        flags: str,
        name: str,
        help: str,
        metavar: str = "",
        *,
        number: bool = False,
        least: int = 0,
        most: int | None = None,
        off: str = "",
        many: bool = False,
        joins: str = "",
        default: str | int | None = None,
        completes: str = "",
        choices: Sequence[str] = (),
        bare: bool = False,
    ) -> None:
        self.flags = tuple(flags.split())
        self.name = name
        self.help = help
        self.metavar = metavar
        self.number = number
        self.least = least
        self.most = most
        self.off = off
        self.many = many
        self.joins = joins
        self.default = default
        self.completes = completes or metavar
        self.choices = choices
        self.bare = bare

    def start(self) -> Any:
        """Return the parameter's value if the option is not given."""
        if self.many or self.joins:
            return []
        return self.default if self.metavar else bool(self.off)


class Argument:
    """A positional argument; see `Option` for the other attributes.

    Attributes: count: ONE, OPTIONAL, ANY or SOME; COMMAND is a command with all its arguments, including options.
    """

    __slots__ = ("choices", "completes", "count", "default", "help", "metavar", "name")

    def __init__(
        self,
        metavar: str,
        name: str,
        help: str,
        count: str = ONE,
        *,
        default: str | None = None,
        completes: str = "",
        choices: Sequence[str] = (),
    ) -> None:
        self.metavar = metavar
        self.name = name
        self.help = help
        self.count = count
        self.default = default
        self.completes = completes or metavar
        self.choices = choices


def takes(*items: Option | Argument) -> Callable[[F], F]:
    """Declare the options and arguments of a command; each is passed by keyword."""

    def declare(function: F) -> F:
        function.arguments = items  # type: ignore[attr-defined]
        return function

    return declare


def arguments_of(function: object) -> tuple[Option | Argument, ...] | None:
    """Return the declaration of a command; None if there is none."""
    return getattr(function, "arguments", None)


def parse(items: Sequence[Option | Argument], words: list[str]) -> dict[str, Any] | None:
    """Return the keyword arguments for a command's function.

    None means that the words are not understood, because of a mistake or `--help`; the Typer command then reports.
    """
    values: dict[str, Any] = {}
    options: dict[str, Option] = {}
    for item in items:
        if isinstance(item, Option):
            values[item.joins or item.name] = item.start()
            options.update((flag, item) for flag in item.flags)
            if item.off:
                options[item.off] = item
    rest: list[str] = []
    position = 0
    words = with_flags(bare_flags(items), words)
    while position < len(words):
        word = words[position]
        position += 1
        if word == "--":
            rest += words[position:]
            break
        if not word.startswith("-") or word == "-":
            rest.append(word)
            if takes_command(items):
                rest += words[position:]
                break
            continue
        flag, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        option = options.get(flag)
        if option is None and len(word) > 2 and word[1] != "-":
            flag, equals, value = word[:2], "=", word[2:]
            option = options.get(flag)
            if option is not None and not option.metavar:
                return None
        if option is None or (equals and not option.metavar):
            return None
        if not option.metavar:
            values[option.name] = flag != option.off
            continue
        if not equals:
            if position == len(words):
                return None
            value = words[position]
            position += 1
        if option.number and not _fits(option, value):
            return None
        if option.choices and value not in option.choices:
            return None
        if option.joins:
            values[option.joins].append((option.name, value))
        elif option.many:
            values[option.name].append(value)
        else:
            values[option.name] = int(value) if option.number else value
    return values if _place(items, rest, values) else None


def bare_flags(items: Sequence[Option | Argument]) -> Sequence[str]:
    """Return the flags of the option that `-5` is short for; empty if there is none."""
    bare = (item.flags for item in items if isinstance(item, Option) and item.bare)
    return next(bare, ())


def takes_command(items: Sequence[Option | Argument]) -> bool:
    """Return True if options end at the first positional word."""
    return any(isinstance(item, Argument) and item.count == COMMAND for item in items)


def with_flags(flags: Sequence[str], words: list[str]) -> list[str]:
    """Insert a flag before each bare `-5`, except after a flag or `--`."""
    if not flags:
        return words
    end = words.index("--") if "--" in words else len(words)
    spelled: list[str] = []
    for word in words[:end]:
        number = word[1:] if word.startswith("-") else ""
        is_bare = number.isascii() and number.isdigit() and not (spelled and spelled[-1] in flags)
        spelled += [flags[0], number] if is_bare else [word]
    return spelled + words[end:]


def _fits(option: Option, value: str) -> bool:
    """Return True if a value is an integer in the range of the option."""
    if not (value.isascii() and value.isdigit() and len(value) < 19):
        return False
    return option.least <= int(value) and (option.most is None or int(value) <= option.most)


def _place(items: Sequence[Option | Argument], rest: list[str], values: dict[str, Any]) -> bool:
    """Assign positional words to the arguments; return False if they do not fit."""
    for item in items:
        if isinstance(item, Option):
            continue
        if item.count in (ANY, SOME, COMMAND):
            if item.count != ANY and not rest:
                return False
            values[item.name], rest = rest, []
        elif rest:
            if item.choices and rest[0] not in item.choices:
                return False
            values[item.name], rest = rest[0], rest[1:]
        elif item.count == OPTIONAL:
            values[item.name] = item.default
        else:
            return False
    return not rest

"""Options and arguments of commands, and the small parser that most runs of them need and no more.

A command says what it takes above its function:

    @takes(Option("-n", "limit", "Stop after this many", "N", number=True), Argument("REVISION", "revision", "Where"))
    def run(invocation, *, limit, revision): ...

Rule: what is declared here is declared nowhere else. The parser below and the Typer command, which knows help, errors
and completion, are both made from it; the parser takes only what it is sure of.

Importing this module must stay cheap: it is on the way of every command.
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

    Attributes:
        flags: its spellings, such as ("-t", "--type").
        name: the parameter that receives it.
        help: one line.
        metavar: what its value is called; "" for a switch.
        number: whether the value is a whole number, from `least` to `most` (None: any).
        off: the spelling that turns a switch off which is on when it is not given; "" for other options.
        many: whether it may be given several times, so that the parameter is a list.
        joins: the parameter that receives (name, value) of this option and of others that join it, in the order in
            which they were given; "" when the option has a parameter of its own.
        default: the value when it is not given.
        completes: what completes its value; `metavar` when it is not said.
        choices: the values that there are; none when any text is one.
        bare: whether a number with a dash gives it by itself, as in `log -5`.
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
        """Return the value of its parameter while the option was not met."""
        if self.many or self.joins:
            return []
        return self.default if self.metavar else bool(self.off)


class Argument:
    """A positional argument; the rest is as for an option.

    Attributes:
        count: ONE, OPTIONAL, ANY or SOME; COMMAND is a command and all its arguments, options too.
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
    """Say which options and arguments a command's function takes, each by a keyword."""

    def declare(function: F) -> F:
        function.arguments = items  # type: ignore[attr-defined]
        return function

    return declare


def arguments_of(function: object) -> tuple[Option | Argument, ...] | None:
    """Return what a command's function takes; None when it does not say."""
    return getattr(function, "arguments", None)


def parse(items: Sequence[Option | Argument], words: list[str]) -> dict[str, Any] | None:
    """Return the parameters that a command's function is called with.

    None means that the words are not understood here, be it a mistake or `--help`; the Typer command made
    from the same declaration then says what is wrong.
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
    """Return the flags of the option that a number with a dash stands for; none when it stands for none."""
    bare = (item.flags for item in items if isinstance(item, Option) and item.bare)
    return next(bare, ())


def takes_command(items: Sequence[Option | Argument]) -> bool:
    """Tell whether no option is looked for behind the first positional word."""
    return any(isinstance(item, Argument) and item.count == COMMAND for item in items)


def with_flags(flags: Sequence[str], words: list[str]) -> list[str]:
    """Return words with a flag before each number that has a dash alone; what follows `--`, or a flag, stays."""
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
    """Tell whether a value is a whole number that the option takes."""
    if not (value.isascii() and value.isdigit() and len(value) < 19):
        return False
    return option.least <= int(value) and (option.most is None or int(value) <= option.most)


def _place(items: Sequence[Option | Argument], rest: list[str], values: dict[str, Any]) -> bool:
    """Give positional words to the arguments; tell whether they fit."""
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

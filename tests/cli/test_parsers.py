"""Both parsers read the same declaration in the same way."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer._click.exceptions import ClickException

from trace_cli.app import load_command
from trace_cli.arguments import Argument, Option, arguments_of, parse, takes
from trace_cli.commands import COMMANDS, Command
from trace_cli.subcommands import Group

Items = tuple[Option | Argument, ...]


def target_of(row: Command) -> Any:
    module, _, attribute = row.target.partition(":")
    return getattr(import_module(module), attribute)


def items_of(function: object) -> Items:
    items = arguments_of(function)
    assert items is not None, "a command says what it takes"
    return items


GROUPS = [row for row in COMMANDS if isinstance(target_of(row), Group)]
ROWS = [row for row in COMMANDS if row not in GROUPS]
VALUES = st.sampled_from(
    [
        "",
        "-",
        "--",
        "0",
        "3",
        "19",
        "20",
        "-1",
        "x",
        "HEAD",
        "a b",
        "=",
        "x=y",
        "é",
        "\udc80",
        "007",
        "kind",
        "zsh",
        "show",
        "set",
        "１",
    ]
)


def words_for(items: Items) -> st.SearchStrategy[list[str]]:
    """Return mostly valid command lines: all spellings, values, unknown words."""
    flags = [flag for item in items if isinstance(item, Option) for flag in (*item.flags, item.off)]
    known = st.sampled_from([flag for flag in flags if flag] or ["-x"])
    pieces = st.one_of(
        st.tuples(known),
        st.tuples(known, VALUES),
        st.tuples(VALUES),
        st.builds(lambda flag, value: (f"{flag}={value}",), known, VALUES),
        st.builds(lambda flag, value: (f"{flag[:2]}{value}",), known, VALUES),
        st.sampled_from([("--help",), ("-h",), ("--nothing",), ("-zz",)]),
    )
    return st.lists(pieces, max_size=6).map(
        lambda found: [word for piece in found for word in piece]
    )


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_typer_takes_the_same_words_for_the_same(
    row: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[object] = []
    function = stand_in(items_of(target_of(row)), row.name, received)
    module, _, attribute = row.target.partition(":")
    monkeypatch.setattr(f"{module}.{attribute}", function)
    compare(load_command(row), words_for(function.arguments), function, received)


@pytest.mark.parametrize("row", GROUPS, ids=[row.name for row in GROUPS])
def test_typer_chooses_the_same_of_several_commands(
    row: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = target_of(row)
    received: list[object] = []
    functions = {
        name: stand_in(items_of(function), name, received)
        for name, function in group.commands.items()
    }
    bare = stand_in(items_of(group.bare), "", received) if group.bare else None
    made = Group(group.help, functions, bare)
    module, _, attribute = row.target.partition(":")
    monkeypatch.setattr(f"{module}.{attribute}", made)
    several = [words_for(items_of(group.bare) if group.bare else ())]
    for name, function in functions.items():
        several.append(st.tuples(st.just([name]), words_for(function.arguments)).map(joined))
    compare(load_command(row), st.one_of(several), made, received)


def joined(parts: tuple[list[str], list[str]]) -> list[str]:
    return parts[0] + parts[1]


def stand_in(items: Items, name: str, received: list[object]) -> Any:
    """Return a command with the same declaration that records its arguments."""

    @takes(*items)
    def function(_: object, **values: Any) -> int:
        received.append((name, values))
        return 0

    function.name = name  # type: ignore[attr-defined]
    return function


class Caller:
    """Stands in for the invocation: passes all values to the command."""

    def call(self, function: Any, values: dict[str, Any]) -> int:
        code: int = function(self, **values)
        return code


def compare(
    command: Any, lines: st.SearchStrategy[list[str]], target: Any, received: list[object]
) -> None:
    """Run a command line that the small parser accepts through Typer."""

    @given(lines)
    def run(words: list[str]) -> None:
        function: Any
        function, rest = target.choose(words) if isinstance(target, Group) else (target, words)
        quick = None if function is None else parse(items_of(function), rest)
        if quick is None:
            return
        received.clear()
        try:
            command.main(list(words), prog_name="trace", standalone_mode=False, obj=Caller())
        except ClickException as error:
            raise AssertionError(f"Typer refuses {words}: {error.format_message()}") from error
        assert received == [(function.name, quick)], words

    run()


def test_joined_options_keep_their_order() -> None:
    items = [
        Option(f"--{name}", name, "A value", "TEXT", joins="said") for name in ("one", "other")
    ]
    found = parse(items, ["--other", "x", "--one=y", "--other", "z"])
    assert found == {"said": [("other", "x"), ("one", "y"), ("other", "z")]}
    assert parse(items, []) == {"said": []}


def test_switches_that_turn_off_and_ranges() -> None:
    shown = Option("--shown", "shown", "Show it", off="--hidden")
    level = Option("--level", "level", "How hard", "N", number=True, least=1, most=19, default=3)
    assert parse((shown, level), []) == {"shown": True, "level": 3}
    assert parse((shown, level), ["--hidden", "--level", "19"]) == {"shown": False, "level": 19}
    assert parse((shown, level), ["--hidden", "--shown"]) == {"shown": True, "level": 3}
    assert parse((shown, level), ["--level", "0"]) is None
    assert parse((shown, level), ["--level", "20"]) is None

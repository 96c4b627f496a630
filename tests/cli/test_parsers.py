"""Two parsers, one declaration: what the small parser takes, Typer understands in the same way."""

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

Items = tuple[Option | Argument, ...]


def items_of(row: Command) -> Items | None:
    module, _, attribute = row.target.partition(":")
    return arguments_of(getattr(import_module(module), attribute))


ROWS = [row for row in COMMANDS if items_of(row) is not None]
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
        "１",
    ]
)


def words_for(items: Items) -> st.SearchStrategy[list[str]]:
    """Return command lines that are mostly right: options as they may be spelt, values, and what nobody declared."""
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
    items = items_of(row) or ()
    received: list[dict[str, Any]] = []

    @takes(*items)
    def stand_in(_: object, **values: Any) -> int:
        received.append(values)
        return 0

    module, _, attribute = row.target.partition(":")
    monkeypatch.setattr(f"{module}.{attribute}", stand_in)
    command = load_command(row)

    @given(words_for(items))
    def compare(words: list[str]) -> None:
        quick = parse(items, words)
        if quick is None:
            return
        received.clear()
        try:
            command.main(list(words), prog_name="trace", standalone_mode=False, obj=None)
        except ClickException as error:
            raise AssertionError(f"Typer refuses {words}: {error.format_message()}") from error
        assert received == [quick], words

    compare()


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

"""The command table, and the small parser."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module

import pytest

from trace_cli.arguments import Argument, Option, arguments_of, parse
from trace_cli.commands import ALIASES, ANCILLARY, BY_NAME, COMMANDS, PLUMBING, PORCELAIN, Command


def function_of(row: Command) -> object:
    module, _, attribute = row.target.partition(":")
    return getattr(import_module(module), attribute)


DECLARED_ROWS = [row for row in COMMANDS if arguments_of(function_of(row)) is not None]
IDS = [row.name for row in COMMANDS]


def test_names_are_unique_and_categories_known() -> None:
    assert len({row.name for row in COMMANDS}) == len(COMMANDS)
    assert {name: row.name for name, row in BY_NAME.items() if name != row.name} == ALIASES
    assert {row.category for row in COMMANDS} == {PORCELAIN, ANCILLARY, PLUMBING}


@pytest.mark.parametrize("row", COMMANDS, ids=IDS)
def test_target_exists(row: Command) -> None:
    module, _, attribute = row.target.partition(":")
    assert getattr(import_module(module), attribute)


@pytest.mark.parametrize("row", DECLARED_ROWS, ids=[row.name for row in DECLARED_ROWS])
def test_function_takes_what_it_declares(row: Command) -> None:
    function = function_of(row)
    assert callable(function)
    parameters = inspect.signature(function).parameters
    assert next(iter(parameters)) == "invocation"
    names = {getattr(item, "joins", "") or item.name for item in arguments_of(function) or ()}
    assert set(parameters) - {"invocation"} == names - {"as_json", "quiet"}
    assert sys.modules[function.__module__].__doc__


def test_plumbing_and_what_is_typed_all_day_needs_no_typer() -> None:
    declared = {row.name for row in DECLARED_ROWS}
    assert declared >= {row.name for row in COMMANDS if row.category == PLUMBING}
    assert declared >= {
        "init",
        "status",
        "log",
        "show",
        "commit",
        "compile",
        "edit",
        "seal",
        "pack",
    }


@pytest.mark.parametrize("row", COMMANDS, ids=IDS)
def test_help_is_one_short_sentence(row: Command) -> None:
    assert row.help[0].isupper()
    assert not row.help.endswith(".")
    assert len(row.help) <= 66


FLAG = Option("-f --flag", "flag", "A switch")
TEXT = Option("-t --text", "text", "A value", "TEXT")
NUMBER = Option("-n", "limit", "A number", "N", number=True)
MANY = Argument("FILE", "files", "Files", "*")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {"flag": False, "text": None, "limit": None, "files": []}),
        (["-f", "a", "b"], {"flag": True, "text": None, "limit": None, "files": ["a", "b"]}),
        (["a", "--flag"], {"flag": True, "text": None, "limit": None, "files": ["a"]}),
        (["-t", "v", "-n", "3"], {"flag": False, "text": "v", "limit": 3, "files": []}),
        (["-tv", "-n3"], {"flag": False, "text": "v", "limit": 3, "files": []}),
        (["--text=v=w"], {"flag": False, "text": "v=w", "limit": None, "files": []}),
        (["--text="], {"flag": False, "text": "", "limit": None, "files": []}),
        (["--text", "-f"], {"flag": False, "text": "-f", "limit": None, "files": []}),
        (["--", "-f"], {"flag": False, "text": None, "limit": None, "files": ["-f"]}),
        (["-"], {"flag": False, "text": None, "limit": None, "files": ["-"]}),
    ],
)
def test_words_that_are_understood(words: list[str], expected: dict[str, object]) -> None:
    assert parse([FLAG, TEXT, NUMBER, MANY], words) == expected


@pytest.mark.parametrize(
    "words",
    [["--help"], ["-x"], ["-fx"], ["--flag=1"], ["-t"], ["-n", "x"], ["-n", "-1"], ["-n", "１"]],
)
def test_words_that_are_left_to_typer(words: list[str]) -> None:
    assert parse([FLAG, TEXT, NUMBER, MANY], words) is None


def test_arguments_are_counted() -> None:
    one, optional = Argument("A", "a", "A"), Argument("B", "b", "B", "?")
    some = Argument("C", "c", "C", "+")
    assert parse([one, optional], ["x"]) == {"a": "x", "b": None}
    assert parse([one, optional], ["x", "y"]) == {"a": "x", "b": "y"}
    assert parse([one, optional], []) is None
    assert parse([one, optional], ["x", "y", "z"]) is None
    assert parse([some], []) is None
    assert parse([some], ["x", "y"]) == {"c": ["x", "y"]}

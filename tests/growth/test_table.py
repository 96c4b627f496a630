"""The table of docs/design/growth.md has a row for everything that can be done, and names tests that exist."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from tests.growth.support.table import rows
from trace_cli.commands import COMMANDS
from trace_store import Repo

FOLDER = Path(__file__).parent
SERVERS = {"mcp", "web"}
"""Commands that do not end; `tests/web/test_pages.py` compares the pages of long sessions with those of short ones."""


def measuring() -> list[str]:
    """Return the names of the tests here that measure an operation."""
    return [
        node.name
        for path in sorted(FOLDER.glob("test_*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and "growth" in [argument.arg for argument in node.args.args]
    ]


def named(operation: str) -> bool:
    return any(
        name == operation or name.startswith(operation + " ")
        for row in rows()
        for name in row.operations
    )


def test_every_row_names_a_test_and_every_test_has_a_row() -> None:
    assert sorted(row.test for row in rows()) == sorted(measuring())


def test_every_command_has_a_row() -> None:
    names = {command.name for command in COMMANDS} - SERVERS
    assert not [name for name in names if not named(f"trace {name}")]


def test_every_verb_of_a_repository_has_a_row() -> None:
    verbs = [name for name, _ in inspect.getmembers(Repo, callable) if not name.startswith("_")]
    assert not [verb for verb in verbs if not named(f"Repo.{verb}")]

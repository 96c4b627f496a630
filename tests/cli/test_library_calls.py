"""Each command really calls the library function named in its row of the table."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from tests.support.command_line import Outcome
from trace_cli.commands import BY_NAME, COMMANDS, PLUMBING

RUNS: dict[str, list[list[str]]] = {
    "doctor": [["doctor"]],
    "adopt": [["adopt"]],
    "pack": [["pack"]],
    "gc": [["gc"]],
    "prune": [["prune"]],
    "du": [["du"]],
    "tag": [["tag", "v1"]],
    "branch": [["branch"]],
    "switch": [["branch", "idea"], ["switch", "idea"]],
    "checkout": [["checkout", "HEAD~1"]],
    "reset": [["reset", "HEAD~1"]],
    "undo": [["undo"]],
    "redo": [["undo"], ["redo"]],
    "reflog": [["reflog"]],
    "checkpoint": [["checkpoint", "save", "here"]],
    "fork": [["fork", "idea"]],
    "trash": [["trash"]],
    "trim": [["trim", "--percent", "99", "--partial"]],
    "dedupe": [["dedupe"]],
    "suggest": [["suggest"]],
    "compress": [["compress", "--manual", "both", "--force"]],
    "expand": [["edit", "HEAD.0", "c", "-q"], ["expand", "HEAD~1.0"]],
    "whohas": [["whohas", "a"]],
    "blame": [["blame"]],
    "sessions": [["sessions"]],
    "search": [["search", "a"]],
    "secrets": [["secrets", "scan"]],
    "seal": [["seal"]],
}
"""How to run each command whose function is a method of `Repo`; of several commands, the last one is followed."""

AROUND = {
    *("init", "import", "export", "status", "log", "diff", "bisect"),
    *("view", "show", "revert", "commit"),
    *("compile", "edit", "pin", "important", "normal", "skip", "label", "remove", "restore"),
    *("merge", "resolve", "cherry-pick", "rebase", "move", "repair", "tools", "usage", "bundle"),
    *("config", "model", "trust", "fsck", "purge", "demo", "completion"),
    *("help", "version"),
}
"""Commands that call layers below `Repo`."""


def test_every_command_is_followed_or_known_to_go_around() -> None:
    named = {row.name for row in COMMANDS if row.category != PLUMBING}
    assert named == RUNS.keys() | AROUND
    assert not RUNS.keys() & AROUND


@pytest.mark.parametrize("name", RUNS)
def test_the_function_of_the_row_is_called(
    trace: Callable[..., Outcome],
    ok: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    for text in ("a " * 400, "b"):
        ok("commit", "--user", text, "-q")
    *before, followed = RUNS[name]
    for words in before:
        ok(*words)
    module, owner, method = BY_NAME[name].function.rsplit(".", 2)
    found = getattr(import_module(module), owner)
    function = getattr(found, method)
    calls: list[str] = []

    def spied(*given: Any, **named: Any) -> Any:
        calls.append(name)
        return function(*given, **named)

    monkeypatch.setattr(found, method, spied)
    assert trace(*followed).code in (0, 7)
    assert calls == [name]

"""Each command really calls the library function named in its row of the table."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Outcome
from trace_cli.commands import BY_NAME, COMMANDS, PLUMBING
from trace_store import Environment

IDEA = ["switch -c idea", "edit HEAD.0 other", "switch main"]
"""A branch `idea` with another wording."""
RUNS: dict[str, list[str]] = {
    **{name: [name] for name in ("doctor", "adopt", "pack", "gc", "prune", "du", "fsck")},
    "purge": ["commit --user forgettable -q", "purge --match forgettable --yes"],
    "import": ["export -f openai -o chat.json", "import chat.json"],
    "export": ["export -f markdown"],
    "repair": ["repair"],
    "bisect": ["bisect start HEAD"],
    "bundle": ["bundle create all.bundle --all"],
    "init": ["init other"],
    "commit": ["commit --user c"],
    **{name: [name] for name in ("compile", "status", "log", "diff", "show", "view")},
    "config": ["config budget 200k"],
    "model": ["model"],
    "trust": ["trust"],
    "tag": ["tag v1"],
    "branch": ["branch"],
    "switch": ["branch idea", "switch idea"],
    "checkout": ["checkout HEAD~1"],
    "reset": ["reset HEAD~1"],
    "undo": ["undo"],
    "redo": ["undo", "redo"],
    **{
        name: [name]
        for name in ("reflog", "trash", "dedupe", "suggest", "blame", "sessions", "seal")
    },
    "whohas": ["whohas a"],
    "search": ["search a"],
    "secrets": ["secrets scan"],
    "checkpoint": ["checkpoint save here"],
    "fork": ["fork idea"],
    "trajectory": ["trajectory start task"],
    "trim": ["trim --percent 99 --partial"],
    "compress": ["compress --manual both --force"],
    "expand": ["edit HEAD.0 c -q", "expand HEAD~1.0"],
    "edit": ["edit HEAD.0 better"],
    **{name: [f"{name} HEAD.0"] for name in ("pin", "important", "normal", "skip", "remove")},
    "label": ["label HEAD.0 --add decision"],
    "cherry-pick": [*IDEA, "cherry-pick idea"],
    "merge": [*IDEA, "merge idea"],
    "rebase": [*IDEA, "commit --user c -q", "rebase idea"],
    "resolve": [*IDEA, "edit HEAD.0 better", "merge idea", "resolve --ours"],
    "revert": ["revert HEAD"],
    "move": ["move HEAD.0 --first"],
    "restore": ["remove HEAD.0", "restore HEAD~1.0"],
    "tools": ["tools set -"],
    "usage": ['usage record {"input_tokens":3,"output_tokens":1}'],
}
"""How to run each command that calls the function of its row; the last of its commands is followed."""

WITHOUT_REPOSITORY = {"demo", "completion", "help", "version"}
"""Commands that need no open repository, and call no function of the library for it."""
WITH_GIT = {"why"}
"""Commands that need a git repository; `tests/trajectories/test_why.py` runs them."""


def test_every_command_is_followed() -> None:
    named = {row.name for row in COMMANDS if row.category != PLUMBING}
    assert named == RUNS.keys() | WITHOUT_REPOSITORY | WITH_GIT
    assert len(named) == len(RUNS) + len(WITHOUT_REPOSITORY) + len(WITH_GIT)


@pytest.mark.parametrize("name", RUNS)
def test_the_function_of_the_row_is_called(
    trace: Callable[..., Outcome],
    ok: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
) -> None:
    for text in ("a " * 400, "b"):
        ok("commit", "--user", text, "-q")
    *before, followed = RUNS[name]
    for each in before:
        assert trace(*each.split()).code in (0, 3)
    module, owner, method = BY_NAME[name].function.rsplit(".", 2)
    found = getattr(import_module(module), owner)
    function = getattr(found, method)
    calls: list[str] = []

    def spied(*given: Any, **named: Any) -> Any:
        calls.append(name)
        return function(*given, **named)

    monkeypatch.setattr(found, method, spied)
    user = Environment(
        author="Ada",
        discovery=False,
        config_dir=str(tmp_path / "settings"),
        secrets=[("TRACE_MODEL", "small"), ("TRACE_MODEL_KEY", "key")],
    )
    assert trace(*followed.split(), stdin=b"[]", environment=user).code in (0, 7)
    assert calls == [name]

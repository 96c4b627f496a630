"""Each command for people calls a function that a Python user could call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Run
from tests.support.public_names import PUBLIC
from trace_cli import porcelain
from trace_cli.commands import COMMANDS, PLUMBING
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
        for name in (
            "reflog",
            "trash",
            "dedupe",
            "suggest",
            "blame",
            "sessions",
            "agents",
            "runs",
            "seal",
        )
    },
    "hooks": ["hooks run"],
    "whohas": ["whohas a"],
    "search": ["search a"],
    "secrets": ["secrets scan"],
    "checkpoint": ["checkpoint save here"],
    "fork": ["fork idea"],
    "trajectory": ["trajectory start task"],
    "brief": ["brief"],
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
"""How to run each command; the last of its commands is followed."""

OWNERS = {
    "repo.repository.Repo": "brief init status log search undo redo commit compile",
    "repo.line.Line": "diff blame show=resolve reset revert edit remove restore merge rebase move"
    " pin=annotate important=annotate normal=annotate skip=annotate label=annotate"
    " cherry-pick=cherry_pick tools=set_tools usage=record_usage",
    "history.branches.Branches": "whohas bisect=start_bisection branch=list switch checkout reflog",
    "history.tags.Tags": "tag=create",
    "checkpoints.checkpoints.Checkpoints": "checkpoint=save",
    "checkpoints.checkpoints.Forks": "fork=create",
    "trajectories.trajectories.Trajectories": "trajectory=start",
    "history.trash.Trash": "trash=list",
    "compression.budgets.Compression": "trim dedupe suggest compress expand",
    "merge.stopped.Stopped": "resolve",
    "sessions.sessions.Sessions": "export sessions=list view=read repair",
    "sessions.transcripts.Transcripts": "import=import_",
    "agents.agents.Agents": "agents=list",
    "runs.runs.Runs": "runs=list",
    "bundles.bundles.Bundles": "bundle=create",
    "maintenance.maintenance.Maintenance": "secrets=scan_secrets fsck purge doctor seal adopt pack gc"
    " prune du",
    "store.config.Config": "config=set",
    "capture": "hooks=catch_up",
    "llm": "model=read_settings",
    "store.trust.Trust": "trust=add",
}
"""The function that each command calls, by what has it; `command=function` if their names differ."""

CALLED = {
    command: (owner, function or command)
    for owner, calls in OWNERS.items()
    for command, _, function in (each.partition("=") for each in calls.split())
}

WITHOUT_REPOSITORY = {"demo", "completion", "help", "version"}
"""Commands that need no open repository, and call no function of the library for it."""
WITH_GIT = {"why"}
"""Commands that need a git repository; `tests/trajectories/test_why.py` runs them."""
SERVING = {"mcp", "web"}
"""Commands that run until Ctrl-C; `tests/web/test_server.py` and `tests/mcp/test_transports.py` run them."""


def test_every_command_is_followed() -> None:
    named = {row.name for row in COMMANDS if row.category != PLUMBING}
    assert named == RUNS.keys() | WITHOUT_REPOSITORY | WITH_GIT | SERVING
    assert len(named) == len(RUNS) + len(WITHOUT_REPOSITORY | WITH_GIT | SERVING)
    assert CALLED.keys() == RUNS.keys()


def names_of(place: str) -> set[str]:
    """Return the names that a public package or module offers, with the public packages and modules in it."""
    found = import_module(place)
    names = getattr(found, "__all__", None) or [n for n in vars(found) if not n.startswith("_")]
    inner = {each.removeprefix(f"{place}.") for each in PUBLIC if each.startswith(f"{place}.")}
    return {*names, *inner, "__file__", "__version__"}


def uses(tree: ast.AST) -> Iterator[ast.Name | ast.Attribute]:
    """Yield the names and attributes of a module outside annotations, aliases of types and imports for types."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(tree, ast.arg | ast.AnnAssign) and node is tree.annotation:
            continue
        if isinstance(tree, ast.FunctionDef) and node is tree.returns:
            continue
        is_alias = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).istitle()
        if is_alias and isinstance(tree, ast.Module):
            continue
        if isinstance(node, ast.Name | ast.Attribute):
            yield node
        yield from uses(node)


def below(module: Path) -> set[str]:
    """Name what a module takes from below the front door, except for constants and types."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    used = list(uses(tree))
    names = {each.id for each in used if isinstance(each, ast.Name)}
    taken: list[tuple[str, str]] = []
    packages: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            named = [each.asname or each.name for each in node.names]
            packages.update({each: each for each in named if each.startswith("trace_store")})
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("trace_store"):
            whole = {each.asname or each.name: each.name for each in node.names}
            taken += [(str(node.module), each) for name, each in whole.items() if name in names]
            places = {name: f"{node.module}.{each}" for name, each in whole.items()}
            packages.update({name: place for name, place in places.items() if place in PUBLIC})
    for attribute in used:
        if isinstance(attribute, ast.Attribute) and ast.unparse(attribute.value) in packages:
            taken.append((packages[ast.unparse(attribute.value)], attribute.attr))
    return {
        f"{place}.{name}".removeprefix("trace_store.")
        for place, name in taken
        if not name.isupper() and not (place in PUBLIC and name in names_of(place))
    }


def test_the_porcelain_calls_only_the_front_door() -> None:
    """What a command can do, a Python user can do with a `Repo` and the public packages."""
    files = Path(porcelain.__path__[0]).glob("[!_]*.py")
    found = {file.stem: below(file) for file in files}
    assert {name: taken for name, taken in found.items() if taken} == {}


@pytest.mark.parametrize("name", RUNS)
def test_a_function_of_the_library_is_called(
    trace: Run,
    ok: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
) -> None:
    for text in ("a " * 400, "b"):
        ok("commit", "--user", text, "-q")
    *before, followed = RUNS[name]
    for each in before:
        assert trace(*each.split()).code in (0, 3)
    place, method = CALLED[name]
    module, _, owner = f"trace_store.{place}".rpartition(".")
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

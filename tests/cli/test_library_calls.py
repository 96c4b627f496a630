"""Each command for people calls a function that a Python user could call."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import trace_store
from tests.support.command_line import Run
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
"""How to run each command; the last of its commands is followed."""

OWNERS = {
    "repo.repository.Repo": "init status log search undo redo commit compile",
    "repo.line.Line": "diff blame show=resolve reset revert edit remove restore merge rebase move"
    " pin=annotate important=annotate normal=annotate skip=annotate label=annotate"
    " cherry-pick=cherry_pick tools=set_tools usage=record_usage",
    "repo.branches.Branches": "whohas bisect=start_bisection branch=list switch checkout reflog",
    "repo.tags.Tags": "tag=create",
    "checkpoints.handle.Checkpoints": "checkpoint=save",
    "checkpoints.handle.Forks": "fork=__call__",
    "trajectories.handle.Trajectories": "trajectory=start",
    "repo.trash.Trash": "trash=list",
    "repo.compression.Compression": "trim dedupe suggest compress expand",
    "repo.in_progress.Stopped": "resolve",
    "repo.transcripts.Transcripts": "import=import_ export sessions=list view=read repair",
    "repo.bundles.Bundles": "bundle=create",
    "repo.maintenance.Maintenance": "secrets=scan_secrets fsck purge doctor seal adopt pack gc"
    " prune du",
    "config.Config": "config=set",
    "llm.settings": "model=read_settings",
    "store.trust": "trust",
}
"""The function that each command calls, by what has it; `command=function` if their names differ."""

CALLED = {
    command: (owner, function or command)
    for owner, calls in OWNERS.items()
    for command, _, function in (each.partition("=") for each in calls.split())
}

PUBLIC = {*trace_store.__all__, "__file__", "__version__", "errors", "records", "repo"}
"""What a porcelain module may import from `trace_store`."""
VALUES = {"errors", "ident", "repo"}
"""Packages and modules that it may import from: errors, the front door, and times and numbers as text."""

STORED_LINE = "context.content.message_line"
STORED_COMMIT = "history objects.commit.read_commit"
BELOW = {
    "a line about a stored message or commit, at less cost than a context or a log": {
        "bisect": f"{STORED_LINE} history",
        "blame": f"{STORED_LINE} context.content.wording_at context.snippet.snippet_in",
        "branch": STORED_COMMIT,
        "compile": "context.content.call_line context.content.result_line",
        "in_progress": STORED_LINE,
        "rebase": f"{STORED_LINE} {STORED_COMMIT} context objects.operations",
        "search": "exporters.session.session_name sessions.listing.known_names"
        " sessions.listing.read_title",
        "switch": STORED_COMMIT,
        "undo": f"{STORED_COMMIT} refs.reflog.read_join refs.reflog.split_undo",
    },
    "what a word on the command line means: an object, an address, a conflict or a list": {
        "blame": "objects.address.Address objects.codec.kind_of oid.is_prefix revision.resolve"
        " revision.resolve_address revision.resolve_commit",
        "in_progress": "merge.in_progress.required_stop",
        "merge": "merge",
        "rebase": "merge.todo",
        "revert": "merge.revert.chosen objects.commit.parents_of",
        "secrets": "revision.resolve",
        "show": "objects.codec.decode objects.codec.kind_of objects.parts.Part",
        "undo": "oid.is_full_id store.reflogs.find_log",
    },
    "text, a name or the fields of a value: no repository is involved": {
        "bundle": "bundles.ingest",
        "export": "exporters.registry.writer_names",
        "gc": "frozen.fields",
        "import_": "importers.registry.formats",
        "purge": "objects.content.text_of",
        "show": "objects.content.bytes_of",
        "status": "ref_names.staged_ref",
        "trajectory": "trajectories trajectories.events.Task",
        "trajectory_end": "trajectories trajectories.events",
        "trajectory_events": "trajectories.events",
        "trajectory_import": "trajectories.trail_import",
        "trajectory_show": "frozen.replace trajectories.events trajectories.reading",
        "trash": "history.trash_entries.kinds_of_refs",
    },
    "formats and models of providers: no repository is involved": {
        "advice": "llm",
        "bisect": "providers",
        "common": "context",  # names of models
        "compile": "providers",
        "config": "context.tokens llm",
        "input": "providers",
        "model": "llm",
    },
    "hooks in the git repository of the code": {
        "trajectory_git": "trajectories",
    },
    "the user's own files and settings": {
        "config": "files.Disk",
        "editor": "files.replace_file",
        "location": "file_systems.kind_of",
        "model": "files.Disk",
        "secrets": "files.files_below files.read_file secrets secrets.guard.position",
        "trust": "files.Disk store",
    },
    "a start without `Repo`, and notes about what git changed": {
        "common": "maintenance secrets store.discovery.find store.handle.lacks_files",
        "completion": f"{STORED_LINE} objects.commit.read_commit revision.resolve_commit"
        " objects.operations.added_messages store.discovery.find",
    },
}
"""Everything else that porcelain modules import from the library, constants aside, by the reason for it."""

WITHOUT_REPOSITORY = {"demo", "completion", "help", "version"}
"""Commands that need no open repository, and call no function of the library for it."""
WITH_GIT = {"why"}
"""Commands that need a git repository; `tests/trajectories/test_why.py` runs them."""


def test_every_command_is_followed() -> None:
    named = {row.name for row in COMMANDS if row.category != PLUMBING}
    assert named == RUNS.keys() | WITHOUT_REPOSITORY | WITH_GIT
    assert len(named) == len(RUNS) + len(WITHOUT_REPOSITORY) + len(WITH_GIT)
    assert CALLED.keys() == RUNS.keys()


def below(module: Path) -> set[str]:
    """Name what a module imports from below the front door, except for constants and types."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    of_types = {
        id(node)
        for guarded in ast.walk(tree)
        if isinstance(guarded, ast.If) and ast.unparse(guarded.test) == "TYPE_CHECKING"
        for node in ast.walk(guarded)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in of_types:
            continue
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names if each.name.startswith("trace_store."))
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("trace_store"):
            place = str(node.module).partition(".")[2]
            names = [each.name for each in node.names if not each.name.isupper()]
            if place.partition(".")[0] not in VALUES:
                found.update(f"{place}.{n}".strip(".") for n in names if n not in PUBLIC)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "trace_store":
            found.update({node.attr} - PUBLIC)
    return found


def test_the_porcelain_calls_only_the_front_door() -> None:
    """What a command can do, a Python user can do with a `Repo`; each exception has its reason."""
    allowed: dict[str, set[str]] = {}
    for modules in BELOW.values():
        for name, imported in modules.items():
            allowed.setdefault(name, set()).update(imported.split())
    files = Path(porcelain.__path__[0]).glob("[!_]*.py")
    found = {file.stem: below(file) for file in files}
    assert {name: names for name, names in found.items() if names} == allowed


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

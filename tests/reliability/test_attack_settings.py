"""Settings and files that a repository brings: nothing of it runs, and none of it says whom to trust."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_bad_input import state
from tests.support.command_line import Trace
from trace_store.base.environment import Environment
from trace_store.store.config import KNOWN_KEYS

RUN = "touch {canary}"
SETTINGS = {
    "a hook": "[hooks]\npre_commit = '{run}'\nsession-start = '{run}'",
    "an editor": "editor = '{run}'\npager = '{run}'\n[core]\neditor = '{run}'\npager = '{run}'",
    "a monitor": "[core]\nfsmonitor = '{run}'\nsshCommand = '{run}'\nhooksPath = '{folder}'",
    "an alias": "[alias]\nstatus = '!{run}'\nlog = '!{run}'",
    "a filter": "[filter.trace]\nclean = '{run}'\nsmudge = '{run}'\n[diff.x]\ntextconv = '{run}'",
    "a helper": "[credential]\nhelper = '!{run}'",
    "another file": "[include]\npath = '{folder}/more'\n[includeIf.'gitdir:/']\npath = '{folder}/more'",
    "another place": "objects_dir = '{folder}'\ntrace_dir = '{folder}'\nworktree = '{folder}'",
    "an address": "[remote.origin]\nurl = 'ext::{run}'\n[env]\nANTHROPIC_BASE_URL = 'http://127.0.0.1:9'",
    "trust": "trusted = true\nuser_ids = [0, 1000]\n[safe]\ndirectory = '*'\n[trust]\nbelow = '/'",
    "secrets": "secrets = 'off'\n[secrets]\nmode = 'off'\nallow = ['*']\nrules = []",
    "a plug-in": "plugins = ['os']\nimporters = ['os:system']\ncompiler = 'os.system'\ntokenizer_module = 'os'",
    "a tokenizer from a file": "tokenizer = '{folder}/evil'",
    "a tokenizer that climbs": "tokenizer = '../../../{folder}/evil'",
    "a branch that climbs": "default_branch = '../../config'",
    "a branch that is an option": "default_branch = '--upload-pack=x'",
    "an id that climbs": "store_id = '../../../../{folder}'",
    "a durability": "durability = 'none'\nfsync = false",
    "format strings": "log_format = '%(trailers)%<(9999999999)%C(auto)'\nbudget = '{{0.__class__}}'",
}
FILES = {
    "hooks": "hooks/pre-commit",
    "hooks of claude": ".claude/settings.json",
    "git attributes": ".gitattributes",
    "git modules": ".gitmodules",
    "a git repository": "git/config",
    "Python": "sitecustomize.py",
    "Python of ours": "trace_store/__init__.py",
    "Python of msgpack": "msgpack.py",
    "settings beside": "config.d/evil",
    "variables": ".env",
    "a program": "git",
}
COMMANDS: tuple[tuple[str, ...], ...] = (
    *(("status",), ("log",), ("commit", "-q", "--user", "x"), ("compile",), ("compile", "--table")),
    *(("commit", "--user", "x"), ("import", "chat.json"), ("export", "--format", "openai")),
    *(("bundle", "create", "all.bundle", "--all"), ("bundle", "import", "all.bundle"), ("pack",)),
    *(("fsck",), ("gc",), ("seal",), ("for-each-ref",), ("config",), ("trust", "--list")),
)
DANGEROUS = ("os.exec", "os.fork", "os.posix_spawn", "os.system", "subprocess.Popen", "pty.spawn")
NETWORK = (
    "socket.connect",
    "socket.getaddrinfo",
    "socket.bind",
    "urllib.Request",
    "http.client.connect",
)
CODE = ("pickle.find_class", "marshal.loads", "ctypes.dlopen", "code.__new__")


class Watch:
    """Records actions of the process that a repository must not cause."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[tuple[str, Any]] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: Any) -> None:
        if self.on and (event in (*DANGEROUS, *NETWORK) or event in CODE[:1]):
            self.seen.append((event, arguments))


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


@pytest.fixture
def place(repository: Trace, tmp_path: Path) -> Path:
    (tmp_path / "chat.json").write_text('{"messages": [{"role": "user", "content": "Look."}]}')
    assert repository("commit", "--user", "before").code == 0
    return tmp_path


def run_all(
    trace: Trace, watch: Watch, canary: Path, environment: Environment | None = None
) -> None:
    watch.seen.clear()
    for words in COMMANDS:
        watch.on = True
        try:
            outcome = trace(*words, environment=environment)
        finally:
            watch.on = False
        assert outcome.code in (0, 2, 4, 5, 6, 12, 13, 14), (words, outcome)
        assert "unexpected" not in outcome.err, (words, outcome)
    assert watch.seen == []
    assert not canary.exists()


@pytest.mark.parametrize("text", SETTINGS.values(), ids=SETTINGS)
def test_a_setting_changes_nothing(
    place: Path, trace: Trace, watch: Watch, tmp_path: Path, text: str
) -> None:
    canary, folder = tmp_path / "canary", tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "more").write_text("[alias]\nlog = 'x'\n")
    (folder / "evil").write_text("raise SystemExit(9)\n")
    before = state(folder)
    config = place / ".trace" / "config"
    text = text.format(run=RUN.format(canary=canary), canary=canary, folder=folder)
    named = {line.partition("=")[0].strip() for line in text.splitlines() if "=" in line}
    kept = [
        line
        for line in config.read_text().splitlines()
        if line.partition("=")[0].strip() not in named
    ]
    # Plain keys come before tables.
    config.write_text(text.split("[")[0] + "\n".join(kept) + "\n" + text[len(text.split("[")[0]) :])
    me = Environment(
        author="Ada",
        discovery=False,
        config_dir=str(tmp_path / "mine"),
        data_dir=str(tmp_path / "data"),
    )
    run_all(trace, watch, canary, me)
    assert state(folder) == before
    assert not (tmp_path / "mine").exists()
    if (tmp_path / "data").exists():
        assert all(tmp_path / "data" in path.parents for path in (tmp_path / "data").rglob("*"))


@pytest.mark.parametrize("name", FILES.values(), ids=FILES)
def test_a_file_runs_nothing(
    place: Path, trace: Trace, watch: Watch, tmp_path: Path, name: str
) -> None:
    canary = tmp_path / "canary"
    for root in (place / ".trace", place):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        run = RUN.format(canary=canary)
        if name.endswith(".py"):
            path.write_text(f"open({str(canary)!r}, 'w')\n")
        elif name.startswith(".git"):
            path.write_text(f"* filter=evil diff=evil merge=evil\n[core]\nsshCommand = {run}\n")
        else:
            path.write_text(f"#!/bin/sh\n{run}\n")
            path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    run_all(trace, watch, canary)


def test_only_these_settings_can_be_changed(place: Path, trace: Trace) -> None:
    """Who adds one has to think about strangers: none of these runs, opens or trusts anything."""
    assert set(KNOWN_KEYS) <= {
        *("budget", "default_branch", "tokenizer", "secrets"),
        *("automatic_checkpoints", "automatic_checkpoint_days", "automatic_checkpoint_limit"),
        *(
            "automatic_checkpoint_tokens",
            "trajectory_capture",
            "trash_count",
            "trash_keep",
            "trash_retention",
            "trash_size",
        ),
    }
    before = state(place)
    for key in (
        "store_id",
        "format",
        "requires",
        "core.editor",
        "alias.x",
        "",
        "a\nb",
        "[x]",
        "__class__",
    ):
        assert trace("config", "--", key, "1").code == 2
        assert state(place) == before


def test_what_is_written_stays_one_line(place: Path, trace: Trace) -> None:
    """A value cannot become a section, nor a second setting."""
    config = place / ".trace" / "config"
    before = config.read_text()
    for value in ('main"\n[core]\nx = "1', "a\rb", "a\nstore_id = 1", "x" * 5000, "[x]", '"', "\\"):
        outcome = trace("config", "default_branch", value)
        text = config.read_text()
        assert text.count("\n") == before.count("\n")
        assert "[core]" not in text
        assert outcome.code in (0, 2)


@pytest.mark.skipif(os.name == "nt", reason="other variables there")
def test_what_the_surroundings_may_say() -> None:
    """Only the user's environment decides; these variables are read."""
    read: set[str] = set()

    class Noting(dict[str, str]):
        def get(self, key: str, default: Any = None) -> Any:
            read.add(key)
            return default

    Environment.read(Noting())
    assert {name for name in read if name.startswith("TRACE_")} == {
        *("TRACE_AUTHOR", "TRACE_DEBUG", "TRACE_DIR", "TRACE_DISCOVERY", "TRACE_EDITOR"),
    }

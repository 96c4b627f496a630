"""Completion in the installed shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Trace
from trace_cli.porcelain.completion import (
    branches,
    commands,
    commits,
    refs,
    revisions,
    roles,
    secret_modes,
    sessions,
    settings,
)
from trace_cli.porcelain.demo import SAMPLE

SETUP = {
    "bash": 'eval "$(trace completion bash)"; COMP_WORDS=({words} ""); COMP_CWORD={count}; '
    '_trace_completion trace; printf "%s\\n" "${{COMPREPLY[@]}}"',
    "fish": 'trace completion fish | source; complete -C "{words} "',
    "zsh": 'autoload -U compinit; compinit -u -d "$HOME/dump"; eval "$(trace completion zsh)"; '
    '_arguments() {{ print -r -- "$@" }}; words=({words} ""); CURRENT=$#words; _trace_completion',
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home folder in which `trace` is this version."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "trace"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m trace_cli "$@"\n')
    program.chmod(0o755)
    root = Path(__file__).resolve().parents[2]
    return {
        **{name: value for name, value in os.environ.items() if name != "TRACE_DIR"},
        "HOME": str(tmp_path),
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(root), str(root / "cli")]),
        "TRACE_AUTHOR": "Ada",
    }


@pytest.mark.parametrize("shell", SETUP)
def test_branches_and_addresses_are_completed(
    shell: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    project = tmp_path / "project"
    project.mkdir()

    def run(*words: str) -> str:
        done = subprocess.run(
            words, cwd=project, env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def complete(line: str) -> str:
        script = SETUP[shell].format(words=line, count=len(line.split()))
        return run(shell, "-c", script)

    run("trace", "init", "-q")
    run("trace", "commit", "--user", "Where is the parser?", "-q")
    run("trace", "commit", "--branch", "side", "--user", "Elsewhere", "-q")
    assert "side" in complete("trace log")
    shown = complete("trace pin")
    assert run("trace", "rev-parse", "--short", "HEAD").strip() in shown
    assert shell == "bash" or "Where is the parser?" in shown


# How zsh evaluates completion values besides showing them.
EVALUATED = '_arguments() {{ local action=${{1#*: :}}; eval ws=\\( "${{action[3,-3]}}" \\) }}; '

SAID = [
    "a \\$(touch ran) b",
    "a \\`touch ran` b",
    'a \\" ); touch ran; : ( \\" b',
    "a' ); touch ran; : ( 'b",
    "a $(touch ran) `touch ran` b",
]


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("shell", SETUP)
def test_what_was_said_is_never_run(
    shell: str, said: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")

    def run(*words: str) -> str:
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("trace", "init", "-q")
    run("trace", "commit", "--user", said, "-q")
    setup = SETUP[shell]
    if shell == "zsh":
        begin, end = setup.index("_arguments() "), setup.index("words=(")
        setup = setup[:begin] + EVALUATED + setup[end:] + "; print -rl -- $ws"
    shown = run(shell, "-c", setup.format(words="trace pin", count=2))
    assert run("trace", "rev-parse", "--short", "HEAD").strip() in shown
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "name", ["a$(touch)", "a`touch`", "a;touch", "a&touch", "a'b", "a(b)", "a{b,c}", "a!b"]
)
def test_names_that_a_shell_would_obey_are_not_completed(
    repository: Trace, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert repository("commit", "--user", "Hello", "-q").code == 0
    assert repository("update-ref", f"refs/heads/{name}", "HEAD").code == 0
    assert repository("update-ref", "refs/heads/a-b/c.d_e", "HEAD").code == 0
    monkeypatch.chdir(tmp_path)
    assert revisions("a") == branches("a") == ["a-b/c.d_e"]
    assert refs("refs/heads/a") == ["refs/heads/a-b/c.d_e"]


def test_ids_of_sessions_and_commits_are_completed_once_begun(
    repository: Trace, tmp_path: Path
) -> None:
    (tmp_path / "session.jsonl").write_bytes(Path(SAMPLE).read_bytes())
    assert repository("import", "session.jsonl", "-q").code == 0
    assert repository("branch", "idea", "-q").code == 0
    head = repository("rev-parse", "HEAD").text.strip()
    session = "89c670d1-13e6-5e56-a540-26baed822c05"
    assert sessions("89c") == [session]
    assert sessions("") == [session, "idea", f"sessions/claude-code/{session}"]
    assert revisions("89c") == [session]
    assert revisions(head[:5]) == commits(head[:5]) == [head[:12]]
    assert commits(head[:30]) == [head[:30]]
    assert commits(head[:3]) == []  # as few digits name nothing
    part = repository("ls-parts", "--format", "%(objectname)").lines
    assert commits(part[0][:6]) == []  # not a commit
    assert session not in revisions("")  # a key press lists names, not all ids
    assert repository("show", "--json", *commits(head[:5])).code == 0


def test_settings_and_other_fixed_names_are_completed() -> None:
    assert settings("trash_") == ["trash_count", "trash_keep", "trash_retention", "trash_size"]
    assert settings("user") == ["user.name"]
    assert "model.url" in settings("model.")
    assert "bundle" in commands("bu")
    assert commands("json") == ["json"]
    assert roles("as") == ["assistant"]
    assert secret_modes("r") == ["redact"]


def test_every_command_completes_the_settings_it_takes(environment: dict[str, str]) -> None:
    for line, name in (("trace config tok", "tokenizer"), ("trace help check", "checkpoint")):
        words = line.split()
        shell = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        done = subprocess.run(
            ["trace"],
            env={**environment, **shell, "_TRACE_COMPLETE": "complete_bash"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert name in done.stdout.split(), done.stderr

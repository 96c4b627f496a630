"""A git project with a Trace repository, and functions that run both programs."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.support.command_line import Outcome
from trace_cli.main import main
from trace_cli.runtime import Invocation
from trace_store import Environment, Repo
from trace_store.trajectories.state import State

_DATES = ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE")
ROOT = Path(__file__).resolve().parents[3]


class Project:
    """A folder with git and Trace.

    For git, a minute passes between two commands, so that commits differ in time. Commits from before the first
    trajectory are of yesterday.
    """

    def __init__(self, folder: Path, *, new: bool = True) -> None:
        self.folder = folder
        self._time = int(time.time()) - 86_400
        self.variables = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "TRACE_"))},
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_EDITOR": "true",
            "GIT_SEQUENCE_EDITOR": "true",
            "HOME": str(folder),
            "LC_ALL": "C",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}",
        }
        if new:
            folder.mkdir()
            self.git("init", "-q", "-b", "main")
            self.git("config", "user.name", "t")
            self.git("config", "user.email", "t@example.org")
            self.trace("init", "-q")

    def git(self, *words: str, code: int = 0, **variables: str) -> str:
        if (self.folder / ".trace" / "refs" / "trajectories").exists():
            self._time = max(self._time, int(time.time()))
        self._time += 60
        variables = dict.fromkeys(_DATES, f"{self._time} +0000") | variables
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env={**self.variables, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def trace(self, *words: str, code: int = 0, stdin: bytes = b"", **variables: str) -> Outcome:
        """Run a command in this process."""
        folder, output, error = os.getcwd(), io.BytesIO(), io.BytesIO()
        invocation = Invocation(
            environment=Environment(author="ada", discovery=False, secrets=list(variables.items())),
            output=output,
            error=error,
            input=io.BytesIO(stdin),
            terminal=False,
        )
        try:
            os.chdir(self.folder)
            found = main(words, invocation)
        finally:
            os.chdir(folder)
        outcome = Outcome(found, output.getvalue(), error.getvalue().decode())
        assert outcome.code == code, outcome.err
        return outcome

    def repo(self) -> Repo:
        return Repo.open(self.folder, environment=Environment(author="ada"))

    def start(self, title: str) -> str:
        return self.trace("trajectory", "start", title).text.split()[0]

    def decide(self, question: str, chosen: str, trajectory: str = "") -> None:
        with self.repo() as repo:
            repo.trajectories.decide(
                question, chosen, trajectory=trajectory, alternatives=["nothing: too little"]
            )

    def commit(self, message: str, **files: str) -> str:
        """Write files, commit them, and return the commit's id; `_` in a name is a dot."""
        for name, content in files.items():
            self.write(name.replace("_", "."), content)
        self.git("add", "--all", "--", ".", ":!.trace")
        self.git("commit", "-q", "-m", message)
        return self.head

    def write(self, name: str, content: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD").strip()

    def hook(self) -> None:
        """Install hooks that run this project's code."""
        from trace_store.trajectories import git_hooks
        from trace_store.trajectories.git import Git

        command = [sys.executable, "-m", "trace_cli"]
        git_hooks.install_hooks(Git(str(self.folder)), command, trailer=False)

    def active(self) -> list[State]:
        """Return the active trajectories."""
        with self.repo() as repo:
            return repo.trajectories.list(status="active")

    def linked(self, trajectory: str = "") -> list[str]:
        """Return the commits that a trajectory links."""
        with self.repo() as repo:
            return [link.commit for link in repo.trajectories.read(trajectory).links]

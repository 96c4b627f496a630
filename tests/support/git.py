"""git without the settings of the user who runs the tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_SETTINGS = (
    *("-c", "user.name=Ada", "-c", "user.email=ada@example.org"),
    *("-c", "protocol.file.allow=always"),
)
_VARIABLES = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


def git(folder: str | Path, *words: str, code: int | None = 0) -> str:
    """Run a command and return all that it printed; with None any exit code is allowed."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    done = subprocess.run(
        ["git", *_SETTINGS, *words],
        cwd=folder,
        env={**inherited, **_VARIABLES},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert code is None or done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr

"""Commands run in this process, by a user with folders of this test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import trace
from tests.support.command_line import Outcome, Trace
from trace_store.base.environment import Environment

__all__ = ["trace"]

VARIABLES = {
    "ACME_API_TOKEN": "correct horse 7 battery",
    "ACME_KEY_PATH": "/home/ada/.ssh/identity",
    "MAX_TOKENS": "1234567890",
}


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """The file of the user's settings."""
    folder = tmp_path / "config" / "trace"
    folder.mkdir(parents=True)
    return folder / "secrets.toml"


@pytest.fixture
def repository(trace: Trace, settings: Path, tmp_path: Path) -> Trace:
    """Run a command in a folder with an empty repository."""
    ours = Environment(
        author="Ada",
        discovery=False,
        config_dir=str(tmp_path / "config"),
        data_dir=str(tmp_path / "data"),
        secrets=VARIABLES.items(),
    )

    def run(
        *words: str,
        stdin: bytes = b"",
        terminal: bool = False,
        environment: Environment | None = None,
    ) -> Outcome:
        return trace(*words, stdin=stdin, terminal=terminal, environment=environment or ours)

    assert run("init", "-q").code == 0
    return run

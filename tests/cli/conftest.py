"""Commands run in this process, in an empty folder, with nothing taken from the surroundings."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from tests.support.command_line import Outcome, Run, Trace
from trace_cli.main import main
from trace_cli.runtime import Invocation
from trace_store.base.environment import Environment


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    """Run a command in the test's folder."""
    monkeypatch.chdir(tmp_path)

    def run(
        *words: str,
        stdin: bytes = b"",
        terminal: bool = False,
        environment: Environment | None = None,
    ) -> Outcome:
        folder = os.getcwd()
        output, error = io.BytesIO(), io.BytesIO()
        invocation = Invocation(
            environment=environment or Environment(author="Ada", discovery=False),
            output=output,
            error=error,
            input=io.BytesIO(stdin),
            terminal=terminal,
        )
        try:
            code = main(words, invocation)
        finally:
            os.chdir(folder)
        return Outcome(code, output.getvalue(), error.getvalue().decode("utf-8"))

    return run


@pytest.fixture
def repository(trace: Trace) -> Trace:
    """The same, with an empty repository in the folder."""
    assert trace("init", "-q").code == 0
    return trace


@pytest.fixture
def ok(repository: Trace) -> Run:
    """Run a command that has to succeed, in a folder with a repository."""

    def run(*words: str, stdin: bytes = b"", terminal: bool = False) -> Outcome:
        outcome = repository(*words, stdin=stdin, terminal=terminal)
        assert outcome.code == 0, outcome.err
        return outcome

    return run

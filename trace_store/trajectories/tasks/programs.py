"""Programs of task systems, such as `bd` and `gh`: run without a shell and without input, with a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.trajectories.tasks.systems import MAXIMUM_ANSWER_BYTES, LocalProject


@value
class ProgramResult:
    """What a program printed.

    Attributes:
        code: its exit code.
        out, err: its standard output and standard error.
    """

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The first line of standard error, or the exit code."""
        lines = [" ".join(line.split()) for line in self.err.splitlines() if line.strip()]
        return lines[0][:200] if lines else f"exit code {self.code}"


def find_program(project: LocalProject, name: str) -> str:
    """Return the path of a program, or "" if it is not on PATH.

    Relative folders on PATH are ignored, because a project must not supply the program.
    """
    name += ".exe" if os.name == "nt" else ""
    for folder in project.environment.variables("PATH").get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, name)
        if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


def run(
    project: LocalProject,
    program: str,
    words: list[str],
    *,
    variables: Mapping[str, str],
    seconds: float,
) -> ProgramResult:
    """Run a program in the project's folder and return what it printed.

    Args:
        project: its folder and environment are used.
        program: its path.
        words: its arguments.
        variables: variables to set in the environment.
        seconds: the time limit.

    Raises:
        TaskUnreachableError: it cannot be run, or takes too long.
        TaskNonsenseError: it prints too much.
    """
    name = os.path.basename(program)
    is_late = threading.Event()
    try:
        process = subprocess.Popen(
            [program, *words],
            cwd=project.folder,
            env={**dict(project.environment.secrets), **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # its children end with it, and it cannot prompt on the terminal
        )
    except OSError as error:
        raise errors.TaskUnreachableError(f"cannot run {name}: {error.strerror}") from error

    def expire() -> None:
        is_late.set()
        _kill(process)

    timer = threading.Timer(seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        out, err = _read(process)
        code = process.wait()
    finally:
        timer.cancel()
        _kill(process)
        process.wait()
    if is_late.is_set():
        raise errors.TaskUnreachableError(f"{name} took longer than {seconds:g} s")
    if max(len(out), len(err)) > MAXIMUM_ANSWER_BYTES:
        raise errors.TaskNonsenseError(f"{name} printed more than {MAXIMUM_ANSWER_BYTES:,} bytes")
    return ProgramResult(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def _read(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Return standard output and standard error; kill the program when one exceeds the limit."""
    found = [b"", b""]

    def read(number: int, stream: IO[bytes]) -> None:
        with stream:
            found[number] = stream.read(MAXIMUM_ANSWER_BYTES + 1)
        if len(found[number]) > MAXIMUM_ANSWER_BYTES:
            _kill(process)

    assert process.stdout is not None
    assert process.stderr is not None
    other = threading.Thread(target=read, args=(1, process.stderr), daemon=True)
    other.start()
    read(0, process.stdout)
    other.join()
    return found[0], found[1]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a program that is still running, and its children."""
    if process.returncode is not None:  # another process may have its id by now
        return
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()

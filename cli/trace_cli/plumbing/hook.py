"""`trace hook`: what the hooks of agents run at each event.

    trace hook AGENT [--personal] [--brief]

It notes that a session grew, from the JSON that the agent writes to standard input, and starts a worker that imports
it. It prints nothing but a brief that was asked for when a session begins. It always exits with 0, also for names and
options that it does not know, so that hooks of other versions never disturb an agent. `trace hooks status` shows what
could not be captured.
"""

from __future__ import annotations

import os
import select
import sys

from trace_cli.arguments import ANY, Argument, takes
from trace_cli.runtime import Invocation
from trace_store.capture.spool import (
    BRIEF_OPTION,
    PERSONAL_OPTION,
    WorkerLock,
    begins_session,
    note_event,
)
from trace_store.disk.files import Disk
from trace_store.disk.layout import Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

MAXIMUM_INPUT_BYTES = 64 << 20
QUIET_SECONDS = 1.0
"""After this time without input, the agent has written everything, even if its pipe is still open."""
NICENESS = 10
_PIECE_BYTES = 1 << 20
_DESCRIPTORS = 256


@takes(Argument("AGENT", "words", "The agent, and options of its hook", ANY))
def run(invocation: Invocation, *, words: list[str]) -> int:
    """Note an event of an agent; no failure is reported."""
    note(invocation, words)
    return 0


def note(invocation: Invocation, words: list[str]) -> str:
    """Note an event; return the `.trace` directory whose brief the agent is to get, or ""."""
    try:
        agent, *options = words
        given = _read(invocation.stdin)
        root = note_event(invocation.environment, agent, given, personal=PERSONAL_OPTION in options)
        if root:
            _start_worker(root)
        return root if root and BRIEF_OPTION in options and begins_session(agent, given) else ""
    except Exception:  # noqa: BLE001 - a hook never disturbs its agent
        return ""


def _read(stdin: BinaryIO) -> bytes:
    """Return what the agent wrote; the rest of a very long input is read, but not kept."""
    try:
        fd = stdin.fileno()
    except (OSError, ValueError):
        return stdin.read(MAXIMUM_INPUT_BYTES)  # not a file
    if os.isatty(fd):
        return b""
    pieces: list[bytes] = []
    size = 0
    while sys.platform == "win32" or select.select([fd], [], [], QUIET_SECONDS)[0]:
        piece = os.read(fd, _PIECE_BYTES)
        if not piece:
            break
        size += len(piece)
        if size <= MAXIMUM_INPUT_BYTES:
            pieces.append(piece)
    return b"".join(pieces)


def _start_worker(root: str) -> None:
    """Start a worker for a `.trace` directory unless one runs, detached from the agent."""
    lock = WorkerLock(Disk(), Layout(root))
    if not lock.take():
        return
    lock.release()
    # -P: modules of the project must not be imported.
    command = [sys.executable, "-P", "-m", "trace_cli", "--dir", root, "hooks", "run", "--wait"]
    if sys.platform == "win32":
        import subprocess  # slow to load

        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        none = subprocess.DEVNULL
        subprocess.Popen(command, creationflags=flags, stdin=none, stdout=none, stderr=none)
    elif not os.fork():
        _become(command)


def _become(command: Sequence[str]) -> None:
    """Replace this process by a command in its own session, with the agent's pipes closed: the agent waits for that."""
    try:
        os.setsid()
        os.nice(NICENESS)
        os.chdir(os.sep)
        os.closerange(0, _DESCRIPTORS)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (1, 2):
            os.dup2(nowhere, descriptor)
        os.execv(command[0], list(command))
    finally:
        os._exit(1)

"""Commands of Trace in processes of their own, forked from one that has loaded its modules."""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_LITERAL = re.compile(r"'[^']*'|\"[^\"$`\\]*\"")
_SYNTAX = re.compile(r"[|<>$&;`#*?()\\\n\[\]'\"]|\{[^}]*,|(?<=\s)~")


def is_plain(command: str) -> bool:
    """Return True for a command of Trace whose words a shell would pass on as they are."""
    return command.startswith("trace ") and not _SYNTAX.search(_LITERAL.sub("", command))


class ForkedCommands:
    """Runs commands as `trace` would in this folder, with this environment, without loading Trace for each."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "cli")))},
            )

    def run(self, command: str) -> tuple[int, str]:
        """Return the exit code, and output and errors together."""
        request = json.dumps([shlex.split(command)[1:], os.getcwd(), dict(os.environ)]).encode()
        ours, theirs = os.pipe()
        try:
            socket.send_fds(self._channel, [len(request).to_bytes(8)], [theirs])
        finally:
            os.close(theirs)
        self._channel.sendall(request)
        with open(ours, "rb") as output:
            said = output.read()
        return int.from_bytes(self._channel.recv(1)), said.decode()

    def close(self) -> None:
        """End the process that commands are forked from."""
        self._channel.close()
        self._server.wait(timeout=60)


def _load() -> None:
    for package in ("trace_store", "trace_cli"):
        for module in pkgutil.walk_packages(
            importlib.import_module(package).__path__, f"{package}."
        ):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def _serve(channel: socket.socket) -> bool:
    """Fork for each request; return True in a process that is to run one, which `sys.argv` has."""
    while True:
        length, fds, _, _ = socket.recv_fds(channel, 8, 1)
        if not length:
            return False
        request = channel.recv(int.from_bytes(length), socket.MSG_WAITALL)
        child = os.fork()
        if not child:
            break
        os.close(fds[0])
        _, status = os.waitpid(child, 0)
        channel.send(bytes([os.waitstatus_to_exitcode(status) & 255]))
    words, folder, environment = json.loads(request)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(fds[0], 1)
    os.dup2(fds[0], 2)
    os.close(fds[0])
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv[1:] = words
    return True


if __name__ == "__main__":
    _load()
    with socket.socket(fileno=os.dup(0)) as given:
        gc.collect()
        gc.freeze()
        is_command = _serve(given)
    if is_command:
        code = importlib.import_module("trace_cli.main").main()
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # without taking down all modules, which copies their memory

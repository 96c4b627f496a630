"""A fake task service and fake programs, whose answers each test chooses."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple


class Request(NamedTuple):
    """What was sent to the service."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class FakeService:
    """A server on this machine.

    Attributes:
        requests: the requests that it received.
        status, body, headers: its answer to each request.
        slow: whether the answer comes only when the server closes.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.status, self.headers, self.slow = 200, dict[str, str](), False
        self.body: Any = {}
        self._closed = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                size = int(self.headers.get("content-length", 0))
                named = {name.lower(): text for name, text in self.headers.items()}
                body = self.rfile.read(size)
                service.requests.append(Request(self.command, self.path, named, body))
                if service.slow:
                    service._closed.wait(30)
                    return
                answer = service.body
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(service.status)
                for name, text in service.headers.items():
                    self.send_header(name, text)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                with suppress(OSError):  # the client has closed the connection
                    self.wfile.write(data)

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class FakePrograms:
    """Programs in a folder that comes first on PATH.

    Attributes:
        path: the value of PATH.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.path = f"{folder}:/usr/bin:/bin"

    def write(self, name: str, body: str) -> None:
        """Write a program that records its arguments, then runs shell commands."""
        record = f'{{ for each; do printf "%s " "$each"; done; echo; }} >> "{self._folder}/calls"\n'
        path = self._folder / name
        path.write_text(f"#!/bin/sh\n{record}{body}\n")
        path.chmod(0o755)

    def prints(self, name: str, answer: object, *, code: int = 0, error: str = "") -> None:
        """Write a program that prints a text, or a value as JSON, and a text to standard error."""
        text = answer if isinstance(answer, str) else json.dumps(answer)
        out, err = self._folder / f"{name}.out", self._folder / f"{name}.err"
        out.write_text(text)
        err.write_text(error)
        self.write(name, f'cat "{out}"\ncat "{err}" >&2\nexit {code}')

    @property
    def calls(self) -> list[list[str]]:
        path = self._folder / "calls"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

"""A model server that fails on demand: raw sockets, one thread, no HTTP library.

A reply is a function that is given the connection after a request was read from it. Each request takes the next reply.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

Reply = Callable[["Connection"], None]


class Request(NamedTuple):
    """What was sent to the server."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def fields(self) -> Any:
        return json.loads(self.body)


class Connection:
    """What a reply writes to.

    Attributes:
        request: that is replied to.
    """

    def __init__(self, sock: socket.socket, server: FaultServer, request: Request) -> None:
        self.request = request
        self._socket = sock
        self._server = server

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def stall(self) -> None:
        """Send nothing more, say so, and wait until the other side gives up."""
        self._server.stalled.set()
        with suppress(OSError):
            while self._socket.recv(1024):
                pass

    def reset(self) -> None:
        """End the connection as a crash does."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


class FaultServer:
    """Answers requests with the replies it was given, in their order, the last again and again.

    Attributes:
        requests: that came.
        asked: is set when the first has come.
        stalled: is set when a reply stalls.
    """

    def __init__(self, replies: Iterable[Reply]) -> None:
        self._replies = list(replies)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._closed = False
        self.requests: list[Request] = []
        self.asked, self.stalled = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def close(self) -> None:
        self._closed = True
        with suppress(OSError):  # it wakes who accepts
            socket.create_connection(("127.0.0.1", self.port)).close()
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._listener.close()

    def _serve(self) -> None:
        while not self._closed:
            sock, _ = self._listener.accept()
            self._open.append(sock)
            with sock, suppress(OSError):
                request = self._read(sock)
                if request is not None:
                    self.requests.append(request)
                    self.asked.set()
                    reply = self._replies[min(len(self.requests), len(self._replies)) - 1]
                    reply(Connection(sock, self, request))
            self._open.remove(sock)

    def _read(self, sock: socket.socket) -> Request | None:
        data = b""
        while b"\r\n\r\n" not in data:
            more = sock.recv(65536)
            if not more:
                return None
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(": ") for line in lines)
        headers = {name.lower(): said for name, _, said in pairs}
        while len(body) < int(headers.get("content-length", "0")):
            body += sock.recv(65536)
        return Request(first, headers, body)


def head(status: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "connection: close", "", ""]).encode()


def answer(
    fields: object, *headers: str, status: str = "200 OK", kind: str = "application/json"
) -> Reply:
    """Return a whole answer; bytes are sent as they are, anything else as JSON."""
    body = fields if isinstance(fields, bytes) else json.dumps(fields).encode()

    def reply(connection: Connection) -> None:
        length = f"content-length: {len(body)}"
        connection.send(head(status, f"content-type: {kind}", length, *headers) + body)

    return reply


def stream(*events: object, pieces: int = 0, end: bytes = b"data: [DONE]\n\n") -> Reply:
    """Return a stream of events, cut into so many bytes at a time."""
    text = b"".join(
        b"data: " + json.dumps(each, ensure_ascii=False).encode() + b"\n\n" for each in events
    )
    body = text + end

    def reply(connection: Connection) -> None:
        connection.send(head("200 OK", "content-type: text/event-stream"))
        size = pieces or len(body)
        for start in range(0, len(body), size):
            connection.send(body[start : start + size])

    return reply


def said(text: str = "ready", **more: object) -> dict[str, object]:
    """Return a chat completion."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "tiny-1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
        **more,
    }


def piece(text: str = "", stop: str | None = None, **more: object) -> dict[str, object]:
    """Return one event of a streamed chat completion."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": stop}
    return {"object": "chat.completion.chunk", "model": "tiny-1", "choices": [choice], **more}


def pieces_of(*texts: str) -> list[dict[str, object]]:
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    last = piece(usage=usage) | {"choices": []}
    return [*(piece(text) for text in texts), piece(stop="stop"), last]

"""HTTP requests and retries, with httpx, which is imported for the first one: to models and services of the user.

Exceptions of httpx and their frames contain the request with its key. So they never leave this module: an error is
created outside of the handler, and states only what happened and where. Redirects are not followed, and compression is
off, because a short answer could expand to a long one.

An error says whether a retry may help (`retryable`) and the minimum wait in seconds (`wait`). Waiting is injected, so
that tests need not wait.
"""

from __future__ import annotations

import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from trace_store import errors
from trace_store.base.frozen import field, value
from trace_store.base.ident import Clock
from trace_store.llm.settings import Secret

T = TypeVar("T")

TYPE_CHECKING = False
if TYPE_CHECKING:
    import httpx

MAXIMUM_ANSWER_BYTES = 32 << 20
CONNECT_SECONDS = 15
_AGENT = "trace-store"
_OPENED = (".connect_tcp.complete", ".start_tls.complete")
"""Events of httpcore that have the socket; TLS wraps it in another one."""
FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
_DIGITS = 9


@value
class Peer:
    """Who is asked, and how errors speak of it.

    Attributes:
        name: such as "the model".
        url: its address.
        timeout: maximum seconds without data.
        proxy: the address of a proxy, or empty.
        certificates: the path of a file of certificates to trust, or "".
        unreachable, nonsense: the errors for no answer, and for an unusable one.
    """

    name: str
    url: str
    timeout: float
    proxy: Secret = field(default_factory=Secret)
    certificates: str = ""
    unreachable: type[errors.TraceError] = errors.ModelUnreachableError
    nonsense: type[errors.TraceError] = errors.ModelNonsenseError


class RequestConnections:
    """The connections of one request, which can be shut down."""

    __slots__ = ("_peer", "_sockets", "cancelled", "expired")

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._sockets: list[socket.socket] = []
        self.cancelled = False
        self.expired = False

    def cancel(self) -> None:
        """Shut the connections down, because the request was cancelled."""
        self.cancelled = True
        self._shut_down()

    def expire(self) -> None:
        """Shut the connections down, because the deadline has passed."""
        self.expired = True
        self._shut_down()

    def note(self, event: str, info: dict[str, Any]) -> None:
        """Record a new connection; a callback for httpcore's extension `trace`."""
        if event.endswith(_OPENED):
            found = info["return_value"].get_extra_info("socket")
            if found is not None:
                self._sockets.append(found)
            if self.cancelled or self.expired:
                self._shut_down()

    def check(self) -> None:
        """Raise if the connections were shut down.

        Raises:
            ModelCancelledError: the request was cancelled.
            ModelUnreachableError: the deadline has passed; or the peer's own error.
        """
        if self.cancelled:
            raise errors.ModelCancelledError(f"the request to {self._peer.name} was cancelled")
        if self.expired:
            raise self._peer.unreachable(
                f"{self._peer.name} did not answer before the deadline", retryable=False
            )

    def _shut_down(self) -> None:
        for each in list(self._sockets):
            with suppress(OSError):  # already closed
                # The method of a TLS socket would first discard state that the reader needs.
                socket.socket.shutdown(each, socket.SHUT_RDWR)


class Connection:
    """The HTTP client of one request, including retries."""

    __slots__ = ("_client", "_connections", "_peer")

    def __init__(
        self,
        peer: Peer,
        connections: RequestConnections,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Create it, without opening a connection.

        Raises:
            InvalidInputError: the certificates or the proxy cannot be used.
        """
        import httpx

        self._peer = peer
        self._connections = connections
        seconds = peer.timeout
        wait = httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
        self._client = _create_client(
            lambda: httpx.Client(
                timeout=wait,
                verify=_trust(peer),
                proxy=peer.proxy.reveal() or None,
                trust_env=False,
                follow_redirects=False,
                transport=transport,
                headers={"user-agent": _AGENT, "accept-encoding": "identity"},
            )
        )

    def send(
        self, method: str, address: str, headers: dict[str, str], body: bytes | None = None
    ) -> HttpResponse:
        """Send a request, a body as JSON; return the response when its headers have arrived.

        Raises:
            TraceError: as `HttpResponse.chunks`.
        """
        self._connections.check()
        self._client.cookies.clear()

        kind = {} if body is None else {"content-type": "application/json"}

        def send() -> httpx.Response:
            request = self._client.build_request(
                method,
                address,
                content=body,
                headers={**kind, **headers},
                extensions={"trace": self._connections.note},
            )
            return self._client.send(request, stream=True)

        return HttpResponse(self._peer, self._safely(send), self._safely)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _safely(self, step: Callable[[], T]) -> T:
        try:
            found = step()
        except Exception as error:  # noqa: BLE001 - any exception may contain the key
            failure = _failure(error, self._peer)
        else:
            self._connections.check()  # a connection that was shut down may look like one that ended
            return found
        self._connections.check()
        raise failure


class HttpResponse:
    """A response whose headers have arrived.

    Attributes:
        status: the status code.
        headers: by name, in lower case.
    """

    __slots__ = ("_peer", "_response", "_safely", "headers", "status")

    def __init__(
        self,
        peer: Peer,
        response: httpx.Response,
        safely: Callable[[Callable[[], bytes | None]], bytes | None],
    ) -> None:
        self._peer = peer
        self._response = response
        self._safely = safely
        self.status = response.status_code
        self.headers = {name.lower(): said for name, said in response.headers.items()}

    def chunks(self, most: int = MAXIMUM_ANSWER_BYTES) -> Iterator[bytes]:
        """Yield the bytes of the body as they arrive.

        Raises:
            ModelUnreachableError: the connection ended, or nothing arrived for too long; or the peer's own error.
            ModelCancelledError: the request was cancelled.
            ModelNonsenseError: it is compressed without being asked, or longer than `most` bytes; or the peer's own.
        """
        coding = self.headers.get("content-encoding", "identity")
        if coding.lower() != "identity":
            raise self._peer.nonsense(
                f"{self._peer.name}'s answer is compressed, which was not requested"
            )
        pieces = self._response.iter_bytes()
        size = 0
        while (chunk := self._safely(lambda: next(pieces, None))) is not None:
            size += len(chunk)
            if size > most:
                raise self._peer.nonsense(
                    f"{self._peer.name}'s answer is longer than {most:,} bytes"
                )
            yield chunk

    def close(self) -> None:
        """Close the connection."""
        self._response.close()


def _trust(peer: Peer) -> ssl.SSLContext | bool:
    """Return the certificates to trust; without TLS none are loaded."""
    if not peer.url.startswith("https") and not peer.proxy:
        return False
    return ssl.create_default_context(cafile=peer.certificates) if peer.certificates else True


def _create_client(make: Callable[[], httpx.Client]) -> httpx.Client:
    try:
        return make()
    except (OSError, ValueError, ImportError):
        pass  # the message would contain the proxy's password
    raise errors.InvalidInputError(
        "the proxy or the certificate file from the environment cannot be used"
    )


def _failure(error: Exception, peer: Peer) -> errors.TraceError:
    """Return the error to raise instead of one of httpx."""
    import httpx

    retryable = True
    if isinstance(error, httpx.ConnectTimeout):
        what = f"could not connect to {peer.name} in time"
    elif isinstance(error, httpx.TimeoutException):
        what = f"{peer.name} sent nothing for {peer.timeout:,} s"
    elif isinstance(error, httpx.ConnectError):
        what = f"could not connect to {peer.name}: {' '.join(str(error).split())[:160]}"
        retryable = "CERTIFICATE" not in str(error)
    elif isinstance(error, httpx.ProxyError):
        what, retryable = f"the proxy refused to connect to {peer.name}", False
    elif isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol):
        what, retryable = f"{peer.name} cannot be reached over HTTP", False
    elif isinstance(error, httpx.RemoteProtocolError):
        what = f"{peer.name}'s server sent an incomplete answer, or something other than HTTP"
    elif isinstance(error, httpx.TransportError | OSError):
        what = f"the connection to {peer.name} ended before the answer was complete"
    else:
        what, retryable = f"the request to {peer.name} failed ({type(error).__name__})", False
    return peer.unreachable(f"{what} ({peer.url})", url=peer.url, retryable=retryable)


MAXIMUM_EVENT_BYTES = 4 << 20
_MARK = b"\xef\xbb\xbf"


def events(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of each event that has some; an incomplete last event is dropped.

    Raises:
        ModelNonsenseError: it is not UTF-8, or an event is longer than MAXIMUM_EVENT_BYTES.
    """
    data: list[bytes] = []
    size = 0
    for line in _lines(chunks):
        if not line:
            if data:
                yield _text(b"\n".join(data))
            data, size = [], 0
            continue
        name, _, rest = line.partition(b":")
        if name != b"data":
            continue
        data.append(rest.removeprefix(b" "))
        size += len(rest)
        if size > MAXIMUM_EVENT_BYTES:
            raise errors.ModelNonsenseError("an event of the model's answer is too long")


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield complete lines without their ends, which are LF, CR LF or CR."""
    begun: list[bytes] = []
    size = 0
    first, after_return = True, False
    for chunk in chunks:
        if after_return and chunk:
            chunk, after_return = chunk.removeprefix(b"\n"), False
        after_return = after_return or chunk.endswith(b"\r")
        *whole, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            line = b"".join([*begun, line])
            yield line.removeprefix(_MARK) if first else line
            begun, size, first = [], 0, False
        begun.append(rest)
        size += len(rest)
        if size > MAXIMUM_EVENT_BYTES:
            raise errors.ModelNonsenseError("a line of the model's answer is too long")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise errors.ModelNonsenseError("the model's answer is not UTF-8") from None


class Timing:
    """The clock of a model client.

    Attributes:
        now: returns monotonic seconds.
        sleep: waits for a number of seconds; None waits unless cancelled.
        jitter: returns a factor from 0 to 1 for waits.
        clock: the wall clock, for answers that name a time.
    """

    __slots__ = ("clock", "jitter", "now", "sleep")

    def __init__(
        self,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
        jitter: Callable[[], float] = random.random,
        clock: Clock | None = None,
    ) -> None:
        self.now = now
        self.sleep = sleep
        self.jitter = jitter
        self.clock = clock or Clock()

    def alarm(self, seconds: float, action: Callable[[], None]) -> Callable[[], None]:
        """Call a function after a number of seconds; return a function that cancels this."""
        timer = threading.Timer(seconds, action)
        timer.daemon = True
        timer.start()
        return timer.cancel


def with_retries(
    attempt: Callable[[], T],
    *,
    attempts: int,
    seconds: float,
    timing: Timing,
    sleep: Callable[[float], None],
) -> T:
    """Return the result of the first attempt that succeeds.

    Args:
        attempt: called again while its error is `retryable`.
        attempts: maximum number of calls.
        seconds: time limit for everything; a longer wait is not started.
        timing: the clock.
        sleep: waits.

    Raises:
        ModelError: the last error, with the number of `attempts`.
    """
    end = timing.now() + seconds
    number = 1
    while True:
        try:
            return attempt()
        except errors.ModelError as error:
            failure = error
        failure.data["attempts"] = number
        if number >= attempts or not failure.data.get("retryable"):
            break
        wait = _wait(failure, number, timing)
        if timing.now() + wait > end:
            break
        sleep(wait)
        number += 1
    raise failure


def _wait(failure: errors.ModelError, number: int, timing: Timing) -> float:
    asked = failure.data.get("wait")
    if isinstance(asked, float):
        return asked
    return timing.jitter() * min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(number - 1, 16))


def retry_after(headers: Mapping[str, str], clock: Clock) -> float | None:
    """Return the wait in seconds that a server requests as a number or date, or None."""
    header = headers.get("retry-after", "").strip()
    whole, _, part = header.partition(".")
    if whole.isascii() and whole.isdecimal() and len(whole) <= _DIGITS:
        return float(f"{whole}.{part}" if part.isascii() and part.isdecimal() else whole)
    if not header:
        return None
    from email.utils import parsedate_to_datetime  # which few servers ask for

    try:
        moment = parsedate_to_datetime(header).timestamp()
    except (ValueError, TypeError, OverflowError, OSError, IndexError):
        return None
    return max(0.0, moment - clock.now() / 1000)

"""HTTP requests with httpx, which is imported for the first one.

Exceptions of httpx and their frames contain the request with its key. So they never leave this module: an error is
created outside of the handler, and states only what happened and where. Redirects are not followed, and compression is
off, because a short answer could expand to a long one.
"""

from __future__ import annotations

import ssl

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    import httpx

    from trace_store.llm.contract import RequestConnections
    from trace_store.llm.settings import ModelSettings

    T = TypeVar("T")


MAXIMUM_ANSWER_BYTES = 32 << 20
CONNECT_SECONDS = 15
_AGENT = "trace-store"


class Connection:
    """The HTTP client of one request to a model, including retries."""

    __slots__ = ("_client", "_connections", "_settings")

    def __init__(
        self,
        settings: ModelSettings,
        connections: RequestConnections,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Create it, without opening a connection.

        Raises:
            InvalidInputError: the certificates or the proxy cannot be used.
        """
        import httpx

        self._settings = settings
        self._connections = connections
        seconds = settings.timeout
        wait = httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
        self._client = _create_client(
            lambda: httpx.Client(
                timeout=wait,
                verify=_trust(settings),
                proxy=settings.proxy.reveal() or None,
                trust_env=False,
                follow_redirects=False,
                transport=transport,
                headers={"user-agent": _AGENT, "accept-encoding": "identity"},
            )
        )

    def post(self, address: str, headers: dict[str, str], body: bytes) -> Answer:
        """Send a request and return the answer when its headers have arrived.

        Raises:
            ModelUnreachableError, ModelCancelledError: as `Answer.chunks`.
        """
        self._connections.check()
        self._client.cookies.clear()

        def send() -> httpx.Response:
            request = self._client.build_request(
                "POST",
                address,
                content=body,
                headers={"content-type": "application/json", **headers},
                extensions={"trace": self._connections.note},
            )
            return self._client.send(request, stream=True)

        return Answer(self._safely(send), self._safely)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _safely(self, step: Callable[[], T]) -> T:
        try:
            found = step()
        except Exception as error:  # noqa: BLE001 - any exception may contain the key
            failure = _failure(error, self._settings)
        else:
            self._connections.check()  # a connection that was shut down may look like one that ended
            return found
        self._connections.check()
        raise failure


class Answer:
    """An answer whose headers have arrived.

    Attributes:
        status: the status code.
        headers: by name, in lower case.
    """

    __slots__ = ("_response", "_safely", "headers", "status")

    def __init__(
        self,
        response: httpx.Response,
        safely: Callable[[Callable[[], bytes | None]], bytes | None],
    ) -> None:
        self._response = response
        self._safely = safely
        self.status = response.status_code
        self.headers = {name.lower(): said for name, said in response.headers.items()}

    def chunks(self, most: int = MAXIMUM_ANSWER_BYTES) -> Iterator[bytes]:
        """Yield the bytes of the answer as they arrive.

        Raises:
            ModelUnreachableError: the connection ended, or nothing arrived for too long.
            ModelCancelledError: the request was cancelled.
            ModelNonsenseError: it is compressed without being asked, or longer than `most` bytes.
        """
        coding = self.headers.get("content-encoding", "identity")
        if coding.lower() != "identity":
            raise errors.ModelNonsenseError(
                "the model's answer is compressed, which was not requested"
            )
        pieces = self._response.iter_bytes()
        size = 0
        while (chunk := self._safely(lambda: next(pieces, None))) is not None:
            size += len(chunk)
            if size > most:
                raise errors.ModelNonsenseError(f"the model's answer is longer than {most:,} bytes")
            yield chunk

    def close(self) -> None:
        """Close the connection."""
        self._response.close()


def _trust(settings: ModelSettings) -> ssl.SSLContext | bool:
    """Return the certificates to trust; without TLS none are loaded."""
    if not settings.url.startswith("https") and not settings.proxy:
        return False
    return (
        ssl.create_default_context(cafile=settings.certificates) if settings.certificates else True
    )


def _create_client(make: Callable[[], httpx.Client]) -> httpx.Client:
    try:
        return make()
    except (OSError, ValueError, ImportError):
        pass  # the message would contain the proxy's password
    raise errors.InvalidInputError(
        "the proxy or the certificate file from the environment cannot be used"
    )


def _failure(error: Exception, settings: ModelSettings) -> errors.ModelError:
    """Return the error to raise instead of one of httpx."""
    import httpx

    retryable = True
    if isinstance(error, httpx.ConnectTimeout):
        what = "could not connect to the model in time"
    elif isinstance(error, httpx.TimeoutException):
        what = f"the model sent nothing for {settings.timeout:,} s"
    elif isinstance(error, httpx.ConnectError):
        what = f"could not connect to the model: {' '.join(str(error).split())[:160]}"
        retryable = "CERTIFICATE" not in str(error)
    elif isinstance(error, httpx.ProxyError):
        what, retryable = "the proxy refused to connect to the model", False
    elif isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol):
        what, retryable = "the model cannot be reached over HTTP", False
    elif isinstance(error, httpx.RemoteProtocolError):
        what = "the model's server sent an incomplete answer, or something other than HTTP"
    elif isinstance(error, httpx.TransportError | OSError):
        what = "the connection to the model ended before the answer was complete"
    else:
        what, retryable = f"the request to the model failed ({type(error).__name__})", False
    return errors.ModelUnreachableError(
        f"{what} ({settings.url})", url=settings.url, retryable=retryable
    )


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

"""Requests over HTTP, by httpx, which is imported for the first.

Rule: what httpx raises holds the request with its key, and so do the frames that it comes through. Nothing of that
leaves this module: an error is made anew, outside of the handler, and tells what happened and where. No redirect is
followed, and nothing is sent that compresses, since a short answer could then be a long one.
"""

from __future__ import annotations

import ssl

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    import httpx

    from trace_store.llm.cancel import Cut
    from trace_store.llm.settings import ModelSettings

    T = TypeVar("T")

MAXIMUM_ANSWER_BYTES = 32 << 20
CONNECT_SECONDS = 15
_AGENT = "trace-store"


class Connection:
    """What requests of one question are made through."""

    __slots__ = ("_client", "_cut", "_settings")

    def __init__(
        self, settings: ModelSettings, cut: Cut, transport: httpx.BaseTransport | None = None
    ) -> None:
        """Make it; nothing is opened yet.

        Raises:
            InvalidInputError: the file of certificates, or the proxy, cannot be used.
        """
        import httpx

        self._settings = settings
        self._cut = cut
        seconds = settings.timeout
        wait = httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
        self._client = _made(
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
        """Send a request, and return the answer once its head is here.

        Raises:
            ModelUnreachableError, ModelCancelledError: as `Answer.chunks`.
        """
        self._cut.check()
        self._client.cookies.clear()

        def send() -> httpx.Response:
            request = self._client.build_request(
                "POST",
                address,
                content=body,
                headers={"content-type": "application/json", **headers},
                extensions={"trace": self._cut.note},
            )
            return self._client.send(request, stream=True)

        return Answer(self._safely(send), self._safely)

    def close(self) -> None:
        """Close what is open."""
        self._client.close()

    def _safely(self, step: Callable[[], T]) -> T:
        try:
            found = step()
        except Exception as error:  # noqa: BLE001 - whatever it is, it may hold the key
            failure = _failure(error, self._settings)
        else:
            self._cut.check()  # a connection that was cut may look like one that came to its end
            return found
        self._cut.check()
        raise failure


class Answer:
    """An answer, of which the head is here.

    Attributes:
        status: its code.
        headers: by name, in small letters.
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
        """Yield the bytes of the answer as they come.

        Raises:
            ModelUnreachableError: the connection ends, or nothing comes for too long.
            ModelCancelledError: the answer is not waited for.
            ModelNonsenseError: it is compressed, though that was not asked for, or longer than `most` bytes.
        """
        coding = self.headers.get("content-encoding", "identity")
        if coding.lower() != "identity":
            raise errors.ModelNonsenseError(
                "the model's answer is compressed, which was not asked for"
            )
        pieces = self._response.iter_bytes()
        size = 0
        while (chunk := self._safely(lambda: next(pieces, None))) is not None:
            size += len(chunk)
            if size > most:
                raise errors.ModelNonsenseError(f"the model's answer has more than {most:,} bytes")
            yield chunk

    def close(self) -> None:
        """Close it, read or not."""
        self._response.close()


def _trust(settings: ModelSettings) -> ssl.SSLContext | bool:
    """Return by what the other side is known; without encryption nothing is, and nothing has to be loaded."""
    if not settings.url.startswith("https") and not settings.proxy:
        return False
    return (
        ssl.create_default_context(cafile=settings.certificates) if settings.certificates else True
    )


def _made(make: Callable[[], httpx.Client]) -> httpx.Client:
    try:
        return make()
    except (OSError, ValueError, ImportError):
        pass  # what it says of a proxy repeats its password
    raise errors.InvalidInputError(
        "the proxy of the environment, or its file of certificates, cannot be used"
    )


def _failure(error: Exception, settings: ModelSettings) -> errors.ModelError:
    """Return what to raise instead of an error of httpx."""
    import httpx

    retryable = True
    if isinstance(error, httpx.ConnectTimeout):
        what = "no connection to the model in time"
    elif isinstance(error, httpx.TimeoutException):
        what = f"nothing came from the model for {settings.timeout:,} s"
    elif isinstance(error, httpx.ConnectError):
        what = f"no connection to the model: {' '.join(str(error).split())[:160]}"
        retryable = "CERTIFICATE" not in str(error)
    elif isinstance(error, httpx.ProxyError):
        what, retryable = "the proxy does not let us through to the model", False
    elif isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol):
        what, retryable = "the model cannot be asked over HTTP", False
    elif isinstance(error, httpx.RemoteProtocolError):
        what = "what the model's server sent is cut off, or is not HTTP"
    elif isinstance(error, httpx.TransportError | OSError):
        what = "the connection to the model ended before its answer did"
    else:
        what, retryable = f"the model cannot be asked ({type(error).__name__})", False
    return errors.ModelUnreachableError(
        f"{what} ({settings.url})", url=settings.url, retryable=retryable
    )

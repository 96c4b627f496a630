"""A model over HTTP.

A prompt may take several requests; the first answer counts. After a part of an answer has arrived there is no retry.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from time import sleep

from trace_store import errors
from trace_store.base.frozen import replace
from trace_store.llm.apis import REQUEST_FORMATS, failure_of, parsed
from trace_store.llm.contract import Cancellation, Completion, Prompt, check_text
from trace_store.llm.http import (
    Connection,
    HttpResponse,
    Peer,
    RequestConnections,
    Timing,
    events,
    retry_after,
    with_retries,
)
from trace_store.llm.settings import ModelSettings, Secret, masked

TYPE_CHECKING = False
if TYPE_CHECKING:
    import httpx

MAXIMUM_ERROR_BYTES = 1 << 16
_END = "[DONE]"


class HttpModel:
    """A Model that sends prompts over HTTP.

    Attributes:
        settings: its name, address and limits.
    """

    __slots__ = ("_format", "_timing", "_transport", "settings")

    def __init__(
        self,
        settings: ModelSettings,
        *,
        timing: Timing | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Create it, without opening a connection or importing httpx.

        Args:
            settings: as `read_settings` returns them.
            timing: the clock and the way to wait.
            transport: replaces the network.
        """
        self.settings = settings
        self._format = REQUEST_FORMATS[settings.api]()
        self._timing = timing or Timing()
        self._transport = transport

    def __repr__(self) -> str:
        return f"HttpModel({self.settings.name!r}, {self.settings.url!r})"

    def __call__(
        self,
        prompt: Prompt,
        *,
        heard: Callable[[str], object] | None = None,
        cancellation: Cancellation | None = None,
    ) -> Completion:
        """Return the model's answer.

        Args:
            prompt: the prompt.
            heard: called with each piece of a streamed answer; None disables streaming.
            cancellation: cancels the request from another thread.

        Raises:
            ModelUnreachableError: no connection, a timeout, a server error or an incomplete answer.
            ModelRefusedError: the key, rate, request or content was refused; `reason` says which.
            ModelNonsenseError: the answer is malformed.
            ModelCancelledError: the request was cancelled.
            InvalidInputError: the proxy or the certificates from the environment cannot be used.
        """
        kept = self.settings
        peer = Peer("the model", kept.url, kept.timeout, kept.proxy, kept.certificates)
        connections = RequestConnections(peer)
        if cancellation is not None:
            cancellation.add(connections.cancel)
        call_off = self._timing.alarm(kept.deadline, connections.expire)
        connection = Connection(peer, connections, self._transport)
        sleep = self._timing.sleep or _sleep(cancellation, self._timing)
        try:
            return with_retries(
                lambda: self._attempt(connection, prompt, heard),
                attempts=kept.attempts,
                seconds=kept.deadline,
                timing=self._timing,
                sleep=sleep,
            )
        finally:
            call_off()
            if cancellation is not None:
                cancellation.drop(connections.cancel)
            connection.close()

    def _attempt(
        self, connection: Connection, prompt: Prompt, heard: Callable[[str], object] | None
    ) -> Completion:
        """Send one request; the answer names the model.

        Errors hide the key, and are not `retryable` after a piece was received.
        """
        pieces: list[str] = []

        def on_piece(piece: str) -> None:
            pieces.append(piece)
            if heard is not None:
                heard(piece)

        try:
            found = check_text(self._ask(connection, prompt, None if heard is None else on_piece))
            return found if found.model else replace(found, model=self.settings.name)
        except errors.ModelError as error:
            failure = _without_key(error, self.settings.key)
        failure.data["retryable"] = bool(failure.data.get("retryable")) and not pieces
        raise failure

    def _ask(
        self, connection: Connection, prompt: Prompt, heard: Callable[[str], None] | None
    ) -> Completion:
        settings, request_format = self.settings, self._format
        fields = request_format.fields(
            prompt, settings.name, settings.url, stream=heard is not None
        )
        body = json.dumps(fields).encode("ascii")
        address = request_format.endpoint(settings.url)
        response = connection.send(
            "POST", address, request_format.headers(settings.key.reveal()), body
        )
        try:
            if not 200 <= response.status < 300:
                raise self._refusal(response)
            kind = response.headers.get("content-type", "")
            if heard is not None and not kind.startswith("application/json"):
                return self._stream(response, heard)
            completion = request_format.read(_fields(b"".join(response.chunks())))
            if heard is not None:
                heard(completion.text)
            return completion
        finally:
            response.close()

    def _stream(self, response: HttpResponse, heard: Callable[[str], None]) -> Completion:
        stream_reader = self._format.stream_reader()
        for event in events(response.chunks()):
            if event.strip() == _END:
                break
            piece = stream_reader.take(_fields(event))
            if piece:
                heard(piece)
        completion = stream_reader.completion()
        if completion is None:
            raise errors.ModelUnreachableError(
                f"the model's answer is incomplete ({self.settings.url})", retryable=True
            )
        return completion

    def _refusal(self, response: HttpResponse) -> errors.ModelError:
        if 300 <= response.status < 400:
            return errors.ModelUnreachableError(
                f"{self.settings.url} redirects ({response.status}), and keys are not sent elsewhere",
                code=errors.ErrorCode.REDIRECTED,
                status=response.status,
                retryable=False,
            )
        try:
            body = parsed(b"".join(response.chunks(MAXIMUM_ERROR_BYTES)))
        except errors.ModelCancelledError:
            raise
        except errors.ModelError:
            body = {}  # an HTML page, or nothing: the status must do
        found = failure_of(body.get("error") or body.get("detail") or body, response.status)
        wait = retry_after(response.headers, self._timing.clock)
        if wait is not None:
            found.data["wait"] = wait
        return found


def _fields(data: bytes | str) -> dict[str, object]:
    """Return the fields of an answer or event.

    Raises:
        ModelError: it is malformed or reports an error.
    """
    fields = parsed(data)
    if fields.get("error"):
        raise failure_of(fields["error"])
    return fields


def _without_key(error: errors.ModelError, key: Secret) -> errors.ModelError:
    """Return a copy of an error with the key masked, not chained to the original."""
    made = type(error)(masked(error.message, key), code=error.code)
    made.data = error.data
    return made


def _sleep(cancellation: Cancellation | None, timing: Timing) -> Callable[[float], None]:
    if cancellation is not None:
        return cancellation.wait
    return sleep

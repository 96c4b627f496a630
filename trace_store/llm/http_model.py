"""A model that answers over HTTP.

Rule: one question is one or more requests, of which the first that is answered counts. Once a piece of an answer was
heard there is no further request.
"""

from __future__ import annotations

import json

from trace_store import errors
from trace_store.llm.apis import FORMS
from trace_store.llm.apis.form import failure_of, parsed
from trace_store.llm.cancel import Cut
from trace_store.llm.contract import checked
from trace_store.llm.http import Connection
from trace_store.llm.keys import masked
from trace_store.llm.retry import Timing, retry_after, with_retries
from trace_store.llm.sse import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from trace_store.llm.cancel import Cancellation
    from trace_store.llm.contract import Completion, Prompt
    from trace_store.llm.http import Answer
    from trace_store.llm.keys import Secret
    from trace_store.llm.settings import ModelSettings

MAXIMUM_ERROR_BYTES = 1 << 16
_END = "[DONE]"


class HttpModel:
    """Asks the model that settings describe; a Model.

    Attributes:
        settings: say which, where, and how often it is asked.
    """

    __slots__ = ("_form", "_timing", "_transport", "settings")

    def __init__(
        self,
        settings: ModelSettings,
        *,
        timing: Timing | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Make it; nothing is opened, and httpx not imported.

        Args:
            settings: as `read_settings` returns them.
            timing: how time passes.
            transport: what carries requests instead of the network.
        """
        self.settings = settings
        self._form = FORMS[settings.api]()
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
        """Return what the model answers.

        Args:
            prompt: what it is asked.
            heard: is given each piece of the answer when it comes; None: the answer comes at once.
            cancellation: ends the waiting, from another thread.

        Raises:
            ModelUnreachableError: no connection, no answer in time, a failing server, or an answer that is cut off.
            ModelRefusedError: the key, the rate, the request or the content is refused; `reason` says which.
            ModelNonsenseError: the answer has another form than it should.
            ModelCancelledError: the answer is not waited for.
            InvalidInputError: the proxy or the certificates of the environment cannot be used.
        """
        cut = Cut()
        if cancellation is not None:
            cancellation.add(cut.cancel)
        call_off = self._timing.alarm(self.settings.deadline, cut.expire)
        connection = Connection(self.settings, cut, self._transport)
        sleep = self._timing.sleep or _sleep(cancellation, self._timing)
        try:
            return with_retries(
                lambda: self._attempt(connection, prompt, heard),
                attempts=self.settings.attempts,
                seconds=self.settings.deadline,
                timing=self._timing,
                sleep=sleep,
            )
        finally:
            call_off()
            if cancellation is not None:
                cancellation.drop(cut.cancel)
            connection.close()

    def _attempt(
        self, connection: Connection, prompt: Prompt, heard: Callable[[str], object] | None
    ) -> Completion:
        """Ask once; an error repeats nothing of the key, and is not `retryable` when something was heard."""
        told: list[str] = []

        def hear(piece: str) -> None:
            told.append(piece)
            if heard is not None:
                heard(piece)

        try:
            return checked(self._ask(connection, prompt, None if heard is None else hear))
        except errors.ModelError as error:
            failure = _without(error, self.settings.key)
        failure.data["retryable"] = bool(failure.data.get("retryable")) and not told
        raise failure

    def _ask(
        self, connection: Connection, prompt: Prompt, heard: Callable[[str], None] | None
    ) -> Completion:
        settings, form = self.settings, self._form
        fields = form.fields(prompt, settings.name, settings.url, stream=heard is not None)
        body = json.dumps(fields).encode("ascii")
        address = form.address(settings.url)
        answer = connection.post(address, form.headers(settings.key.reveal()), body)
        try:
            if not 200 <= answer.status < 300:
                raise self._refusal(answer)
            kind = answer.headers.get("content-type", "")
            if heard is not None and not kind.startswith("application/json"):
                return self._stream(answer, heard)
            completion = form.read(_fields(b"".join(answer.chunks())))
            if heard is not None:
                heard(completion.text)
            return completion
        finally:
            answer.close()

    def _stream(self, answer: Answer, heard: Callable[[str], None]) -> Completion:
        hearing = self._form.hearing()
        for event in events(answer.chunks()):
            if event.strip() == _END:
                break
            piece = hearing.take(_fields(event))
            if piece:
                heard(piece)
        completion = hearing.completion()
        if completion is None:
            raise errors.ModelUnreachableError(
                f"the model's answer ends in the middle ({self.settings.url})", retryable=True
            )
        return completion

    def _refusal(self, answer: Answer) -> errors.ModelError:
        if 300 <= answer.status < 400:
            return errors.ModelUnreachableError(
                f"{self.settings.url} sends us elsewhere ({answer.status}), where no key is sent",
                code=errors.ErrorCode.REDIRECTED,
                status=answer.status,
                retryable=False,
            )
        try:
            told = parsed(b"".join(answer.chunks(MAXIMUM_ERROR_BYTES)))
        except errors.ModelCancelledError:
            raise
        except errors.ModelError:
            told = {}  # a page for people, or nothing: the status says enough
        found = failure_of(told.get("error") or told.get("detail") or told, answer.status)
        wait = retry_after(answer.headers, self._timing.clock)
        if wait is not None:
            found.data["wait"] = wait
        return found


def _fields(data: bytes | str) -> dict[str, object]:
    """Return the fields of an answer or an event.

    Raises:
        ModelError: there are none, or they tell of a failure.
    """
    fields = parsed(data)
    if fields.get("error"):
        raise failure_of(fields["error"])
    return fields


def _without(error: errors.ModelError, key: Secret) -> errors.ModelError:
    """Return an error that repeats nothing of a key, whatever the server said; the other is not linked to it."""
    made = type(error)(masked(error.message, key), code=error.code)
    made.data = error.data
    return made


def _sleep(cancellation: Cancellation | None, timing: Timing) -> Callable[[float], None]:
    if cancellation is not None:
        return cancellation.wait
    from time import sleep

    return sleep

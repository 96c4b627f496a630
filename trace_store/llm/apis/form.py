"""The interface of request formats, and helpers to read untrusted fields."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod

from trace_store import errors
from trace_store.context.usage import normalise_usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from trace_store.context.usage import Usage
    from trace_store.llm.contract import Completion, Prompt

MAXIMUM_SAID = 200
RATE, CONTENT, KEY, REQUEST = "rate", "content", "key", "request"
_BUSY = ("overloaded", "rate_limit", "server_error", "timeout", "api_error", "slow_down")
_SPENT = ("insufficient_quota", "billing", "credit balance")


class StreamReader(ABC):
    """Builds a Completion from the events of a stream."""

    __slots__ = ()

    @abstractmethod
    def take(self, event: dict[str, Any]) -> str:
        """Return the text that an event adds.

        Raises:
            ModelError: the event reports an error or a refusal, or is malformed.
        """

    @abstractmethod
    def completion(self) -> Completion | None:
        """Return the completion; None while the answer is incomplete."""


class Form(ABC):
    """The request format of one API."""

    __slots__ = ()
    stream_reader: type[StreamReader]

    @abstractmethod
    def endpoint(self, url: str) -> str:
        """Return the URL for requests, given the base URL."""

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers that authenticate a request."""
        return {"authorization": f"Bearer {key}"} if key else {}

    @abstractmethod
    def fields(self, prompt: Prompt, name: str, url: str, *, stream: bool) -> dict[str, Any]:
        """Return the fields of a request."""

    @abstractmethod
    def read(self, answer: dict[str, Any]) -> Completion:
        """Return the completion in a whole answer.

        Raises:
            ModelError: it reports an error or a refusal, or is malformed.
        """


def parsed(text: str | bytes) -> dict[str, Any]:
    """Return the fields of a JSON object.

    Raises:
        ModelNonsenseError: it is not one.
    """
    try:
        found = json.loads(text if isinstance(text, str) else text.decode("utf-8-sig"))
    except (ValueError, RecursionError):  # includes invalid UTF-8
        found = None
    if not isinstance(found, dict):
        raise errors.ModelNonsenseError("the model's answer is not a JSON object")
    return found


def inner(fields: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the object in a field; empty if it is absent or null.

    Raises:
        ModelNonsenseError: it is something else.
    """
    found = fields.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        nonsense(key)
    return found


def items(fields: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the list of objects in a field; raises as `inner`."""
    found = fields.get(key)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        nonsense(key)
    return found


def text(fields: dict[str, Any], key: str) -> str:
    """Return the text in a field, "" if it is absent or null; raises as `inner`."""
    found = fields.get(key)
    if found is None:
        return ""
    if not isinstance(found, str):
        nonsense(key)
    return found


def nonsense(key: str) -> NoReturn:
    """Raise the error for a malformed field."""
    raise errors.ModelNonsenseError(f"the model's answer has no usable {key}", field=key)


def refusal(said: str) -> errors.ModelRefusedError:
    """Return the error for a model that refuses to answer."""
    more = f": {shortened(said)}" if said else ""
    return errors.ModelRefusedError(f"the model refuses to answer{more}", reason=CONTENT)


def counted(report: dict[str, Any]) -> Usage | None:
    """Return a usage report in normal form; None if there is none, or its form is unknown."""
    try:
        return normalise_usage(report) if report else None
    except errors.InvalidInputError:
        return None


def failure_of(told: object, status: int = 0) -> errors.ModelError:
    """Return the error that a server reported.

    Args:
        told: its `error`: fields, or a text.
        status: the status code; 0 if the error came within a stream.
    """
    fields = told if isinstance(told, dict) else {"message": told}
    kind = " ".join(str(fields.get(each) or "") for each in ("type", "code", "status"))
    said = shortened(str(fields.get("message") or kind or ""))
    more = f": {said}" if said else ""
    lowered = f"{kind} {said}".lower()
    spent = any(each in lowered for each in _SPENT)
    if status in (401, 403):
        return _refused(f"the model's server rejected the key ({status}){more}", KEY, status)
    if status == 429 or (not status and "rate_limit" in lowered):
        what = "the account is out of credit" if spent else "the model's server limits the rate"
        refused = _refused(f"{what} ({status or 'in its stream'}){more}", RATE, status)
        refused.data["retryable"] = not spent
        return refused
    if status in (408, 425) or status >= 500 or (not status and any(b in lowered for b in _BUSY)):
        return errors.ModelUnreachableError(
            f"the model's server failed ({status or 'in its stream'}){more}",
            status=status,
            retryable=True,
        )
    what = f" ({status})" if status else ""
    return _refused(f"the model's server rejected the request{what}{more}", REQUEST, status)


def shortened(said: str) -> str:
    """Return the start of a text on one line."""
    line = " ".join(said.split())
    return line if len(line) <= MAXIMUM_SAID else f"{line[:MAXIMUM_SAID]}…"


def _refused(message: str, reason: str, status: int) -> errors.ModelRefusedError:
    return errors.ModelRefusedError(message, reason=reason, status=status, retryable=False)

"""What the forms share: the shape of a form, and reading fields that a stranger wrote."""

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


class Hearing(ABC):
    """Makes one Completion of the events of a stream."""

    __slots__ = ()

    @abstractmethod
    def take(self, event: dict[str, Any]) -> str:
        """Return the text that an event adds.

        Raises:
            ModelError: it says that the model failed or refuses, or is of no known shape.
        """

    @abstractmethod
    def completion(self) -> Completion | None:
        """Return all that was heard; None when the end has not come."""


class Form(ABC):
    """One way to ask."""

    __slots__ = ()
    hearing: type[Hearing]

    @abstractmethod
    def address(self, url: str) -> str:
        """Return where requests go, below the address of the model."""

    def headers(self, key: str) -> dict[str, str]:
        """Return what a request says of who asks."""
        return {"authorization": f"Bearer {key}"} if key else {}

    @abstractmethod
    def fields(self, prompt: Prompt, name: str, url: str, *, stream: bool) -> dict[str, Any]:
        """Return the fields of a request."""

    @abstractmethod
    def read(self, answer: dict[str, Any]) -> Completion:
        """Return what a whole answer says.

        Raises:
            ModelError: it says that the model failed or refuses, or is of no known shape.
        """


def parsed(text: str | bytes) -> dict[str, Any]:
    """Return the fields of a JSON object.

    Raises:
        ModelNonsenseError: it is none.
    """
    try:
        found = json.loads(text if isinstance(text, str) else text.decode("utf-8-sig"))
    except (ValueError, RecursionError):  # also for what is not UTF-8
        found = None
    if not isinstance(found, dict):
        raise errors.ModelNonsenseError("the model's answer is not a JSON object")
    return found


def inner(fields: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the fields that a field holds; none when it is absent or null.

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
    """Return the objects that a field lists; errors as in `inner`."""
    found = fields.get(key)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        nonsense(key)
    return found


def text(fields: dict[str, Any], key: str) -> str:
    """Return the text of a field, "" when it is absent or null; errors as in `inner`."""
    found = fields.get(key)
    if found is None:
        return ""
    if not isinstance(found, str):
        nonsense(key)
    return found


def nonsense(key: str) -> NoReturn:
    """Refuse an answer for one of its fields."""
    raise errors.ModelNonsenseError(f"the model's answer has no usable {key}", field=key)


def refusal(said: str) -> errors.ModelRefusedError:
    """Return the error of a model that does not want to answer."""
    more = f": {shortened(said)}" if said else ""
    return errors.ModelRefusedError(f"the model refuses to answer{more}", reason=CONTENT)


def counted(report: dict[str, Any]) -> Usage | None:
    """Return the normal form of what was reported; None when nothing was, or nothing that can be understood."""
    try:
        return normalise_usage(report) if report else None
    except errors.InvalidInputError:
        return None


def failure_of(told: object, status: int = 0) -> errors.ModelError:
    """Return the error that a server's own report of one is.

    Args:
        told: its `error`: fields, or a text.
        status: of the answer; 0 when it began as a success.
    """
    fields = told if isinstance(told, dict) else {"message": told}
    kind = " ".join(str(fields.get(each) or "") for each in ("type", "code", "status"))
    said = shortened(str(fields.get("message") or kind or ""))
    more = f": {said}" if said else ""
    lowered = f"{kind} {said}".lower()
    spent = any(each in lowered for each in _SPENT)
    if status in (401, 403):
        return _refused(f"the model does not take the key ({status}){more}", KEY, status)
    if status == 429 or (not status and "rate_limit" in lowered):
        what = "the account has nothing left" if spent else "the model asks for fewer requests"
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
    return _refused(f"the model does not take the request{what}{more}", REQUEST, status)


def shortened(said: str) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(said.split())
    return line if len(line) <= MAXIMUM_SAID else f"{line[:MAXIMUM_SAID]}…"


def _refused(message: str, reason: str, status: int) -> errors.ModelRefusedError:
    return errors.ModelRefusedError(message, reason=reason, status=status, retryable=False)

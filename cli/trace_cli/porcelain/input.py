"""Input that people and scripts hand over: text, JSON and JSON lines.

Rule: a mistake is told with the place where it is: file, line and column.
"""

from __future__ import annotations

from trace_store import errors, providers
from trace_store.objects.message import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_cli.runtime import Invocation

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def text_from(invocation: Invocation, path: str) -> str:
    """Return the text of a file, or of standard input for "-"; one newline at its end does not count.

    Raises:
        UnreadableInputError: it cannot be read, is empty, or is not UTF-8 text.
    """
    data = invocation.read(path)
    name = _name(path)
    if not data:
        raise errors.UnreadableInputError(f"{name} is empty", path=path)
    text = _decoded(data, name)
    if "\0" in text:
        raise errors.UnreadableInputError(
            f"{name} is not text: it holds a zero byte at {text.index(chr(0))}", path=path
        )
    return text.removesuffix("\n").removesuffix("\r")


def argument_text(text: str) -> str:
    """Return text that was typed as an argument.

    Raises:
        UnreadableInputError: there is none, as when a variable is not set; or its bytes were not UTF-8, which Python
            hands over as lone surrogates.
    """
    if not text:
        raise errors.UnreadableInputError("the text is empty")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise errors.UnreadableInputError(
            f"the text is not UTF-8 at character {error.start}: give it in a file",
            column=error.start,
        ) from error
    return text


def parsed_json(data: bytes, name: str, first_line: int = 1) -> Any:
    """Return the value of a JSON text.

    Args:
        data: the text.
        name: what it is called in an error.
        first_line: the line of the input that the text begins on.

    Raises:
        UnreadableInputError: it is not JSON; `line` and `column` say where.
    """
    text = _decoded(data, name)
    if not text.strip():
        raise errors.UnreadableInputError(f"{name} is empty")
    import json

    try:
        return json.loads(text, parse_constant=_refused)
    except json.JSONDecodeError as error:
        line = error.lineno + first_line - 1
        raise errors.UnreadableInputError(
            f"{name} is not JSON: {error.msg} at line {line} column {error.colno}",
            line=line,
            column=error.colno,
        ) from error
    except (ValueError, RecursionError) as error:
        what = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise errors.UnreadableInputError(f"{name} is not JSON that can be used: {what}") from error


def messages_from(invocation: Invocation, path: str) -> list[Message]:
    """Return the messages of a JSON or JSONL file, or of standard input for "-".

    Raises:
        UnreadableInputError: it is not JSON; the message names line and column.
        InvalidMessageError: a message is of no known shape, or its role is unknown.
    """
    return providers.documents.parse_messages(_decoded(invocation.read(path), _name(path)))


def single_message(text: str) -> Message:
    """Return the one message that a JSON text holds; a list of parts is one, without a role of its own.

    Raises:
        UnreadableInputError: it is not JSON, or holds several messages.
        InvalidInputError: it is a list of something else than parts.
    """
    import json

    try:
        given = json.loads(text)
    except ValueError:
        given = None  # the parser says what is wrong
    is_parts = isinstance(given, list) and not any(
        isinstance(each, dict) and "role" in each for each in given
    )
    if is_parts:
        text = json.dumps({"role": "user", "parts": given})
    messages = providers.documents.parse_messages(text)
    if len(messages) != 1:
        raise errors.UnreadableInputError(f"one message is wanted, not {len(messages)}")
    return messages[0]


def _name(path: str) -> str:
    return "standard input" if path == "-" else repr(path)


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.removeprefix(BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise errors.UnreadableInputError(
            f"{name} is not text: no UTF-8 at byte {error.start}, line {line}", line=line
        ) from error


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number")

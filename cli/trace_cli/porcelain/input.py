"""Input from people and scripts: text, JSON and JSON lines.

Rule: an error names file, line and column.
"""

from __future__ import annotations

from trace_cli.failures import usage_error
from trace_store import Message, errors, providers
from trace_store.base.ident import count_of, is_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_cli.runtime import Invocation

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def text_from(invocation: Invocation, path: str) -> str:
    """Return the text of a file, or of standard input for "-", without a final newline.

    Raises:
        UnreadableInputError: the file cannot be read, is empty, or is not UTF-8 text.
    """
    data = invocation.read(path)
    name = _name(path)
    if not data:
        raise errors.UnreadableInputError(f"{name} is empty", path=path)
    text = _decoded(data, name)
    if "\0" in text:
        raise errors.UnreadableInputError(
            f"{name} is not text: zero byte at {text.index(chr(0))}", path=path
        )
    return text.removesuffix("\n").removesuffix("\r")


def argument_text(text: str) -> str:
    """Return text that was typed as an argument.

    Raises:
        UnreadableInputError: the text is empty, as when a shell variable is not set; or it is not UTF-8, which Python
            passes as lone surrogates.
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
    """Parse a JSON text.

    Args:
        data: the text.
        name: its name in errors.
        first_line: the line of the input on which the text begins.

    Raises:
        UnreadableInputError: the text is not JSON; `line` and `column` say where.
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
        raise errors.UnreadableInputError(f"{name} cannot be read as JSON: {what}") from error


def messages_from(invocation: Invocation, path: str) -> list[Message]:
    """Return the messages of a JSON or JSONL file, or of standard input for "-".

    Raises:
        UnreadableInputError: the file is not JSON; the message names line and column.
        InvalidMessageError: a message has an unknown format or role.
    """
    return providers.parse_messages(_decoded(invocation.read(path), _name(path)))


def single_message(text: str) -> Message:
    """Parse one message from JSON; a list of parts is a message without a role.

    Raises:
        UnreadableInputError: the text is not JSON, or has several messages.
        InvalidInputError: it is a list of something other than parts.
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
    messages = providers.parse_messages(text)
    if len(messages) != 1:
        raise errors.UnreadableInputError(f"expected one message, not {len(messages)}")
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
    raise ValueError(f"{constant} is not a JSON number")


def places_in(text: str, count: int, option: str) -> list[int]:
    """Return the places, from 0, that a text such as `1,3-5` or `all` names; `option` takes it."""
    if text == "all":
        return list(range(count))
    found: list[int] = []
    for piece in text.split(","):
        first, dash, last = (each.strip() for each in piece.partition("-"))
        last = last if dash else first
        if not (is_count(first) and is_count(last)):
            raise usage_error(f"{option} takes numbers such as 1,3-5, not {text[:40]!r}")
        if not 1 <= count_of(first) <= count_of(last) <= count:
            proposals = "1 proposal" if count == 1 else f"{count} proposals"
            raise usage_error(f"there are {proposals}; {piece.strip()} is not among them")
        found += range(count_of(first) - 1, count_of(last))
    return list(dict.fromkeys(found))

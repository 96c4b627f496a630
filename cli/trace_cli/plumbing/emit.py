"""`trace emit`: send a transient event to followers.

    trace emit KIND [KEY=VALUE ...]     one event; each value is text
    trace emit KIND --json              one event for each line of standard input, which is a JSON object

KIND is a name of lower-case letters, digits, `_`, `-` and `.`; `ref` is taken. An event has at most 64 KiB. It is
written without a sync, is not part of any history, and is dropped by the next seal. `trace follow` prints it; this
command prints nothing. If a line is invalid, the lines before it have already been emitted.
"""

from __future__ import annotations

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.plumbing.support import author_of, open_store, seal_if_due
from trace_cli.runtime import Invocation
from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


@takes(
    Option("--json", "json", "Read one event per line of standard input, as JSON"),
    Argument("KIND", "kind", "The kind of the event"),
    Argument("KEY=VALUE", "pairs", "The data of the event", ANY),
)
def run(invocation: Invocation, *, json: bool, kind: str, pairs: list[str]) -> int:
    """Emit one event, or one for each line of standard input."""
    if json and pairs:
        raise usage_error("--json reads the data from standard input only")
    with open_store(invocation) as store:
        author = author_of(invocation, store)
        for data in _parsed(invocation) if json else [_paired(pairs)]:
            store.emit(kind, data, author=author)
        seal_if_due(store)
    return 0


def _paired(pairs: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        key, is_pair, value = pair.partition("=")
        if not is_pair or not key:
            raise usage_error(f"not KEY=VALUE: {pair[:80]!r}")
        found[key] = value
    return found


def _parsed(invocation: Invocation) -> Iterator[dict[str, Any]]:
    import json

    for number, line in enumerate(invocation.lines(), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line.decode("utf-8"), parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise errors.UnreadableInputError(
                f"line {number} of standard input is not JSON: {error}", line=number
            ) from error
        if not isinstance(value, dict):
            raise errors.UnreadableInputError(
                f"line {number} of standard input is not a JSON object", line=number
            )
        yield value


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not a number")

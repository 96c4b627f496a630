"""`trace model`: the configured model, and a test of it."""

from __future__ import annotations

import time

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.porcelain.common import JSON
from trace_cli.render.escape import one_line, safe
from trace_cli.runtime import Invocation
from trace_cli.subcommands import Group
from trace_store import errors, llm
from trace_store.llm.contract import Completion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

HELP = """Without a subcommand, print the model's name, its address, and where its key comes from. Environment variables
(TRACE_MODEL, TRACE_MODEL_API, TRACE_MODEL_URL, TRACE_MODEL_KEY) override your own settings (`trace config model`); a
repository's settings are ignored. Only commands whose help says so ask a model.
"""
ELSEWHERE = "`trace config model.url URL` changes the address"
QUESTION = "Answer with the one word: ready"


@takes(JSON)
def model(invocation: Invocation) -> Results:
    """Show which model is asked when no subcommand is given."""
    settings = llm.read_settings(invocation.environment)
    record: dict[str, object] = {
        "name": settings.name,
        "api": settings.api,
        "url": settings.url,
        "key_from": settings.key_from or None,
        "timeout": settings.timeout,
        "deadline": settings.deadline,
        "attempts": settings.attempts,
    }
    shown = {**record, "key_from": settings.key_from or "none"}
    names = (f"{name.replace('_', ' '):<9} {one_line(str(each))}" for name, each in shown.items())
    yield record, names


@takes(
    Argument("PROMPT", "prompt", "The prompt", OPTIONAL, default=QUESTION),
    Option("--stream", "stream", "Print the answer as it arrives"),
    JSON,
)
def test(invocation: Invocation, *, prompt: str, stream: bool) -> Results:
    """Send the model a short prompt, and print its answer, time and usage.

    This needs no repository and writes nothing.
    """
    settings = llm.read_settings(invocation.environment)
    asked = llm.HttpModel(settings)
    pieces = stream and not invocation.as_json

    def heard(piece: str) -> None:
        invocation.write(safe(piece).encode("utf-8", "backslashreplace"))
        invocation.flush()

    start = time.monotonic()
    question = llm.Prompt((("user", prompt),))
    try:
        answer = asked(question, heard=heard if pieces else None)
    except errors.ModelError as error:
        if error.code == errors.ErrorCode.MODEL_UNREACHABLE:
            error.data.setdefault("hint", f"{settings.url or 'its vendor'} was asked; {ELSEWHERE}")
        raise
    milliseconds = round((time.monotonic() - start) * 1000)
    result = {
        "text": answer.text,
        "model": answer.model or None,
        "stop": answer.stop,
        "milliseconds": milliseconds,
        "usage": answer.usage.as_map() if answer.usage else None,
    }
    yield result, "" if pieces else safe(answer.text)
    if not invocation.as_json:
        by = _who(answer, settings.name)
        invocation.note(f"{by} answered in {milliseconds:,} ms{_used(answer)}")


def _who(answer: Completion, name: str) -> str:
    return one_line(answer.model or name, 100)


def _used(answer: Completion) -> str:
    if answer.usage is None:
        return "; it reported no usage"
    return f": {answer.usage.input_total:,} tokens in, {answer.usage.output_total:,} out"


GROUP = Group(HELP, {"test": test}, bare=model)

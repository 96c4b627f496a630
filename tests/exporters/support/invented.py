"""Invented sessions, likely and unlikely, in which each part is unique."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from hypothesis import strategies as st

from tests.support import message_strategies as strategies
from trace_store.base.ident import FixedClock
from trace_store.exporters.contract import ExportSession
from trace_store.exporters.session import read_session
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.repo.repository import Repo

# Beginnings of texts that some program understands.
TELLING = (
    "<command-name>/clear</command-name>",
    "[Request interrupted by user]",
    "<environment_context>\n",
    "# AGENTS.md instructions for /w",
    '{"output":"x","metadata":{"exit_code":1}}',
    '{"output":"x","metadata":{"exit_code":0}}',
    '{"output": ',
    "[tool error]",
    "<system>\n",
    "[image shown below]",
    "[",
    "{",
    '{"error":"x"}',
)
TOOL = {"name": "Bash", "description": "Run.", "input_schema": {"type": "object"}}


def tagged(messages: Sequence[Message], silent: int = 0) -> list[Message]:
    """Messages with unique parts; one result may be empty."""
    numbers = count(1)
    found = []
    for message in messages:
        parts = [_tagged(part, numbers, silent) for part in message.parts]
        fields = {name: getattr(message, name) for name in ("kind", "name", "model", "id")}
        found.append(Message(message.role, parts, **fields))
    return found


def _tagged(part: Part, numbers: Iterator[int], silent: int = 0) -> Part:
    number = next(numbers)
    if isinstance(part, Text):
        return Text(_tagged_text(part.text, number))
    if isinstance(part, Reasoning):
        return Reasoning(_tagged_text(part.text, number), part.signature)
    if isinstance(part, Image):
        if part.url is not None:
            return Image(part.media_type, part.data, _tagged_url(part.url, number))
        return Image(part.media_type, part.data and part.data + bytes([number % 256]))
    if isinstance(part, ToolCall):
        name = f"{part.name}_{number}" if part.name else ""
        return ToolCall(part.id, name, part.arguments, part.format)
    if isinstance(part, ToolResult):
        content = [_tagged(inner, numbers) for inner in part.content]
        telling = any(isinstance(inner, Text) and inner.text.strip() for inner in content)
        # Only one result may be empty, since a second would not be unique.
        if not telling and number != silent:
            content.append(Text(f"·{number}"))
        return ToolResult(part.call_id, content, part.is_error)
    return _tagged_block(part, number) if isinstance(part, Opaque) else part


def _tagged_text(text: str, number: int) -> str:
    blanks = " " * number if text else ""
    return f"{text} ·{number}" if text.strip() else text + blanks


def _tagged_url(url: str, number: int) -> str:
    if url.startswith("https:"):
        return f"{url}#{number}"
    if url.endswith("AAAA"):
        return url.removesuffix("AAAA") + base64.b64encode(bytes([0, 0, number % 256])).decode()
    return url


def _tagged_block(part: Opaque, number: int) -> Opaque:
    try:
        block = json.loads(part.data)
    except ValueError:
        return part
    if not isinstance(block, dict):
        return part
    for key in {"phase", "namespace"} & set(block):
        return Opaque(part.provider, json.dumps({**block, key: f"{block[key]}-{number}"}).encode())
    return Opaque(part.provider, json.dumps({**block, "n": number}).encode())


def _telling(message: Message) -> st.SearchStrategy[Message]:
    """The message, or one whose texts begin as some program's own do."""

    def changed(part: Part, start: str) -> Part:
        if isinstance(part, Text):
            return Text(start + part.text)
        if isinstance(part, ToolResult):
            return ToolResult(
                part.call_id, [changed(p, start) for p in part.content], part.is_error
            )
        return part

    def made(start: str) -> Message:
        fields = {name: getattr(message, name) for name in ("kind", "name", "model", "id")}
        return Message(message.role, [changed(p, start) for p in message.parts], **fields)

    return st.one_of(st.just(message), st.just(message), st.sampled_from(TELLING).map(made))


@st.composite
def contexts(draw: st.DrawFn, tell_apart: bool) -> list[Message]:
    """Messages of a session."""
    found = draw(st.one_of(strategies.likely_contexts, strategies.contexts))
    if not tell_apart:
        return [draw(_telling(message)) for message in found]
    return tagged([draw(_telling(message)) for message in found], draw(st.integers(0, 12)))


usages: st.SearchStrategy[dict[str, Any]] = st.builds(
    lambda i, r, w, o, t: {
        "input_total": i,
        "cache_read": r,
        "cache_write": w,
        "output_total": o,
        "reasoning": t,
        "source": "test",
    },
    *(st.sampled_from([0, 1, 1200]) for _ in range(4)),
    st.sampled_from([0, 0, 5]),
)


@st.composite
def sessions(draw: st.DrawFn, tell_apart: bool = True) -> ExportSession:
    """A session with everything that commits can record.

    Blocks have a key that no provider accepts, which makes them unique.
    """
    repo = Repo.memory(author="Ada", clock=FixedClock())
    messages = draw(contexts(tell_apart))
    if draw(st.booleans()):
        repo.set_tools([TOOL])
    addresses: list[Any] = []
    while messages:
        size = draw(st.sampled_from([1, 1, 1, 2, 3]))
        with repo.batch() as draft:
            draft.extend(messages[:size])
            if draw(st.integers(0, 2)) == 0:
                draft.record_usage(draw(usages))
        context = repo.compile()
        addresses += [message.address for message in context][len(addresses) :]
        messages = messages[size:]
    if not addresses:
        repo.append("user", "Nothing was said.")
        return read_session(repo.store, contexts=repo.contexts)
    what = draw(st.sampled_from(["", "", "", "compaction", "late", "ghost", "marks"]))
    if what in ("compaction", "late"):
        gone = addresses[: draw(st.integers(1, len(addresses)))] if what == "compaction" else []
        gone = gone or addresses[-1:]
        made = [Message("user", "This was said before.")]
        made += [Message("assistant", "Yes.")] if draw(st.booleans()) else []
        repo.replace(gone, made, reason="compaction")
    elif what == "ghost":
        repo.remove(draw(st.sampled_from(addresses)), ghost=True)
    elif what == "marks":
        repo.annotate(draw(st.sampled_from(addresses)), priority="pinned", labels=["plan", "x"])
    return read_session(repo.store, contexts=repo.contexts)

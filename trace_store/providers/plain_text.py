"""A plain transcript for people and for pipes.

Invariant: shows the context without repairs, and is stable: the same context gives the same text. Each message is a
heading and its parts, with an empty line between messages:

    [1] user · 4c1d22e0a9b7.0
    Plan the release.

    [2] assistant (claude-opus-4-6)
    (reasoning)
      The user wants a plan.
    I look at the tags first.
    → call toolu_01 Bash
      {"command":"git tag"}

    [3] tool
    ← error of toolu_01
      not a git repository

The heading has a number from one and, if present, the speaker, the model, the kind if it is not the usual one of the
role, the priority if it is not normal, `ghost` for a placeholder, the labels, and the address. Content of a part is
indented by two spaces; the text of a message is not, so that it can be copied. An image is shown as its media type and
size or its URL, an opaque part as its provider and size. Control characters are not escaped: the command line protects
terminals. Lone surrogates become U+FFFD.
"""

from __future__ import annotations

from trace_store.objects.message import default_kind
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.rendering import Options, Renderable, Repairs
from trace_store.providers.wire import replace_surrogates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def render_text(
    messages: Sequence[Renderable],
    tools: Sequence[dict[str, Any]],
    options: Options,
    repairs: Repairs,
) -> str:
    """Return the transcript without tools, ending in a newline unless empty."""
    shown = [
        _message(message, number, options.reasoning) for number, message in enumerate(messages, 1)
    ]
    return replace_surrogates("\n".join(shown))


def heading(message: Renderable, number: int) -> str:
    """Return the first line of a message."""
    words = [f"[{number}] {message.role}"]
    if message.name:
        words.append(message.name)
    if message.model:
        words.append(f"({message.model})")
    if message.kind != default_kind(message.role, message.parts):
        words.append(message.kind)
    line = " ".join(words)
    priority = getattr(message, "priority", "normal")
    notes = [priority] if priority != "normal" else []
    notes += ["ghost"] if getattr(message, "ghost", False) else []
    notes += sorted(getattr(message, "labels", ()))
    address = getattr(message, "address", None)
    if address is not None:
        notes.append(str(address))
    return " · ".join([line, *notes])


def _message(message: Renderable, number: int, reasoning: bool) -> str:
    lines = [heading(message, number)]
    for part in message.parts:
        if isinstance(part, Text):
            lines.append(part.text)
        elif reasoning or not isinstance(part, Reasoning):
            lines += _part(part)
    return "".join([line if line.endswith("\n") else f"{line}\n" for line in lines])


def _part(part: Part) -> list[str]:
    if isinstance(part, Text):
        return _indented(part.text)
    if isinstance(part, Reasoning):
        return ["(reasoning)", *_indented(part.text)]
    if isinstance(part, ToolCall):
        return [f"→ call {part.id} {part.name}", *_indented(part.arguments)]
    if isinstance(part, ToolResult):
        inner = [line for piece in part.content for line in _inner(piece)]
        return [f"← {'error' if part.is_error else 'result'} of {part.call_id}", *inner]
    if isinstance(part, Image):
        return [f"(image {_image(part)})"]
    if isinstance(part, Opaque):
        return [f"(opaque {part.provider}, {len(part.data)} bytes)"]
    return [f"({part.type})"]


def _inner(part: Part) -> list[str]:
    lines = _part(part)
    return lines if isinstance(part, Text) else _indented("\n".join(lines))


def _image(image: Image) -> str:
    if image.url is not None:
        return image.url
    return f"{image.media_type or 'of unknown type'}, {len(image.data or b'')} bytes"


def _indented(text: str) -> list[str]:
    # Only line feeds end a line here, not a form feed or U+2028.
    return (
        [f"  {line}" if line else "" for line in text.removesuffix("\n").split("\n")]
        if text
        else []
    )

"""Parts of a message as lines of text."""

from __future__ import annotations

from trace_store.objects.parts import Data, Image, Opaque, Reasoning, Text, ToolCall, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.objects.parts import Part


def lines_of_parts(parts: Sequence[Part], indent: str = "") -> Iterator[str]:
    """Yield the lines of parts, not escaped; a part without text yields a placeholder."""
    for part in parts:
        if isinstance(part, Data):
            yield f"{indent}[data {part.schema}]"
            yield from _lines(part.indented, indent)
        elif isinstance(part, Text):
            yield from _lines(part.text, indent)
        elif isinstance(part, ToolCall):
            yield f"{indent}[tool call {part.name} {part.id}]"
            yield from _lines(part.arguments, indent)
        elif isinstance(part, ToolResult):
            yield f"{indent}[tool result {part.call_id}{', failed' if part.is_error else ''}]"
            yield from lines_of_parts(part.content, indent + "  ")
        elif isinstance(part, Reasoning):
            yield f"{indent}[reasoning]"
            yield from _lines(part.text, indent)
        elif isinstance(part, Image):
            what = part.url or f"{part.media_type}, {len(part.data or b''):,} bytes"
            yield f"{indent}[image {what}]"
        elif isinstance(part, Opaque):
            yield f"{indent}[{part.provider} data, {len(part.data):,} bytes]"
        else:
            yield f"{indent}[{part.type}]"


def _lines(text: str, indent: str) -> Iterator[str]:
    for line in text.rstrip("\n").split("\n"):
        yield indent + line

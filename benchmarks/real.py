"""The messages of real transcripts, which an importer of Trace knows how to read.

Rule: a message is told in full, in the form that `transcripts` makes, with three more types of part. Bytes are text
in base64, as JSON has them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

from benchmarks.model import Turn
from trace_store.context.compiled import CompiledMessage
from trace_store.contracts.ref_names import BRANCHES
from trace_store.exporters.session import read_session
from trace_store.importers.import_paths import import_paths
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.repo.repository import Repo
from trace_store.writer import Writer


def real_turns(paths: Sequence[str]) -> Iterator[Turn]:
    """Yield the messages of all sessions in files, and in and below folders; those that a context hides too.

    Raises:
        UnreadableInputError: a named file is not there, or of no known format.
    """
    with Repo.memory() as repo:
        import_paths(Writer(repo.store), paths, source=False)
        for ref, _ in list(repo.store.refs.iterate(BRANCHES)):
            for turn in read_session(repo.store, ref, hidden=True).turns:
                yield as_turn(turn.message)


def as_turn(message: Message | CompiledMessage) -> Turn:
    """Return a message as plain JSON."""
    content = [form for part in message.parts for form in _forms(part)]
    return {"id": message.id, "role": message.role, "content": content}


def _forms(part: Part) -> list[dict[str, str]]:
    """Return one part; a tool result with several texts, or images in it, becomes several."""
    if isinstance(part, Text):
        return [{"type": "text", "text": part.text}]
    if isinstance(part, ToolCall):
        call = {"id": part.id, "name": part.name, "arguments": part.arguments}
        return [{"type": "tool_call", **call}]
    if isinstance(part, ToolResult):
        texts = [inner.text for inner in part.content if isinstance(inner, Text)]
        others = [inner for inner in part.content if not isinstance(inner, Text)]
        found = {"type": "tool_result", "call_id": part.call_id, "content": "\n".join(texts)}
        return [found, *(form for other in others for form in _forms(other))]
    if isinstance(part, Reasoning):
        return [{"type": "reasoning", "text": part.text, "signature": part.signature or ""}]
    if isinstance(part, Image):
        data = base64.b64encode(part.data or b"").decode()
        return [{"type": "image", "media_type": part.media_type, "data": data or part.url or ""}]
    if isinstance(part, Opaque):
        data = base64.b64encode(part.data).decode()
        return [{"type": "opaque", "provider": part.provider, "data": data}]
    raise TypeError(f"not a message part: {type(part).__name__}")

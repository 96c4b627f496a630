"""What an import could not read of messages that it made.

Rule: looks at planned messages alone, so that every format is counted alike.
"""

from __future__ import annotations

from collections.abc import Iterable

from trace_store.context.form_fields import UNREAD
from trace_store.context.render.media import SENDERS
from trace_store.importers.contract import PlannedCommit, PlannedMessage, Skip
from trace_store.objects.parts import Opaque, Part, ToolResult

NOT_READ = "not-read"
"""The reason that the report gives for a block that is kept as it is, and shown to no model."""

_EXCERPT_BYTES = 60


class Losses:
    """Counts what no model will be shown.

    Attributes:
        unread: blocks that could not be read.
        hidden: messages of which no part can be shown to any model.
        skips: the place of each of these blocks.
    """

    def __init__(self) -> None:
        self.unread = 0
        self.hidden = 0
        self.skips: list[Skip] = []

    def note(self, commit: PlannedCommit) -> None:
        """Count the losses in the messages of one new commit."""
        for message in commit.messages:
            for number, part in enumerate(message.parts, 1):
                for block in _unread(part):
                    self.unread += 1
                    self.skips.append(Skip(_line(commit), NOT_READ, _place(message, number, block)))
            self.hidden += bool(message.parts) and all(map(_is_hidden, message.parts))


def _unread(part: Part) -> Iterable[Opaque]:
    if isinstance(part, ToolResult):
        return [each for inner in part.content for each in _unread(inner)]
    return [part] if isinstance(part, Opaque) and part.provider == UNREAD else []


def _is_hidden(part: Part) -> bool:
    return isinstance(part, Opaque) and part.provider not in SENDERS


def _line(commit: PlannedCommit) -> int:
    lines = [record.line for record in commit.records if record.parts or len(commit.records) == 1]
    return lines[0] if lines else 0


def _place(message: PlannedMessage, number: int, block: Opaque) -> str:
    excerpt = block.data[:_EXCERPT_BYTES].decode("utf-8", "replace")
    more = "…" if len(block.data) > _EXCERPT_BYTES else ""
    count = len(message.parts)
    return f"part {number} of {count} of a message ({message.role}): {excerpt}{more}"

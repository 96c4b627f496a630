"""Records that make one commit, and the round of commits around one API message.

Rule: one API message is one message, however its lines are spread over the file, and the results of its parallel calls
are one message behind it. So the lines of a round are gathered, and leave in the order in which a model was shown
them: the API message, the results, and then whatever the user and the harness said.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trace_store.importers.contract import PlannedMessage, Record
from trace_store.importers.formats.claude_code.normalising import (
    AUTHOR,
    is_harness_text,
    observed_usage,
)
from trace_store.importers.normalise import author_of, storable_name
from trace_store.objects.parts import Part, ToolResult
from trace_store.values import field, mutable

ASSISTANT = "assistant"
RESULTS = "results"
TURN = "turn"
LATE = "late"
MICROCOMPACTION = "microcompaction"


@mutable
class Group:
    """The records of one commit to be.

    Attributes:
        kind: one of the constants above.
        number: of the planned commit.
        key: what the commit is known by.
        time: of its first record, or None.
        message_id: of an API message.
        prompt: whether a turn was begun by the user, and not by the harness.
        restart: whether the context begins anew with it.
        said: the records that say something, in order.
        records: these and the others that it carries along, in the order of the file.
        agents: ids of subagents whose results it holds.
    """

    kind: str
    number: int
    key: str
    time: int | None
    message_id: str = ""
    prompt: bool = False
    restart: bool = False
    said: list[Record] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)

    def author(self) -> str:
        """Return who the commit is from."""
        if self.kind == ASSISTANT:
            return author_of(AUTHOR, _model(self.said[-1].data))
        if self.kind == TURN and self.prompt:
            return author_of(AUTHOR, "user")
        return author_of(AUTHOR, "")

    def messages(self) -> tuple[PlannedMessage, ...]:
        """Return the messages the commit adds."""
        if self.kind == ASSISTANT:
            return (self._api_message(),)
        if self.kind in (RESULTS, LATE):
            parts = [part for record in self.said for part in record.parts]
            results = [part for part in parts if isinstance(part, ToolResult)]
            others = [part for part in parts if not isinstance(part, ToolResult)]
            return (PlannedMessage("tool", (*results, *others), kind="tool_io"),)
        return tuple(turn_message(record) for record in self.said)

    def usage(self) -> dict[str, int | str]:
        """Return what the provider reported: the last line of an API message has the final numbers."""
        if self.kind != ASSISTANT:
            return {}
        message = self.said[-1].data["message"]
        return observed_usage(message, final=message.get("stop_reason") is not None)

    def call_ids(self) -> Iterator[str]:
        """Yield the ids of the calls whose results it holds."""
        for record in self.said:
            for part in record.parts:
                if isinstance(part, ToolResult):
                    yield part.call_id

    def _api_message(self) -> PlannedMessage:
        parts: list[Part] = [part for record in self.said for part in record.parts]
        data = self.said[-1].data
        labels: tuple[str, ...] = ()
        if data.get("isApiErrorMessage") is True:
            labels = ("api-error",)
        return PlannedMessage(
            "assistant",
            tuple(parts),
            model=_model(data),
            id=storable_name(data["message"].get("id")),
            labels=labels,
            # An error of the API is shown to the user in the model's place, and never sent to a model.
            skipped=bool(labels),
        )


def turn_message(record: Record) -> PlannedMessage:
    """Return the message of a user record, an attachment or a local command."""
    data = record.data
    kind = ""
    if data.get("type") != "user" or data.get("isMeta") is True:
        kind = "instruction"
        if data.get("type") == "system" or _attachment_type(data) == "queued_command":
            kind = "freeform" if data.get("type") == "system" else ""
    elif is_harness_text(record.parts):
        kind = "freeform"
    only_shown = data.get("isVisibleInTranscriptOnly") is True and not data.get("isCompactSummary")
    return PlannedMessage("user", record.parts, kind=kind, skipped=only_shown)


def _attachment_type(data: dict[str, Any]) -> Any:
    attachment = data.get("attachment")
    return attachment.get("type") if isinstance(attachment, dict) else None


def _model(data: dict[str, Any]) -> str:
    return storable_name(data["message"].get("model"))

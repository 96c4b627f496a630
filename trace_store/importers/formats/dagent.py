"""dagent: the chats of its sessions, one JSON document each.

Three forms: the chat of a session (`chat_ID.json`), the chat of a feature (`chat.json`), and the messages of a task
(`session.json`). What else a session has, such as its state and its summary, is in files beside its chat, which
`sessions.dagent` reads. Uses of tools have no ids; they are numbered. Images are files that a message of a feature
names; those below the feature's folder are imported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trace_store.base.oid import digest
from trace_store.disk.files import Disk, read_file
from trace_store.errors import StorageError
from trace_store.importers.contract import NOTHING, PlannedCommit, PlannedMessage
from trace_store.importers.convert import storable_name, text_parts, time_of_text
from trace_store.importers.json_records import compact
from trace_store.importers.sniff import file_shape
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import DocumentReader, Event, Turn
from trace_store.objects.parts import Image, Part, Text, ToolCall, ToolResult
from trace_store.providers.media_facts import image_facts
from trace_store.transcripts.sources import Record

NAME = "dagent"
SUFFIXES = (".json",)
CHAT = "chat_"
"""File name prefix of a session's chat, before the session id."""
INTERNAL = "internal"
"""Label of messages that dagent hides from users."""
MAXIMUM_PARTS = 10_000
MAXIMUM_IMAGE_BYTES = 20 << 20
_FILE = re.compile(r"\[file: (.+)\]")
_TO_HARNESS, _FROM_HARNESS = "task_to_harness", "harness_to_task"
_KEYS = frozenset({"id", "role", "content", "timestamp", "metadata"})
_ROLES = ("user", "assistant", "system")


class DagentReader(DocumentReader):
    """Reader of one chat."""

    AGENT = NAME
    LISTS = ("messages", "entries")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._calls = 0
        if name.startswith(CHAT):
            self.state["session"] = name.removeprefix(CHAT)

    def begin(self, fields: Mapping[str, Any]) -> None:
        task, agent = storable_name(fields.get("taskId")), storable_name(fields.get("agentId"))
        if task:
            self.state["session"] = "-".join(filter(None, (agent, task)))

    def read(self, record: Record) -> Iterator[Event]:
        data = record.data
        if "session" not in self.state:
            self.state["session"] = f"chat-{digest(record.raw).hex()[:8]}"
        role = self._role(data)
        more = data.get("metadata")
        more = more if isinstance(more, dict) else {}
        parts: list[Part] = [*text_parts(data.get("content"))]
        media = data.get("media")
        if isinstance(media, list):
            parts += [Text(f"[file: {each}]") for each in media if isinstance(each, str)]
        calls = [call for use in _uses(more) for call in self._call(use)]
        parts += [call for call, _ in calls]
        if not parts or not role:
            return
        labels = [INTERNAL] if more.get("internal") is True else []
        number = more.get("iteration", more.get("iterationNumber"))
        if type(number) is int:
            labels.append(f"iteration-{number}")
        kind = "instruction" if role == "system" else ""
        messages = [
            PlannedMessage("assistant" if calls else role, tuple(parts), kind, labels=tuple(labels))
        ]
        results = tuple(result for _, result in calls if result is not None)
        if results:
            messages.append(PlannedMessage("tool", results))
        time = more.get("originalTimestamp") or data.get("timestamp")
        yield Turn(
            tuple(messages),
            storable_name(data.get("id")),
            time_of_text(time) if isinstance(time, str) else None,
            "user" if role == "user" else "",
            report_of(more.get("tokens")) if role == "assistant" else NOTHING,
        )

    def label(self, record: Record) -> str:
        return self._role(record.data) or super().label(record)

    @staticmethod
    def _role(data: Mapping[str, Any]) -> str:
        direction = data.get("direction")
        if direction in (_TO_HARNESS, _FROM_HARNESS):
            return "assistant" if direction == _TO_HARNESS else "user"
        role = data.get("role")
        return role if role in _ROLES else ""

    def _call(self, use: Mapping[str, Any]) -> Iterator[tuple[ToolCall, ToolResult | None]]:
        """Yield the call of a use of a tool, and its result if it has one."""
        name = storable_name(use.get("name"))
        if not name:
            return
        self._calls += 1
        call, result = f"call-{self._calls}", use.get("result")
        said = _said(result)
        yield (
            ToolCall(call, name, compact(use.get("input", {}))),
            None if result is None else ToolResult(call, said),
        )


def _uses(more: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the uses of tools in the metadata of a message, in one form."""
    given = more.get("toolUses")
    uses = given[:MAXIMUM_PARTS] if isinstance(given, list) else [more.get("toolUse")]
    yield from (each for each in uses if isinstance(each, dict))
    if "toolName" in more:
        yield {
            "name": more["toolName"],
            "input": more.get("toolInput", {}),
            "result": more.get("toolResult"),
        }


def _said(result: object) -> str | Sequence[Part]:
    """Return the result of a tool use: its text, its text blocks, or its JSON."""
    if isinstance(result, str):
        return result
    blocks = result[:MAXIMUM_PARTS] if isinstance(result, list) else []
    texts = [each for each in map(_block_text, blocks) if each is not None]
    if texts and len(texts) == len(blocks):
        return [Text(each) for each in texts]
    return compact(result)


def _block_text(block: object) -> str | None:
    """Return the text of a block with only a type and a text; else None."""
    if not isinstance(block, dict) or block.keys() != {"type", "text"} or block["type"] != "text":
        return None
    return block["text"] if isinstance(block["text"], str) else None


def report_of(tokens: object) -> Mapping[str, int | str]:
    """Return the usage report from a message's `tokens`; empty if it has none."""
    given = tokens if isinstance(tokens, dict) else {}
    taken, output = given.get("input"), given.get("output")
    if type(taken) is not int or type(output) is not int or not 0 < taken < 1 << 53 > output >= 0:
        return NOTHING
    return {"input_total": taken, "output_total": output, "source": NAME}


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are a chat of dagent."""
    for name in DagentReader.LISTS:
        form = file_shape(head).single(name)
        items = form.get(name)
        if items == [] and name == "messages" and type(form.get("totalMessages")) is int:
            return True  # all are compacted, or the first exceeds the sniffed bytes
        first = items[0] if isinstance(items, list) and items else None
        if not isinstance(first, dict):
            continue
        if name == "entries":
            return {"role", "content", "timestamp"} <= first.keys()
        if first.get("direction") in (_TO_HARNESS, _FROM_HARNESS):
            return True
        # What follows the messages is missing in a file that was cut off.
        if {"id", "role", "content", "timestamp"} <= first.keys() <= _KEYS:
            return "totalMessages" in form or form.keys() == {name}
    return False


class DagentFormat(TurnFormat):
    """The registry row, which also reads images."""

    def with_media(self, planned: PlannedCommit, path: str, disk: Disk) -> PlannedCommit:
        """Return a commit with the images that its messages name."""
        if not any(
            isinstance(each, Text) and _FILE.fullmatch(each.text)
            for m in planned.messages
            for each in m.parts
        ):
            return planned
        messages = [
            message._replace(parts=tuple(_with_images(message.parts, path, disk)))
            for message in planned.messages
        ]
        return planned._replace(messages=tuple(messages))


def _with_images(parts: Sequence[Part], path: str, disk: Disk) -> Iterator[Part]:
    for part in parts:
        yield part
        named = _FILE.fullmatch(part.text) if isinstance(part, Text) else None
        if named and (image := _image(named[1], path, disk)) is not None:
            yield image


def _image(name: str, chat: str, disk: Disk) -> Image | None:
    """Return an image below the folder of a feature, whose chat is there or in a folder of it; None if it is none."""
    name = os.path.normpath(name.replace("\\", "/"))
    if os.path.isabs(name) or name.split(os.sep)[0] == os.pardir:
        return None
    chats = os.path.dirname(os.path.realpath(chat))
    for folder in (chats, os.path.dirname(chats)):
        path = os.path.join(folder, name)
        if os.path.realpath(path) != path:
            continue  # a link could lead to any file
        try:
            data = read_file(disk, path, limit=MAXIMUM_IMAGE_BYTES)
        except StorageError:
            continue
        if data and (facts := image_facts(data)) is not None:
            return Image(facts.media_type, data)
    return None


FORMAT = DagentFormat(NAME, SUFFIXES, recognises, DagentReader, reads_document=lambda head: True)

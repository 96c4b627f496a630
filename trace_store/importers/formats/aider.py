"""aider: `.aider.chat.history.md`, the chats of a project as Markdown.

A line of the user starts with `####`, one of the program with `>`; both end in two spaces. Everything else is an
answer. A heading with a time starts a chat, which begins with an empty context. Files, instructions and the map of the
repository, which the model is shown as well, are not in the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from trace_store.base.environment import Environment
from trace_store.disk.files import Disk
from trace_store.importers.contract import PlannedMessage, Skip
from trace_store.importers.convert import ref_component, storable_name, time_of_text
from trace_store.importers.input_files import InputLine
from trace_store.importers.json_records import NOT_A_RECORD, record_of
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import Event, Switch, Turn, TurnReader
from trace_store.objects.parts import Text
from trace_store.transcripts.sources import Record

NAME = "aider"
FILE = ".aider.chat.history.md"
SUFFIXES = (".chat.history.md",)
CHAT, USER, PROGRAM, ANSWER = "chat", "user", "program", "assistant"
_CHAT = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_HEADING = re.compile(rb"^# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", re.MULTILINE)
_MARKED = re.compile(rb"^(?:>|####) .*  \r?$", re.MULTILINE)
_MODEL = re.compile(r"(?:Main model|Model|Models):? (\S+) with ")
_SENT = ("/architect", "/ask", "/code", "/context", "/help")
"""Commands whose text is sent to the model; others only change the chat."""
_CLEARING = ("/clear", "/reset")


class AiderReader(TurnReader):
    """Reader of one file.

    State: `session`; `chats`, the number of chats; `model` and `time`, those of the current one.
    """

    AGENT = NAME

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.state = {"chats": 0, "model": "", "time": None}

    def records(self, line: InputLine) -> Iterator[Record | Skip]:
        """Return the blocks of the file: adjacent lines of one kind."""
        data = line.data or b""
        kind, start, at, number, first = "", 0, 0, line.number, line.number
        for raw in data.splitlines(keepends=True) if b"\r" not in data else _lines(data):
            now = _kind(raw, kind)
            if now != kind and at > start:
                yield _block(line, first, start, at, kind)
            if now != kind:
                kind, start, first = now, at, number
            at += len(raw)
            number += 1
        if at > start:
            yield _block(line, first, start, at, kind)

    def read(self, record: Record) -> Iterable[Event]:
        kind, text = record.data["type"], record.data["text"]
        if kind == CHAT:
            return self._begin(text)
        if kind == PROGRAM:
            model = _MODEL.search(text)
            if model is not None:
                self.state["model"] = storable_name(model[1])
            return ()
        content = text.strip("\r\n")
        if kind == USER:
            content = "\n".join(each[5:].rstrip() for each in content.splitlines())
        if not content.strip():
            return ()
        self.state["chats"] = self.state["chats"] or 1
        turn = self._turn(kind, content)
        if kind == USER and content.split(maxsplit=1)[0] in _CLEARING:
            self.state["chats"] += 1
            return (self._switch(), turn)
        return (turn,)

    def _turn(self, kind: str, content: str) -> Turn:
        time = self.state["time"]
        if kind == ANSWER:
            model = self.state["model"]
            return Turn(
                (PlannedMessage("assistant", (Text(content),), model=model),),
                time=time,
                author=model,
            )
        command = content.split(maxsplit=1)[0] if content.startswith("/") else ""
        skipped = bool(command) and command not in _SENT
        message = PlannedMessage(
            "user", (Text(content),), kind="freeform" if skipped else "", skipped=skipped
        )
        return Turn((message,), time=time, author="user")

    def _begin(self, text: str) -> Iterator[Event]:
        match = _CHAT.match(text)
        started = match[1] if match is not None else ""
        self.state["time"] = time_of_text(f"{started.replace(' ', 'T')}Z")
        if not self.state["chats"]:
            self.state["session"] = ref_component(started.replace(" ", "T").replace(":", "-"))
        self.state["chats"] += 1
        self.state["model"] = ""
        if self.state["chats"] > 1:
            yield self._switch()

    def _switch(self) -> Switch:
        return Switch(f"conversations/{self.state['chats']}")


def _lines(data: bytes) -> list[bytes]:
    """Return the lines with their ends; a carriage return alone ends none."""
    return [line + b"\n" for line in data.split(b"\n")[:-1]] + [
        last for last in (data.rpartition(b"\n")[2],) if last
    ]


def _kind(raw: bytes, before: str) -> str:
    """Return the kind of a line; a blank one ends what the user said, and else belongs to what is before it."""
    line = raw.rstrip(b"\r\n")
    if line.startswith(b"# aider chat started at "):
        return CHAT
    if line.endswith(b"  "):
        if line.startswith(b"> "):
            return PROGRAM
        if line.startswith(b"#### "):
            return USER
    if not line and before not in ("", USER):
        return before
    return ANSWER


def _block(line: InputLine, number: int, start: int, end: int, kind: str) -> Record | Skip:
    data = (line.data or b"")[start:end]
    if b"\0" in data:
        return Skip(number, NOT_A_RECORD, "the text holds NUL bytes")
    text = data.decode("utf-8", "replace")
    return record_of(line, number, start, end, {"type": kind, "text": text})


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are a chat history of aider."""
    if _HEADING.search(head) is None:
        return False
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"# aider") or (
        _MARKED.search(head) is not None
    )


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the chat history of a project, which is in its folder."""
    path = os.path.join(project_dir, FILE)
    return [path] if os.path.isfile(path) else []


FORMAT = TurnFormat(
    NAME, SUFFIXES, recognises, AiderReader, reads_document=lambda head: True, finds=finds
)

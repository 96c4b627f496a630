"""An invented session in Claude Code's format, and ways to break such files.

Rule: each way is one function of the healthy lines, named for what happened to the file; beside it stands what a repair
must find. Nothing here knows how Trace finds it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.importers.support.transcripts import Transcript, call, text, thinking

OTHER_SESSION = "0a1b2c3d-2222-4222-8333-944455556666"
SIGNATURE = "c2ln" * 20
Lines = list[bytes]


def healthy(session: str = "") -> Transcript:
    """Two questions, four tool calls, two of them at once, in a file that nothing is wrong with."""
    t = Transcript(session) if session else Transcript()
    t.user("The build fails since yesterday. Find out why, please.")
    t.assistant("msg_1", thinking("The log of the build comes first."))
    t.assistant("msg_1", call("toolu_log", "Read", file_path="/w/app/build.log"))
    t.result("toolu_log", "error: no rule to make target 'parser.o'")
    t.assistant("msg_2", text("The rule for the parser is gone. I look for it."))
    t.assistant("msg_2", call("toolu_make", "Read", file_path="/w/app/Makefile"))
    first = t.last
    t.assistant("msg_2", call("toolu_find", "Grep", pattern="parser"))
    second = t.last
    t.result("toolu_make", "all: app\napp: main.o\n\tcc -o app main.o", parent=first)
    t.result("toolu_find", "src/parser.c:1:/* the parser */", parent=second)
    t.assistant("msg_3", text("The Makefile lost it."), stop="end_turn", output=12)
    t.user("Put it back.")
    t.assistant("msg_4", thinking("One line in the Makefile."))
    t.assistant("msg_4", call("toolu_edit", "Edit", file_path="/w/app/Makefile", old="", new=""))
    t.result("toolu_edit", "the file was changed")
    t.assistant("msg_5", text("The rule is back."), stop="end_turn", output=7)
    return t


def lines() -> Lines:
    return healthy().data.splitlines(keepends=True)


def with_record(line: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return a line whose record was changed in place."""
    record = json.loads(line)
    change(record)
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def with_content(line: bytes, content: Any) -> bytes:
    return with_record(line, lambda record: record["message"].update(content=content))


def find(of: Lines, mark: str) -> int:
    """Return the number of the first line that holds a mark."""
    return next(number for number, line in enumerate(of) if mark.encode() in line)


def fresh(line: bytes) -> bytes:
    """Return a line under ids of its own, as a fork writes it."""
    return re.sub(rb'"(parentUuid|uuid)":"0', rb'"\1":"f', line)


def cut_in_a_line(of: Lines) -> Lines:
    """The disk was full, or the machine went down, while a result was written."""
    kept = of[: find(of, '"tool_use_id":"toolu_edit"') + 1]
    return [*kept[:-1], kept[-1][: len(kept[-1]) // 2]]


def result_lost(of: Lines) -> Lines:
    del of[find(of, '"tool_use_id":"toolu_make"')]
    return of


def call_lost(of: Lines) -> Lines:
    """The writer dropped the line of one of two parallel calls."""
    del of[find(of, '"id":"toolu_find"')]
    return of


def result_before_its_call(of: Lines) -> Lines:
    result = of.pop(find(of, '"tool_use_id":"toolu_edit"'))
    of.insert(find(of, "One line in the Makefile."), result)
    return of


def result_after_the_next_prompt(of: Lines) -> Lines:
    """Two lines of a round come after later messages, and have lost their links."""
    at = find(of, '"tool_use_id":"toolu_log"')
    of.insert(find(of, "Put it back.") + 1, of.pop(at))
    return of


def lines_twice(of: Lines) -> Lines:
    """A stretch was written twice, ids and all."""
    return [*of[:8], *of[4:8], *of[8:]]


def stretch_forked(of: Lines) -> Lines:
    """A fork left a copy of the session under new ids; the original continues."""
    at = find(of, "Put it back.")
    return [*of[:at], *map(fresh, of[:at]), *of[at:]]


def history_written_again(of: Lines) -> Lines:
    """What was said so far was written again behind itself under new ids, and the session went on from there."""
    at = find(of, "Put it back.")
    again = [fresh(line) for line in of]
    parent = json.loads(of[at - 1])["uuid"]
    again[0] = with_record(again[0], lambda record: record.update(parentUuid=parent))
    return [*of[:at], *again]


def retry_forked(of: Lines) -> Lines:
    """A retry wrote the last answer again, under an id of its own."""
    return [*of, fresh(of[-1])]


def two_terminals(of: Lines) -> Lines:
    """Two sessions were written into one file, line by line."""
    other = healthy(OTHER_SESSION)
    theirs = [
        re.sub(rb"(toolu|msg)_", rb"\1_other_", fresh(line))
        for line in other.data.splitlines(keepends=True)
    ]
    return [line for pair in zip(of, theirs, strict=True) for line in pair]


def call_id_reused(of: Lines) -> Lines:
    return [line.replace(b"toolu_edit", b"toolu_log") for line in of]


def empty_content(of: Lines) -> Lines:
    """An API message came back without a block; nothing of it is said."""
    of.append(with_content(of[-1], []).replace(b"msg_5", b"msg_6"))
    return of


def empty_text(of: Lines) -> Lines:
    at = find(of, "The rule is back.")
    of[at] = with_content(of[at], [text("")])
    return of


def blank_text(of: Lines) -> Lines:
    at = find(of, '"id":"toolu_edit"')
    of.insert(at, fresh(with_content(of[at], [text("\n\n")])))
    return of


def not_utf8(of: Lines) -> Lines:
    at = find(of, '"tool_use_id":"toolu_log"')
    of[at] = of[at].replace(b"error", b"err\xff\xfe")
    return of


def two_on_a_line(of: Lines) -> Lines:
    """The writer lost a newline."""
    at = find(of, '"tool_use_id":"toolu_log"')
    of[at] = of[at].rstrip(b"\n")
    return of


def block_of_zeros(of: Lines) -> Lines:
    """After a power cut, a block of the file holds zeros: the end of one line, two whole ones, the beginning of one."""
    start = find(of, '"tool_use_id":"toolu_log"')
    data = b"".join(of)
    offset = sum(map(len, of[:start])) + 40
    end = sum(map(len, of[: start + 3])) + 40
    return [data[:offset] + bytes(end - offset) + data[end:]]


def chain_broken(of: Lines) -> Lines:
    """Lines in the middle hang on a parent that is not there."""
    at = find(of, '"id":"toolu_make"')
    of[at] = with_record(of[at], lambda record: record.update(parentUuid="gone"))
    return of


def tail_of_another(of: Lines) -> Lines:
    """The end of another session's file was appended, from within one of its turns."""
    other = healthy(OTHER_SESSION).data.splitlines(keepends=True)
    tail = other[find(other, '"tool_use_id":"toolu_make"') :]
    return [*of, *(re.sub(rb"(toolu|msg)_", rb"\1_other_", fresh(line)) for line in tail)]


def head_lost(of: Lines) -> Lines:
    """The beginning is missing; the rest starts within a turn."""
    return of[find(of, '"tool_use_id":"toolu_log"') :]


def answer_first(of: Lines) -> Lines:
    """The very first prompt is gone."""
    return of[1:]


def arguments_torn(of: Lines) -> Lines:
    """The arguments of a call were still text when it was written down."""
    at = find(of, '"id":"toolu_edit"')
    block = {"type": "tool_use", "id": "toolu_edit", "name": "Edit", "input": '{"file_path": "/w'}
    of[at] = with_content(of[at], [block])
    return of


def call_without_id(of: Lines) -> Lines:
    at = find(of, '"id":"toolu_edit"')
    of[at] = with_content(of[at], [{"type": "tool_use", "name": "Edit", "input": {}}])
    return of


def half_a_character(of: Lines) -> Lines:
    at = find(of, "the file was changed")
    of[at] = of[at].replace(b"was changed", rb"was changed \ud83d")
    return of


def signature_lost(of: Lines) -> Lines:
    of[1] = of[1].replace(SIGNATURE.encode(), b"")
    return of


def cut_in_thinking(of: Lines) -> Lines:
    """The session was stopped while the model was thinking."""
    return of[: find(of, "One line in the Makefile.") + 1]


def result_twice(of: Lines) -> Lines:
    at = find(of, '"tool_use_id":"toolu_log"')
    of.insert(at + 1, fresh(of[at]).replace(b"no rule", b"still no rule"))
    return of


def image_without_data(of: Lines) -> Lines:
    at = find(of, '"tool_use_id":"toolu_make"')
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
    result = {"type": "tool_result", "tool_use_id": "toolu_make", "content": [image]}
    of[at] = with_content(of[at], [result])
    return of


@dataclass(frozen=True)
class Damage:
    """One way to break a file.

    Attributes:
        make: breaks the lines.
        finds: the codes of what a repair finds, with how often; nothing when the import copes with it alone.
        skips: reasons for which the import passes over lines.
    """

    make: Callable[[Lines], Lines]
    finds: dict[str, int] = field(default_factory=dict)
    skips: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.make.__name__

    def data(self) -> bytes:
        return b"".join(self.make(lines()))


DAMAGES = (
    Damage(cut_in_a_line, {"orphan-call": 1}, ("unfinished-line",)),
    Damage(result_lost, {"orphan-call": 1}),
    Damage(call_lost, {"orphan-result": 1}),
    Damage(result_before_its_call, {"moved-result": 1}),
    Damage(result_after_the_next_prompt),
    Damage(lines_twice, skips=("duplicate",)),
    Damage(stretch_forked),
    Damage(history_written_again, {"duplicate-message": 6}),
    Damage(retry_forked, {"duplicate-message": 1}),
    Damage(two_terminals),
    Damage(call_id_reused, {"reused-call-id": 1}),
    Damage(empty_content),
    Damage(empty_text, {"empty-message": 1}),
    Damage(blank_text, {"blank-text": 1}),
    Damage(not_utf8, skips=("not-utf8",)),
    Damage(two_on_a_line),
    Damage(block_of_zeros, {"orphan-call": 1, "orphan-result": 2}, ("not-json",)),
    Damage(chain_broken),
    Damage(tail_of_another),
    Damage(head_lost, {"orphan-result": 1, "leading-assistant": 1}),
    Damage(answer_first, {"leading-assistant": 1}),
    Damage(arguments_torn, {"invalid-arguments": 1}),
    Damage(call_without_id, {"broken-block": 1, "orphan-result": 1}),
    Damage(half_a_character, {"broken-character": 1}),
    Damage(signature_lost, {"unsigned-reasoning": 1}),
    Damage(cut_in_thinking, {"cut-turn": 1}),
    Damage(result_twice, {"duplicate-result": 1}),
    Damage(image_without_data, {"invalid-image": 1}),
)

"""Comparison of a session with its exported and reimported file.

Rule: this file knows parts and messages and the words of losses, and nothing of drafts or of any form. It finds out by
itself which part became which, and says what differs, counted by those words.
"""

from __future__ import annotations

import io
import json
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trace_store.base.frozen import fields, replace
from trace_store.exporters.contract import Exported, ExportSession, SessionTurn
from trace_store.exporters.session import read_session
from trace_store.importers.contract import NO_MESSAGES
from trace_store.importers.import_paths import import_paths
from trace_store.importers.registry import format_of
from trace_store.importers.report import FileReport
from trace_store.importers.sniff import HEAD_BYTES
from trace_store.objects.parts import (
    Data,
    Image,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from trace_store.providers.media import split_image
from trace_store.providers.validity import NOT_RECORDED
from trace_store.store.store import Store
from trace_store.writer import Writer

Words = Counter[str]

# Placeholders in a request for content that its provider does not support.
_NOTE = re.compile(
    r"(\[tool error\]\n|<system>\n)?\[("
    r"The conversation begins with the assistant\.|no output|content not shown|(image )?shown below"
    r"|(image|output) of tool call .*|image not shown: .*|.* not shown: in the form of .*)\](\n</system>)?"
    r"|\[tool error\]",
    re.DOTALL,
)
_ERROR_LINE = "[tool error]\n"
_BEYOND_ONE_UNIT = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]")


def counted(exported: Exported) -> Words:
    """What a writer says is lost, by word."""
    words: Words = Counter()
    for loss in exported.losses:
        words[loss.what] += loss.count
    return words


def import_bytes(data: bytes, format: str) -> tuple[FileReport, Store]:
    """What an import makes of a file that is recognised as of this format."""
    found = format_of(data[:HEAD_BYTES])
    assert found is not None, f"not recognised: {data[:300]!r}"
    # The first runs of mini-swe-agent are chats of OpenAI's with a certain text in them.
    alike = (format, found.NAME) == ("openai", "mini-swe-agent")
    assert alike or format == found.NAME, f"taken for {found.NAME}: {data[:300]!r}"
    store = Store.memory()
    given = format if alike else None
    report, *_ = import_paths(Writer(store), ["-"], format=given, stdin=io.BytesIO(data)).files
    assert not report.skipped
    # A file without messages has records, but no commit to attach them to.
    reasons = {skip.reason for skip in report.skips}
    assert reasons <= (set() if report.branches else {NO_MESSAGES}), report.skips
    return report, store


def read_back(data: bytes, format: str) -> ExportSession:
    """The session of an exported file."""
    report, store = import_bytes(data, format)
    (branch,) = report.branches
    return read_session(store, branch.ref)


@dataclass(slots=True)
class _Placed:
    """A part and where it stands."""

    turn: int
    index: int
    part: Part


@dataclass(slots=True)
class Difference:
    """What differs.

    Attributes:
        words: what is missing, by the words of losses.
        gained: what is there and was not before.
    """

    words: Words
    gained: list[str]


def difference(session: ExportSession, back: ExportSession) -> Difference:
    """What a session lacks when it has become another."""
    return _Differ(session, back).found()


class _Differ:
    def __init__(self, session: ExportSession, back: ExportSession) -> None:
        self.session = session
        self.back = back
        self.words: Words = Counter()
        self.gained: list[str] = []
        self.pairs: list[tuple[_Placed, _Placed]] = []
        self.loose: list[_Placed] = []

    def found(self) -> Difference:
        self._match()
        self.gained += [f"a part: {placed.part!r:.200}" for placed in self.loose]
        holding: dict[int, list[int]] = defaultdict(list)
        held: dict[int, list[int]] = defaultdict(list)
        for one, other in sorted(self.pairs, key=lambda pair: (pair[1].turn, pair[1].index)):
            if other.turn not in holding[one.turn]:
                holding[one.turn].append(other.turn)
            if one.turn not in held[other.turn]:
                held[other.turn].append(one.turn)
        silent = [n for n, turn in enumerate(self.back.turns) if not turn.message.parts]
        for number, turn in enumerate(self.session.turns):
            if holding[number]:
                self._message(turn, [self.back.turns[n] for n in holding[number]])
            elif not turn.message.parts:
                if silent:
                    held[silent[0]].append(number)
                    self._message(turn, [self.back.turns[silent.pop(0)]])
                else:
                    self.words["empty-message"] += 1
        for turns in held.values():
            self.words["message-bounds"] += len(turns) - 1
        for number, turn in enumerate(self.back.turns):
            if number not in held and turn.message.parts and not _adds_nothing(turn):
                self.gained.append(f"a message: {turn.message.message()!r:.200}")
            reported = {n for n in held[number] if self.session.turns[n].usage is not None}
            if turn.usage is not None and not reported:
                self.gained.append(f"usage: {turn.usage}")
        self.words["message-place"] += self._moved()
        self._beside()
        return Difference(+self.words, self.gained)

    # Which part became which.

    def _match(self) -> None:
        for kind in (Text, Image, Opaque, Reasoning, ToolCall, ToolResult):
            before = [placed for placed in _placed(self.session) if _kind(placed.part) is kind]
            after = [placed for placed in _placed(self.back) if _kind(placed.part) is kind]
            for one, other in _matched(before, after, self.session, self.back):
                if other is None:
                    assert one is not None
                    self._gone(one.part)
                elif one is None and isinstance(other.part, Image | Opaque):
                    self.loose.append(other)
                elif one is None and not _is_note(other.part):
                    self.gained.append(f"a part: {other.part!r:.200}")
                elif one is not None:
                    self.pairs.append((one, other))
                    self._changed(one.part, other.part)

    def _gone(self, part: Part) -> None:
        if isinstance(part, Text):
            self.words["text" if part.text.strip() else "blank-text"] += 1
        elif isinstance(part, Image):
            self.words["image"] += 1
        elif isinstance(part, Opaque):
            self.words["opaque-part"] += 1
        elif isinstance(part, Reasoning):
            self.words["reasoning-text"] += bool(part.text or not part.signature)
            self.words["reasoning-signature"] += bool(part.signature)
        elif isinstance(part, ToolCall):
            self.words["tool-call"] += 1
        elif isinstance(part, ToolResult):
            self.words["tool-result"] += 1

    def _changed(self, one: Part, other: Part) -> None:
        if isinstance(one, Text) and isinstance(other, Text):
            self.words["data-schema"] += isinstance(one, Data) and not isinstance(other, Data)
            self.words["control-character"] += _characters(one.text, _bare(one.text, other.text))
        elif isinstance(one, Image):
            self.words["image-form"] += one != other
        elif isinstance(one, Opaque):
            self.words["opaque-form"] += one != other
        elif isinstance(one, Reasoning) and isinstance(other, Reasoning):
            self.words["reasoning-text"] += bool(one.text and not other.text)
            if other.text:
                self.words["control-character"] += _characters(one.text, other.text)
            self.words["reasoning-signature"] += bool(one.signature and not other.signature)
            if other.signature and other.signature != one.signature:
                self.gained.append(f"a signature: {other.signature[:100]}")
        elif isinstance(one, ToolCall) and isinstance(other, ToolCall):
            self.words["call-id"] += one.id != other.id
            self.words["tool-name"] += one.name != other.name
            if one.format != other.format:
                self.words["call-format"] += 1
            else:
                self.words["argument-text"] += one.arguments != other.arguments
        elif isinstance(one, ToolResult) and isinstance(other, ToolResult):
            self._result(one, other)

    def _result(self, one: ToolResult, other: ToolResult) -> None:
        self.words["call-id"] += one.call_id != other.call_id
        self.words["error-flag"] += one.is_error and not other.is_error
        if other.is_error and not one.is_error:
            self.gained.append(f"an error: {other!r:.200}")
        rest = list(other.content)
        for part in one.content:
            moved = next((placed for placed in self.loose if _is_alike(part, placed.part)), None)
            at = _next_alike(part, rest)
            if at is not None:
                self._changed(part, rest[at])
                del rest[: at + 1]
            elif moved is not None:
                self.loose.remove(moved)
                self.words["message-place"] += 1
                self._changed(part, moved.part)
            else:
                self._gone(part)
        # Where a form has a text in every result, one without is one with an empty text.
        gained = [part for part in rest if part != Text("") and not _is_note(part)]
        self.gained += [f"in a result: {part!r:.200}" for part in gained]

    # What messages are.

    def _message(self, turn: SessionTurn, becomes: Sequence[SessionTurn]) -> None:
        one = turn.message
        for each in becomes:
            self.words["message-role"] += each.message.role != one.role
        self.words["message-bounds"] += len(becomes) - 1
        now = next((each for each in becomes if each.message.role == one.role), becomes[0])
        other = now.message
        own = bool(self.session.format) and turn.author.split("/")[0] == self.session.format
        self.words["message-author"] += not own and now.author != turn.author
        self.words["message-id"] += bool(one.id) and other.id != one.id
        self.words["message-kind"] += other.kind != one.kind
        named = one.role == "assistant" or one.model != ""
        self.words["message-model"] += named and other.model != one.model
        self.words["message-name"] += bool(one.name) and other.name != one.name
        self.words["message-time"] += now.time != turn.time
        self.words["priority"] += one.priority != "normal" and other.priority != one.priority
        self.words["ghost"] += one.ghost and not _is_ghost(now)
        self.words["label"] += len(one.labels - other.labels)
        self.words["compaction"] += turn.is_summary and not now.is_summary
        if turn.usage is not None:
            numbers = None if now.usage is None else replace(now.usage, source="")
            self.words["usage-report"] += numbers != replace(turn.usage, source="")
        self.words["usage-report"] += turn.has_stale_usage

    def _moved(self) -> int:
        order = sorted(self.pairs, key=lambda pair: (pair[0].turn, pair[0].index))
        moved, furthest = 0, (-1, -1)
        for _, other in order:
            at = (other.turn, other.index)
            moved += at < furthest
            furthest = max(furthest, at)
        return moved

    def _beside(self) -> None:
        self.words["subagent"] += len(self.session.subagents)
        known, exported = self.session.facts(), self.back.facts()
        for fact in fields(known):
            value = getattr(known, fact)
            self.words["session-fact"] += bool(value) and getattr(exported, fact) != value
        there = Counter(name for tool in self.back.tools for name in _tool_names(tool))
        for tool in self.session.tools:
            names = Counter(_tool_names(tool))
            self.words["tool-schema"] += not names <= there
            there -= names


def _is_note(part: Part) -> bool:
    """Return True if the text is a note that the renderer added, or a result with such a note."""
    if isinstance(part, ToolResult):
        return any(isinstance(p, Text) and NOT_RECORDED in p.text for p in part.content)
    return isinstance(part, Text) and _NOTE.fullmatch(part.text) is not None


def _adds_nothing(turn: SessionTurn) -> bool:
    """Return True for a message of notes and of images moved out of results."""
    return all(_is_note(part) or isinstance(part, Image | Opaque) for part in turn.message.parts)


def _kind(part: Part) -> type[Part]:
    """The type of a part; a URL in Gemini's form may be an image, and data is text."""
    if isinstance(part, Data):
        return Text
    return Image if isinstance(part, Opaque) and _address(part) else type(part)


def _address(part: Opaque) -> str:
    try:
        found = json.loads(part.data)
    except (ValueError, RecursionError):
        return ""
    file = found.get("fileData") if isinstance(found, dict) and len(found) == 1 else None
    return file["fileUri"] if isinstance(file, dict) and list(file) == ["fileUri"] else ""


def _forms(text: str) -> list[str]:
    """A text, and the forms that it may have in a request."""
    return [text, f"<system>\n{text}\n</system>", _ERROR_LINE + text, text.rstrip()]


def _bare(one: str, other: str) -> str:
    """Strip what a request puts around a text."""
    if _plain(other) == _plain(one):
        return other
    return other.removeprefix("<system>\n").removesuffix("\n</system>").removeprefix(_ERROR_LINE)


def _placed(session: ExportSession) -> Iterator[_Placed]:
    for number, turn in enumerate(session.turns):
        for index, part in enumerate(turn.message.parts):
            yield _Placed(number, index, part)


def _matched(
    before: Sequence[_Placed],
    after: Sequence[_Placed],
    session: ExportSession,
    back: ExportSession,
) -> Iterator[tuple[_Placed | None, _Placed | None]]:
    """Yield which became which; each part of either side once."""
    by_key: dict[Any, list[int]] = defaultdict(list)
    for at, placed in enumerate(before):
        for key in _keys(placed.part):
            by_key[key].append(at)
    became: dict[int, int] = {}
    for by_id in (True, False):
        taken = set(became.values())
        last = -1
        for to, placed in enumerate(after):
            if to in became:
                last = max(last, became[to])
                continue
            fits = [
                at
                for at in by_key[_keys(placed.part)[0]]
                if at not in taken
                and _is_alike(before[at].part, placed.part)
                and (not by_id or _same_id(before[at].part, placed.part))
            ]
            likely = [
                at
                for at in fits
                if _is_usual(session.turns[before[at].turn], before[at].part)
                == _is_usual(back.turns[placed.turn], placed.part)
            ]
            fits = likely or fits
            if fits:
                last = fits[min(bisect_left(fits, last + 1), len(fits) - 1)]
                became[to] = last
                taken.add(last)
    for to, placed in enumerate(after):
        yield (before[became[to]] if to in became else None), placed
    for at in sorted(set(range(len(before))) - set(became.values())):
        yield before[at], None


def _is_usual(turn: SessionTurn, part: Part) -> bool:
    """Only the assistant calls and thinks: elsewhere these are in no form but the lossless one."""
    return turn.message.role == "assistant" or not isinstance(part, ToolCall | Reasoning)


def _keys(part: Part) -> list[str]:
    """The keys of a part's possible forms; of an exported part only the first counts."""
    if isinstance(part, ToolCall):
        return _values(part)
    if isinstance(part, Text):
        return [_plain(text) for text in _forms(part.text)]
    if isinstance(part, Reasoning):
        return [_plain(part.text)]
    if isinstance(part, ToolResult):
        texts = [p.text for p in part.content if isinstance(p, Text) and not _is_note(p)]
        said = [_plain(text) for text in texts if text.removeprefix(_ERROR_LINE).strip()]
        return [str(said), str([_ERROR_LINE + text for text in said[:1]] + said[1:])]
    if isinstance(part, Image):
        found = split_image(part)
        return [str(part.url if found is None else found[1])]
    return [_address(part) or _json(part.data) if isinstance(part, Opaque) else ""]


def _is_alike(one: Part, other: Part) -> bool:
    if _kind(one) is not _kind(other):
        return False
    if isinstance(one, ToolResult) and isinstance(other, ToolResult):
        rest = list(other.content)
        for part in one.content:
            at = _next_alike(part, rest)
            del rest[: 0 if at is None else at + 1]
        return all(part == Text("") or _is_note(part) for part in rest)
    if isinstance(one, Reasoning) and isinstance(other, Reasoning):
        signed = not other.signature or one.signature == other.signature
        return signed and _plain(one.text) == _plain(other.text)
    return _keys(other)[0] in _keys(one)


def _next_alike(part: Part, rest: Sequence[Part]) -> int | None:
    """The index of a part among the remaining ones, if only notes precede it."""
    for at, other in enumerate(rest):
        if _is_alike(part, other):
            return at
        if not _is_note(other):
            return None
    return None


def _same_id(one: Part, other: Part) -> bool:
    if isinstance(one, ToolCall) and isinstance(other, ToolCall):
        return one.id == other.id and one.name == other.name
    if isinstance(one, ToolResult) and isinstance(other, ToolResult):
        return one.call_id == other.call_id
    return True


def _values(call: ToolCall) -> list[str]:
    """The arguments of a call, independent of spelling."""
    found = []
    if call.format == "json":
        try:
            value = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError):
            value = None
        found = [value] if isinstance(value, dict) else []
    found += [{"input": call.arguments}]
    texts = [json.dumps(value, sort_keys=True, ensure_ascii=False) for value in found]
    return [_plain(text) for text in texts]


def _tool_names(schema: Any) -> list[str]:
    if isinstance(schema, dict) and "functionDeclarations" in schema:
        return [name for each in schema["functionDeclarations"] for name in _tool_names(each)]
    for form in (schema, *(schema.get(key) for key in ("function", "custom"))):
        if isinstance(form, dict) and isinstance(form.get("name"), str):
            return [form["name"]]
    return [json.dumps(schema, sort_keys=True)]


def _json(data: bytes) -> str:
    try:
        found = json.loads(data)
        if isinstance(found, dict) and isinstance(found.get("file"), dict):
            found = {"type": "input_file", **found["file"]}
        return json.dumps(found, sort_keys=True)
    except (ValueError, RecursionError):
        return repr(data)


def _plain(text: str) -> str:
    """A text without regard to halves of characters."""
    if text.isascii():
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _BEYOND_ONE_UNIT.sub("\ufffd", joined)


def _characters(one: str, other: str) -> int:
    if one == other:
        return 0
    joined = one.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    # Blanks at the very end may be taken off.
    cut = len(joined) - len(other)
    assert cut >= 0, (one, other)
    assert not joined[len(other) :].strip(), (one, other)
    return len(one) - len(other) + sum(a != b for a, b in zip(joined, other, strict=False))


def _is_ghost(turn: SessionTurn) -> bool:
    return turn.message.ghost or "ghost" in turn.message.labels

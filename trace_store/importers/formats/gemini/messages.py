"""Messages of a Gemini chat: parts, calls, and results inside the calls.

Invariant: pure, and never fails; content without a part of its own becomes opaque. A chat repeats data: thoughts
and calls beside the content and in it, results inside calls and in a later message. Each is imported once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from trace_store.errors import InvalidInputError
from trace_store.frozen import field, value
from trace_store.importers.contract import PlannedMessage
from trace_store.importers.json_records import compact
from trace_store.importers.parts import opaque, storable_name, usage_counts
from trace_store.objects.parts import Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.gemini import GeminiCalls, gemini_parts

MAXIMUM_PIECES = 10_000
"""Maximum parts of a content, or calls of a message; a commit is limited."""

NAME = "gemini-cli"
"""Provider name of unusual shapes, which Gemini would not accept."""

HARNESS_TEXT = ("<session_context>", "<hook_context>")
"""Prefixes of user messages that the program wrote."""

_OF_MODEL = ("thought", "thoughtSignature")
_BESIDE = (*_OF_MODEL, "videoMetadata", "mediaResolution")
_CODE = ("executableCode", "codeExecutionResult")
_ADDRESSES = ("https://", "http://", "gs://")

Piece = Mapping[str, Any]


@value
class ParsedContent:
    """Parsed content of a message.

    Attributes:
        messages: the messages; empty if only the user sees it.
        author: author without the format prefix.
        usage: usage report in stored form.
        answers: ids of calls whose results it holds.
        agents: ids of subagents started by its calls.
    """

    messages: tuple[PlannedMessage, ...] = ()
    author: str = ""
    usage: Mapping[str, int | str] = field(default_factory=dict)
    answers: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()


def parse_content(record: Piece, answered: Collection[str]) -> ParsedContent:
    """Parse a message.

    Args:
        record: the message.
        answered: ids of calls whose results are in other messages.
    """
    kind = record.get("type")
    pieces = _pieces(record.get("content"))
    if kind == "gemini":
        return _of_model(record, pieces, answered)
    if kind == "user" or (kind == "info" and any(_is_media(piece) for piece in pieces)):
        # Media from a tool are shown to the model as a user turn, and recorded as `info`.
        return _of_user(record, pieces, answered)
    return ParsedContent()


def _of_user(record: Piece, pieces: Sequence[Any], answered: Collection[str]) -> ParsedContent:
    answers = _Answers(pieces, keep_text=False)
    ids = [_call_id(each) or _made_id(record, n) for n, each in enumerate(answers.responses)]
    results = [answers.result(n, id_) for n, id_ in enumerate(ids) if id_ not in answered]
    said = tuple(part for piece in answers.others for part in _parts(piece))
    messages: list[PlannedMessage] = []
    if results:
        messages.append(PlannedMessage("tool", tuple(results)))
    if said:
        messages.append(PlannedMessage("user", said))
    first = said[0] if said else None
    harness = not isinstance(first, Text) or first.text.startswith(HARNESS_TEXT)
    return ParsedContent(
        tuple(messages),
        author="" if harness else "user",
        answers=tuple(result.call_id for result in results),
    )


def _of_model(record: Piece, pieces: Sequence[Any], answered: Collection[str]) -> ParsedContent:
    model = storable_name(record.get("model"))
    calls = _Calls(record)
    parts = [part for piece in pieces for part in calls.parts_of(piece)]
    if not any(isinstance(piece, dict) and piece.get("thought") is True for piece in pieces):
        parts[:0] = _thoughts(record.get("thoughts"))
    parts += calls.rest()
    messages = [PlannedMessage("assistant", tuple(parts), model=model)] if parts else []
    results = [result for result in calls.results() if result.call_id not in answered]
    if results:
        messages.append(PlannedMessage("tool", tuple(results)))
    return ParsedContent(
        tuple(messages),
        author=model,
        usage=_usage(record.get("tokens"), model),
        answers=tuple(result.call_id for result in results),
        agents=calls.agents(),
    )


class _Calls:
    """Calls of a message: as recorded by the program, and as in the content."""

    def __init__(self, record: Piece) -> None:
        self._record = record
        recorded = record.get("toolCalls")
        self._recorded = (
            recorded if isinstance(recorded, list) and len(recorded) <= MAXIMUM_PIECES else []
        )
        self._odd = recorded if recorded and not self._recorded else None
        self._ids: list[str] = []
        for number, call in enumerate(self._recorded):
            named = isinstance(call, dict) and storable_name(call.get("name"))
            id_ = _name_of(call, "id") or _made_id(record, number) if named else ""
            self._ids.append("" if id_ in self._ids else id_)
        self._matched: set[int] = set()
        self._unrecorded = len(self._recorded)

    def parts_of(self, piece: Any) -> Iterator[Part]:
        """Yield the parts of a piece; a call gets its recorded id."""
        form = piece.get("functionCall") if isinstance(piece, dict) else None
        name = _name_of(form, "name")
        if not isinstance(form, dict) or not name:
            yield from _parts(piece, model=True)
            return
        number = self._number_of(form, name)
        if number is None:
            self._unrecorded += 1
            id_ = storable_name(form.get("id")) or _made_id(self._record, self._unrecorded)
        else:
            self._matched.add(number)
            id_ = self._ids[number]
        # A signature precedes the part that it signs.
        signature = {"text": "", "thoughtSignature": piece.get("thoughtSignature")}
        yield from _parts(signature, model=True)
        yield ToolCall(id_, name, compact(form.get("args", {})))

    def rest(self) -> Iterator[Part]:
        """Yield the recorded calls that are not in the content."""
        for number, call in enumerate(self._recorded):
            if not self._ids[number]:
                yield opaque(NAME, call)
            elif number not in self._matched:
                name = storable_name(call.get("name"))
                yield ToolCall(self._ids[number], name, compact(call.get("args", {})))
        if self._odd is not None:
            yield opaque(NAME, self._odd)

    def results(self) -> Iterator[ToolResult]:
        """Yield the results of answered calls."""
        for number, call in enumerate(self._recorded):
            if self._ids[number] and call.get("result") not in (None, "", []):
                yield _result(call, self._ids[number])

    def agents(self) -> tuple[str, ...]:
        """Return the ids of subagents started by calls."""
        agents = (_name_of(call, "agentId") for call in self._recorded)
        return tuple(dict.fromkeys(id_ for id_ in agents if id_))

    def _number_of(self, form: Piece, name: str) -> int | None:
        id_ = storable_name(form.get("id"))
        if id_:
            return self._ids.index(id_) if id_ in self._ids else None
        unmatched = [
            number
            for number, call in enumerate(self._recorded)
            if self._ids[number] and number not in self._matched and call.get("name") == name
        ]
        same = [n for n in unmatched if self._recorded[n].get("args") == form.get("args")]
        return next(iter(same or unmatched), None)


class _Answers:
    """Responses among content pieces, and the other pieces.

    An image after a response belongs to it. So does text, unless it may be the user's.
    """

    def __init__(self, pieces: Sequence[Any], *, keep_text: bool) -> None:
        self.responses: list[Piece] = []
        self.others: list[Any] = []
        self._behind: list[list[Any]] = []
        for piece in pieces:
            response = piece.get("functionResponse") if isinstance(piece, dict) else None
            if isinstance(response, dict):
                self.responses.append(response)
                self._behind.append([])
            elif self._behind and (keep_text or _is_media(piece)):
                self._behind[-1].append(piece)
            else:
                self.others.append(piece)

    def result(self, number: int, call_id: str) -> ToolResult:
        """Return a response as the result of a call."""
        response = self.responses[number]
        form = {**response, "id": call_id, "name": storable_name(response.get("name")) or "tool"}
        behind = [part for piece in self._behind[number] for part in _parts(piece)]
        for part in _parsed({"functionResponse": form}) or ():
            if isinstance(part, ToolResult):
                return ToolResult(call_id, (*part.content, *behind), part.is_error)
        return ToolResult(call_id, (opaque(NAME, response), *behind))


def _result(call: Piece, call_id: str) -> ToolResult:
    """Return the result inside a call.

    It may be text, a part or parts; these may include the results of the turn's other calls.
    """
    failed = call.get("status") == "error"
    answers = _Answers(_pieces(call["result"]), keep_text=True)
    own = [n for n, response in enumerate(answers.responses) if _call_id(response) == call_id]
    own = own or [n for n, response in enumerate(answers.responses) if not _call_id(response)]
    own = own or ([0] if len(answers.responses) == 1 else [])
    if not own:
        content = [part for piece in answers.others for part in _parts(piece)]
        return ToolResult(call_id, content or (opaque(NAME, call["result"]),), failed)
    result = answers.result(own[0], call_id)
    before = [part for piece in answers.others for part in _parts(piece)]
    return ToolResult(call_id, (*before, *result.content), result.is_error or failed)


def _pieces(content: Any) -> list[Any]:
    """Return a content, which may be text, a part or parts, as a list."""
    if content is None or content == "":
        return []
    if isinstance(content, list) and len(content) <= MAXIMUM_PIECES:
        return content
    return [content]


def _parts(piece: Any, *, model: bool = False) -> tuple[Part, ...]:
    """Return the parts of a content piece; unusual ones are stored whole.

    Args:
        piece: text, or a Gemini part.
        model: True if it is from the model.
    """
    if isinstance(piece, str):
        return (Text(piece),) if piece else ()
    if isinstance(piece, dict) and not model:
        piece = {key: value for key, value in piece.items() if key not in _OF_MODEL}
    parts = _parsed(piece) if _is_whole(piece, model) else None
    if parts is None:
        return (opaque(NAME, piece),)
    return tuple(part for part in parts if not isinstance(part, Text) or part.text)


def _is_whole(piece: Any, model: bool) -> bool:
    """Return True if a piece holds one kind of data in its usual shape."""
    kinds = [key for key in piece if key not in _BESIDE] if isinstance(piece, dict) else []
    if len(kinds) != 1:
        return False
    value = piece[kinds[0]]
    if kinds[0] == "text":
        return isinstance(value, str)
    if not isinstance(value, dict):
        return False
    if kinds[0] == "inlineData":
        return bool(_name_of(value, "mimeType")) and bool(value.get("data"))
    if kinds[0] == "fileData":
        address = value.get("fileUri")
        return isinstance(address, str) and address.startswith(_ADDRESSES)
    return model and kinds[0] in _CODE


def _parsed(piece: Piece) -> tuple[Part, ...] | None:
    try:
        return tuple(gemini_parts(piece, "content", GeminiCalls()))
    except InvalidInputError:
        return None


def _thoughts(thoughts: Any) -> list[Part]:
    """Return thoughts, which are unsigned summaries, as the program formats them."""
    parts: list[Part] = []
    if not isinstance(thoughts, list) or len(thoughts) > MAXIMUM_PIECES:
        return [opaque(NAME, thoughts)] if thoughts else []
    for thought in thoughts:
        fields = thought if isinstance(thought, dict) else {}
        subject, description = fields.get("subject"), fields.get("description")
        words = [f"**{subject}**"] if isinstance(subject, str) and subject else []
        words += [description] if isinstance(description, str) and description else []
        if words:
            parts.append(Reasoning(" ".join(words)))
        elif thought:
            parts.append(opaque(NAME, thought))
    return parts


def _usage(tokens: Any, model: str) -> dict[str, int | str]:
    """Return the usage; all zeros mean unknown."""
    counts = usage_counts(tokens, model)
    return counts if any(isinstance(n, int) and n for n in counts.values()) else {}


def _is_media(piece: Any) -> bool:
    return isinstance(piece, dict) and ("inlineData" in piece or "fileData" in piece)


def _call_id(response: Piece) -> str:
    return storable_name(response.get("id"))


def _name_of(form: Any, field_name: str) -> str:
    return storable_name(form.get(field_name)) if isinstance(form, dict) else ""


def _made_id(record: Piece, number: int) -> str:
    """Return an id for a call without one, unique among messages."""
    return f"{storable_name(record.get('id'))[:64]}-{number}"

"""Gemini CLI: chat recordings of Google's agent.

Records are distinguished by key, in this order: `$rewindTo` removes a message and all later ones; a record with an
`id` is a message and replaces an earlier one with this id, since a message is rewritten as it grows; `$set` changes
facts of the session, with `messages` the whole chat; anything else is a header. A document has the same messages in
a list.

A chat repeats data: thoughts and calls beside the content and in it, results inside calls and in a later message. Each
is imported once.

Invariant: detection reads only the head of a chat, folder names, and notes about the owner of a folder. Parsing a
message is pure and never fails; content without a part of its own becomes opaque.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trace_store.base.environment import Environment
from trace_store.base.frozen import field, value
from trace_store.base.oid import digest, hash_object, sha256_hex
from trace_store.disk.files import Disk, read_file
from trace_store.errors import InvalidInputError, StorageError
from trace_store.importers.contract import AGENTS_KEY, PlannedMessage
from trace_store.importers.convert import opaque, storable_name, time_of, usage_counts
from trace_store.importers.input_files import files_in
from trace_store.importers.json_records import compact
from trace_store.importers.sniff import first_records, is_below
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import (
    Compaction,
    DocumentReader,
    Event,
    Rewind,
    Turn,
    TurnEdit,
    UsageReport,
)
from trace_store.objects.codec import encode
from trace_store.objects.content import bytes_of
from trace_store.objects.message import store_parts
from trace_store.objects.parts import Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.gemini import GeminiCalls, gemini_parts
from trace_store.transcripts.sources import Record

SUFFIXES = (".json", ".jsonl")
NAME = "gemini"
MAXIMUM_NOTE_BYTES = 1 << 20
RECORDS = 8
"""Records that detect a file without a header."""
_OWNER = ".project_root"
_TYPES = frozenset({"user", "gemini", "info", "error", "warning"})
_OPENS = re.compile(rb'\{\s*"sessionId"\s*:\s*"')
_LISTS = re.compile(rb'"messages"\s*:\s*\[')
MAXIMUM_PIECES = 10_000
"""Maximum parts of a content, or calls of a message; a commit is limited."""
PROVIDER = "gemini-cli"
"""Provider name of unusual shapes, which Gemini would not accept."""
HARNESS_TEXT = ("<session_context>", "<hook_context>")
"""Prefixes of user messages that the program wrote."""
_OF_MODEL = ("thought", "thoughtSignature")
_BESIDE = (*_OF_MODEL, "videoMetadata", "mediaResolution")
_CODE = ("executableCode", "codeExecutionResult")
_ADDRESSES = ("https://", "http://", "gs://")
Piece = Mapping[str, Any]


class ChatEntry(NamedTuple):
    """A message in the current chat.

    Attributes:
        id: its id in the chat.
        key: key of its turn; "" while it is empty.
        back: key of the turn to rewind to when the message is removed.
        roles: roles of its messages.
        says: hash of its content.
        answers: ids of calls whose results it holds.
    """

    id: str
    key: str
    back: str
    roles: tuple[str, ...]
    says: str
    answers: tuple[str, ...]


class _ParsedMessage(NamedTuple):
    """A message as parsed from a record."""

    id: str
    time: int | None
    said: ParsedContent


class GeminiReader(DocumentReader):
    """Reader of one chat.

    State: `order`, the messages of the current chat; `left`, ids of removed ones, whose reuse needs another key.
    """

    AGENT = NAME
    LISTS = ("messages",)

    def begin(self, fields: Mapping[str, Any]) -> None:
        self._read_session(fields)

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        if isinstance(data.get("$rewindTo"), str):
            yield from self._rewind(data["$rewindTo"])
        elif isinstance(data.get("id"), str):
            yield from self._message(data)
        elif isinstance(data.get("$set"), dict) or "sessionId" in data:
            change = data["$set"] if isinstance(data.get("$set"), dict) else data
            self._read_session(change)
            if isinstance(change.get("messages"), list):
                yield from self._replace_all(change["messages"])

    def label(self, record: Record) -> str:
        data = record.data
        for key in ("$rewindTo", "$set"):
            if key in data:
                return key
        return "header" if "id" not in data and "sessionId" in data else super().label(record)

    def _read_session(self, fields: Mapping[str, Any]) -> None:
        """Read the session id, unless there are messages already."""
        id_ = storable_name(fields.get("sessionId"))
        if not id_ or self._order() or self.state.get("left"):
            return
        # Some subagent chats do not name their parent and become sessions of their own.
        parent = storable_name(fields.get("parentSessionId"))
        if fields.get("kind") == "subagent" and parent:
            self.state = {**self.state, "session": parent, "agent": id_}
        else:
            self.state = {**self.state, "session": id_}

    def _message(self, data: Mapping[str, Any]) -> Iterator[Event]:
        order = self._order()
        at = _place(order, data["id"])
        now = _parse(data, {id_ for n, each in enumerate(order) if n != at for id_ in each.answers})
        before = None if at is None or not order[at].key else order[at]
        if before is not None and not now.said.messages:
            return  # its earlier content stays
        if before is not None and _can_update(before.roles, now):
            after = before._replace(**_content_fields(now.said))
            if after.says != before.says:
                yield _edit_of(before, now)
            elif now.said.usage:
                yield UsageReport(now.said.usage, before.key)
        else:
            if before is not None:
                self._leave([before])
            after = self._new(now)
            if after.key:
                yield _turn(now, after.key)
        self._keep([*order, after] if at is None else [*order[:at], after, *order[at + 1 :]])

    def _rewind(self, id_: str) -> Iterator[Event]:
        order = self._order()
        at = _place(order, id_)
        removed = order if at is None else order[at:]
        yield from _rewinds(removed)
        self._leave(removed)
        self._keep([] if at is None else order[:at])

    def _replace_all(self, messages: Sequence[Any]) -> Iterator[Event]:
        """Change the chat to a list of all its messages."""
        before = [entry for entry in self._order() if entry.key]
        parsed = _parse_all(messages)
        spoken = [now for now in parsed if now.said.messages]
        same = 0
        for entry, now in zip(before, spoken, strict=False):
            if entry.id != now.id or not _can_update(entry.roles, now):
                break
            same += 1
        entries: dict[str, ChatEntry] = {}
        for entry, now in zip(before[:same], spoken, strict=False):
            entries[now.id] = entry._replace(**_content_fields(now.said))
            if entries[now.id].says != entry.says:
                yield _edit_of(entry, now)
        removed, fresh = before[same:], spoken[same:]
        self._leave(removed)
        if removed and fresh and _is_summary(fresh, removed):
            summary, *fresh = fresh
            entry = entries[summary.id] = self._new(summary)._replace(back=removed[0].back)
            yield Compaction(
                summary.said.messages,
                entry.key,
                summary.time,
                summary.said.author,
                summary.said.usage,
                keeps=tuple(each.key for each in before[:same]),
            )
        else:
            yield from _rewinds(removed)
        for now in fresh:
            entries[now.id] = self._new(now)
            yield _turn(now, entries[now.id].key)
        self._keep([entries.get(now.id) or self._new(now) for now in parsed])

    def _new(self, now: _ParsedMessage) -> ChatEntry:
        """Return the entry of a new message."""
        key = ""
        if now.said.messages:
            name = storable_name(now.id) or digest(bytes_of(now.id)).hex()[:16]
            again = self.state.get("left", ()).count(now.id)
            key = f"{name}~{again}" if again else name
        return ChatEntry(now.id, key, key, **_content_fields(now.said))

    def _order(self) -> list[ChatEntry]:
        order: list[Any] = self.state.get("order", [])
        if order and not isinstance(order[0], ChatEntry):
            # Loaded from saved state.
            order = [_entry(saved) for saved in order]
            self._keep(order)
        return order

    def _keep(self, order: list[ChatEntry]) -> None:
        self.state = {**self.state, "order": order}

    def _leave(self, removed: Sequence[ChatEntry]) -> None:
        ids = [entry.id for entry in removed if entry.key]
        if ids:
            self.state = {**self.state, "left": [*self.state.get("left", ()), *ids]}


def _place(order: Sequence[ChatEntry], id_: str) -> int | None:
    """Return the index of a message, searching from the end."""
    for at in range(len(order) - 1, -1, -1):
        if order[at].id == id_:
            return at
    return None


def _parse(data: Mapping[str, Any], answered: Collection[str]) -> _ParsedMessage:
    return _ParsedMessage(data["id"], time_of(data.get("timestamp")), parse_content(data, answered))


def _parse_all(messages: Sequence[Any]) -> list[_ParsedMessage]:
    """Return the messages of a list; of duplicates the last, at the first one's place."""
    answered: set[str] = set()
    by_id = {m["id"]: m for m in messages if isinstance(m, dict) and isinstance(m.get("id"), str)}
    messages = []
    for data in by_id.values():
        messages.append(_parse(data, answered))
        answered.update(messages[-1].said.answers)
    return messages


def _turn(now: _ParsedMessage, key: str) -> Turn:
    said = now.said
    meta = {AGENTS_KEY: list(said.agents)} if said.agents else {}
    return Turn(said.messages, key, now.time, said.author, said.usage, meta=meta)


def _edit_of(before: ChatEntry, now: _ParsedMessage) -> TurnEdit:
    """Return a new version of a message, with empty messages for lost ones."""
    messages = now.said.messages
    lost = (PlannedMessage(role, ()) for role in before.roles[len(messages) :])
    return TurnEdit(before.key, (*messages, *lost), now.time, now.said.usage)


def _is_summary(fresh: Sequence[_ParsedMessage], removed: Sequence[ChatEntry]) -> bool:
    """Return True if a new message replaces removed ones."""
    known = {entry.id for entry in removed}
    return fresh[0].id not in known and not known <= {now.id for now in fresh}


def _rewinds(removed: Sequence[ChatEntry]) -> Iterator[Rewind]:
    """Yield the rewind that removes messages up to the end."""
    first = next((entry for entry in removed if entry.key), None)
    if first is not None:
        yield Rewind(first.back)


def _can_update(roles: Sequence[str], now: _ParsedMessage) -> bool:
    """Return True if a message can be a new version of one with these roles."""
    theirs = [message.role for message in now.said.messages]
    size = min(len(theirs), len(roles))
    return bool(theirs) and theirs[:size] == list(roles[:size])


def _content_fields(said: ParsedContent) -> dict[str, Any]:
    stored = [[m.role, m.model, store_parts(m.parts, hash_object)] for m in said.messages]
    return {
        "roles": tuple(message.role for message in said.messages),
        "says": digest(encode(stored)).hex()[:32],
        "answers": said.answers,
    }


def _entry(saved: Sequence[Any]) -> ChatEntry:
    id_, key, back, roles, says, answers = saved
    return ChatEntry(id_, key, back, tuple(roles), says, tuple(answers))


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are a chat."""
    if reads_document(head):
        return True
    records = first_records(head, RECORDS)
    return bool(records) and _begins_chat(records[0]) and any(map(_is_own, records))


def reads_document(head: bytes) -> bool:
    """Return True if a chat is one document, as in builds before line-by-line files."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    listed = _LISTS.search(start)
    if _OPENS.match(start) is None or listed is None:
        return False
    # Messages may contain these words as well.
    before = start[: listed.start()]
    if b'"projectHash"' not in before and b'"startTime"' not in before:
        return False
    # A complete first line with more after it means one record a line.
    return not first_records(start.partition(b"\n")[0], 1) or not start.partition(b"\n")[2].strip()


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return a project's chats and those of its subagents.

    Each project has a folder. Older builds name it by the hash of the project's path; later ones use a short name,
    and store the path in the folder and in a list of projects.
    """
    if not environment.gemini_dir:
        return []
    root = os.path.join(environment.gemini_dir, "tmp")
    paths = {os.path.abspath(project_dir), os.path.realpath(project_dir)}
    names = {sha256_hex(os.fsencode(path)) for path in paths}
    names |= _short_names(environment.gemini_dir, project_dir, disk)
    paths_found: list[str] = []
    for name in disk.scan(root)[0]:
        owner = _note(os.path.join(root, name, _OWNER), disk).strip()
        if is_below(owner, project_dir) if owner else name in names:
            paths_found += files_in(os.path.join(root, name, "chats"), disk, (".json", ".jsonl"))
    # A resumed chat continues in a new file with all of the old content.
    return [path for path in paths_found if path + "l" not in paths_found]


def _short_names(folder: str, project_dir: str, disk: Disk) -> set[str]:
    """Return the short folder names of a project."""
    try:
        known = json.loads(_note(os.path.join(folder, "projects.json"), disk) or "{}")
    except (ValueError, RecursionError):
        return set()
    projects = known.get("projects") if isinstance(known, dict) else None
    if not isinstance(projects, dict):
        return set()
    return {
        name
        for path, name in projects.items()
        if isinstance(name, str) and is_below(path, project_dir)
    }


def _note(path: str, disk: Disk) -> str:
    try:
        data = read_file(disk, path, limit=MAXIMUM_NOTE_BYTES)
    except StorageError:
        return ""
    return (data or b"").decode("utf-8", "replace")


def _begins_chat(record: dict[str, Any]) -> bool:
    if isinstance(record.get("$rewindTo"), str) or isinstance(record.get("$set"), dict):
        return True
    if isinstance(record.get("sessionId"), str):
        known = "projectHash" in record or {"startTime", "lastUpdated"} <= record.keys()
        return known and not {"type", "uuid"} & record.keys()
    return _is_message(record)


def _is_own(record: dict[str, Any]) -> bool:
    """Return True if only Gemini CLI writes such a record."""
    if _is_message(record):
        return bool(record["type"] == "gemini")
    return _begins_chat(record)


def _is_message(record: dict[str, Any]) -> bool:
    kind = record.get("type")
    return (
        {"id", "timestamp", "content"} <= record.keys()
        and isinstance(kind, str)
        and kind in _TYPES
        and not {"uuid", "sessionId", "message"} & record.keys()
    )


FORMAT = TurnFormat(NAME, SUFFIXES, recognises, GeminiReader, reads_document, finds)


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
                yield opaque(PROVIDER, call)
            elif number not in self._matched:
                name = storable_name(call.get("name"))
                yield ToolCall(self._ids[number], name, compact(call.get("args", {})))
        if self._odd is not None:
            yield opaque(PROVIDER, self._odd)

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
        return ToolResult(call_id, (opaque(PROVIDER, response), *behind))


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
        return ToolResult(call_id, content or (opaque(PROVIDER, call["result"]),), failed)
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
        return (opaque(PROVIDER, piece),)
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
        return [opaque(PROVIDER, thoughts)] if thoughts else []
    for thought in thoughts:
        fields = thought if isinstance(thought, dict) else {}
        subject, description = fields.get("subject"), fields.get("description")
        words = [f"**{subject}**"] if isinstance(subject, str) and subject else []
        words += [description] if isinstance(description, str) and description else []
        if words:
            parts.append(Reasoning(" ".join(words)))
        elif thought:
            parts.append(opaque(PROVIDER, thought))
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

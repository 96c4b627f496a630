"""A session as a rollout of Codex, which can resume from it.

Invariant: response items are what the model is shown; events repeat it for the user, and report usage. A response ends
with its `token_count`, or at the `turn_context` of the next one.

- Reasoning is written if an OpenAI model signed it. Reasoning directly before a signature is its summary.
- Outputs have no failure flag, except for an exit code in their text, as builds of 2025 wrote it.
- Results keep their position in the session; Codex pairs by id.
- If the context starts with the result of a compaction, that is a `compacted` record.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from trace_store.base.frozen import replace
from trace_store.base.ident import format_time
from trace_store.context.usage import Usage, normalise_usage
from trace_store.errors import InvalidInputError
from trace_store.exporters.contract import Exported, ExportSession, Facts
from trace_store.exporters.lossy import coerce
from trace_store.exporters.lossy.coerce import block_of, fit_image, only_text, whole
from trace_store.exporters.lossy.drafts import (
    ASSISTANT,
    TOOL,
    USER,
    DraftMessage,
    DraftPart,
    drafts_of,
    forget,
    join,
    settle_calls,
)
from trace_store.exporters.lossy.loss_count import losses_of
from trace_store.importers.contract import PlannedMessage
from trace_store.importers.formats.codex import is_scaffolding, messages_of
from trace_store.objects.message import ROLES
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.chat import block_part
from trace_store.providers.fields import opaque
from trace_store.providers.openai_responses import (
    FRAMES,
    PROVIDER,
    call_item,
    frame_of,
    input_text,
    item_of,
    output_item,
    reasoning_item,
    summary_text,
)
from trace_store.providers.tools import OPENAI_NAME_LIMIT, call_id
from trace_store.providers.validity import maker
from trace_store.providers.wire import parse_object, to_lines, word

NAME = "codex"
SUFFIX = ".jsonl"

VERSION = "0.145.0"
"""Version of Codex to write for sessions of other programs."""
ORIGINATOR = "trace"
ID_LIMIT = 64
_INPUT_BLOCKS = frozenset({"input_file", "input_image"})
_REFUSALS = frozenset({"refusal"})
# Items that a reader interprets differently or ignores.
_UNREAD = frozenset(
    {"agent_message", "ghost_snapshot", "local_shell_call", "local_shell_call_output"}
)
_AGENT_BLOCKS = frozenset({"encrypted_content"}) | _INPUT_BLOCKS

Record = dict[str, Any]
Wire = dict[str, Any]


def write(session: ExportSession) -> Exported:
    """Return the rollout; see `contract.FormatWriter`."""
    facts = _facts(session)
    drafts = _fit(session)
    records = _Records(session, facts, drafts).all()
    data = to_lines(records)
    time = format_time(drafts[0].time if drafts else 0)[:19].replace(":", "-")
    name = f"rollout-{time}-{facts.session}{SUFFIX}"
    folder = f"~/.codex/sessions/{time[:10].replace('-', '/')}"
    resume = f"copy the file to {folder}/{name} and run `codex resume {facts.session}`"
    losses = losses_of(session, drafts, facts=facts)
    return Exported(data, losses, name, resume="" if session.thread else resume)


def _fit(session: ExportSession) -> list[DraftMessage]:
    """Return the messages as Trace's importer for Codex reads them back."""
    drafts = coerce.fitted(drafts_of(session), ROLES, _fit_part, _fit_content)
    drafts = settle_calls(drafts, lambda id_: call_id(id_, ID_LIMIT))
    for draft in drafts:
        _settle_frames(draft)
        _drop_unsigned_reasoning(draft)
    drafts = _split_items(draft for draft in drafts if draft.parts)
    drafts = _join_results(drafts)
    model = ""
    for draft in drafts:
        _set_read_fields(draft, session)
        if draft.role == ASSISTANT:
            model = draft.model = draft.model or model
    compacted_count = _compacted_count(drafts, session)
    reports: list[Usage] = []
    for number, draft in enumerate(drafts):
        draft.summary = number < compacted_count
        draft.usage = None if draft.summary else _fit_usage(draft.usage, reports)
    return drafts


def _fit_part(draft: DraftMessage, part: Part) -> Part | None:
    if isinstance(part, Text):
        return Text(whole(part.text)) if part.text else None
    if isinstance(part, Image):
        return fit_image(part) if draft.role == USER else None
    if isinstance(part, Reasoning):
        return _fit_reasoning(draft, part)
    if isinstance(part, ToolCall):
        name = word(part.name, OPENAI_NAME_LIMIT, "tool")
        return ToolCall(part.id, name, whole(part.arguments), part.format)
    if isinstance(part, ToolResult):
        return ToolResult(part.call_id, part.content, part.is_error and _tells_failure(part))
    if not isinstance(part, Opaque):
        return None
    if draft.role == ASSISTANT:
        own = part if _is_frame(part) else _fit_own(part, _REFUSALS)
        return own or _fit_item(part, ASSISTANT, _UNREAD)
    blocks = _AGENT_BLOCKS if draft.name else _INPUT_BLOCKS
    own = _fit_own(part, blocks) if draft.role == USER else None
    return own or _fit_item(part, draft.role, _UNREAD)


def _tells_failure(result: ToolResult) -> bool:
    """Return True if the exit code in a result's only text makes readers take it for a failure."""
    text = result.content[0] if len(result.content) == 1 else None
    if not isinstance(text, Text) or not text.text.startswith("{"):
        return False
    item = {"type": "function_call_output", "call_id": result.call_id, "output": text.text}
    read = messages_of([item], "")[0].parts[0]
    return isinstance(read, ToolResult) and read.is_error


def _join_results(drafts: Sequence[DraftMessage]) -> list[DraftMessage]:
    """Merge adjacent results into one message, as a reader does."""
    found: list[DraftMessage] = []
    for draft in drafts:
        if found and found[-1].role == TOOL == draft.role:
            join(found[-1], draft)
        else:
            found.append(draft)
    return found


def _set_read_fields(draft: DraftMessage, session: ExportSession) -> None:
    """Set a draft's kind, name, id, model and usage to what a reader derives from its records."""
    name = draft.name if _is_from_agent(draft, session) else ""
    own = session.format == NAME or (draft.model and maker(draft.model) == PROVIDER)
    spoken = any(isinstance(part, Text | Image) or _is_spoken(part) for part in draft.parts)
    forget(draft)
    if draft.role == USER and is_scaffolding(PlannedMessage(USER, draft.parts)):
        draft.kind = "instruction"
    elif name:
        draft.name = name
    draft.id = draft.id if own and spoken and draft.role != TOOL and not name else ""
    if draft.role != ASSISTANT:
        draft.model, draft.usage = "", None


def _is_from_agent(draft: DraftMessage, session: ExportSession) -> bool:
    """Return True if another Codex agent wrote the message; in Codex, only agents have names."""
    by_name = draft.role == USER and bool(draft.name) and session.format == NAME
    return by_name and not _is_item(draft.parts[0])


def _fit_usage(usage: Usage | None, reports: list[Usage]) -> Usage | None:
    """Return a usage report as a reader gets it; None for one without tokens, except the first."""
    if usage is None:
        return None
    read = normalise_usage(_usage_of(usage))
    if reports and not (
        read.input_total or read.output_total or read.cache_read or read.cache_write
    ):
        return None
    reports.append(read)
    return read


def _usage_of(usage: Usage) -> dict[str, int]:
    form = {
        "input_tokens": usage.input_total,
        "cached_input_tokens": usage.cache_read,
        "cache_write_input_tokens": usage.cache_write,
        "output_tokens": usage.output_total,
        "reasoning_output_tokens": usage.reasoning,
    }
    return form | {"total_tokens": usage.input_total + usage.output_total}


def _compacted_count(drafts: Sequence[DraftMessage], session: ExportSession) -> int:
    """Return the number of drafts at the start that a compaction record can hold."""
    first = session.turns[drafts[0].turn] if drafts else None
    if first is None or not first.is_summary:
        return 0
    count = 0
    for draft in drafts:
        turns = [session.turns[number] for number in draft.turns]
        if any(turn.commit != first.commit or not turn.is_summary for turn in turns):
            break
        count += 1
    block = drafts[:count]
    items = [item for draft in block for item in _items(draft, ())]
    model = next((draft.model for draft in block if draft.role == ASSISTANT), "")
    as_read = [(m.role, m.parts, m.model, m.id, m.name) for m in messages_of(items, model)]
    held = [(d.role, d.parts, d.model, d.id, d.name) for d in block]
    return count if as_read == held else 0


def _items(draft: DraftMessage, text_calls: Collection[str]) -> list[Record]:
    """Return the response items of a draft."""
    if draft.name:
        content = next(_response_items(draft, ()))["content"]
        return [{"type": "agent_message", "author": draft.name, "content": content}]
    items = list(_response_items(draft, text_calls))
    spoken = next((item for item in items if item.get("type") == "message"), None)
    if draft.id and spoken is not None:
        spoken["id"] = draft.id
    return items


def _needs_list(result: ToolResult) -> bool:
    """Return True if a result must be a list of blocks, because readers would take its text for a failure."""
    return not result.is_error and _tells_failure(result)


def _facts(session: ExportSession) -> Facts:
    known = session.facts()
    time = session.turns[0].time if session.turns else 0
    made = coerce.timed_uuid(time, NAME, coerce.beginning(session))
    return Facts(
        session=coerce.session_uuid(session, known, made),
        cwd=known.cwd,
        version=known.version if session.format == NAME and known.version else VERSION,
        branch=known.branch,
    )


class _Records:
    """Writes drafts as records."""

    def __init__(
        self, session: ExportSession, facts: Facts, drafts: Sequence[DraftMessage]
    ) -> None:
        self._session = session
        self._facts = facts
        self._drafts = drafts
        calls = [call for draft in drafts for call in draft.calls]
        self._text_calls = frozenset(call.id for call in calls if call.format == "text")
        self._totals: dict[str, int] = {}
        self._model = ""
        self._turn = ""
        # Whether a response was written that nothing has ended yet.
        self._open = False

    def all(self) -> Iterator[Record]:
        """Yield the records, in order."""
        drafts = self._drafts
        yield self._header(drafts[0].time if drafts else 0)
        block = [draft for draft in drafts if draft.summary]
        yield from self._compaction(block)
        for draft in drafts[len(block) :]:
            if draft.role == ASSISTANT:
                yield from self._answer(draft)
                continue
            if draft.role != TOOL:
                self._open = False
            items = _items(draft, self._text_calls)
            yield from (_record(draft.time, "response_item", item) for item in items)
            if draft.role == USER and not draft.kind and not draft.name:
                self._turn = ""
                yield from self._user_event(draft)

    def _header(self, time: int) -> Record:
        facts = self._facts
        meta: Record = {
            "id": facts.session,
            "timestamp": format_time(time),
            "cwd": facts.cwd,
            "originator": ORIGINATOR,
            "cli_version": facts.version,
            "source": "cli",
            "model_provider": PROVIDER,
        }
        if facts.branch:
            meta["git"] = {"branch": facts.branch}
        return _record(time, "session_meta", meta)

    def _compaction(self, block: Sequence[DraftMessage]) -> Iterator[Record]:
        if not block:
            return
        model = next((draft.model for draft in block if draft.model), "")
        if model:
            yield self._turn_context(block[0], model)
        history = [item for draft in block for item in _items(draft, self._text_calls)]
        payload = {"message": "", "replacement_history": history}
        yield _record(block[0].time, "compacted", payload)
        yield _record(block[0].time, "event_msg", {"type": "context_compacted"})
        self._open = False

    def _answer(self, draft: DraftMessage) -> Iterator[Record]:
        if self._open or draft.model != self._model or not self._turn:
            yield self._turn_context(draft, draft.model)
        for item in _items(draft, self._text_calls):
            yield from _events(draft.time, item)
            yield _record(draft.time, "response_item", item)
        self._open = True
        if draft.usage is not None:
            yield self._usage_event(draft.time, draft.usage)
            self._open = False

    def _turn_context(self, draft: DraftMessage, model: str) -> Record:
        where = coerce.place(self._session.turns[draft.turn])
        self._turn = self._turn or coerce.timed_uuid(draft.time, self._facts.session, where)
        self._model = model
        self._open = False
        payload = {
            "turn_id": self._turn,
            "cwd": self._facts.cwd,
            "approval_policy": "on-request",
            "sandbox_policy": {"type": "read-only"},
            "model": model,
            "summary": "auto",
        }
        return _record(draft.time, "turn_context", payload)

    def _user_event(self, draft: DraftMessage) -> Iterator[Record]:
        texts = [part.text for part in draft.parts if isinstance(part, Text)]
        images = [_data_url(part) for part in draft.parts if isinstance(part, Image)]
        payload = {"type": "user_message", "message": "\n".join(texts), "images": images}
        yield _record(draft.time, "event_msg", {**payload, "local_images": [], "text_elements": []})

    def _usage_event(self, time: int, usage: Usage) -> Record:
        last = _usage_of(usage)
        self._totals = {name: self._totals.get(name, 0) + count for name, count in last.items()}
        info = {
            "total_token_usage": self._totals,
            "last_token_usage": last,
            "model_context_window": None,
        }
        payload = {"type": "token_count", "info": info, "rate_limits": None}
        return _record(time, "event_msg", payload)


def _events(time: int, item: Record) -> Iterator[Record]:
    """Yield the events that show a model's item to the user."""
    if item["type"] == "message":
        texts = [block["text"] for block in item["content"] if "text" in block]
        payload = {"type": "agent_message", "message": "".join(texts), "phase": item.get("phase")}
        yield _record(time, "event_msg", payload)
    elif item["type"] == "reasoning":
        for block in item["summary"]:
            yield _record(time, "event_msg", {"type": "agent_reasoning", "text": block["text"]})


def _record(time: int, type_: str, payload: Record) -> Record:
    return {"timestamp": format_time(time), "type": type_, "payload": payload}


def _fit_reasoning(draft: DraftMessage, part: Reasoning) -> Reasoning | None:
    """Return reasoning of OpenAI's models; `_drop_unsigned_reasoning` checks the signatures."""
    if not draft.model or maker(draft.model) != PROVIDER:
        return None
    return Reasoning(whole(part.text), part.signature or None)


def _fit_own(part: Opaque, types: frozenset[str]) -> Opaque | None:
    """Return a block as a reader gets it; None if its type is not allowed there."""
    block = block_of(part, PROVIDER)
    if block is None or block.get("type") not in types:
        return None
    try:
        read = block_part(block, "", PROVIDER)
    except InvalidInputError:
        return None
    return read if isinstance(read, Opaque) else None


def _fit_item(part: Opaque, role: str, unread: frozenset[str]) -> Opaque | None:
    """Return an opaque part that readers see as a separate item, else None."""
    item = item_of(part, by_program=role != ASSISTANT) if role in (ASSISTANT, USER) else None
    if item is None or block_of(part, PROVIDER) is None or item["type"] in unread:
        return None
    return opaque(PROVIDER, item)


def _fit_content(part: Part) -> Part | None:
    """Return a part of a result as Codex stores it."""
    if isinstance(part, Text):
        return Text(whole(part.text)) if part.text else None
    if isinstance(part, Image):
        return fit_image(part)
    return _fit_own(part, _INPUT_BLOCKS) if isinstance(part, Opaque) else None


def _drop_unsigned_reasoning(draft: DraftMessage) -> None:
    """Remove unsigned reasoning unless signed reasoning follows in the same run: it is never sent again."""
    signed = False
    for piece in reversed([piece for piece in draft.pieces if piece.part is not None]):
        if not isinstance(piece.part, Reasoning):
            signed = False
        elif piece.part.signature or signed:
            signed = True
        else:
            piece.part = None


def _settle_frames(draft: DraftMessage) -> None:
    """Remove frames without an item after them, and give the others their call's id.

    A frame is an opaque part with fields of the next item that no other part can hold.
    """
    pieces = [piece for piece in draft.pieces if piece.part is not None]
    behind: DraftPart | None = None
    spoken = False
    for index, piece in enumerate(pieces):
        frame = _frame(piece.part)
        behind = pieces[index + 1] if index + 1 < len(pieces) else None
        if frame is None:
            spoken = _is_spoken(piece.part)
        elif draft.role == ASSISTANT and behind is not None and _belongs(frame, behind, spoken):
            call = behind.part.id if isinstance(behind.part, ToolCall) else None
            piece.part = _as_read(frame, call)
        else:
            piece.part = None


def _is_spoken(part: Part | None) -> bool:
    """Return True if a part belongs in an assistant message and is not an item."""
    if isinstance(part, Opaque):
        block = parse_object(part.data)
        return block is not None and block.get("type") in _REFUSALS
    return isinstance(part, Text)


def _is_frame(part: Part | None) -> bool:
    """Return True if an opaque part only adds its fields to the next item."""
    return _frame(part) is not None


def _split_items(drafts: Iterable[DraftMessage]) -> list[DraftMessage]:
    """Return drafts in which each opaque item of the user's side is a separate message."""
    found: list[DraftMessage] = []
    for draft in drafts:
        if draft.role != USER or not any(_is_item(part) for part in draft.parts):
            found.append(draft)
            continue
        runs: list[list[DraftPart]] = [[]]
        for piece in draft.pieces:
            if runs[-1] and piece.part is not None and _is_item(piece.part):
                runs.append([])
            runs[-1].append(piece)
            if _is_item(piece.part):
                runs.append([])
        for run in runs:
            if any(piece.part is not None for piece in run):
                found.append(replace(draft, pieces=run))
    return found


def _is_item(part: Part | None) -> bool:
    """Return True if an opaque part is a separate item, not a block of a message."""
    if not isinstance(part, Opaque):
        return False
    return any(item_of(part, by_program=by_program) is not None for by_program in (True, False))


def _response_items(draft: DraftMessage, text_calls: Collection[str]) -> Iterator[Wire]:
    """Yield the items of a draft, given the ids of calls with free-text arguments."""
    spoken: list[Part] = []
    summary: list[Part] = []
    frame: Wire = {}
    for part in draft.parts:
        if _is_block(part):
            spoken.append(part)
            continue
        framed = frame if not spoken else {}
        yield from _message(draft, spoken, frame)
        spoken, frame = [], _fields(part)
        if frame:
            continue
        if isinstance(part, Reasoning):
            summary.append(part)
            if part.signature:
                yield _thought(summary, part.signature)
                summary = []
        elif isinstance(part, ToolResult):
            yield _output(part, text_calls)
        else:
            yield _item(part, framed)
    yield from _message(draft, spoken, frame)


def _data_url(image: Image) -> str:
    """Return the URL of an image: its own, or a data URL."""
    if image.url is not None:
        return image.url
    return f"data:{image.media_type};base64,{base64.b64encode(image.data or b'').decode()}"


def _is_block(part: Part) -> bool:
    if isinstance(part, Opaque):
        return not _is_item(part) and not _is_frame(part)
    return isinstance(part, Text | Image)


def _block(part: Part, role: str) -> Wire:
    if isinstance(part, Text):
        if role == ASSISTANT:
            return {"type": "output_text", "text": part.text}
        return input_text(part.text)
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": _data_url(part)}
    return (parse_object(part.data) if isinstance(part, Opaque) else None) or {}


def _message(draft: DraftMessage, spoken: list[Part], frame: Wire) -> Iterator[Wire]:
    if spoken:
        content = [_block(part, draft.role) for part in spoken]
        yield {"type": "message", "role": draft.role, "content": content, **frame}


def _thought(summary: Sequence[Part], signature: str) -> Wire:
    texts = [part.text for part in summary if isinstance(part, Reasoning)]
    return reasoning_item([] if texts == [""] else [*map(summary_text, texts)], signature)


def _output(result: ToolResult, text_calls: Collection[str]) -> Wire:
    """Return an output; a single text is a string unless it would be misread."""
    text = None if _needs_list(result) else only_text(result.content)
    output = [_block(part, TOOL) for part in result.content] if text is None else text
    return output_item(result.call_id, output, custom=result.call_id in text_calls)


def _item(part: Part, frame: Wire) -> Wire:
    if isinstance(part, ToolCall):
        return call_item(part, part.name) | frame
    return (parse_object(part.data) if isinstance(part, Opaque) else None) or {}


def _frame(part: Part | None) -> Wire | None:
    return frame_of(part) if isinstance(part, Opaque) else None


def _fields(part: Part) -> Wire:
    """Return the fields that a frame adds to the next item; empty for other parts."""
    frame = _frame(part)
    return {} if frame is None else {k: frame[k] for k in FRAMES[frame["type"]] if k in frame}


def _belongs(frame: Wire, behind: DraftPart, spoken: bool) -> bool:
    """Return True if a frame belongs to the next piece; never in a continued message."""
    part = behind.part
    if frame["type"] == "message":
        fits = _is_spoken(part) and not spoken
    else:
        kind = "custom_tool_call" if getattr(part, "format", "") == "text" else "function_call"
        original = behind.original
        fits = (
            isinstance(original, ToolCall)
            and frame["type"] == kind
            and frame.get("call_id") == original.id
        )
    return fits and any(frame.get(key) is not None for key in FRAMES[frame["type"]])


def _as_read(frame: Wire, call_id: str | None) -> Opaque:
    kept = {key: frame[key] for key in FRAMES[frame["type"]] if frame.get(key) is not None}
    named = {} if call_id is None else {"call_id": call_id}
    return opaque(PROVIDER, {"type": frame["type"], **named, **kept})

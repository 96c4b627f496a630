"""Conversions that several import formats use: names, times, usage, parts, messages, branches and ref names.

Invariant: malformed content never makes a parsing function fail. Invalid names are dropped. Content without a
matching part type becomes an opaque part of its provider. Content that is unreadable or cannot be stored becomes an
opaque part that is sent to no provider.
"""

from __future__ import annotations

import base64
import binascii
import json
import string
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from trace_store.base.ident import check_author, parse_time
from trace_store.base.oid import OID_BYTES, ObjectId, digest
from trace_store.context.usage import normalise_usage
from trace_store.contracts.ref_names import BRANCHES, FILES, SESSIONS, is_ref_name
from trace_store.errors import FormatError, InvalidInputError, NotFoundError
from trace_store.importers.contract import PlannedMessage
from trace_store.importers.dedupe import read_commit
from trace_store.importers.json_records import compact
from trace_store.objects.codec import encode
from trace_store.objects.content import bytes_of
from trace_store.objects.message import ROLES, Message, default_kind, store_message
from trace_store.objects.parts import Image, Opaque, Part, Text, ToolResult
from trace_store.providers.chat import message_from_chat
from trace_store.providers.fields import UNREAD, damage_kept, dump
from trace_store.providers.lossless import render_part
from trace_store.store.revision import commits_of
from trace_store.store.store import Store
from trace_store.transcripts.segments import segments_of

LONGEST_NAME_BYTES = 256
MAXIMUM_TIME = 253_402_300_799_999
"""Last millisecond of the year 9999."""


@lru_cache(maxsize=256)
def author_of(agent: str, who: str) -> str:
    """Return the author of a commit: `codex/user`, `codex/<model>` or `codex`."""
    if not who:
        return agent
    try:
        return check_author(f"{agent}/{who}")
    except InvalidInputError:
        return agent


def storable_name(value: object) -> str:
    """Return a name or id if it is text of at most 256 bytes in valid UTF-8, else ""."""
    if not isinstance(value, str):
        return ""
    try:
        if value.isascii():
            return value if len(value) <= LONGEST_NAME_BYTES else ""
        return value if len(value.encode()) <= LONGEST_NAME_BYTES else ""
    except UnicodeEncodeError:
        return ""


def usage_counts(usage: object, model: object = "") -> dict[str, int | str]:
    """Return a provider's usage in stored form; empty if its shape is unknown."""
    if not isinstance(usage, Mapping):
        return {}
    try:
        normal = normalise_usage(usage)
    except InvalidInputError:
        return {}
    # In storage order.
    counts: dict[str, int | str] = {
        "cache_read": normal.cache_read,
        "cache_write": normal.cache_write,
        "input_total": normal.input_total,
    }
    name = storable_name(model)
    if name:
        counts["model"] = name
    counts["output_total"] = normal.output_total
    counts["reasoning"] = normal.reasoning
    counts["source"] = normal.source
    return counts


def time_of(value: object) -> int | None:
    """Convert an ISO time, or a number of seconds or milliseconds, to milliseconds since the epoch.

    None if it is not a time, or is later than the year 9999.
    """
    if isinstance(value, str):
        return time_of_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    # Seconds stay below this until the year 5138; milliseconds are above it since 1973.
    milliseconds = value * 1000 if value < 100_000_000_000 else value
    return int(milliseconds) if milliseconds <= MAXIMUM_TIME else None


def time_of_text(text: str) -> int | None:
    """Return an ISO time in milliseconds since the epoch, or None."""
    try:
        # JavaScript's format; the minute is parsed once and cached.
        if len(text) == 24 and text[13:20:3] == "::." and text[23] == "Z":
            rest = text[17:19] + text[20:23]
            if rest < "60" and rest.isdecimal() and text.isascii():
                return _minute(text[:16]) + int(rest)
        return parse_time(text)
    except InvalidInputError:
        return None


@lru_cache(maxsize=16)
def _minute(text: str) -> int:
    return parse_time(text + ":00Z")


def opaque(provider: str, value: Any) -> Opaque:
    """Return an opaque part that holds a value as JSON."""
    return Opaque(provider, bytes_of(compact(value)))


def text_parts(*values: object) -> tuple[Text, ...]:
    """Return a text part for each non-empty string."""
    return tuple(Text(value) for value in values if isinstance(value, str) and value)


def image_from_url(url: str) -> Image:
    """Return an image part for a URL.

    A base64 data URL is decoded; any other URL is kept as text.
    """
    head, comma, body = url.partition(",")
    if url.startswith("data:") and comma and head.endswith(";base64"):
        media = storable_name(head[5:].removesuffix(";base64"))
        try:
            if media:
                return Image(media, base64.b64decode(body, validate=True))
        except (binascii.Error, ValueError):
            pass
    return Image(url=url)


MAXIMUM_PARTS = 10_000
"""Maximum number of parts in a message.

A container in a commit has at most 65,536 elements, and no provider sends this many parts.
"""

_LEVELS_OF_A_COMMIT = 8
"""Containers around a stored message. Nested results are encoded at this depth, to see if they exceed MAXIMUM_DEPTH."""
_SOME_ID = ObjectId(bytes(OID_BYTES))


def try_parse(parse: Callable[[], Message]) -> Message | None:
    """Return the parsed message, with unreadable content as opaque parts.

    None if the parser rejects all of it, or if it cannot be stored.
    """
    try:
        with damage_kept():
            message = parse()
    except (InvalidInputError, RecursionError):
        return None
    return message if is_storable(message) else _make_storable(message)


def chat_message(form: Mapping[str, Any]) -> Message | None:
    """Return a message in OpenAI's or Anthropic's shape; None if its role is unknown."""
    message = try_parse(lambda: message_from_chat(form, "message"))
    if message is not None:
        return message
    role = form.get("role")
    if not isinstance(role, str) or role not in ROLES:
        return None
    fields = {key: form[key] for key in ("role", "content") if key in form}
    return try_parse(lambda: message_from_chat(fields, "message")) or unreadable_message(role, form)


def unreadable_message(role: str, form: Any) -> Message:
    """Return a message that holds unreadable data as it is."""
    return Message(role, [Opaque(UNREAD, bytes_of(dump(form)))])


def is_storable(message: Message) -> bool:
    """Return True if a commit can hold a message."""
    if len(message.parts) > MAXIMUM_PARTS:
        return False
    try:
        stored: Any = store_message(message, lambda _: _SOME_ID)
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        if any(len(part.content) > MAXIMUM_PARTS for part in results):
            return False
        if any(isinstance(inner, ToolResult) for part in results for inner in part.content):
            for _ in range(_LEVELS_OF_A_COMMIT):
                stored = [stored]
            encode(stored)
    except (InvalidInputError, RecursionError):
        return False
    return True


def _make_storable(message: Message) -> Message | None:
    """Return a message with unstorable parts made opaque, or None if that fails."""
    parts = [
        part if is_storable(Message(message.role, [part])) else _as_opaque(part)
        for part in message.parts[: MAXIMUM_PARTS + 1]
    ]
    named = {key: storable_name(getattr(message, key)) for key in ("id", "model", "name")}
    repaired = Message(message.role, parts, kind=message.kind, **named)
    return repaired if is_storable(repaired) else None


def _as_opaque(part: Part) -> Opaque:
    try:
        return Opaque(UNREAD, bytes_of(dump(render_part(part))))
    except RecursionError:
        return Opaque(UNREAD, b"{}")


def planned_message(
    message: Message, *, model: str = "", labels: Sequence[str] = (), priority: str = ""
) -> PlannedMessage:
    """Return a planned message; `model` applies if the message names none."""
    usual = message.kind == default_kind(message.role, message.parts)
    return PlannedMessage(
        message.role,
        message.parts,
        kind="" if usual else message.kind,
        model=message.model or model,
        id=message.id,
        name=message.name,
        labels=tuple(labels),
        priority=priority,
    )


def speaker(message: Message) -> str:
    """Return the author suffix of a message: `user`, its model, or "" for programs."""
    if message.role == "assistant":
        return message.model
    has_text = any(not isinstance(part, ToolResult) for part in message.parts)
    return "user" if message.role == "user" and has_text else ""


def tool_schemas(value: Any) -> tuple[bytes, ...] | None:
    """Return a list of tool schemas in stored form.

    None if it is not a list of objects.
    """
    if not isinstance(value, list) or not all(isinstance(schema, dict) for schema in value):
        return None
    try:
        return tuple(as_json(schema) for schema in value[:MAXIMUM_PARTS])
    except ValueError:
        return None  # not a JSON number


def as_json(value: Any) -> bytes:
    """Return a value as compact JSON, keys in the given order.

    Raises:
        ValueError: it holds a number that JSON cannot express.
    """
    return bytes_of(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


AGENTS = "agents"


def branch_of(store: Store, folder: str) -> str:
    """Return the branch of a session or subagent.

    Return `refs/heads/sessions/<folder>` if it exists. If it was renamed, return the branch that contains the session's
    last commit; of several, the one with the fewest later commits. If no branch has it, return the original name.

    Args:
        store: the repository.
        folder: `<format>/<session>`, for a subagent with `/agents/<agent>`.
    """
    named = SESSIONS + folder
    if store.refs.read(named) is not None:
        return named
    last = _last_commit(store, folder)
    if last is None:
        return named
    candidates = []
    for ref, tip in store.refs.iterate(BRANCHES):
        if ref.startswith(SESSIONS):
            continue  # another session's branch, or a side branch of this one
        steps = _distances(store, tip)
        if last in steps:
            candidates.append((steps[last], ref))
    return min(candidates)[1] if candidates else named


def session_of(store: Store, ref: str) -> tuple[str, str, str] | None:
    """Return format, session and subagent of a branch; None if unknown.

    A branch with another name belongs to the session whose last commit is nearest to its tip.
    """
    if ref.startswith(SESSIONS):
        return _parse_folder(ref.removeprefix(SESSIONS))
    tip = store.refs.read(ref)
    if tip is None:
        return None
    steps = _distances(store, tip)
    candidates = []
    for folder in dict.fromkeys(name.rpartition("/")[0] for name, _ in store.refs.iterate(FILES)):
        last = _last_commit(store, folder.removeprefix(FILES))
        if last is not None and last in steps:
            candidates.append((steps[last], folder.removeprefix(FILES)))
    return _parse_folder(min(candidates)[1]) if candidates else None


def _parse_folder(folder: str) -> tuple[str, str, str] | None:
    parts = folder.split("/")
    if len(parts) == 2:
        return parts[0], parts[1], ""
    return (parts[0], parts[1], parts[3]) if len(parts) == 4 and parts[2] == AGENTS else None


def _last_commit(store: Store, folder: str) -> ObjectId | None:
    """Return the newest commit that a session's archived source files refer to; None if no file is archived.

    Commits outside the session's side branches are preferred.
    """
    place = f"{FILES}{folder}/"
    commits: list[ObjectId] = []
    for ref, tip in store.refs.iterate(place):
        if "/" not in ref.removeprefix(place):  # else a subagent's
            commits += _last_of_file(store, tip)
    side_commits: set[bytes] = set()
    for _, tip in store.refs.iterate(f"{SESSIONS}{folder}/") if commits else ():
        side_commits.update(_distances(store, tip))
    own = [oid for oid in commits if oid not in side_commits] or commits
    return max(own, key=lambda oid: read_commit(store, oid).time, default=None)


def _last_of_file(store: Store, tip: ObjectId) -> list[ObjectId]:
    """Return the commits that the last non-empty segment of a source file refers to, newest first."""
    try:
        segments = segments_of(tip, store.objects.read)
    except (NotFoundError, FormatError):
        return []
    return next((list(each.commits[::-1]) for each in reversed(segments) if each.commits), [])


def _distances(store: Store, tip: ObjectId) -> dict[ObjectId, int]:
    """Return the distance of each available ancestor from a tip."""
    steps: dict[ObjectId, int] = {}
    try:
        for number, oid in enumerate(commits_of(store).topological([tip], first_parent=True)):
            steps[oid] = number
    except (NotFoundError, FormatError):
        return steps
    return steps


MAXIMUM_CHARACTERS = 80
SHORT_CHARACTERS = 8

_GOOD = frozenset(string.ascii_letters + string.digits + "._-")
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))]
)


def ref_component(text: str) -> str:
    """Return an id as one component of a ref name, unchanged if it is valid."""
    clean = "".join(c if c in _GOOD else "-" for c in text)
    if (
        clean == text
        and 0 < len(text) <= MAXIMUM_CHARACTERS
        and text[0] not in ".-"
        and text[-1] != "."
        and ".." not in text
        and not text.lower().endswith((".lock", ".log"))
        and text.split(".")[0].lower() not in _DEVICES
        and not (len(text) == 64 and set(text) <= set(string.hexdigits))
        and is_ref_name(f"{BRANCHES}{text}")
    ):
        return text
    return distinct_component(text)


def distinct_component(text: str) -> str:
    """Return an id as a unique component, also on case-insensitive file systems."""
    # The hash distinguishes ids that become equal when characters are replaced or cut, or that
    # differ only in case.
    clean = "".join(c if c in _GOOD else "-" for c in text)
    kept = clean.replace(".", "-").strip("-")[: MAXIMUM_CHARACTERS // 2].rstrip("-")
    return f"{kept or 'id'}-{digest(bytes_of(text)).hex()[:12]}"


def short_id(text: str) -> str:
    """Return the first characters of an id as a component of a ref name."""
    return ref_component(text[:SHORT_CHARACTERS])

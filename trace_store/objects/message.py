"""Messages: a role, a kind and parts, and their stored form.

Rule: content is stored in blobs; ids, media types and flags in the commit. So the same text is stored only once.
The stored form of each part:

    text         {"blob", "type"}
    image        {"blob", "media", "type"} or {"type", "url"}, where `url` is the blob of the URL
    tool_call    {"blob", "id", "name", "type"} and "format": "text" if the arguments are not JSON
    tool_result  {"id", "parts", "type"}, "error": true if the tool failed, and "call", the address of the
                 message with the call
    reasoning    {"blob", "type"} and "signature", a blob
    opaque       {"blob", "provider", "type"}
"""

from __future__ import annotations

from trace_store import errors
from trace_store.objects.address import Address
from trace_store.objects.content import RawContent, bytes_of, read_content, text_of
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from trace_store.base.oid import ObjectId

    Put = Callable[[bytes], ObjectId]
    Read = Callable[[bytes], bytes]

ROLES = ("system", "developer", "user", "assistant", "tool")
FREEFORM = "freeform"
KINDS = ("instruction", "dialogue", "tool_io", "reasoning", "artifact", "output", FREEFORM)
"""The usual kinds. Other names are allowed and treated as FREEFORM."""
MAXIMUM_NAME_BYTES = 4096
_MAXIMUM_KIND = 64
_KIND_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")


class Message:
    """One message of a context.

    Attributes:
        role: one of ROLES.
        kind: one of KINDS or another lower-case name; default: derived from role and parts.
        parts: its content.
        name: the speaker's name, if the provider gets one.
        model: the model that wrote it; reasoning is bound to it.
        id: the provider's id of the message.
    """

    __slots__ = ("id", "kind", "model", "name", "parts", "role")

    def __init__(
        self,
        role: str,
        content: str | Sequence[Part],
        *,
        kind: str = "",
        name: str = "",
        model: str = "",
        id: str = "",
    ) -> None:
        """Create a message.

        Raises:
            InvalidMessageError: unknown role or kind, or invalid content.
        """
        if role not in ROLES:
            raise errors.InvalidMessageError(
                f"unknown role {_quote_unknown(role, ROLES)}: one of {', '.join(ROLES)}", role=role
            )
        parts = (Text(content),) if type(content) is str else message_parts(content)
        self.role = role
        self.parts: tuple[Part, ...] = parts
        self.kind = kind or default_kind(role, parts)
        if not is_kind(self.kind):
            raise errors.InvalidMessageError(
                f"unknown kind {_quote_unknown(self.kind, KINDS)}: one of {', '.join(KINDS)}, "
                "or another name of lower-case letters, digits, _ and -"
            )
        self.name = name
        self.model = model
        self.id = id

    @property
    def text(self) -> str:
        """All text parts, joined by newlines."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and all(
            getattr(self, field) == getattr(other, field) for field in self.__slots__
        )

    def __hash__(self) -> int:
        return hash((self.role, self.kind, self.parts))

    def __repr__(self) -> str:
        return f"Message({self.role!r}, {list(self.parts)!r}, kind={self.kind!r})"


def message_parts(content: str | Sequence[Part]) -> tuple[Part, ...]:
    """Return content as parts.

    Raises:
        InvalidMessageError: it is neither text nor a sequence of parts.
    """
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, Part) or not isinstance(content, list | tuple):
        raise errors.InvalidMessageError(
            f"the content of a message must be text or a list of parts, not {type(content).__name__}"
        )
    for part in content:
        if not isinstance(part, Part):
            raise errors.InvalidMessageError(
                f"not a message part: {type(part).__name__}; parts are Text, Data, Image, "
                "ToolCall, ToolResult, Reasoning and Opaque"
            )
        if problem := part.problem():
            raise errors.InvalidMessageError(problem)
    return tuple(content)


def is_kind(kind: object) -> bool:
    """Return True for a kind: lower-case letters, digits, "_" and "-"."""
    return kind in KINDS or (
        isinstance(kind, str)
        and 0 < len(kind) <= _MAXIMUM_KIND
        and "a" <= kind[0] <= "z"
        and _KIND_CHARACTERS.issuperset(kind)
    )


def _quote_unknown(name: object, known: Sequence[str]) -> str:
    """Quote an unknown name for an error message, with the closest known name."""
    from difflib import get_close_matches  # only needed for errors

    near = get_close_matches(str(name), known, 1)
    return f"{str(name)[:40]!r}" + (f" (did you mean {near[0]!r}?)" if near else "")


def default_kind(role: str, parts: Sequence[Part]) -> str:
    """Return the default kind for a role and parts."""
    if len(parts) == 1 and type(parts[0]) is Text and role in ("user", "assistant"):
        return "dialogue"  # the usual case
    if role in ("system", "developer"):
        return "instruction"
    if role == "tool" or any(isinstance(part, ToolCall | ToolResult) for part in parts):
        return "tool_io"
    if parts and all(isinstance(part, Reasoning) for part in parts):
        return "reasoning"
    return "dialogue"


def names_of(message: Message) -> list[str]:
    """Return the texts of a message that are stored in the commit itself: ids, names, schemas, media types."""
    # What is not text is refused when the message is encoded.
    given = (message.id, message.name, message.model)
    names = [each for each in given if each and type(each) is str] if any(given) else []
    for part in message.parts:
        if type(part) is not Text:
            names += part.names()
    return names


def renamed(message: Message, change: Callable[[str], str]) -> Message:
    """Return a message with each text of `names_of` replaced by what a function returns for it."""
    return Message(
        message.role,
        [part.renamed(change) for part in message.parts],
        kind=message.kind,
        name=change(message.name),
        model=change(message.model),
        id=change(message.id),
    )


def store_message(message: Message, put: Put) -> dict[str, Any]:
    """Return a message's stored form, keys sorted.

    `put` stores content and returns its id.

    Raises:
        InvalidMessageError: an id or a name cannot be stored.
    """
    stored: dict[str, Any] = {}
    if message.id:
        stored["id"] = check_name(message.id, "id")
    stored["kind"] = message.kind
    if message.model:
        stored["model"] = check_name(message.model, "model")
    if message.name:
        stored["name"] = check_name(message.name, "name")
    stored["parts"] = store_parts(message.parts, put)
    stored["role"] = message.role
    return stored


def store_parts(parts: Sequence[Part], put: Put) -> list[dict[str, Any]]:
    """Return the stored form of parts.

    Raises:
        InvalidMessageError: an id or a name cannot be stored, or a part has an unknown class.
    """
    return [_store_part(part, put) for part in parts]


def load_message(stored: Mapping[str, Any], read: Read) -> Message:
    """Load a message and its content. Purged content is replaced by a placeholder.

    Raises:
        ObjectNotFoundError: content is missing.
        CorruptObjectError: the stored form is damaged.
        UnsupportedFormatError: a part has an unknown type.
    """
    return Message(
        stored["role"],
        load_parts(stored["parts"], read),
        kind=kind_of(stored),
        name=stored.get("name", ""),
        model=stored.get("model", ""),
        id=stored.get("id", ""),
    )


def kind_of(stored: Mapping[str, Any]) -> str:
    """Return a stored message's kind; FREEFORM for an invalid one, "" for none."""
    kind = stored.get("kind", "")
    return str(kind) if not kind or is_kind(kind) else FREEFORM


def load_parts(stored: Sequence[Mapping[str, Any]], read: Read) -> tuple[Part, ...]:
    """Load parts and their content; raises as `load_message`."""
    return tuple([_load_part(part, read) for part in stored])


def part_blobs(stored: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """Return the ids of all content of stored parts, in order."""
    ids: list[bytes] = []
    for part in stored:
        for field in ("blob", "signature", "url"):
            if isinstance(part.get(field), bytes):
                ids.append(part[field])
        if "parts" in part:
            ids.extend(part_blobs(part["parts"]))
    return ids


def _store_part(part: Part, put: Put) -> dict[str, Any]:
    if isinstance(part, Data):
        schema = check_name(part.schema, "schema")
        return {"blob": put(bytes_of(part.text)), "schema": schema, "type": part.type}
    if isinstance(part, Text):
        return {"blob": put(bytes_of(part.text)), "type": part.type}
    if isinstance(part, ToolCall):
        stored: dict[str, Any] = {"blob": put(bytes_of(part.arguments))}
        if part.format != "json":
            stored["format"] = check_name(part.format, "format")
        stored["id"] = check_name(part.id, "id")
        stored["name"] = check_name(part.name, "name")
        stored["type"] = part.type
        return stored
    if isinstance(part, ToolResult):
        stored = {} if part.call is None else {"call": list(part.call)}
        if part.is_error:
            stored["error"] = True
        stored["id"] = check_name(part.call_id, "id")
        stored["parts"] = store_parts(part.content, put)
        stored["type"] = part.type
        return stored
    if isinstance(part, Reasoning):
        stored = {"blob": put(bytes_of(part.text))}
        if part.signature is not None:
            stored["signature"] = put(bytes_of(part.signature))
        stored["type"] = part.type
        return stored
    if isinstance(part, Image):
        if part.url is not None:
            return {"type": part.type, "url": put(bytes_of(part.url))}
        media = check_name(part.media_type, "media")
        return {"blob": put(RawContent(part.data or b"")), "media": media, "type": part.type}
    if isinstance(part, Opaque):
        provider = check_name(part.provider, "provider")
        # A block in JSON is text of the conversation. Any other bytes would not survive a change.
        content = part.data if part.data[:1] in (b"{", b"[") else RawContent(part.data)
        return {"blob": put(content), "provider": provider, "type": part.type}
    raise errors.InvalidMessageError(f"not a message part: {type(part).__name__}")


def _load_part(stored: Mapping[str, Any], read: Read) -> Part:
    try:
        return _load_whole_part(stored, read)
    except errors.PurgedError as error:
        return purged_part(stored, error)


def purged_part(stored: Mapping[str, Any], error: errors.PurgedError) -> Part:
    """Return the placeholder for a part whose content was purged.

    A call stays a call, because its result needs one. Reasoning loses its signature, which was for other text.
    """
    placeholder = str(error.placeholder)
    if stored["type"] == "tool_call":
        form = stored.get("format", "json")
        arguments = placeholder if form != "json" else {"purged": placeholder}
        return ToolCall(stored.get("id", ""), stored.get("name", ""), arguments, form)
    return Reasoning(placeholder) if stored["type"] == "reasoning" else Text(placeholder)


def _load_whole_part(stored: Mapping[str, Any], read: Read) -> Part:
    try:
        type_ = stored["type"]
        if type_ == "tool_result":
            content = load_parts(stored["parts"], read)
            call = Address(*stored["call"]) if "call" in stored else None
            return ToolResult(stored["id"], content, stored.get("error", False), call=call)
        if type_ == "image" and "url" in stored:
            return Image(url=text_of(read_content(stored["url"], read)))
        content_bytes = read_content(stored["blob"], read)
        if type_ == "text":
            return Text(text_of(content_bytes))
        if type_ == "data":
            return Data(stored["schema"], text_of(content_bytes))
        if type_ == "tool_call":
            return ToolCall(
                stored["id"], stored["name"], text_of(content_bytes), stored.get("format", "json")
            )
        if type_ == "reasoning":
            return Reasoning(text_of(content_bytes), _load_signature(stored, read))
        if type_ == "image":
            return Image(stored["media"], content_bytes)
        if type_ == "opaque":
            return Opaque(stored["provider"], content_bytes)
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise errors.CorruptObjectError(f"a message part is damaged: {error}") from error
    raise errors.UnsupportedFormatError(
        f"a message has a part of unknown type {type_!r}", required=f"part:{type_}"
    )


def _load_signature(stored: Mapping[str, Any], read: Read) -> str | None:
    try:
        return text_of(read_content(stored["signature"], read)) if "signature" in stored else None
    except errors.PurgedError:
        return None


def check_name(value: object, field: str) -> str:
    """Return an id or a name if it can be stored.

    Raises:
        InvalidMessageError: it is not text, not valid UTF-8, or too long.
    """
    if not isinstance(value, str):
        raise errors.InvalidMessageError(f"the {field} of a message must be text")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise errors.InvalidMessageError(f"the {field} of a message is not valid UTF-8") from None
    if size > MAXIMUM_NAME_BYTES:
        raise errors.InvalidMessageError(
            f"the {field} of a message has {size} bytes, over the limit of {MAXIMUM_NAME_BYTES}"
        )
    return value

"""The next request of a session: its messages with sections, what is cut for it, and the sizes of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.compression.cuts import shortened
from trace_store.compression.selection import unread_from
from trace_store.context.compiled import CompiledContext, CompiledMessage, LoadedMessage
from trace_store.objects.message import Message
from trace_store.objects.parts import Part, Text, ToolResult
from trace_store.providers.rendering import Repair

DESCRIPTION, CONTEXT = "description", "context"
"""Names of the instruction messages that say what the agent does, and what the project is."""
INSTRUCTION, SUMMARY = "instruction", "summary"
"""Kinds of messages."""
HEADINGS = {DESCRIPTION: "# Task", CONTEXT: "# Project", SUMMARY: "# Earlier conversation"}
SMALLEST_CUT = 200
"""Messages of fewer tokens are not cut."""
_ROLES = ("system", "developer")


@value
class SessionRequest:
    """A request that fits, ready to be sent.

    Attributes:
        body: the request in the provider's format; `client.messages.create(model=…, max_tokens=…, **request.body)`.
        provider: the name of that format.
        commit: the commit whose context it has, which the reply's usage is about.
        tokens: the most likely input tokens, as the provider counts.
        bound: the most input tokens that can be expected.
        limit: the most tokens of input and reply.
        estimated: Trace's estimate for what is sent.
        sent: the hash of the body.
        done: what was done to make it fit, a sentence each.
        cut: the messages that only this request has as head and tail.
        repairs: what differs from the context, so that the provider accepts it.
    """

    JSON = "body provider commit tokens bound limit estimated sent done cut repairs -sizes"

    body: Any
    provider: str
    commit: ObjectId
    tokens: int
    bound: int
    limit: int
    estimated: int
    sent: bytes
    done: tuple[str, ...]
    cut: tuple[str, ...]
    repairs: tuple[Repair, ...]
    sizes: Mapping[str, int]


def request_from(data: Mapping[str, Any]) -> SessionRequest:
    """Return a request from its JSON form; the sizes of its messages are not in it.

    Raises:
        InvalidInputError: it has another form.
    """
    try:
        return _request_from(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise errors.InvalidInputError(
            "not a request of a session as JSON", argument="request"
        ) from error


def _request_from(data: Mapping[str, Any]) -> SessionRequest:
    return SessionRequest(
        body=data["body"],
        provider=str(data["provider"]),
        commit=ObjectId.parse(data["commit"]),
        tokens=int(data["tokens"]),
        bound=int(data["bound"]),
        limit=int(data["limit"]),
        estimated=int(data["estimated"]),
        sent=bytes.fromhex(data["sent"]),
        done=tuple(data["done"]),
        cut=tuple(data["cut"]),
        repairs=(),
        sizes={},
    )


@value
class Preview:
    """The tokens of the next request, as its provider will count them.

    Attributes:
        description, context, summary, messages: the tokens of the parts, those of `message` included.
        beside: tools, and what the provider adds.
        total: the most likely tokens of all.
        bound: the most that can be expected.
        reply: what is kept free for the reply.
        limit: the most tokens of input and reply.
    """

    description: int
    context: int
    summary: int
    messages: int
    beside: int
    total: int
    bound: int
    reply: int
    limit: int

    @property
    def fits(self) -> bool:
        """Whether the request can be sent as it is."""
        return self.bound + self.reply <= self.limit


class RequestShape:
    """What the next request holds.

    Attributes:
        context: the compiled context.
        sizes: the estimated tokens of each message by address, and of what is beside them by "".
        unread: position of the first message that no model was shown yet.
    """

    def __init__(self, context: CompiledContext, cuts: Mapping[int, Message] | None = None) -> None:
        self.context = context
        self._changed: dict[int, Message] = {}
        totals = [total for total, _ in context.message_tokens()]
        roles: list[str] = []
        self._keys: list[str] = []
        self._parts: list[str] = []
        for at, message in enumerate(context.messages):
            roles.append(message.role)
            self._keys.append(message.address.hex)
            part = part_of(message)
            self._parts.append(part)
            if part and (section := _section(message, part)) is not None:
                self._changed[at] = section
        self._changed.update(cuts or {})
        beside = context.estimated_token_count - sum(totals)
        for at, made in self._changed.items():
            totals[at] = self._count(made)
        self._totals = totals
        self.cuts = dict(cuts or {})
        self.sizes: dict[str, int] = dict(zip(self._keys, totals, strict=True))
        self.sizes[""] = beside
        self.unread = unread_from(roles)

    def _count(self, message: Message) -> int:
        return self.context.plain([message]).message_tokens()[0][0]

    @property
    def estimated(self) -> int:
        """The sum of the sizes."""
        return sum(self.sizes.values())

    def sizes_of_sent(self, estimated: int) -> dict[str, int]:
        """Return the sizes of a request that was sent with this context, of so many tokens.

        It may have been cut: then it is not known which of the unread messages had which size, and they count as one.
        """
        if estimated >= self.estimated:
            return self.sizes
        large = [
            at for at in range(self.unread, len(self._keys)) if self._totals[at] > SMALLEST_CUT
        ]
        sizes = dict(self.sizes)
        gone = sum(sizes.pop(self._keys[at]) for at in large)
        return {**sizes, "cut": max(0, estimated - (self.estimated - gone))}

    @property
    def unread_size(self) -> int:
        """The estimated tokens of what no model was shown yet."""
        return sum(self._totals[self.unread :])

    @property
    def cut_addresses(self) -> tuple[str, ...]:
        """The short addresses of the messages that are cut."""
        return tuple(self.context.messages[at].address.short(8) for at in sorted(self.cuts))

    def part_sizes(self) -> dict[str, int]:
        """Return the estimated tokens of each part; "" are the other messages."""
        found: dict[str, int] = {}
        for part, size in zip(self._parts, self._totals, strict=True):
            found[part] = found.get(part, 0) + size
        return found

    def with_news_of(self, tokens: int) -> RequestShape:
        """Return the request with unread messages cut to head and tail, so that they have at most so many tokens.

        The largest are cut first; instructions and small ones stay, so that the result may be larger.
        """
        over = self.unread_size - tokens
        cuts = dict(self.cuts)
        sizes = self._totals
        places = [at for at in range(self.unread, len(sizes)) if sizes[at] > SMALLEST_CUT]
        for at in sorted(places, key=lambda at: -sizes[at]):
            if over <= 0:
                break
            message = self.context.messages[at]
            if message.role in _ROLES:
                continue
            keep = max(SMALLEST_CUT // 2, sizes[at] - over)
            made = _cut(message, keep / sizes[at])
            saved = sizes[at] - self._count(made)
            if saved > 0:
                cuts[at] = made
                over -= saved
        return RequestShape(self.context, cuts)

    def messages(self) -> list[Message]:
        """Return the messages to render."""
        return [
            self._changed.get(at) or LoadedMessage.of(message)
            for at, message in enumerate(self.context.messages)
        ]


def part_of(message: CompiledMessage) -> str:
    """Return the part of a request that a message is: description, context, summary, or "" for the conversation."""
    if message.role in _ROLES:
        return CONTEXT if message.name == CONTEXT else DESCRIPTION
    return SUMMARY if message.kind == SUMMARY else ""


def _section(message: CompiledMessage, part: str) -> Message | None:
    """Return a message with a heading; None if it has one, or is no section."""
    if part == DESCRIPTION and message.name != DESCRIPTION:
        return None  # an instruction that the author wrote
    text = message.text
    if not text or text.startswith("#"):
        return None
    first = Text(f"{HEADINGS[part]}\n\n{text}")
    others = [each for each in message.parts if not isinstance(each, Text)]
    return Message(message.role, [first, *others], kind=message.kind, name=message.name)


def _cut(message: CompiledMessage, share: float) -> Message:
    """Return a message with this share of its text, as head and tail."""
    address = message.address.short(8)
    parts = [_cut_part(each, share, address) for each in message.parts]
    return Message(message.role, parts, kind=message.kind, name=message.name, model=message.model)


def _cut_part(part: Part, share: float, address: str) -> Part:
    if isinstance(part, ToolResult):
        content: Sequence[Part] = [_cut_part(each, share, address) for each in part.content]
        return ToolResult(part.call_id, content, part.is_error, call=part.call)
    if not isinstance(part, Text):
        return part
    tokens = max(20, int(len(part.text) * share * 0.8) // 4)  # the note, and denser text, have room
    return Text(shortened(part.text, tokens, address, failures=True) or part.text)

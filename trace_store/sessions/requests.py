"""The next request of a session: section headings, messages cut for this request only, and token sizes."""

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
"""Names of the instruction messages about the agent and about the project."""
INSTRUCTION, SUMMARY = "instruction", "summary"
"""Kinds of messages."""
HEADINGS = {DESCRIPTION: "# Task", CONTEXT: "# Project", SUMMARY: "# Earlier conversation"}
SMALLEST_CUT = 200
"""Messages of fewer tokens are not cut."""
_ATTEMPTS, _CLOSE = 4, 0.9
"""A cut is repeated until it keeps this share of the tokens that it may keep."""
_ROLES = ("system", "developer")


@value
class SessionRequest:
    """A request that fits the limit.

    Attributes:
        body: the request in the provider's format; `client.messages.create(model=…, max_tokens=…, **request.body)`.
        provider: the name of that format.
        commit: the commit that it was compiled from; the reply's usage refers to it.
        tokens: the most likely input tokens, as the provider counts.
        bound: the upper bound of its input tokens.
        limit: the maximum tokens of input and reply.
        estimated: Trace's estimate of its tokens.
        sent: the hash of the body.
        done: one sentence for each compaction or trim that made it fit.
        cut: addresses of the messages that are cut to head and tail in this request only.
        repairs: changes that the provider requires.
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
    """Return a request from its JSON form, which has no message sizes.

    Raises:
        InvalidInputError: it is not a request as JSON.
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
    """Forecast of the next request's tokens by part.

    Attributes:
        description, context, summary, messages: tokens of each part; `messages` includes `message`.
        beside: tokens of tools and of the provider's own prompt.
        total: the most likely total.
        bound: the upper bound of the total.
        reply: tokens reserved for the reply.
        limit: the maximum tokens of input and reply.
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
        """Whether the request fits without changes."""
        return self.bound + self.reply <= self.limit


class RequestShape:
    """The contents of the next request.

    Attributes:
        context: the compiled context.
        sizes: estimated tokens by message address; "" is everything that is not a message.
        unread: position of the first message that no model has seen.
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
        """Return the sizes of a request that was sent with this context.

        If unread messages were cut, their sizes are unknown, so they count as one entry.

        Args:
            estimated: the estimated tokens of the request.
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
        """Estimated tokens of the unread messages."""
        return sum(self._totals[self.unread :])

    @property
    def cut_addresses(self) -> tuple[str, ...]:
        """Short addresses of the cut messages."""
        return tuple(self.context.messages[at].address.short(8) for at in sorted(self.cuts))

    def cut_notes(self) -> list[str]:
        """Return a sentence about each cut message."""
        whole = self.context.message_tokens()
        return [
            f"{self.context.messages[at].address.short(8)} ({self.context.messages[at].role}) is sent as head and "
            f"tail: {self._totals[at]:,} of {whole[at][0]:,} tokens"
            for at in sorted(self.cuts)
        ]

    def part_sizes(self) -> dict[str, int]:
        """Return the estimated tokens of each part; "" is the conversation."""
        found: dict[str, int] = {}
        for part, size in zip(self._parts, self._totals, strict=True):
            found[part] = found.get(part, 0) + size
        return found

    def with_news_of(self, tokens: int) -> RequestShape:
        """Return the request with unread messages cut to head and tail.

        The largest are cut first. Instructions and small messages stay whole, so the target may be missed.

        Args:
            tokens: the target for all unread messages.
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
            made = self._cut_to(message, keep, sizes[at])
            saved = sizes[at] - self._count(made)
            if saved > 0:
                cuts[at] = made
                over -= saved
        return RequestShape(self.context, cuts)

    def _cut_to(self, message: CompiledMessage, tokens: int, size: int) -> Message:
        """Return a message cut to about some tokens, and seldom more; `size` is what it has."""
        share = tokens / size
        made = _cut(message, share)
        for _ in range(_ATTEMPTS):  # texts differ in their characters for a token
            count = self._count(made)
            if count >= tokens * _CLOSE or share >= 1:
                break
            share = min(1.0, share * tokens / count)
            wider = _cut(message, share)
            if self._count(wider) > tokens:
                break
            made = wider
        return made

    def messages(self) -> list[Message]:
        """Return the messages to render."""
        return [
            self._changed.get(at) or LoadedMessage.of(message)
            for at, message in enumerate(self.context.messages)
        ]


def part_of(message: CompiledMessage) -> str:
    """Return the part that a message belongs to: description, context, summary, or "" for the conversation."""
    if message.role in _ROLES:
        return CONTEXT if message.name == CONTEXT else DESCRIPTION
    return SUMMARY if message.kind == SUMMARY else ""


def _section(message: CompiledMessage, part: str) -> Message | None:
    """Return a section with a heading added; None if it has one or is not a section."""
    if part == DESCRIPTION and message.name != DESCRIPTION:
        return None  # written by the author of the agent
    text = message.text
    if not text or text.startswith("#"):
        return None
    first = Text(f"{HEADINGS[part]}\n\n{text}")
    others = [each for each in message.parts if not isinstance(each, Text)]
    return Message(message.role, [first, *others], kind=message.kind, name=message.name)


def _cut(message: CompiledMessage, share: float) -> Message:
    """Return a message cut to a share of its text."""
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

"""Compiled contexts, decoded on access.

A context of 100,000 messages reads two records until a message is accessed, and counts no tokens until asked.
"""

from __future__ import annotations

from _collections_abc import Sequence  # the same class as in collections.abc, but cheap to import

from trace_store import context, errors, providers
from trace_store.base.frozen import value
from trace_store.base.gc_pause import paused
from trace_store.base.oid import ObjectId, digest
from trace_store.context import tokens
from trace_store.context.compile_index import (
    EDITED,
    GHOST,
    IS_MARKED,
    IndexView,
    MessageRecord,
    TokenRecord,
    address_at,
    fields_at,
    flags_at,
    kind_at,
    ordinal_at,
    priority_of,
    role_at,
)
from trace_store.context.content import message_at, message_line, version_at
from trace_store.context.tokens.models import MeasuredReport, request_tokens
from trace_store.objects import operations as ops
from trace_store.objects.address import Address, resolve_calls
from trace_store.objects.commit import Commit
from trace_store.objects.content import bytes_of
from trace_store.objects.message import FREEFORM, Message, kind_of, load_parts
from trace_store.objects.parts import Part, Reasoning, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, Protocol, TypeAlias, overload

    from trace_store.context.bulk_read import Said
    from trace_store.context.compile_index import Sums
    from trace_store.context.fold import ReadCommit
    from trace_store.context.tokens.models import TokenCounting
    from trace_store.context.tokens.tokenizer import Tokenizer

    class MessageSource(Protocol):
        """Reads the objects and commits of messages."""

        def read(self, oid: bytes) -> bytes: ...
        def read_commit(self, oid: bytes) -> Commit: ...
        def read_data(self, oids: Iterable[bytes]) -> Iterator[bytes]: ...
        def labels(self, tip: bytes, address: Address) -> frozenset[str]: ...

    class Source(MessageSource, Protocol):
        """Reads a context: also the columns of its index."""

        @property
        def purged(self) -> frozenset[bytes]: ...
        def token_records(
            self, view: IndexView, start: int, stop: int | None
        ) -> list[TokenRecord]: ...
        def token_total(self, view: IndexView) -> TokenRecord: ...
        def tool_tokens(self, setter: bytes | None) -> int: ...
        def report(self, view: IndexView, model: str) -> MeasuredReport | None: ...

    MessageLike: TypeAlias = "CompiledMessage | Message"


@value
class TokenGrowth:
    """Tokens of the context at a commit.

    Attributes:
        total: tokens of the compiled context, as `CompiledContext.token_count`.
        added: the difference from the first parent.
        source: how the total was counted.
    """

    total: int
    added: int
    source: str


class Reading:
    """Shared data of one context's messages: their source, and prefetched content."""

    __slots__ = ("loader", "source", "tip")

    def __init__(self, source: MessageSource, tip: bytes | None) -> None:
        self.source = source
        self.tip = tip
        self.loader = context.bulk_read.Loader(source.read_data)


class CompiledMessage:
    """One message of a context: the attributes of `Message`, and its origin."""

    JSON = "address position role kind priority labels ghost"

    __slots__ = ("_at", "_block", "_reading", "_said", "_stored")
    _stored: Mapping[str, Any]

    def __init__(self, reading: Reading, block: bytes, at: int) -> None:
        # Contexts have many of these, so fields are decoded from the record on access.
        self._reading = reading
        self._block = block
        self._at = at
        self._said: Said | None = None

    @classmethod
    def of(cls, source: MessageSource, tip: bytes | None, record: MessageRecord) -> CompiledMessage:
        """Return the message of a single record."""
        return cls(Reading(source, tip), record.pack(), 0)

    @property
    def record(self) -> MessageRecord:
        """The record of the index."""
        return MessageRecord.unpack_from(self._block, self._at)

    @property
    def position(self) -> int:
        """The place in the context, from 0."""
        return ordinal_at(self._block, self._at) - 1

    @property
    def role(self) -> str:
        """The role."""
        return role_at(self._block, self._at)

    @property
    def kind(self) -> str:
        """The kind."""
        return self._exactly(kind_at(self._block, self._at))

    def _exactly(self, kind: str) -> str:
        """Return the kind of a message that has this one in the index, where custom kinds are FREEFORM."""
        return kind if kind != FREEFORM else kind_of(self.stored) or FREEFORM

    @property
    def priority(self) -> str:
        """The priority: pinned, important or normal; skipped messages are not in a context."""
        return priority_of(flags_at(self._block, self._at))

    @property
    def ghost(self) -> bool:
        """Whether this is the placeholder of a removed message."""
        return bool(flags_at(self._block, self._at) & GHOST)

    @property
    def address(self) -> Address:
        """The message's address."""
        return address_at(self._block, self._at)

    @property
    def labels(self) -> frozenset[str]:
        """The message's labels."""
        reading = self._reading
        if not flags_at(self._block, self._at) & IS_MARKED or reading.tip is None:
            return frozenset()
        return reading.source.labels(reading.tip, self.address)

    @property
    def stored(self) -> Mapping[str, Any]:
        """The message in stored form, in its current version."""
        try:
            return self._stored
        except AttributeError:
            self._stored = stored_message(self.record, self._reading.source.read_commit)
        return self._stored

    def summary(self, width: int = 72) -> str:
        """Return its role and the start of its content on one line; "" for a placeholder.

        Content that is missing is named in the line.
        """
        if self.ghost:
            return ""
        return message_line(self.stored, self._reading.source.read, width)

    @property
    def name(self) -> str:
        """The speaker's name, or ""."""
        return (self._said or self._content())[0]

    @property
    def model(self) -> str:
        """The model that wrote it, or ""."""
        return (self._said or self._content())[1]

    @property
    def id(self) -> str:
        """The provider's id, or ""."""
        return (self._said or self._content())[2]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content of the message.

        Raises:
            ObjectNotFoundError: content is missing.
            CorruptObjectError: content is damaged.
        """
        return (self._said or self._content())[3]

    @property
    def text(self) -> str:
        """All text parts, joined by newlines."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    def message(self) -> Message:
        """Return a plain message with the same content."""
        return Message(
            self.role, self.parts, kind=self.kind, name=self.name, model=self.model, id=self.id
        )

    def __repr__(self) -> str:
        return f"CompiledMessage({self.role!r}, address='{self.address}')"

    def _content(self) -> Said:
        said = self._said
        if said is None:
            said = self._reading.loader.load(self._block, self._at) or self._slowly()
            self._said = said
        return said

    def _slowly(self) -> Said:
        """Read the content object by object."""
        stored = self.stored
        record = self.record
        if record.flags & GHOST:
            parts: tuple[Part, ...] = (Text(ghost_of(record, self._reading.source)),)
        else:
            parts = load_parts(stored["parts"], self._reading.source.read)
        return stored.get("name", ""), stored.get("model", ""), stored.get("id", ""), parts


def stored_message(record: MessageRecord, read_commit: ReadCommit) -> Mapping[str, Any]:
    """Return a message in stored form, in its current version.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit is missing or damaged, or has no such message.
    """
    home = record.home_commit, record.home_number
    stored = message_at(home, read_commit)
    if record.flags & EDITED:
        parts = version_at((record.place_commit, record.place_number), read_commit)
    else:
        parts = resolve_calls(stored["parts"], home[0])
    return {**ops.without_state(stored), "parts": parts}


def ghost_of(record: MessageRecord, source: MessageSource) -> str:
    """Return the placeholder of a removed message; the message's own commit and content are read.

    Raises:
        ObjectNotFoundError, CorruptObjectError: the commit is missing or damaged, or has no such message.
    """
    stored = message_at((record.home_commit, record.home_number), source.read_commit)
    return context.ghost.ghost_text(record.address, stored, source.read)


class LoadedMessage(Message):
    """A message of a context that was read whole, for those who look at each message many times.

    Attributes:
        address, priority, ghost: as in `CompiledMessage`; the others as in `Message`.
    """

    __slots__ = ("address", "ghost", "priority")
    address: Address
    ghost: bool
    priority: str

    @classmethod
    def of(cls, message: CompiledMessage) -> LoadedMessage:
        """Read a message; raises as `CompiledMessage.parts`."""
        loaded = cls.__new__(cls)
        loaded.name, loaded.model, loaded.id, loaded.parts = message._said or message._content()
        fields = fields_at(message._block, message._at)
        loaded.address, loaded.role, kind, loaded.priority, loaded.ghost = fields
        loaded.kind = message._exactly(kind)
        return loaded


class CompiledMessages(Sequence[CompiledMessage]):
    """The messages of a context, created on access."""

    __slots__ = ("_source", "_view")

    def __init__(self, source: Source, view: IndexView) -> None:
        self._source = source
        self._view = view

    def __len__(self) -> int:
        return self._view.message_count

    def __iter__(self) -> Iterator[CompiledMessage]:
        return self._range(0, len(self))

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: int) -> CompiledMessage: ...
        @overload
        def __getitem__(self, index: slice) -> list[CompiledMessage]: ...

    def __getitem__(self, index: int | slice) -> CompiledMessage | list[CompiledMessage]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return [self[i] for i in range(start, stop, step)]
            return list(self._range(start, stop))
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(index)
        return next(self._range(position, position + 1))

    def _range(self, start: int, stop: int) -> Iterator[CompiledMessage]:
        # Messages of one iteration share their read-ahead; each iteration has its own.
        reading = Reading(self._source, self._view.tip)
        for block, offsets in self._view.blocks(start, stop):
            with paused:
                messages = [CompiledMessage(reading, block, at) for at in offsets]
            yield from messages


class RenderableContext:
    """Base class of contexts: renders them for a provider."""

    __slots__ = ()

    model: str

    @property
    def tools(self) -> tuple[Any, ...]:
        """The current tool schemas, decoded from JSON."""
        raise AttributeError("tools")

    def shown_messages(self) -> Sequence[MessageLike]:
        """Return the messages to render."""
        raise AttributeError("shown_messages")

    def render(self, form: str, **options: Any) -> providers.rendering.Rendered:
        """Return the context in a provider's format; `form` is a name in `render.RENDERERS`.

        Raises:
            InvalidInputError: unknown format.
            RenderError: with `strict=True`, if the context would need a repair.
        """
        options.setdefault("model", self.model or None)
        return providers.rendering.render(form, self.shown_messages(), self.tools, **options)

    def _rendered(self, form: str, options: dict[str, Any]) -> dict[str, Any]:
        request: dict[str, Any] = self.render(form, **options).request
        return request

    def to_openai(self, **options: Any) -> dict[str, Any]:
        """Return an OpenAI chat request: `{"messages": …, "tools": …}`."""
        return self._rendered("openai", options)

    def to_openai_responses(self, **options: Any) -> dict[str, Any]:
        """Return an OpenAI Responses request: `{"instructions": …, "input": …, "tools": …}`."""
        return self._rendered("openai-responses", options)

    def to_anthropic(self, **options: Any) -> dict[str, Any]:
        """Return an Anthropic request: `{"system": …, "messages": …, "tools": …}`."""
        return self._rendered("anthropic", options)

    def to_gemini(self, **options: Any) -> dict[str, Any]:
        """Return a Gemini request: `{"systemInstruction": …, "contents": …, "tools": …}`."""
        return self._rendered("gemini", options)

    def to_text(self, **options: Any) -> str:
        """Return a plain transcript."""
        return str(self.render("text", **options).request)

    def to_json(self, **options: Any) -> dict[str, Any]:
        """Return Trace's lossless form."""
        return self._rendered("json", options)


class CompiledContext(RenderableContext):
    """The context of a model at a commit.

    Attributes:
        commit: the commit; None on an unborn branch.
        messages: in order, read on access.
        model: the model that it was compiled for, or "".
        view: the records of the index, for comparisons.
    """

    JSON = (
        "commit message_count=__len__ token_count token_source reported_token_count "
        "doubted_token_count "
        "estimated_token_count message_token_count=message_part text_token_count text_token_source prefix_hash "
        "tool_count=tools.__len__"
    )

    __slots__ = (
        "_find_counting",
        "_known_counting",
        "_last_report",
        "_reasoning",
        "_source",
        "_tokenizer",
        "_tools",
        "commit",
        "messages",
        "model",
        "view",
    )

    def __init__(
        self,
        source: Source,
        view: IndexView,
        tokenizer: Tokenizer,
        counting: Callable[[], TokenCounting],
        tools: Callable[[], tuple[Any, ...]],
        *,
        model: str = "",
        reasoning: bool = True,
    ) -> None:
        self._source = source
        self.view = view
        self._tokenizer = tokenizer
        self._find_counting = counting
        self._tools = tools
        self._reasoning = reasoning
        self._last_report: tuple[MeasuredReport | None] | tuple[()] = ()  # empty until first use
        self.commit = None if view.tip is None else ObjectId(view.tip)
        self.messages: CompiledMessages = CompiledMessages(source, view)
        self.model = model

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[CompiledMessage]:
        return iter(self.messages)

    def __repr__(self) -> str:
        at = self.commit.short() if self.commit else "unborn"
        return f"CompiledContext({at}, {len(self)} messages)"

    def load(self) -> list[LoadedMessage]:
        """Return all messages, read whole; raises as `CompiledMessage.parts`."""
        return [LoadedMessage.of(each) for each in self.messages]

    @property
    def prefix_hash(self) -> bytes:
        """32 bytes over everything that a model may see of all messages; equal contexts have equal hashes."""
        return self.view.prefix_hash

    def prefix_hashes(self) -> list[bytes]:
        """Return the hash of the context up to and including each message."""
        return [record.prefix for record in self.view.messages()]

    @property
    def tools(self) -> tuple[Any, ...]:
        """The current tool schemas, decoded from JSON."""
        return self._tools()

    @property
    def token_count(self) -> int:
        """Tokens of the context; `token_source` says how they were counted.

        With a credible report of a provider: the reported count and the change of the estimate since. Otherwise
        `estimated_token_count`.
        """
        return count_of(self, self._sums())

    @property
    def token_source(self) -> str:
        """How `token_count` was counted.

        `provider:NAME` with a provider's report, plus `+estimate` if the size has changed since. Otherwise
        `estimate_source`.
        """
        report = self.report
        if report is None:
            return self.estimate_source
        is_other = self.estimated_token_count != request_tokens(self._counting, report.sums)
        return f"provider:{report.name}{'+estimate' if is_other else ''}"

    @property
    def report(self) -> MeasuredReport | None:
        """The last provider's report on this context or an ancestor's, or None without a credible one.

        For a named model, only reports of models with the same token counting are used.
        """
        report = self._any_report()
        return report if report is not None and report.is_credible(self._counting) else None

    def _any_report(self) -> MeasuredReport | None:
        if not self._last_report:
            self._last_report = (self._source.report(self.view, self.model) if len(self) else None,)
        return self._last_report[0]

    @property
    def _counting(self) -> TokenCounting:
        try:
            return self._known_counting
        except AttributeError:
            self._known_counting: TokenCounting = self._find_counting()
            return self._known_counting

    @property
    def doubted_token_count(self) -> int | None:
        """The tokens of the last report, if it is too small to be about this context, or None."""
        report = None if self.report is not None else self._any_report()
        return None if report is None else report.token_count

    @property
    def reported_token_count(self) -> int | None:
        """The tokens in that report, or None."""
        return None if self.report is None else self.report.token_count

    @property
    def estimated_token_count(self) -> int:
        """Estimated tokens of all messages, the tool schemas and the overhead of a request.

        Tool schemas are estimated by their length, because providers do not document their encoding.
        """
        return request_tokens(self._counting, self._sums()) if len(self) else 0

    @property
    def message_token_count(self) -> int:
        """`estimated_token_count` without the tool schemas."""
        return request_tokens(self._counting, self._totals())

    @property
    def message_part(self) -> int:
        """How much of `token_count` the messages are.

        The rest are the agent's instructions, tools and unrecorded text.
        """
        return min(self.token_count, as_counted(self, self.message_token_count))

    @property
    def estimate_source(self) -> str:
        """How `estimated_token_count` was counted: `estimate:…` or `custom:…`; an empty context is exact.

        Text is counted exactly; framing, tool schemas, images and opaque parts make the sum an estimate.
        """
        return source_of_sum(self._counting.source, len(self))

    @property
    def text_token_count(self) -> int:
        """Tokens of the text alone, without framing, images and opaque parts."""
        return self._counting.scale(self._totals()[1])

    @property
    def text_token_source(self) -> str:
        """How `text_token_count` was counted: `exact:…`, `estimate:…` or `custom:…`."""
        return self._counting.source

    def message_tokens(self, start: int = 0, stop: int | None = None) -> list[tuple[int, int]]:
        """Return (tokens, text tokens) of each message or a range of them, scaled for the model."""
        return self._counting.scale_each(self._sizes(start, stop))

    def _sizes(self, start: int = 0, stop: int | None = None) -> list[Sums]:
        """Return the unscaled (tokens, text tokens, media tokens) of each message of a range."""
        records = self._source.token_records(self.view, start, stop)
        return [(record.tokens, record.text, record.media) for record in records]

    def _totals(self, stop: int | None = None) -> Sums:
        """Return the unscaled sums of all messages, or of those before a position."""
        if stop is None:
            record = self._source.token_total(self.view)
        else:
            (record,) = self._source.token_records(self.view, stop - 1, stop)
        return record.sums

    def _sums(self) -> Sums:
        """Return the unscaled sums of all messages and the tools."""
        if not len(self):
            return 0, 0, 0
        total, text, media = self._totals()
        return total + self._tool_tokens(), text, media

    def _tool_tokens(self) -> int:
        return self._source.tool_tokens(self.view.tools_commit())

    def shown_messages(self) -> list[MessageLike]:
        """Return the messages to render, without reasoning if that is off."""
        if self._reasoning:
            return list(self.messages)
        return [shown for m in self.messages if (shown := _without_reasoning(m)) is not None]

    def objects(self) -> Iterator[bytes]:
        """Yield the bytes of the objects that make up the context, in large pieces; see `object_stream`.

        Raises:
            ObjectNotFoundError, CorruptObjectError: an object is missing or damaged.
        """
        return context.bulk_read.object_stream(
            self.view.blocks(), self._source.read_data, self._source.purged
        )

    def plain(self, messages: Sequence[Message]) -> PlainContext:
        """Return a context of other messages, counted and rendered like this one."""
        return PlainContext(self, messages)

    @property
    def has_addresses(self) -> bool:
        """Whether its messages have addresses; those of a strategy or a custom compiler have none."""
        return True


class PlainContext(CompiledContext):
    """A context of plain messages, from a strategy or a custom compiler.

    They are `Message` values without addresses. There is no provider's report on them, so all counts are estimates.
    """

    __slots__ = ()

    def __init__(self, made_from: CompiledContext, messages: Sequence[Message]) -> None:
        self._tokenizer = made_from._tokenizer
        self._known_counting = made_from._counting
        self._tools = made_from._tools
        self.commit = made_from.commit
        self.model = made_from.model
        self.messages = tuple(messages)  # type: ignore[assignment]

    @property
    def has_addresses(self) -> bool:
        """False."""
        return False

    def load(self) -> list[LoadedMessage]:
        """Return all messages, read whole; raises as `CompiledMessage.parts`."""
        return [LoadedMessage.of(each) for each in self.messages]

    @property
    def prefix_hash(self) -> bytes:
        """32 bytes over the content of the messages."""
        return self.prefix_hashes()[-1] if self.messages else digest(b"")

    def prefix_hashes(self) -> list[bytes]:
        """Return the hash of the context up to and including each message."""
        import json

        found, before = [], b""
        for each in self.to_json()["messages"]:
            before = digest(before + json.dumps(each, sort_keys=True).encode())
            found.append(before)
        return found

    @property
    def report(self) -> None:
        """None, since there is no provider's report."""

    def _any_report(self) -> None:
        return None

    def _sizes(self, start: int = 0, stop: int | None = None) -> list[Sums]:
        """Return the unscaled (tokens, text tokens, media tokens) of each message of a range."""
        count, media = tokens.overhead.count_message, self._counting.media
        counts = [count(self._tokenizer, each, media) for each in list(self.messages)[start:stop]]  # type: ignore[arg-type]
        return [(each.total, each.text, each.media) for each in counts]

    def _totals(self, stop: int | None = None) -> Sums:
        sizes = self._sizes(0, stop)
        total, text, media = (
            (sum(column) for column in zip(*sizes, strict=True)) if sizes else (0, 0, 0)
        )
        return total, text, media

    def _tool_tokens(self) -> int:
        import json

        schemas = [
            json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in self.tools
        ]
        return sum(tokens.tokenizer.estimate_from_bytes(len(bytes_of(each))) for each in schemas)

    def shown_messages(self) -> list[MessageLike]:
        """Return the messages to render."""
        return list(self.messages)

    def objects(self) -> Iterator[bytes]:
        """Raise StateError: the messages are not stored."""
        raise errors.StateError(
            "these messages are not stored: they come from a strategy or custom compiler"
        )


def sums_of(context: CompiledContext) -> Sums:
    """Return the unscaled sums of a context's messages and tools."""
    return context._sums()


def sizes_of(context: CompiledContext) -> list[Sums]:
    """Return the unscaled (tokens, text tokens, media tokens) of each message of a context."""
    return context._sizes()


def tokens_before(context: CompiledContext, position: int) -> int:
    """Return the tokens of the messages before a position, without the overhead of a request."""
    if not position:
        return 0
    total, _, media = context._totals(position)
    return context._counting.scale(total, media)


def count_of(context: CompiledContext, sums: Sums) -> int:
    """Return the `token_count` that a context would have if its messages and tools had these tokens."""
    report, counting = context.report, context._counting
    if report is None:
        return request_tokens(counting, sums)
    return report.adjusted(counting, sums)


def last_report(context: CompiledContext) -> MeasuredReport | None:
    """Return the last report on a context or an ancestor's, whether it is credible or not."""
    return context._any_report()


def counting_of(context: CompiledContext) -> TokenCounting:
    """Return how a context's tokens are counted."""
    return context._counting


def message_sums(context: CompiledContext) -> Sums:
    """Return the unscaled (tokens, text tokens, media tokens) of all messages of a context."""
    return context._totals()


def count_like(context: CompiledContext, other: CompiledContext) -> None:
    """Make a context count as another one does, so that tokens of both can be compared."""
    context._known_counting = other._counting


def as_counted(context: CompiledContext, estimated: int) -> int:
    """Return how much some tokens of an estimate are of a context's `token_count`."""
    report = context.report
    return estimated if report is None else round(estimated * report.proportion(context._counting))


def tokens_of(context: CompiledContext, message: Message) -> int:
    """Return how much a context's `token_count` would grow with a message."""
    return as_counted(context, context.plain([message]).message_tokens()[0][0])


def tokens_in(context: CompiledContext, text: str) -> int:
    """Return how much a text is of a context's `token_count`."""
    return as_counted(context, context._counting.scale(context._tokenizer.count(text)))


def source_of_sum(source: str, message_count: int) -> str:
    """Return how a sum of text and framing was counted, given how the text was."""
    if message_count and source.startswith("exact:"):
        return "estimate:" + source.removeprefix("exact:")
    return source


def _without_reasoning(message: CompiledMessage) -> MessageLike | None:
    """Return a message without its reasoning; None if nothing is left."""
    if message.ghost or not any(isinstance(part, Reasoning) for part in message.parts):
        return message
    plain = message.message()
    parts = tuple(part for part in plain.parts if not isinstance(part, Reasoning))
    if not parts:
        return None
    return Message(
        plain.role, parts, kind=plain.kind, name=plain.name, model=plain.model, id=plain.id
    )

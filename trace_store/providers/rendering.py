"""Rendering: its inputs and outputs, and the registry of renderers.

Invariant: a renderer is a pure function of messages, tools and options. `Rendered` lists every change as a repair.
`FAULTS` are those that mean that the context itself is broken: `strict` refuses exactly these, and names the address.
"""

from __future__ import annotations

from trace_store import errors, providers
from trace_store.base import check
from trace_store.base.frozen import value
from trace_store.base.gc_pause import paused
from trace_store.providers.wire import scrub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol, TypeAlias

    from trace_store.objects.address import Address
    from trace_store.objects.parts import Part

    Render: TypeAlias = Callable[
        [Sequence["Renderable"], Sequence[dict[str, Any]], "Options", "Repairs"], Any
    ]
else:
    Protocol = object  # importing typing costs as much as a command

SYSTEM_ROLES = ("system", "developer")
# The context is broken: no provider would accept it unchanged. `strict` refuses these.
ORPHAN_CALL = "orphan-call"
ORPHAN_RESULT = "orphan-result"
DUPLICATE_RESULT = "duplicate-result"
MISPLACED_CALL = "misplaced-call"
MOVED_RESULT = "moved-result"
TOOL_WITHOUT_CALL = "tool-without-call"
EMPTY_MESSAGE = "empty-message"
LEADING_ASSISTANT = "leading-assistant"
NO_MESSAGES = "no-messages"
INVALID_IMAGE = "invalid-image"
UNKNOWN_BLOCK = "unknown-block"
FAULTS = frozenset(
    {
        *(ORPHAN_CALL, ORPHAN_RESULT, DUPLICATE_RESULT, MISPLACED_CALL, MOVED_RESULT),
        *(TOOL_WITHOUT_CALL, EMPTY_MESSAGE, LEADING_ASSISTANT, NO_MESSAGES),
        *(INVALID_IMAGE, UNKNOWN_BLOCK),
    }
)

# The context is valid, but this provider has no place for something in it. Listed, never refused.
CALL_ID_CHANGED = "call-id-changed"
CALL_UNSIGNED = "call-unsigned"
NAME_CHANGED = "name-changed"
ARGUMENTS_WRAPPED = "arguments-wrapped"
BLANK_TEXT = "blank-text"
TRAILING_SPACE = "trailing-space"
ERROR_WITHOUT_TEXT = "error-without-text"
IMAGE_MOVED = "image-moved"
IMAGE_LEFT_OUT = "image-left-out"
OPAQUE_LEFT_OUT = "opaque-left-out"
REASONING_LEFT_OUT = "reasoning-left-out"
SURROGATE_REPLACED = "surrogate-replaced"
SYSTEM_AS_USER = "system-as-user"
TOOL_LEFT_OUT = "tool-left-out"
ADAPTATIONS = frozenset(
    {
        *(CALL_ID_CHANGED, CALL_UNSIGNED, NAME_CHANGED, ARGUMENTS_WRAPPED, BLANK_TEXT),
        *(
            TRAILING_SPACE,
            ERROR_WITHOUT_TEXT,
            IMAGE_MOVED,
            IMAGE_LEFT_OUT,
            OPAQUE_LEFT_OUT,
            REASONING_LEFT_OUT,
        ),
        *(SURROGATE_REPLACED, SYSTEM_AS_USER, TOOL_LEFT_OUT),
    }
)

# No repair lists these: they affect every context, because a request has no place for them.
LOST_BY_DESIGN = {
    "kind": "a kind that is not the usual one of the role",
    "model": "the model of a message; the reader can set it",
    "message-id": "the provider's id of a message",
    "empty-text": "an empty text among other parts or in a result, and whether a result without text had an empty one",
    "data-url": "that an image was a `data:` URL: its bytes are read back",
    "data-schema": "the name of a data part's schema; the data becomes text",
    "opaque-form": "spaces in an opaque block's JSON",
    "name": "the speaker's name",
    "results-apart": "which results were in one message; an order other than that of the calls; text before them",
    "split-calls": "that parallel calls were recorded as several messages",
    "neighbours": "where one message ends and the next one of the same role begins",
    "answers": "where one assistant message ends and the next one begins",
    "calls-last": "that a message has text after a call",
    "reasoning": "reasoning",
    "error-flag": "that a tool failed, except for the line `[tool error]`",
    "front": "that there were several system messages at the front, and which of them were a developer's",
    "arguments": 'the exact text of arguments of calls; that they were free text, now `{"input": text}`',
}
LOST_EVERYWHERE = (
    "kind",
    "model",
    "message-id",
    "empty-text",
    "data-url",
    "data-schema",
    "opaque-form",
)
CACHES = ("none", "stable")
# Name of the list of messages in requests.
MESSAGE_LISTS = ("messages", "input", "contents")


class Spoken(Protocol):
    """Parts of one role: all that pairing needs of a message."""

    @property
    def role(self) -> str: ...
    @property
    def parts(self) -> tuple[Part, ...]: ...


class Renderable(Spoken, Protocol):
    """A message as renderers see it; `objects.message.Message` is one.

    Also uses `address`, `priority`, `labels` and `ghost`, if the value has them.
    """

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def id(self) -> str: ...


@value
class Options:
    """Options of rendering.

    Attributes:
        model: the model to call; None for the model that the context was written with.
        strict: refuse a broken context instead of repairing it.
        reasoning: include the model's own earlier reasoning, if the provider accepts it.
        cache: "stable" sets cache breakpoints if the provider has them; "none" sets none.
    """

    model: str | None = None
    strict: bool = False
    reasoning: bool = True
    cache: str = "none"


@value
class Repair:
    """One difference between the request and the context.

    Attributes:
        code: one of FAULTS or ADAPTATIONS.
        detail: what was wrong and what was done.
        at: position of the message in the context, or None if it is not about a single message.
        address: address of the message, or None.
    """

    JSON = "where -at -address"

    code: str
    detail: str
    at: int | None = None
    address: Address | None = None

    @property
    def is_fault(self) -> bool:
        """Whether the context was broken there; False if it is only the format that differs."""
        return self.code in FAULTS

    @property
    def where(self) -> str:
        """The short address, or else the position counted from one."""
        if self.address is not None:
            return str(self.address)
        return "the context" if self.at is None else f"message {self.at + 1}"


class Repairs:
    """Collects the repairs of a renderer."""

    __slots__ = ("_messages", "found")

    def __init__(self, messages: Sequence[Spoken]) -> None:
        self._messages = messages
        self.found: list[Repair] = []

    def add(self, code: str, at: int | None, detail: str) -> None:
        """Add a repair of the message at a position, or of the whole context."""
        address = None if at is None else getattr(self._messages[at], "address", None)
        self.found.append(Repair(code, detail, at, address))

    def scrubbed(self, value: Any, at: int | None, what: str = "lone surrogates") -> Any:
        """Return a value without lone surrogates; add a repair if it had any."""
        clean, changed = scrub(value)
        if changed:
            self.add(SURROGATE_REPLACED, at, f"{what} became U+FFFD")
        return clean

    def refuse_faults(self) -> None:
        """Raise if the context is broken.

        Raises:
            RenderError: it is; `.address` is that of the first broken message.
        """
        faults = [repair for repair in self.found if repair.code in FAULTS]
        if not faults:
            return
        first = min(faults, key=lambda repair: -1 if repair.at is None else repair.at)
        # The repair comes after a semicolon in the detail of a fault; here nothing was repaired.
        wrong = first.detail.rpartition("; ")[0] or first.detail
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise errors.RenderError(
            f"{first.where}: {wrong}{more}",
            address=first.address,
            at=first.at,
            repair=first.code,
            where=first.where,
        )


@value
class Rendered:
    """A request in a provider's own form.

    Attributes:
        request: the request as JSON values; a string for text.
        repairs: what differs from the context, in the order of the messages.
        renderer: the name of the renderer.
        version: its version; different versions may give different bytes for the same context.
    """

    request: Any
    repairs: tuple[Repair, ...]
    renderer: str
    version: int

    def to_bytes(self) -> bytes:
        """Return the request as UTF-8: JSON without spaces, or the text itself."""
        return providers.wire.document_to_bytes(self.request)


@value
class Renderer:
    """A renderer of contexts.

    Attributes:
        name: its name.
        version: increased whenever the bytes of any request change.
        function: takes messages, tools, options and the list of repairs; returns the request.
    """

    name: str
    version: int
    function: Render


# A renderer is imported on first use.
RENDERERS = {
    renderer.name: renderer
    for renderer in (
        Renderer("anthropic", 4, lambda *given: providers.anthropic.render_anthropic(*given)),
        Renderer("gemini", 3, lambda *given: providers.gemini.render_gemini(*given)),
        Renderer("json", 1, lambda *given: providers.lossless.render_lossless(*given)),
        Renderer("openai", 4, lambda *given: providers.openai_chat.render_openai_chat(*given)),
        Renderer(
            "openai-responses",
            3,
            lambda *given: providers.openai_responses.render_openai_responses(*given),
        ),
        Renderer("text", 2, lambda *given: providers.plain_text.render_text(*given)),
    )
}


def render(
    renderer: str | Renderer,
    messages: Sequence[Renderable],
    tools: Sequence[dict[str, Any]] = (),
    *,
    model: str | None = None,
    strict: bool = False,
    reasoning: bool = True,
    cache: str = "none",
) -> Rendered:
    """Return a context as a request.

    A renderer ignores options that do not apply to it.

    Args:
        renderer: a name in RENDERERS, or the caller's own renderer.
        messages: the context, oldest first.
        tools: schemas of the offered tools, neutral or in a provider's form.
        model: the model to call; None is the most recent one.
        strict: refuse a broken context instead of repairing it.
        reasoning: include earlier reasoning, if the format has a place for it.
        cache: "stable" sets cache breakpoints, "none" sets none.

    Raises:
        RenderError: `strict`, and the context is broken; `.address` names the first broken message.
        InvalidInputError: unknown renderer or cache mode.
    """
    if isinstance(renderer, str):
        if renderer not in RENDERERS:
            names = ", ".join(sorted(RENDERERS))
            raise errors.InvalidInputError(f"unknown renderer {renderer[:40]!r}: one of {names}")
        renderer = RENDERERS[renderer]
    check.instance(Renderer, renderer=renderer)
    if cache not in CACHES:
        raise errors.InvalidInputError(
            f"unknown cache mode {cache[:40]!r}: one of {', '.join(CACHES)}"
        )
    options = Options(model=model, strict=strict, reasoning=reasoning, cache=cache)
    messages = tuple(messages)
    repairs = Repairs(messages)
    if renderer is RENDERERS.get(renderer.name):
        with paused:
            request = renderer.function(messages, tools, options, repairs)
    else:
        request = renderer.function(messages, tools, options, repairs)
    if strict:
        repairs.refuse_faults()
    found = sorted(repairs.found, key=lambda repair: -1 if repair.at is None else repair.at)
    return Rendered(request, tuple(found), renderer.name, renderer.version)

"""Faults of a context, and the working copy in which a repair records them.

Codes are added, never renamed. Codes that renderers share have the same meaning there. Original messages never change;
an item records whether its content differs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from trace_store.base.frozen import field, mutable, value
from trace_store.objects.address import Address
from trace_store.objects.message import default_kind
from trace_store.objects.parts import Part, Text
from trace_store.providers import FORMATS
from trace_store.providers.media_facts import ANTHROPIC_IMAGES, ImageLimits
from trace_store.providers.rendering import (
    BLANK_TEXT,
    DUPLICATE_RESULT,
    EMPTY_MESSAGE,
    INVALID_IMAGE,
    LEADING_ASSISTANT,
    MISPLACED_CALL,
    MOVED_RESULT,
    NO_MESSAGES,
    ORPHAN_CALL,
    ORPHAN_RESULT,
    TOOL_WITHOUT_CALL,
    UNKNOWN_BLOCK,
    Renderable,
)

BROKEN_BLOCK = "broken-block"
BROKEN_CHARACTER = "broken-character"
CUT_TURN = "cut-turn"
DUPLICATE_MESSAGE = "duplicate-message"
INVALID_ARGUMENTS = "invalid-arguments"
REUSED_CALL_ID = "reused-call-id"
UNSIGNED_REASONING = "unsigned-reasoning"

CODES = {
    BLANK_TEXT: "a text is empty or only white space",
    BROKEN_BLOCK: "a provider-specific block is incomplete",
    BROKEN_CHARACTER: "text contains a lone surrogate, which is not valid UTF-8",
    CUT_TURN: "a turn of a Claude model ends in reasoning: it was cut off",
    DUPLICATE_MESSAGE: "a message, or a part of one, is in the session twice",
    DUPLICATE_RESULT: "a call has a second result",
    EMPTY_MESSAGE: "a message is empty",
    INVALID_ARGUMENTS: "the arguments of a call are not a JSON object",
    INVALID_IMAGE: "an image or document has no data, is damaged, encrypted or too large, or declares the wrong type",
    LEADING_ASSISTANT: "the conversation begins with the assistant",
    MISPLACED_CALL: "a call is in a message that is not from the assistant",
    MOVED_RESULT: "a result comes before its call, or is separated from it",
    NO_MESSAGES: "no message is left to send",
    ORPHAN_CALL: "a call has no result",
    ORPHAN_RESULT: "a result has no call",
    REUSED_CALL_ID: "two calls have the same id",
    TOOL_WITHOUT_CALL: "a tool message has content but is not the result of a call",
    UNKNOWN_BLOCK: "a block has a format that no provider accepts",
    UNSIGNED_REASONING: "reasoning of a Claude model has no signature",
}
"""The meaning of each code."""

NEUTRAL = frozenset({"json", "text"})
"""Formats of no provider, which accept everything."""
PROVIDERS = tuple(sorted(set(FORMATS) - NEUTRAL))

# The providers that refuse a fault, unless all do.
ANTHROPIC = ("anthropic",)
OBJECT_ARGUMENTS = ("anthropic", "gemini")
FORMATS_OF = {
    "anthropic": ANTHROPIC,
    "gemini": ("gemini",),
    "openai": ("openai", "openai-responses"),
}
"""The request formats that send a provider's own blocks."""
IDS_ONCE = ("anthropic", "openai-responses")


@value
class Fault:
    """One fault of a context.

    Attributes:
        code: one of CODES.
        detail: a description of the fault.
        done: a short description of the repair, such as `left out`.
        at: the message's position in the context, from 0; None if the fault concerns several.
        address: the message's address, or None.
        providers: the providers that would refuse it.
    """

    JSON = "position=at"

    code: str
    detail: str
    done: str
    at: int | None
    address: Address | None
    providers: tuple[str, ...]

    @property
    def where(self) -> str:
        """The address, or else the position counted from one, as text."""
        if self.address is not None:
            return str(self.address)
        return "the context" if self.at is None else f"message {self.at + 1}"


@mutable
class WorkingMessage:
    """A message in the working copy, which renderers accept as a message.

    Attributes:
        role, parts, kind, name, model, id: as in `Message`.
        at: its position in the original context; None for a new one.
        address: its address there, or None.
        ghost: whether it is the placeholder of a removed message, which is never changed.
        reworded: whether its parts have changed.
        moved: whether its position has changed.
        replaces: the message that a new one replaces at the same position.
    """

    role: str
    parts: tuple[Part, ...]
    kind: str = ""
    name: str = ""
    model: str = ""
    id: str = ""
    at: int | None = None
    address: Address | None = None
    ghost: bool = False
    reworded: bool = False
    moved: bool = False
    replaces: WorkingMessage | None = None

    @classmethod
    def of(cls, message: Renderable, at: int) -> WorkingMessage:
        """Return the working message of an original one."""
        return cls(
            role=message.role,
            parts=tuple(message.parts),
            kind=message.kind,
            name=message.name,
            model=message.model,
            id=message.id,
            at=at,
            address=getattr(message, "address", None),
            ghost=bool(getattr(message, "ghost", False)),
        )

    @classmethod
    def new(
        cls, role: str, parts: Sequence[Part], *, replaces: WorkingMessage | None = None
    ) -> WorkingMessage:
        """Return a new message."""
        name = "" if replaces is None else replaces.name
        kind = default_kind(role, parts)
        return cls(role, tuple(parts), kind=kind, name=name, replaces=replaces)

    @property
    def is_new(self) -> bool:
        """Whether it is not in the original context."""
        return self.at is None

    @property
    def says_nothing(self) -> bool:
        """Whether it is empty; blank text is content."""
        return all(isinstance(part, Text) and not part.text for part in self.parts)

    def reword(self, parts: Iterable[Part]) -> None:
        """Set its parts, and note whether that changes them."""
        changed = tuple(parts)
        if changed != self.parts:
            self.parts = changed
            self.reworded = True


@mutable
class WorkingCopy:
    """All messages in order, and the faults found so far.

    Attributes:
        items: the current context.
        chosen_providers: the providers that it must be valid for.
        removed: messages that were removed.
        faults: the faults, in the order of detection.
        count: number of repairs.
        images: Anthropic's limits for images in a request with this many.
    """

    items: list[WorkingMessage]
    chosen_providers: frozenset[str]
    removed: list[WorkingMessage] = field(default_factory=list)
    faults: dict[Fault, None] = field(default_factory=dict)
    count: int = 0
    images: ImageLimits = ANTHROPIC_IMAGES

    def report(
        self,
        code: str,
        item: WorkingMessage | None,
        detail: str,
        done: str,
        providers: Sequence[str] = PROVIDERS,
    ) -> bool:
        """Record a fault; return True if it needs a repair, because a chosen provider refuses it.

        The same fault of a message is recorded once; faults of messages that a repair created are not recorded.
        """
        if not self.chosen_providers.intersection(providers):
            return False
        self.count += 1
        refusing = tuple(name for name in PROVIDERS if name in providers)
        source = item
        while source is not None and source.is_new and source.replaces is not None:
            source = source.replaces
        if source is not None and source.is_new:
            return True
        at, address = (None, None) if source is None else (source.at, source.address)
        self.faults[Fault(code, detail, done, at, address, refusing)] = None
        return True

    def remove(self, items: Iterable[WorkingMessage]) -> None:
        """Remove messages."""
        gone = list(items)
        if gone:
            ids = {id(item) for item in gone}
            self.items = [item for item in self.items if id(item) not in ids]
            self.removed += [item for item in gone if not item.is_new]
            self.removed += [item.replaces for item in gone if item.replaces is not None]

    def insert(self, behind: dict[int, list[WorkingMessage]], leaving: Container[int] = ()) -> None:
        """Insert messages behind positions; those whose `id()` is in `leaving` leave theirs."""
        items: list[WorkingMessage] = []
        for at, item in enumerate(self.items):
            if id(item) not in leaving:
                items.append(item)
            items += behind.get(at, ())
        self.items = items

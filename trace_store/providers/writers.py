"""Writers of parts: what the renderers of several providers do alike.

Invariant: a part without a place in a message of a user, the system or a tool is written as a note, and a repair is
recorded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from trace_store.objects.parts import Image, Opaque, Part, Text
from trace_store.providers.media import (
    image_note,
    invalid_image,
    opaque_note,
    system_text,
)
from trace_store.providers.media_facts import OPENAI_IMAGES
from trace_store.providers.rendering import (
    IMAGE_LEFT_OUT,
    INVALID_IMAGE,
    LEADING_ASSISTANT,
    NO_MESSAGES,
    SYSTEM_AS_USER,
    SYSTEM_ROLES,
    Repairs,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Any, TypeAlias

    from trace_store.providers.validity import RoleTurn

    Wire: TypeAlias = dict[str, Any]
    # Written parts, each with the position of its message.
    Placed: TypeAlias = list[tuple[Wire, int]]
    # A message under construction: its role and parts.
    Draft: TypeAlias = tuple[str, Placed]


class PartWriter(ABC):
    """Writes parts of one provider's messages.

    Attributes:
        text: returns a text as a part.
    """

    def __init__(self, repairs: Repairs, text: Callable[[str], Wire]) -> None:
        self._repairs = repairs
        self.text = text

    @abstractmethod
    def leave_out(self, part: Opaque, at: int) -> None:
        """Record a repair for an opaque part that is not sent."""

    def note(self, part: Image | Opaque, at: int) -> Wire:
        """Return the note that replaces a part; record a repair."""
        return self.text(self.note_text(part, at))

    def note_text(self, part: Image | Opaque, at: int) -> str:
        """Return the text of a part's note; record a repair."""
        if isinstance(part, Opaque):
            self.leave_out(part, at)
            return opaque_note(part)
        self._repairs.add(IMAGE_LEFT_OUT, at, "an image became a note")
        return image_note(part)


class TurnWriter(PartWriter):
    """Writes parts for providers with a place for system text at the front only."""

    def system(self, turn: RoleTurn) -> Placed:
        """Return a system message at the front."""
        return [(self.text(text), at) for text, at in self._system_texts(turn)]

    def late_system(self, turn: RoleTurn) -> Placed:
        """Return a system message that follows other messages, as user text."""
        texts = self._system_texts(turn)
        if texts:
            detail = f"a {turn.role} message follows other messages; sent as user text"
            self._repairs.add(SYSTEM_AS_USER, turn.at, detail)
        return [(self.text(system_text(text)), turn.at) for text, _ in texts]

    def is_sent(self, text: str, at: int) -> bool:
        """Return True if a text may be sent; else record a repair."""
        return True

    def _system_texts(self, turn: RoleTurn) -> list[tuple[str, int]]:
        texts = []
        for placed in turn.parts:
            part, at = placed.part, placed.at
            if isinstance(part, Image | Opaque):
                texts.append((self.note_text(part, at), at))
            elif isinstance(part, Text) and self.is_sent(part.text, at):
                texts.append((part.text, at))
        return texts


class InputWriter(PartWriter):
    """Writes parts of OpenAI's input: user messages, system messages and outputs of tools."""

    @abstractmethod
    def image(self, image: Image) -> Wire | None:
        """Return an image as a part, or None if models do not accept it."""

    @abstractmethod
    def block(self, part: Opaque) -> Wire | None:
        """Return an opaque part that may be sent, else None."""

    def shown(self, part: Part, at: int, *, blocks: bool) -> list[Wire]:
        """Return a part, or its note; without `blocks` only texts are allowed."""
        if isinstance(part, Text):
            return [self.text(part.text)] if part.text else []
        if isinstance(part, Image):
            if fault := invalid_image(part, OPENAI_IMAGES):
                self._repairs.add(INVALID_IMAGE, at, fault)
            found = self.image(part) if blocks else None
        elif isinstance(part, Opaque):
            found = self.block(part) if blocks else None
        else:
            return []
        return [found or self.note(part, at)]


def split_front(turns: list[RoleTurn]) -> tuple[list[RoleTurn], list[RoleTurn]]:
    """Return the system messages at the front, and all other turns."""
    front = 0
    while front < len(turns) and turns[front].role in SYSTEM_ROLES:
        front += 1
    return turns[:front], turns[front:]


def merged(drafts: Iterable[Draft], roles: Collection[str]) -> list[Draft]:
    """Return non-empty messages, with neighbours merged that have the same of these roles."""
    found: list[Draft] = []
    for role, content in drafts:
        if not content:
            continue
        if found and found[-1][0] == role and role in roles:
            found[-1][1].extend(content)
        else:
            found.append((role, list(content)))
    return found


def begin(messages: list[Wire], drafts: list[Draft], said: Wire, repairs: Repairs) -> None:
    """Put a user message first if the assistant speaks first."""
    if not messages:
        repairs.add(NO_MESSAGES, None, "nothing to send: no message has content")
    elif drafts[0][0] != said["role"]:
        detail = "the first message is the assistant's; a user message is put before it"
        repairs.add(LEADING_ASSISTANT, drafts[0][1][0][1], detail)
        messages.insert(0, said)

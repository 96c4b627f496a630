"""Conflicts: both sides of a disagreement, and how it was resolved.

Rule: they do not change, whatever becomes of the context that they come from; what they say is read when asked for.

Rule: plain values. A conflict is named by its kind and its first message, so that a settlement given once holds when
the plan is made anew.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.context.entries import Entry
from trace_store.frozen import field, replace, value
from trace_store.objects.codec import encode_ordered
from trace_store.objects.message import load_parts
from trace_store.objects.parts import Text, ToolResult
from trace_store.oid import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeAlias, TypeVar

    from trace_store.objects.address import Address
    from trace_store.objects.parts import Part

    Read: TypeAlias = Callable[[bytes], bytes]
    Settlements = Mapping[str, "Settlement"]
    Resolver: TypeAlias = Callable[["Conflict"], "Settlement | None"]
    """Asked about a conflict, says how it is settled; None leaves it open."""
    T = TypeVar("T")


class ConflictMessage(Entry):
    """A message that a conflict is about, as one side has it.

    Attributes:
        address: its id.
        hidden: "" when it stands in the context, else "removed" or "replaced".
        ghost: whether a removed message leaves a short placeholder.
        priority, labels, keep: as annotated; `keep` holds the ids of must-keep patterns.
    """

    __slots__ = ("_read",)
    _read: Read | None

    @classmethod
    def of(cls, entry: Entry, read: Read | None) -> ConflictMessage:
        """Return a message of a context as it is now; `read` returns the content of what it says."""
        made = cls.__new__(cls)
        for name in Entry.__slots__:
            object.__setattr__(made, name, getattr(entry, name))
        object.__setattr__(made, "versions", tuple(entry.versions))
        object.__setattr__(made, "_read", read)
        return made

    @property
    def role(self) -> str:
        """Who speaks."""
        return str(self.message["role"])

    @property
    def content(self) -> tuple[Part, ...]:
        """What it says on this side, as the parts of a `Message`.

        Raises:
            ObjectNotFoundError: content is not here.
            StateError: it was planned without a store.
        """
        if self._read is None:
            raise errors.StateError("this conflict was planned without a store: nobody can read it")
        return load_parts(self.parts, self._read)

    @property
    def text(self) -> str:
        """Its texts, or those of its tool results where it has none, joined by newlines; raises as `content`."""
        said = [part.text for part in self.content if isinstance(part, Text)]
        results = [part for part in self.content if isinstance(part, ToolResult)]
        inner = [each.text for part in results for each in part.content if isinstance(each, Text)]
        return "\n".join(said or inner)

    def __copy__(self) -> ConflictMessage:
        return self

    def __deepcopy__(self, known: object) -> ConflictMessage:
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} of a message that a conflict is about does not change")

    def __repr__(self) -> str:
        return f"ConflictMessage({self.role!r}, address='{self.address}')"


BOTH_EDITED = "both-edited"
EDITED_AND_REMOVED = "edited-and-removed"
COMPRESSED_AND_EDITED = "compressed-and-edited"
PINNED_AND_REMOVED = "pinned-and-removed"
CONTRADICTING_PRIORITIES = "contradicting-priorities"
BOTH_MOVED = "both-moved"
BOTH_COMPRESSED = "both-compressed"
TWO_ANSWERS = "two-answers"
CONTRADICTING_TOOLS = "contradicting-tools"
MISSING_TARGET = "missing-target"
REWORDING = "rewording"
BOTH_SET_TOOLS = "both-set-tools"

OURS = "ours"
THEIRS = "theirs"
BOTH = "both"
TEXT = "text"

KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    BOTH_EDITED: ("both sides reworded the message", (OURS, THEIRS, BOTH, TEXT)),
    EDITED_AND_REMOVED: ("one side reworded the message, the other hid it", (OURS, THEIRS, TEXT)),
    COMPRESSED_AND_EDITED: (
        "one side reworded the message, the other put a summary in its place",
        (OURS, THEIRS, TEXT),
    ),
    PINNED_AND_REMOVED: ("one side pinned the message, the other hid it", (OURS, THEIRS)),
    CONTRADICTING_PRIORITIES: ("each side gave the message another priority", (OURS, THEIRS)),
    BOTH_MOVED: ("each side moved the message to another place", (OURS, THEIRS)),
    BOTH_COMPRESSED: ("each side put a summary of its own in its place", (OURS, THEIRS, BOTH)),
    TWO_ANSWERS: ("both sides answer the same message", (OURS, THEIRS, BOTH, TEXT)),
    CONTRADICTING_TOOLS: ("each side offers other tools", (OURS, THEIRS, BOTH)),
    REWORDING: ("the to-do list asks for another wording", (OURS, TEXT)),
    MISSING_TARGET: ("what theirs changes or answers is not here", (OURS, THEIRS)),
}
"""What each kind means, and which choices settle it."""

REVERTED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    BOTH_EDITED: ("the message was reworded again since", (OURS, THEIRS, TEXT)),
    EDITED_AND_REMOVED: ("the message was reworded or hidden since", (OURS, THEIRS, TEXT)),
    COMPRESSED_AND_EDITED: (
        "a summary stands in the place of the message since",
        (OURS, THEIRS, TEXT),
    ),
    CONTRADICTING_PRIORITIES: ("the message was given another priority since", (OURS, THEIRS)),
    BOTH_MOVED: ("the message was moved again since", (OURS, THEIRS)),
    MISSING_TARGET: ("what the commit changed is not here", (OURS,)),
    BOTH_SET_TOOLS: ("other tools are offered since", (OURS, THEIRS)),
}
"""The same of what a revert takes back: ours is what there is now, theirs what there was before the commit."""


@value
class Settlement:
    """How a conflict is settled.

    Attributes:
        choice: "ours", "theirs", "both" or "text".
        text: what the message says from now on, for "text".
        about: the `stakes` that it was given about, and holds for; "" holds whatever is at stake.
    """

    choice: str
    text: str = ""
    about: str = ""


@value
class Conflict:
    """Something that the two sides cannot both have.

    Attributes:
        kind: its name, as `docs/merging.md` lists them, and `docs/branches.md` those of a revert.
        addresses: the messages it is about; the first gives it its name. Empty for what is about none.
        base: the message as both sides had it, where there is one.
        ours: messages of our side that are at stake, with their state there.
        theirs: the same of theirs.
        step: which of several steps it belongs to; "" when there are none.
        reverts: whether it stands in the way of a revert, so that theirs is what there was before.
        settlement: how it was settled; None as long as it was not.
        number: what it is called while something waits, from 1; 0 where nothing does yet, as for a resolver.
        others: how many of the same kind about the same message, with other messages at stake, were met before it.
    """

    kind: str
    addresses: tuple[Address, ...]
    base: ConflictMessage | None = field(hidden=True)
    ours: tuple[ConflictMessage, ...] = field(hidden=True)
    theirs: tuple[ConflictMessage, ...] = field(hidden=True)
    step: str = ""
    reverts: bool = False
    settlement: Settlement | None = None
    number: int = 0
    others: int = 0

    @property
    def key(self) -> str:
        """Its name: the same for the same conflict whenever the plan is made."""
        name = self.step + key_of(self.kind, self.addresses)
        return f"{name}#{self.others}" if self.others else name

    @property
    def stakes(self) -> str:
        """A digest of what the messages at stake say and how they are shown, the same as long as these are."""
        sides = [
            [[*e.address, e.parts, e.hidden, e.ghost, e.priority] for e in side]
            for side in (self.ours, self.theirs)
        ]
        return digest(encode_ordered({"sides": sides})).hex()[:32]

    @property
    def choices(self) -> tuple[str, ...]:
        """What settles it."""
        return (REVERTED if self.reverts else KINDS)[self.kind][1]

    @property
    def meaning(self) -> str:
        """What it is, in a few words."""
        return (REVERTED if self.reverts else KINDS)[self.kind][0]


def check_settlement(conflict: Conflict, said: object) -> None:
    """Let nothing pass that does not settle a conflict.

    Raises:
        InvalidInputError: it is no settlement, not one of the conflict's choices, or a text is meant and there is none.
    """
    if not isinstance(said, Settlement):
        raise errors.InvalidInputError(
            f"a conflict is settled by a Settlement or a word, not by {type(said).__name__}"
        )
    if said.choice not in conflict.choices:
        raise errors.InvalidInputError(
            f"{conflict.kind} is settled by {', '.join(conflict.choices)}, not by {str(said.choice)[:40]!r}"
        )
    text: object = said.text
    if said.choice == TEXT and not (text and isinstance(text, str)):
        raise errors.InvalidInputError(f"{conflict.kind} is settled by a text, and none is given")


def settle_open(
    resolver: Resolver | None,
    settlements: dict[str, Settlement],
    made: T,
    again: Callable[[], T],
    open_of: Callable[[T], Sequence[Conflict]],
) -> T:
    """Return what is made with the conflicts settled that somebody settles, and those that only this opens.

    Args:
        resolver: asked about each conflict once, and again when other messages are at stake; None is nobody.
        settlements: where it is noted how conflicts are settled, and about what, by their keys.
        made: what is made with the settlements that there are.
        again: makes it anew.
        open_of: returns what is open in it.

    Raises:
        InvalidInputError: as `check_settlement`.
    """
    asked: set[tuple[str, str]] = set()
    while resolver is not None:
        new = [each for each in open_of(made) if (each.key, each.stakes) not in asked]
        asked.update((each.key, each.stakes) for each in new)
        found: dict[str, Settlement] = {}
        for conflict in new:
            said = resolver(conflict)
            if said is not None:
                check_settlement(conflict, said)
                found[conflict.key] = replace(said, about=conflict.stakes)
        if not found:
            break
        settlements.update(found)
        made = again()
    return made


def check_favour(favour: str) -> None:
    """Let nothing pass but OURS, THEIRS, and "" for neither.

    Raises:
        InvalidInputError: it is something else.
    """
    if favour not in ("", OURS, THEIRS):
        raise errors.InvalidInputError(
            f"conflicts favour {OURS} or {THEIRS}, not {str(favour)[:40]!r}"
        )


def key_of(kind: str, addresses: Sequence[Address]) -> str:
    """Return the name of a conflict."""
    if not addresses:
        return kind
    return f"{kind}:{addresses[0].hex}"


def stored_text(text: str, put: Any) -> dict[str, Any]:
    """Return a text as a part of a stored message."""
    return {"blob": put(text.encode("utf-8", "surrogatepass")), "type": "text"}

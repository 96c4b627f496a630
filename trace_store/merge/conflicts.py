"""Conflicts of a merge, and their resolutions.

A conflict is a snapshot: later changes to the context do not affect it, and content is read on demand. Its key consists
of its kind and first message, so a resolution still applies after the merge is computed again.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base import check
from trace_store.base.frozen import field, replace, value
from trace_store.base.oid import digest
from trace_store.context.content import message_line
from trace_store.context.fold import Entry
from trace_store.objects.codec import encode_ordered
from trace_store.objects.message import load_parts
from trace_store.objects.parts import Text, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeAlias, TypeVar

    from trace_store.objects.address import Address
    from trace_store.objects.parts import Part

    Read: TypeAlias = Callable[[bytes], bytes]
    Resolutions = Mapping[str, "Resolution"]
    Resolver: TypeAlias = Callable[["Conflict"], "Resolution | None"]
    """Returns the resolution of a conflict, or None to leave it open."""
    Answer: TypeAlias = Callable[["Conflict"], "Resolution | str | None"]
    """A resolver that may also answer with a word."""
    T = TypeVar("T")


class ConflictMessage(Entry):
    """One side's version of a message in a conflict.

    Attributes:
        address: its id.
        hidden: "" if it is visible, else "removed" or "replaced".
        ghost: whether a removed message leaves a short placeholder.
        priority, labels, keep: as annotated; `keep` holds the ids of must-keep patterns.
    """

    JSON = "address role text hidden priority"

    __slots__ = ("_read",)
    _read: Read | None

    @classmethod
    def of(cls, entry: Entry, read: Read | None) -> ConflictMessage:
        """Return a snapshot of a message; `read` reads its content."""
        made = cls.__new__(cls)
        for name in Entry.__slots__:
            object.__setattr__(made, name, getattr(entry, name))
        object.__setattr__(made, "versions", tuple(entry.versions))
        object.__setattr__(made, "_read", read)
        return made

    @property
    def role(self) -> str:
        """The role of the author."""
        return str(self.message["role"])

    def summary(self, width: int = 72) -> str:
        """Return its role and the start of its content on one line; raises StateError as `content`."""
        return message_line({**self.message, "parts": self.parts}, self._reader(), width)

    @property
    def content(self) -> tuple[Part, ...]:
        """The parts of the message on this side.

        Raises:
            ObjectNotFoundError: content is missing.
            StateError: the merge was planned without a store.
        """
        return load_parts(self.parts, self._reader())

    @property
    def text(self) -> str:
        """Its texts, or else those of its tool results, joined by newlines; raises as `content`."""
        said = [part.text for part in self.content if isinstance(part, Text)]
        results = [part for part in self.content if isinstance(part, ToolResult)]
        inner = [each.text for part in results for each in part.content if isinstance(each, Text)]
        return "\n".join(said or inner)

    def _reader(self) -> Read:
        if self._read is None:
            raise errors.StateError(
                "this conflict was planned without a store, so it cannot be read"
            )
        return self._read

    def __copy__(self) -> ConflictMessage:
        return self

    def __deepcopy__(self, known: object) -> ConflictMessage:
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name}: a message of a conflict is read-only")

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
    BOTH_EDITED: ("both sides edited the message", (OURS, THEIRS, BOTH, TEXT)),
    EDITED_AND_REMOVED: ("one side edited the message, the other hid it", (OURS, THEIRS, TEXT)),
    COMPRESSED_AND_EDITED: (
        "one side edited the message, the other replaced it with a summary",
        (OURS, THEIRS, TEXT),
    ),
    PINNED_AND_REMOVED: ("one side pinned the message, the other hid it", (OURS, THEIRS)),
    CONTRADICTING_PRIORITIES: ("each side set a different priority", (OURS, THEIRS)),
    BOTH_MOVED: ("each side moved the message to a different place", (OURS, THEIRS)),
    BOTH_COMPRESSED: ("each side replaced it with a different summary", (OURS, THEIRS, BOTH)),
    TWO_ANSWERS: ("both sides answer the same message", (OURS, THEIRS, BOTH, TEXT)),
    CONTRADICTING_TOOLS: ("each side set different tools", (OURS, THEIRS, BOTH)),
    REWORDING: ("the to-do list asks for an edit", (OURS, TEXT)),
    MISSING_TARGET: ("theirs changes or answers a message that is not here", (OURS, THEIRS)),
}
"""The meaning of each kind, and the choices that resolve it."""

REVERTED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    BOTH_EDITED: ("the message was edited again later", (OURS, THEIRS, TEXT)),
    EDITED_AND_REMOVED: ("the message was edited or hidden later", (OURS, THEIRS, TEXT)),
    COMPRESSED_AND_EDITED: (
        "the message was replaced with a summary later",
        (OURS, THEIRS, TEXT),
    ),
    CONTRADICTING_PRIORITIES: ("the message got another priority later", (OURS, THEIRS)),
    BOTH_MOVED: ("the message was moved again later", (OURS, THEIRS)),
    MISSING_TARGET: ("the message that the commit changed is not here", (OURS,)),
    BOTH_SET_TOOLS: ("the tools were set again later", (OURS, THEIRS)),
}
"""The same for reverts: ours is the current state, theirs the state before the commit."""


@value
class Resolution:
    """The resolution of a conflict.

    Attributes:
        choice: "ours", "theirs", "both" or "text".
        text: the new text of the message, for "text".
        about: the `stakes` that it is valid for; "" means any.
    """

    choice: str
    text: str = ""
    about: str = ""


@value
class Conflict:
    """A conflict between two sides.

    Attributes:
        kind: its kind, as listed in `docs/merging.md` and, for reverts, `docs/branches.md`.
        addresses: the messages in conflict; the first is part of the key. Empty if no message is involved.
        base: the common version of the message, or None.
        ours: our versions of the messages.
        theirs: their versions.
        step: the step that it belongs to; "" if there is only one.
        reverts: whether it is a conflict of a revert, where theirs is the state before the commit.
        resolution: its resolution; None while it is open.
        number: its number while the operation is stopped, from 1; 0 before that, as for a resolver.
        others: number of earlier conflicts with the same kind and message but different stakes.
    """

    JSON = (
        "number meaning choices ours theirs choice=resolution.choice text=resolution.text "
        "-step -reverts -others"
    )

    kind: str
    addresses: tuple[Address, ...]
    base: ConflictMessage | None = field(hidden=True)
    ours: tuple[ConflictMessage, ...] = field(hidden=True)
    theirs: tuple[ConflictMessage, ...] = field(hidden=True)
    step: str = ""
    reverts: bool = False
    resolution: Resolution | None = None
    number: int = 0
    others: int = 0

    @property
    def key(self) -> str:
        """Its key, which stays the same when the merge is computed again."""
        name = self.step + key_of(self.kind, self.addresses)
        return f"{name}#{self.others}" if self.others else name

    @property
    def stakes(self) -> str:
        """A digest of the content and state of the messages in conflict."""
        sides = [
            [[*e.address, e.parts, e.hidden, e.ghost, e.priority] for e in side]
            for side in (self.ours, self.theirs)
        ]
        return digest(encode_ordered({"sides": sides})).hex()[:32]

    @property
    def choices(self) -> tuple[str, ...]:
        """The choices that resolve it."""
        return (REVERTED if self.reverts else KINDS)[self.kind][1]

    @property
    def meaning(self) -> str:
        """A short description."""
        return (REVERTED if self.reverts else KINDS)[self.kind][0]


def check_resolution(conflict: Conflict, said: object) -> None:
    """Check that a value resolves a conflict.

    Raises:
        InvalidInputError: it is not a resolution, the choice is not allowed, or the text is missing.
    """
    if not isinstance(said, Resolution):
        raise errors.InvalidInputError(
            f"expected a resolution or a choice, not {type(said).__name__}"
        )
    if said.choice not in conflict.choices:
        raise errors.InvalidInputError(
            f"{conflict.kind} is resolved by {', '.join(conflict.choices)}, not by {str(said.choice)[:40]!r}"
        )
    text: object = said.text
    if said.choice == TEXT and not (text and isinstance(text, str)):
        raise errors.InvalidInputError(f"no text is given to resolve {conflict.kind}")


def resolve_open(
    resolver: Resolver | None,
    resolutions: dict[str, Resolution],
    made: T,
    again: Callable[[], T],
    open_of: Callable[[T], Sequence[Conflict]],
) -> T:
    """Resolve open conflicts with a resolver, repeating until no new ones appear; return the last plan.

    Args:
        resolver: called once for each conflict, and again if its stakes change; None resolves nothing.
        resolutions: resolutions by conflict key; new ones are added.
        made: the plan with the current resolutions.
        again: computes the plan again.
        open_of: returns the open conflicts of a plan.

    Raises:
        InvalidInputError: as `check_resolution`.
    """
    asked: set[tuple[str, str]] = set()
    while resolver is not None:
        new = [each for each in open_of(made) if (each.key, each.stakes) not in asked]
        asked.update((each.key, each.stakes) for each in new)
        found: dict[str, Resolution] = {}
        for conflict in new:
            said = resolver(conflict)
            if said is not None:
                check_resolution(conflict, said)
                found[conflict.key] = replace(said, about=conflict.stakes)
        if not found:
            break
        resolutions.update(found)
        made = again()
    return made


def check_favour(favour: str) -> None:
    """Check a side to favour: OURS, THEIRS or "".

    Raises:
        InvalidInputError: it is something else.
    """
    if favour not in ("", OURS, THEIRS):
        raise errors.InvalidInputError(
            f"favour must be {OURS} or {THEIRS}, not {str(favour)[:40]!r}"
        )


def key_of(kind: str, addresses: Sequence[Address]) -> str:
    """Return the key of a conflict."""
    if not addresses:
        return kind
    return f"{kind}:{addresses[0].hex}"


def stored_text(text: str, put: Any) -> dict[str, Any]:
    """Return a text as a part of a stored message."""
    return {"blob": put(text.encode("utf-8", "surrogatepass")), "type": "text"}


class ConflictCollector:
    """Collects conflicts and returns their resolutions.

    Attributes:
        open: conflicts without a resolution, in order.
        settled: resolved conflicts.
    """

    __slots__ = ("_favour", "_met", "_read", "_resolutions", "_reverts", "_step", "open", "settled")

    def __init__(
        self,
        resolutions: Resolutions,
        favour: str = "",
        step: str = "",
        *,
        reverts: bool = False,
        read: Read | None = None,
    ) -> None:
        """Start without conflicts.

        Args:
            resolutions: resolutions by conflict key.
            favour: OURS or THEIRS resolves all others that allow it.
            step: prefix of conflict keys.
            reverts: whether they are conflicts of a revert.
            read: reads content, for resolvers.
        """
        self._read = read
        self._step = step
        self._reverts = reverts
        self._resolutions = resolutions
        self._favour = favour
        self._met: dict[str, list[str]] = {}
        self.open: list[Conflict] = []
        self.settled: list[Conflict] = []

    def add(
        self,
        kind: str,
        addresses: Sequence[Address],
        base: Entry | None = None,
        ours: Sequence[Entry] = (),
        theirs: Sequence[Entry] = (),
    ) -> Resolution:
        """Add a conflict and return its resolution; OURS while it is open."""
        # A snapshot, since the merge goes on to change the entries.
        conflict = Conflict(
            kind,
            tuple(addresses),
            None if base is None else ConflictMessage.of(base, self._read),
            tuple(ConflictMessage.of(entry, self._read) for entry in ours),
            tuple(ConflictMessage.of(entry, self._read) for entry in theirs),
            self._step,
            self._reverts,
        )
        met = self._met.setdefault(conflict.key, [])
        if conflict.stakes not in met:
            met.append(conflict.stakes)
        conflict = replace(conflict, others=met.index(conflict.stakes))
        found = self._resolutions.get(conflict.key)
        contradicts = kind != REWORDING  # a requested edit has no sides
        if found is None and contradicts and self._favour in conflict.choices:
            found = Resolution(self._favour)
        if found is not None and found.about not in ("", conflict.stakes):
            found = None  # the stakes have changed
        if found is None or found.choice not in conflict.choices:
            self.open.append(conflict)
            return Resolution(OURS)
        self.settled.append(replace(conflict, resolution=found))
        return found


def resolver_of(given: Answer | None) -> Resolver | None:
    """Return a resolver that answers with resolutions, given one that may also answer with a word.

    Raises:
        InvalidInputError: it is not callable.
    """
    check.function(resolver=given)
    if given is None:
        return None

    def ask(conflict: Conflict) -> Resolution | None:
        answer = given(conflict)
        return Resolution(answer) if isinstance(answer, str) else answer

    return ask

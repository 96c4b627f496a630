"""The entries of a fold: one message each, with all that operations did to it."""

from __future__ import annotations

from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

Address = tuple[bytes, int]
Place = tuple[bytes, int]
"""Where parts stand: a commit, and the number of the version among those that the commit makes."""

REMOVED = "removed"
REPLACED = "replaced"


class Version:
    """One wording of a message.

    Attributes:
        parts: in stored form.
        place: (commit id, number); messages that a commit creates are numbered first, then its edits.
    """

    __slots__ = ("parts", "place")

    def __init__(self, parts: Sequence[Mapping[str, Any]], place: Place) -> None:
        self.parts = parts
        self.place = place


class Entry:
    """One message of a fold, with all that operations did to it.

    Attributes:
        address: (id of the commit that created it, number there).
        message: its stored form as created; the parts that count are `parts`.
        versions: its wordings, oldest first; `current` is the index of the one that counts.
        hidden: "" when it stands in the context, else REMOVED or REPLACED.
        ghost: whether a removed message leaves a short placeholder.
        priority, labels, keep: as annotated; `keep` holds the blobs of must-keep patterns.
    """

    __slots__ = (
        "address",
        "current",
        "ghost",
        "hidden",
        "keep",
        "labels",
        "message",
        "priority",
        "versions",
    )

    def __init__(self, address: Address, message: Mapping[str, Any]) -> None:
        self.address = address
        self.message = message
        self.versions = [Version(message["parts"], address)]
        self.current = 0
        self.hidden = ""
        self.ghost = False
        self.priority = ops.NORMAL
        self.labels: frozenset[str] = frozenset()
        self.keep: tuple[bytes, ...] = ()

    @property
    def parts(self) -> Sequence[Mapping[str, Any]]:
        """The wording that counts, in stored form."""
        return self.versions[self.current].parts

    @property
    def place(self) -> Place:
        """Where the wording that counts stands."""
        return self.versions[self.current].place

    @property
    def visible(self) -> bool:
        """Whether it takes part in the compiled context, be it as a ghost."""
        if self.hidden:
            return self.hidden == REMOVED and self.ghost
        return self.priority != ops.SKIP

    @property
    def is_ghost(self) -> bool:
        """Whether only its placeholder is shown."""
        return bool(self.hidden) and self.ghost

    def reword(self, parts: Sequence[Mapping[str, Any]], place: Place) -> None:
        """Give it another wording, which counts from now on."""
        self.versions.append(Version(parts, place))
        self.current = len(self.versions) - 1

    def copy(self) -> Entry:
        """Return an entry that changes independently."""
        other = Entry.__new__(Entry)
        for name in Entry.__slots__:
            setattr(other, name, getattr(self, name))
        other.versions = list(self.versions)
        return other

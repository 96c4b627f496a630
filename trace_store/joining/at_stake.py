"""The messages that a conflict is about, as those see them who settle it.

Rule: they do not change, whatever becomes of the context that they come from; what they say is read when asked for.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.context.folding import Entry
from trace_store.objects.message import load_parts
from trace_store.objects.parts import Text, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from trace_store.objects.parts import Part

    Read: TypeAlias = Callable[[bytes], bytes]


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

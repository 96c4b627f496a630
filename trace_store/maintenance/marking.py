"""What the roots lead to, found step by step.

Rule: marking only adds. Begun outside all locks and gone on with inside, it looks only at what is new.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.objects.codec import BLOB, COMMIT, decode, kind_of, links_within
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Marking:
    """The objects that are reachable.

    Attributes:
        reached: the ids of the starts and of everything they lead to, here or not.
        absent: of objects that are not here, the one that names each; None for a start.
    """

    __slots__ = ("_parents", "_read", "absent", "reached")

    def __init__(self, read: Callable[[bytes], bytes]) -> None:
        """Begin with nothing; `read` returns an object's bytes, hash-checked."""
        self._read = read
        self.reached: set[ObjectId] = set()
        self.absent: dict[ObjectId, ObjectId | None] = {}
        self._parents: set[ObjectId] = set()

    def broken(self) -> dict[ObjectId, ObjectId | None]:
        """Return the commits that are not here though a commit has them for a parent, with one that names each."""
        return {oid: namer for oid, namer in self.absent.items() if oid in self._parents}

    def add(self, starts: Iterable[ObjectId], step: Callable[[int], None] | None = None) -> None:
        """Mark what some objects lead to, through every link; `step` is told now and then how many are marked.

        Raises:
            CorruptObjectError: an object is damaged, so that nobody knows what it leads to.
            StorageError: the disk refuses it.
        """
        reached = self.reached
        stack: list[tuple[ObjectId, ObjectId | None]] = [(oid, None) for oid in starts]
        while stack:
            oid, namer = stack.pop()
            if oid in reached:
                continue
            reached.add(oid)
            if step is not None and not len(reached) % 1000:
                step(len(reached))
            try:
                data = self._read(oid)
            except errors.ObjectNotFoundError:
                self.absent[oid] = namer
                continue
            if kind_of(data) == BLOB:
                continue
            value = decode(data)
            if value[0] == COMMIT and len(value) > 1 and isinstance(value[1], dict):
                self._parents.update(links_within(value[1].get("parents")))
            stack.extend((link, oid) for link in links_within(value) if link not in reached)

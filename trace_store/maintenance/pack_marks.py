"""A byte for each packed object, instead of a set of ids.

The index of a pack knows the number of an object, and the number is the place of its byte. So memory does not hold an
id for each object of a repository.

Rule: if a pack is removed meanwhile, each method raises PackLostError, because its marks say nothing about the packs
that have its objects by now.

Rule: several packs may have the same object, and each copy has a byte. A question about an id looks at all of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterable, Iterator

from trace_store import errors
from trace_store.base.oid import ObjectId
from trace_store.odb.delta_links import ABSENT
from trace_store.odb.index_scan import ids_among, ids_in_several
from trace_store.odb.pack_index import PackIndex
from trace_store.odb.packs import Packs


class PackLostError(errors.StorageError):
    """A pack cannot have marks, because it is damaged or was removed; `data` has its name as `pack`."""


class PackMarks:
    """Marks of the objects of some packs; at first all are 0.

    Attributes:
        packs: the packs.
        hidden: ids that count as absent.
    """

    __slots__ = ("_marks", "_recent", "_several", "hidden", "packs")

    def __init__(self, packs: Packs, hidden: Container[bytes] = frozenset()) -> None:
        """Start without packs."""
        self.packs = packs
        self.hidden = hidden
        self._marks: dict[str, bytearray] = {}
        self._recent = ""
        self._several: frozenset[bytes] | None = None

    def add(self, name: str) -> bytearray:
        """Add a pack, and return the marks of its objects by their numbers."""
        marks = self._marks[name] = bytearray(self._index(name).objects)
        self._several = None
        return marks

    def __contains__(self, name: str) -> bool:
        return name in self._marks

    def __iter__(self) -> Iterator[str]:
        return iter(self._marks)

    def of(self, name: str) -> bytearray:
        """Return the marks of a pack that was added."""
        return self._marks[name]

    def id_of(self, name: str, number: int) -> ObjectId:
        """Return the id of an object of a pack."""
        return ObjectId(self._index(name).id_of(number))

    def find(self, oid: bytes) -> tuple[bytearray, int] | None:
        """Return the marks of a pack that has an object, and its number there."""
        if oid in self.hidden:
            return None
        recent = self._recent
        number = self._index(recent).find(oid) if recent else None
        if number is not None:
            return self._marks[recent], number
        for name in self._marks:
            number = self._index(name).find(oid) if name != recent else None
            if number is not None:
                self._recent = name
                return self._marks[name], number
        return None

    def values(self, oid: bytes) -> Iterator[int]:
        """Yield the mark of each copy of an object."""
        for name, marks in self._marks.items():
            yield from (marks[number] for number in self.copies(name, oid))

    def copies(self, name: str, oid: bytes) -> list[int]:
        """Return the numbers of an object in a pack, which may come from elsewhere and have it more than once."""
        index = self._index(name)
        return [] if index.find(oid) is None else index.copies(oid)

    def last(self, mark: int) -> tuple[str, int] | None:
        """Return the pack and the number of an object with a mark: the last one of a pack."""
        for name in (self._recent, *self._marks):
            number = self._marks[name].rfind(mark) if name else -1
            if number >= 0:
                self._recent = name
                return name, number
        return None

    def ids_with(self, name: str, mark: int) -> list[ObjectId]:
        """Return the ids of the objects of a pack with a mark, without unreadable ones, whose ids are unknown."""
        index, marks = self._index(name), self._marks[name]
        ids: list[ObjectId] = []
        at = marks.find(mark)
        while at >= 0:
            oid = index.id_of(at)
            if oid != ABSENT:
                ids.append(ObjectId(oid))
            at = marks.find(mark, at + 1)
        return ids

    def count(self, *counted: int) -> int:
        """Return the number of objects with one of these marks, each copy of which has the same."""
        total = sum(marks.count(mark) for marks in self._marks.values() for mark in counted)
        if self._several is None:
            self._several = ids_in_several([self._index(name) for name in self._marks])
        for oid in self._several:
            copies = sum(value in counted for value in self.values(oid))
            total -= max(copies - 1, 0)
        return total

    def lacking(self, oids: Iterable[bytes]) -> frozenset[bytes]:
        """Return the objects that may be in none of the packs."""
        left = frozenset(oids)
        for name in self._marks if left else ():
            packed = self.packs.get(name)
            with contextlib.suppress(errors.CorruptIndexError, errors.StorageError):
                left = left if packed is None else left - ids_among(packed.index, left)
        return left

    def _index(self, name: str) -> PackIndex:
        packed = self.packs.get(name)
        if packed is None:
            raise PackLostError(f"pack {name[:12]} was removed", pack=name)
        return packed.index

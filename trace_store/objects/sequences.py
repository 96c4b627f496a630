"""Sequences of content: one id for thousands of pieces, of which an append writes only a few nodes.

A node is `["list", {"depth": n, "items": [id, …], "type": "sequence"}]`. At depth 0 the items are content; above, they
are nodes of the depth below. Each node but the last of its depth has FANOUT items, so equal pieces give equal ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from trace_store import errors
from trace_store.base.oid import ObjectId, checked_id
from trace_store.objects.codec import LIST, decode, encode_ordered, kind_of

Put = Callable[[bytes], ObjectId]
ReadData = Callable[[Iterable[bytes]], Iterator[bytes]]

SEQUENCE = "sequence"
FANOUT = 64
_MAXIMUM_DEPTH = 8


class ContentSequence:
    """A sequence of content, given by ids.

    Attributes:
        levels: the ids of the items, then of the nodes of each depth; the last level is the root alone.
    """

    __slots__ = ("levels",)

    def __init__(self, levels: Sequence[Sequence[ObjectId]]) -> None:
        self.levels = levels

    @classmethod
    def of(cls, items: Sequence[ObjectId], put_object: Put) -> ContentSequence:
        """Write the sequence of some items, and return it."""
        return cls([[]]).extended(0, items, put_object)

    @property
    def items(self) -> Sequence[ObjectId]:
        """The ids of its items."""
        return self.levels[0]

    @property
    def oid(self) -> ObjectId:
        """The id of the sequence."""
        return self.levels[-1][0]

    def extended(self, keep: int, items: Sequence[ObjectId], put_object: Put) -> ContentSequence:
        """Write a sequence that keeps the first items and ends with other ones, and return it.

        Nodes that both sequences have are not written again.
        """
        level = [*self.levels[0]]
        level[keep:] = items
        levels: list[list[ObjectId]] = [level]
        while len(levels) == 1 or len(level) > 1:
            depth = len(levels) - 1
            keep //= FANOUT  # nodes whose items all stay
            old = self.levels[depth + 1] if depth + 1 < len(self.levels) else ()
            keep = min(keep, len(old))
            nodes = list(old[:keep])
            for start in range(keep * FANOUT, max(len(level), 1), FANOUT):
                nodes.append(put_object(_node(depth, level[start : start + FANOUT])))
            levels.append(nodes)
            level = nodes
        return type(self)(levels)


def _node(depth: int, items: Sequence[ObjectId]) -> bytes:
    return encode_ordered([LIST, {"depth": depth, "items": items, "type": SEQUENCE}])


def is_sequence(data: bytes) -> bool:
    """Return True for the bytes of a node of a sequence."""
    if kind_of(data) != LIST:
        return False
    fields = decode(data)[1]
    return isinstance(fields, dict) and fields.get("type") == SEQUENCE


def read_sequence(oid: ObjectId, read_data: ReadData) -> ContentSequence:
    """Return a sequence by its id; each level is read in one pass.

    Raises:
        ObjectNotFoundError: a node is missing.
        CorruptObjectError: the id does not name a sequence, or a node has another depth or number of items than the
            format says.
    """
    (root,) = read_data([oid])
    depth, level = _read_node(root, oid)
    least = 2 if depth else 0  # else a root of a lower depth, or none, would do
    if not least <= len(level) <= FANOUT:
        raise _not_a_sequence(oid)
    levels = [[oid], level]
    for below in range(depth - 1, -1, -1):
        items: list[ObjectId] = []
        for number, data in enumerate(read_data(level), 1):
            found, some = _read_node(data, oid)
            is_last = number == len(level)
            if found != below or not (1 if is_last else FANOUT) <= len(some) <= FANOUT:
                raise _not_a_sequence(oid)
            items += some
        level = items
        levels.append(level)
    return ContentSequence(levels[::-1])


def _read_node(data: bytes, oid: ObjectId) -> tuple[int, list[ObjectId]]:
    fields = decode(data)[1] if is_sequence(data) else {}
    depth, items = fields.get("depth"), fields.get("items")
    if not isinstance(depth, int) or not 0 <= depth < _MAXIMUM_DEPTH or not isinstance(items, list):
        raise _not_a_sequence(oid)
    try:
        return depth, [checked_id(item) for item in items]
    except (TypeError, ValueError) as error:
        raise _not_a_sequence(oid) from error


def _not_a_sequence(oid: ObjectId) -> errors.CorruptObjectError:
    return errors.CorruptObjectError(f"object {oid} is not a sequence", oid=oid)

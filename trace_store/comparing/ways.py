"""The ways by which two commits came from where their lines of first parents part.

Rule: a context is the fold of operations along first parents. So a message that no operation on these two ways names is
the same in both contexts, and no more of the history is read to know that.
"""

from __future__ import annotations

from trace_store.history import named
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.context.folding import Address
    from trace_store.context.folding_history import ReadCommit
    from trace_store.objects.commit import Commit
    from trace_store.oid import ObjectId


@value
class By:
    """The operation that last named a message.

    Attributes:
        operation: its name.
        commit: the commit that it stands in.
    """

    operation: str
    commit: ObjectId


class Way:
    """The commits from where two lines part, without it, to one of their ends.

    Attributes:
        commits: (id, commit), the newest first.
        last: the last operation that names a message, by the message's address.
        meets: whether there is a commit where they part.
        ranked: the messages that they give a priority.
    """

    __slots__ = ("commits", "last", "meets", "ranked")

    def __init__(self, commits: Sequence[tuple[ObjectId, Commit]], *, meets: bool) -> None:
        self.commits = commits
        self.meets = meets
        self.last: dict[Address, By] = {}
        self.ranked: set[Address] = set()
        for oid, commit in commits:
            for address, operation in reversed(list(named(oid, commit))):
                if "priority" in operation.fields:
                    self.ranked.add(address)
                if address not in self.last:
                    self.last[address] = By(operation.name, oid)


def ways(one: ObjectId, other: ObjectId, read_commit: ReadCommit) -> tuple[Way, Way]:
    """Return the ways of two commits from where their lines of first parents part.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit on them is not here, or is damaged.
    """
    lines: tuple[list[tuple[ObjectId, Commit]], ...] = ([], [])
    places: tuple[dict[ObjectId, int], ...] = ({}, {})
    at: list[ObjectId | None] = [one, other]
    while at[0] is not None or at[1] is not None:
        for side in (0, 1):
            oid = at[side]
            if oid is None:
                continue
            met = places[1 - side].get(oid)
            if met is not None:
                del lines[1 - side][met:]
                return Way(lines[0], meets=True), Way(lines[1], meets=True)
            commit = read_commit(oid)
            places[side][oid] = len(lines[side])
            lines[side].append((oid, commit))
            at[side] = commit.parents[0] if commit.parents else None
    return Way(lines[0], meets=False), Way(lines[1], meets=False)

"""What a ref is, given its files, what this working copy published, and what its journals say.

Rule: pure. The tips of a ref are the maximal elements of its files, less what this working copy's journals moved on
from, together with the value they moved it to. Only branches fast-forward: elsewhere no tip supersedes another.
"""

from __future__ import annotations

from trace_store.refs.names import BRANCHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trace_store.journal import RefFold
    from trace_store.oid import ObjectId


class Lineage:
    """What resolving needs to know of the commits.

    Attributes:
        maximal: returns the values that lie in no other's past.
        is_ancestor: tells whether the first lies in the second's past.
        contains: tells whether a commit is here.
        parents: returns a commit's parents; none of one that is not here.
    """

    __slots__ = ("contains", "is_ancestor", "maximal", "parents")

    def __init__(
        self,
        maximal: Callable[[Sequence[ObjectId]], Sequence[ObjectId]],
        is_ancestor: Callable[[ObjectId, ObjectId], bool],
        contains: Callable[[bytes], bool],
        parents: Callable[[ObjectId], Sequence[ObjectId]],
    ) -> None:
        self.maximal = maximal
        self.is_ancestor = is_ancestor
        self.contains = contains
        self.parents = parents


def resolve(
    name: str,
    files: Sequence[ObjectId],
    published: Sequence[ObjectId],
    fold: RefFold | None,
    lineage: Lineage,
) -> tuple[ObjectId, ...]:
    """Return the tips, this working copy's own first; none when the ref does not exist."""
    if fold is None:
        if set(files) == set(published) and len(published) < 2:
            return tuple(published)  # nobody moved it
        tips = _maximal(name, files, lineage)
        return _own_first(tips, published[0] if published else None, lineage)
    if fold.value is None:
        others = [tip for tip in _maximal(name, files, lineage) if tip not in fold.passed]
        return _own_first(others, None, lineage)
    if fold.passed.issuperset(files) or not files:
        return (fold.value,)
    others = [tip for tip in _maximal(name, files, lineage) if tip not in fold.passed]
    tips = _maximal(name, [fold.value, *others], lineage)
    return _own_first(tips, fold.value, lineage)


def unexplained(
    files: Sequence[ObjectId], published: Sequence[ObjectId], fold: RefFold | None
) -> bool:
    """Tell whether the files are something that this working copy did not write, as far as it knows."""
    if fold is None:
        return set(files) != set(published)
    return any(tip not in fold.passed and tip != fold.value for tip in files)


def _maximal(name: str, values: Sequence[ObjectId], lineage: Lineage) -> list[ObjectId]:
    distinct = list(dict.fromkeys(values))
    if len(distinct) < 2 or not name.startswith(BRANCHES):
        return distinct
    return list(lineage.maximal(distinct))


def _own_first(
    tips: Sequence[ObjectId], preferred: ObjectId | None, lineage: Lineage
) -> tuple[ObjectId, ...]:
    if len(tips) < 2 or tips[0] == preferred:
        return tuple(tips)
    ordered = sorted(tips)
    own = next((tip for tip in ordered if tip == preferred), None)
    if own is None and preferred is not None:
        own = next((tip for tip in ordered if lineage.is_ancestor(preferred, tip)), None)
    if own is None:
        own = next((tip for tip in ordered if lineage.contains(tip)), ordered[0])
    return (own, *(tip for tip in ordered if tip != own))

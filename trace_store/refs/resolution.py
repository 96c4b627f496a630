"""What a ref is, given its files, what this working copy published, and what its journals say.

Rule: this changes nothing, and reads commits alone; what a walk over them finds is remembered where nothing on its way
was absent. The tips of a ref are the maximal elements of its files, less what this working copy's journals moved on
from, together with the value they moved it to. Only branches fast-forward: elsewhere no tip supersedes another.
"""

from __future__ import annotations

from trace_store import errors, graph, objects
from trace_store.contracts import ANY
from trace_store.refs.names import BRANCHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trace_store.contracts import ObjectReader, RefEdit
    from trace_store.journal.ref_moves import RefFold
    from trace_store.oid import ObjectId

_MEMORY = 256
_WALKED = 1 << 14
"""So many commits' parents are remembered: who brings back refs walks through the same past for each."""
_NEAR = 64
"""How many commits are looked at to find out that a value continues a known line."""


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


def taken_up(
    value: ObjectId, tips: Sequence[ObjectId], made: Mapping[ObjectId, bytes], lineage: Lineage
) -> list[ObjectId]:
    """Return which of the tips of a diverged branch, its own apart, a value is or continues.

    Args:
        value: what the branch is moved to.
        tips: the tips, its own first.
        made: objects that are only being stored.
        lineage: tells of the others.
    """

    def parents(oid: ObjectId) -> Sequence[ObjectId]:
        if oid == tips[0]:
            return ()  # whose past has none of the others
        data = made.get(oid)
        return lineage.parents(oid) if data is None else objects.commit.parents_of(data)

    past = set(graph.ancestors([value], parents))
    return [tip for tip in tips[1:] if tip in past]


def unexplained(
    files: Sequence[ObjectId], published: Sequence[ObjectId], fold: RefFold | None
) -> bool:
    """Tell whether the files are something that this working copy did not write, as far as it knows."""
    if fold is None:
        return set(files) != set(published)
    return any(tip not in fold.passed and tip != fold.value for tip in files)


def check_expected(edit: RefEdit, actual: ObjectId | None) -> None:
    """Accept an edit whose expectation is met.

    Raises:
        RefChangedError: it is not.
    """
    if edit.expected is not ANY and edit.expected != actual:
        raise errors.RefChangedError(
            f"{edit.name} is {actual or 'absent'}, not {edit.expected or 'absent'}",
            ref=edit.name,
            expected=edit.expected,
            actual=actual,
        )


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


def lineage_of(reader: ObjectReader) -> Lineage:
    """Return what tells of the commits that can be read here."""
    walks = _Walks(reader)
    return Lineage(walks.maximal, walks.is_ancestor, reader.contains, walks.parents)


class _Walks:
    """Walks over commits, and what they found."""

    __slots__ = ("_maxima", "_met_absent", "_objects", "_walked")

    def __init__(self, reader: ObjectReader) -> None:
        self._objects = reader
        self._maxima: dict[frozenset[ObjectId], list[ObjectId]] = {}
        self._met_absent = False
        self._walked: dict[ObjectId, Sequence[ObjectId]] = {}

    def parents(self, oid: ObjectId) -> Sequence[ObjectId]:
        known = self._walked.get(oid)
        if known is not None:
            return known
        try:
            found = objects.commit.parents_of(self._objects.read(oid))
        except (errors.NotFoundError, errors.FormatError):
            self._met_absent = True
            return []  # an incomplete history ends here
        if len(self._walked) >= _WALKED:
            self._walked.clear()
        self._walked[oid] = found
        return found

    def maximal(self, values: Sequence[ObjectId]) -> list[ObjectId]:
        key = frozenset(values)
        known = self._maxima.get(key)
        if known is None:
            self._met_absent = False
            known = sorted(key)
            if not self._stays_apart(key):
                known = graph.maximal(known, self.parents)
            # What a walk that stopped at an absent commit says may change when the commit comes.
            if not self._met_absent and all(map(self._objects.contains, key)):
                if len(self._maxima) >= _MEMORY:
                    del self._maxima[next(iter(self._maxima))]
                self._maxima[key] = known
        return known

    def _stays_apart(self, values: frozenset[ObjectId]) -> bool:
        """Tell whether one value continues a line of which it is known that it left the past of all others.

        A commit with one parent has that parent's past. So where neither the parent lies in another value's past nor
        another in the parent's, the same holds for the commit, and an append to a diverged branch costs no walk.
        """
        if not self._maxima:
            return False
        for value in values:
            others = values - {value}
            at = value
            for _ in range(_NEAR):
                parents = self.parents(at)
                if len(parents) != 1 or parents[0] in others:
                    break
                at = parents[0]
                known = self._maxima.get(others | {at})
                if known is not None:
                    if len(known) == len(values):
                        return True
                    break
        return False

    def is_ancestor(self, candidate: ObjectId, descendant: ObjectId) -> bool:
        return graph.is_ancestor(candidate, descendant, self.parents)

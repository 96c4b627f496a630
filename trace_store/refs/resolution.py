"""Resolution of a ref from its files, its published tips and the journals.

Rule: read-only; reads commits alone, and caches walks that met no missing commit. A ref's tips are the maximal files,
except those that this working copy's journals moved away from, plus the journal's value. Only branches fast-forward:
elsewhere no tip supersedes another.
"""

from __future__ import annotations

from trace_store import errors, objects
from trace_store.commit_table import graph
from trace_store.contracts import ANY
from trace_store.contracts.ref_names import joins_by_merge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trace_store.base.oid import ObjectId
    from trace_store.contracts import RefEdit
    from trace_store.contracts.protocols import ObjectReader
    from trace_store.journal.view import RefState

_MEMORY = 256
_WALKED = 1 << 14
"""How many commits' parents are cached: restoring many refs walks the same history for each."""
_NEAR = 64
"""How many commits are checked to find that a value extends a known tip."""


class Lineage:
    """Ancestry queries over the commits of a reader, with caches."""

    __slots__ = ("_maxima", "_met_missing", "_objects", "_walked")

    def __init__(self, reader: ObjectReader) -> None:
        self._objects = reader
        self._maxima: dict[frozenset[ObjectId], list[ObjectId]] = {}
        self._met_missing = False
        self._walked: dict[ObjectId, Sequence[ObjectId]] = {}

    def contains(self, oid: bytes) -> bool:
        """Return True if a commit exists."""
        return self._objects.contains(oid)

    def parents(self, oid: ObjectId) -> Sequence[ObjectId]:
        """Return a commit's parents; none if it is missing or damaged."""
        known = self._walked.get(oid)
        if known is not None:
            return known
        try:
            parents = objects.commit.parents_of(self._objects.read(oid))
        except (errors.NotFoundError, errors.FormatError):
            self._met_missing = True
            return []  # an incomplete history ends here
        if len(self._walked) >= _WALKED:
            self._walked.clear()
        self._walked[oid] = parents
        return parents

    def maximal(self, values: Sequence[ObjectId]) -> list[ObjectId]:
        """Return the values that are not ancestors of another one."""
        key = frozenset(values)
        known = self._maxima.get(key)
        if known is None:
            self._met_missing = False
            known = sorted(key)
            if not self._extends_known(key):
                known = graph.maximal(known, self.parents)
            # A walk that met a missing commit may change its result once the commit arrives.
            if not self._met_missing and all(map(self._objects.contains, key)):
                if len(self._maxima) >= _MEMORY:
                    del self._maxima[next(iter(self._maxima))]
                self._maxima[key] = known
        return known

    def _extends_known(self, values: frozenset[ObjectId]) -> bool:
        """Return True if a value extends a tip known to be unrelated to all others.

        A commit with one parent has that parent's history. If the parent and the other values are not each other's
        ancestors, the same holds for the commit. So an append to a diverged branch needs no walk.
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
        """Return True if a commit is an ancestor of another one, or the same."""
        return graph.is_ancestor(candidate, descendant, self.parents)


def resolve(
    name: str,
    files: Sequence[ObjectId],
    published: Sequence[ObjectId],
    fold: RefState | None,
    lineage: Lineage,
) -> tuple[ObjectId, ...]:
    """Return the tips, this working copy's first; empty if the ref does not exist."""
    if fold is None:
        if set(files) == set(published) and len(published) < 2:
            return tuple(published)  # unmoved
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


def merged_tips(
    value: ObjectId, tips: Sequence[ObjectId], made: Mapping[ObjectId, bytes], lineage: Lineage
) -> list[ObjectId]:
    """Return the tips of a diverged branch, except its own, that a new value contains.

    Args:
        value: the new value.
        tips: the tips, its own first.
        made: objects of the same transaction.
        lineage: ancestry of stored commits.
    """

    def parents(oid: ObjectId) -> Sequence[ObjectId]:
        if oid == tips[0]:
            return ()  # its history has none of the others
        data = made.get(oid)
        return lineage.parents(oid) if data is None else objects.commit.parents_of(data)

    past = set(graph.ancestors([value], parents))
    return [tip for tip in tips[1:] if tip in past]


def is_unexplained(
    files: Sequence[ObjectId], published: Sequence[ObjectId], fold: RefState | None
) -> bool:
    """Return True if this working copy is not known to have written the files."""
    if fold is None:
        return set(files) != set(published)
    return any(tip not in fold.passed and tip != fold.value for tip in files)


def check_expected(edit: RefEdit, actual: ObjectId | None) -> None:
    """Check the expectation of an edit.

    Raises:
        RefChangedError: the ref has another value.
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
    if len(distinct) < 2 or not joins_by_merge(name):
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

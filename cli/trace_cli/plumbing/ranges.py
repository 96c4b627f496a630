"""What revisions and ranges mean: sets of commits and objects."""

from __future__ import annotations

from trace_store.revision import commits_of, resolve, resolve_commit, resolve_range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.oid import ObjectId
    from trace_store.store import Store

__all__ = ["object_sets", "reach", "resolve"]


def reach(store: Store, text: str) -> tuple[list[ObjectId], list[ObjectId]]:
    """Return the commits that `A`, `^A`, `A..B` or `A...B` starts from, and those whose past it leaves out.

    Raises:
        RevisionNotFoundError, AmbiguousRevisionError, InvalidInputError: as in `trace_store.revision`.
    """
    if text.startswith("^"):
        return [], [resolve_commit(store, text[1:])]
    found = resolve_range(store, text)
    exclude = list(found.exclude)
    if found.symmetric:
        exclude += commits_of(store).merge_bases(*found.include)
    return list(found.include), exclude


def object_sets(store: Store, text: str) -> tuple[list[ObjectId], list[ObjectId]]:
    """Return the objects that `A`, `^A`, `A..B` or `A...B` starts from, and those whose reach it leaves out.

    Unlike `reach`, a tag is the tag itself, and any object is a start.

    Raises:
        RevisionNotFoundError, AmbiguousRevisionError, InvalidInputError: as in `trace_store.revision`.
    """
    if text.startswith("^"):
        return [], [resolve(store, text[1:])]
    return reach(store, text) if ".." in text else ([resolve(store, text)], [])

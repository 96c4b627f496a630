"""What revisions and ranges mean: sets of commits and objects."""

from __future__ import annotations

from trace_store.revision import reach, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

__all__ = ["object_sets", "reach", "resolve"]


def object_sets(store: Store, text: str) -> tuple[list[ObjectId], list[ObjectId]]:
    """Return the objects that `A`, `^A`, `A..B` or `A...B` starts from, and those whose reach it leaves out.

    Unlike `reach`, a tag is the tag itself, and any object is a start.

    Raises:
        RevisionNotFoundError, AmbiguousRevisionError, InvalidInputError: as in `trace_store.revision`.
    """
    if text.startswith("^"):
        return [], [resolve(store, text[1:])]
    return reach(store, text) if ".." in text else ([resolve(store, text)], [])

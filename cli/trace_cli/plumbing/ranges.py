"""The objects that revisions and ranges select."""

from __future__ import annotations

from trace_store.store.revision import reach, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.oid import ObjectId
    from trace_store.store.store import Store

__all__ = ["object_sets", "resolve"]


def object_sets(store: Store, text: str) -> tuple[list[ObjectId], list[ObjectId]]:
    """Return (included objects, excluded objects) of `A`, `^A`, `A..B` or `A...B`.

    Unlike `reach`, this accepts any object, and does not peel tags.

    Raises:
        RevisionNotFoundError, AmbiguousRevisionError, InvalidInputError: as in `trace_store.store.revision`.
    """
    if text.startswith("^"):
        return [], [resolve(store, text[1:])]
    return reach(store, text) if ".." in text else ([resolve(store, text)], [])

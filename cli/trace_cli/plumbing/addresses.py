"""Output of `trace rev-parse` for a revision, a range or an address."""

from __future__ import annotations

from trace_store import errors
from trace_store.store.revision import reach, ref_of, resolve, resolve_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.oid import ObjectId
    from trace_store.store.store import Store


def addressed(store: Store, text: str, short: bool) -> list[str]:
    """Return the lines for one argument; short ids have 12 characters.

    Raises:
        RevisionNotFoundError, AmbiguousRevisionError, InvalidInputError: as in `trace_store.store.revision`.
    """

    def shown(oid: ObjectId) -> str:
        return oid.short() if short else str(oid)

    if text.startswith("^") or ".." in text:
        wanted, hidden = reach(store, text)
        return [*map(shown, wanted), *(f"^{shown(oid)}" for oid in hidden)]
    if _ends_in_number(text):
        try:
            address = resolve_address(store, text)
        except errors.NotFoundError:
            if ref_of(store, text) is None:  # a branch may be called v1.0
                raise
        else:
            return [str(address) if short else address.hex]
    return [shown(resolve(store, text))]


def _ends_in_number(text: str) -> bool:
    head, point, tail = text.rpartition(".")
    return bool(head and point) and tail.isascii() and tail.isdigit()

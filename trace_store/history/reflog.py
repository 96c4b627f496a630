"""The reflogs of refs, with the entries of their earlier names."""

from __future__ import annotations

from trace_store import errors, ref_names
from trace_store.refs.head import NAME
from trace_store.refs.names import check_text
from trace_store.refs.reflog import ReflogEntry, follow_renames
from trace_store.store.reflogs import entries, unsealed_entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.store.handle import Store


def newest_first(store: Store, name: str) -> Iterator[ReflogEntry]:
    """Yield the reflog entries of a ref or HEAD, newest first, reading little more than is consumed.

    A renamed branch continues with the entries of its old name.
    """
    unsealed = unsealed_entries(store)
    return follow_renames(name, lambda each: entries(store, each, unsealed))


def has_log(store: Store, name: str) -> bool:
    """Return True if a ref, given by its full name, has a local reflog."""
    known = name == NAME or ref_names.is_ref_name(name)
    return known and next(newest_first(store, name), None) is not None


def find_log(store: Store, name: str) -> str:
    """Return the full name of a reflog: HEAD's, or that of a ref, which may be deleted.

    Raises:
        RefNotFoundError: no ref of that name has a local reflog.
        InvalidInputError: the name is not a string.
    """
    check_text(name)
    if name in (NAME, "@"):
        return NAME
    for full in (name, f"refs/{name}", f"refs/heads/{name}", f"refs/tags/{name}"):
        if has_log(store, full):
            return full
    raise errors.RefNotFoundError(f"no reflog for {name[:120]!r}", ref=name)

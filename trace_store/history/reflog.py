"""Reflogs, read from the end.

An entry counts once, also while a seal has it both in the journal and in a file.
"""

from __future__ import annotations

from trace_store import errors, ref_names, refs
from trace_store.refs.head import NAME
from trace_store.refs.names import check_text
from trace_store.refs.reflog import ReflogEntry, follow_renames
from trace_store.refs.reflog import newest_first as newest_of_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.store.handle import Store


def newest_first(store: Store, name: str) -> Iterator[ReflogEntry]:
    """Yield the reflog entries of a ref or HEAD, newest first, reading little more than is consumed.

    A renamed branch continues with the entries of its old name.
    """
    unsealed_entries = recent_moves(store)
    return follow_renames(name, lambda each: _entries(store, each, unsealed_entries))


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


def recent_moves(store: Store) -> dict[str, list[ReflogEntry]]:
    """Return the reflog entries in the journals for each ref and HEAD, oldest first."""
    if not store.local:
        return {}
    with store.mutex:
        store.journal.refresh()
        return refs.reflog.entries_of(store.journal.fold.frames)


def all_logs(store: Store) -> dict[str, Iterator[ReflogEntry]]:
    """Return the reflog entries of each ref and HEAD, newest first."""
    if not store.local:
        names = {NAME, *store.refs.logged()}  # type: ignore[union-attr]
        return {name: _entries(store, name, {}) for name in sorted(names)}
    unsealed_entries = recent_moves(store)
    names = {*unsealed_entries, *refs.reflog.logged_names(store.disk, store.layout.logs_dir)}
    return {name: _entries(store, name, unsealed_entries) for name in sorted(names)}


def _entries(
    store: Store, name: str, unsealed_entries: dict[str, list[ReflogEntry]]
) -> Iterator[ReflogEntry]:
    if not store.local:
        yield from store.refs.reflog(name)
        return
    unsealed = unsealed_entries.get(name, [])
    oldest = min((entry.time for entry in unsealed), default=0)
    logged = newest_of_file(store.disk, store.layout.log_file(name))
    # Setting HEAD first writes its journal entries to the file, so any that the file lacks are newer.
    overlapping: list[ReflogEntry] = []
    for entry in logged if unsealed else ():
        overlapping.append(entry)
        if entry.time < oldest:
            break
    known = set(overlapping)
    yield from (entry for entry in reversed(unsealed) if entry not in known)
    yield from overlapping
    yield from logged

"""Reflogs of files and journals together, read from the end.

An entry counts once, also while a seal has it both in the journal and in a file.
"""

from __future__ import annotations

from trace_store import refs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.refs.reflog import ReflogEntry
    from trace_store.store.handle import Store


def unsealed_entries(store: Store) -> dict[str, list[ReflogEntry]]:
    """Return the reflog entries in the journals for each ref and HEAD, oldest first."""
    with store.mutex:
        store.journal.refresh()
        return refs.reflog.entries_of(store.journal.fold.frames)


def all_logs(store: Store) -> dict[str, Iterator[ReflogEntry]]:
    """Return the reflog entries of each ref and HEAD, newest first."""
    unsealed = unsealed_entries(store)
    names = {*unsealed, *refs.reflog.logged_names(store.disk, store.layout.logs_dir)}
    return {name: entries(store, name, unsealed) for name in sorted(names)}


def entries(
    store: Store, name: str, unsealed: dict[str, list[ReflogEntry]]
) -> Iterator[ReflogEntry]:
    """Yield the entries of a reflog, newest first, given all unsealed ones."""
    path = store.layout.log_file(name)
    yield from refs.reflog.newest_first(store.disk, path, unsealed.get(name, []))

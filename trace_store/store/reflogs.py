"""Reflogs of files and journals together, read from the end.

An entry counts once, also while a seal has it both in the journal and in a file.
A renamed ref continues with the entries of its earlier name.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.contracts import ref_names
from trace_store.contracts.ref_names import check_text
from trace_store.refs.head import NAME
from trace_store.refs.reflog import (
    COMMANDS,
    ReflogEntry,
    append_log,
    entries_of,
    follow_renames,
    logged_names,
    read_backwards,
)
from trace_store.refs.reflog import newest_first as file_entries
from trace_store.store.revision import branch_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.contracts.protocols import RefReader
    from trace_store.store.store import Store


def unsealed_entries(store: Store) -> dict[str, list[ReflogEntry]]:
    """Return the reflog entries in the journals for each ref and HEAD, oldest first."""
    with store.mutex:
        store.journal.refresh()
        return entries_of(store.journal.fold.frames)


def all_logs(store: Store) -> dict[str, Iterator[ReflogEntry]]:
    """Return the reflog entries of each ref and HEAD, newest first."""
    unsealed = unsealed_entries(store)
    names = {*unsealed, *logged_names(store.disk, store.layout.logs_dir)}
    return {name: entries(store, name, unsealed) for name in sorted(names)}


def entries(
    store: Store, name: str, unsealed: dict[str, list[ReflogEntry]]
) -> Iterator[ReflogEntry]:
    """Yield the entries of a reflog, newest first, given all unsealed ones."""
    path = store.layout.log_file(name)
    yield from file_entries(store.disk, path, unsealed.get(name, []))


def newest_first(store: Store, name: str) -> Iterator[ReflogEntry]:
    """Yield the reflog entries of a ref or HEAD, newest first, reading little more than is consumed.

    A renamed branch continues with the entries of its old name.
    """
    unsealed = unsealed_entries(store)
    return follow_renames(name, lambda each: entries(store, each, unsealed))


def log_command(store: Store, message: str, author: str) -> None:
    """Log a command that moved no ref and cannot be undone, so that `undo` does not take back the one before it."""
    layout = store.layout

    def write(_: RefReader) -> None:
        entry = ReflogEntry(None, None, store.refs.times.now(), author, message)
        append_log(store.disk, layout.logs_dir, layout.log_file(COMMANDS), [entry])

    store.transact(write)


def logged_commands(store: Store) -> Iterator[ReflogEntry]:
    """Yield the commands that cannot be undone, newest first."""
    return read_backwards(store.disk, store.layout.log_file(COMMANDS))


def has_log(store: Store, name: str) -> bool:
    """Return True if a ref, given by its full name, has a local reflog."""
    known = name == NAME or ref_names.is_ref_name(name)
    return known and next(newest_first(store, name), None) is not None


def find_log(store: Store, name: str) -> str:
    """Return the full name of a reflog: of HEAD, of a ref, which may be deleted, or of a session.

    Raises:
        AmbiguousRevisionError: several sessions match.
        RefNotFoundError: no ref of that name has a local reflog.
        InvalidInputError: the name is not a string.
    """
    check_text(name)
    if name in (NAME, "@"):
        return NAME
    for full in (name, f"refs/{name}", f"refs/heads/{name}", f"refs/tags/{name}"):
        if has_log(store, full):
            return full
    found = branch_of(store, name) if name else None
    if found is not None and has_log(store, found):
        return found
    raise errors.RefNotFoundError(f"no reflog for {name[:120]!r}", ref=name)

"""The reflogs, read from their ends: what was done last is known without reading what was done before.

Rule: an entry counts once, whether it is in a journal, in a file or, as a seal may leave it for a moment, in both.
"""

from __future__ import annotations

import os

from trace_store import errors, ref_names, refs
from trace_store.refs.head import NAME
from trace_store.refs.names import check_text
from trace_store.refs.reflog import ReflogEntry, through_renames
from trace_store.refs.reflog import newest_first as newest_of_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.store.handle import Store

_SUFFIX = ".log"


def newest_first(store: Store, name: str) -> Iterator[ReflogEntry]:
    """Yield the movements of a ref, or of HEAD, newest first; reads no more than is asked for, and a little.

    Those of a branch that was renamed are followed by those under the name that it had.
    """
    recent = recent_moves(store)
    return through_renames(name, lambda each: _entries(store, each, recent))


def has_log(store: Store, name: str) -> bool:
    """Tell whether a ref, given by its full name, was ever moved here."""
    known = name == NAME or ref_names.is_ref_name(name)
    return known and next(newest_first(store, name), None) is not None


def find_log(store: Store, name: str) -> str:
    """Return the name of the log that a word means: HEAD's, or that of a ref, which need not be there any more.

    Raises:
        RefNotFoundError: no ref of that name has a log here.
        InvalidInputError: it is no text.
    """
    check_text(name)
    if name in (NAME, "@"):
        return NAME
    for full in (name, f"refs/{name}", f"refs/heads/{name}", f"refs/tags/{name}"):
        if has_log(store, full):
            return full
    raise errors.RefNotFoundError(f"no ref {name[:120]!r} has a log here", ref=name)


def recent_moves(store: Store) -> dict[str, list[ReflogEntry]]:
    """Return what the journals say of each ref that they move, and of HEAD, oldest first."""
    if not store.local:
        return {}
    with store.mutex:
        store.journal.refresh()
        return refs.reflog.entries_of(store.journal.fold.frames)


def all_logs(store: Store) -> dict[str, Iterator[ReflogEntry]]:
    """Return the movements of each ref that was ever moved here, and of HEAD, newest first."""
    if not store.local:
        names = {NAME, *store.refs.logged()}  # type: ignore[union-attr]
        return {name: _entries(store, name, {}) for name in sorted(names)}
    recent = recent_moves(store)
    names = {*recent, *_names_of_files(store)}
    return {name: _entries(store, name, recent) for name in sorted(names)}


def _entries(
    store: Store, name: str, recent: dict[str, list[ReflogEntry]]
) -> Iterator[ReflogEntry]:
    if not store.local:
        yield from store.refs.reflog(name)
        return
    unsealed = recent.get(name, [])
    oldest = min((entry.time for entry in unsealed), default=0)
    logged = newest_of_file(store.disk, store.layout.log_file(name))
    # Who sets HEAD writes down first what the journals say of it, so that what the file has not is newer than it.
    near: list[ReflogEntry] = []
    for entry in logged if unsealed else ():
        near.append(entry)
        if entry.time < oldest:
            break
    known = set(near)
    yield from (entry for entry in reversed(unsealed) if entry not in known)
    yield from near
    yield from logged


def _names_of_files(store: Store) -> Iterator[str]:
    """Yield the names of the refs that have a reflog in a file."""
    pending = [(store.layout.logs_dir, "")]
    while pending:
        path, before = pending.pop()
        folders, files = store.disk.scan(path)
        pending += [(os.path.join(path, name), f"{before}{name}/") for name in folders]
        for name in files:
            full = before + name.removesuffix(_SUFFIX)
            if name.endswith(_SUFFIX) and (full == NAME or ref_names.is_ref_name(full)):
                yield full

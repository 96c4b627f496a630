"""Erase: immediate removal of what only deleted or rewritten refs reached.

It prunes these objects without a grace period, and deletes their quarantine, too. Objects that another ref, a reflog or
the trash reaches stay. Caches that quote content are removed, and rebuilt when needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.disk.files import files_below
from trace_store.disk.git import find_git
from trace_store.journal.published import stamp_of
from trace_store.maintenance.consolidate import remove_if_possible
from trace_store.maintenance.gc import Collector, delete_batch
from trace_store.maintenance.seal import seal
from trace_store.odb.reachable import reachable
from trace_store.store.store import Store


@value
class EraseReport:
    """The result of an erase.

    Attributes:
        objects: the number of objects that were removed.
        kept: the number of objects that something else still reaches.
        left: files that may still hold their bytes, with the reason.
        git_folder: path of `.trace` in the git work tree around it, whose history may have copies; "" without git.
    """

    objects: int = 0
    kept: int = 0
    left: tuple[tuple[str, str], ...] = ()
    git_folder: str = ""


def erase(store: Store, refs: Iterable[str], tips: Iterable[ObjectId]) -> EraseReport:
    """Remove what only these tips and the reflogs of their refs reach, and these reflogs.

    Args:
        store: the repository.
        refs: full names of the refs, which have been deleted or moved.
        tips: their former tips.

    Raises:
        StateError: what is reachable cannot be determined; nothing was removed.
        FormatError: an object is damaged; nothing was removed.
        LockedError, StorageError: as in `prune`.
    """
    refs = [*refs]
    logged = [
        each for ref in refs for entry in store.refs.reflog(ref) for each in (entry.old, entry.new)
    ]
    starts = [*tips, *(each for each in logged if each is not None)]
    found = reachable(store.objects.read, starts, absent=lambda _, __: None)
    within = {oid for oid, _ in found}
    if not within:
        return EraseReport()
    seal(store)
    disk, layout = store.disk, store.layout
    left: dict[str, str] = {}

    def remove(path: str) -> None:
        if not remove_if_possible(disk, path) and disk.exists(path):
            left[os.path.relpath(path, layout.root)] = "in use"

    for ref in refs:
        remove(layout.log_file(ref))
    collector = Collector(store, 0, False, None, within)
    collector.prune()
    if collector.batch is not None:
        delete_batch(store, collector.batch)
    # Search indexes and lists of sessions hold words of messages.
    for folder in (layout.index_dir, layout.cache_dir, layout.info_dir):
        for path in files_below(disk, folder):
            remove(path)
    with store.mutex:
        store.journal.refresh()
        covered = dict(store.journal.covered)
    for number, (stamp, _) in covered.items():
        path = layout.journal_file(number)
        if stamp_of(disk, path) == stamp:
            remove(path)
    kept = sum(store.objects.contains(oid) for oid in within)
    git = find_git(disk, layout.root) if store.local else ""
    folder = os.path.relpath(layout.root, os.path.dirname(git)).replace(os.sep, "/") if git else ""
    return EraseReport(len(within) - kept, kept, tuple(left.items()), folder)

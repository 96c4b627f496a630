"""Erasure of purged content from a repository's files.

Invariant: runs under the maintenance lock, after tombstones are durable and the journal is sealed. What remains of
a file is durable before it is removed. Every step can be repeated.
"""

from __future__ import annotations

import os
import re

from trace_store import errors, lock_owner
from trace_store.files import files_below, read_file, replace_file
from trace_store.journal.published import stamp_of
from trace_store.maintenance.consolidate import remove_if_possible
from trace_store.maintenance.pack_rewrite import packs_holding, rewrite_packs
from trace_store.maintenance.verify_purged import search
from trace_store.odb.pack import walk_objects
from trace_store.odb.pack_writer import PackWriter
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.maintenance.verify_purged import Needles
    from trace_store.odb.quarantine import QuarantineBatch
    from trace_store.store.handle import Store

REMOVED = b"[purged]"
"""Replaces the text in reflogs."""


class Eraser:
    """Removes purged content, and records what it cannot remove.

    Attributes:
        packs: number of packs rewritten.
        files: number of other files removed or changed.
        damaged: names of damaged packs, which stay.
        left: files that may still hold the bytes, with the reason.
    """

    def __init__(self, store: Store, texts: Needles, contents: Needles) -> None:
        """Prepare; search terms as in a plan."""
        self._store = store
        self._database = store.objects
        self._texts = texts
        self._contents = contents
        self._folders: set[str] = set()
        self.packs = 0
        self.files = 0
        self.damaged: list[str] = []
        self.left: dict[str, str] = {}

    def clean(self) -> None:
        """Process all files once."""
        store = self._store
        # The search index holds words of messages; the next search rebuilds it.
        for path in store.layout.search_files():
            self.files += store.disk.remove(path)
        self._remove_journals()
        purged = frozenset(map(ObjectId, self._database.purged))
        done = rewrite_packs(store, packs_holding(store, purged), purged)
        self.packs += len(done.replaced)
        self.damaged = list(done.damaged)
        for oid in purged:
            if self._database.loose.contains(oid):
                self._database.loose.remove(oid)
                self._folders.add(os.path.dirname(store.layout.loose_file(oid.hex())))
                self.files += 1
        for taking in self._database.quarantine.batches():
            self._clean_taking(taking, purged)
        layout = store.layout
        for folder in (
            layout.index_dir,
            layout.cache_dir,
            os.path.join(layout.local_dir, "imports"),
        ):
            for path in files_below(store.disk, folder):
                self._remove(path)
        for path in files_below(store.disk, layout.logs_dir):
            self._clean_log(path)
        self._clean_unread_places()
        # The seal and the rewritten packs have removed files as well.
        self._folders |= {
            layout.pack_dir,
            layout.objects_dir,
            layout.journal_dir,
            layout.kept_packs_dir,
        }
        for folder in sorted(self._folders):
            if store.disk.exists(folder):  # removed folders are covered by their parent
                store.disk.sync_directory(folder)

    def _remove_journals(self) -> None:
        """Remove sealed journals without waiting for the next seal."""
        journal = self._store.journal
        with self._store.mutex:
            journal.refresh()
            covered = dict(journal.covered)
        for number, (stamp, _) in covered.items():
            path = self._store.layout.journal_file(number)
            if stamp_of(self._store.disk, path) == stamp:
                self._remove(path)
        for file in journal.files:
            if file.objects.keys() & self._database.purged:
                self.left[f"journal/{file.number}"] = "cannot be sealed"

    def _clean_taking(self, taking: QuarantineBatch, purged: frozenset[ObjectId]) -> None:
        """Remove objects from one quarantine folder."""
        disk = self._store.disk
        taking.packs.refresh()
        for name in taking.packs.names():
            packed = taking.packs.get(name)
            if packed is None or purged.isdisjoint(packed.index.in_order()):
                continue
            writer = PackWriter(disk, taking.layout)
            try:
                for _, _, objects in walk_objects(packed.pack):
                    if isinstance(objects, errors.CorruptObjectError):
                        raise objects
                    for oid, _, data in objects:
                        if oid not in purged:
                            writer.add(oid, data)
                new = writer.finish()
            except errors.FormatError:
                self.damaged.append(name)
                continue
            finally:
                writer.discard()
            if name not in new:
                self._remove(taking.layout.pack_index_file(name))
                self._remove(taking.layout.pack_file(name))
                self.packs += 1
        for oid in purged:
            if taking.loose.contains(oid):
                taking.loose.remove(oid)
                folder = os.path.dirname(taking.layout.loose_file(oid.hex()))
                self._folders |= {folder, os.path.dirname(folder)}
                self.files += 1
        taking.packs.refresh()

    def _clean_log(self, path: str) -> None:
        """Remove the text from a reflog, whose messages people write."""
        data = kept = read_file(self._store.disk, path) or b""
        for needles in (self._texts, self._contents):
            kept = needles.replace_in(kept, REMOVED)
        if kept != data:
            scratch = self._store.layout.tmp_dir
            replace_file(self._store.disk, path, kept, scratch=scratch)
            self.files += 1

    def _clean_unread_places(self) -> None:
        """Remove matching files from places without a reader.

        Tmp, second copies, lost-found.

        An unreadable file in `tmp` is unfinished and removed as well.
        """
        store = self._store
        for folder in ("tmp", "lost-found", "quarantine", os.path.join("local", "packs")):
            matches = search(
                store, self._database.purged, self._texts, self._contents, below=folder
            )
            paths = {each.path for each in matches.found}
            paths.update(path for path, _ in matches.unread if folder == "tmp")
            for path in sorted(paths):
                writer = _writer_of(os.path.basename(path))
                if writer and lock_owner.is_alive(writer):
                    self.left[path] = f"process {writer} may be writing it"
                else:
                    self._remove(os.path.join(store.layout.root, path))

    def _remove(self, path: str) -> None:
        relative = os.path.relpath(path, self._store.layout.root)
        if remove_if_possible(self._store.disk, path):
            self.files += 1
            self._folders.add(os.path.dirname(path))
            self.left.pop(relative, None)
        else:
            self.left[relative] = "in use"


def _writer_of(name: str) -> int:
    """Return the process id in a temporary file's name; 0 for this process or none."""
    match = re.match(
        r"(?:object|pack|tombstone)-(\d{1,10})-|.*\.(\d{1,10})-[0-9a-f]{12}\.tmp$", name
    )
    process = 0 if match is None else int(match[1] or match[2])
    return 0 if process == os.getpid() else process

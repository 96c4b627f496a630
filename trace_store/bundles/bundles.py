"""`Bundles`, the subject `repo.bundles`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias, TypeVar

from trace_store.base import check
from trace_store.bundles.create import (
    BundleReport,
    Progress,
    contents,
    report,
    select_refs,
    write_bundle,
)
from trace_store.bundles.format import BundleHeader, open_bundle
from trace_store.bundles.ingest import (
    ImportedBundle,
    attach_head,
    is_present,
    move_refs,
    prefix_name,
)
from trace_store.bundles.verify import check_bundle, check_pack, check_prerequisites
from trace_store.disk.files import Disk
from trace_store.disk.new_file import NewFile
from trace_store.maintenance.seal import seal
from trace_store.maintenance.second_copies import keep_copies
from trace_store.odb.ingest import PackReceiver
from trace_store.store.revision import name_of
from trace_store.writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store.revision import Revision

Path: TypeAlias = str | os.PathLike[str]
Function = TypeVar("Function", bound=Callable[..., object])


class Bundles:
    """Branches, tags and sessions in one file. A file is a path, or a function that takes or gives bytes."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def create(
        self,
        file: Path | Callable[[bytes], object],
        *names: Revision,
        everything: bool = False,
        trash: bool = False,
        since: Iterable[Revision] = (),
        sessions: bool = False,
        overwrite: bool = False,
        level: int = 9,
        scan: bool = False,
        progress: Progress | None = None,
    ) -> BundleReport:
        """Write a bundle, and return what is in it. The repository is sealed first.

        Args:
            file: where to.
            names: branches, tags, folders of refs, sessions by the beginnings of their ids, ranges `A..B` (B without
                the history of A), or `^A` (without A); without any, HEAD's branch.
            everything: bundle all refs but those in the trash.
            trash: bundle those, too.
            since: commits whose history the receiver has.
            sessions: bundle the sessions that the trajectories mention, too: the branches that have them.
            overwrite: replace an existing file.
            level: how hard to compress, from 1 to 19.
            scan: search what is bundled for secrets, and count them in the report.
            progress: called with the progress.

        Raises:
            RefNotFoundError: a name matches nothing.
            AmbiguousRevisionError: the beginning of a session's id matches several.
            InvalidInputError: a name is an object, but no ref.
            StateError: nothing is named, HEAD is detached, or its branch has no commit.
            ObjectNotFoundError: an object that a ref leads to is missing.
            AlreadyExistsError: the file exists.
            StorageError: the disk failed; no file is left.
        """
        check.flag(
            everything=everything, trash=trash, sessions=sessions, overwrite=overwrite, scan=scan
        )
        check.items(since=since)
        check.integer(1, 19, level=level)
        check.function(progress=progress)
        store, target = self._writer.store, _named(file)
        secrets: set[tuple[str, str]] = set()
        find = self._writer.guard.scanner.find_bytes if scan else None

        def look(data: bytes) -> None:
            if find is not None:
                secrets.update((each.rule, each.id) for each in find(data))

        seal(store)
        selection = select_refs(
            store,
            [name_of(each, "names") for each in names],
            everything=everything,
            trash=trash,
            since=[name_of(each, "since") for each in since],
            sessions=sessions,
        )
        header, oids = contents(store, selection)
        if not isinstance(target, str):
            made = write_bundle(store, target, header, oids, level, progress, look)
        else:
            disk = store.disk if store.local else Disk()
            with NewFile(disk, target, overwrite=overwrite) as new:
                made = write_bundle(store, new.write, header, oids, level, progress, look)
        return replace(made, secrets=len(secrets)) if scan else made

    def import_(
        self,
        file: Path | Callable[[int], bytes],
        *,
        prefix: str = "",
        progress: Progress | None = None,
    ) -> ImportedBundle:
        """Import a bundle, and return what became of each ref; with `prefix`, `main` becomes `PREFIX/main`.

        Refs are created, branches and trajectories fast-forwarded; one that has other commits here gets a second tip.

        Raises:
            UnreadableInputError: the file does not exist or cannot be read.
            CorruptBundleError: it is not a bundle, or is damaged; nothing was imported.
            UnsupportedFormatError: a newer version wrote it.
            ObjectNotFoundError: the bundle builds on commits that are not here; `missing` has their ids.
            InvalidRefNameError: a name with the prefix is not valid.
            RefChangedError: other processes keep moving the refs.
            StorageError: the disk failed.
        """
        check.text(prefix=prefix)
        check.function(progress=progress)
        writer, store = self._writer, self._writer.store
        with open_bundle(_named(file)) as reader:
            header = reader.header
            names = {ref.name: prefix_name(ref.name, prefix) for ref in header.refs}
            check_prerequisites(store, header)
            receiver = PackReceiver(store.disk, store.layout, store.objects, leave_out=True)
            store.objects.required.update(header.prerequisites)
            try:
                check_bundle(reader, receiver.add, store=store, progress=progress)
                if header.tombstones:
                    # A foreign tombstone never removes a local object.
                    lacking = [f for f in header.tombstones if not is_present(store, f[0])]
                    store.objects.tombstones.add_files(lacking)
                packs = receiver.publish()
                keep_copies(store, list(packs))
            finally:
                receiver.discard()
            bundle = report(reader)
        is_new = store.refs.head().unborn
        outcomes = move_refs(writer, header.refs, names)
        head = attach_head(writer, header, outcomes) if is_new and not prefix else ""
        return ImportedBundle(bundle, tuple(outcomes), tuple(packs), head)

    def verify(
        self,
        file: Path | Callable[[int], bytes],
        *,
        alone: bool = False,
        progress: Progress | None = None,
    ) -> BundleReport:
        """Check every object of a bundle, and that the commits it builds on are here; raises as `import_`.

        With `alone` only the bundle is checked; any repository can do that, such as `Repo.memory()`.
        """
        check.flag(alone=alone)
        check.function(progress=progress)
        store = None if alone else self._writer.store
        with open_bundle(_named(file)) as reader:
            if store is not None:
                check_prerequisites(store, reader.header)
            check_bundle(reader, check_pack, store=store, progress=progress)
            return report(reader)

    def list(self, file: Path | Callable[[int], bytes]) -> BundleHeader:
        """Return the refs of a bundle; only its beginning is read.

        Raises:
            UnreadableInputError: the file does not exist or cannot be read.
            CorruptBundleError: it is not a bundle, or its beginning is damaged.
            UnsupportedFormatError: a newer version wrote it.
        """
        with open_bundle(_named(file)) as reader:
            return reader.header


def _named(file: Path | Function) -> str | Function:
    """Return the path as text, or the function.

    Raises:
        InvalidInputError: it is neither.
    """
    if callable(file):
        return file
    check.path(file=file)
    return os.fspath(file)

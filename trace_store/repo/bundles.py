"""Bundles: branches, tags and sessions in one file."""

from __future__ import annotations

import os
from dataclasses import replace

from trace_store import check
from trace_store.bundles.create import create_bundle
from trace_store.bundles.ingest import import_bundle
from trace_store.bundles.verify import list_bundle, verify_bundle
from trace_store.repo.handle import Handle, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias, TypeVar

    from trace_store.bundles.create import BundleReport, Progress
    from trace_store.bundles.format import BundleHeader
    from trace_store.bundles.ingest import ImportedBundle
    from trace_store.repo.handle import Revision

    Path: TypeAlias = str | os.PathLike[str]
    Function = TypeVar("Function", bound=Callable[..., object])


class Bundles:
    """Bundles of a repository, as `repo.bundles`. A file is a path, or a function that takes or gives bytes."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def create(
        self,
        file: Path | Callable[[bytes], object],
        *names: Revision,
        everything: bool = False,
        trash: bool = False,
        since: Iterable[Revision] = (),
        overwrite: bool = False,
        level: int = 9,
        scan: bool = False,
        progress: Progress | None = None,
    ) -> BundleReport:
        """Write a bundle, and return what is in it.

        Args:
            file: where to.
            names: branches, tags, sessions by their ids, or ranges A..B; without any, HEAD's branch.
            everything: bundle all refs but those in the trash.
            trash: bundle those, too.
            since: commits whose history the receiver has.
            overwrite: replace an existing file.
            level: how hard to compress, from 1 to 19.
            scan: search what is bundled for secrets, and count them in the report.
            progress: called with the progress.

        Raises:
            RevisionNotFoundError: there is no such ref.
            ObjectNotFoundError: an object that a ref leads to is missing.
            AlreadyExistsError: the file exists.
            StorageError: the disk failed; no file is left.
        """
        check.flag(everything=everything, trash=trash, overwrite=overwrite, scan=scan)
        check.items(since=since)
        check.integer(1, 19, level=level)
        check.function(progress=progress)
        secrets: set[tuple[str, str]] = set()
        find = self._handle.guard.scanner.find_bytes if scan else None
        report = create_bundle(
            self._handle.store,
            _named(file),
            [name_of(each, "names") for each in names],
            everything=everything,
            trash=trash,
            since=[name_of(each, "since") for each in since],
            overwrite=overwrite,
            level=level,
            progress=progress,
            look=None
            if find is None
            else lambda data: secrets.update((each.rule, each.id) for each in find(data)),
        )
        return replace(report, secrets=len(secrets)) if scan else report

    def import_(
        self,
        file: Path | Callable[[int], bytes],
        *,
        prefix: str = "",
        progress: Progress | None = None,
    ) -> ImportedBundle:
        """Import a bundle, and return what became of each ref; with `prefix`, `main` becomes `PREFIX/main`.

        Refs are created and branches fast-forwarded; a branch that has other commits here gets a second tip.

        Raises:
            FormatError: the bundle is damaged; nothing was imported.
            ObjectNotFoundError: the bundle builds on commits that are not here.
        """
        check.text(prefix=prefix)
        check.function(progress=progress)
        return import_bundle(
            self._handle.store,
            _named(file),
            prefix=prefix,
            author=self._handle.author,
            progress=progress,
        )

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
        return verify_bundle(_named(file), None if alone else self._handle.store, progress=progress)

    def list(self, file: Path | Callable[[int], bytes]) -> BundleHeader:
        """Return the refs of a bundle; only its beginning is read.

        Raises:
            FormatError: it is not a bundle.
        """
        return list_bundle(_named(file))


def _named(file: Path | Function) -> str | Function:
    """Return the path as text, or the function.

    Raises:
        InvalidInputError: it is neither.
    """
    if callable(file):
        return file
    check.path(file=file)
    return os.fspath(file)

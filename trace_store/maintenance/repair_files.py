"""Repair of files that are neither objects nor refs.

Rule: pure. It explains what was found to be wrong anyhow, and finds nothing wrong itself: a message may well say
`<<<<<<<`.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.context.compiler import ContextCompiler
from trace_store.files import read_file, replace_file
from trace_store.journal.file import open_journal
from trace_store.journal.snapshot import journal_numbers
from trace_store.layout import ATTRIBUTES, IGNORED, INDEX_SUFFIX
from trace_store.maintenance.fsck_refs import check_folds, check_table
from trace_store.maintenance.lost_found import files_in
from trace_store.maintenance.object_copies import objects_in
from trace_store.odb.packs import pack_names
from trace_store.oid import HEX_CHARACTERS
from trace_store.refs.database import RefDatabase
from trace_store.refs.names import BRANCHES
from trace_store.refs.reflog import encode_entry, examine_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from trace_store.odb.database import ObjectDatabase
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

    class Work(Protocol):
        """The repair that this is a part of."""

        store: Store
        database: ObjectDatabase
        dry_run: bool

        def has(self, oid: ObjectId) -> bool: ...
        def write(self, objects: dict[ObjectId, bytes]) -> None: ...
        def keep(self, path: str, *, remove: bool = True) -> None: ...
        def did(self, kind: str, what: str, detail: str) -> None: ...


def mend_files(work: Work) -> None:
    """Mend files at the root of a repository, and set stray ones aside, with the objects in them recovered."""
    store, layout = work.store, work.store.layout
    for path, content in ((layout.ignore_file, IGNORED), (layout.attributes_file, ATTRIBUTES)):
        data = read_file(store.disk, path)
        if data is None or data.replace(b"\r\n", b"\n") != content.encode():
            _replace(work, path, content.encode())
            work.did("file", os.path.basename(path), "it is again what `init` writes")
    for path in _strays(store):
        data = read_file(store.disk, path)
        found = {} if data is None else dict(objects_in(data))
        fresh = {oid: content for oid, content in found.items() if not work.has(oid)}
        work.write(fresh)
        work.keep(path)
        name = os.path.relpath(path, layout.root).replace(os.sep, "/")
        work.did(
            "file", name, f"it belongs to nothing, and was set aside with {len(fresh)} objects"
        )
    with store.mutex:
        store.journal.refresh()
        published = store.journal.published
        published.tips.all()
        unreadable = published.damaged or published.tips.lacking
    if unreadable:
        work.keep(layout.published_file)
        work.did("derived", "local/published", "it could not be read, and is made anew")


def mend_derived(work: Work) -> None:
    """Make reflogs, compile indexes, the commit table and caches readable again, after all else."""
    store, layout = work.store, work.store.layout
    for path in files_in(store, layout.logs_dir):
        entries, wrong = examine_log(store.disk, path)
        if wrong:
            _replace(work, path, b"".join(map(encode_entry, entries)))
            name = os.path.relpath(path, layout.root).replace(os.sep, "/")
            work.did("derived", name, f"{wrong} lines that could not be read were left out")
    for number in sorted(journal_numbers(store.disk, layout)):
        file = open_journal(store.disk, layout.journal_file(number), number)
        if file is None:
            continue
        misplaced = file.is_misplaced(store.disk)
        store.disk.close(file.fd)
        if misplaced and not store.unsealed().transactions:
            work.keep(layout.journal_file(number))
            work.did(
                "journal", f"journal/{number}", "it was another one's, and was set aside, sealed"
            )
    for finding in check_table(store):
        work.keep(layout.commit_table_file)
        work.did("derived", finding.what, f"{finding.detail}; it is made anew")
    for finding in check_folds(store):
        work.keep(os.path.join(layout.root, finding.what))
        work.did("derived", finding.what, "it differed from the history, and is made anew")
    _mend_indexes(work)
    if isinstance(store.refs, RefDatabase) and not work.dry_run:
        store.refs.overview.forget()


def _mend_indexes(work: Work) -> None:
    contexts = ContextCompiler(work.store)
    for name, _ in work.store.refs.iterate(BRANCHES):
        try:
            if contexts.index_view(name) is None:
                continue
            if contexts.verify(name, count_tokens=False).matches:
                continue
            if not work.dry_run:
                contexts.rebuild(name)
        except (errors.FormatError, errors.NotFoundError):
            continue  # what it is made from is not whole
        work.did("derived", name, "its compile index was made anew")


def _strays(store: Store) -> Iterator[str]:
    """Yield files below `objects/` that are no objects, and in `objects/pack/` no packs, nor indexes of one."""
    layout = store.layout
    names = set(pack_names(store.disk, layout))
    for path in files_in(store, layout.objects_dir):
        folder, file = os.path.split(path)
        if folder == layout.pack_dir:
            stem, _, suffix = file.rpartition(".")
            if stem not in names or (f".{suffix}" not in (INDEX_SUFFIX, ".pack")):
                yield path
            continue
        within = os.path.relpath(folder, layout.objects_dir)
        if not (len(within) == 2 and len(file) == HEX_CHARACTERS - 2 and _is_hex(within + file)):
            yield path


def _replace(work: Work, path: str, data: bytes) -> None:
    """Give a file new content, with the old one set aside."""
    if not work.dry_run:
        work.keep(path, remove=False)
        replace_file(work.store.disk, path, data, scratch=work.store.layout.tmp_dir)


def _is_hex(text: str) -> bool:
    return all(character in "0123456789abcdef" for character in text)


_MARKERS = (b"<<<<<<< ", b">>>>>>> ")
_POINTER = b"version https://git-lfs.github.com/spec/"


def explained(data: bytes) -> str:
    """Return what another program did to a file, in half a sentence; empty when nothing tells."""
    lines = data.split(b"\n") if len(data) < 1 << 20 else data[: 1 << 20].split(b"\n")
    if all(any(line.startswith(mark) for line in lines) for mark in _MARKERS):
        return "git left the marks of a merge conflict in it: take one side of it with `git checkout --ours`"
    if data.startswith(_POINTER):
        return "it is a pointer of Git LFS, not the file: `git lfs pull` fetches it"
    if b"\r\n" in data and data.count(b"\r\n") == data.count(b"\n"):
        return (
            "git seems to have converted its line ends: core.autocrlf, or an attribute of the files"
        )
    return ""


def with_explanation(detail: str, data: bytes | None) -> str:
    """Return what is wrong with a file, with what explains it where something does."""
    why = explained(data) if data else ""
    return f"{detail}; {why}" if why else detail

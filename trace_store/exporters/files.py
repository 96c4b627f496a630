"""Saving of exported files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from trace_store import exporters
from trace_store.errors import (
    AmbiguousRevisionError,
    CorruptObjectError,
    InvalidInputError,
    ObjectNotFoundError,
    RevisionNotFoundError,
    TraceError,
)
from trace_store.exporters.contract import AGENTS, Exported
from trace_store.exporters.session import find_branch, session_name
from trace_store.files import Disk, read_file
from trace_store.frozen import value
from trace_store.importers.convert import session_of
from trace_store.importers.registry import format_named
from trace_store.importers.sniff import HEAD_BYTES
from trace_store.new_file import NewFile
from trace_store.objects.commit import parents_of
from trace_store.oid import Digester, ObjectId
from trace_store.ref_names import FILES
from trace_store.secrets.placeholders import PlaceholderCount
from trace_store.store.handle import Store
from trace_store.transcripts.segments import file_size, restore, segments_of

HELD_BYTES = 64 << 20
"""Larger files are verified first and then read a second time, instead of being held in memory."""


@value
class SourceFile:
    """A stored source file.

    Attributes:
        format: the format it was imported as.
        session: session id as in the branch name.
        agent: id of the subagent whose file it is; "" for the session's.
        ref: the ref that keeps it.
        tip: its last segment.
        size: size in bytes.
    """

    format: str
    session: str
    agent: str
    ref: str
    tip: ObjectId
    size: int

    @property
    def id(self) -> str:
        """Id that distinguishes the files of a session."""
        return self.ref.rpartition("/")[2]


def source_files(
    store: Store, prefix: str = "", *, lost: Callable[[str, TraceError], object] | None = None
) -> list[SourceFile]:
    """Return the stored files of all sessions, a format or a session, in ref order.

    Args:
        store: the repository.
        prefix: "", `<format>`, or `<format>/<session>`.
        lost: receives ref and error of a damaged file; without it, the error is raised.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a file is damaged.
    """
    files = []
    for ref, tip in _file_refs(store, f"{FILES}{prefix}/" if prefix else FILES):
        try:
            files.append(_read_file(store, ref, tip))
        except (ObjectNotFoundError, CorruptObjectError) as error:
            if lost is None:
                raise
            lost(ref, error)
    return files


def _file_refs(store: Store, place: str = FILES) -> Iterator[tuple[str, ObjectId]]:
    """Yield refs with the name of a source file; others may exist in the namespace."""
    for ref, tip in store.refs.iterate(place):
        parts = ref.removeprefix(FILES).split("/")
        if len(parts) == 3 or (len(parts) == 5 and parts[2] == AGENTS):
            yield ref, tip


def find_file(store: Store, text: str, *, file: str = "") -> SourceFile:
    """Return the source file of a session.

    Args:
        store: the repository.
        text: a branch of the session, `<format>/<id>`, or an id prefix.
        file: prefix of the file's id, if the session has several.

    Raises:
        RevisionNotFoundError: no such session, or no file of it is stored.
        AmbiguousRevisionError: several match; `.candidates` holds their ids.
        ObjectNotFoundError, CorruptObjectError: the file is damaged.
    """
    branch = find_branch(store, text)
    named = session_name(branch)
    renamed = session_of(store, branch) if branch and named is None else None
    if named is not None or renamed is not None:
        format_, session, thread = named or renamed or ("", "", "")
        agent = thread.removeprefix(f"{AGENTS}/")
        if named is not None and not thread.startswith(f"{AGENTS}/"):
            agent = ""
        files = source_files(store, f"{format_}/{session}")
        own = [each for each in files if each.agent == agent] if agent else []
        files = own or [each for each in files if not each.agent]
    else:
        files = _files_of_session(store, text)
    files = [each for each in files if each.id.startswith(file)]
    if not files:
        raise RevisionNotFoundError(f"no source file stored for {text}", revision=text)
    if len(files) > 1 and not file:
        files = _best_for_branch(store, find_branch(store, text), files) or files
    if len(files) > 1:
        raise AmbiguousRevisionError(
            f"{len(files)} source files stored for {text}",
            revision=text,
            candidates=[f.id for f in files],
        )
    return files[0]


def restore_file(store: Store, file: SourceFile) -> Exported:
    """Return a stored file; it is verified before the first byte is returned.

    Raises:
        ObjectNotFoundError: a stored object is missing.
        CorruptObjectError: the restored bytes do not match the hash.
    """
    read = store.objects.read
    hasher, placeholders = Digester(), PlaceholderCount()
    head, held = b"", []
    for piece in restore(file.tip, read):
        head = head or piece[:HEAD_BYTES]
        hasher.update(piece)
        placeholders.add(piece)
        if file.size <= HELD_BYTES:
            held.append(piece)
    return Exported(
        b"".join(held) if file.size <= HELD_BYTES else restore(file.tip, read),
        (),
        file_name(file, head),
        text=b"\0" not in head,
        blake3=hasher.digest().hex(),
        placeholders=placeholders.number,
    )


def file_name(file: SourceFile, head: bytes) -> str:
    """Return the suggested name of a file, given its first bytes."""
    try:
        known = format_named(file.format)
    except InvalidInputError:
        known = None  # from a package that is missing or broken
    endings = list(known.SUFFIXES) if known is not None else [".jsonl"]
    if known is not None and known.is_document(head):
        # A document that is not JSON, such as a database dump, has its own suffix.
        other = (".jsonl",) if head.lstrip()[:1] in (b"{", b"[") else (".json", ".jsonl")
        endings = [each for each in endings if each not in other] or endings
    elif ".jsonl" in endings:
        endings = [".jsonl"]
    name = f"agent-{file.agent}" if file.agent else file.session
    return name + endings[0]


def free_name(file: SourceFile, name: str, taken: set[str]) -> str:
    """Return a path for a file in a folder of all, and add it to those that are taken; case does not count."""
    stem, ending = os.path.splitext(name)
    candidates = [
        os.path.join(file.format, name),
        os.path.join(file.format, f"{stem}-{file.id}{ending}"),
        os.path.join(file.format, f"{file.session}-{stem}-{file.id}{ending}"),
    ]
    free = next(each for each in candidates if each.casefold() not in taken)
    taken.add(free.casefold())
    return free


def _files_of_session(store: Store, text: str) -> list[SourceFile]:
    """Return the files of the session with this id or id prefix."""
    names = {"/".join(each.split("/")[:2]) for each in _names(store)}
    text = text.removeprefix("sessions/")
    chosen = [name for name in names if name == text or name.partition("/")[2] == text]
    chosen = chosen or [
        n for n in names if n.startswith(text) or n.partition("/")[2].startswith(text)
    ]
    if len(chosen) > 1:
        raise AmbiguousRevisionError(
            f"several sessions start with {text[:80]}", revision=text, candidates=sorted(chosen)
        )
    files = source_files(store, chosen[0]) if chosen and text else []
    return [each for each in files if not each.agent]


def _names(store: Store) -> Iterator[str]:
    return (ref.removeprefix(FILES) for ref, _ in _file_refs(store))


def _best_for_branch(store: Store, ref: str, files: Sequence[SourceFile]) -> list[SourceFile]:
    """Return the files with the most commits on a branch."""
    on_branch: set[bytes] = set()
    oid = store.refs.read(ref) if ref else None
    while oid is not None:
        on_branch.add(oid)
        parents = parents_of(store.objects.read(oid))
        oid = parents[0] if parents else None
    scores = []
    for each in files:
        segments = segments_of(each.tip, store.objects.read)
        named = {commit for segment in segments for commit in segment.commits}
        scores.append(len(named & on_branch))
    return [each for each, score in zip(files, scores, strict=True) if score == max(scores)]


def _read_file(store: Store, ref: str, tip: ObjectId) -> SourceFile:
    size = file_size(tip, store.objects.read)
    format_, session, *rest = ref.removeprefix(FILES).split("/")
    agent = rest[1] if len(rest) > 2 else ""
    return SourceFile(format_, session, agent, ref, tip, size)


_MARK_BYTES = 8_000
"""A page that Trace wrote has its mark in the first bytes."""
_LARGEST_PAGE_BYTES = 1 << 30


@value
class SavedFile:
    """An exported file on the disk.

    Attributes:
        path: absolute path.
        size: size in bytes.
    """

    path: str
    size: int


@value
class SavedOriginal:
    """The imported file of a session, restored on the disk.

    Attributes:
        source: the file that was kept.
        path: absolute path.
        blake3: hash of its bytes, in hex.
        placeholders: number of placeholders of secrets in it, whose values are not stored.
    """

    source: SourceFile
    path: str
    blake3: str
    placeholders: int


@value
class SavedPages:
    """Pages of sessions, and their index, in one folder.

    Attributes:
        index: absolute path of the index.
        pages: id of each session, and the name of its file.
    """

    index: str
    pages: tuple[tuple[str, str], ...]


def save_page(disk: Disk, path: str, exported: Exported, *, overwrite: bool = False) -> int:
    """Write a page and return its size in bytes; without `overwrite` replace only pages that Trace wrote.

    Raises as `save_file`.
    """
    if not overwrite and disk.exists(path):
        data = read_file(disk, path, limit=_LARGEST_PAGE_BYTES) or b""
        overwrite = exporters.html.page.MADE_BY in data[:_MARK_BYTES]
    return save_file(disk, path, exported, overwrite=overwrite)


def save(exported: Exported, path: str | os.PathLike[str], *, overwrite: bool = False) -> SavedFile:
    """Write an exported file to a path, or under its suggested name to a folder; raises as `save_file`."""
    target = os.path.abspath(path)
    if os.path.isdir(target):
        target = os.path.join(target, exported.file_name)
    return SavedFile(target, save_file(Disk(), target, exported, overwrite=overwrite))


def save_file(disk: Disk, path: str, exported: Exported, *, overwrite: bool = False) -> int:
    """Write an exported file and return its size in bytes.

    Args:
        disk: the file access to use.
        path: the target; its folder must exist.
        exported: the file to write.
        overwrite: replace an existing file.

    Raises:
        AlreadyExistsError: the target exists and `overwrite` is false.
        StorageError: the disk refuses, the folder does not exist, or the target is not a regular file.
    """
    with NewFile(disk, path, overwrite=overwrite) as file:
        for chunk in exported.chunks():
            file.write(chunk)
    return file.size

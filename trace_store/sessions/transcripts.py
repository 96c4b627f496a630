"""`Transcripts`, the subject `repo.transcripts`: the files of agent programs that sessions are imported from."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, TypeAlias

from trace_store.base import check
from trace_store.base.frozen import replace, value
from trace_store.base.oid import Digester, ObjectId
from trace_store.contracts.ref_names import FILES
from trace_store.disk.files import Disk
from trace_store.errors import (
    AmbiguousRevisionError,
    CorruptObjectError,
    InvalidInputError,
    ObjectNotFoundError,
    RevisionNotFoundError,
    TraceError,
)
from trace_store.exporters.contract import AGENTS, Exported
from trace_store.exporters.files import save_file
from trace_store.exporters.session import find_branch, session_name
from trace_store.importers.convert import session_of
from trace_store.importers.discovery import (
    every_history,
    folders_within,
    project_folder,
    project_histories,
    working_folder,
)
from trace_store.importers.formats.dagent import NAME
from trace_store.importers.import_paths import import_paths
from trace_store.importers.registry import format_named
from trace_store.importers.report import ImportReport
from trace_store.importers.sniff import HEAD_BYTES
from trace_store.objects.commit import parents_of
from trace_store.secrets.placeholders import PlaceholderCount
from trace_store.sessions import dagent
from trace_store.store.scratch import scratch_copy
from trace_store.store.store import Store
from trace_store.transcripts.segments import file_size, restore, segments_of
from trace_store.writer import Writer

Progress: TypeAlias = Callable[[str, int, int], None]
Path: TypeAlias = str | os.PathLike[str]

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

    JSON = "agent? -tip"

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


@value
class SavedOriginal:
    """The imported file of a session, restored on the disk.

    Attributes:
        source: the file that was kept.
        path: absolute path.
        blake3: hash of its bytes, in hex.
        placeholders: number of placeholders of secrets in it, whose values are not stored.
    """

    JSON = "*source file=path"

    source: SourceFile
    path: str
    blake3: str
    placeholders: int


class Transcripts:
    """The transcripts of agent programs: importing them, and the kept files of imports."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def import_(
        self,
        *paths: Path,
        format: str = "",
        onto: str = "",
        source: bool = True,
        discovered: Sequence[Path] = (),
        stdin: BinaryIO | None = None,
        secrets: str = "",
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import transcripts; each session becomes a branch `sessions/FORMAT/ID`. Importing again adds what is new.

        HEAD moves to the newest session if its branch has no commit. A subagent's branch starts at its session's
        commit, if the session is imported before or together with it. A file that cannot be imported does not stop the
        others: the report names it with its error.

        Args:
            paths: files, or folders with files; "-" is `stdin`.
            format: the format of all files; "" detects it for each.
            onto: append to this branch, and create none.
            source: keep what messages do not carry of each record, so that the file can be exported byte for byte.
            discovered: files to import, too, such as those of `discover`; one that cannot be imported is skipped.
            stdin: what "-" reads.
            secrets: "redact", "block", "warn" or "off"; "" is how the repository was opened.
            dry_run: import into a copy of the repository in memory, and return what would be imported.
            progress: called with the path, the number of bytes done, and of all.

        Raises:
            UnreadableInputError: the only named file does not exist, is not a transcript, or is damaged.
            InvalidInputError: there is no such format, or no `stdin`.
            InvalidRefNameError: `onto` is not a valid branch name.
            SecretFoundError: the only named file holds a secret, and the repository refuses secrets.
            RefChangedError: other processes keep moving a branch.
            StorageError: the disk failed.
        """
        check.text(format=format, onto=onto, secrets=secrets)
        check.flag(source=source, dry_run=dry_run)
        check.items(discovered=discovered)
        check.function(progress=progress)
        for path in paths:
            check.path(paths=path)
        for path in discovered:
            check.path(discovered=path)

        def run(writer: Writer) -> ImportReport:
            report = import_paths(
                writer,
                [os.fspath(path) for path in paths],
                format=format or None,
                onto=onto or None,
                source=source,
                progress=progress,
                stdin=stdin,
                discovered=[os.fspath(path) for path in discovered],
                secrets=secrets,
            )
            read = [] if onto or format not in ("", NAME) else [each.path for each in report.files]
            more = dagent.migrate(writer, dagent.session_files(Disk(), read))
            if not more:
                return report
            return ImportReport((*dagent.without_companions(report.files), *more))

        if not dry_run:
            return run(self._writer)
        with scratch_copy(self._writer.store) as copy:
            return replace(run(self._writer.elsewhere(copy)), dry_run=True)

    def discover(self, folder: Path = "", format: str = "") -> list[str]:
        """Return the transcripts of a project, from where each agent program keeps its own.

        These are the sessions that worked in `folder` or in a folder above it, up to the repository's; for a repository
        in memory, up to git's.

        Args:
            folder: the folder; "" is the repository's.
            format: only transcripts of this format.

        Raises:
            InvalidInputError: there is no such format, or a repository in memory has no folder.
            StorageError: the disk failed.
        """
        check.text(format=format)
        check.path(folder=folder)
        store = self._writer.store
        if not folder:
            store.check_local()
        root = (
            os.path.dirname(store.layout.root) if store.local else project_folder(os.fspath(folder))
        )
        found: dict[str, None] = {}
        for each in folders_within(root, os.fspath(folder) or root):
            paths = project_histories(self._writer.environment, each, format=format)
            found.update(dict.fromkeys(paths))
        return list(found)

    def projects(self) -> dict[str, int]:
        """Return the folders that agent programs worked in, with the number of sessions of each, most first."""
        disk, environment = Disk(), self._writer.environment
        # Claude Code has a folder per project; others record the working folder in each file.
        paths = dict.fromkeys(project_histories(environment, os.sep))
        paths |= dict.fromkeys(every_history(environment, disk))
        folders = Counter(folder for path in paths if (folder := working_folder(disk, path)))
        return dict(folders.most_common())

    def originals(
        self, *, lost: Callable[[str, TraceError], object] | None = None
    ) -> list[SourceFile]:
        """Return the imported files that were kept: those that can be exported byte for byte.

        Args:
            lost: called with the ref and the error of each damaged file, which is left out; None raises the error.

        Raises:
            ObjectNotFoundError, CorruptObjectError: a file is damaged, and `lost` is not given.
        """
        check.function(lost=lost)
        return source_files(self._writer.store, lost=lost)

    def original(self, session: str, *, file: str = "") -> SourceFile:
        """Return the file that a session was imported from, without its content.

        Args:
            session: a branch of the session, `FORMAT/ID`, or the beginning of its id.
            file: the id of one of several files, or its beginning.

        Raises:
            RevisionNotFoundError: no file of the session was kept.
            AmbiguousRevisionError: several were; `candidates` has their ids.
            ObjectNotFoundError, CorruptObjectError: the file is damaged.
        """
        check.text(session=session, file=file)
        store = self._writer.store
        branch = find_branch(store, session)
        named = session_name(branch)
        renamed = session_of(store, branch) if branch and named is None else None
        if named is not None or renamed is not None:
            format_, id_, thread = named or renamed or ("", "", "")
            agent = thread.removeprefix(f"{AGENTS}/")
            if named is not None and not thread.startswith(f"{AGENTS}/"):
                agent = ""
            files = source_files(store, f"{format_}/{id_}")
            own = [each for each in files if each.agent == agent] if agent else []
            files = own or [each for each in files if not each.agent]
        else:
            files = _files_of_session(store, session)
        files = [each for each in files if each.id.startswith(file)]
        if not files:
            raise RevisionNotFoundError(f"no source file stored for {session}", revision=session)
        if len(files) > 1 and not file:
            files = _best_for_branch(store, branch, files) or files
        if len(files) > 1:
            raise AmbiguousRevisionError(
                f"{len(files)} source files stored for {session}",
                revision=session,
                candidates=[f.id for f in files],
            )
        return files[0]

    def export_original(
        self,
        session: str | SourceFile,
        *,
        file: str = "",
        path: Path = "",
        overwrite: bool = False,
    ) -> Exported:
        """Return the file that a session was imported from, byte for byte, and checked by hash.

        Args:
            session: the session; or what `original` or `originals` returned.
            file: as in `original`.
            path: a file to write to, or a folder for a file of the suggested name.
            overwrite: replace an existing file.

        Raises:
            ObjectNotFoundError, CorruptObjectError: the file is damaged.
            AlreadyExistsError: the file exists.
            As `original`.
        """
        check.flag(overwrite=overwrite)
        check.path(path=path)
        kept = self.original(session, file=file) if isinstance(session, str) else session
        check.instance(SourceFile, session=kept)
        read = self._writer.store.objects.read
        hasher, placeholders = Digester(), PlaceholderCount()
        head, held = b"", []
        for piece in restore(kept.tip, read):
            head = head or piece[:HEAD_BYTES]
            hasher.update(piece)
            placeholders.add(piece)
            if kept.size <= HELD_BYTES:
                held.append(piece)
        exported = Exported(
            b"".join(held) if kept.size <= HELD_BYTES else restore(kept.tip, read),
            (),
            _file_name(kept, head),
            text=b"\0" not in head,
            blake3=hasher.digest().hex(),
            placeholders=placeholders.number,
        )
        if path:
            exported.save(path, overwrite=overwrite)
        return exported

    def export_originals(
        self,
        folder: Path,
        *,
        overwrite: bool = False,
        lost: Callable[[str, TraceError], object] | None = None,
    ) -> list[SavedOriginal]:
        """Write all files of `originals` below a folder, those of each format in one of its own.

        Args:
            folder: the folder; it is created.
            overwrite: replace existing files.
            lost: called with the ref and the error of each damaged file; the others are written.

        Raises:
            ObjectNotFoundError, CorruptObjectError: a file is damaged, and `lost` is not given.
            AlreadyExistsError: a file exists; those before it are written.
        """
        check.flag(overwrite=overwrite)
        check.path(folder=folder)
        disk, taken, saved = Disk(), set[str](), []
        for kept in self.originals(lost=lost):
            try:
                exported = self.export_original(kept)
            except (ObjectNotFoundError, CorruptObjectError) as error:
                if lost is None:
                    raise
                lost(kept.ref, error)
                continue
            name = _free_name(kept, exported.file_name, taken)
            path = os.path.abspath(os.path.join(folder, name))
            disk.make_directory(os.path.dirname(path))
            save_file(disk, path, exported, overwrite=overwrite)
            saved.append(SavedOriginal(kept, path, exported.blake3, exported.placeholders))
        return saved


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


def _file_name(file: SourceFile, head: bytes) -> str:
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


def _free_name(file: SourceFile, name: str, taken: set[str]) -> str:
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

"""Selection of the files to import, and detection of their formats.

Invariant: reads only the head of each file, and writes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import BinaryIO

from trace_store.base.environment import Environment
from trace_store.base.frozen import replace, value
from trace_store.disk.files import Disk
from trace_store.disk.git import find_git
from trace_store.disk.layout import DIRECTORY_NAME
from trace_store.errors import InvalidInputError, TraceError, UnreadableInputError
from trace_store.importers.contract import Format, MultiTranscriptFormat, PlannedCommit
from trace_store.importers.formats.claude_code import AGENT_FACTS_SUFFIX
from trace_store.importers.formats.claude_code import every_history as every_history
from trace_store.importers.input_files import (
    INNER,
    STDIN,
    Input,
    InputBytes,
    InputFile,
    files_in,
    is_folder,
    is_of_agent,
    plain_content,
    read_lines,
)
from trace_store.importers.registry import (
    format_failure,
    format_named,
    format_of,
    formats,
    has_marks,
    is_built_in,
    suffixes,
)
from trace_store.importers.sniff import HEAD_BYTES, describe, is_trajectory, read_head
from trace_store.objects.parts import Opaque

MAXIMUM_STDIN_BYTES = 1 << 30

EMPTY = "empty"
UNKNOWN_FORMAT = "unknown-format"
TRAJECTORY = "trajectory"
"""A trajectory of the program trail, which is imported as a trajectory."""
UNREADABLE = "unreadable"
OTHER_FORMAT = "other-format"
_WORKED_IN = re.compile(rb'"(?:cwd|directory)"\s*:\s*"([^"\\]+)"')


@value
class ImportItem:
    """A transcript to import, with its format.

    Attributes:
        path: path as given or discovered; for a transcript inside a file as in `input_files.Inner`.
        reader: its format, or None.
        reason: why it cannot be imported, or "".
        looks: description of a file of unknown format.
        opened: opens a transcript that is not a file of its own.
        named: True if the user named it, rather than its folder.
        error: error of a named file that cannot be imported, or None.
    """

    path: str
    reader: Format | None
    reason: str = ""
    looks: str = ""
    opened: Callable[[], Input] | None = None
    named: bool = False
    error: UnreadableInputError | None = None


def select_items(
    disk: Disk,
    paths: Sequence[str],
    named: Format | None,
    stdin: BinaryIO | None,
    discovered: Sequence[str] = (),
) -> list[ImportItem]:
    """Return the transcripts to import with their formats, subagents last.

    Args:
        disk: the file access to use.
        paths: files and folders named by the user.
        named: format of all of them; None detects each.
        stdin: input for the path `-`.
        discovered: discovered files; those that cannot be imported are skipped.

    Raises:
        InvalidInputError: there is no standard input, or no such format.
    """
    selection = _Selection(disk, named)
    for path in paths:
        try:
            if path == STDIN:
                selection.add_stdin(stdin)
            elif is_folder(path):
                selection.add_folder(path)
            else:
                selection.add(path)
        except UnreadableInputError as error:
            selection.refuse(path, error)
    for path in discovered:
        selection.add_discovered(path)
    return sorted(selection.items.values(), key=lambda item: is_of_agent(item.path))


class _Selection:
    """Selected transcripts by path."""

    def __init__(self, disk: Disk, named: Format | None) -> None:
        self._disk = disk
        self._named = named
        self._inner_items: dict[str, list[ImportItem]] = {}
        self.items: dict[str, ImportItem] = {}

    def add(self, path: str) -> None:
        """Add a named file, its transcripts, or one transcript inside a file."""
        self._add_named(self._at(path))

    def add_stdin(self, stdin: BinaryIO | None) -> None:
        """Add standard input."""
        if stdin is None:
            raise InvalidInputError("no standard input to import")
        given = InputBytes(STDIN, "stdin", stdin.read(MAXIMUM_STDIN_BYTES + 1))
        if given.size > MAXIMUM_STDIN_BYTES:
            raise UnreadableInputError("standard input is larger than 1 GiB", path=STDIN)
        plain = plain_content(STDIN, given.size, given.read_at)
        if plain is not None:
            given = InputBytes(STDIN, "stdin", plain)
        head, item = self._detect(given)
        if _inner_reader(item.reader, head) is not None:
            raise UnreadableInputError(
                "a database cannot be imported from standard input", path=STDIN
            )
        self._add_named([replace(item, opened=lambda: given)])

    def add_folder(self, path: str) -> None:
        """Add the files of a folder; unreadable files and other content are skipped."""
        suffixes_ = suffixes() if self._named is None else self._named.SUFFIXES
        for each in files_in(path, self._disk, suffixes_):
            if each == path:
                raise UnreadableInputError(f"cannot be read: {path}", path=path)
            if each.endswith(AGENT_FACTS_SUFFIX):
                continue  # it is read with the transcript of the agent
            self._add_or_skip(each)

    def add_discovered(self, path: str) -> None:
        """Add a discovered file; errors are reported."""
        try:
            self._append(self._at(path))
        except UnreadableInputError as error:
            self.refuse(path, error)

    def refuse(self, path: str, error: UnreadableInputError) -> None:
        """Record why a named file cannot be imported."""
        reason = error.data.get("reason")
        reason = reason if isinstance(reason, str) else UNREADABLE
        self._append([ImportItem(path, None, reason, named=True, error=error)])

    def _add_or_skip(self, path: str) -> None:
        try:
            self._append(self._at(path))
        except UnreadableInputError:
            self._append([ImportItem(path, None, UNREADABLE)])

    def _at(self, path: str) -> list[ImportItem]:
        """Return the transcripts at a path, which may name one inside a file."""
        holder, mark, _ = path.rpartition(INNER)
        if not mark or "\0" in path or os.path.lexists(path) or not os.path.isfile(holder):
            with InputFile(self._disk, path) as file:
                return self._inside(*self._detect(file))
        if holder not in self._inner_items:
            with InputFile(self._disk, holder) as file:
                self._inner_items[holder] = self._inside(*self._detect(file))
        inner = [item for item in self._inner_items[holder] if item.path == path]
        if not inner:
            raise UnreadableInputError(f"no such session: {path}", path=path)
        return inner

    def _detect(self, file: Input) -> tuple[bytes, ImportItem]:
        """Return the head of a file and its detected format."""
        if file.size == 0:
            return b"", ImportItem(file.path, None, EMPTY)
        head = file.read_at(0, HEAD_BYTES)
        # After a power cut a file may start with zeros.
        detected = format_of(head.lstrip(b"\0"))
        reader = self._named or detected
        if reader is not None and detected is not None and reader.NAME != detected.NAME:
            _check_understood(file, reader, detected, head)
        if reader is None:
            reason = TRAJECTORY if is_trajectory(head) else UNKNOWN_FORMAT
            return head, ImportItem(file.path, None, reason, looks=describe(head))
        return head, ImportItem(file.path, reader)

    def _inside(self, head: bytes, item: ImportItem) -> list[ImportItem]:
        """Return the file itself, or its transcripts if it holds several."""
        holding = _inner_reader(item.reader, head)
        if holding is None:
            return [item]
        inner = holding.inside(item.path, self._disk)
        return [ImportItem(each.path, item.reader, opened=each.open) for each in inner]

    def _add_named(self, items: Sequence[ImportItem]) -> None:
        for item in items:
            if item.reader is None:
                raise _rejection(item)
        self._append([replace(item, named=True) for item in items])

    def _append(self, items: Sequence[ImportItem]) -> None:
        for item in items:
            self.items.setdefault(item.path, item)


def _check_understood(file: Input, reader: Format, detected: Format, head: bytes) -> None:
    """Check that the named format reads a message in the head of a file that looks like another format.

    Raises:
        UnreadableInputError: it reads none.
    """
    if not has_marks(detected) or reader.sniff(head) or reader.is_document(head):
        return
    if _inner_reader(reader, head) is not None:
        return
    planner = reader.plan(file.name, file.read_at)
    lines = read_lines(file.read_at, min(file.size, HEAD_BYTES))
    planned = chain(chain.from_iterable(map(planner.feed, lines)), planner.finish())
    messages = (m for each in planned if isinstance(each, PlannedCommit) for m in each.messages)
    try:
        if any(not isinstance(part, Opaque) for message in messages for part in message.parts):
            return
    except Exception:  # noqa: BLE001 - the import reports it
        return
    raise UnreadableInputError(
        f"no readable {reader.NAME} records: {file.path} looks like {detected.NAME}",
        path=file.path,
        reason=OTHER_FORMAT,
        detected=detected.NAME,
    )


def _inner_reader(reader: object, head: bytes) -> MultiTranscriptFormat | None:
    """Return a format that reads the transcripts inside such a file.

    None for a single transcript.
    """
    return (
        reader if isinstance(reader, MultiTranscriptFormat) and reader.holds_several(head) else None
    )


def _rejection(item: ImportItem) -> UnreadableInputError:
    """Return the error of a named file that cannot be imported."""
    path, reason = item.path, item.reason
    if reason == EMPTY:
        return UnreadableInputError(f"empty file: {path}", path=path, reason=reason)
    if reason == TRAJECTORY:
        what = f"a trajectory of trail is no transcript: {path}"
        return UnreadableInputError(what, path=path, reason=reason)
    return UnreadableInputError(
        f"unknown transcript format: {path} ({item.looks})",
        path=path,
        reason=reason,
        looks=item.looks,
        tried=list(formats()),
    )


def project_histories(environment: Environment, folder: str, *, format: str = "") -> list[str]:
    """Return a project's transcripts in the programs' own folders, of one format or of each.

    Raises:
        InvalidInputError: there is no such format, or one of another package cannot be loaded or failed.
        StorageError: the disk refuses.
    """
    disk, paths = Disk(), dict[str, None]()
    readers = {format: format_named(format)} if format else formats()
    for name, reader in readers.items():
        try:
            paths.update(dict.fromkeys(reader.histories(environment, folder, disk)))
        except TraceError:
            raise
        except Exception as error:
            if is_built_in(name):
                raise
            raise format_failure(name, error) from error
    return list(paths)


def project_folder(folder: str) -> str:
    """Return the root of the git work tree around a folder, or the folder itself without git."""
    path = os.path.abspath(folder)
    git = find_git(Disk(), os.path.join(path, DIRECTORY_NAME))
    return os.path.dirname(git) if git else path


def folders_within(root: str, folder: str) -> list[str]:
    """Return a folder and those above it up to a root; only the folder if it is not inside."""
    folders = [os.path.abspath(folder)]
    while folders[-1] != root:
        above = os.path.dirname(folders[-1])
        if above == folders[-1]:
            return folders[:1]
        folders.append(above)
    return folders


def working_folder(disk: Disk, path: str) -> str:
    """Return the folder that the agent of a transcript worked in, as its first bytes say; "" if they do not."""
    match = _WORKED_IN.search(read_head(disk, path.partition(INNER)[0]))
    return "" if match is None else match[1].decode("utf-8", "replace")

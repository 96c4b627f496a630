"""Which files an import takes, and of what format each is.

Rule: looks at the beginning of each file, and writes nothing.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import BinaryIO

from trace_store.environment import Environment
from trace_store.errors import InvalidInputError, TraceError, UnreadableInputError
from trace_store.files import Disk
from trace_store.frozen import replace, value
from trace_store.importers.contract import Format, Holding
from trace_store.importers.decode import plain_content
from trace_store.importers.file_head import HEAD_BYTES, read_head
from trace_store.importers.files import (
    INNER,
    STDIN,
    Input,
    InputBytes,
    InputFile,
    files_in,
    is_folder,
    is_of_agent,
)
from trace_store.importers.formats.claude_code.locations import every_history
from trace_store.importers.registry import failed, format_of, formats, is_own, suffixes
from trace_store.importers.sniff import describe

MAXIMUM_STDIN_BYTES = 1 << 30

EMPTY = "empty"
UNKNOWN_FORMAT = "unknown-format"
UNREADABLE = "unreadable"
_WORKED_IN = re.compile(rb'"(?:cwd|directory)"\s*:\s*"([^"\\]+)"')


@value
class Chosen:
    """Something to import, and what it is.

    Attributes:
        path: as it was given or found; of a transcript in a file that holds several as in `reading.Inner`.
        reader: its format, or None.
        reason: why it cannot be imported, or empty.
        looks: what a file of no known format looks like.
        opened: returns it when it is no file of its own.
        named: whether it was asked for by its name, and not found in a folder or looked up.
        error: of one that was asked for and cannot be imported, or None.
    """

    path: str
    reader: Format | None
    reason: str = ""
    looks: str = ""
    opened: Callable[[], Input] | None = None
    named: bool = False
    error: UnreadableInputError | None = None


def choose(
    disk: Disk,
    paths: Sequence[str],
    named: Format | None,
    stdin: BinaryIO | None,
    found: Sequence[str] = (),
) -> list[Chosen]:
    """Return what is to be imported, with the formats; files of subagents last, since they begin in a session.

    Args:
        disk: the access to files.
        paths: files and folders that were named.
        named: the format that all of them have; None looks at each.
        stdin: what the path `-` stands for.
        found: files that were looked up; those that cannot be imported are left.

    Raises:
        InvalidInputError: there is no standard input, or no such format.
    """
    choosing = _Choosing(disk, named)
    for path in paths:
        try:
            if path == STDIN:
                choosing.take_stdin(stdin)
            elif is_folder(path):
                choosing.take_folder(path)
            else:
                choosing.take(path)
        except UnreadableInputError as error:
            choosing.refuse(path, error)
    for path in found:
        choosing.take_found(path)
    return sorted(choosing.chosen.values(), key=lambda item: is_of_agent(item.path))


class _Choosing:
    """What was chosen so far, by path."""

    def __init__(self, disk: Disk, named: Format | None) -> None:
        self._disk = disk
        self._named = named
        self._holding: dict[str, list[Chosen]] = {}
        self.chosen: dict[str, Chosen] = {}

    def take(self, path: str) -> None:
        """Take a file that was named, or what it holds, or one transcript of those that a file holds."""
        self._add(self._at(path))

    def take_stdin(self, stdin: BinaryIO | None) -> None:
        """Take what standard input gives."""
        if stdin is None:
            raise InvalidInputError("there is no standard input to import")
        given = InputBytes(STDIN, "stdin", stdin.read(MAXIMUM_STDIN_BYTES + 1))
        if given.size > MAXIMUM_STDIN_BYTES:
            raise UnreadableInputError("standard input is too long to be held", path=STDIN)
        plain = plain_content(STDIN, given.size, given.read_at)
        if plain is not None:
            given = InputBytes(STDIN, "stdin", plain)
        head, item = self._look_at(given)
        if _holds_several(item.reader, head) is not None:
            raise UnreadableInputError("such a file can only be read where it lies", path=STDIN)
        self._add([replace(item, opened=lambda: given)])

    def take_folder(self, path: str) -> None:
        """Take the files of a folder; those that are no transcripts, or cannot be read, are left."""
        suffixes_ = suffixes() if self._named is None else self._named.SUFFIXES
        for each in files_in(path, self._disk, suffixes_):
            if each == path:
                raise UnreadableInputError(f"cannot be read: {path}", path=path)
            self._take_or_leave(each)

    def take_found(self, path: str) -> None:
        """Take what was looked up; what cannot be read is said to be so."""
        try:
            self._keep(self._at(path))
        except UnreadableInputError as error:
            self.refuse(path, error)

    def refuse(self, path: str, error: UnreadableInputError) -> None:
        """Take note that what was named cannot be imported, and why."""
        reason = error.data.get("reason")
        reason = reason if isinstance(reason, str) else UNREADABLE
        self._keep([Chosen(path, None, reason, named=True, error=error)])

    def _take_or_leave(self, path: str) -> None:
        try:
            self._keep(self._at(path))
        except UnreadableInputError:
            self._keep([Chosen(path, None, UNREADABLE)])

    def _at(self, path: str) -> list[Chosen]:
        """Return what is at a path, which may name one of the transcripts that a file holds."""
        holder, mark, _ = path.rpartition(INNER)
        if not mark or "\0" in path or os.path.lexists(path) or not os.path.isfile(holder):
            with InputFile(self._disk, path) as file:
                return self._inside(*self._look_at(file))
        if holder not in self._holding:
            with InputFile(self._disk, holder) as file:
                self._holding[holder] = self._inside(*self._look_at(file))
        inner = [item for item in self._holding[holder] if item.path == path]
        if not inner:
            raise UnreadableInputError(f"no such session: {path}", path=path)
        return inner

    def _look_at(self, file: Input) -> tuple[bytes, Chosen]:
        """Return the beginning of a file, and what it is."""
        if file.size == 0:
            return b"", Chosen(file.path, None, EMPTY)
        head = file.read_at(0, HEAD_BYTES)
        # A file system that lost power leaves zeros before what was written last.
        reader = self._named or format_of(head.lstrip(b"\0"))
        if reader is None:
            return head, Chosen(file.path, None, UNKNOWN_FORMAT, looks=describe(head))
        return head, Chosen(file.path, reader)

    def _inside(self, head: bytes, item: Chosen) -> list[Chosen]:
        """Return a file, or the transcripts in it when it holds several."""
        holding = _holds_several(item.reader, head)
        if holding is None:
            return [item]
        inner = holding.inside(item.path, self._disk)
        return [Chosen(each.path, item.reader, opened=each.open) for each in inner]

    def _add(self, items: Sequence[Chosen]) -> None:
        for item in items:
            if item.reader is None:
                raise _refused(item)
        self._keep([replace(item, named=True) for item in items])

    def _keep(self, items: Sequence[Chosen]) -> None:
        for item in items:
            self.chosen.setdefault(item.path, item)


def _holds_several(reader: object, head: bytes) -> Holding | None:
    """Return a format that can look into a file which begins so; None when the file is one transcript."""
    return reader if isinstance(reader, Holding) and reader.holds_several(head) else None


def _refused(chosen: Chosen) -> UnreadableInputError:
    """Return the error of a named file that cannot be imported: what it looks like, and which formats were tried."""
    path, reason = chosen.path, chosen.reason
    if reason == EMPTY:
        return UnreadableInputError(f"the file is empty: {path}", path=path, reason=reason)
    return UnreadableInputError(
        f"not a transcript of a known format: {path} ({chosen.looks})",
        path=path,
        reason=reason,
        looks=chosen.looks,
        tried=list(formats()),
    )


def project_histories(
    environment: Environment, project_dir: str, disk: Disk | None = None
) -> list[str]:
    """Return the transcripts of a project that lie where each program keeps its own, format by format.

    Args:
        environment: says where programs keep their files.
        project_dir: the project's folder.
        disk: the access to files.

    Raises:
        InvalidInputError: a format of another package cannot be loaded, or failed.
        StorageError: the disk refuses.
    """
    disk = disk or Disk()
    found: dict[str, None] = {}
    for name, format in formats().items():
        try:
            found.update(dict.fromkeys(format.histories(environment, project_dir, disk)))
        except TraceError:
            raise
        except Exception as error:
            if is_own(name):
                raise
            raise failed(name, error) from error
    return list(found)


def other_folders(environment: Environment, disk: Disk | None = None) -> dict[str, int]:
    """Return the folders that agents worked in, as their sessions say, each with how many sessions it has.

    Args:
        environment: says where programs keep their files.
        disk: the access to files.

    Raises:
        As `project_histories`.
    """
    disk = disk or Disk()
    found: Counter[str] = Counter()
    # Claude Code has a folder for each project, the others tell a session's folder in its file.
    paths = dict.fromkeys(project_histories(environment, os.sep, disk))
    for path in paths | dict.fromkeys(every_history(environment, disk)):
        worked_in = _WORKED_IN.search(read_head(disk, path.partition(INNER)[0]))
        if worked_in is not None:
            found[worked_in[1].decode("utf-8", "replace")] += 1
    return dict(found.most_common())

r"""Reflogs: the moves of one ref or of HEAD, one per line.

    <old> <new> <milliseconds> <author>\t<message>

Rule: `-` is an absent value. Tabs, line ends, control characters and backslashes are escaped. The file is local and
derived from the journals. Unreadable lines are skipped.

Trace parses the messages of a switch, a rename, undo, redo and joined tips. Only the start of a message counts:
`commit: ` and the like are followed by a user's own text.
"""

from __future__ import annotations

import os
from itertools import takewhile

from trace_store import errors
from trace_store.base import ident
from trace_store.base.oid import ObjectId
from trace_store.contracts.ref_names import is_ref_name
from trace_store.disk.files import (
    APPEND,
    CREATE,
    check_folders,
    files_below,
    read_file,
    replace_file,
    write_all,
)
from trace_store.disk.layout import LOG_SUFFIX
from trace_store.refs.head import NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from trace_store.base.ident import Time
    from trace_store.disk.files import Disk
    from trace_store.journal.frames import Frame
    from trace_store.refs.database import RefDatabase

IMPORT = "import"
"""The message of an import; the first entry of each is `import: ` with a name."""
GIT, MOVED_BY_GIT = "git", "moved by git"
"""Author and message of an entry for a move by git or another program."""
_ABSENT = "-"
_TORN = b"\0\n"
"""Ends a torn line, so that it is never taken for a complete one."""
_FIRST_SPAN = 4096
COMMANDS = "COMMANDS"
"""The log of commands that moved no ref and cannot be undone; it lies beside the reflogs."""
UNDO, REDO = "undo: ", "redo: "
DIVERGED_TIPS = "diverged tips"
"""The source in the message of a merge of a branch's own tips; their short ids follow."""
_SWITCHED = "switch: moving from "
_RENAMED = "branch: renamed "
_JOINS = "joins "
_TO = " to "


class ReflogEntry:
    """One move; `time` is in milliseconds.

    `old` or `new` is None if the ref was or became absent.
    """

    JSON = "before=old commit=new time author message"

    __slots__ = ("author", "message", "new", "old", "time")
    time: Time

    def __init__(
        self, old: ObjectId | None, new: ObjectId | None, time: int, author: str, message: str
    ) -> None:
        self.old = old
        self.new = new
        self.time = time
        self.author = author
        self.message = message

    def __repr__(self) -> str:
        return f"ReflogEntry({self.old!r}, {self.new!r}, {self.time}, {self.author!r}, {self.message!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReflogEntry) and encode_entry(self) == encode_entry(other)

    def __hash__(self) -> int:
        return hash(encode_entry(self))


def follow_renames(
    name: str, read: Callable[[str], Iterable[ReflogEntry]]
) -> Iterator[ReflogEntry]:
    """Yield the moves of a ref, newest first, following renames.

    Args:
        name: its full name.
        read: returns the moves of a name, newest first.
    """
    seen: set[str] = set()
    until: ReflogEntry | None = None
    while name not in seen:
        seen.add(name)
        before = None
        for entry in read(name):
            if until is not None and (entry.time > until.time or entry.message == until.message):
                continue  # a move of the old name after the rename
            yield entry
            renamed = read_rename(entry.message) if entry.old is None else None
            if renamed is not None and renamed[1] == name and not split_undo(entry.message)[0]:
                name, before = renamed[0], entry
                break
        if before is None:
            return
        until = before


def logged_names(disk: Disk, folder: str) -> Iterator[str]:
    """Yield the names of the refs that have a reflog below the folder of all, and HEAD if it has one."""
    for path in files_below(disk, folder):
        file_name = path[len(folder) + 1 :].replace(os.sep, "/")
        name = file_name.removesuffix(LOG_SUFFIX)
        if name != file_name and (name == NAME or is_ref_name(name)):
            yield name


def encode_entry(entry: ReflogEntry) -> bytes:
    """Return the line of an entry, with its line end."""
    old = _ABSENT if entry.old is None else entry.old.hex()
    new = _ABSENT if entry.new is None else entry.new.hex()
    line = f"{old} {new} {entry.time} {_escape(entry.author)}\t{_escape(entry.message)}\n"
    return line.encode("utf-8", "surrogateescape")


def newest_first(
    disk: Disk, path: str, recent: Sequence[ReflogEntry] = ()
) -> Iterator[ReflogEntry]:
    """Yield the entries of a file and of journals, newest first, without duplicates.

    `recent` are those of journals, oldest first.
    """
    logged = read_backwards(disk, path)
    oldest = min((entry.time for entry in recent), default=0)
    # Setting HEAD first writes its journal entries to the file, so any that the file lacks are newer.
    overlapping: list[ReflogEntry] = []
    for entry in logged if recent else ():
        overlapping.append(entry)
        if entry.time < oldest:
            break
    known = set(overlapping)
    yield from (entry for entry in reversed(recent) if entry not in known)
    yield from overlapping
    yield from logged


def read_backwards(disk: Disk, path: str) -> Iterator[ReflogEntry]:
    """Yield the readable entries of a file, newest first; a torn line at its end is skipped."""
    at, span, rest = -1, _FIRST_SPAN, b"\0"  # makes the text after the last line end unreadable
    while at:
        fd = disk.open(path)  # not kept open: a repository may have very many reflogs
        if fd is None:
            return
        try:
            at = disk.size(fd) if at < 0 else at
            start = max(0, at - span)
            lines = (disk.read_at(fd, start, at - start) + rest).split(b"\n")
        finally:
            disk.close(fd)
        # The part before the first line end may be the rest of an earlier line.
        rest = b"" if start == 0 else lines.pop(0) + b"\n"
        for line in reversed(lines):
            entry = None if b"\0" in line else _decode(line)
            if entry is not None:
                yield entry
        at, span = start, 2 * span


def examine_log(disk: Disk, path: str) -> tuple[list[ReflogEntry], int]:
    """Return the readable entries, oldest first, and the number of unreadable lines.

    A torn line of an interrupted seal does not count: the repeated seal writes it again.
    """
    data = read_file(disk, path)
    if not data:
        return [], 0
    whole, _, _ = data.rpartition(b"\n")
    lines = [line for line in whole.split(b"\n") if line and b"\0" not in line]
    entries = [entry for entry in map(_decode, lines) if entry is not None]
    return entries, len(lines) - len(entries)


def count_zero_bytes(disk: Disk, path: str) -> int:
    """Return the number of zero bytes in a file, a sign of lost data.

    The zero that ends a torn line does not count.
    """
    data = read_file(disk, path) or b""
    return data.count(b"\0") - data.count(_TORN)


def append_log(disk: Disk, root: str, path: str, entries: Sequence[ReflogEntry]) -> None:
    """Append entries that are not there yet; an interrupted seal repeats them.

    Raises:
        StorageError: the write failed, or a folder between `root` (of all reflogs) and the file is a link.
    """
    if not entries:
        return
    check_folders(disk, root, path)
    stat = disk.stat(path)
    if stat is not None and stat.st_nlink > 1:
        # A file with a second hard link may be anything, so it is left alone. The copy is synced, because otherwise a
        # power cut could lose entries.
        replace_file(disk, path, read_file(disk, path) or b"")
    oldest = min(entry.time for entry in entries)
    known = set(takewhile(lambda entry: entry.time >= oldest, read_backwards(disk, path)))
    data = b"".join(encode_entry(entry) for entry in entries if entry not in known)
    disk.make_directory(os.path.dirname(path))
    fd = disk.open(path, APPEND)
    if fd is None:
        fd = disk.open(path, CREATE)
    if fd is None:  # another process has just created it
        fd = disk.open(path, APPEND)
    if fd is None:
        return
    try:
        size = disk.size(fd)
        if size and disk.read_at(fd, size - 1, 1) != b"\n":
            data = _TORN + data
        if data:
            write_all(disk, fd, data)
    finally:
        disk.close(fd)


def _decode(line: bytes) -> ReflogEntry | None:
    head, separator, message = line.decode("utf-8", "surrogateescape").partition("\t")
    fields = head.split(" ", 3)
    if not separator or len(fields) != 4:
        return None
    try:
        old = None if fields[0] == _ABSENT else ObjectId.parse(fields[0])
        new = None if fields[1] == _ABSENT else ObjectId.parse(fields[1])
        return ReflogEntry(old, new, int(fields[2]), _unescape(fields[3]), _unescape(message))
    except (errors.InvalidInputError, ValueError):
        return None


def _escape(text: str) -> str:
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(_escape_character(c) for c in text)


def _escape_character(c: str) -> str:
    if c == "\\":
        return "\\\\"
    if ord(c) < 32 or ord(c) == 127:
        return f"\\x{ord(c):02x}"
    return c


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    pieces: list[str] = []
    rest = text
    while rest:
        before, slash, rest = rest.partition("\\")
        pieces.append(before)
        if slash and rest[:1] == "x" and len(rest) >= 3:
            pieces.append(chr(int(rest[1:3], 16)))
            rest = rest[3:]
        elif slash:
            pieces.append(rest[:1])
            rest = rest[1:]
    return "".join(pieces)


def entries_of(frames: Sequence[Frame]) -> dict[str, list[ReflogEntry]]:
    """Return the reflog entries of journal frames, by ref and for HEAD, oldest first."""
    logs: dict[str, list[ReflogEntry]] = {}
    for frame in frames:
        for move in frame.moves:
            entry = ReflogEntry(move.old, move.new, frame.time, frame.author, frame.message)
            logs.setdefault(move.name, []).append(entry)
            if move.name == frame.head:
                logs.setdefault(NAME, []).append(entry)
    return logs


def value_at(refs: RefDatabase, name: str, when: str, now: int, revision: str) -> ObjectId:
    """Return a ref's value n moves ago or at a time.

    Args:
        refs: has the ref and its reflog.
        name: its full name, or HEAD.
        when: a number of moves, or a time as users write it.
        now: the current time in milliseconds, for relative times.
        revision: the revision being resolved, for messages.

    Raises:
        RevisionNotFoundError: the reflog does not go back that far, or the ref did not exist then.
        InvalidInputError: `when` is neither a number nor a time.
    """
    entries = list(follow_renames(name, refs.reflog))
    if ident.is_count(when):
        values = [entry.new for entry in entries]
        if entries:
            values.append(entries[-1].old)
        elif name != "HEAD":
            values = [refs.read(name)]
        return _moves_ago(ident.count_of(when), values, name, revision)
    moment = ident.parse_moment(when, now)
    if moment is None:
        raise errors.InvalidInputError(f"not a number or a time: {when[:80]!r}", text=revision)
    return _at(moment, entries, name, revision)


def previous_branch(refs: RefDatabase, number: int = 1, revision: str = "-") -> str:
    """Return the branch (short name) or commit id that HEAD was on n switches ago.

    Raises:
        RevisionNotFoundError: there were fewer switches.
    """
    count = 0
    for entry in refs.reflog("HEAD"):
        switched = read_switch(entry.message)
        if switched is not None:
            count += 1
            if count == number:
                return switched[0]
    raise errors.RevisionNotFoundError("no previous branch", revision=revision)


def _moves_ago(
    number: int, values: Sequence[ObjectId | None], name: str, revision: str
) -> ObjectId:
    if number >= len(values):
        count = max(len(values) - 1, 0)
        raise errors.RevisionNotFoundError(
            f"the reflog of {name} has only {count} entr{'y' if count == 1 else 'ies'}",
            code=errors.ErrorCode.REFLOG_TOO_SHORT,
            name=name.removeprefix("refs/heads/"),
            revision=revision,
        )
    value = values[number]
    if value is None:
        raise errors.RevisionNotFoundError(f"{name} did not exist at {revision}", revision=revision)
    return ObjectId(value)


def _at(moment: int, entries: Sequence[ReflogEntry], name: str, revision: str) -> ObjectId:
    for entry in entries:
        if entry.time <= moment and entry.new is not None:
            return ObjectId(entry.new)
    oldest = ident.format_time(entries[-1].time) if entries else None
    since = "is empty" if oldest is None else f"goes back to {oldest}"
    raise errors.RevisionNotFoundError(f"the reflog of {name} {since}", revision=revision)


def switch_message(left: str, went: str) -> str:
    """Return HEAD's message for a switch, given short names of branches or commits."""
    return f"{_SWITCHED}{left}{_TO}{went}"


def read_switch(message: str) -> tuple[str, str] | None:
    """Return (from, to) of a switch, or None for another message."""
    word, text = split_undo(read_join(message)[1])
    if not text.startswith(_SWITCHED):
        return None
    left, _, went = text.removeprefix(_SWITCHED).partition(_TO)
    return (went, left) if word == UNDO else (left, went)


def rename_message(before: str, after: str) -> str:
    """Return the message for a renamed branch, given the full names."""
    return f"{_RENAMED}{before}{_TO}{after}"


def read_rename(message: str) -> tuple[str, str] | None:
    """Return (old, new) full names of a rename, or None for another message."""
    word, text = split_undo(read_join(message)[1])
    if not text.startswith(_RENAMED):
        return None
    before, _, after = text.removeprefix(_RENAMED).partition(_TO)
    return (after, before) if word == UNDO else (before, after)


def split_undo(message: str) -> tuple[str, str]:
    """Split UNDO, REDO or "" from the message of the original command."""
    for word in (UNDO, REDO):
        if message.startswith(word):
            return word, message.removeprefix(word)
    return "", message


def join_message(tips: Sequence[str], message: str) -> str:
    """Return the message of a move that joins other tips, given their short ids."""
    return f"{_JOINS}{' '.join(tips)}: {message}"


def read_join(message: str) -> tuple[Sequence[str], str]:
    """Return the short ids of the joined tips, and the rest of the message."""
    if not message.startswith(_JOINS):
        return (), message
    tips, _, text = message.removeprefix(_JOINS).partition(": ")
    return tips.split(), text

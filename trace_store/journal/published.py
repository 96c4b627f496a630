"""The published state of this working copy: the file `local/published`.

    sealed 7 9c0e…32 hex digits…
    table 51b2…32 hex digits…
    refs 2
    3f2a…64 hex digits… refs/heads/main
    - refs/heads/gone
    …
    check 1c8e02f7

Rule: the file lists the sealed journals, and the tips of each ref that this working copy last wrote to files or
accepted from them. The first line of a ref is this working copy's own tip. If there are many refs, most are in a table
beside it, and the file lists those that changed since, so that reading and replacing it stay fast. The file is replaced
atomically as the last step of a seal. An absent or unreadable file counts as empty. The last line is the CRC-32 of
everything before it, because one changed digit could make a journal look sealed. Early versions wrote no checksum, and
such a file is accepted.

Rule: the table has a line for each tip, sorted by the name of its ref. It is named by its hash, which is checked when
all of it is read. A look-up reads only a few lines; unreadable content counts as empty.
"""

from __future__ import annotations

import os
import sys
from zlib import crc32

from trace_store import errors
from trace_store.base.oid import HEX_CHARACTERS, ObjectId, digest
from trace_store.contracts.ref_names import MAXIMUM_NAME_BYTES, is_ref_name
from trace_store.disk.files import WRITE, read_file, replace_file
from trace_store.journal.frames import LINE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from trace_store.disk.files import Disk
    from trace_store.disk.layout import Layout

    Span: TypeAlias = tuple[int, int]

    Tips = tuple[ObjectId, ...]

MAXIMUM_LINES = 64
"""Maximum number of lines. A line ends only if a journal is lost or damaged, so there are few."""
MAXIMUM_SPANS = 64
"""Number of newest spans to keep for a line; journals of older ones are no longer on disk."""
NAME_CHARACTERS = 32
_SPAN = 8192
_LINES = 2 * (HEX_CHARACTERS + MAXIMUM_NAME_BYTES + 2)
"""Any range of this many bytes contains a complete line, unless the file ends first."""


class Sealed:
    """The sealed journals, newest line last. Copy before changing."""

    __slots__ = ("_spans",)

    def __init__(self, spans: Mapping[bytes, tuple[Span, ...]] | None = None) -> None:
        """Use the given spans by line, lowest first."""
        self._spans = dict(spans) if spans else {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sealed) and list(self._spans.items()) == list(other._spans.items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Sealed({self._spans!r})"

    def copy(self) -> Sealed:
        """Return an independent copy."""
        return Sealed(self._spans)

    def covers(self, line: bytes, number: int) -> bool:
        """Return True if a journal is sealed."""
        return any(first <= number <= last for first, last in self._spans.get(line, ()))

    @property
    def highest(self) -> int:
        """The highest number; 0 if empty."""
        return max((spans[-1][1] for spans in self._spans.values()), default=0)

    def add(self, line: bytes, first: int, last: int) -> None:
        """Add a range of numbers (inclusive) of a line, which becomes the newest line."""
        kept: list[Span] = []
        for span in self._spans.pop(line, ()):
            if span[1] + 1 < first or last + 1 < span[0]:
                kept.append(span)
            else:
                first, last = min(first, span[0]), max(last, span[1])
        self._spans[line] = tuple(sorted([*kept, (first, last)]))[-MAXIMUM_SPANS:]

    def add_all(self, other: Sealed) -> None:
        """Add all journals of another value."""
        for line, spans in other._spans.items():
            for first, last in spans:
                self.add(line, first, last)

    def lines(self) -> Iterator[str]:
        """Yield the lines of text for `parse`; only the newest lines of journals are kept."""
        for line, spans in list(self._spans.items())[-MAXIMUM_LINES:]:
            numbers = [f"{last}" if first == 1 else f"{first}-{last}" for first, last in spans]
            yield f"sealed {','.join(numbers)} {line.hex()}\n"

    def parse(self, text: str) -> bool:
        """Add the journals in a line of text; False if it is another kind of line.

        Raises:
            ValueError: the line is invalid.
        """
        if not text.startswith("sealed "):
            return False
        numbers, _, name = text[7:].partition(" ")
        line = bytes.fromhex(name)
        if len(line) != LINE_BYTES:
            raise ValueError("not the id of a line of journals")
        for span in numbers.split(","):
            first, _, last = span.rpartition("-")
            self.add(line, int(first or 1), int(last))
        return True


MAXIMUM_CHANGED = 256
"""Maximum number of refs in the file itself; with more, a table is written."""
_GONE = "- "
_CHECK = b"check "


class PublishedTips:
    """The tips of each ref, own tip first: from a table, updated by later changes.

    Attributes:
        changed: the refs in the file itself; a deleted ref has no tips.
        table: the table with all others, or None.
        lacking: whether the table turned out to be missing or damaged.
    """

    __slots__ = ("_all", "changed", "lacking", "table")

    def __init__(
        self, changed: Mapping[str, Tips] | None = None, table: TipTable | None = None
    ) -> None:
        self.changed = dict(changed) if changed else {}
        self.table = table
        self.lacking = False
        self._all: dict[str, Tips] | None = None

    def get(self, name: str, default: Tips = ()) -> Tips:
        """Return the tips of a ref, with a look-up in the table instead of a full read."""
        found = self.changed.get(name)
        if found is None:
            if self._all is not None:
                found = self._all.get(name)
            elif self.table is not None:
                found = self.table.find(name)
        return found or default

    def all(self) -> dict[str, Tips]:
        """Return the tips of every ref; a damaged table counts as empty."""
        if self._all is None:
            known: dict[str, Tips] | None = {} if self.table is None else self.table.read()
            self.lacking = known is None
            merged = {**(known or {}), **self.changed}
            self._all = {name: tips for name, tips in merged.items() if tips}
        return self._all

    def naming(self, tips: Iterable[ObjectId]) -> dict[ObjectId, list[str]]:
        """Return, for each of some tips, the names of the refs that have it."""
        wanted = list(tips)
        known = {} if self.table is None else self.table.naming(wanted)
        self.lacking = self.lacking or known is None
        found = {
            tip: [name for name in (known or {}).get(tip, ()) if name not in self.changed]
            for tip in wanted
        }
        for name, its in self.changed.items():
            for tip in its:
                if tip in found:
                    found[tip].append(name)
        return found


class Published:
    """One version of the file.

    Attributes:
        sealed: the sealed journals.
        tips: for each ref, the tips last written or accepted, own tip first.
        damaged: whether the file exists but is unreadable.
        stamp: a value that changes with the file.
    """

    __slots__ = ("damaged", "sealed", "stamp", "tips")

    def __init__(
        self,
        sealed: Sealed | None = None,
        tips: PublishedTips | None = None,
        *,
        stamp: object = None,
        damaged: bool = False,
    ) -> None:
        self.sealed = sealed or Sealed()
        self.tips = tips or PublishedTips()
        self.stamp = stamp
        self.damaged = damaged

    def covers(self, line: bytes, number: int) -> bool:
        """Return True if this journal is sealed."""
        return self.sealed.covers(line, number)


def stamp_of(disk: Disk, path: str) -> object:
    """Return a value that changes when the file is replaced; None if it is absent."""
    found = disk.stat(path)
    return None if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def load(disk: Disk, layout: Layout, known: Published) -> Published:
    """Return the current version; `known` itself if the file has not changed."""
    stamp = stamp_of(disk, layout.published_file)
    if stamp == known.stamp:
        return known
    data = read_file(disk, layout.published_file)
    if data is None:
        return Published()
    try:
        sealed, table, changed = _parse(data)
    except (ValueError, errors.InvalidInputError):
        return Published(stamp=stamp, damaged=True)
    tips = PublishedTips(changed, TipTable(disk, layout, table) if table else None)
    return Published(sealed, tips, stamp=stamp)


def save(
    disk: Disk,
    layout: Layout,
    sealed: Sealed,
    before: Published,
    changes: Mapping[str, Sequence[ObjectId]],
) -> None:
    """Replace the file durably; only the newest lines of journals are kept.

    Args:
        disk: the disk.
        layout: the repository's paths.
        sealed: the sealed journals.
        before: the current content of the file.
        changes: the new tips of changed refs; none for a deleted ref.

    Raises:
        ConcurrencyError: the file is not as in `before`, or another process is replacing it.
        StorageError: the disk failed.
    """
    if before.stamp is None:  # the directory may be new, too
        disk.make_directory(layout.local_dir)
        disk.sync_directory(layout.root)
    with _Replacing(disk, layout.published_file, before.stamp):
        table = before.tips.table
        changed = {**before.tips.changed, **{name: tuple(tips) for name, tips in changes.items()}}
        if len(changed) > MAXIMUM_CHANGED or before.tips.lacking:
            merged = {**before.tips.all(), **changes}
            table = write_table(disk, layout, {name: tips for name, tips in merged.items() if tips})
            changed = {}
        elif table is None:
            changed = {name: tips for name, tips in changed.items() if tips}
        lines = list(sealed.lines())
        if table is not None:
            lines.append(f"table {table.name}\n")
        lines.append(f"refs {len(changed)}\n")
        lines += tip_lines({name: tips for name, tips in changed.items() if tips})
        lines += [f"{_GONE}{name}\n" for name in sorted(changed) if not changed[name]]
        body = "".join(lines).encode("ascii")
        data = b"%b%b%08x\n" % (body, _CHECK, crc32(body))
        replace_file(disk, layout.published_file, data, scratch=layout.tmp_dir)
        if table is not before.tips.table:
            _remove_tables(
                disk, layout, {t.name for t in (table, before.tips.table) if t is not None}
            )


class _Replacing:
    """Locks the file against replacement, and checks that it is still the one read.

    A seal has a lock file, but somebody may delete that. This locks the file that is to be replaced, so only one of
    several processes that start from the same version can succeed.
    """

    __slots__ = ("_disk", "_fd", "_path", "_stamp")

    def __init__(self, disk: Disk, path: str, stamp: object) -> None:
        self._disk = disk
        self._path = path
        self._stamp = stamp
        self._fd: int | None = None

    def __enter__(self) -> None:
        # Windows cannot replace an open file; but there, the lock file of a seal cannot be deleted while it is held.
        self._fd = None if sys.platform == "win32" else self._disk.open(self._path, WRITE)
        locked = self._fd is None or self._disk.lock(self._fd, blocking=False)
        if not locked or stamp_of(self._disk, self._path) != self._stamp:
            self.__exit__()
            raise errors.ConcurrencyError("another process has sealed at the same time")

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            self._disk.close(self._fd)  # which releases the lock


def _remove_tables(disk: Disk, layout: Layout, kept: set[str]) -> None:
    """Remove obsolete tables; the previous one may still be in use."""
    for name in disk.names(layout.local_dir):
        table = layout.name_of_tip_table(name)
        if table is not None and table not in kept:
            disk.remove(os.path.join(layout.local_dir, name))


def _parse(data: bytes) -> tuple[Sealed, str, dict[str, Tips]]:
    body, check, given = data.rpartition(_CHECK)
    if check and given != b"%08x\n" % crc32(body):
        raise ValueError("its checksum is wrong")
    lines = (body if check else data).decode("ascii").splitlines()
    sealed = Sealed()
    place = 0
    while place < len(lines) and sealed.parse(lines[place]):
        place += 1
    table = ""
    if lines[place : place + 1] and lines[place].startswith("table "):
        table = lines[place][6:]
        if len(bytes.fromhex(table)) * 2 != NAME_CHARACTERS or table != table.lower():
            raise ValueError("not the name of a table")  # it becomes a path
        place += 1
    refs = lines[place + 1 :]
    changed = parse_tips([line for line in refs if not line.startswith(_GONE)])
    gone = [line[len(_GONE) :] for line in refs if line.startswith(_GONE)]
    if not all(map(is_ref_name, gone)):
        raise ValueError("invalid ref name")
    changed.update((name, ()) for name in gone)
    if lines[place : place + 1] != [f"refs {len(changed)}"]:
        raise ValueError("it does not hold as many refs as it says")
    return sealed, table, changed


class TipTable:
    """One such file; `name` is its hash in hex."""

    __slots__ = ("_disk", "_path", "name")

    def __init__(self, disk: Disk, layout: Layout, name: str) -> None:
        self._disk = disk
        self._path = layout.tip_table_file(name)
        self.name = name

    def find(self, ref: str) -> Tips:
        """Return the tips of one ref; empty if it has none, or the file is unreadable."""
        fd = self._disk.open(self._path)
        if fd is None:
            return ()
        try:
            wanted = ref.encode("ascii")
            return self._collect(fd, self._lower_bound(fd, wanted), wanted)
        except (ValueError, errors.InvalidInputError):
            return ()
        finally:
            self._disk.close(fd)

    def read(self) -> dict[str, Tips] | None:
        """Return the tips of every ref; None if the file is absent or its hash is wrong."""
        try:
            data = read_file(self._disk, self._path)
            if data is None or _name_of(data) != self.name:
                return None
            return parse_tips(data.decode("ascii").splitlines())
        except (ValueError, errors.InvalidInputError, errors.StorageError):
            return None

    def naming(self, tips: Iterable[ObjectId]) -> dict[ObjectId, list[str]] | None:
        """Return, for each of some tips, the names of its refs; None as in `read`."""
        try:
            data = read_file(self._disk, self._path)
        except errors.StorageError:
            return None
        if data is None or _name_of(data) != self.name:
            return None
        found: dict[ObjectId, list[str]] = {tip: [] for tip in tips}
        wanted = {str(tip).encode("ascii"): named for tip, named in found.items()}
        for line in data.splitlines():
            tip, _, name = line.partition(b" ")
            if tip in wanted:
                wanted[tip].append(name.decode("ascii"))
        return found

    def _lower_bound(self, fd: int, wanted: bytes) -> int:
        """Return the offset of a line at most a span before the first with this name."""
        low, high = 0, self._disk.size(fd)
        while high - low > _SPAN:
            middle = (low + high) // 2
            lines = self._disk.read_at(fd, middle, _LINES).split(b"\n", 2)
            if len(lines) < 3:
                raise ValueError("a line is too long")
            start = middle + len(lines[0]) + 1
            if _ref_in(lines[1]) < wanted:
                low = start
            else:
                high = start
        return low

    def _collect(self, fd: int, at: int, wanted: bytes) -> Tips:
        """Return the tips of a ref, whose lines are somewhere after an offset."""
        found: list[ObjectId] = []
        rest = b""
        while True:
            data = self._disk.read_at(fd, at, _SPAN)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                name = _ref_in(line)
                if name > wanted:
                    return tuple(found)
                if name == wanted:
                    found.append(ObjectId.parse(line[:HEX_CHARACTERS].decode("ascii")))
            if len(data) < _SPAN:
                return tuple(found)
            at += len(data)


def write_table(disk: Disk, layout: Layout, tips: Mapping[str, Sequence[ObjectId]]) -> TipTable:
    """Write a table durably and return it."""
    data = "".join(tip_lines(tips)).encode("ascii")
    table = TipTable(disk, layout, _name_of(data))
    replace_file(disk, layout.tip_table_file(table.name), data, scratch=layout.tmp_dir)
    return table


def tip_lines(tips: Mapping[str, Sequence[ObjectId]]) -> list[str]:
    """Return tips as lines."""
    return [f"{oid} {name}\n" for name in sorted(tips) for oid in tips[name]]


def parse_tips(lines: Sequence[str]) -> dict[str, Tips]:
    """Parse lines of tips.

    Raises:
        ValueError, InvalidInputError: a line is not valid.
    """
    tips: dict[str, Tips] = {}
    for text in lines:
        hexadecimal, _, name = text.partition(" ")
        if not is_ref_name(name):  # it becomes a path
            raise ValueError("invalid ref name")
        tips[name] = (*tips.get(name, ()), ObjectId.parse(hexadecimal))
    return tips


def _ref_in(line: bytes) -> bytes:
    return line[HEX_CHARACTERS + 1 :]


def _name_of(data: bytes) -> str:
    return digest(data).hex()[:NAME_CHARACTERS]

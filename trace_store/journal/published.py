"""What this working copy has published: the file `local/published`.

    sealed 7 9c0e…32 hex digits…
    table 51b2…32 hex digits…
    refs 2
    3f2a…64 hex digits… refs/heads/main
    - refs/heads/gone
    …
    check 1c8e02f7

Rule: the file says which journals are sealed (`sealed.py`), and which tips this working copy last wrote to, or accepted
from, the files of each ref. The first line of a ref is this working copy's own tip. Where there are many refs most
stand in a table beside it, and the file says which have changed since that was written, so that neither reading it nor
replacing it takes longer for their number. It is replaced as a whole, last of all when sealing; an absent or unreadable
one says nothing. The last line is the CRC-32 of all before it, since a digit that has changed would pass a journal off
as sealed; a file without it, as first versions wrote it, is taken as it is.
"""

from __future__ import annotations

import os
import sys
from zlib import crc32

from trace_store import errors
from trace_store.files import WRITE, read_file, replace_file
from trace_store.journal.sealed_ranges import Sealed
from trace_store.journal.tip_table import (
    NAME_CHARACTERS,
    TipTable,
    parse_tips,
    tip_lines,
    write_table,
)
from trace_store.ref_names import is_ref_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trace_store.files import Disk
    from trace_store.journal.tip_table import Tips
    from trace_store.layout import Layout
    from trace_store.oid import ObjectId

MAXIMUM_CHANGED = 256
"""How many refs the file itself names at most; with more, a table is written."""
_GONE = "- "
_CHECK = b"check "


class PublishedTips:
    """The tips of each ref, own tip first: those of a table, but for what has changed since.

    Attributes:
        changed: what the file itself says; none of a ref that is gone.
        table: says the rest; None when there is none.
        lacking: the table was found not to be right.
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
        """Return the tips of a ref; what a table holds is looked up, without reading the rest."""
        found = self.changed.get(name)
        if found is None:
            if self._all is not None:
                found = self._all.get(name)
            elif self.table is not None:
                found = self.table.find(name)
        return found or default

    def all(self) -> dict[str, Tips]:
        """Return the tips of every ref; a table that is not right says nothing."""
        if self._all is None:
            known: dict[str, Tips] | None = {} if self.table is None else self.table.read()
            self.lacking = known is None
            merged = {**(known or {}), **self.changed}
            self._all = {name: tips for name, tips in merged.items() if tips}
        return self._all

    def naming(self, tips: Iterable[ObjectId]) -> dict[ObjectId, list[str]]:
        """Return for each of some tips the names of the refs that have it; nothing is made of the others."""
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
    """One state of the file.

    Attributes:
        sealed: which journals are sealed.
        tips: per ref the tips last written or accepted, own tip first.
        damaged: the file is there but cannot be read.
        stamp: changes whenever the file does.
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
        """Tell whether this journal is sealed."""
        return self.sealed.covers(line, number)


def stamp_of(disk: Disk, path: str) -> object:
    """Return a value that differs once the file is replaced; None when it is absent."""
    found = disk.stat(path)
    return None if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def load(disk: Disk, layout: Layout, known: Published) -> Published:
    """Return the present state, which is `known` itself when the file has not changed since."""
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
    """Replace the file, durably. Of the lines of journals the newest are kept.

    Args:
        disk: where.
        layout: where there.
        sealed: which journals are sealed.
        before: what the file says.
        changes: the tips of the refs of which it shall say something else; none of a ref that is gone.

    Raises:
        ConcurrencyError: it says something else, or another process is replacing it.
        StorageError: the disk refuses.
    """
    if before.stamp is None:  # the name of its directory may not be durable either
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
    """Keeps others from replacing the file, as long as it is the one that was read.

    A seal has a lock of its own, but somebody may delete the file of that. This is the lock of the very file that will
    be replaced, so of all who go on from one state one alone comes to its end, and nobody goes on from another.
    """

    __slots__ = ("_disk", "_fd", "_path", "_stamp")

    def __init__(self, disk: Disk, path: str, stamp: object) -> None:
        self._disk = disk
        self._path = path
        self._stamp = stamp
        self._fd: int | None = None

    def __enter__(self) -> None:
        # Windows replaces no file that is open, and there nobody can delete the file of a lock that is held.
        self._fd = None if sys.platform == "win32" else self._disk.open(self._path, WRITE)
        locked = self._fd is None or self._disk.lock(self._fd, blocking=False)
        if not locked or stamp_of(self._disk, self._path) != self._stamp:
            self.__exit__()
            raise errors.ConcurrencyError("another process has sealed at the same time")

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            self._disk.close(self._fd)  # and with it goes the lock


def _remove_tables(disk: Disk, layout: Layout, kept: set[str]) -> None:
    """Remove tables that nobody reads any more; the last but one may still be read."""
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

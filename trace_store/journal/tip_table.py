"""An immutable file with the tips of many refs, searchable without a full read.

    3f2a…64 hex digits… refs/heads/main
    …

Rule: a line for each tip, sorted by the name of its ref. The file is named by its hash, which is checked when all
of it is read. A look-up reads only a few lines; unreadable content counts as empty.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.files import read_file, replace_file
from trace_store.oid import HEX_CHARACTERS, ObjectId, digest
from trace_store.ref_names import MAXIMUM_NAME_BYTES, is_ref_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trace_store.files import Disk
    from trace_store.layout import Layout

    Tips = tuple[ObjectId, ...]

NAME_CHARACTERS = 32
_SPAN = 8192
_LINES = 2 * (HEX_CHARACTERS + MAXIMUM_NAME_BYTES + 2)
"""Any range of this many bytes contains a complete line, unless the file ends first."""


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

"""What this working copy has published: the file `local/published`.

    sealed 7 9c0e…32 hex digits…
    refs 1
    3f2a…64 hex digits… refs/heads/main
    …

Rule: the file says up to which number the journals of each line are sealed, the newest line last, how many refs
follow, and which tips this working copy last wrote to, or accepted from, the files of each ref. The first line of a
ref is this working copy's own tip. It is replaced as a whole, last of all when sealing; an absent or unreadable one
says nothing.
"""

from __future__ import annotations

from trace_store.errors import InvalidInputError
from trace_store.files import read_file, replace_file
from trace_store.journal.frames import LINE_BYTES
from trace_store.oid import ObjectId
from trace_store.ref_names import is_ref_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trace_store.files import Disk
    from trace_store.layout import Layout

MAXIMUM_LINES = 64
"""A line of journals ends only when one goes missing or is damaged, so there are few."""


class Published:
    """One state of the file.

    Attributes:
        sealed: per line of journals the number of the newest that is sealed, the newest line last.
        tips: per ref the tips last written or accepted, own tip first.
        damaged: the file is there but cannot be read.
        stamp: changes whenever the file does.
    """

    __slots__ = ("damaged", "sealed", "stamp", "tips")

    def __init__(
        self,
        sealed: Mapping[bytes, int] | None = None,
        tips: Mapping[str, tuple[ObjectId, ...]] | None = None,
        *,
        stamp: object = None,
        damaged: bool = False,
    ) -> None:
        self.sealed = dict(sealed) if sealed else {}
        self.tips = dict(tips) if tips else {}
        self.stamp = stamp
        self.damaged = damaged

    def covers(self, line: bytes, number: int) -> bool:
        """Tell whether this journal is sealed."""
        return number <= self.sealed.get(line, 0)


def stamp_of(disk: Disk, path: str) -> object:
    """Return a value that differs once the file is replaced; None when it is absent."""
    found = disk.stat(path)
    return None if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def load(disk: Disk, path: str, known: Published) -> Published:
    """Return the present state, which is `known` itself when the file has not changed since."""
    stamp = stamp_of(disk, path)
    if stamp == known.stamp:
        return known
    data = read_file(disk, path)
    if data is None:
        return Published()
    try:
        sealed, tips = _parse(data)
    except (ValueError, InvalidInputError):
        return Published(stamp=stamp, damaged=True)
    return Published(sealed, tips, stamp=stamp)


def save(
    disk: Disk,
    layout: Layout,
    sealed: Mapping[bytes, int],
    tips: Mapping[str, Sequence[ObjectId]],
) -> None:
    """Replace the file, durably. Of the lines of journals the newest are kept."""
    lines = [f"sealed {sealed[line]} {line.hex()}\n" for line in list(sealed)[-MAXIMUM_LINES:]]
    lines.append(f"refs {len(tips)}\n")
    lines += [f"{oid} {name}\n" for name in sorted(tips) for oid in tips[name]]
    data = "".join(lines).encode("ascii")
    replace_file(disk, layout.published_file, data, scratch=layout.tmp_dir)


def _parse(data: bytes) -> tuple[dict[bytes, int], dict[str, tuple[ObjectId, ...]]]:
    lines = data.decode("ascii").splitlines()
    sealed: dict[bytes, int] = {}
    place = 0
    while place < len(lines) and lines[place].startswith("sealed "):
        number, _, line = lines[place][7:].partition(" ")
        sealed[bytes.fromhex(line)] = int(number)
        place += 1
    if any(len(line) != LINE_BYTES for line in sealed):
        raise ValueError("not the id of a line of journals")
    tips: dict[str, tuple[ObjectId, ...]] = {}
    for text in lines[place + 1 :]:
        hexadecimal, _, name = text.partition(" ")
        if not is_ref_name(name):  # it becomes a path
            raise ValueError("not a ref name")
        tips[name] = (*tips.get(name, ()), ObjectId.parse(hexadecimal))
    if lines[place:][:1] != [f"refs {len(tips)}"]:
        raise ValueError("it does not hold as many refs as it says")
    return sealed, tips

"""What this working copy has published: the file `local/published`.

    sealed 7
    3f2a…64 hex digits… refs/heads/main
    …

Rule: the file says up to which journal everything is sealed, and which tips this working copy last wrote to, or
accepted from, the files of each ref. The first line of a ref is this working copy's own tip. It is replaced as a
whole, last of all when sealing; an absent or unreadable one says nothing.
"""

from __future__ import annotations

from trace_store.errors import InvalidInputError
from trace_store.files import read_file, replace_file
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trace_store.files import Disk
    from trace_store.layout import Layout


class Published:
    """One state of the file.

    Attributes:
        sealed: the number of the newest journal that is sealed; 0 when none is.
        tips: per ref the tips last written or accepted, own tip first.
        damaged: the file is there but cannot be read.
        stamp: changes whenever the file does.
    """

    __slots__ = ("damaged", "sealed", "stamp", "tips")

    def __init__(
        self,
        sealed: int = 0,
        tips: Mapping[str, tuple[ObjectId, ...]] | None = None,
        *,
        stamp: object = None,
        damaged: bool = False,
    ) -> None:
        self.sealed = sealed
        self.tips = dict(tips) if tips else {}
        self.stamp = stamp
        self.damaged = damaged


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


def save(disk: Disk, layout: Layout, sealed: int, tips: Mapping[str, Sequence[ObjectId]]) -> None:
    """Replace the file, durably."""
    lines = [f"sealed {sealed}\n"]
    lines += [f"{oid} {name}\n" for name in sorted(tips) for oid in tips[name]]
    data = "".join(lines).encode("ascii")
    replace_file(disk, layout.published_file, data, scratch=layout.tmp_dir)


def _parse(data: bytes) -> tuple[int, dict[str, tuple[ObjectId, ...]]]:
    lines = data.decode("ascii").splitlines()
    if not lines or not lines[0].startswith("sealed "):
        raise ValueError("the first line does not say what is sealed")
    tips: dict[str, tuple[ObjectId, ...]] = {}
    for line in lines[1:]:
        hexadecimal, _, name = line.partition(" ")
        tips[name] = (*tips.get(name, ()), ObjectId.parse(hexadecimal))
    return int(lines[0][7:]), tips

"""Trusted repositories: those of other users, or above the home folder.

    1000 /srv/shared/.trace
    1000 /srv/team/*

Rule: the list is the user's own file, outside every repository. Each line has the id of the directory's owner at the
time it was trusted, and its real path; `*` means every repository below a folder with the same owner. Nothing else
grants trust: no repository setting, variable or parent folder. If another user replaces a trusted repository, the new
one is not trusted.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.files import make_durable_directory, read_file, replace_file
from trace_store.frozen import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.environment import Environment
    from trace_store.files import Disk

NAME = "trusted"
MAXIMUM_BYTES = 1 << 20
_WRITABLE_BY_OTHERS = 0o022


@value
class Trusted:
    """One entry of the list.

    Attributes:
        path: the real path of a `.trace` directory, or of a folder when `below`.
        owner: the id of its owner when it was trusted; -1 on systems without user ids.
        below: whether the entry covers every repository below that folder with the same owner.
    """

    path: str
    owner: int
    below: bool = False

    def covers(self, path: str, owner: int) -> bool:
        """Return True if the entry covers a `.trace` directory, by real path and owner."""
        if owner != self.owner:
            return False
        return path.startswith(os.path.join(self.path, "")) if self.below else path == self.path


def trusted(disk: Disk, environment: Environment) -> list[Trusted]:
    """Return the entries of the list in order; none without a settings folder.

    Raises:
        StateError: others can write to the list.
        StorageError: the list cannot be read.
    """
    if not environment.config_dir:
        return []
    path = environment.settings_file(NAME)
    found = disk.stat(path)
    if found is None:
        return []
    own = environment.user_ids
    if own is not None and (found.st_uid not in own or found.st_mode & _WRITABLE_BY_OTHERS):
        raise errors.StateError(
            f"others can write to the list of what you trust: {path}",
            path=path,
        )
    data = read_file(disk, path, limit=MAXIMUM_BYTES) or b""
    return [each for line in data.split(b"\n") if (each := _read(line)) is not None]


def trust(disk: Disk, environment: Environment, path: str, *, below: bool = False) -> Trusted:
    """Trust a repository, and return the new entry.

    Args:
        disk: the disk.
        environment: has the path of the user's settings.
        path: a `.trace` directory; with `below`, a folder.
        below: whether to trust every repository below the folder with the same owner.

    Raises:
        InvalidInputError: its path contains a line break.
        NotFoundError: there is no such directory.
        StateError: as `trusted`, or there is no settings folder.
        StorageError: the disk failed.
    """
    made = Trusted(os.path.realpath(path), _owner(disk, path), below)
    if "\n" in made.path or "\r" in made.path:
        raise errors.InvalidInputError(
            "a path that contains a line break cannot be trusted", path=path
        )
    known = trusted(disk, environment)
    if made not in known:
        _write(disk, environment, [*known, made])
    return made


def distrust(disk: Disk, environment: Environment, path: str) -> list[Trusted]:
    """Remove a directory or folder from the list; return the removed entries.

    Raises:
        StateError, StorageError: as `trust`.
    """
    real = os.path.realpath(path)
    known = trusted(disk, environment)
    gone = [each for each in known if each.path == real]
    if gone:
        _write(disk, environment, [each for each in known if each.path != real])
    return gone


def check_trusted(disk: Disk, environment: Environment, path: str, what: str) -> None:
    """Check that the user trusts a `.trace` directory.

    Raises:
        UntrustedRepositoryError: it is not trusted.
        StateError, StorageError: as `trusted`.
    """
    real, owner = os.path.realpath(path), _owner(disk, path)
    if any(each.covers(real, owner) for each in trusted(disk, environment)):
        return
    raise errors.UntrustedRepositoryError(
        f"{path} {what}, and is not trusted",
        path=path,
        owner=owner,
    )


def _owner(disk: Disk, path: str) -> int:
    found = disk.stat(os.path.realpath(path))
    if found is None:
        raise errors.NotFoundError(f"there is no folder {path}", path=path)
    return found.st_uid if hasattr(os, "geteuid") else -1


def _read(line: bytes) -> Trusted | None:
    owner, _, path = line.decode("utf-8", "surrogateescape").partition(" ")
    if not owner.removeprefix("-").isdecimal() or not os.path.isabs(path):
        return None  # a comment or an empty line
    folder, star = os.path.split(path)
    return Trusted(folder, int(owner), True) if star == "*" else Trusted(path, int(owner))


def _write(disk: Disk, environment: Environment, all_: list[Trusted]) -> None:
    lines = [
        f"{each.owner} {os.path.join(each.path, '*') if each.below else each.path}\n"
        for each in all_
    ]
    data = "".join(lines).encode("utf-8", "surrogateescape")
    path = environment.settings_file(NAME)
    make_durable_directory(disk, os.path.dirname(path))
    replace_file(disk, path, data, private=True)

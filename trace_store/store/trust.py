"""Which repositories of others, or above the home folder, the user trusts.

    1000 /srv/shared/.trace
    1000 /srv/team/*

Rule: the list is the user's own file, outside every repository, one a line: the id of whoever owned the directory when
it was trusted, and its real path; with `*` also every repository below a folder, of the same owner. Nothing else
counts: no setting of a repository, no variable, no folder above. A repository that another user puts in the place of
a trusted one is not trusted.
"""

from __future__ import annotations

import os

from trace_store import errors, user_files
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
    """What is trusted.

    Attributes:
        path: the real path of a `.trace` directory, or of a folder when `below`.
        owner: whose it was when it was trusted; -1 where the system has no such ids.
        below: whether every repository below that folder is meant, of the same owner.
    """

    path: str
    owner: int
    below: bool = False

    def covers(self, path: str, owner: int) -> bool:
        """Tell whether a `.trace` directory, by its real path and its owner, is meant."""
        if owner != self.owner:
            return False
        return path.startswith(os.path.join(self.path, "")) if self.below else path == self.path


def trusted(disk: Disk, environment: Environment) -> list[Trusted]:
    """Return what the user trusts, in the order in which it was said; nothing without a folder for settings.

    Raises:
        StateError: others can write to the list.
        StorageError: the list cannot be read.
    """
    if not environment.config_dir:
        return []
    path = user_files.settings_file(environment, NAME)
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
    """Note that a repository is trusted, and return what was noted.

    Args:
        disk: where it lies.
        environment: says where the user's settings are.
        path: a `.trace` directory; when `below`, a folder.
        below: whether every repository below the folder is meant that belongs to the same user.

    Raises:
        InvalidInputError: its path cannot stand on a line.
        NotFoundError: there is no such directory.
        StateError: as `trusted`, or there is no folder for settings.
        StorageError: the disk refuses.
    """
    made = Trusted(os.path.realpath(path), _owner(disk, path), below)
    if "\n" in made.path or "\r" in made.path:
        raise errors.InvalidInputError("a path with a line end in it cannot be trusted", path=path)
    known = trusted(disk, environment)
    if made not in known:
        _write(disk, environment, [*known, made])
    return made


def distrust(disk: Disk, environment: Environment, path: str) -> list[Trusted]:
    """Take a directory, or a folder and what is below it, off the list; return what was taken off.

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
    """Accept a `.trace` directory that the user trusts.

    Raises:
        UntrustedRepositoryError: the user does not.
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
        return None  # a remark, or nothing
    folder, star = os.path.split(path)
    return Trusted(folder, int(owner), True) if star == "*" else Trusted(path, int(owner))


def _write(disk: Disk, environment: Environment, all_: list[Trusted]) -> None:
    lines = [
        f"{each.owner} {os.path.join(each.path, '*') if each.below else each.path}\n"
        for each in all_
    ]
    data = "".join(lines).encode("utf-8", "surrogateescape")
    path = user_files.settings_file(environment, NAME)
    make_durable_directory(disk, os.path.dirname(path))
    replace_file(disk, path, data, private=True)

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
from builtins import list as List  # the method `list` hides it  # noqa: N812
from collections.abc import Iterable
from typing import TypeAlias

from trace_store import errors
from trace_store.base import check
from trace_store.base.environment import Environment
from trace_store.base.frozen import value
from trace_store.disk.files import Disk, make_durable_directory, read_file, replace_file
from trace_store.disk.layout import DIRECTORY_NAME
from trace_store.store import discovery

Path: TypeAlias = str | os.PathLike[str]

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


class Trust:
    """The user's list of trusted repositories.

    All methods raise StateError if other users can write to the list, or if there is no settings folder for it, and
    StorageError if the disk fails.
    """

    def __init__(
        self,
        environment: Environment | None = None,
        *,
        disk: Disk | None = None,
        name: str = NAME,
    ) -> None:
        """Use the settings folder of an environment; that of the process if none is given.

        `name` is the file name of another list with the same rules.
        """
        self._environment = environment or Environment.read()
        self._disk = disk or Disk()
        self._name = name

    def list(self) -> List[Trusted]:
        """Return the entries, in order; none without a settings folder."""
        environment = self._environment
        if not environment.config_dir:
            return []
        path = environment.settings_file(self._name)
        found = self._disk.stat(path)
        if found is None:
            return []
        own = environment.user_ids
        if own is not None and (found.st_uid not in own or found.st_mode & _WRITABLE_BY_OTHERS):
            raise errors.StateError(
                f"other users can write to your list of repositories: {path}",
                path=path,
            )
        data = read_file(self._disk, path, limit=MAXIMUM_BYTES) or b""
        return [each for line in data.split(b"\n") if (each := _read(line)) is not None]

    def covers(self, directory: Path) -> bool:
        """Return True if the list has a `.trace` directory, by its real path and owner.

        Raises:
            NotFoundError: there is no such directory.
        """
        real, owner = os.path.realpath(directory), _owner(self._disk, os.fspath(directory))
        return any(each.covers(real, owner) for each in self.list())

    def add(self, path: Path = ".", *, directory: Path | None = None) -> Trusted:
        """Trust the repository in a folder or the nearest folder above it, and return the entry.

        Args:
            path: the folder.
            directory: the `.trace` directory, or a folder that holds one.

        Raises:
            RepositoryNotFoundError: there is none.
            InvalidInputError: its path contains a line break.
        """
        check.path(path=path, directory="" if directory is None else directory)
        named = None if directory is None else os.fspath(directory)
        return self._add(
            discovery.find(
                os.fspath(path), self._environment, explicit=named, disk=self._disk, trusting=True
            ),
            below=False,
        )

    def add_below(self, folder: Path) -> Trusted:
        """Trust every repository below a folder that belongs to the folder's owner, and return the entry.

        Raises:
            NotFoundError: there is no such folder.
            InvalidInputError: its path contains a line break.
        """
        check.path(folder=folder)
        return self._add(os.fspath(folder), below=True)

    def _add(self, path: str, *, below: bool) -> Trusted:
        added = Trusted(os.path.realpath(path), _owner(self._disk, path), below)
        if "\n" in added.path or "\r" in added.path:
            raise errors.InvalidInputError(
                "a path that contains a line break cannot be trusted", path=path
            )
        known = self.list()
        if added not in known:
            self._write([*known, added])
        return added

    def remove(self, path: Path) -> List[Trusted]:
        """Remove the entries of a folder, and of a repository in it, and return them."""
        check.path(path=path)
        places = {os.path.realpath(each) for each in (path, os.path.join(path, DIRECTORY_NAME))}
        known = self.list()
        gone = [each for each in known if each.path in places]
        if gone:
            self._write([each for each in known if each.path not in places])
        return gone

    def _write(self, entries: Iterable[Trusted]) -> None:
        lines = [
            f"{each.owner} {os.path.join(each.path, '*') if each.below else each.path}\n"
            for each in entries
        ]
        data = "".join(lines).encode("utf-8", "surrogateescape")
        path = self._environment.settings_file(self._name)
        make_durable_directory(self._disk, os.path.dirname(path))
        replace_file(self._disk, path, data, private=True)


def check_trusted(disk: Disk, environment: Environment, path: str, what: str) -> None:
    """Check that the user trusts a `.trace` directory.

    Raises:
        UntrustedRepositoryError: it is not trusted.
        StateError, StorageError: as `Trust`.
    """
    if Trust(environment, disk=disk).covers(path):
        return
    raise errors.UntrustedRepositoryError(
        f"{path} {what}, and is not trusted",
        path=path,
        owner=_owner(disk, path),
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

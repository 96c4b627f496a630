"""Repositories of other users, or above the home folder, that the user allows to be opened."""

from __future__ import annotations

import os

from trace_store import check, store
from trace_store.environment import Environment
from trace_store.files import Disk
from trace_store.layout import DIRECTORY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # the method `list` hides it  # noqa: N812
    from typing import TypeAlias

    from trace_store.store.trust import Trusted

    Path: TypeAlias = str | os.PathLike[str]


class Trust:
    """The user's list of trusted repositories, which is outside every repository.

    An entry holds for a path and its owner of that time, and for nothing below it. All methods raise StateError if
    others can write to the list, or if there is no settings folder for it.
    """

    def __init__(self, environment: Environment | None = None) -> None:
        """Use the settings folder of an environment; that of the process if none is given."""
        self._environment = environment or Environment.read()

    def list(self) -> List[Trusted]:
        """Return the entries, in order."""
        return store.trust.trusted(Disk(), self._environment)

    def add(self, path: Path = ".", *, directory: Path | None = None) -> Trusted:
        """Trust the repository in a folder or the nearest folder above it.

        Args:
            path: the folder.
            directory: the `.trace` directory, or a folder that holds one.

        Raises:
            RepositoryNotFoundError: there is none.
        """
        check.path(path=path, directory="" if directory is None else directory)
        named = None if directory is None else os.fspath(directory)
        found = store.discovery.find(
            os.fspath(path), self._environment, explicit=named, trusting=True
        )
        return store.trust.trust(Disk(), self._environment, found)

    def add_below(self, folder: Path) -> Trusted:
        """Trust every repository below a folder that belongs to the folder's owner.

        Raises:
            NotFoundError: there is no such folder.
        """
        check.path(folder=folder)
        return store.trust.trust(Disk(), self._environment, os.fspath(folder), below=True)

    def remove(self, path: Path) -> List[Trusted]:
        """Remove the entries of a folder, and of a repository in it, and return them."""
        check.path(path=path)
        disk, place = Disk(), os.fspath(path)
        gone = store.trust.distrust(disk, self._environment, place)
        return gone + store.trust.distrust(
            disk, self._environment, os.path.join(place, DIRECTORY_NAME)
        )

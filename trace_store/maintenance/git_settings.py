"""What the user's git is told to do with the files of a repository, read from its files; no program is run.

It is for advice: of the many places where git takes settings from, those are read that people use.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.files import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.environment import Environment
    from trace_store.files import Disk

_MOST_READ = 1 << 20
_CONVERTING = ("filter=", "text", "eol=", "working-tree-encoding=", "crlf")


def find_git(disk: Disk, folder: str) -> str | None:
    """Return the `.git` directory of the work tree that a folder lies in; None when it lies in none."""
    while True:
        git = os.path.join(folder, ".git")
        if disk.stat(git) is not None:
            return git
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


class GitSettings:
    """The settings that apply to one work tree."""

    __slots__ = ("_disk", "_environment", "_git")

    def __init__(self, disk: Disk, git: str, environment: Environment) -> None:
        self._disk = disk
        self._git = git
        self._environment = environment

    def converts_line_ends(self) -> bool:
        """Tell whether `core.autocrlf` is set to anything but false; what is nearer to the work tree wins."""
        value = ""
        for path in self._files("config"):
            section = ""
            for line in self._lines(path):
                if line.startswith("["):
                    section = line.strip("[] ").lower()
                key, _, given = line.partition("=")
                if section == "core" and key.strip().lower() == "autocrlf":
                    value = given.strip().lower()
        return value in ("true", "input", "yes", "on", "1")

    def filters(self, folder: str, name: str) -> Iterator[tuple[str, str]]:
        """Yield (file, line) of attributes that may let git convert files of a directory, or keep them elsewhere."""
        info = os.path.join(self._git, "info", "attributes")
        for path in (*self._between(folder, ".gitattributes"), info, *self._files("attributes")):
            for line in self._lines(path):
                pattern, *attributes = line.split()
                converting = [a for a in attributes if a.startswith(_CONVERTING)]
                is_filter = any(a.startswith("filter=") for a in converting)
                if converting and (_means(pattern, name) or (is_filter and _means_packs(pattern))):
                    yield path, line

    def ignoring(self, folder: str, name: str) -> Iterator[tuple[str, str]]:
        """Yield (file, line) of patterns that let git pass over a directory."""
        exclude = os.path.join(self._git, "info", "exclude")
        for path in (*self._between(folder, ".gitignore"), exclude, *self._files("ignore")):
            for line in self._lines(path):
                if not line.startswith("!") and _means(line, name):
                    yield path, line

    def _files(self, name: str) -> list[str]:
        """Return the user's own file of this name, and for settings the work tree's, the nearest last."""
        own = [os.path.join(self._environment.config_dir, "git", name)]
        if name == "config":
            own += [os.path.join(self._environment.home, ".gitconfig")]
            own += [os.path.join(self._git, "config")]
        return own

    def _between(self, folder: str, name: str) -> list[str]:
        """Return the files of this name from the work tree's top down to a folder."""
        top = os.path.dirname(self._git)
        found = [os.path.join(folder, name)]
        while folder != top and len(folder) > len(top):
            folder = os.path.dirname(folder)
            found.append(os.path.join(folder, name))
        return found[::-1]

    def _lines(self, path: str) -> Iterator[str]:
        try:
            data = read_file(self._disk, path, limit=_MOST_READ) or b""
        except errors.StorageError:
            return
        for line in data.decode("utf-8", "replace").splitlines():
            text = line.strip()
            if text and text[0] not in "#;":
                yield text


def _means(pattern: str, name: str) -> bool:
    """Tell whether a pattern plainly means a directory of this name, or everything in it."""
    plain = pattern.strip("/")
    for end in ("/**", "/*"):
        plain = plain.removesuffix(end)
    return plain.rpartition("/")[2] in (name, "*", "**", ".*")


def _means_packs(pattern: str) -> bool:
    return pattern.rpartition("/")[2] in ("*.pack", "*.idx")

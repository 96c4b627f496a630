"""What the user's git is told to do with the files of a repository, read from its files; no program is run.

It is for advice: of the many places where git takes settings from, those are read that people use.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.files import Disk, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.environment import Environment

_MOST_READ = 1 << 20
_CONVERTING = ("filter", "ident", "text", "eol", "working-tree-encoding", "export-subst")
_SAME = {"binary": "-text", "crlf": "text", "-crlf": "-text"}
"""Attributes that say the same as another."""
_CARRIED = ("config", "objects/ab/cdef", "objects/pack/ab.pack", "refs/heads/main/ab")
"""One path of each kind that git carries, to try patterns on."""


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


def core_pager(environment: Environment) -> str:
    """Return the pager that the user's own settings of git name; "" for none.

    Those of a work tree are not asked: it may be a stranger's, and is to start no program.
    """
    return GitSettings(Disk(), "", environment).core("pager")


class GitSettings:
    """The settings that apply to one work tree; with no work tree, the user's own."""

    __slots__ = ("_disk", "_environment", "_git")

    def __init__(self, disk: Disk, git: str, environment: Environment) -> None:
        self._disk = disk
        self._git = git
        self._environment = environment

    def converts_line_ends(self) -> bool:
        """Tell whether `core.autocrlf` is set to anything but false; what is nearer to the work tree wins."""
        return self.core("autocrlf").lower() in ("true", "input", "yes", "on", "1")

    def core(self, wanted: str) -> str:
        """Return the value of a setting `core.…`; "" where it has none."""
        value = ""
        for path in self._files("config"):
            section = ""
            for line in self._lines(path):
                if line.startswith("["):
                    section = line.strip("[] ").lower()
                key, _, given = line.partition("=")
                if section == "core" and key.strip().lower() == wanted:
                    value = given.strip().strip('"')
        return value

    def filters(self, root: str) -> list[tuple[str, str]]:
        """Return (file, line) of the attributes that let git convert files of a repository, or keep them elsewhere.

        The last line that matches a file decides, as in git: the `.gitattributes` of the repository wins over those of
        folders above, and `.git/info/attributes` over all.

        Args:
            root: the repository's directory.
        """
        top, own = os.path.dirname(self._git), os.path.join(root, ".gitattributes")
        inner = [
            os.path.join(root, n, ".gitattributes") for n in ("refs", "objects", "objects/pack")
        ]
        above = self._between(os.path.dirname(root), ".gitattributes")
        places = [(path, top) for path in self._files("attributes")]
        places += [(path, os.path.dirname(path)) for path in (*above, own, *inner)]
        places.append((os.path.join(self._git, "info", "attributes"), top))
        lines = [
            (path, folder, line, line.split())
            for path, folder in places
            for line in self._lines(path)
        ]
        found: dict[tuple[str, str], None] = {}
        for file in (os.path.join(root, name) for name in _CARRIED):
            told: dict[str, tuple[str, str, str]] = {}
            for path, folder, line, (pattern, *attributes) in lines:
                if not _matches(pattern, file, folder):
                    continue
                for each in (_SAME.get(each, each) for each in attributes):
                    name, _, value = each.lstrip("-!").partition("=")
                    told[name] = ("-" if each[0] in "-!" else value or "set", path, line)
            if told.get("text", ("", "", ""))[0] == "-":
                told.pop("eol", None)  # it counts for text alone
            for name in _CONVERTING:
                value, path, line = told.get(name, ("-", "", ""))
                if value != "-":
                    found[path, line] = None
        return list(found)

    def ignoring(self, root: str) -> list[tuple[str, str]]:
        """Return (file, line) of the patterns that let git pass over a directory; a later `!` takes them back.

        Patterns for what is in the directory do no harm: its own `.gitignore` wins over them.
        """
        top = os.path.dirname(self._git)
        places = [(path, top) for path in self._files("ignore")]
        places.append((os.path.join(self._git, "info", "exclude"), top))
        above = self._between(os.path.dirname(root), ".gitignore")
        places += [(path, os.path.dirname(path)) for path in above]
        found: list[tuple[str, str]] = []
        for path, folder in places:
            for line in self._lines(path):
                if _matches(line.removeprefix("!").rstrip("/"), root, folder):
                    found = [] if line.startswith("!") else [*found, (path, line)]
        return found

    def _files(self, name: str) -> list[str]:
        """Return the user's own file of this name, and for settings the work tree's, the nearest last."""
        own = [os.path.join(self._environment.config_dir, "git", name)]
        if name == "config":
            own += [os.path.join(self._environment.home, ".gitconfig")]
            own += [os.path.join(self._git, "config")] if self._git else []
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


def _matches(pattern: str, file: str, folder: str) -> bool:
    """Tell whether a pattern, which counts in a folder, may mean a file."""
    from fnmatch import fnmatchcase  # it loads slowly, and every seal runs this

    if not file.startswith(os.path.join(folder, "")):
        return False
    if "/" not in pattern:
        return fnmatchcase(os.path.basename(file), pattern)
    name = os.path.relpath(file, folder).replace(os.sep, "/")
    plain = pattern.removeprefix("/")
    return fnmatchcase(name, plain) or fnmatchcase(name, plain.removeprefix("**/"))

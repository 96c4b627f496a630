"""Git settings that affect a repository's files, read without running git.

For advice only: the common locations of settings are read, not all.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.files import Disk, read_file
from trace_store.refs.summary import git_dir_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.environment import Environment

_MAXIMUM_READ_BYTES = 1 << 20
_CONVERTING = ("filter", "ident", "text", "eol", "working-tree-encoding", "export-subst")
_SYNONYMS = {"binary": "-text", "crlf": "text", "-crlf": "-text"}
"""Attributes that are synonyms of others."""
_TRACKED_SAMPLES = ("config", "objects/ab/cdef", "objects/pack/ab.pack", "refs/heads/main/ab")
"""Sample paths of each kind that git tracks, to match patterns against."""


def core_pager(environment: Environment) -> str:
    """Return the pager from the user's own git settings, or "".

    Work tree settings are ignored: a foreign repository must not start programs.
    """
    return GitSettings(Disk(), "", environment).core("pager")


class GitSettings:
    """Settings of the work tree with this `.git`; without one, the user's own."""

    __slots__ = ("_disk", "_environment", "_git", "_top")

    def __init__(self, disk: Disk, git: str, environment: Environment) -> None:
        self._disk = disk
        self._top = os.path.dirname(git)
        self._git = _shared_directory(disk, git) if git else ""
        self._environment = environment

    def converts_line_ends(self) -> bool:
        """Return True if `core.autocrlf` converts line ends; later files take precedence."""
        return self.core("autocrlf").lower() in ("true", "input", "yes", "on", "1")

    def core(self, wanted: str) -> str:
        """Return the value of a `core.` setting, or ""."""
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
        """Return (file, line) of attributes that let git convert the repository's files.

        As in git, the last matching line wins: the repository's `.gitattributes` over those of parent folders,
        `.git/info/attributes` over all.

        Args:
            root: the repository's directory.
        """
        top, own = self._top, os.path.join(root, ".gitattributes")
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
        converting: dict[tuple[str, str], None] = {}
        for file in (os.path.join(root, name) for name in _TRACKED_SAMPLES):
            values: dict[str, tuple[str, str, str]] = {}
            for path, folder, line, (pattern, *attributes) in lines:
                if not _matches(pattern, file, folder):
                    continue
                for each in (_SYNONYMS.get(each, each) for each in attributes):
                    name, _, value = each.lstrip("-!").partition("=")
                    values[name] = ("-" if each[0] in "-!" else value or "set", path, line)
            if values.get("text", ("", "", ""))[0] == "-":
                values.pop("eol", None)  # eol requires text
            for name in _CONVERTING:
                value, path, line = values.get(name, ("-", "", ""))
                if value != "-":
                    converting[path, line] = None
        return list(converting)

    def ignoring(self, root: str) -> list[tuple[str, str]]:
        """Return (file, line) of patterns that make git ignore a directory.

        Patterns for its content do not matter: its own `.gitignore` takes precedence.
        """
        places = [(path, self._top) for path in self._files("ignore")]
        places.append((os.path.join(self._git, "info", "exclude"), self._top))
        above = self._between(os.path.dirname(root), ".gitignore")
        places += [(path, os.path.dirname(path)) for path in above]
        patterns: list[tuple[str, str]] = []
        for path, folder in places:
            for line in self._lines(path):
                if _matches(line.removeprefix("!").rstrip("/"), root, folder):
                    patterns = [] if line.startswith("!") else [*patterns, (path, line)]
        return patterns

    def _files(self, name: str) -> list[str]:
        """Return git's settings files of this name, the last with precedence."""
        own = [os.path.join(self._environment.config_dir, "git", name)]
        if name == "config":
            own += [os.path.join(self._environment.home, ".gitconfig")]
            own += [os.path.join(self._git, "config")] if self._git else []
        return own

    def _between(self, folder: str, name: str) -> list[str]:
        """Return the files of this name from the top of the work tree down to a folder."""
        paths = [os.path.join(folder, name)]
        while folder != self._top and len(folder) > len(self._top):
            folder = os.path.dirname(folder)
            paths.append(os.path.join(folder, name))
        return paths[::-1]

    def _lines(self, path: str) -> Iterator[str]:
        try:
            data = read_file(self._disk, path, limit=_MAXIMUM_READ_BYTES) or b""
        except errors.StorageError:
            return
        for line in data.decode("utf-8", "replace").splitlines():
            text = line.strip()
            if text and text[0] not in "#;":
                yield text


def _shared_directory(disk: Disk, git: str) -> str:
    """Return the directory with the settings of a work tree; linked work trees share the main one's."""
    try:
        own = git_dir_of(disk, git)
        shared = read_file(disk, os.path.join(own, "commondir"), limit=_MAXIMUM_READ_BYTES) or b""
    except errors.StorageError:
        return git
    return os.path.join(own, os.fsdecode(shared.strip(b"\r\n")))


def _matches(pattern: str, file: str, folder: str) -> bool:
    """Return True if a pattern in a folder may match a file."""
    from fnmatch import fnmatchcase  # slow to import, and a pager needs no patterns

    if not file.startswith(os.path.join(folder, "")):
        return False
    if "/" not in pattern:
        return fnmatchcase(os.path.basename(file), pattern)
    name = os.path.relpath(file, folder).replace(os.sep, "/")
    plain = pattern.removeprefix("/")
    return fnmatchcase(name, plain) or fnmatchcase(name, plain.removeprefix("**/"))

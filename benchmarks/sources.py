"""Source text that every machine with Python has: the standard library and the installed packages.

Rule: files are found in one order everywhere, so that the same files and the same seed give the same transcript.
"""

from __future__ import annotations

import functools
import hashlib
import os
import random
import re
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

SMALLEST_FILE_BYTES = 4_000
LARGEST_FILE_BYTES = 200_000
SMALLEST_GROUP, LARGEST_GROUP = 20, 40

_DOCSTRING = re.compile(r'"""(.{80,4000}?)"""', re.DOTALL)
_NAME = re.compile(r"^\s*(?:async def|def|class) (\w{3,})", re.MULTILINE)
_SECRET = re.compile("auth|cred|key|pass|secret|token", re.IGNORECASE)
"""Names that say so are left out: a random id that a log prints beside one would be replaced as a secret."""


@dataclass(frozen=True)
class SourceFile:
    """One file: its path as a transcript shows it, and the path on this machine."""

    name: str
    path: str
    size_bytes: int

    @functools.cached_property
    def text(self) -> str:
        """Its text; of a file that is not UTF-8, the decodable part."""
        with open(self.path, encoding="utf-8", errors="replace") as file:
            return file.read().replace("\0", "")


@dataclass
class Group:
    """Related files, as one works on within one session."""

    files: list[SourceFile]
    prose: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, files: Sequence[SourceFile]) -> Group:
        """Read the files, and gather their docstrings and the names that they define."""
        texts = [SourceFile(f.name, f.path, f.size_bytes) for f in files]
        group = cls(texts)
        for file in texts:
            group.prose += [_dedented(found) for found in _DOCSTRING.findall(file.text)]
            group.names += [n for n in _NAME.findall(file.text) if not _SECRET.search(n)]
        group.names = list(dict.fromkeys(group.names))
        group.prose = group.prose or ["Nothing is written about these files."]
        group.names = group.names or ["main"]
        return group


class Corpus:
    """All source files that were found.

    Attributes:
        files: in one order on every machine.
        fingerprint: of the names and sizes of all files; equal fingerprints give equal transcripts.
    """

    def __init__(self, files: Sequence[SourceFile]) -> None:
        self.files = list(files)
        listing = "\n".join(f"{file.name}\t{file.size_bytes}" for file in self.files)
        self.fingerprint = hashlib.sha256(listing.encode()).hexdigest()[:12]

    @classmethod
    def installed(cls) -> Corpus:
        """Find the source text of the running interpreter."""
        paths = sysconfig.get_paths()
        roots = dict.fromkeys(paths[name] for name in ("stdlib", "purelib", "platlib"))
        return cls([file for root in roots for file in _files(root)])

    def groups(self, generator: random.Random) -> Iterator[Group]:
        """Yield groups of related files without end; all files come once before any comes again."""
        if not self.files:
            raise ValueError("no source files were found to make transcripts from")
        while True:
            cut: list[list[SourceFile]] = []
            start = 0
            while start < len(self.files):
                size = generator.randint(SMALLEST_GROUP, LARGEST_GROUP)
                cut.append(self.files[start : start + size])
                start += size
            generator.shuffle(cut)
            yield from map(Group.of, cut)


def _files(root: str) -> Iterator[SourceFile]:
    """Yield the files below one root, by name; tests of the standard library are source text too."""
    for folder, folders, names in os.walk(root):
        if folder == root and "site-packages" in folders:
            folders.remove("site-packages")  # a root of its own
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if not name.endswith(".py"):
                continue
            path = os.path.join(folder, name)
            size = os.path.getsize(path)
            if SMALLEST_FILE_BYTES <= size <= LARGEST_FILE_BYTES:
                shown = os.path.relpath(path, root).replace(os.sep, "/")
                yield SourceFile(shown, path, size)


def _dedented(docstring: str) -> str:
    return "\n".join(line.strip() for line in docstring.strip().splitlines())

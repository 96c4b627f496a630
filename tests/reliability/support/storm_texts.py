"""What a storm writes, and how it is read back: each commit says who wrote it, and each text follows from its number.

Two messages make a commit: `w3 7 12 40` (writer, incarnation, number, body) and the body with that number, which many
commits share. Nothing that is read here is trusted: every object is hashed again, by another way than the library's.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from blake3 import blake3

from trace_store.base.oid import ObjectId
from trace_store.objects.commit import Commit
from trace_store.objects.content import read_content
from trace_store.store.store import Store

BODIES = 48
_SIZES = (5, 60, 700, 3000)
_WORDS = ("plan", "release", "freeze", "tag", "notes", "review", "test", "merge", "öl", "🚀")
RESCUED = "refs/trash/recovered/"


class BadReadError(Exception):
    """A read returned data that was never written."""


class Said(NamedTuple):
    """What the first message of a commit says."""

    writer: str
    incarnation: int
    number: int
    body: int

    def __str__(self) -> str:
        return f"{self.writer} {self.incarnation} {self.number} {self.body}"

    @classmethod
    def parse(cls, text: str) -> Said:
        try:
            writer, *numbers = text.split(" ")
            return cls(writer, *map(int, numbers))
        except (TypeError, ValueError):
            raise BadReadError(f"nobody wrote {text[:80]!r}") from None


@cache
def body_text(number: int) -> str:
    """Return one of the texts that commits share, from thirty characters to twenty thousand."""
    return " ".join(Random(number).choices(_WORDS, k=_SIZES[number % len(_SIZES)]))


def read_said(store: Store, oid: ObjectId) -> tuple[Said, tuple[ObjectId, ...]]:
    """Return a commit's text and its parents, after checking every byte.

    Raises:
        BadReadError: it is not what one writer wrote.
    """

    def read(wanted: bytes) -> bytes:
        data = store.objects.read(wanted)
        if blake3(data).digest() != wanted:
            raise BadReadError(f"wrong bytes for {wanted.hex()}")
        return data

    commit = Commit.decode(read(oid))
    texts: list[str] = []
    for operation in commit.operations:
        for message in operation.fields.get("messages", ()):
            texts += [read_content(part["blob"], read).decode() for part in message["parts"]]
    if len(texts) != 2:
        raise BadReadError(f"{oid} has {len(texts)} messages")
    said = Said.parse(texts[0])
    if str(said) != texts[0] or texts[1] != body_text(said.body):
        raise BadReadError(f"{oid} does not say what {texts[0]!r} wrote")
    return said, commit.parents


class Line:
    """What is known of one branch, oldest first, and how it grows."""

    def __init__(self) -> None:
        self.said: dict[ObjectId, Said] = {}
        self.tip: ObjectId | None = None

    def follow(self, store: Store, tip: ObjectId | None) -> bool:
        """Read new commits up to a tip; return True if the tip continues the line.

        Raises:
            BadReadError: what is new is not what writers wrote.
        """
        before, at = self.tip, tip
        new: dict[ObjectId, Said] = {}
        while at is not None and at != before and at not in new:
            new[at], parents = read_said(store, at)
            at = parents[0] if parents else None
        self.tip = tip
        if at == before:
            self.said.update(reversed(new.items()))
            return True
        self.said = dict(reversed(new.items()))
        return False

    def faults(self) -> list[str]:
        """Return the positions of duplicate or reordered commits of a writer."""
        found: list[str] = []
        last: dict[str, Said] = {}
        for said in self.said.values():
            before = last.get(said.writer)
            if before is not None and (said.incarnation, said.number) <= before[1:3]:
                found.append(f"{said} stands after {before}")
            last[said.writer] = said
        return found


class Logs:
    """Append-only logs outside the repository: acknowledgements, actions, errors."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("acks", "guards"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def add(self, name: str, line: str) -> None:
        """Append a line with one write, so that no kill leaves half of it."""
        fd = os.open(self.folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(fd, (line.replace("\n", " | ") + "\n").encode())
        finally:
            os.close(fd)

    def lines(self, name: str) -> list[str]:
        """Return the complete lines of a log; nothing if it does not exist."""
        path = self.folder / name
        whole, _, _ = (path.read_text() if path.exists() else "").rpartition("\n")
        return whole.splitlines()

    def acknowledged(self, writer: str) -> list[ObjectId]:
        """Return the commits of a writer that were acknowledged, in order."""
        return [ObjectId.parse(line.split()[0]) for line in self.lines(f"acks/{writer}")]

    def guard(self, name: str) -> int:
        """Return a descriptor whose lock says that a process must not be killed now."""
        return os.open(self.folder / "guards" / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

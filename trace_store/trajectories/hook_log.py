"""The log of git's hooks: a line for each commit that was made, and for each that was rewritten.

The hooks write it with a line of shell, so that a commit costs nothing. The next command that records or reads a
trajectory turns its lines into links (`settle`).
"""

from __future__ import annotations

import re

from trace_store.base.frozen import replace, value
from trace_store.disk.files import (
    APPEND,
    PRIVATE,
    TAKEN,
    append_line,
    read_file,
    replace_file,
    take_lines,
)
from trace_store.trajectories.reading import git_branch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trace_store.store.store import Store
    from trace_store.trajectories.git import Git

COMMITTED, AMENDED, REBASED = "commit", "amend", "rebase"
BY_HAND, CONTINUED, BY_REBASE, PICKED = "hand", "continue", "rebase", "pick"
"""Who made a commit: a person, a person and then `rebase --continue`, a rebase alone, or a cherry-pick."""
VARIABLES = ("TRACE_AGENT", "TRACE_TRAJECTORY", "GIT_CHERRY_PICK_HELP", "GIT_REFLOG_ACTION")
_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_FIELDS = 9
_LATER = ".later"
MAXIMUM_LATER = 1000
"""Maximum number of lines that are kept for later."""


@value
class Seen:
    """What a hook saw.

    Attributes:
        what: `commit`, `amend` or `rebase`.
        id: the commit.
        old: the commit that it replaces, or "".
        how: `hand`, `continue`, `rebase` or `pick`.
        ref: the full name of git's branch, or "".
        folder: the top folder of the work tree.
        agent: the value of `TRACE_AGENT`, or "".
        trajectory: the value of `TRACE_TRAJECTORY`, or "".
        stash: the id of the newest stash, or "".
    """

    what: str
    id: str
    old: str
    how: str
    ref: str
    folder: str
    agent: str
    trajectory: str
    stash: str

    @classmethod
    def read(cls, line: str) -> Seen | None:
        """Return what a line says; None if it is damaged."""
        fields = line.split("\t")
        if len(fields) != _FIELDS or fields[0] not in (COMMITTED, AMENDED, REBASED):
            return None
        if not _ID.fullmatch(fields[1]) or not (_ID.fullmatch(fields[2]) or fields[0] == COMMITTED):
            return None
        return cls(*fields)

    def made_in(self, variables: Mapping[str, str]) -> Seen:
        """Return it with what the environment of the hook says."""
        how = BY_REBASE if "GIT_CHERRY_PICK_HELP" in variables else self.how
        if variables.get("GIT_REFLOG_ACTION", "").endswith("(continue)"):
            how = CONTINUED
        agent, trajectory = variables.get("TRACE_AGENT", ""), variables.get("TRACE_TRAJECTORY", "")
        return replace(self, how=how, agent=agent, trajectory=trajectory)

    def line(self) -> str:
        """Return its line."""
        fields = (
            *(self.what, self.id, self.old, self.how, self.ref),
            *(self.folder, self.agent, self.trajectory, self.stash),
        )
        return "\t".join(re.sub(r"[\t\r\n]", " ", each) for each in fields) + "\n"


def seen_by(git: Git, hook: str, arguments: Sequence[str], stdin: str) -> list[Seen]:
    """Return what a hook sees, without what the environment says; raises as `Git.ask`."""
    tree = git.work_tree()
    how = PICKED if git.has_file("CHERRY_PICK_HEAD") else BY_HAND
    stash = git.resolve("refs/stash")
    if hook == "post-commit":
        return [Seen(COMMITTED, tree.head, "", how, tree.branch, tree.top, "", "", stash)]
    what = arguments[0] if arguments else ""
    lines = "".join(
        "\t".join((what, words[1], words[0], how, tree.branch, tree.top, "", "", stash)) + "\n"
        for line in stdin.splitlines()
        if len(words := line.split()) > 1
    )
    return [each for line in lines.splitlines() if (each := Seen.read(line)) is not None]


def add(store: Store, seen: Sequence[Seen]) -> None:
    """Append to the log.

    Raises:
        StorageError: it cannot be written.
    """
    text = "".join(each.line() for each in seen)
    append_line(store.disk, store.layout.seen_file, text.encode("utf-8", "replace"))


def has_lines(store: Store) -> bool:
    """Return True if the log is not empty."""
    path = store.layout.seen_file
    return any(store.disk.exists(path + end) for end in ("", TAKEN)) or _has_later(store)


def _has_later(store: Store) -> bool:
    """Return True if lines were kept for later, and git's branch is another one by now."""
    path = store.layout.seen_file + _LATER
    if not store.disk.exists(path):
        return False
    data = read_file(store.disk, path) or b""
    return data.split(b"\n", 1)[0].decode("utf-8", "replace") != git_branch(store)


def keep_for_later(store: Store, seen: Sequence[Seen]) -> None:
    """Keep lines, and no others, until git's branch is another one: their trajectories are not on this one."""
    if not seen:
        if store.disk.exists(store.layout.seen_file + _LATER):
            store.disk.remove(store.layout.seen_file + _LATER)
        return
    data = git_branch(store) + "\n" + "".join(each.line() for each in seen[-MAXIMUM_LATER:])
    path, scratch = store.layout.seen_file + _LATER, store.layout.tmp_dir
    replace_file(store.disk, path, data.encode("utf-8", "replace"), durable=False, scratch=scratch)


def kept_for_later(store: Store) -> list[Seen]:
    """Return the lines that were kept for later."""
    path = store.layout.seen_file + _LATER
    lines = (read_file(store.disk, path) or b"").decode("utf-8", "replace").splitlines()[1:]
    return [each for line in lines if (each := Seen.read(line)) is not None]


def take(store: Store, act: Callable[[Sequence[Seen]], object]) -> None:
    """Let `act` use the lines of the log, oldest first, and then forget them; another process waits meanwhile.

    Raises:
        StorageError: a file cannot be read or changed.
    """
    disk, path = store.disk, store.layout.seen_file
    disk.make_directory(store.layout.locks_dir)
    lock = disk.open(store.layout.lock_file("seen"), PRIVATE)
    lock = disk.open(store.layout.lock_file("seen"), APPEND) if lock is None else lock
    if lock is None:
        return
    try:
        disk.lock(lock)
        if not any(disk.exists(path + end) for end in (TAKEN, "")):
            act([])
            return
        take_lines(disk, path, lambda lines: act(_parsed(lines)))
    finally:
        disk.close(lock)


def _parsed(lines: Sequence[str]) -> list[Seen]:
    return [each for line in lines if (each := Seen.read(line)) is not None]

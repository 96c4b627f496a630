"""Hooks of git: they link commits to trajectories as they are made.

A hook that is there already is renamed and called by ours, so it stays as it is, whatever language it is in, and comes
back unchanged.

Rule: what runs in a hook never fails a commit. Where no trajectory is meant, or several are, it does nothing.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.files import PROGRAM, Disk, create_file, read_unsized
from trace_store.frozen import value
from trace_store.trajectories.git import TRAILER, Git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.trajectories.handle import Trajectories

POST_COMMIT, POST_REWRITE, MESSAGE = "post-commit", "post-rewrite", "prepare-commit-msg"
KEPT = ".before-trace"
"""Added to the name of a hook that was there before ours."""
MARKER = "# Added by `trace trajectory hook git`; the same with --uninstall removes it."
HOOK_SECONDS = 5.0
CREATED, UPDATED, UNCHANGED, REMOVED = "created", "updated", "unchanged", "removed"
_LONGEST_HOOK = 1 << 20
_SCRIPT = """#!/bin/sh
{marker}
run_trace() {{
    {command} trajectory hook run {hook} "$@" || trace-store trajectory hook run {hook} "$@" || :
}}
before="$0{kept}"
"""
_WITHOUT_INPUT = """run_trace "$@" </dev/null >/dev/null 2>&1
{test} || exec {call} "$@"
"""
_WITH_INPUT = """rewritten=$(cat)
printf '%s\\n' "$rewritten" | run_trace "$@" >/dev/null 2>&1
{test} || printf '%s\\n' "$rewritten" | {call} "$@"
"""


@value
class HookChange:
    """What is done to one hook.

    Attributes:
        path: the hook's file.
        action: `created`, `updated`, `unchanged` or `removed`.
        kept: where the hook that was there is, or was until it came back; "" if there is none.
    """

    path: str
    action: str
    kept: str = ""


def install(
    git: Git, command: Sequence[str], *, trailer: bool = False, dry_run: bool = False
) -> list[HookChange]:
    """Install the hooks, and return what was done; if they are there already, nothing changes.

    Args:
        git: the repository of the code.
        command: the words that run Trace, with an absolute path.
        trailer: whether new commits name the trajectory in their message; if not, that hook is removed.
        dry_run: only return what would be done.

    Raises:
        AlreadyExistsError: another program replaced a hook of ours, whose predecessor is still kept.
        StateError: the folder is in no git repository, or git is not installed.
        StorageError: a file or a folder cannot be changed.
    """
    disk, (folder, is_husky) = Disk(), _folder(git)
    names = [POST_COMMIT, POST_REWRITE, *([MESSAGE] if trailer else ())]
    scripts = {name: _script(name, command, is_husky=is_husky) for name in names}
    steps = [_Step(disk, os.path.join(folder, name)) for name in names]
    for step in steps:
        step.check()
    changes = [step.install(scripts[os.path.basename(step.path)], dry_run) for step in steps]
    if not trailer:
        changes += uninstall(git, dry_run=dry_run, names=(MESSAGE,))
    return changes


def uninstall(
    git: Git,
    *,
    dry_run: bool = False,
    names: Sequence[str] = (POST_COMMIT, POST_REWRITE, MESSAGE),
) -> list[HookChange]:
    """Remove our hooks, put back those that were there before, and return what was done; raises as `install`."""
    folder, _ = _folder(git)
    steps = [_Step(Disk(), os.path.join(folder, name)) for name in names]
    return [change for step in steps if (change := step.uninstall(dry_run)) is not None]


class _Step:
    """One hook's file."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path
        self._kept = path + KEPT
        status = disk.stat(path)
        self._is_there = status is not None
        self._data = b""
        if status is not None and not os.path.islink(path) and os.path.isfile(path):
            self._data = read_unsized(disk, path, _LONGEST_HOOK)
        self._is_ours = MARKER.encode() in self._data.splitlines()[1:2]
        self._has_kept = disk.stat(self._kept) is not None

    def check(self) -> None:
        if self._is_there and not self._is_ours and self._has_kept:
            raise errors.AlreadyExistsError(
                f"another program replaced the hook {self.path}, and {self._kept} still exists",
                code=errors.ErrorCode.HOOK_EXISTS,
                path=self._kept,
            )

    def install(self, script: bytes, dry_run: bool) -> HookChange:
        keeps = self._is_there and not self._is_ours
        kept = self._kept if keeps or self._has_kept else ""
        if self._data == script:
            return HookChange(self.path, UNCHANGED, kept)
        if not dry_run:
            try:
                self._write(script, keeps=keeps)
            except errors.StorageError as error:
                raise errors.StorageError(
                    f"cannot write the hook {self.path}: {error.message}", path=self.path
                ) from error
        return HookChange(self.path, UPDATED if self._is_ours else CREATED, kept)

    def _write(self, script: bytes, *, keeps: bool) -> None:
        """Write the hook; if it keeps another one, that has its second name before ours takes the first."""
        self._disk.make_directory(os.path.dirname(self.path))
        temporary = f"{self.path}.{os.getpid()}.tmp"
        self._disk.remove(temporary)
        create_file(self._disk, temporary, script, durable=False, mode=PROGRAM)
        if keeps and not self._disk.link(self.path, self._kept):
            self._disk.rename(self.path, self._kept)
        self._disk.rename(temporary, self.path)

    def uninstall(self, dry_run: bool) -> HookChange | None:
        comes_back = self._has_kept and (self._is_ours or not self._is_there)
        if not self._is_ours and not comes_back:
            return None
        if not dry_run:
            if comes_back:
                self._disk.rename(self._kept, self.path)
            else:
                self._disk.remove(self.path)
        return HookChange(self.path, REMOVED, self._kept if comes_back else "")


def _folder(git: Git) -> tuple[str, bool]:
    """Return the folder of git's hooks, and whether husky manages it.

    husky overwrites the hooks in `.husky/_` at each run. They call the user's hooks in `.husky`.
    """
    path = git.ask("rev-parse", "--git-path", "hooks").removesuffix("\n")
    folder = os.path.normpath(os.path.join(git.folder, path))
    above, name = os.path.split(folder)
    if name == "_" and os.path.isfile(os.path.join(folder, "h")):
        return above, True
    return folder, False


def _script(name: str, command: Sequence[str], *, is_husky: bool) -> bytes:
    import shlex  # slow to import, and running a hook does without

    body = _WITH_INPUT if name == POST_REWRITE else _WITHOUT_INPUT
    text = (_SCRIPT + body).format(
        marker=MARKER,
        command=shlex.join(command),
        hook=name,
        kept=KEPT,
        # husky runs its hooks with `sh -e`, and they need not be executable.
        test='[ ! -f "$before" ]' if is_husky else '[ ! -x "$before" ]',
        call='sh -e "$before"' if is_husky else '"$before"',
    )
    return os.fsencode(text)


def run(
    trajectories: Trajectories, hook: str, arguments: Sequence[str], folder: str, given: str
) -> bool:
    """Do what a hook is there for; return whether anything was recorded or written.

    Args:
        trajectories: those of the repository.
        hook: its name; nothing is done for other hooks.
        arguments: what git passes to it.
        folder: the folder in which git runs it.
        given: its input.

    Raises:
        TraceError: it cannot be done, for example because no trajectory is meant.
    """
    if hook == POST_REWRITE:
        lines = (line.split() for line in given.splitlines())
        pairs = [(words[0], words[1]) for words in lines if len(words) > 1]
        return bool(trajectories.code.follow_rewrite(pairs, folder=folder))
    if hook not in (POST_COMMIT, MESSAGE):
        return False
    id_, git = trajectories.find().id, Git(folder, seconds=HOOK_SECONDS)
    if git.place().is_rebasing:
        return False  # a rebase makes the commits of other trajectories again
    if hook == POST_COMMIT:
        return bool(trajectories.code.link(folder=git, trajectory=id_))
    file, *source = arguments
    if not source:
        return False  # an editor opens, and an empty message must stay empty: it cancels the commit
    trailer = f"{TRAILER}: {id_}"
    words = ("--in-place", "--if-exists", "doNothing", "--trailer", trailer)
    git.ask("interpret-trailers", *words, "--", file)
    return True

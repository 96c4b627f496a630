"""Hooks of git that link each new commit to the current trajectory.

If a hook exists already, in any language, it is renamed, and our hook calls it. Uninstalling restores it unchanged.

Rule: our hooks never make a commit fail. If there is no current trajectory, or there are several, they do nothing.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.files import PROGRAM, Disk, create_file, read_unsized
from trace_store.frozen import value
from trace_store.trajectories.git import TRAILER, Git, git_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.trajectories.handle import Trajectories

POST_COMMIT, POST_REWRITE, MESSAGE = "post-commit", "post-rewrite", "prepare-commit-msg"
KEPT = ".before-trace"
"""Suffix of the new name of a hook that existed before ours."""
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
    """What was done to one hook.

    Attributes:
        path: the hook's file.
        action: `created`, `updated`, `unchanged` or `removed`.
        kept: the new name of the hook that existed before ours, also after it was restored; "" if there was none.
    """

    path: str
    action: str
    kept: str = ""


def install_hooks(
    folder: str | Git, command: Sequence[str], *, trailer: bool = False, dry_run: bool = False
) -> list[HookChange]:
    """Install or update the hooks, and return what was done to each.

    Args:
        folder: a folder in the git repository of the code, or a `Git` that runs there.
        command: the command line of Trace, with an absolute path.
        trailer: whether to install the hook that adds the trailer to commit messages; if not, it is removed.
        dry_run: only return what would be done.

    Raises:
        AlreadyExistsError: another program replaced our hook, and the hook from before ours still exists.
        StateError: the folder is not in a git repository, or git is not installed.
        StorageError: a file or a folder cannot be changed.
    """
    disk, (place, is_husky) = Disk(), _folder(git_in(folder))
    names = [POST_COMMIT, POST_REWRITE, *([MESSAGE] if trailer else ())]
    scripts = {name: _script(name, command, is_husky=is_husky) for name in names}
    hooks = [_Hook(disk, os.path.join(place, name)) for name in names]
    for hook in hooks:
        hook.check()
    changes = [hook.install(scripts[os.path.basename(hook.path)], dry_run) for hook in hooks]
    if not trailer:
        changes += uninstall_hooks(folder, dry_run=dry_run, names=(MESSAGE,))
    return changes


def uninstall_hooks(
    folder: str | Git,
    *,
    dry_run: bool = False,
    names: Sequence[str] = (POST_COMMIT, POST_REWRITE, MESSAGE),
) -> list[HookChange]:
    """Remove our hooks, restore the ones from before, and return what was done; raises as `install_hooks`."""
    place, _ = _folder(git_in(folder))
    hooks = [_Hook(Disk(), os.path.join(place, name)) for name in names]
    return [change for hook in hooks if (change := hook.uninstall(dry_run)) is not None]


class _Hook:
    """The file of one hook."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path
        self._kept = path + KEPT
        status = disk.stat(path)
        self._exists = status is not None
        self._data = b""
        if status is not None and not os.path.islink(path) and os.path.isfile(path):
            self._data = read_unsized(disk, path, _LONGEST_HOOK)
        self._is_ours = MARKER.encode() in self._data.splitlines()[1:2]
        self._has_kept = disk.stat(self._kept) is not None

    def check(self) -> None:
        if self._exists and not self._is_ours and self._has_kept:
            raise errors.AlreadyExistsError(
                f"another program replaced the hook {self.path}, and {self._kept} still exists",
                code=errors.ErrorCode.HOOK_EXISTS,
                path=self._kept,
            )

    def install(self, script: bytes, dry_run: bool) -> HookChange:
        is_foreign = self._exists and not self._is_ours
        kept = self._kept if is_foreign or self._has_kept else ""
        if self._data == script:
            return HookChange(self.path, UNCHANGED, kept)
        if not dry_run:
            try:
                self._write(script, is_foreign=is_foreign)
            except errors.StorageError as error:
                raise errors.StorageError(
                    f"cannot write the hook {self.path}: {error.message}", path=self.path
                ) from error
        return HookChange(self.path, UPDATED if self._is_ours else CREATED, kept)

    def _write(self, script: bytes, *, is_foreign: bool) -> None:
        """Write our hook; first give an existing hook its new name, so that it is never lost."""
        self._disk.make_directory(os.path.dirname(self.path))
        temporary = f"{self.path}.{os.getpid()}.tmp"
        self._disk.remove(temporary)
        create_file(self._disk, temporary, script, durable=False, mode=PROGRAM)
        if is_foreign and not self._disk.link(self.path, self._kept):
            self._disk.rename(self.path, self._kept)
        self._disk.rename(temporary, self.path)

    def uninstall(self, dry_run: bool) -> HookChange | None:
        is_restored = self._has_kept and (self._is_ours or not self._exists)
        if not self._is_ours and not is_restored:
            return None
        if not dry_run:
            if is_restored:
                self._disk.rename(self._kept, self.path)
            else:
                self._disk.remove(self.path)
        return HookChange(self.path, REMOVED, self._kept if is_restored else "")


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


def run_hook(
    trajectories: Trajectories, hook: str, arguments: Sequence[str], folder: str, stdin: str
) -> bool:
    """Run a hook; return whether anything was recorded or written.

    Args:
        trajectories: the trajectories of the repository.
        hook: the name of the hook; an unknown one does nothing.
        arguments: the arguments from git.
        folder: the folder in which git runs it.
        stdin: the input from git.

    Raises:
        TraceError: it failed, for example because there is no current trajectory.
    """
    if hook == POST_REWRITE:
        lines = (line.split() for line in stdin.splitlines())
        pairs = [(words[0], words[1]) for words in lines if len(words) > 1]
        return bool(trajectories.code.follow_rewrite(pairs, folder=folder))
    if hook not in (POST_COMMIT, MESSAGE):
        return False
    id_, git = trajectories.find().id, Git(folder, seconds=HOOK_SECONDS)
    if git.work_tree().is_rebasing:
        return False  # a rebase may rewrite the commits of other trajectories
    if hook == POST_COMMIT:
        return trajectories.code.link_later(folder=git, trajectory=id_)
    file, *source = arguments
    if not source:
        return False  # an editor opens; an empty message must stay empty, to cancel the commit
    trailer = f"{TRAILER}: {id_}"
    words = ("--in-place", "--if-exists", "doNothing", "--trailer", trailer)
    git.ask("interpret-trailers", *words, "--", file)
    return True

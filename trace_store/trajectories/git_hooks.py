"""Hooks of git that note each new commit, so that it is linked to a trajectory.

They append a line to a local file (`hook_log`) with the shell alone. Only where `.trace` is not at the top of the work
tree do they start Trace, which does the same.

If a hook exists already, in any language, it is renamed, and our hook calls it. Uninstalling restores it unchanged.
Other programs that install hooks do the same to ours: pre-commit calls what it renamed to `.legacy`, lefthook does not
call what it renamed to `.old`. Then our hook still calls the one from before it, and uninstalling puts that one where
the other program would have.

Rule: our hooks never make a commit fail.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from trace_store import errors
from trace_store.base.frozen import replace, value
from trace_store.disk.files import PROGRAM, Disk, create_file, read_unsized
from trace_store.disk.layout import DIRECTORY_NAME
from trace_store.trajectories import hook_log
from trace_store.trajectories.git import TRAILER, Git, git_in
from trace_store.trajectories.trajectories import Trajectories

POST_COMMIT, POST_REWRITE, MESSAGE = "post-commit", "post-rewrite", "prepare-commit-msg"
SHELLS = ("ash", "bash", "dash", "ksh", "sh")
"""Shells whose scripts can be given another name for `$0`."""
KEPT = ".before-trace"
"""Suffix of the new name of a hook that existed before ours."""
MARKER = "# Added by `trace hooks install git`; `trace hooks uninstall git` removes it."
MARKERS = (MARKER, "# Added by `trace trajectory hook git`; the same with --uninstall removes it.")
"""The second line of our hooks, today and in earlier versions."""
HOOK_SECONDS = 5.0
LEGACY, OLD = ".legacy", ".old"
"""Suffixes of the names that pre-commit and lefthook give to hooks that they find."""
INSTALLED, OFF, MOVED, REPLACED, MISSING = "installed", "off", "moved", "replaced", "missing"
CREATED, UPDATED, UNCHANGED, REMOVED = "created", "updated", "unchanged", "removed"
_LONGEST_HOOK = 1 << 20
_CALL = '"$before"'
_SCRIPT = """#!/bin/sh
{marker}
run_trace() {{
{elsewhere}    {command} hook git {hook} "$@" || trace-store {inside}hook git {hook} "$@" || :
}}
own=${{0%{legacy}}}
before="${{own%{old}}}{kept}"
"""
_ELSEWHERE = """    at=$PWD  # all repositories may share this hook: most of them have no .trace
    while [ -d .git ] && [ -z "${TRACE_DIR-}" ] && [ ! -e "$at/.trace" ]; do
        [ -n "$at" ] || return 0
        at=${at%/*}
    done
"""
_NOTE = """note() {{  # the next Trace command reads the note; it fails if there is no .trace here
    [ -z "${{TRACE_DIR-}}" ] && [ -d .trace ] && [ ! -L .trace ] && [ -f .trace/config ] || return 1
    [ -d .trace/local ] || mkdir .trace/local || return 1
    [ ! -L .trace/local ] && [ ! -L .trace/local/commits ] || return 1
    git=.git head='' id='' ref='' stash='' how=hand
    if [ -d .git ]; then
        read -r head <.git/HEAD
        case $head in 'ref: '*) ref=${{head#ref: }}; read -r id <".git/$ref" ;; *) id=$head ;; esac
        [ ! -f .git/refs/stash ] || read -r stash <.git/refs/stash
    else
        git=$(git rev-parse --git-dir)
        stash=$(git rev-parse -q --verify refs/stash)
    fi
    case $id in '' | *[!0-9a-f]*)
        id=$(git rev-parse HEAD)
        ref=$(git symbolic-ref -q HEAD) ;;
    esac
    [ ! -f "$git/CHERRY_PICK_HEAD" ] || how=pick
    [ -z "${{GIT_CHERRY_PICK_HELP-}}" ] || how=rebase
    case ${{GIT_REFLOG_ACTION-}} in *'(continue)') how=continue ;; esac
    by="$how	$ref	$PWD	${{TRACE_AGENT-}}	${{TRACE_TRAJECTORY-}}	$stash"
    {print}
}}
"""
_PRINT_COMMIT = """printf 'commit\\t%s\\t\\t%s\\n' "$id" "$by" >>.trace/local/commits"""
_PRINT_REWRITE = """printf '%s\\n' "$rewritten" | while read -r old new rest; do
        printf '%s\\t%s\\t%s\\t%s\\n' "$1" "$new" "$old" "$by"
    done >>.trace/local/commits"""
_POST_COMMIT = """case "${{GIT_CHERRY_PICK_HELP+rebase}} ${{GIT_REFLOG_ACTION-}}" in
'rebase '*'(continue)' | ' '*) ;;
*) note() {{ :; }} ;;  # a rebase made the commit, and post-rewrite tells of it
esac
note "$@" >/dev/null 2>&1 || run_trace "$@" </dev/null >/dev/null 2>&1
{test} || exec {call} "$@"
"""
_MESSAGE = """[ -n "${{GIT_CHERRY_PICK_HELP-}}" ] || run_trace "$@" </dev/null >/dev/null 2>&1
{test} || exec {call} "$@"
"""
_POST_REWRITE = """rewritten=$(cat)
note "$@" >/dev/null 2>&1 || printf '%s\\n' "$rewritten" | run_trace "$@" >/dev/null 2>&1
{test} || printf '%s\\n' "$rewritten" | {call} "$@"
"""
_BODIES = {
    POST_COMMIT: (_NOTE, _PRINT_COMMIT, _POST_COMMIT),
    POST_REWRITE: (_NOTE, _PRINT_REWRITE, _POST_REWRITE),
    MESSAGE: ("", "", _MESSAGE),
}


@value
class HookChange:
    """What was done to one hook.

    Attributes:
        path: the hook's file.
        action: `created`, `updated`, `unchanged` or `removed`.
        kept: the new name of the hook that existed before ours, also after it was restored; "" if there was none.
        shared: `global` or `system` if all repositories of this user, or machine, share the hook; else "".
    """

    JSON = "kept? shared?"

    path: str
    action: str
    kept: str = ""
    shared: str = ""


@value
class HookStatus:
    """The state of one hook.

    Attributes:
        path: where git looks for it.
        state: `installed`; `off` if it is not executable; `moved` if another program moved it and calls it;
            `replaced` if another program has a hook there, and does not call ours; or `missing`.
        moved: where another program moved ours; "" if it is in its place.
    """

    JSON = "moved?"

    path: str
    state: str
    moved: str = ""


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
        AlreadyExistsError: another program replaced our hook, and the hook from before ours still exists; or git
            tracks a hook, so that a commit would publish ours.
        StateError: the folder is not in a git repository, or git is not installed.
        StorageError: a file or a folder cannot be changed.
    """
    git = git_in(folder)
    disk, (place, is_husky) = Disk(), _folder(git)
    names = [POST_COMMIT, POST_REWRITE, *([MESSAGE] if trailer else ())]
    inside = _folder_of_trace(git)
    hooks = [_Hook(disk, os.path.join(place, name)) for name in names]
    for hook in hooks:
        hook.check(git)
    changes = []
    for hook, name in zip(hooks, names, strict=True):
        script = _script(name, command, inside=inside, is_husky=is_husky, call=hook.call())
        changes.append(hook.install(script, dry_run))
    if not trailer:
        changes += uninstall_hooks(folder, dry_run=dry_run, names=(MESSAGE,))
    shared = _shared(git)
    return [replace(each, shared=shared) for each in changes] if shared else changes


def uninstall_hooks(
    folder: str | Git,
    *,
    dry_run: bool = False,
    names: Sequence[str] = (POST_COMMIT, POST_REWRITE, MESSAGE),
) -> list[HookChange]:
    """Remove our hooks, restore the ones from before, and return what was done; raises as `install_hooks`."""
    git = git_in(folder)
    disk, (place, _) = Disk(), _folder(git)
    changes: list[HookChange] = []
    # `core.hooksPath` may have been set after our hooks were installed.
    for each in dict.fromkeys((place, _default_folder(git))):
        hooks = [_Hook(disk, os.path.join(each, name)) for name in names]
        found = [change for hook in hooks for change in hook.uninstall(dry_run)]
        is_own = os.path.basename(os.path.dirname(each)) != ".git"
        if found and is_own and not dry_run and not disk.names(each):
            disk.remove_directory(each)  # created by an installation
        changes += found
    return changes


def hooks_status(folder: str | Git) -> list[HookStatus]:
    """Return the state of each of our hooks.

    Raises:
        StateError: the folder is not in a git repository, or git is not installed.
        StorageError: a file cannot be read.
    """
    disk, (place, _) = Disk(), _folder(git_in(folder))
    names = (POST_COMMIT, POST_REWRITE, MESSAGE)
    return [_Hook(disk, os.path.join(place, name)).status() for name in names]


def _is_ours(disk: Disk, path: str) -> bool:
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    return _is_marked(read_unsized(disk, path, _LONGEST_HOOK))


def _is_marked(script: bytes) -> bool:
    return any(marker.encode() in script.splitlines()[1:2] for marker in MARKERS)


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
        self._is_ours = _is_marked(self._data)
        self._has_kept = disk.stat(self._kept) is not None
        moved = [path + suffix for suffix in (LEGACY, OLD) if _is_ours(disk, path + suffix)]
        self._moved = "" if self._is_ours else next(iter(moved), "")
        """Where another program that has a hook here moved ours, or ""."""
        self._stale = moved if self._is_ours else moved[1:]

    @property
    def _is_called(self) -> bool:
        """Whether the program that moved our hook calls it."""
        return self._exists and self._moved.endswith(LEGACY)

    def check(self, git: Git) -> None:
        if git.try_to_ask("ls-files", "--", self.path):
            raise errors.AlreadyExistsError(
                f"git tracks the hook {self.path}, so a commit would publish a changed one",
                code=errors.ErrorCode.HOOK_TRACKED,
                path=self.path,
                hook=os.path.basename(self.path),
            )
        if self._exists and not self._is_ours and self._has_kept and not self._moved:
            raise errors.AlreadyExistsError(
                f"another program replaced the hook {self.path}, and {self._kept} still exists",
                code=errors.ErrorCode.HOOK_EXISTS,
                path=self._kept,
            )

    def call(self) -> str:
        """Return the shell words that call the hook from before ours.

        A shell script that asks for its name, which is now another one, is read by its shell under the old name.
        """
        is_foreign = self._exists and not self._is_ours and not self._moved
        import shlex  # slow to import, and running a hook does without

        path = os.path.realpath(self.path if is_foreign else self._kept)
        if not os.path.isfile(path):
            return _CALL
        first, _, text = read_unsized(self._disk, path, _LONGEST_HOOK).partition(b"\n")
        words = first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []
        shell = next((word for word in words if os.path.basename(word) != "env"), "")
        if os.path.basename(shell) not in SHELLS or b"BASH_SOURCE" in text:
            return _CALL
        if not re.search(rb"\$(?:0\b|\{0\b)", text):
            return _CALL
        return f'{shlex.join(words)} -c \'hook=$1; shift; . "$hook"\' "$own" "$before"'

    def install(self, script: bytes, dry_run: bool) -> HookChange:
        is_foreign = self._exists and not self._is_ours
        if self._is_called:
            return self._update_moved(script, dry_run)
        kept = self._kept if is_foreign or self._has_kept else ""
        if self._data == script and not self._stale:
            return HookChange(self.path, UNCHANGED, kept)
        if not dry_run:
            try:
                self._leave(self._moved)
                self._write(script, is_foreign=is_foreign)
            except errors.StorageError as error:
                raise errors.StorageError(
                    f"cannot write the hook {self.path}: {error.message}", path=self.path
                ) from error
        return HookChange(self.path, UPDATED if self._is_ours else CREATED, kept)

    def _update_moved(self, script: bytes, dry_run: bool) -> HookChange:
        """Update our hook where another program calls it."""
        kept = self._kept if self._has_kept else ""
        if read_unsized(self._disk, self._moved, _LONGEST_HOOK) == script:
            return HookChange(self._moved, UNCHANGED, kept)
        if not dry_run:
            self._replace(self._moved, script)
        return HookChange(self._moved, UPDATED, kept)

    def _leave(self, place: str) -> None:
        """Put the hook from before ours where ours is, and remove what an earlier installation left; "" is nowhere."""
        for path in self._stale:
            self._disk.remove(path)
        if place and self._has_kept:
            self._disk.rename(self._kept, place)
        elif place:
            self._disk.remove(place)

    def _write(self, script: bytes, *, is_foreign: bool) -> None:
        """Write our hook; first give an existing hook its new name, so that it is never lost."""
        self._disk.make_directory(os.path.dirname(self.path))
        if is_foreign and not self._disk.link(self.path, self._kept):
            self._disk.rename(self.path, self._kept)
        self._replace(self.path, script)

    def _replace(self, path: str, script: bytes) -> None:
        temporary = f"{path}.{os.getpid()}.tmp"
        self._disk.remove(temporary)
        create_file(self._disk, temporary, script, durable=False, mode=PROGRAM)
        self._disk.rename(temporary, path)

    def status(self) -> HookStatus:
        if self._is_ours:
            return HookStatus(self.path, INSTALLED if os.access(self.path, os.X_OK) else OFF)
        if self._moved and self._exists:
            return HookStatus(self.path, MOVED if self._is_called else REPLACED, self._moved)
        return HookStatus(self.path, REPLACED if self._exists and self._has_kept else MISSING)

    def uninstall(self, dry_run: bool) -> list[HookChange]:
        is_gone = self._has_kept and not self._exists
        place = self._moved or (self.path if self._is_ours or is_gone else "")
        if not dry_run:
            self._leave(place)
        kept = self._kept if self._has_kept else ""
        own = [HookChange(place, REMOVED, kept)] if place else []
        return [*own, *(HookChange(path, REMOVED) for path in self._stale)]


def _folder(git: Git) -> tuple[str, bool]:
    """Return the folder of git's hooks, and whether husky manages it.

    husky overwrites the hooks in `.husky/_` at each run. They call the user's hooks in `.husky`.
    """
    path = git.ask("rev-parse", "--git-path", "hooks").removesuffix("\n")
    # A relative `core.hooksPath` starts at the top of the work tree, where git runs hooks.
    named = git.try_to_ask("config", "--path", "core.hooksPath").removesuffix("\n")
    start, path = (git.top(), named) if named else (git.folder, path)
    folder = os.path.normpath(os.path.join(start, path))
    above, name = os.path.split(folder)
    if name == "_" and os.path.isfile(os.path.join(folder, "h")):
        return above, True
    return (os.path.realpath(folder) if os.path.islink(folder) else folder), False


def _shared(git: Git) -> str:
    """Return `global` or `system` if a setting for all repositories says where hooks are; else ""."""
    scope = git.try_to_ask("config", "--show-scope", "--get", "core.hooksPath").split("\t")[0]
    return scope if scope in ("global", "system") else ""


def _default_folder(git: Git) -> str:
    """Return the folder of hooks of a repository without `core.hooksPath`."""
    common = git.ask("rev-parse", "--git-common-dir").removesuffix("\n")
    return os.path.realpath(os.path.join(git.folder, common, "hooks"))


def _folder_of_trace(git: Git) -> str:
    """Return where `.trace` is below the top of the work tree, where git runs hooks; "" if it is there or nowhere."""
    top = os.path.realpath(git.top())
    folder = os.path.realpath(git.folder)
    while folder != top and os.path.dirname(folder) != folder:
        if os.path.isfile(os.path.join(folder, DIRECTORY_NAME, "config")):
            return os.path.relpath(folder, top)
        folder = os.path.dirname(folder)
    return ""


def _script(name: str, command: Sequence[str], *, inside: str, is_husky: bool, call: str) -> bytes:
    import shlex  # as in `call`

    function, print_, body = _BODIES[name]
    text = (_SCRIPT + function + body).format(
        print=print_,
        marker=MARKER,
        command=shlex.join([*command, *(("-C", inside) if inside else ())]),
        inside=f"-C {shlex.quote(inside)} " if inside else "",
        elsewhere="" if inside else _ELSEWHERE,
        hook=name,
        kept=KEPT,
        legacy=LEGACY,
        old=OLD,
        # husky runs its hooks with `sh -e`, and they need not be executable.
        test='[ ! -f "$before" ]' if is_husky else '[ ! -x "$before" ]',
        call='sh -e "$before"' if is_husky else call,
    )
    return os.fsencode(text)


def run_hook(
    trajectories: Trajectories, hook: str, arguments: Sequence[str], folder: str, stdin: str
) -> bool:
    """Run a hook; return whether anything was noted or written.

    Args:
        trajectories: the trajectories of the repository.
        hook: the name of the hook; an unknown one does nothing.
        arguments: the arguments from git.
        folder: the folder in which git runs it.
        stdin: the input from git.

    Raises:
        TraceError: it failed, for example because there is no current trajectory.
    """
    if hook not in (POST_COMMIT, POST_REWRITE, MESSAGE):
        return False
    git = Git(folder, seconds=HOOK_SECONDS)
    if hook != MESSAGE:
        return trajectories.code.note(hook_log.seen_by(git, hook, arguments, stdin))
    file, *source = arguments
    if not source:
        return False  # an editor opens; an empty message must stay empty, to cancel the commit
    trailer = f"{TRAILER}: {trajectories.find().id}"
    words = ("--in-place", "--if-exists", "doNothing", "--trailer", trailer)
    git.ask("interpret-trailers", *words, "--", file)
    return True

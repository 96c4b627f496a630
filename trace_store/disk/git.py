"""The git that carries a repository: its folders, branch and settings, and questions to it.

Settings are read from their files (https://git-scm.com/docs/git-config#_syntax), without included ones.

Invariant: git is only asked. A foreign work tree's settings start no program, and nothing is fetched.
"""

from __future__ import annotations

import os
import stat

from trace_store import errors
from trace_store.base.environment import variables_with
from trace_store.disk.files import read_file
from trace_store.disk.layout import DIRECTORY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.environment import Environment
    from trace_store.disk.files import Disk

TIMEOUT_SECONDS = 60
MAXIMUM_REFLOG = 2_000
MAXIMUM_BYTES = 1 << 20
SYSTEM_FILE = "/etc/gitconfig"
_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "XDG_CONFIG_HOME")
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b"}
_BRANCH = "ref: refs/heads/"
_POINTER = b"gitdir: "
_LONGEST_POINTER = 8192


def find_git(disk: Disk, root: str) -> str | None:
    """Return the path of the `.git` above a folder, or None."""
    folder, above = root, os.path.dirname(root)
    while above != folder:
        folder, above = above, os.path.dirname(above)
        path = os.path.join(folder, ".git")
        if disk.stat(path) is not None:
            return path
    return None


def git_dir(disk: Disk, root: str) -> str | None:
    """Return the directory of the git repository above a folder, or None; raises as `git_dir_of`."""
    path = find_git(disk, root)
    return None if path is None else git_dir_of(disk, path)


def git_branch(disk: Disk, root: str, folder: str = "") -> str:
    """Return git's branch in the work tree around a repository; "" if there is none.

    Args:
        disk: the disk.
        root: the repository's directory.
        folder: the folder that is worked in. Another work tree of the same git repository around it takes precedence.

    Raises:
        StorageError: git's files cannot be read.
    """
    found = git_dir(disk, root)
    own = git_dir(disk, os.path.join(folder, DIRECTORY_NAME)) if folder else None
    if own is not None and (found is None or common_dir(disk, own) == common_dir(disk, found)):
        found = own
    head = (
        None
        if found is None
        else read_file(disk, os.path.join(found, "HEAD"), limit=_LONGEST_POINTER)
    )
    text = (head or b"").decode("utf-8", "replace").strip()
    return text.removeprefix(_BRANCH) if text.startswith(_BRANCH) else ""


def main_work_tree(disk: Disk, folder: str) -> str | None:
    """Return the top folder of the main work tree, if a folder is in one that `git worktree` linked to it; else None.

    Raises:
        StorageError: git's files cannot be read.
    """
    own = git_dir(disk, os.path.join(folder, DIRECTORY_NAME))
    shared = None if own is None else common_dir(disk, own)
    if shared is None or shared == own or os.path.basename(shared) != ".git":
        return None
    return os.path.dirname(shared)


def worktree(disk: Disk, folder: str) -> str:
    """Return the name of the work tree that `git worktree` linked, given a folder in it; "" for the main one.

    Raises:
        StorageError: git's files cannot be read.
    """
    own = git_dir(disk, os.path.join(folder, DIRECTORY_NAME))
    if own is None or common_dir(disk, own) == os.path.realpath(own):
        return ""
    return os.path.basename(own)


def first_log_line(disk: Disk, folder: str, ref: str) -> str:
    """Return the oldest line of the reflog of one of git's refs, given a folder in its work tree; "" if there is none.

    Raises:
        StorageError: git's files cannot be read.
    """
    own = git_dir(disk, os.path.join(folder, DIRECTORY_NAME))
    if own is None or not ref.startswith("refs/") or ".." in ref:
        return ""
    fd = disk.open(os.path.join(common_dir(disk, own), "logs", ref))
    if fd is None:
        return ""
    try:
        return disk.read_at(fd, 0, _LONGEST_POINTER).split(b"\n")[0].decode("utf-8", "replace")
    finally:
        disk.close(fd)


def newest_stash(disk: Disk, folder: str) -> str:
    """Return the id of the newest stash of the git repository around a folder; "" if there is none.

    Raises:
        StorageError: git's files cannot be read.
    """
    own = git_dir(disk, os.path.join(folder, DIRECTORY_NAME))
    path = None if own is None else os.path.join(common_dir(disk, own), "refs", "stash")
    data = None if path is None else read_file(disk, path, limit=_LONGEST_POINTER)
    return (data or b"").decode("ascii", "replace").strip()


def common_dir(disk: Disk, git: str) -> str:
    """Return the directory that linked work trees share, given git's directory of one of them."""
    named = read_file(disk, os.path.join(git, "commondir"), limit=_LONGEST_POINTER)
    path = git if named is None else os.path.join(git, os.fsdecode(named.strip(b"\r\n")))
    return os.path.realpath(path)


def git_dir_of(disk: Disk, path: str) -> str:
    """Return git's directory, given the path of a `.git`, which in a worktree or submodule is a file with its path.

    Raises:
        StorageError: it cannot be read.
    """
    git = disk.stat(path)
    if git is None or not stat.S_ISREG(git.st_mode):
        return path
    data = read_file(disk, path, limit=_LONGEST_POINTER) or b""
    named = os.fsdecode(data.removeprefix(_POINTER).strip(b"\r\n"))
    return os.path.join(os.path.dirname(path), named)


def ask_git(folder: str, *words: str, text: str = "") -> str | None:
    """Return git's output as text; None if it fails or is not installed."""
    answer = read_git(folder, *words, text=text)
    return None if answer is None else os.fsdecode(answer)


def read_git(folder: str, *words: str, text: str = "") -> bytes | None:
    """Return git's output; None if it fails or is not installed."""
    import subprocess  # rarely needed, slow to import

    # `.trace` must not be taken for a git repository.
    options = ("core.fsmonitor=false", "safe.bareRepository=explicit", "core.quotePath=false")
    command = ["git", "-C", folder, *(word for option in options for word in ("-c", option))]
    try:
        return subprocess.check_output(
            [*command, *words],
            input=text.encode(),
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT_SECONDS,
            env=variables_with(GIT_NO_LAZY_FETCH="1"),
        )
    except (OSError, subprocess.SubprocessError):
        return None


def committed(disk: Disk, root: str, paths: list[str]) -> set[str] | None:
    """Return the paths below a repository's directory that a git commit other than a stash contains; None without git.

    Searches what branches, tags, HEAD and its reflog reach, since a reset to an earlier commit is intended. If git
    fails, the result is empty: restoring too much is less harmful than losing data.
    """
    if find_git(disk, root) is None:
        return None
    folder = os.path.dirname(root)
    top = ask_git(folder, "rev-parse", "--show-toplevel")
    if top is None:
        return None  # not a git work tree, or git is not installed
    if ask_git(folder, "rev-parse", "--verify", "-q", "HEAD") is None:
        return set()  # no commit yet
    top = top.rstrip("\n")
    real_root = os.path.realpath(root)
    wanted = {
        os.path.relpath(os.path.join(real_root, os.path.relpath(path, root)), top).replace(
            os.sep, "/"
        ): path
        for path in paths
    }
    logged = ask_git(folder, "reflog", "show", "--format=%H", f"-n{MAXIMUM_REFLOG}", "HEAD") or ""
    log = ("log", "-m", "--format=", "--name-only", "-z", "--no-renames", "--diff-filter=A")
    output = ask_git(
        folder,
        *(*log, "--no-show-signature", "--branches", "--tags", "--remotes", "HEAD", "--stdin"),
        text="".join(
            [*(f"{line}\n" for line in logged.split()), "--\n"]
            + [f":(top,literal){each}\n" for each in wanted]
        ),
    )
    return {wanted[each] for each in (output or "").split("\0") if each in wanted}


def settings_in_force(environment: Environment, git: str, disk: Disk) -> list[tuple[str, str, str]]:
    """Return (section, key, value) as `settings_in` does, of all files; the last of a key counts.

    Args:
        environment: has the variables that name files, and the user's folders.
        git: the directory of a work tree's git; "" for the settings of the user and the system alone.
        disk: the disk.

    Raises:
        StorageError: git's pointer to the main work tree cannot be read.
    """
    files = _files(environment, git, disk)
    return [each for path in files for each in settings_in(read_text(disk, path))]


def _files(environment: Environment, git: str, disk: Disk) -> list[str]:
    """Return the paths of git's settings, the strongest last."""
    named = environment.variables(*_VARIABLES)
    files: list[str] = []
    if "GIT_CONFIG_NOSYSTEM" not in named:
        files.append(named.get("GIT_CONFIG_SYSTEM", SYSTEM_FILE))
    if "GIT_CONFIG_GLOBAL" in named:
        files.append(named["GIT_CONFIG_GLOBAL"])
    elif environment.home:
        folder = named.get("XDG_CONFIG_HOME") or os.path.join(environment.home, ".config")
        files.append(os.path.join(folder, "git", "config"))
        files.append(os.path.join(environment.home, ".gitconfig"))
    if git:
        files.append(os.path.join(common_dir(disk, git), "config"))
        files.append(os.path.join(git, "config.worktree"))
    return files


def read_text(disk: Disk, path: str) -> str:
    """Return a file's text; "" if it is missing or cannot be read."""
    try:
        data = read_file(disk, path, limit=MAXIMUM_BYTES)
    except errors.StorageError:
        return ""
    return (data or b"").decode("utf-8", "replace")


def settings_in(text: str) -> list[tuple[str, str, str]]:
    """Return (section, key, value) of a file of git's settings; names are in lower case.

    A section's own name follows a dot, as in `remote.origin`. Lines that git would refuse are skipped.
    """
    found: list[tuple[str, str, str]] = []
    section, lines = "", iter(text.replace("\r\n", "\n").split("\n"))
    for line in lines:
        line = line.strip()
        if line.startswith("["):
            head, _, line = line[1:].partition("]")
            name, _, inner = head.partition(" ")
            section = ".".join(filter(None, (name.strip().lower(), inner.strip().strip('"'))))
            line = line.strip()
        if not line or line[0] in "#;":
            continue
        key, _, value = line.partition("=")
        while _continues(value):
            value = value[:-1] + next(lines, "")
        found.append((section, key.strip().lower(), _unquoted(value)))
    return found


def _continues(value: str) -> bool:
    """Return True if a value ends with a backslash that escapes the line's end."""
    return (len(value) - len(value.rstrip("\\"))) % 2 == 1


def _unquoted(value: str) -> str:
    """Return a value without quotes, escapes, comments and the blanks around it."""
    made: list[str] = []
    quoted = False
    kept = 0  # blanks at the end count only inside quotes
    characters = iter(value.strip())
    for each in characters:
        if each == '"':
            quoted = not quoted
        elif each == "\\":
            following = next(characters, "")
            made.append(_ESCAPED.get(following, following))
            kept = len(made)
            continue
        elif each in "#;" and not quoted:
            break
        else:
            made.append(each)
        if quoted or not each.isspace():
            kept = len(made)
    return "".join(made[:kept])

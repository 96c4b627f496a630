"""The git repository of the code: its commits, and what they changed.

Rule: git runs without a shell and with a time limit, and the repository's settings start no program.
"""

from __future__ import annotations

import os

from trace_store import check, errors
from trace_store.frozen import value
from trace_store.layout import DIRECTORY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from subprocess import CompletedProcess

SECONDS = 60.0
MAXIMUM_FILES = 1000
"""Maximum number of files that are recorded for a commit."""
TRAILER = "Trajectory"
"""The trailer in a commit message with the id of the trajectory."""
_OPTIONS = ("core.fsmonitor=false", "core.quotePath=false", "safe.bareRepository=explicit")
_REBASES = ("rebase-merge", "rebase-apply")
_COMMIT_START = "\x01"
_FORMAT = f"%x01%H%x00%at%x00%ct%x00%s%x00%(trailers:key={TRAILER},valueonly,separator=%x2C)"
_FIELDS = 5
_PLAIN = ("--no-show-signature", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color")


@value
class CodeCommit:
    """A commit of the code.

    Attributes:
        id: its id, in hex.
        made: when the change was made, in milliseconds since the epoch; a rebase keeps it.
        committed: when this commit was made.
        subject: the first line of its message.
        files: the files that it changed, relative to the work tree; for a merge, those that differ from all parents.
        trajectories: the ids in the trailers of its message.
    """

    id: str
    made: int
    committed: int
    subject: str
    files: tuple[str, ...] = ()
    trajectories: tuple[str, ...] = ()


@value
class WorkTree:
    """A work tree, and where its HEAD is.

    Attributes:
        top: the folder of the work tree.
        head: the id of HEAD's commit.
        branch: the full name of HEAD's branch; "" if HEAD is detached.
        is_rebasing: whether a rebase is in progress.
    """

    top: str
    head: str
    branch: str
    is_rebasing: bool


class Git:
    """Runs git in one folder."""

    def __init__(self, folder: str, *, seconds: float = SECONDS) -> None:
        self.folder = folder
        self._seconds = seconds
        self._work_tree: WorkTree | None = None
        options = (word for option in _OPTIONS for word in ("-c", option))
        self._command = ("git", "-C", folder, "--literal-pathspecs", *options)

    def ask(self, *words: str, text: str = "") -> str:
        """Return git's output.

        Raises:
            StateError: git is not installed, or the folder is not in a repository.
            InvalidInputError: git fails; the message has git's error.
            StorageError: it takes too long.
        """
        done = self._run(words, text)
        if not done.returncode:
            return _text(done.stdout)
        # git's messages depend on the user's language; its exit code does not.
        if self._run(("rev-parse", "--git-dir"), "").returncode:
            raise errors.StateError(
                f"not in a git repository: {self.folder}", code=errors.ErrorCode.NO_GIT
            )
        lines = _text(done.stderr).strip().splitlines() or ["it failed"]
        why = lines[0].removeprefix("fatal: ").removeprefix("error: ")
        raise errors.InvalidInputError(f"git {words[0]}: {why}")

    def try_to_ask(self, *words: str) -> str:
        """Return git's output, or "" if git fails; raises the other errors of `ask`."""
        try:
            return self.ask(*words)
        except errors.InvalidInputError:
            return ""

    def _run(self, words: Sequence[str], text: str) -> CompletedProcess[bytes]:
        import subprocess  # slow to import, and most commands do without git

        try:
            return subprocess.run(
                [*self._command, *words],
                input=text.encode("utf-8", "surrogateescape"),
                capture_output=True,
                timeout=self._seconds,
                check=False,
            )
        except OSError as error:
            raise errors.StateError(
                f"cannot run git: {error.strerror}", code=errors.ErrorCode.NO_GIT
            ) from error
        except subprocess.TimeoutExpired as error:
            raise errors.StorageError(
                f"git {words[0]} took longer than {self._seconds:.0f} s", path=self.folder
            ) from error

    def resolve(self, name: str) -> str:
        """Return the commit id of a revision of git, or ""; raises as `ask`."""
        if not name or "\0" in name:
            return ""
        if name == "HEAD" and self._work_tree is not None:
            return self._work_tree.head
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}")
        return self.try_to_ask(*words).strip()

    def work_tree(self) -> WorkTree:
        """Return the work tree, and where its HEAD is; raises as `ask`."""
        if self._work_tree is None:
            rebases = (word for name in _REBASES for word in ("--git-path", name))
            words = ("--show-toplevel", "HEAD", "--symbolic-full-name", "HEAD", *rebases)
            top, head, branch, *paths = self.ask("rev-parse", *words).splitlines()
            rebasing = any(os.path.exists(os.path.join(self.folder, path)) for path in paths)
            branch = branch if branch.startswith("refs/") else ""
            self._work_tree = WorkTree(top, head, branch, rebasing)
        return self._work_tree

    def commits(self, ids: Sequence[str]) -> list[CodeCommit]:
        """Return commits in the given order; raises as `ask`."""
        if not ids:
            return []
        words = ("--no-walk=unsorted", "--stdin", "--cc", "--name-only", "-z", "--encoding=UTF-8")
        output = self.ask("log", *words, *_PLAIN, f"--format={_FORMAT}", text="\n".join(ids))
        return list(_commits(output.split("\0")))

    def history(self, *words: str) -> list[str]:
        """Return the ids of the commits that `git log` finds, newest first; raises as `ask`."""
        return self.ask("log", "--no-show-signature", "--format=%H", *words).split()

    def blame(self, file: str, line: int) -> str:
        """Return the id of the commit that wrote a line.

        Raises:
            RevisionNotFoundError: the line is not committed, or the file has no such line.
            As `ask`.
        """
        words = ("--porcelain", "--no-textconv", f"-L{line},{line}", "--", file)
        try:
            found = self.ask("blame", *words).split(" ", 1)[0].strip()
        except errors.InvalidInputError as error:
            raise errors.RevisionNotFoundError(
                f"no commit has line {line} of {file!r}: {error.message}",
                code=errors.ErrorCode.CODE_NOT_FOUND,
                name=file,
            ) from error
        if not found.strip("0"):
            raise errors.RevisionNotFoundError(
                f"line {line} of {file!r} is not committed",
                code=errors.ErrorCode.CODE_NOT_FOUND,
                name=file,
            )
        return found

    def patch_ids(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the patch id of each commit; empty if git takes too long.

        A rebase keeps the patch id. Merges and commits without a change have none.
        """
        import subprocess

        if not ids:
            return {}
        pipe, devnull = subprocess.PIPE, subprocess.DEVNULL
        diff = [*self._command, "diff-tree", "--stdin", "--root", "-p", "--no-ext-diff"]
        patch_id = [*self._command, "patch-id", "--stable"]
        with subprocess.Popen(diff, stdin=pipe, stdout=pipe, stderr=devnull) as differ:
            assert differ.stdin is not None
            assert differ.stdout is not None
            with subprocess.Popen(
                patch_id, stdin=differ.stdout, stdout=pipe, stderr=devnull
            ) as hasher:
                differ.stdout.close()
                try:
                    differ.stdin.write("".join(f"{each}\n" for each in ids).encode())
                    differ.stdin.close()
                    output, _ = hasher.communicate(timeout=self._seconds)
                except (OSError, subprocess.TimeoutExpired):
                    output = b""
                finally:
                    hasher.kill()
                    differ.kill()
        lines = (line.split() for line in output.decode("ascii").splitlines())
        return {line[1]: line[0] for line in lines if len(line) == 2}


def git_in(folder: str | Git) -> Git:
    """Return a `Git` for a folder; return a given `Git` unchanged."""
    if isinstance(folder, Git):
        return folder
    check.path(folder=folder)
    return Git(folder)


def _commits(tokens: list[str]) -> Iterator[CodeCommit]:
    at = 0
    while at < len(tokens):
        if not tokens[at].startswith(_COMMIT_START):
            at += 1
            continue
        id_, made, committed, subject, trailers = tokens[at : at + _FIELDS]
        at += _FIELDS
        files: list[str] = []
        while at < len(tokens) and not tokens[at].startswith(_COMMIT_START):
            file = tokens[at].removeprefix("\n")
            if file and f"/{DIRECTORY_NAME}/" not in f"/{file}":  # Trace's own files are not code
                files.append(file)
            at += 1
        named = tuple(name for each in trailers.split(",") if (name := each.strip()))
        times = int(made) * 1000, int(committed) * 1000
        yield CodeCommit(id_.removeprefix(_COMMIT_START), *times, subject, tuple(files), named)


def _text(output: bytes) -> str:
    return output.decode("utf-8", "backslashreplace")

"""The git repository of the code: its commits, and what they changed.

Rule: git runs without a shell and with a time limit, and the repository's settings start no program.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence

from trace_store import errors
from trace_store.base import check
from trace_store.base.frozen import value
from trace_store.disk.layout import DIRECTORY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from trace_store.base.ident import Time

SECONDS = 60.0
MAXIMUM_FILES = 1000
"""Maximum number of files that are recorded for a commit."""
TRAILER = "Trajectory"
"""The trailer in a commit message with the id of the trajectory."""
_OPTIONS = ("core.fsmonitor=false", "core.quotePath=false", "safe.bareRepository=explicit")
_COMMIT_START = "\x01"
_FORMAT = "%x01%H%x00%at%x00%ct%x00%s%x00%B"
_FIELDS = 5
_TRAILER_LINE = re.compile(rf"(?im)^{TRAILER}:[ \t]*(\S+)[ \t]*$")
MAXIMUM_LINES = 2000
"""Maximum number of added lines of a commit that are recorded."""
MAXIMUM_REFLOG = 1000
"""Number of newest lines of git's reflog that are looked at."""
_LEAST_LETTERS = 5
"""A line with fewer letters and digits could be anybody's, such as `}` or `else:`."""
_AROUND = 50
IGNORED_REVISIONS = ".git-blame-ignore-revs"
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
        trajectories: the ids that lines `Trajectory: ID` of its message name; a squash has those of several messages.
        has_record: whether it changed files of Trace, too.
    """

    id: str
    made: Time
    committed: Time
    subject: str
    files: tuple[str, ...] = ()
    trajectories: tuple[str, ...] = ()
    has_record: bool = False


@value
class BlamedLine:
    """A line of a file, and where it comes from.

    Attributes:
        commit: the id of the commit that wrote it; "" if it is not committed.
        file: the path of the file in that commit.
        number: its number in that file.
        text: the line.
    """

    commit: str
    file: str
    number: int
    text: str


@value
class WorkTree:
    """A work tree, and where its HEAD is.

    Attributes:
        top: the folder of the work tree.
        head: the id of HEAD's commit.
        branch: the full name of HEAD's branch; "" if HEAD is detached.
    """

    top: str
    head: str
    branch: str


class Git:
    """Runs git in one folder."""

    def __init__(self, folder: str, *, seconds: float = SECONDS) -> None:
        self.folder = folder
        self._seconds = seconds
        self._work_tree: WorkTree | None = None
        options = (word for option in _OPTIONS for word in ("-c", option))
        self._command = ("git", "-C", folder, "--literal-pathspecs", *options)

    def within(self, folder: str) -> Git:
        """Return git in another folder."""
        return Git(folder, seconds=self._seconds)

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

    def existing(self, ids: Iterable[str]) -> set[str]:
        """Return those ids whose commits exist; raises as `ask`."""
        wanted = "".join(f"{each}\n" for each in dict.fromkeys(ids))
        lines = self.ask("cat-file", "--batch-check", text=wanted).splitlines() if wanted else []
        rows = (line.split() for line in lines)
        return {row[0] for row in rows if len(row) > 1 and row[1] == "commit"}

    def work_tree(self) -> WorkTree:
        """Return the work tree, and where its HEAD is: at "" before the first commit; raises as `ask`."""
        if self._work_tree is None:
            words = ("--show-toplevel", "HEAD", "--symbolic-full-name", "HEAD")
            found = self.try_to_ask("rev-parse", *words).splitlines()
            if len(found) != 3:
                branch = self.try_to_ask("symbolic-ref", "--quiet", "HEAD").removesuffix("\n")
                found = [self.top(), "", branch]
            top, head, branch = found
            branch = branch if branch.startswith("refs/") else ""
            self._work_tree = WorkTree(top, head, branch)
        return self._work_tree

    def top(self) -> str:
        """Return the top folder of the work tree, which may have no commit yet; raises as `ask`."""
        return self.ask("rev-parse", "--show-toplevel").removesuffix("\n")

    def has_file(self, name: str) -> bool:
        """Return True if git's directory has a file of this name; raises as `ask`."""
        path = self.ask("rev-parse", "--git-path", name).removesuffix("\n")
        return os.path.exists(os.path.join(self.folder, path))

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

    def was_made_here(self, commit: str) -> bool:
        """Return True if HEAD's reflog says that a commit was made in this work tree, so that it was not fetched."""
        words = ("-g", "--no-show-signature", f"--max-count={MAXIMUM_REFLOG}", "--format=%H %gs")
        lines = self.try_to_ask("log", *words, "HEAD").splitlines()
        return any(line.startswith(f"{commit} commit") for line in lines)

    def blame(self, file: str, first: int, last: int) -> list[BlamedLine]:
        """Return where lines of a file come from, across changes of whitespace, moves and copies.

        Raises:
            RevisionNotFoundError: the file has no such line, or git does not know it.
            As `ask`.
        """
        which = f"line {first}" if first == last else f"lines {first} to {last}"
        # git tells copies by whole blocks, so the lines around are asked, too.
        lines = (f"-L{max(first - _AROUND, 1)},{last + _AROUND}", "--", file)
        words = ("blame", "--line-porcelain", "--no-textconv", "-w", "-M", "-C", "-C")
        try:
            output = self._blame(words, lines)
        except errors.InvalidInputError as error:
            raise errors.RevisionNotFoundError(
                f"no commit has {which} of {file!r}: {error.message}",
                code=errors.ErrorCode.CODE_NOT_FOUND,
                name=file,
            ) from error
        found = [each for at, each in _blamed(output) if first <= at <= last]
        if len(found) <= max(last - first, 0):
            raise errors.RevisionNotFoundError(
                f"no commit has {which} of {file!r}: the file has fewer lines",
                code=errors.ErrorCode.CODE_NOT_FOUND,
                name=file,
            )
        return found

    def _blame(self, words: Sequence[str], lines: Sequence[str]) -> str:
        path = os.path.join(self.work_tree().top, IGNORED_REVISIONS)
        is_set = os.path.isfile(path) and not self.try_to_ask("config", "blame.ignoreRevsFile")
        ignores = (f"--ignore-revs-file={path}",)
        # git refuses a file with an id that it does not know, as in a shallow clone.
        if is_set and (output := self.try_to_ask(*words, *ignores, *lines)):
            return output
        try:
            return self.ask(*words, *lines)
        except errors.InvalidInputError:
            without = ("-c", "blame.ignoreRevsFile=")
            if output := self.try_to_ask(*without, *words, *lines):
                return output
            raise

    def text(self, commit: str, file: str) -> list[str]:
        """Return the lines of a file in a commit; [] if git cannot read it."""
        return self.try_to_ask("cat-file", "blob", f"{commit}:{file}").splitlines()

    def is_ancestor(self, commit: str, other: str) -> bool:
        """Return True if a commit is an ancestor of another one, or is it."""
        return not self._run(("merge-base", "--is-ancestor", commit, other), "").returncode

    def changed_lines(
        self, ids: Sequence[str], sign: str = "+"
    ) -> dict[str, list[tuple[str, str]]]:
        """Return the lines that each commit adds, as (file, line), without files of Trace.

        With the sign "-", return those that it removes. Raises as `ask`.
        """
        if not ids:
            return {}
        words = ("--stdin", "--root", "-r", "-p", "-U0", "--no-ext-diff", "--no-textconv", "-M")
        output = self.ask("diff-tree", *words, text="".join(f"{each}\n" for each in ids))
        wanted, found, lines = set(ids), dict[str, list[tuple[str, str]]](), list[tuple[str, str]]()
        file = ""
        for line in output.split("\n"):
            if line in wanted:
                lines = found[line] = []
            elif line.startswith(sign * 3 + " "):
                file = line[6:].removesuffix("\t")
                file = "" if f"/{DIRECTORY_NAME}/" in f"/{file}" else file
            elif line.startswith(sign) and file:
                lines.append((file, line[1:]))
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
        id_, made, committed, subject, message = tokens[at : at + _FIELDS]
        at += _FIELDS
        files: list[str] = []
        has_record = False
        while at < len(tokens) and not tokens[at].startswith(_COMMIT_START):
            file = tokens[at].removeprefix("\n")
            if f"/{DIRECTORY_NAME}/" in f"/{file}":
                has_record = True  # Trace's own files are not code
            elif file:
                files.append(file)
            at += 1
        named = tuple(dict.fromkeys(_TRAILER_LINE.findall(message)))
        times = int(made) * 1000, int(committed) * 1000
        id_ = id_.removeprefix(_COMMIT_START)
        yield CodeCommit(id_, *times, subject, tuple(files), named, has_record)


def _blamed(output: str) -> Iterator[tuple[int, BlamedLine]]:
    """Yield lines, with their numbers in the work tree."""
    head: list[str] = []
    file = ""
    for line in output.split("\n"):
        if line.startswith("\t"):
            commit = head[0] if head[0].strip("0") else ""
            yield int(head[2]), BlamedLine(commit, file, int(head[1]), line[1:])
            head = []
        elif not head:
            head = line.split(" ")
        elif line.startswith("filename "):
            file = line.removeprefix("filename ")


def mark_of(line: str, file: str) -> str:
    """Return a short hash of a line without its whitespace; "" if it is blank.

    The hash of a line that many files have, such as `}` or `else:`, depends on the file.
    """
    letters = "".join(line.split())
    text = letters if is_distinct(line) else f"{file}\0{letters}"
    return f"{zlib.crc32(text.encode('utf-8', 'replace')):08x}" if letters else ""


def is_distinct(line: str) -> bool:
    """Return True if few files have such a line by chance."""
    return sum(map(str.isalnum, line)) >= _LEAST_LETTERS


def marks_of(lines: Iterable[tuple[str, str]]) -> str:
    """Return the hashes of lines, given as (file, line), joined; each once."""
    marks = dict.fromkeys(mark for file, line in lines if (mark := mark_of(line, file)))
    return "".join(list(marks)[:MAXIMUM_LINES])


def split_marks(marks: object) -> set[str]:
    """Return the hashes that `marks_of` joined."""
    text = marks if isinstance(marks, str) else ""
    return {text[at : at + 8] for at in range(0, len(text), 8)}


def _text(output: bytes) -> str:
    return output.decode("utf-8", "backslashreplace")

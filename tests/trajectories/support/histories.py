"""Histories of code made by git operations, and how many of their lines `trace why` explains rightly.

    python -m tests.trajectories.support.histories [-v] [KIND...]

Each history records decisions, changes files, and runs git as a person would, with the hooks installed. A line is worth
knowing if it is known which decision it came from, or that it came from none.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.trajectories.support.project import Project
from trace_cli.main import main
from trace_cli.runtime import Invocation
from trace_store import Environment, Repo

VARIANTS = 3
MARKS = ("guess", "same files")


class History(Project):
    """A project in which each line has a known reason. Commits have the present time.

    Attributes:
        expected: the decision behind each line; None if there is none.
    """

    def __init__(self, folder: Path, n: int, *, trailer: bool = False, hook: bool = True) -> None:
        self.expected: dict[str, str | None] = {}
        self.n = n
        self.agent = ""
        self.trailer = trailer
        super().__init__(folder)
        self.put("base.py", "base", None)
        self.commit("base")
        if hook:
            self.hook()

    def hook(self) -> None:
        from trace_store.trajectories import git_hooks
        from trace_store.trajectories.git import Git

        command = [sys.executable, "-m", "trace_cli"]
        git_hooks.install_hooks(Git(str(self.folder)), command, trailer=self.trailer)

    def git(self, *words: str, code: int | None = 0, **variables: str) -> str:
        agent = {"TRACE_AGENT": self.agent} if self.agent else {}
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env={**self.variables, **agent, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert code is None or done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def decide(self, question: str, chosen: str = "", trajectory: str = "") -> None:
        variables = {"TRACE_AGENT": self.agent} if self.agent else {}
        environment = Environment(author="ada", discovery=False, secrets=list(variables.items()))
        with Repo.open(self.folder, environment=environment) as repo:
            repo.trajectories.decide(f"How {question}?", chosen or question, trajectory=trajectory)

    def put(self, file: str, key: str, reason: str | None, *, at: int | None = None) -> None:
        """Add lines to a file, at its end or before a line."""
        path = self.folder / file
        before = path.read_text("utf-8").splitlines() if path.exists() else []
        new = [f"    {key}_{number} = compute({key!r}, {number})" for number in range(2 + self.n)]
        place = len(before) if at is None else at
        self.write(file, "\n".join([*before[:place], *new, *before[place:]]) + "\n")
        self.expected.update(dict.fromkeys(map(str.strip, new), reason))

    def seal(self, message: str, *paths: str) -> str:
        """Commit the files, or those named."""
        self.git("add", "--all", "--", *(paths or (".", ":!.trace")))
        self.git("commit", "-q", "-m", message)
        return self.head

    def step(self, key: str, file: str, *, reason: bool = True, decide: bool = True) -> str:
        """Decide, change a file, and commit."""
        if reason and decide:
            self.decide(key)
        self.put(file, key, key if reason else None)
        return self.seal(f"change {key}")

    def todo(self, script: str, *words: str, code: int | None = 0) -> None:
        """Run an interactive rebase whose list `sed` edits."""
        editor = f"sed -i -e {script!r}"
        self.git("rebase", "-q", "-i", *words, code=code, GIT_SEQUENCE_EDITOR=editor)

    def worktree(self, name: str, branch: str) -> History:
        """Return a linked worktree, whose lines are expected here, too."""
        folder = self.folder.parent / name
        self.git("worktree", "add", "-q", "-b", branch, str(folder))
        other = object.__new__(History)
        other.__dict__.update({**self.__dict__, "folder": folder})
        return other

    def clone(self, name: str = "clone") -> History:
        folder = self.folder.parent / name
        self.git("clone", "-q", str(self.folder), str(folder))
        other = object.__new__(History)
        other.__dict__.update({**self.__dict__, "folder": folder})
        for key, value in (("user.name", "b"), ("user.email", "b@example.org")):
            other.git("config", key, value)
        return other

    def save(self, message: str = "record") -> None:
        """Commit the repository of Trace, as `git add -A` does."""
        self.trace("seal", "-q")
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", message)


Kind = Callable[[History], "History | None"]
KINDS: dict[str, Kind] = {}
TRAILERS = {"clone with trailers", "squash message with trailers"}


def kind(made: Kind) -> Kind:
    KINDS[made.__name__.replace("_", " ").strip()] = made
    return made


@kind
def plain_commits(h: History) -> None:
    h.start("Plain")
    h.step("one", "a.py")
    h.step("none", "a.py", reason=False)
    h.step("two", "b.py")
    h.step("three", "a.py")


@kind
def two_decisions_two_files(h: History) -> None:
    h.start("Two")
    h.step("one", "a.py")
    h.decide("two")
    h.put("b.py", "two", "two")
    h.put("c.py", "also", "two")
    h.seal("both")


@kind
def amend(h: History) -> None:
    h.start("Amend")
    h.step("one", "a.py")
    h.git("commit", "-q", "--amend", "-m", "better")
    h.put("a.py", "more", "one")
    h.git("commit", "-qa", "--amend", "--no-edit")
    h.step("later", "b.py", reason=False)


@kind
def amend_after_second_decision(h: History) -> None:
    h.start("Amend")
    h.step("one", "a.py")
    h.decide("two")
    h.put("a.py", "two", "two")
    if h.n:
        h.put("b.py", "twob", "two")
    h.git("add", "a.py", *(["b.py"] if h.n else []))
    h.git("commit", "-q", "--amend", "--no-edit")
    h.step("unrelated", "c.py", reason=False)


@kind
def squash_merge(h: History) -> None:
    h.start("Squash")
    h.git("switch", "-q", "-c", "feature")
    h.step("one", "a.py")
    h.step("two", "a.py")
    h.step("three", "b.py")
    h.git("switch", "-q", "main")
    h.git("merge", "-q", "--squash", "feature")
    h.seal("all of it (#1)")
    if h.n:
        h.git("branch", "-q", "-D", "feature")
    h.step("unrelated", "c.py", reason=False)


@kind
def squash_message_with_trailers(h: History) -> History:
    """As GitHub writes it, in a clone that lacks the squashed commits."""
    id_ = h.start("Squash")
    h.git("switch", "-q", "-c", "feature")
    h.step("one", "a.py")
    h.step("two", "b.py")
    h.git("switch", "-q", "main")
    h.git("merge", "-q", "--squash", "feature")
    h.seal(
        f"all (#1)\n\n* change one\n\nTrajectory: {id_}\n\n* change two\n\nTrajectory: {id_}\n\n"
        "Co-authored-by: Bob <bob@example.org>"
    )
    h.git("branch", "-q", "-D", "feature")
    h.decide("after")
    h.save()
    return h.clone()


@kind
def merge(h: History) -> None:
    h.start("Merge")
    h.git("switch", "-q", "-c", "feature")
    h.step("one", "a.py")
    h.git("switch", "-q", "main")
    h.step("two", "b.py")
    h.git("merge", "-q", "--no-ff", "--no-edit", "feature")
    h.step("three", "a.py")
    h.step("none", "c.py", reason=False)


@kind
def rebase(h: History) -> None:
    h.start("Rebase")
    h.git("switch", "-q", "-c", "feature")
    h.step("one", "a.py")
    h.step("two", "a.py")
    h.git("switch", "-q", "main")
    h.step("main", "b.py", reason=False)
    h.git("rebase", "-q", "main", "feature")
    h.step("none", "c.py", reason=False)


@kind
def rebase_with_a_conflict(h: History) -> None:
    h.start("Rebase")
    h.git("switch", "-q", "-c", "feature")
    h.step("one", "base.py")
    h.git("switch", "-q", "main")
    h.decide("main")
    h.put("base.py", "main", "main")
    h.seal("main")
    h.git("rebase", "-q", "main", "feature", code=1)
    text = (h.folder / "base.py").read_text("utf-8").splitlines()
    h.write("base.py", "\n".join(x for x in text if x[:1] not in "<=>") + "\n")
    h.git("add", "base.py")
    h.git("rebase", "--continue")
    h.step("none", "c.py", reason=False)


@kind
def reorder(h: History) -> None:
    h.start("Reorder")
    h.step("one", "a.py")
    h.step("two", "b.py")
    h.step("three", "c.py")
    h.todo("1{h;d};2G", "HEAD~2" if h.n else "HEAD~3")
    h.step("none", "d.py", reason=False)


@kind
def break_(h: History) -> None:
    h.start("Break")
    h.step("one", "a.py")
    h.step("two", "b.py")
    h.todo("1ibreak", "HEAD~2")
    h.step("helper", "helper.py")
    h.git("rebase", "--continue")
    h.step("unrelated", "c.py", reason=False)


@kind
def edit(h: History) -> None:
    h.start("Edit")
    h.step("one", "a.py")
    h.step("two", "b.py")
    h.todo("1s/^pick/edit/", "HEAD~2")
    h.decide("edited")
    h.put("a.py", "edited", "edited")
    h.git("add", "a.py")
    if h.n:
        h.git("commit", "-q", "--amend", "--no-edit")
    h.git("rebase", "--continue")
    h.step("unrelated", "c.py", reason=False)


@kind
def split_commit(h: History) -> None:
    h.start("Split")
    h.decide("one")
    h.put("a.py", "one", "one")
    h.put("b.py", "oneb", "one")
    h.seal("a and b")
    h.step("two", "c.py")
    h.todo("1s/^pick/edit/", "HEAD~2")
    h.git("reset", "-q", "HEAD~1")
    h.seal("only a", "a.py")
    h.seal("only b", "b.py")
    h.git("rebase", "--continue")
    h.step("unrelated", "d.py", reason=False)


@kind
def fixup(h: History) -> None:
    h.start("Fixup")
    h.step("one", "a.py")
    h.step("two", "b.py")
    h.decide("three")
    h.put("a.py", "three", "three")
    h.git("add", "a.py")
    h.git("commit", "-q", "--fixup", "HEAD~1")
    h.git("rebase", "-q", "-i", "--autosquash", "HEAD~3")
    h.step("unrelated", "c.py", reason=False)


@kind
def squash_in_a_rebase(h: History) -> None:
    h.start("Squash")
    h.step("one", "a.py")
    h.step("two", "b.py")
    h.step("three", "a.py")
    h.todo("2,3s/^pick/squash/", "HEAD~3")
    h.step("unrelated", "c.py", reason=False)


@kind
def cherry_pick(h: History) -> None:
    h.start("Pick")
    h.git("switch", "-q", "-c", "feature")
    h.step("one", "a.py")
    h.step("two", "b.py")
    h.git("switch", "-q", "main")
    h.step("main", "c.py", reason=False)
    h.decide("waits")
    h.git("cherry-pick", "feature~1")
    if h.n:
        h.git("cherry-pick", "-x", "feature")
        h.git("branch", "-q", "-D", "feature")
    h.put("d.py", "waits", "waits")
    h.seal("what waited")


@kind
def revert(h: History) -> None:
    h.start("Revert")
    h.step("one", "a.py")
    h.git("rm", "-q", "a.py")
    h.seal("remove a")
    h.decide("back")
    h.git("revert", "--no-edit", "HEAD")
    for line, reason in h.expected.items():
        h.expected[line] = "back" if reason == "one" else reason
    h.step("unrelated", "c.py", reason=False)


@kind
def revert_without_a_decision(h: History) -> None:
    """What a revert restores has the reason that it had before, also under another name."""
    h.start("Undo")
    h.step("one", "a.py")
    if h.n:
        h.git("mv", "a.py", "b.py")
        h.seal("move")
    file = "b.py" if h.n else "a.py"
    h.decide("two")
    text = (h.folder / file).read_text("utf-8")
    h.write(file, text.replace("compute(", "calculate("))
    h.seal("change two")
    h.git("revert", "--no-edit", "HEAD")
    if h.n == 2:
        h.git("revert", "--no-edit", "HEAD")
        for line in [line for line, reason in h.expected.items() if reason == "one"]:
            h.expected[line.replace("compute(", "calculate(")] = "two"
    h.step("unrelated", "c.py", reason=False)


@kind
def stash(h: History) -> None:
    """The decision is about what was stashed."""
    h.start("Stash")
    h.step("one", "a.py")
    h.decide("two")
    h.put("b.py", "two", "two")
    h.git("stash", "-q", "-u", "--", "b.py")
    if h.n == 1:
        h.step("three", "c.py")
    elif h.n == 2:
        h.step("hotfix", "c.py", reason=False)
    h.git("stash", "pop", "-q")
    h.seal("change two")
    h.step("unrelated", "d.py", reason=False)


@kind
def another_branch_first(h: History) -> None:
    """The decision is about work on one branch; the next commit is on another one."""
    h.start("Hotfix")
    h.git("branch", "-q", "release")
    h.git("switch", "-q", "-c", "feature")
    h.step("one", "a.py")
    time.sleep(1)  # git's times have no smaller unit
    h.decide("two")
    h.git("switch", "-q", "release")
    h.step("hotfix", "c.py", reason=False)
    h.git("switch", "-q", "feature")
    h.put("b.py", "two", "two")
    h.seal("change two")
    h.git("merge", "-q", "--no-edit", "release")


@kind
def a_branch_for_the_decision(h: History) -> None:
    h.start("Branch")
    h.step("one", "a.py")
    h.decide("two")
    h.git("switch", "-q", "-c", "feature")
    h.put("b.py", "two", "two")
    h.seal("change two")
    h.git("switch", "-q", "main")
    h.step("hotfix", "c.py", reason=False)
    h.git("merge", "-q", "--no-edit", "feature")


@kind
def linked_worktree(h: History) -> History:
    h.start("Main")
    h.step("one", "a.py")
    h.save()
    other = h.worktree("w", "feature")
    other.trace("trajectory", "start", "Feature", "-q")
    h.decide("main") if h.n else None
    other.decide("two")
    other.put("b.py", "two", "two")
    other.seal("there")
    if h.n:
        h.put("c.py", "main", "main")
        h.seal("here")
        h.save()
    other.git("merge", "-q", "--no-edit", "main")
    return other


@kind
def two_agents(h: History) -> None:
    """Two trajectories are active, and `TRACE_AGENT` says who works."""
    ids = {}
    for agent in ("lead", "tester"):
        h.agent = agent
        words = ("trajectory", "start", f"Of {agent}", "--agent", agent)
        ids[agent] = h.trace(*words).text.split()[0]
    for round_ in range(2):
        for agent in ("lead", "tester"):
            h.agent = agent
            h.decide(f"{agent}{round_}", trajectory=ids[agent])
        for agent in ("tester", "lead"):
            h.agent = agent
            key = f"{agent}{round_}"
            h.put(f"{agent}.py", key, key)
            h.seal(f"change {key}", f"{agent}.py")


@kind
def move(h: History) -> None:
    h.start("Move")
    h.step("one", "a.py")
    h.decide("two")
    (h.folder / "src").mkdir()
    h.git("mv", "a.py", "src/b.py")
    h.put("src/b.py", "two", "two")
    h.seal("move")
    h.step("three", "src/b.py")
    if h.n:
        h.git("mv", "src/b.py", "c.py")
        h.seal("move again")


@kind
def copy_and_split(h: History) -> None:
    h.start("Copy")
    h.step("one", "a.py")
    h.step("two", "a.py")
    h.decide("split")
    lines = (h.folder / "a.py").read_text("utf-8").splitlines(keepends=True)
    half = len(lines) // 2
    h.write("a.py", "".join(lines[:half]))
    h.write("b.py", "".join(lines[half:]))
    h.put("b.py", "split", "split")
    h.seal("split")


@kind
def reformat(h: History) -> None:
    h.start("Reformat")
    h.step("one", "a.py")
    h.step("two", "a.py")
    h.decide("four spaces more")
    text = (h.folder / "a.py").read_text("utf-8")
    h.write("a.py", text.replace("    ", "\t\t"))
    h.seal("reformat")
    h.step("three", "b.py")


@kind
def ignored_revision(h: History) -> None:
    h.start("Ignore")
    h.step("one", "a.py")
    text = (h.folder / "a.py").read_text("utf-8")
    h.write("a.py", text.replace("compute(", "calculate("))
    for line in [line for line, reason in h.expected.items() if reason == "one"]:
        h.expected[line.replace("compute(", "calculate(")] = h.expected.pop(line)
    commit = h.seal("rename a function")
    h.write(".git-blame-ignore-revs", commit + "\n")
    h.seal("ignore it")


@kind
def unrelated_commit(h: History) -> None:
    h.start("Unrelated")
    h.step("one", "a.py")
    h.step("none", "b.py", reason=False)
    h.step("noneb", "a.py", reason=False)
    h.step("two", "c.py")


@kind
def after_complete(h: History) -> None:
    h.start("Complete")
    h.step("one", "a.py")
    h.decide("two")
    h.put("b.py", "two", "two")
    h.trace("trajectory", "complete", "Done", "-q")
    h.save("change two, with its record")
    h.step("unrelated", "c.py", reason=False)


@kind
def clone_with_trailers(h: History) -> History:
    h.start("Trailer")
    h.save()
    h.step("one", "a.py")
    h.decide("two")
    h.put("b.py", "two", "two")
    h.save("change two, with its record")
    other = h.clone()
    other.hook()
    other.step("unrelated", "c.py", reason=False)
    return other


@kind
def reset_and_commit_again(h: History) -> None:
    h.start("Reset")
    h.step("one", "a.py")
    h.git("reset", "-q", "--soft", "HEAD~1")
    if h.n:
        h.decide("two")
        h.put("a.py", "two", "two")
    h.put("b.py", "more", "two" if h.n else "one")
    h.seal("again")
    h.step("unrelated", "c.py", reason=False)


@kind
def without_hooks(h: History) -> None:
    """The hooks did not run for one commit; it was linked by hand later."""
    h.start("None")
    h.step("one", "a.py")
    h.git("config", "core.hooksPath", os.devnull)
    h.step("two", "b.py")
    h.git("config", "--unset", "core.hooksPath")
    h.trace("trajectory", "link", "HEAD", "-q")
    h.step("unrelated", "c.py", reason=False)
    h.step("three", "d.py")


RIGHT, LISTED, MARKED_RIGHT = "right first", "listed", "right, marked"
WRONG_MARKED, WRONG = "wrong, marked", "wrong, without a mark"
NONE_RIGHT, NONE_WRONG = "no decision, right", "no decision, one given without a mark"
COLUMNS = (RIGHT, MARKED_RIGHT, LISTED, WRONG_MARKED, WRONG, NONE_RIGHT, NONE_WRONG)


def judge(history: History, verbose: bool = False) -> Counter[str]:
    """Ask `why` for each line of the files at HEAD, and count how right the answers are."""
    counts: Counter[str] = Counter()
    files = history.git("ls-files", "-z", "--", "*.py").split("\0")
    for file in filter(None, files):
        text = (history.folder / file).read_text("utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            expected = history.expected[line.strip()]
            answers = asked(history, f"{file}:{number}")
            outcome = judged(expected, answers)
            counts[outcome] += 1
            if verbose and outcome not in (RIGHT, NONE_RIGHT):
                print(f"    {outcome}: {file}:{number} {expected} {answers}")
    return counts


def asked(history: History, target: str) -> list[tuple[str, bool]]:
    """Return the decisions behind a line in order, and whether each has a mark."""
    folder, output, error = os.getcwd(), io.BytesIO(), io.BytesIO()
    invocation = Invocation(
        environment=Environment(author="ada", discovery=False),
        output=output,
        error=error,
        input=io.BytesIO(),
        terminal=False,
    )
    os.chdir(history.folder)
    try:
        assert main(("why", target, "--json"), invocation) == 0, error.getvalue().decode()
    finally:
        os.chdir(folder)
    found = []
    for row in map(json.loads, output.getvalue().splitlines()):
        is_marked = row["guess"] or row["how"] == "same files"
        found += [(each["chosen"], is_marked) for each in row["decisions"]]
    return found


def judged(expected: str | None, answers: list[tuple[str, bool]]) -> str:
    if expected is None:
        return NONE_WRONG if any(not marked for _, marked in answers) else NONE_RIGHT
    if not answers:
        return WRONG_MARKED
    first, is_marked = answers[0]
    if first == expected:
        return MARKED_RIGHT if is_marked else RIGHT
    if expected in [chosen for chosen, _ in answers]:
        return LISTED
    return WRONG_MARKED if is_marked else WRONG


def tell(kinds: Iterable[str], variants: Iterable[int], verbose: bool = False) -> Counter[str]:
    """Make the histories, print a row for each kind, and return the sums."""
    total: Counter[str] = Counter()
    for name in kinds:
        counts: Counter[str] = Counter()
        for n in variants:
            with tempfile.TemporaryDirectory() as folder:
                history = History(Path(folder) / "p", n, trailer=name in TRAILERS)
                counts += judge(KINDS[name](history) or history, verbose)
        total += counts
        print(f"{name:32}" + "  ".join(f"{key} {counts[key]}" for key in COLUMNS if counts[key]))
    decided = sum(total[key] for key in COLUMNS[:5])
    print(f"{sum(total.values())} lines; with a decision: {decided}")
    for key in COLUMNS:
        print(f"  {key:32}{total[key]:5}")
    return total


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "-v"]
    tell(words or list(KINDS), range(VARIANTS), "-v" in sys.argv)

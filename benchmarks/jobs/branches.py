"""Commands on two diverged branches, compared with git: merge, diff, log, rebase."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.commands import Task, git, trace
from benchmarks.job import Contestant, Job, Row
from benchmarks.peers.parted import FEW, MANY

STATED = 100_000
SIZES = (2_000, 10_000, STATED)
TRACE, GIT, SPARSE = "Trace", "git", "git, sparse"
FRESH, GIT_FRESH = "Trace, the first in a fresh copy", "git, without a commit graph"
SHORT = ", a tenth of the history"
COMPLETION = 1.2
"""How many times as long a command of Trace may take in a history that is ten times as long."""


class _Command(NamedTuple):
    """What is asked of both.

    Attributes:
        name: the job's.
        text: what it does, for a table.
        trace, git: the commands.
        files: whether it matters to git that files are checked out.
        rounds: how many samples.
    """

    name: str
    text: str
    trace: Task
    git: Task
    files: bool = True
    rounds: int = 15

    def time(self) -> Job:
        """Return the job that times it."""
        gits = self._gits()
        return Job(
            name=self.name,
            title=f"A whole process: {self.text}",
            unit="s",
            sizes=SIZES,
            rounds=self.rounds,
            contestants=(
                trace(TRACE, self.trace),
                *gits,
                trace(FRESH, self.trace, fresh=True),
                git(GIT_FRESH, self.git, sparse=True, fresh=True),
            ),
            rows=tuple(Row(self.text, TRACE, each.name, 0) for each in gits),
        )

    def memory(self) -> Job:
        """Return the job about peak memory."""
        gits = self._gits(memory=True)
        return Job(
            name=f"{self.name}-memory",
            title=f"The most that a process holds in memory: {self.text}",
            unit="B",
            sizes=SIZES,
            rounds=3,
            contestants=(trace(TRACE, self.trace, memory=True), *gits),
            rows=tuple(
                Row(f"memory: {self.text}", TRACE, each.name, 0, at_most=True) for each in gits
            ),
        )

    def growth(self) -> Job:
        """Return the job that compares a long history with one of a tenth of it."""
        gits = self._gits()
        return Job(
            name=f"growth-{self.name}",
            title=f"A whole process, in a history and in one of a tenth of its length: {self.text}",
            unit="s",
            sizes=(STATED,),
            rounds=self.rounds,
            contestants=(
                trace(TRACE, self.trace),
                trace(TRACE + SHORT, self.trace, tenth=True),
                *gits,
                *self._gits(tenth=True),
            ),
            rows=(
                self._grown(TRACE, COMPLETION),
                *(self._grown(each.name, 0) for each in gits),
            ),
        )

    def _grown(self, name: str, target: float) -> Row:
        text = f"{self.text}: {name} in ten times the history"
        return Row(text, name, name + SHORT, target, at_most=True)

    def _gits(self, *, memory: bool = False, tenth: bool = False) -> tuple[Contestant, ...]:
        """Return git with its files checked out, where that matters, and with none."""
        return tuple(
            git(name + SHORT * tenth, self.git, sparse=sparse, memory=memory, tenth=tenth)
            for name, sparse in ((GIT, False), (SPARSE, True))[not self.files :]
        )


_ONE_FILE = Task("main", (("cherry-pick", "edited"),))
"""Git takes over a commit that changes one file."""
_SHARED = f"HEAD~{FEW}.0"
START = _Command(
    "version",
    "nothing but a start",
    Task("main", (("version",),)),
    Task("main", (("version",),)),
    files=False,
    rounds=30,
)
STATUS = _Command("status", "status", *(Task("main", (("status",),)),) * 2)
APPEND = _Command(
    "append-one",
    "append a message; git: commit without a change",
    Task("main", (("commit", "-q", "--user", "And then?"),)),
    Task("main", (("commit", "-q", "--allow-empty", "-m", "And then?"),)),
)
CHANGES = tuple(
    _Command(name, f"{text}; git: take over a change of one file", Task("main", (step,)), _ONE_FILE)
    for name, text, step in (
        ("edit", "edit a message", ("edit", _SHARED, "Said otherwise.")),
        ("pin", "pin a message", ("pin", _SHARED)),
        ("remove", "remove a message", ("remove", _SHARED)),
    )
)
_REVERT = Task("edited", (("revert", "HEAD"),))
REVERT = _Command(
    "revert",
    "revert an edit",
    _REVERT,
    Task("edited", (("revert", "--no-edit", "HEAD"),)),
)
MERGE = _Command(
    "merge",
    f"merge a branch that parted {FEW} commits ago",
    Task("main", (("merge", "side"),)),
    Task("main", (("merge", "--no-edit", "side"),)),
)
MERGED = _Command(
    "merge-then-status",
    "status right after that merge",
    Task("main", (("status",),), before=(("merge", "side"),)),
    Task("main", (("status",),), before=(("merge", "--no-edit", "side"),)),
)
_BOTH_REWORDED = Task("edited", (("merge", "other"), ("merge", "--abort")), stops=True)
CONFLICT = _Command(
    "merge-conflict",
    "merge a branch that reworded the same message, and give up",
    _BOTH_REWORDED,
    _BOTH_REWORDED,
)
_DIFF = Task("main", (("diff", "main..side"),))
DIFF = _Command("diff", f"diff of two branches, {FEW} commits each", _DIFF, _DIFF, files=False)
_DIFF_EDIT = Task("edited", (("diff", "main..edited"),))
DIFF_EDIT = _Command(
    "diff-edit",
    "diff of a branch with itself and an edit, not compiled before",
    _DIFF_EDIT,
    _DIFF_EDIT,
    files=False,
)
LAST = _Command(
    "log-last",
    "log of the last 50 commits",
    Task("main", (("log", "-n", "50"),)),
    Task("main", (("log", "--oneline", "-n", "50"),)),
    files=False,
    rounds=30,
)
WHOLE = _Command(
    "log-whole",
    "log of all commits",
    Task("main", (("log",),)),
    Task("main", (("log", "--oneline"),)),
    files=False,
)
GRAPH = _Command(
    "log-graph",
    "log of all commits as a graph",
    Task("main", (("log", "--graph"),)),
    Task("main", (("log", "--oneline", "--graph"),)),
    files=False,
)
_BY_NOBODY = Task("main", (("log", "--author", "nobody"),))
AUTHOR = _Command(
    "log-author",
    "log of the commits by somebody who made none",
    _BY_NOBODY,
    _BY_NOBODY,
    files=False,
)
_REBASE = Task("side", (("rebase", "main"),))
REBASE = _Command("rebase", f"rebase {FEW} commits", _REBASE, _REBASE)
_REBASE_MANY = Task("long", (("rebase", "main"),))
REBASE_MANY = _Command(
    "rebase-many", f"rebase {MANY} commits", _REBASE_MANY, _REBASE_MANY, rounds=5
)
_PICK = Task("main", (("cherry-pick", "main..side"),))
PICK = _Command("cherry-pick", f"cherry-pick {FEW} commits", _PICK, _PICK)
_SWITCH = Task("main", (("switch", "side"),))
SWITCH = _Command("switch", "switch to another branch", _SWITCH, _SWITCH)

TIMED = (
    *(START, STATUS, APPEND, *CHANGES, REVERT),
    *(MERGE, MERGED, CONFLICT, DIFF, DIFF_EDIT, LAST, WHOLE, GRAPH, AUTHOR),
    *(REBASE, REBASE_MANY, PICK, SWITCH),
)
HELD = (MERGE, DIFF, LAST, WHOLE, REBASE, SWITCH)
GROWING = (MERGE, MERGED, DIFF, DIFF_EDIT, LAST, REBASE, SWITCH)

JOBS = (
    *(each.time() for each in TIMED),
    *(each.memory() for each in HELD),
    *(each.growth() for each in GROWING),
)

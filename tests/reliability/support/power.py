"""Real power cuts: processes write to a repository on ext4, XFS or Btrfs, and the disk stops at any moment.

    python -m tests.reliability.support.power --cuts 60

A log outside the disk says what was promised before the cut. Then the file system is mounted as the cut left it, the
store is opened and checked, a commit is made, and the processes go on from there to the next cut. Needs root.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from random import Random

import filelock  # noqa: F401 - so that no process has to import it

import trace_store
from tests.reliability.support import power_roles as roles
from tests.reliability.support.power_machine import ENTER, KINDS, Machine, missing
from tests.reliability.support.storm import USED
from tests.reliability.support.storm_texts import RESCUED, BadReadError, Line, Logs
from trace_store import Repo
from trace_store.base.oid import ObjectId
from trace_store.disk.files import Disk
from trace_store.errors import TraceError
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.fsck_objects import ERROR
from trace_store.maintenance.seal import seal
from trace_store.store.store import Store

CUTS_A_DISK = 12
"""After so many cuts a new disk is put in, so that histories stay short."""
MOST_SECONDS = 1.2
"""How long processes write at most before a cut."""
UNSYNCED = ("files", "names", "all")
"""Which syncs can be left out, to show that this is noticed."""

Findings = dict[str, list[str]]


class PowerCuts:
    """One machine with its processes and the findings."""

    def __init__(self, kind: str, folder: str, seed: int, without: str = "") -> None:
        self.kind = kind
        self.without = without
        self.machine = Machine(kind, folder)
        self.random = Random(f"{seed} {kind}")
        self.seed = seed
        self.folder = self.machine.root / "project"
        self.life = self.cuts = self.acknowledged = self.lost = self.damages = 0
        self.violations: list[str] = []
        self.new_disk()

    def new_disk(self) -> None:
        """Put in an empty disk, and make a repository, which is then promised to be there."""
        self.machine.install()
        shutil.rmtree(self.machine.folder / "logs", ignore_errors=True)
        self.logs = Logs(self.machine.folder / "logs")
        self.counted = 0
        assert not self.apart(self.initialise)

    def initialise(self) -> Findings:
        Store.init(str(self.folder)).close()
        return {}

    def run(self, cuts: int) -> None:
        """Cut the power so often."""
        sound = True
        for number in range(cuts):
            if number and (number % CUTS_A_DISK == 0 or not sound):
                self.new_disk()
            sound = self.cut()

    def cut(self) -> bool:
        """Let everybody write, cut the power, and tell whether all is well afterwards."""
        self.life += 1
        pids = [self.begin(name) for name in self.chosen()]
        time.sleep(self.random.uniform(0.05, MOST_SECONDS))
        known = {path: path.stat().st_size for path in self.logs.folder.glob("acks/*")}
        done = len(self.logs.lines("moves"))
        self.machine.cut()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        for path in self.logs.folder.glob("acks/*"):
            os.truncate(path, known.get(path, 0))  # later data was lost
        total = sum(len(self.logs.acknowledged(path.name)) for path in known)
        self.acknowledged, self.counted = self.acknowledged + total - self.counted, total
        self.cuts += 1
        try:
            self.machine.restart()
            found = self.apart(lambda: self.look(self.allowed(done)))
        except subprocess.CalledProcessError as error:
            found = {"wrong": [f"not mounted: {error.stderr.strip()}"]}
        lost = found.get("lost", [f"all {total}"] * total)
        wrong = [*found.get("wrong", []), *lost[:1], *self.logs.lines("bad")]
        self.lost += len(lost)
        self.damages += bool(found.get("damaged"))
        self.violations += [f"{self.kind}, cut {self.cuts}: {each}" for each in wrong]
        return not wrong

    def chosen(self) -> list[str]:
        """Return the roles until the next cut: a writer and any others."""
        always = self.random.choice(roles.WRITERS)
        return [name for name in roles.CAST if name == always or self.random.random() < 0.4]

    def begin(self, name: str) -> int:
        """Start a process."""
        pid = os.fork()
        if pid:
            return pid
        try:
            leave_out(self.without)
            role = roles.CAST[name](self.folder, self.logs, name, self.life, self.seed)
            role.journals = False
            role.run()
        except BaseException:  # noqa: BLE001 - whatever it is, it is a finding
            self.logs.add("bad", f"{name} failed: {traceback.format_exc()}")
        finally:
            os._exit(1)

    def apart(self, work: Callable[[], Findings]) -> Findings:
        """Do something in a process of its own, so that whatever it opened is closed before the next cut."""
        answer = self.machine.folder / "answer"
        answer.unlink(missing_ok=True)
        pid = os.fork()
        if not pid:
            try:
                answer.write_text(json.dumps(work()))
            except BaseException:  # noqa: BLE001 - whatever it is, it is a finding
                answer.write_text(json.dumps({"wrong": [traceback.format_exc()]}))
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        found: Findings = json.loads(answer.read_text())
        return found

    def allowed(self, done: int) -> dict[str, set[str]]:
        """Return the possible values of each ref after the cut: acknowledged or started."""
        allowed = {name: {roles.NOTHING} for name in roles.NAMES}
        for number, line in enumerate(self.logs.lines("moves")):
            event, name, value = line.split()
            if event == "begun":
                allowed[name].add(value)
            elif number < done:
                allowed[name] = {value}
        return allowed

    def look(self, allowed: dict[str, set[str]]) -> Findings:
        """Return faults and missing commits, and continue with the repository."""
        wrong: list[str] = []
        try:
            with Repo.open(self.folder, create=False) as repo:
                store = repo.store
                lost = self.histories(store, wrong)
                moves = self.moves(store, allowed, wrong)
                wrong += [f"diverged: {name}" for name in store.refs.diverged()]
                wrong += [f"recovered: {name}" for name, _ in store.refs.iterate_tips(RESCUED)]
                damaged = self.damaged(store, wrong)
                if not wrong and not lost:
                    (self.logs.folder / "moves").write_text("".join(moves))
                    self.go_on(repo)
        except (BadReadError, TraceError) as error:
            wrong.append(f"{type(error).__name__}: {error}")
            return {"wrong": wrong}
        return {"wrong": wrong, "lost": lost, "damaged": damaged}

    def damaged(self, store: Store, wrong: list[str]) -> list[str]:
        """Check all objects; return corrupt ones that were only written with `fast`."""
        unpromised = set(self.logs.lines("loose"))
        codes = "unreachable-object-cut-off", "spare-object-cut-off"
        found = [each for each in fsck(store) if each.severity == ERROR or each.code in codes]
        allowed = [each.what for each in found if each.code in codes and each.what in unpromised]
        wrong += [f"fsck: {each}" for each in found if each.what not in allowed]
        return allowed

    def histories(self, store: Store, wrong: list[str]) -> list[str]:
        """Read all branches; return the acknowledged commits that are missing."""
        lines: dict[str, Line] = {}
        lost: list[str] = []
        for path in sorted(self.logs.folder.glob("acks/*")):
            branch = path.name if path.name.startswith("own") else "main"
            if branch not in lines:
                lines[branch] = Line()
                lines[branch].follow(store, store.refs.read(f"refs/heads/{branch}"))
                wrong += lines[branch].faults()
            promised: list[ObjectId] = self.logs.acknowledged(path.name)
            lost += [f"{path.name} {oid}" for oid in promised if oid not in lines[branch].said]
        return lost

    def moves(self, store: Store, allowed: dict[str, set[str]], wrong: list[str]) -> list[str]:
        """Compare the moved refs; return their expected values from now on."""
        lines: list[str] = []
        for name in roles.NAMES:
            found = str(store.refs.read(name) or roles.NOTHING)
            if found not in allowed[name]:
                wrong.append(f"{name} is {found}, and not {' or '.join(allowed[name])}")
            lines.append(f"done {name} {found}\n")
        return lines

    def go_on(self, repo: Repo) -> None:
        """Commit after the cut, and sometimes seal."""
        writer = roles.DurableWriter(self.folder, self.logs, "main-after", self.life, self.seed)
        writer.repo, writer.number = repo, 0
        writer.write()
        if self.life % 2:
            seal(repo.store)


def leave_out(what: str) -> None:
    """Make syncs do nothing, in this process."""

    def nothing(*_: object) -> None:
        """Return at once."""

    if what in ("files", "all"):
        Disk.sync = nothing  # type: ignore[assignment, method-assign]
    if what in ("names", "all"):
        Disk.sync_directory = nothing  # type: ignore[assignment, method-assign]


def table(rows: list[PowerCuts]) -> str:
    """Return the findings, one row per file system."""
    head = ["file system", "cuts", "acknowledged", "lost", "violations"]
    lines = [head, ["---", *["--:"] * 4]]
    for row in rows:
        counts = (row.cuts, row.acknowledged, row.lost, len(row.violations))
        lines.append([row.kind, *(f"{count:,}" for count in counts)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def arguments() -> argparse.Namespace:
    """Return the parsed options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(KINDS)}; else all")
    parser.add_argument("--cuts", type=int, default=60, help="on each file system")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument(
        "--without",
        choices=UNSYNCED,
        default="",
        help="leave syncs out, once the repository is made",
    )
    shared = Path("/dev/shm")
    folder = str(shared) if shared.is_dir() else tempfile.gettempdir()
    parser.add_argument("--folder", default=folder, help="where images lie; memory is fastest")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.kinds = given.kinds or list(KINDS)
    if unknown := set(given.kinds) - set(KINDS):
        parser.error(f"no such file system: {', '.join(sorted(unknown))}")
    return given


def main() -> int:
    """Cut the power, and tell whether anything was lost or wrong."""
    given = arguments()
    for kind in given.kinds:
        if reason := missing(kind):
            print(f"{kind}: {reason}", file=sys.stderr)
            return 2
    if not given.inside:
        words = [sys.executable, "-m", "tests.reliability.support.power", *sys.argv[1:]]
        os.execvp(ENTER[0], [*ENTER, *words, "--inside", "--seed", str(given.seed)])
    faulthandler.enable()
    for each in walk_packages(trace_store.__path__, "trace_store."):
        if each.name.split(".")[1] in USED:
            import_module(each.name)  # once, before the processes are made
    gc.freeze()  # so that child processes do not scan shared objects
    rows: list[PowerCuts] = []
    for kind in given.kinds:
        rows.append(PowerCuts(kind, given.folder, given.seed, given.without))
        try:
            rows[-1].run(given.cuts)
        finally:
            rows[-1].machine.remove()
    print(table(rows))
    damages = sum(row.damages for row in rows)
    print(
        f"cuts after which objects stored loosely in `fast`, which nobody was promised, were damaged: {damages}"
    )
    violations = [each for row in rows for each in row.violations]
    print("\n".join([f"seed {given.seed}", *(line[:400] for line in violations[:40])]))
    return 1 if violations or sum(row.lost for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

"""The storm: many processes on one repository, killed at any moment, their locks and journals deleted under them.

    python -m tests.reliability.support.storm --seconds 300

Eight writers share a branch, eight have one each; readers, which take no lock, check all that they read; others seal,
pack and collect. A log outside the repository says what was acknowledged. At the end all of it has to be there.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import fcntl
import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from random import Random

import filelock  # noqa: F401 - so that no process has to import it

import trace_store
from tests.reliability.support import storm_roles as roles
from tests.reliability.support.storm_texts import RESCUED, BadReadError, Line, Logs, read_said
from trace_store.base.oid import ObjectId
from trace_store.errors import TraceError
from trace_store.history import commit
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.fsck_objects import ERROR
from trace_store.maintenance.seal import seal
from trace_store.objects.message import Message
from trace_store.store.store import Store
from trace_store.writer import Writer

USED = ("context", "history", "journal", "maintenance", "objects", "odb", "refs", "store")
STOP_SECONDS = 60
"""How long a process that must not be killed may take to come to its next commit."""


class Storm:
    """The processes, and who kills them."""

    def __init__(self, folder: Path, seed: int, writers: int, *, journals: bool = True) -> None:
        self.folder = folder / "project"
        self.logs = Logs(folder / "logs")
        self.journals = journals
        self.seed = seed
        self.random = Random(seed)
        self.cast: dict[str, roles.Make] = {
            **{f"main{n}": roles.Writer for n in range(writers)},
            **{f"own{n}": roles.BranchWriter for n in range(writers)},
            "reader": roles.Reader,
            "passing-reader": roles.Reader,
            "sealer": roles.Sealer,
            "packer": roles.Packer,
            "collector": roles.Collector,
        }
        self.pids: dict[str, int] = {}
        self.incarnations: Counter[str] = Counter()
        self.kills = 0
        self.lock_deletions = 0
        Store.init(str(self.folder)).close()

    def run(self, seconds: float, *, until_bad: bool = False) -> None:
        """Let it rage for so long, or until the first thing that is wrong, and kill all."""
        for each in walk_packages(trace_store.__path__, "trace_store."):
            if each.name.split(".")[1] in USED:
                import_module(each.name)  # once, before the processes are made
        gc.freeze()  # so that child processes do not scan shared objects
        for name in self.cast:
            self.start(name)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.random.random() < 0.6:
                self.kill(self.random.choice([name for name in self.cast if name != "reader"]))
            else:
                self.delete_locks()
            self.notice_ends()
            if until_bad and self.logs.lines("bad"):
                break
            time.sleep(self.random.uniform(0, 0.05))
        for name in list(self.pids):
            self.kill(name, again=False)
        if until_bad and self.logs.lines("bad"):
            shutil.copytree(self.folder, self.folder.with_name("as-found"), symlinks=True)

    def start(self, name: str) -> None:
        """Begin the next incarnation of a process."""
        self.incarnations[name] += 1
        pid = os.fork()
        if pid:
            self.pids[name] = pid
            return
        try:
            with (self.logs.folder / "stacks").open("ab", buffering=0) as stacks:
                faulthandler.register(signal.SIGUSR1, os.dup(stacks.fileno()))
            role = self.cast[name](self.folder, self.logs, name, self.incarnations[name], self.seed)
            role.journals = self.journals
            role.run()
        except BaseException:  # noqa: BLE001 - whatever it is, it is a finding
            self.logs.add("bad", f"{name} failed: {traceback.format_exc()}")
        finally:
            os._exit(1)

    def kill(self, name: str, *, again: bool = True) -> None:
        """Kill a process, unless it alone holds a deleted journal."""
        guard = self.logs.guard(name)
        end = time.monotonic() + (0 if again else STOP_SECONDS)
        try:
            while True:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                if again:
                    return
                if time.monotonic() > end:
                    self.logs.add("bad", f"{name} hangs: see the log of stacks")
                    for pid in self.pids.values():  # one of them may hold the lock
                        os.kill(pid, signal.SIGUSR1)
                    time.sleep(1)
                    break
                time.sleep(0.01)
            pid = self.pids.pop(name)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self.kills += 1
        finally:
            os.close(guard)
        if again:
            self.start(name)

    def notice_ends(self) -> None:
        """Restart processes that ended by themselves; the log has the reason."""
        for name, pid in list(self.pids.items()):
            if os.waitpid(pid, os.WNOHANG)[0]:
                del self.pids[name]
                self.start(name)

    def delete_locks(self) -> None:
        """Delete the lock files of all long operations, even held ones."""
        folder = self.folder / ".trace" / "locks"
        for path in list(folder.glob("*")) if folder.exists() else []:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
                self.lock_deletions += 1

    def judge(self) -> dict[str, object]:
        """Return the result of the storm."""
        bad = self.logs.lines("bad")
        events = Counter(self.logs.lines("events"))
        refusals = Counter(line.split()[0] for line in self.logs.lines("refusals"))
        acknowledged = {
            name: self.logs.acknowledged(name) for name in self.cast if name.startswith(("m", "o"))
        }
        with Store.open(str(self.folder / ".trace")) as store:
            seal(store)
            lines, rescued = self.histories(store, bad)
            lost = [
                f"{name} {oid}"
                for name, oids in acknowledged.items()
                for oid in oids
                if oid not in lines[name if name.startswith("own") else "main"].said
                and oid not in rescued
            ]
            bad += [fault for line in lines.values() for fault in line.faults()]
            diverged = store.refs.diverged()
            if not self.journals:
                bad += [f"diverged: {name}" for name in diverged]
                bad += [f"rescued: {oid}" for oid in rescued]
            bad += [f"fsck: {each}" for each in fsck(store) if each.severity == ERROR]
            commit.commit(Writer(store, author="judge"), [Message("user", "after the storm")])
        return {
            "kills": self.kills,
            "acknowledged": sum(map(len, acknowledged.values())),
            "lost": len(lost),
            "bad reads": len(bad),
            "rescued": len({o for oids in acknowledged.values() for o in oids} & rescued),
            "diverged": len(diverged),
            "looks of readers": events["look"],
            "lock deletions": self.lock_deletions,
            "journal deletions": events["journal"],
            "cleans": events["clean"],
            "seals": events["seal"],
            "packs": events["pack"],
            "gcs": events["gc"] + events["prune"],
            "refusals": dict(refusals),
            "details": [*lost[:20], *bad[:20]],
        }

    def histories(self, store: Store, bad: list[str]) -> tuple[dict[str, Line], set[ObjectId]]:
        """Return the content of each branch, and the recovered values of branches."""
        lines = {"main": Line()}
        lines.update({name: Line() for name in self.cast if name.startswith("own")})
        rescued: set[ObjectId] = set()
        kept: list[ObjectId] = []
        try:
            for name, line in lines.items():
                own, *others = store.refs.tips(f"refs/heads/{name}") or (None,)
                line.follow(store, own)
                kept += others
            stack = kept + [tip for _, tips in store.refs.iterate_tips(RESCUED) for tip in tips]
            while stack:
                oid = stack.pop()
                if oid not in rescued:
                    rescued.add(oid)
                    stack += read_said(store, oid)[1]
        except (BadReadError, TraceError) as error:
            bad.append(f"at the end: {error}")
        return lines, rescued.difference(*(line.said for line in lines.values()))


def main() -> int:
    """Run a storm, and tell whether anything was lost or wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--writers", type=int, default=8, help="on one branch, and on their own")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument(
        "--keep-journals", action="store_true", help="do not delete journals: then nothing diverges"
    )
    parser.add_argument("--folder", type=Path, help="kept; else a temporary one is made")
    parser.add_argument(
        "--until-bad", action="store_true", help="end with the first finding, kept as it was found"
    )
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="trace-storm-"))
    storm = Storm(folder, given.seed, given.writers, journals=not given.keep_journals)
    begun = time.monotonic()
    storm.run(given.seconds, until_bad=given.until_bad)
    raged = time.monotonic()
    found = {"seconds": round(raged - begun), "seed": given.seed, **storm.judge()}
    found["seconds to judge"] = round(time.monotonic() - raged, 1)
    if given.json:
        print(json.dumps(found))
    else:
        details = found.pop("details")
        print("\n".join(f"{name:20} {value}" for name, value in found.items()))
        for line in details if isinstance(details, list) else []:
            print(f"  {line}")
    sound = not found["lost"] and not found["bad reads"]
    if sound and given.folder is None:
        shutil.rmtree(folder)
    elif not sound:
        print(f"kept: {folder}", file=sys.stderr)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())

"""Reports of lock holders, and detection of unreliable locks and syncs."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import Outcome
from trace_cli.main import main
from trace_cli.runtime import Invocation
from trace_store import Repo
from trace_store.base.environment import Environment
from trace_store.disk.file_systems import UNKNOWN, kind_of
from trace_store.disk.files import Disk
from trace_store.errors import LockedError, StorageError
from trace_store.maintenance import lock, lock_wait, maintenance
from trace_store.maintenance import seal as sealing
from trace_store.maintenance.lock import OperationLock, brief_lock
from trace_store.maintenance.lock_owner import owner_of
from trace_store.maintenance.lock_wait import LoggingLockWaiter, warn_of_unsealed
from trace_store.maintenance.seal import seal
from trace_store.store.store import Store

ROOT = Path(__file__).resolve().parents[2]
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and flock")
linux = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="Linux tells who has a lock")

MOUNTS = r"""27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
25 24 0:23 / /dev/shm rw,relatime shared:3 - tmpfs tmpfs rw,size=24684084k
40 27 0:40 / /home/ada rw,relatime shared:9 master:2 - nfs4 server:/home rw,vers=4.2,local_lock=none
41 40 0:41 / /home/ada/local rw - xfs /dev/vdb rw,attr2
42 27 0:42 / /mnt/with\040a\040space rw - cifs //host/share rw,vers=3.1.1
43 27 0:43 / /mnt/far rw - fuse.sshfs ada@host: rw,user_id=0
44 27 0:44 / /mnt/c rw,noatime - 9p C:\134 rw,dirsync,aname=drvfs;path=C:\;uid=0
45 27 0:45 / /host rw - 9p hostshare rw,trans=virtio
46 27 0:46 / /vagrant rw - vboxsf vagrant rw
47 27 0:47 / /container rw - overlay overlay rw,lowerdir=/a,upperdir=/b
48 27 0:48 / /passing rw - overlay overlay rw,lowerdir=/a,volatile
49 27 0:49 / /quick rw - ext4 /dev/vdc rw,nobarrier
51 27 0:51 / /cluster rw - lustre a@tcp:/x rw,localflock
52 27 0:52 / /cluster/locked rw - lustre a@tcp:/x rw,flock
53 27 0:53 / /new rw - newfs /dev/vdd rw
54 27 0:54 / /twice rw - nfs server:/a rw
55 54 0:55 / /twice rw - btrfs /dev/vde rw
this line has no such form
"""
CASES = [
    # path, name, locks, durable
    ("/srv/project/.trace", "ext4", True, True),
    ("/dev/shm/project", "tmpfs", True, False),
    ("/dev/shmoo", "ext4", True, True),
    ("/home/ada", "nfs4", False, True),
    ("/home/ada/project/.trace", "nfs4", False, True),
    ("/home/ada/local/project", "xfs", True, True),
    ("/mnt/with a space/project", "cifs", False, True),
    ("/mnt/far/project", "fuse.sshfs", False, False),
    ("/mnt/c/Users/ada", "drvfs", False, True),
    ("/host/project", "9p", False, False),
    ("/vagrant", "vboxsf", False, False),
    ("/container/project", "overlay", True, True),
    ("/passing/project", "overlay", True, False),
    ("/quick/project", "ext4", True, False),
    ("/cluster/project", "lustre", False, True),
    ("/cluster/locked/project", "lustre", True, True),
    ("/twice/project", "btrfs", True, True),
]


@pytest.mark.parametrize(("path", "name", "locks", "durable"), CASES)
def test_what_a_file_system_does_not_keep_is_known(
    path: str, name: str, locks: bool, durable: bool
) -> None:
    found = kind_of(path, table=MOUNTS)
    assert (found.name, found.locks, found.durable) == (name, locks, durable)
    assert bool(found.note) == (not (locks and durable)), (
        "a reason is given where something is amiss"
    )


def test_a_kind_that_is_not_known_is_no_reason_to_warn() -> None:
    assert kind_of("/new/project", table=MOUNTS).name == "newfs"
    assert kind_of("/anywhere", table="").name == UNKNOWN
    for found in (kind_of("/new/project", table=MOUNTS), kind_of("/anywhere", table="")):
        assert found.locks
        assert found.durable


def test_the_table_of_this_machine_is_read(tmp_path: Path) -> None:
    """A file that is not there yet lies where its folder does; a link leads where it points to."""
    here = kind_of(str(tmp_path))
    assert kind_of(str(tmp_path / "not" / "there")) == here
    if Path("/proc/self/mountinfo").exists():
        assert here.name != UNKNOWN
        (tmp_path / "link").symlink_to("/proc")
        assert kind_of(str(tmp_path / "link" / "self")).name == "proc"


LONG = """
import sys, time
from trace_store.maintenance.lock import OperationLock
from trace_store.store.store import Store
with OperationLock(Store.open(sys.argv[1]), "trace pack"):
    print("held", flush=True)
    time.sleep(100)
"""
SEALER = """
import sys, time
from trace_store.maintenance.lock import brief_lock
from trace_store.store.store import Store
with brief_lock(Store.open(sys.argv[1])):
    print("held", flush=True)
    time.sleep(100)
"""
WRITER = """
import sys, time
from trace_store.store.store import Store
store = Store.open(sys.argv[1])
store.journal.lock()
print("held", flush=True)
time.sleep(100)
"""


class Held:
    """A repository, and a process that holds a lock of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / ".trace"
        self.repo = Repo.init(folder)
        self.repo.append("user", "one")
        self.processes: list[subprocess.Popen[str]] = []

    def by(self, script: str) -> subprocess.Popen[str]:
        path = self.folder / "agent.py"
        path.write_text(script)
        process = subprocess.Popen(
            [sys.executable, str(path), str(self.root)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "cli")])},
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    def trace(self, *words: str, terminal: bool = False) -> Outcome:
        out, err = io.BytesIO(), io.BytesIO()
        here = Invocation(
            environment=Environment(author="Ada"), output=out, error=err, terminal=terminal
        )
        code = main(["--dir", str(self.root), *words], here)
        return Outcome(code, out.getvalue(), err.getvalue().decode())


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    made = Held(tmp_path)
    yield made
    for process in made.processes:
        if process.returncode is None:
            process.kill()
            process.communicate()


@posix
def test_a_refusal_names_who_holds_the_lock(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    process = held.by(LONG)
    monkeypatch.setattr(lock, "WAIT_SECONDS", 0.05)
    done = held.trace("seal")
    assert done.code == 11
    assert f"trace pack (pid {process.pid}, " in done.err
    assert "hint: " in done.err
    with pytest.raises(LockedError) as caught:
        seal(held.repo.store)
    assert caught.value.holder.pid == process.pid  # type: ignore[attr-defined]
    assert caught.value.holder.here  # type: ignore[attr-defined]


@linux
def test_who_leaves_no_word_is_found_by_the_system(held: Held) -> None:
    """A seal is too short to record its owner; arguments, perhaps secret, are omitted."""
    process = held.by(SEALER)
    with pytest.raises(LockedError) as caught:
        seal(held.repo.store, wait=False)
    assert f"agent.py (pid {process.pid})" in caught.value.message
    assert str(held.root) not in caught.value.message


@linux
def test_word_of_a_process_that_was_killed_is_not_believed(held: Held) -> None:
    killed = held.by(LONG)
    killed.kill()
    killed.communicate()
    path = held.repo.store.layout.lock_file("maintenance")
    assert f"pid {killed.pid}" in Path(path + ".holder").read_text()
    seal(held.repo.store, wait=False)  # the lock went with the process
    with OperationLock(held.repo.store, "trace gc", wait=False):
        assert owner_of(held.repo.store.disk, path).pid == os.getpid()
    assert not Path(path + ".holder").exists()


@posix
def test_a_holder_on_another_machine_is_named_and_never_judged(held: Held) -> None:
    """Its number says nothing here, and however old its word is, it may be at work."""
    held.by(SEALER)
    path = held.repo.store.layout.lock_file("maintenance")
    Path(path + ".holder").write_text("pid 1\nhost forge\ncommand trace gc\nsince 1\n")
    with pytest.raises(LockedError) as caught:
        seal(held.repo.store, wait=False)
    assert "trace gc (pid 1, on forge, " in caught.value.message
    for damaged in ("pid x\n\x1b[2J", f"pid {10**30}\nhost {os.uname().nodename}\nsince 1\n"):
        Path(path + ".holder").write_text(damaged)
        with pytest.raises(LockedError):
            seal(held.repo.store, wait=False)


@posix
def test_a_lock_outlasts_the_sleep_of_its_holder(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A laptop that slept with a lock has it still when it wakes."""
    process = held.by(LONG)
    process.send_signal(signal.SIGSTOP)
    path = held.repo.store.layout.lock_file("maintenance")
    os.utime(path, (1, 1))
    os.utime(path + ".holder", (1, 1))
    monkeypatch.setattr(lock, "WAIT_SECONDS", 0.05)
    with pytest.raises(LockedError):
        seal(held.repo.store)
    process.send_signal(signal.SIGCONT)
    with pytest.raises(LockedError):
        seal(held.repo.store)


@posix
@pytest.mark.parametrize("script", [LONG, SEALER])
def test_a_terminal_is_told_for_whom_it_waits(
    held: Held, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = held.by(script)
    monkeypatch.setattr(lock, "PATIENCE_SECONDS", 0.2)
    threading.Timer(0.8, process.kill).start()
    done = held.trace("seal", terminal=True)
    assert done.code == 0
    assert done.err.count("waiting for ") == 1
    assert (f"(pid {process.pid}" in done.err) == Path("/proc/locks").exists() or script == LONG
    assert "sealed" in done.text


@posix
def test_a_terminal_is_told_who_holds_the_journal(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = held.by(WRITER)
    monkeypatch.setattr(lock, "PATIENCE_SECONDS", 0.2)
    threading.Timer(0.8, process.kill).start()
    begun = time.monotonic()
    done = held.trace("commit", "-q", "--user", "two", terminal=True)
    assert done.code == 0
    assert time.monotonic() - begun > 0.5
    assert done.err.count("waiting for ") == 1
    assert [m.text for m in held.repo.compile().messages] == ["one", "two"]


@posix
def test_a_commit_beside_a_long_pack_is_made_and_not_refused(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is durable; after an error the user would retry, and duplicate the message."""
    held.by(LONG)
    monkeypatch.setattr(lock, "WAIT_SECONDS", 0.05)
    done = held.trace("commit", "--user", "two")
    assert done.code == 0
    assert "note: not sealed: trace pack (pid " in done.err
    assert [m.text for m in held.repo.compile().messages] == ["one", "two"]


@posix
@pytest.mark.parametrize("durability", ["durable", "batch", "fast"])
def test_closing_beside_a_long_pack_is_no_error_and_all_is_durable(
    held: Held,
    durability: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    process = held.by(LONG)
    monkeypatch.setattr(lock, "WAIT_SECONDS", 0.05)
    synced: list[int] = []
    plain = Disk.sync

    def sync(disk: Disk, fd: int) -> None:
        plain(disk, fd)
        synced.append(fd)

    monkeypatch.setattr(Disk, "sync", sync)
    with Repo.open(held.folder, durability=durability) as repo:
        repo.append("user", "two")
        live = repo.store.journal.files[-1]
        before = len(synced)
    assert (len(synced) > before) == (durability != "durable")
    assert live.durable == live.end or durability != "fast"
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("trace_store", "WARNING")
    assert record.getMessage().startswith(f"not sealed: trace pack (pid {process.pid}")
    assert [m.text for m in held.repo.compile().messages] == ["one", "two"]


def test_closing_on_a_full_disk_is_no_error_when_all_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After an error here the user would retry, and duplicate the message."""

    def refused(*_: object) -> None:
        raise StorageError("no space left on device", path="pack", errno=errno.ENOSPC)

    repo = Repo.init(tmp_path)
    repo.append("user", "one")
    monkeypatch.setattr(sealing, "seal", refused)
    repo.close()
    assert [record.getMessage() for record in caplog.records] == [
        "not sealed: no space left on device"
    ]
    monkeypatch.undo()
    with Repo.open_or_init(tmp_path) as repo:
        assert [m.text for m in repo.compile().messages] == ["one"]
        assert repo.seal().transactions == 1
    monkeypatch.setattr(sealing, "seal", refused)
    monkeypatch.setattr(Disk, "sync", refused)
    repo = Repo.open(tmp_path, durability="fast")
    repo.append("user", "two")
    with pytest.raises(StorageError):
        repo.close()


@posix
@pytest.mark.parametrize("level", ["INFO", "WARNING"])
def test_a_program_that_listens_is_told_for_whom_it_waits(
    held: Held, level: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    process = held.by(WRITER)
    monkeypatch.setattr(lock, "PATIENCE_SECONDS", 0.1)
    with caplog.at_level(level, logger="trace_store"):
        threading.Timer(0.5, process.kill).start()
        held.repo.append("user", "two")
        held.by(LONG)
        threading.Timer(0.5, held.processes[-1].kill).start()
        held.repo.seal()
    told = [record.getMessage() for record in caplog.records if record.name == "trace_store"]
    assert [text.partition("waiting for ")[0] for text in told] == [""] * len(told)
    assert len(told) == (2 if level == "INFO" else 0)
    assert level == "WARNING" or told[1].startswith(
        f"waiting for trace pack (pid {held.processes[-1].pid}"
    )
    assert [m.text for m in held.repo.compile().messages] == ["one", "two"]


def test_nothing_that_a_terminal_obeys_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The lock holder is read from the repository, and may be shown on a terminal."""
    with caplog.at_level("INFO", logger="trace_store"):
        LoggingLockWaiter().tell("trace\x1b[2J\n\u202epack\x9b (pid 1)")
        warn_of_unsealed(StorageError("\x1b]0;title\x07", path="x"))
    assert [record.getMessage() for record in caplog.records] == [
        "waiting for trace\\x1b[2J\\n\\u202epack\\x9b (pid 1)",
        "not sealed: \\x1b]0;title\\x07",
    ]


def test_a_lock_that_lies_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.init(str(tmp_path))
    monkeypatch.setattr(lock_wait, "kind_of", lambda path: kind_of("/home/ada", table=MOUNTS))
    with brief_lock(store), pytest.raises(LockedError) as caught, brief_lock(store, wait=False):
        pass
    assert (
        "nfs4: file locks here do not exclude processes on other machines" in caught.value.message
    )


def test_init_says_where_locks_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, told in (("/home/ada", True), ("/srv/project", False), ("/dev/shm/x", False)):
        monkeypatch.setattr(
            maintenance, "kind_of", lambda path, place=place: kind_of(place, table=MOUNTS)
        )
        err = io.BytesIO()
        here = Invocation(environment=Environment(), output=io.BytesIO(), error=err, terminal=False)
        assert main(["init", str(tmp_path / place.replace("/", "-"))], here) == 0
        assert ("let one machine write at a time" in err.getvalue().decode()) == told

"""What is rarely come by while the power may be cut: journals in odd states, file systems that can less."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from time import time_ns

from tests.reliability.support import workloads
from tests.reliability.support.holdings import FOLDER, ROOT, START, Look
from tests.reliability.support.recordings import Recording, fresh
from tests.store.support.histories import MAIN, append, move
from tests.support.subjects import upkeep
from trace_store.base.environment import Environment
from trace_store.base.ident import FixedClock
from trace_store.disk.files import create_file
from trace_store.errors import StorageError
from trace_store.history.bisect import Bisection, save
from trace_store.history.branch_state import set_upstream
from trace_store.journal.frames import LINE_BYTES, encode_begin
from trace_store.llm.settings import set_setting
from trace_store.maintenance.maintenance import Maintenance
from trace_store.maintenance.seal import seal
from trace_store.merge.in_progress import Stop, write_stop
from trace_store.odb.database import ObjectDatabase
from trace_store.secrets.user_files import store_key, write_allowed
from trace_store.store.store import Store
from trace_store.store.trust import Trust
from trace_store.testing.power_cuts import DiskImage, PowerCutDisk, image_of
from trace_store.writer import Writer

LOGS = Look(logs=True)
OWN = Environment(config_dir=f"{FOLDER}/settings", data_dir=f"{FOLDER}/data")


def cut_short(recording: Recording) -> None:
    """Go on where the disk took a part of a frame only."""
    with recording.open(durability="batch") as store:
        for number in range(2):
            append(store, f"message {number}", durability="batch")
            recording.done(f"append {number}", durable=False)
        recording.mortal().takes_half = True
        with suppress(StorageError):
            append(store, "refused", durability="batch")
        append(store, "goes on", durability="durable")
        recording.done("append")


def fails_to_sync(recording: Recording) -> None:
    """Go on where a sync failed, after which nothing that was written to that file is certain."""
    with recording.open() as store:
        append(store, "first", durability="durable")
        recording.done("append")
        append(store, "second", durability="fast")
        recording.done("append unsynced", durable=False)
        recording.mortal().fails_sync = True
        with suppress(StorageError):
            append(store, "refused", durability="durable")
        recording.done("refusal", durable=False, refused=True)
        append(store, "goes on", durability="durable")
        recording.done("append again")


def fails_to_sync_without_links(recording: Recording) -> None:
    """Do the same where no file can have two names, so that a journal gets its name before its content."""
    recording.disk.links = False
    fails_to_sync(recording)


def without_links(recording: Recording) -> None:
    """Run the operations that use links on a file system without hard links."""
    recording.disk.links = False
    workloads.exports(recording)
    with recording.open() as store:
        append(store, "kept", durability="durable")
        recording.done("append")
        append(store, "lone", "refs/heads/lone", parent=None, durability="durable")
        recording.done("append alone")
        seal(store)
        append(store, "kept too", durability="durable")
        recording.done("append again", gradual=True)
        move(store, "refs/heads/lone", None)
        seal(store)
        for name in (MAIN, "refs/heads/lone", "HEAD"):
            store.disk.remove(store.layout.log_file(name))
        recording.done("give up", gradual=True)
        upkeep(store).prune(grace_days=0)
        recording.done("prune")


def begins_another_line(recording: Recording) -> None:
    """Continue a journal next to another one that was just written to."""
    with recording.open(durability="fast") as store:
        append(store, "in the first", durability="fast")
        recording.done("append", durable=False)
        data = encode_begin(b"\1" * LINE_BYTES)
        create_file(recording.disk, store.layout.journal_file(2), data)
        recording.disk.sync_directory(store.layout.journal_dir)
        recording.disk.sync_directory(store.layout.root)
    recording.done("another line", durable=False)
    with recording.open() as store:
        append(store, "in the second", durability="durable")
        recording.done("append on it")


@cache
def without_index() -> DiskImage:
    """Return a disk with a pack that has no index."""
    disk = PowerCutDisk(fresh())
    with Store.open(ROOT, disk=disk, clock=FixedClock(START), durability="fast") as store:
        for number in range(3):
            append(store, f"message {number}")
        seal(store)
        assert isinstance(store.objects, ObjectDatabase)
        [name] = store.objects.packs.names()
        disk.remove(store.layout.pack_index_file(name))
        for number in list(range(1, 9)):
            disk.remove(store.layout.journal_file(number))
    return image_of(disk)


def makes_index(recording: Recording) -> None:
    """Read from a pack without an index, which rebuilds it."""
    with recording.open() as store:
        tip = store.refs.read(MAIN)
        assert tip is not None
        store.objects.read(tip)
        recording.done("read")


def writes_again(recording: Recording) -> None:
    """Write an object that was just written without acknowledgement."""
    recording.disk.now = time_ns()  # an old object would be rewritten
    with recording.open(durability="fast") as store:
        store.objects.write(workloads.LOOSE)
        recording.done("write", durable=False)
    with recording.open() as store:
        store.objects.write(workloads.LOOSE)
        recording.done("write again")
    # Until then the file may be damaged, since it was not acknowledged.
    recording.judged_from = len(recording.disk.log)


@cache
def linked_log() -> DiskImage:
    """Return a disk with a reflog that has another name elsewhere."""
    disk = PowerCutDisk(fresh())
    with Store.open(ROOT, disk=disk, clock=FixedClock(START), durability="fast") as store:
        append(store, "first")
        seal(store)
        disk.make_directory("/elsewhere")
        disk.link(store.layout.log_file(MAIN), "/elsewhere/copy")
        append(store, "second")
    return image_of(disk)


def seals_log(recording: Recording) -> None:
    """Go on with a reflog that has another name elsewhere."""
    with recording.open() as store:
        seal(store)
        recording.done("seal")


def own_files(recording: Recording) -> None:
    """Write the user's own files: a key, trusted paths, and false positives."""
    disk = recording.disk
    store_key(OWN, "12ab", "", disk)
    recording.done("key")
    for number in range(2):
        Trust(OWN, disk=disk).add_below((FOLDER, f"{FOLDER}/data")[number])
        recording.done(f"trust {number}")
        write_allowed(disk, OWN, "34cd", ["a1b2c3d4e5f6"] * (number + 1))
        recording.done(f"allow {number}")
        set_setting(OWN, "name", f"a-model-{number}", disk=disk)
        recording.done(f"model {number}")


def local_files(recording: Recording) -> None:
    """Write local state: ORIG_HEAD, upstreams, a bisection, a merge in progress, and a text kept for the user."""
    with recording.open() as store:
        tip = append(store, "first", durability="durable")
        recording.done("append")
        move(store, "refs/heads/other", tip)
        recording.done("move")
        seal(store)
        recording.done("seal")
        store.refs.set_original(tip)
        recording.done("original")
        set_upstream(store, MAIN, "refs/heads/other")
        recording.done("upstream")
        save(store, Bisection("commits", tip, ()))
        recording.done("search")
        write_stop(store, Stop("merge", MAIN, tip, {"other": str(tip)}, {}, []))
        recording.done("stop")
        Maintenance(Writer(store, author="A", environment=OWN)).keep_text("todo", "pick it")
        recording.done("text")

"""What upkeep does while the power may be cut: purging, repairing, adopting."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from tests.reliability.support.holdings import ROOT, START, Look
from tests.reliability.support.recordings import Recording, fresh
from tests.store.support.histories import MAIN, OTHER, append, move
from tests.support.subjects import upkeep
from trace_store.base.ident import FixedClock
from trace_store.base.oid import ObjectId, hash_object
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.disk.files import APPEND, create_file, read_file
from trace_store.maintenance.purge import plan_purge, purge, rewrite_history
from trace_store.maintenance.repair_files import open_damaged, repair_config
from trace_store.maintenance.repair_store import StoreRepair
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob
from trace_store.objects.commit import Commit
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.tombstones import Tombstone, file_name
from trace_store.refs.database import RefDatabase
from trace_store.store.store import Store
from trace_store.testing.power_cuts import DiskImage, PowerCutDisk, image_of
from trace_store.writer import Writer

SECRET = "Zk4-opal-JUNIPER-98213"
SECRETIVE = Look(secret=SECRET.encode(), logs=True)


def _made(make: Callable[[Store], object]) -> DiskImage:
    """Return a disk with a repository with some history."""
    disk = PowerCutDisk(fresh())
    with Store.open(ROOT, disk=disk, clock=FixedClock(START), durability="fast") as store:
        make(store)
    return image_of(disk)


def _say(store: Store, text: str, ref: str, said: str = "", *, parent: object = ANY) -> ObjectId:
    """Append a commit with one blob; the reflog message is `said`."""
    made: list[ObjectId] = []

    def build(refs: object) -> Transaction:
        tip = store.refs.read(ref) if parent is ANY else parent
        blob = encode_blob(text.encode())
        parents = [] if tip is None else [tip]
        meta = {"content": hash_object(blob)}
        commit = Commit(parents, "tester", START, [], message="note", meta=meta).encode()  # type: ignore[arg-type]
        made.append(hash_object(commit))
        objects = [(hash_object(blob), blob), (made[-1], commit)]
        return Transaction(objects, [RefEdit(ref, made[-1], ANY)], said)

    store.transact(build, author="tester")
    return made[-1]


def _secretive(*, pending: bool) -> DiskImage:
    def make(store: Store) -> None:
        _say(store, "an ordinary remark", MAIN)
        _say(store, f"{SECRET} taken", OTHER, parent=None)
        seal(store)
        move(store, OTHER, None)
        seal(store)
        for name in (MAIN, OTHER, "HEAD"):
            store.disk.remove(store.layout.log_file(name))
        upkeep(store).prune(grace_days=0)
        _say(store, "another remark", MAIN, "about something else")
        _say(store, f"{SECRET} packed", MAIN, f"about {SECRET}")
        seal(store)
        store.objects.write(encode_blob(f"{SECRET} loose".encode()))
        if pending:
            _say(store, f"{SECRET} pending", MAIN)

    return _made(make)


@cache
def secretive() -> DiskImage:
    """Return a disk with a secret in packs, in a file of its own, in quarantine, in a journal and in a reflog."""
    return _secretive(pending=True)


@cache
def sealed_secret() -> DiskImage:
    """Return such a disk where no journal has it."""
    return _secretive(pending=False)


def purges(recording: Recording) -> None:
    """Remove a secret, wherever it is."""
    with recording.open() as store:
        plan = plan_purge(store, texts=[SECRET])
        purge(store, plan, why="leaked", by="tester")
        # Unreadable content is reported, and not guaranteed.
        recording.done("purge", drops=True, erases=not plan.unreadable)


def purges_packed(recording: Recording) -> None:
    """Purge a secret when nothing needs sealing, so packs are rewritten only for it."""
    purges(recording)


def purges_ids(recording: Recording) -> None:
    """Purge a secret, and replace the ids of the commits that reach it."""
    with recording.open() as store:
        plan = plan_purge(store, texts=[SECRET])
        upkeep(store).purge_and_rewrite(plan, why="leaked")
        recording.done("purge", drops=True, erases=not plan.unreadable)


@cache
def unsealed_secret() -> DiskImage:
    """Return a disk with a secret in a journal, where nothing was ever sealed."""
    return _made(lambda store: _say(store, f"{SECRET} pending", MAIN))


def issues_anew(recording: Recording) -> None:
    """Rewrite the commits that reach a secret, and record old and new ids."""
    with recording.open() as store:
        plan = plan_purge(store, texts=[SECRET])
        rewrite_history(Writer(store, author="tester"), plan.objects, plan.texts, why="leaked")
        recording.done("reissue")


def takes_tombstones(recording: Recording) -> None:
    """Apply other people's purges."""
    data = Tombstone(hash_object(b"theirs"), START, "somebody", "leaked").encode()
    with recording.open() as store:
        assert isinstance(store.objects, ObjectDatabase)
        store.objects.tombstones.add_files([(file_name(hash_object(b"theirs"), data), data)])
        recording.done("take")


@cache
def damaged() -> DiskImage:
    """Return a disk with damage of each kind: recoverable, stray and replaced files."""
    disk = PowerCutDisk(fresh())
    layout = None
    with Store.open(ROOT, disk=disk, clock=FixedClock(START), durability="fast") as store:
        layout = store.layout
        append(store, "release notes, line by line " * 20)
        append(store, "aside", OTHER)
        seal(store)
        for oid in list(store.objects.iterate()):
            store.objects.write(store.objects.read(oid))
        assert isinstance(store.objects, ObjectDatabase)
        [name] = store.objects.packs.names()
        [tip] = [str(tips[0]) for ref, tips in store.refs.iterate_tips() if ref == OTHER]
        append(store, "not sealed")
        [live] = [file.path for file in store.journal.files[-1:]]
    _flip(disk, layout.pack_file(name), 60)
    _replace(disk, layout.attributes_file, b"* text\n")
    _replace(disk, f"{layout.ref_dir(OTHER)}/{tip}", b"what is this?\n")
    disk.make_directory(f"{layout.ref_dir(MAIN)}-2")
    create_file(disk, f"{layout.ref_dir(MAIN)}-2/notes", b"a note")
    create_file(disk, f"{layout.objects_dir}/stray", b"belongs nowhere")
    _add(disk, layout.log_file(MAIN), b"no entry of a reflog\n")
    _add(disk, live, b"damage behind the last frame, " * 4)
    return image_of(disk)


def _flip(disk: PowerCutDisk, path: str, place: int) -> None:
    data = bytearray(read_file(disk, path) or b"")
    data[place] ^= 1
    _replace(disk, path, bytes(data))


def _replace(disk: PowerCutDisk, path: str, data: bytes) -> None:
    disk.remove(path)
    create_file(disk, path, data)


def _add(disk: PowerCutDisk, path: str, data: bytes) -> None:
    fd = disk.open(path, APPEND)
    assert fd is not None
    disk.write(fd, data)
    disk.close(fd)


def repairs(recording: Recording) -> None:
    """Repair the damage."""
    with recording.open() as store:
        StoreRepair(store).run()
        recording.done("repair", gradual=True)


@cache
def torn_settings() -> DiskImage:
    """Return a disk with an unrecoverable configuration."""
    disk = PowerCutDisk(fresh())
    with Store.open(ROOT, disk=disk, clock=FixedClock(START), durability="fast") as store:
        append(store, "first")
        path = store.layout.config_file
    _replace(disk, path, b"\0" * 40)
    return image_of(disk)


def repairs_settings(recording: Recording) -> None:
    """Rewrite an unreadable configuration."""
    with open_damaged(ROOT, disk=recording.disk) as store:
        repair_config(store)
    recording.done("repair", gradual=True)


def repairs_without_links(recording: Recording) -> None:
    """Repair the damage on a file system without hard links."""
    recording.disk.links = False
    repairs(recording)


@cache
def moved_by_git() -> DiskImage:
    """Return a disk on which git has put a branch back, and taken another away."""
    disk = PowerCutDisk(fresh())
    with Store.open(ROOT, disk=disk, clock=FixedClock(START), durability="fast") as store:
        first = append(store, "first")
        append(store, "aside", OTHER)
        seal(store)
        append(store, "second")
        seal(store)
        assert isinstance(store.refs, RefDatabase)
        store.refs.files.write(MAIN, [first], store.refs.files.read(MAIN))
        store.refs.files.write(OTHER, [], store.refs.files.read(OTHER))
    return image_of(disk)


def adopts(recording: Recording) -> None:
    """Go on from where git has put the branches."""
    with recording.open() as store:
        upkeep(store).adopt()
        recording.done("adopt", gradual=True)


def adopts_mine(recording: Recording) -> None:
    """Restore the branches, and keep git's tips."""
    with recording.open() as store:
        upkeep(store).adopt(keep_mine=True)
        recording.done("adopt", gradual=True)

"""An interrupted purge: content is readable or purged, and it can be resumed."""

from __future__ import annotations

import shutil
from pathlib import Path

from trace_store import Repo
from trace_store.base.oid import ObjectId, hash_object
from trace_store.contracts import Transaction
from trace_store.errors import PurgedError, StorageError
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.purge import plan_purge, purge
from trace_store.objects.codec import encode_blob
from trace_store.store.store import Store
from trace_store.testing.disks import FailingDisk

SECRET = "Zk4-opal-JUNIPER-98213"
PACKED, PENDING, LOOSE = (f"{SECRET} {where}" for where in ("packed", "pending", "loose"))
KEPT = [f"an ordinary remark, number {number}" for number in range(6)]


def blob(text: str) -> tuple[ObjectId, bytes]:
    data = encode_blob(text.encode())
    return hash_object(data), data


def prepare(folder: Path) -> None:
    """Make a store with copies in a pack, in the journal and in a file of its own, and with caches."""
    with Repo.init(str(folder)) as repo:
        for text in (*KEPT[:3], PACKED):
            repo.append("user", text)
        repo.seal()
        repo.store.objects.write(blob(LOOSE)[1])
        for text in (*KEPT[3:], PENDING):
            repo.append("user", text)
        assert repo.compile().token_count
    with Store.open(str(folder / ".trace")) as store:  # which seals nothing when it is closed
        store.transact(lambda _: Transaction([blob(f"{SECRET} {PENDING}")]))
        assert store.unsealed().transactions


def run(folder: Path, disk: FailingDisk) -> bool:
    """Purge with a disk that fails at some call; tell whether all went well."""
    store = Store.open(str(folder / ".trace"), disk=disk)
    try:
        plan = plan_purge(store, [], [SECRET])
        purge(store, plan, why="leaked")
    except StorageError:
        return False
    finally:
        try:
            store.close()
        except StorageError:
            return False
    return True


def check(folder: Path) -> None:
    """Assert that the content is readable or purged, and everything else is readable."""
    with Store.open(str(folder / ".trace")) as store:
        for text in (PACKED, PENDING, LOOSE):
            oid, data = blob(text)
            try:
                assert store.objects.read(oid) == data
            except PurgedError:
                continue
        for text in KEPT:
            oid, data = blob(text)
            assert store.objects.read(oid) == data
        found = {finding.code for finding in fsck(store) if finding.severity == "error"}
        assert not found


def test_a_purge_stopped_at_any_call_leaves_nothing_unexplained_and_goes_on(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    prepare(origin)
    counting = FailingDisk()
    shutil.copytree(origin, tmp_path / "counted")
    assert run(tmp_path / "counted", counting)
    assert counting.count > 30
    for at in range(1, counting.count + 1):
        folder = tmp_path / f"at-{at}"
        shutil.copytree(origin, folder)
        run(folder, FailingDisk(at, partly=at % 2 == 0))
        check(folder)
        assert run(folder, FailingDisk())
        check(folder)
        with Store.open(str(folder / ".trace")) as store:
            report = purge(store, plan_purge(store, [], [SECRET]), dry_run=True, verify=True)
            assert report.absence is not None
            assert report.absence.is_proven, (at, report.absence)
            assert not report.plan.objects
        shutil.rmtree(folder)

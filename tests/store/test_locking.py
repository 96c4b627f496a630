"""One lock for seal and pack, which exclude each other in either order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.support.histories import append, main_line, new_store, reopen
from trace_store.errors import LockedError
from trace_store.maintenance.lock import BriefLock, OperationLock, brief_lock
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal

HOLDER = """
import sys, time
from trace_store.maintenance.lock import {lock}
from trace_store.store.store import Store
with {lock}(Store.open(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""
WAYS = [BriefLock, OperationLock]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is one way on Windows")


@pytest.mark.parametrize("held", WAYS)
@pytest.mark.parametrize("wanted", WAYS)
def test_each_way_excludes_both(
    tmp_path: Path,
    held: type[BriefLock | OperationLock],
    wanted: type[BriefLock | OperationLock],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = new_store(tmp_path)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER.format(lock=held.__name__), store.layout.root],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        monkeypatch.setattr("trace_store.maintenance.lock.WAIT_SECONDS", 0.05)
        for wait in (True, False):
            with pytest.raises(LockedError) as caught, wanted(store, wait=wait):
                pytest.fail("two hold it")
            assert str(caught.value.path).endswith("maintenance")
    finally:
        holder.kill()
        holder.communicate()
    with wanted(store, wait=False):
        pass  # a killed process releases its lock


def test_handles_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    append(store, "one")
    other = reopen(tmp_path)
    with brief_lock(store), pytest.raises(LockedError):
        seal(other, wait=False)
    seal(other, wait=False)
    pack(other)
    assert main_line(other) == ["one"]


def test_a_lock_file_that_is_removed_while_it_is_held_guards_nothing(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    path = Path(store.layout.lock_file("maintenance"))
    with BriefLock(store):
        path.unlink()  # as `git clean -fdx` does
        with BriefLock(reopen(tmp_path), wait=False):
            assert path.exists()
    with BriefLock(store, wait=False):
        pass

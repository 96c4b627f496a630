"""Seals that come by themselves: when, and that none of them fails the commit before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.support.histories import append, main_line, reopen
from trace_store import maintenance
from trace_store.base.ident import Clock
from trace_store.errors import LockedError, StorageError
from trace_store.maintenance.lock import OperationLock
from trace_store.maintenance.schedule import RETRY_MS, SealSchedule, seal_if_due_by_age
from trace_store.maintenance.seal import seal
from trace_store.store import unsealed
from trace_store.store.store import Store
from trace_store.store.unsealed import INTERVAL_MS


class Hands(Clock):
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = 1_700_000_000_000

    def now(self) -> int:
        return self.time


def store_with(folder: Path) -> tuple[Store, Hands]:
    clock = Hands()
    return Store.init(str(folder), durability="fast", clock=clock), clock


def test_a_seal_that_must_not_wait_raises_at_once(tmp_path: Path) -> None:
    store, _ = store_with(tmp_path)
    append(store, "one")
    with OperationLock(reopen(tmp_path)), pytest.raises(LockedError):
        seal(store, wait=False)
    assert seal(store, wait=False).transactions == 1


def test_a_lock_that_is_taken_is_no_error_and_is_tried_again(tmp_path: Path) -> None:
    store, clock = store_with(tmp_path)
    due = SealSchedule(store)
    append(store, "one")
    assert due.seal_if_due() is None
    clock.time += INTERVAL_MS
    with OperationLock(reopen(tmp_path)):
        assert due.seal_if_due() is None
        assert seal_if_due_by_age(store) is None
    assert due.seal_if_due() is None
    clock.time += RETRY_MS
    report = due.seal_if_due()
    assert report is not None
    assert report.transactions == 1


def test_a_seal_of_another_process_counts(tmp_path: Path) -> None:
    store, clock = store_with(tmp_path)
    due = SealSchedule(store)
    append(store, "one")
    clock.time += INTERVAL_MS
    seal(reopen(tmp_path))
    append(store, "two")
    assert due.seal_if_due() is None
    clock.time += INTERVAL_MS
    assert due.seal_if_due() is not None


def test_a_seal_that_fails_is_no_error_and_is_tried_again_a_little_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, clock = store_with(tmp_path)
    due = SealSchedule(store)
    append(store, "one")
    clock.time += INTERVAL_MS
    tries: list[int] = []

    def fail(*_: object, **__: object) -> None:
        tries.append(clock.time)
        raise StorageError("no space", path="")

    with monkeypatch.context() as patch:
        patch.setattr(maintenance.seal, "seal", fail)
        assert due.seal_if_due() is None
        assert due.seal_if_due() is None
        assert seal_if_due_by_age(store) is None
    assert len(tries) == 2
    clock.time += RETRY_MS
    assert due.seal_if_due() is not None


def test_a_process_that_writes_once_seals_by_age_and_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, clock = store_with(tmp_path)
    assert seal_if_due_by_age(store) is None
    append(store, "one")
    clock.time += INTERVAL_MS - 1
    assert seal_if_due_by_age(store) is None
    clock.time += 1
    assert seal_if_due_by_age(store) is not None
    append(store, "two")
    monkeypatch.setattr(unsealed, "MAXIMUM_JOURNAL_BYTES", 10)
    assert seal_if_due_by_age(store) is not None
    assert main_line(reopen(tmp_path)) == ["one", "two"]
    assert seal_if_due_by_age(Store.memory()) is None

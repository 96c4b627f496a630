"""The garbage collector pause: nested, threaded, and always restored."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator

import pytest

from trace_store.base import gc_pause
from trace_store.base.gc_pause import paused


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    was = gc.isenabled()
    yield
    assert gc.isenabled() == was
    gc.enable()


def test_it_is_paused_until_the_last_lets_go() -> None:
    with paused:
        assert not gc.isenabled()
        with paused:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_lets_it_go_on() -> None:
    with pytest.raises(ValueError, match="wrong"), paused:
        raise ValueError("wrong")
    assert gc.isenabled()


def test_what_was_off_stays_off() -> None:
    gc.disable()
    try:
        with paused:
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(gc, "freeze"), reason="this Python cannot set objects aside")
def test_only_very_many_objects_become_old(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(gc_pause, "MANY", 5_000)
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 0)  # the suite has set objects aside
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("freeze"))
    monkeypatch.setattr(gc, "unfreeze", lambda: calls.append("unfreeze"))
    for count, expected in ((100, []), (20_000, ["freeze", "unfreeze"])):
        gc.collect()
        with paused:
            made: list[list[int]] = [[] for _ in range(count)]
        assert calls == expected
        assert len(made) == count


@pytest.mark.skipif(not hasattr(gc, "freeze"), reason="this Python cannot set objects aside")
def test_what_a_program_froze_stays_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc_pause, "MANY", 5_000)
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 1)
    monkeypatch.setattr(gc, "unfreeze", lambda: pytest.fail("it is not ours"))
    with paused:
        made: list[list[int]] = [[] for _ in range(20_000)]
    assert made


def another_holder() -> tuple[threading.Thread, threading.Event]:
    """Return a thread that holds the pause until the event is set."""
    entered, go = threading.Event(), threading.Event()

    def hold() -> None:
        with paused:
            entered.set()
            go.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    return thread, go


def test_threads_pause_it_together() -> None:
    with paused:
        thread, go = another_holder()
    assert not gc.isenabled()
    go.set()
    thread.join()
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_does_not_wait_for_threads_that_it_has_not() -> None:
    thread, go = another_holder()
    child = os.fork()
    if not child:
        os._exit(0 if gc.isenabled() else 1)
    go.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0

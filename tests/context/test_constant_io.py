"""An append and a compile cost the same at any length of history: counted in calls, files and bytes, never in time."""

from __future__ import annotations

from pathlib import Path

import pytest

from trace_store import FixedClock, Message, Store
from trace_store.context.compiler import ContextCompiler
from trace_store.history import commit
from trace_store.maintenance.seal import seal
from trace_store.testing.disks import RecordingDisk
from trace_store.writer import Writer

SHORT, LONG = 100, 20_000


def grow(store: Store, count: int) -> None:
    """Append until the branch has so many messages, many to a commit except the last hundred."""
    messages = [Message("user", f"message {i}") for i in range(count - 100)]
    for start in range(0, len(messages), 1000):
        commit.commit(Writer(store, author="ada"), messages[start : start + 1000])
    for i in range(100):
        commit.commit(Writer(store, author="ada"), [Message("assistant", f"turn {i}")])


def cost_of_a_turn(folder: Path, count: int, *, sealed: bool, cold: bool) -> dict[str, int]:
    """Return calls, files and bytes of one append, one compile, its token total and its last message."""
    disk = RecordingDisk()
    store = Store.init(str(folder), clock=FixedClock(), durability="fast", disk=disk)
    grow(store, count)
    contexts = ContextCompiler(store)
    assert len(contexts.compile()) == count
    assert contexts.compile().token_count > count
    if sealed:
        seal(store)
        seal(store)
    if cold:
        store.close()
        store = Store.open(store.layout.root, clock=FixedClock(), durability="fast", disk=disk)
        contexts = ContextCompiler(store)
    elif sealed:
        commit.commit(Writer(store, author="ada"), [Message("user", "first after the seal")])
        contexts.compile().token_count  # noqa: B018
        count += 1
    disk.reset()
    result = commit.commit(Writer(store, author="ada"), [Message("user", "one more turn")])
    context = contexts.compile()
    assert len(context) == count + 1
    assert context.commit == result.oid
    assert context.token_count > count
    assert context.messages[-1].text == "one more turn"
    return disk.counts()


@pytest.mark.parametrize("sealed", [False, True])
def test_a_turn_touches_as_much_at_20000_messages_as_at_100(tmp_path: Path, sealed: bool) -> None:
    short = cost_of_a_turn(tmp_path / "short", SHORT, sealed=sealed, cold=False)
    long = cost_of_a_turn(tmp_path / "long", LONG, sealed=sealed, cold=False)
    assert long == short
    assert short["written_bytes"] < 2048
    assert short["read_bytes"] < 2048
    assert short["opened"] <= 6


def test_a_turn_in_a_new_process_reads_no_more_of_a_longer_history(tmp_path: Path) -> None:
    """The store is reopened, as by a hook; packs are looked up, never read completely."""
    short = cost_of_a_turn(tmp_path / "short", SHORT, sealed=True, cold=True)
    long = cost_of_a_turn(tmp_path / "long", LONG, sealed=True, cold=True)
    # The table of a pack is searched by halving, so it may take a few more looks.
    assert long["opened"] <= short["opened"] + 2
    assert long["written_bytes"] == short["written_bytes"]
    assert long["read_bytes"] <= short["read_bytes"] + 64 * 1024

"""A diff reads only changes and searches by bisection: counted in bytes and calls."""

from __future__ import annotations

from pathlib import Path

from trace_store import FixedClock, Message, Store
from trace_store.context.compiler import ContextCompiler
from trace_store.contracts import RefEdit, Transaction
from trace_store.history import commit
from trace_store.history.diff import diff
from trace_store.history.draft import Draft
from trace_store.maintenance.seal import seal
from trace_store.testing.disks import RecordingDisk
from trace_store.writer import Writer

SHORT, LONG = 4_000, 20_000


def cost(folder: Path, count: int) -> dict[str, int]:
    """Return the cost of comparing two branches that diverge after this many messages."""
    disk = RecordingDisk()
    store = Store.init(str(folder), clock=FixedClock(), durability="fast", disk=disk)
    for start in range(0, count, 100):
        messages = [Message("user", f"message {n}") for n in range(start, start + 100)]
        commit.commit(Writer(store, author="ada"), messages)
    contexts = ContextCompiler(store)
    late = [m.address for m in contexts.compile().messages[-10:]]
    base = store.refs.head().oid
    for name in ("one", "other"):
        edit = RefEdit(f"refs/heads/{name}", base, None)
        store.transact(lambda _, e=edit: Transaction([], [e]), author="ada")  # type: ignore[misc]
        store.refs.set_head(edit.name, author="ada")
        commit.commit(Writer(store, author="ada"), [Message("user", name)])
        draft = Draft(Writer(store, author="ada"))
        draft.edit(late[3], "the same edit on both sides")
        draft.annotate([late[0], late[9]], priority="pinned")
        draft.append("assistant", f"{name}, too")
        commit.write(draft)
        assert contexts.compile().token_count
    seal(store)
    store.close()
    store = Store.open(store.layout.root, durability="fast", disk=disk)
    disk.reset()
    found = diff(ContextCompiler(store), "one", "other")
    assert len(found.changes) == 4
    assert found.common_count >= count - 10
    counts = disk.counts()
    store.close()
    return counts


def test_a_diff_reads_no_more_of_a_longer_history(tmp_path: Path) -> None:
    short = cost(tmp_path / "short", SHORT)
    long = cost(tmp_path / "long", LONG)
    # One block of the index holds 2,048 records; how full the last one is depends on the count.
    block = 2048 * 180
    assert long["read_bytes"] <= short["read_bytes"] + 4 * block
    assert long["opened"] <= short["opened"] + 2
    assert long["calls"] <= short["calls"] + 200
    assert long["written_bytes"] == short["written_bytes"]

"""Random changes, trims, compressions, checkpoints and forks, all undone again.

The context must be the same as before. Also: if the disk fails at any call of a restore or a fork merge, the state is
the one before or after, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compression.support.agent_session import append_steps
from tests.support.examples import examples
from trace_store import FixedClock, Message, Repo, Store
from trace_store.errors import StorageError, TraceError
from trace_store.maintenance.fsck import fsck
from trace_store.testing.disks import FailingDisk


def change(repo: Repo, random: Random, number: int) -> None:
    """Run one operation, which may be impossible in this state."""
    addresses = [message.address for message in repo.compile().messages]
    known = [entry.address for entry in repo.contexts.fold(repo.resolve("HEAD")).entries]
    size = repo.compile().token_count
    names = [each.name for each in repo.checkpoints.list()]
    branches = [branch.name for branch in repo.branches.list()]
    one, other = random.choice(branches), random.choice(branches)
    name = random.choice([*names, "none"])
    todo: list[Callable[[], object]] = [
        lambda: repo.append("user", f"message {number}: we decided to go on"),
        lambda: repo.edit(random.choice(addresses), f"edited {number}"),
        lambda: repo.remove(random.choice(addresses)),
        lambda: append_steps(repo, 10 * number + 100, 2),
        lambda: repo.remove(random.choice(addresses), ghost=True),
        lambda: repo.restore(random.choice(known)),
        lambda: repo.annotate(random.choice(addresses), priority="pinned"),
        lambda: repo.compression.trim(size * random.randint(1, 9) // 10, partial=True),
        lambda: repo.compression.dedupe(),
        lambda: repo.compression.compress(size * random.randint(3, 9) // 10, force=True),
        lambda: repo.compression.expand(random.choice(known)),
        lambda: repo.checkpoints.save(f"c{number}", soft=random.random() < 0.4),
        lambda: repo.checkpoints.restore(name, ref=one),
        lambda: repo.checkpoints.restore(name, branch=f"r{number}"),
        lambda: repo.checkpoints.delete(name),
        lambda: repo.checkpoints.inject(name, ref=one),
        lambda: repo.forks.create(f"f{number}", ref=one),
        lambda: repo.forks.merge(one, other),
        lambda: repo.branches.switch(one),
    ]
    random.choice(todo)()


def state(repo: Repo) -> tuple[object, ...]:
    refs = dict(repo.store.refs.iterate("refs/"))
    shown = {n: oid for n, oid in refs.items() if not n.startswith("refs/trash/")}
    return shown, repo.store.refs.head().ref, repo.compile().to_anthropic()


@settings(max_examples=examples(100))
@given(st.integers(0, 1 << 32), st.integers(1, 15))
def test_undoing_everything_restores_the_context(seed: int, count: int) -> None:
    random = Random(seed)
    with Repo(Store.memory(clock=FixedClock()), author="Ada") as repo:
        repo.commit([Message("system", "Be brief."), Message("user", "Begin.")])
        append_steps(repo, 10, 2)
        before = state(repo)
        tip = repo.resolve("HEAD")
        for number in range(count):
            with suppress(TraceError, IndexError):  # not possible now
                change(repo, random, number)
        assert fsck(repo.store) == []
        while True:
            if state(repo) == before and repo.resolve("HEAD") == tip:
                break
            repo.undo()
        assert state(repo) == before


def filled(folder: Path) -> None:
    with Repo.init(folder, author="Ada") as repo:
        repo.append("user", "one")
        repo.checkpoints.save("early")
        repo.forks.create("idea")
        repo.append("user", "two")


@pytest.mark.parametrize("verb", ["save", "soft", "restore", "choose"])
def test_a_full_disk_loses_nothing(tmp_path: Path, verb: str) -> None:
    filled(tmp_path / "0")
    at = failed = 0
    while at == 0 or failed:
        at, failed = at + 1, 0
        folder = tmp_path / str(at)
        filled(folder)
        disk = FailingDisk()
        store = Store.open(str(folder / ".trace"), disk=disk)
        repo = Repo(store, author="Ada")
        tips = dict(store.refs.iterate("refs/heads/"))
        disk._at = disk.count + at
        try:
            if verb == "restore":
                repo.checkpoints.restore("early")
            elif verb == "choose":
                repo.forks.merge("main", "idea")
            else:
                repo.checkpoints.save("late", soft=verb == "soft")
        except StorageError:
            failed = 1
        with Repo.open(folder) as again:
            assert [each for each in fsck(again.store) if each.severity != "info"] == []
            for tip in tips.values():
                assert again.compile(tip).messages[0].text == "one"
            names = [each.name for each in again.checkpoints.list()]
            assert failed or verb not in ("save", "soft") or "late" in names
            assert "early" in names
        assert at < 60

"""The cost of one message, commit or record in the jobs of the benchmarks: bytes, objects and calls of functions.

Each cost is the difference between two sizes, so the start of a job does not count. A limit is a few per cent above
the count. It has to be lowered when a job becomes cheaper.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.scale import turns
from benchmarks.session_file import write_session
from tests.cli.test_session_lists import clone
from tests.growth.support.counting import Cost, cost_of, grown
from tests.growth.support.stores import QuickRecordingDisk, work
from trace_store import Environment, Repo, Store
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.repack import pack

FEW, MANY = 1600, 3200
Run = Callable[[int], Cost]
Act = Callable[[Repo], object]


def opened(folder: Path) -> tuple[Repo, QuickRecordingDisk]:
    """Open a repository, and return the disk that counts what it does."""
    disk = QuickRecordingDisk()
    store = Store.open(str(folder / ".trace"), disk=disk)
    return Repo(store, author="ada", environment=Environment(author="ada")), disk


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Return packed repositories of two sizes, one message a commit."""
    folders = {}
    for size in (FEW, MANY):
        folders[size] = tmp_path_factory.mktemp(f"packed-{size}")
        store = Store.init(str(folders[size]), disk=QuickRecordingDisk(), durability="fast")
        with Repo(store, author="ada", environment=Environment(author="ada")) as repo:
            for number in range(1, size + 1):
                repo.commit([work(number)])
            pack(repo.store)
            assert repo.compile().token_count
            assert len(list(repo.log())) == size
    return folders


def each_of(run: Run) -> Cost:
    """Return what one more message costs; the first run imports modules."""
    run(FEW)
    few, many = run(FEW), run(MANY)
    return Cost(*(round((b - a) / (MANY - FEW)) for a, b in zip(few, many, strict=True)))


READING: dict[str, tuple[Act, Cost]] = {
    "decode": (
        lambda repo: [each.parts for each in repo.compile().messages],
        Cost(read=460, written=0, files=0, objects=2, steps=195),
    ),
    "stream": (
        lambda repo: sum(map(len, repo.compile().objects())),
        Cost(read=460, written=0, files=0, objects=2, steps=168),
    ),
    "provider JSON": (
        lambda repo: repo.compile().to_anthropic(),
        Cost(read=460, written=0, files=0, objects=2, steps=295),
    ),
    "log": (
        lambda repo: list(repo.log()),
        Cost(read=116, written=0, files=0, objects=0, steps=4),
    ),
    "fsck": (
        lambda repo: fsck(repo.store),
        Cost(read=970, written=0, files=0, objects=2, steps=153),
    ),
}


@pytest.mark.parametrize("name", READING)
def test_reading(name: str, packed: dict[int, Path]) -> None:
    act, bound = READING[name]

    def run(size: int) -> Cost:
        repo, disk = opened(packed[size])
        with repo:
            return cost_of(lambda: act(repo), disk)

    found = each_of(run)
    assert all(a <= b for a, b in zip(found, bound, strict=True)), found


def test_an_import_and_a_clone_of_it(tmp_path: Path) -> None:
    """A record of an import, the first status of a clone, and the sessions after a commit there."""
    runs: list[int] = []
    status: dict[int, Cost] = {}
    sessions: dict[int, Cost] = {}

    def run(size: int) -> Cost:
        runs.append(size)
        place = tmp_path / str(len(runs))
        source, folder = place / "session.jsonl", place / "repository"
        place.mkdir()
        write_session(source, turns(size, random.Random(size)), size)
        Store.init(str(folder), disk=QuickRecordingDisk()).close()
        repo, disk = opened(folder)
        with repo:
            cost = cost_of(lambda: repo.transcripts.import_(source), disk)
            branch = repo.head.ref
        repo, disk = opened(clone(folder, place / "clone"))
        with repo:
            repo.store.refs.set_head(str(branch))
            tip = repo.store.refs.read(str(branch))
            assert tip is not None
            assert repo.store.objects.contains(tip)  # indexes the packs
            status[size] = cost_of(repo.status, disk)
            repo.append("user", "And then?")
            sessions[size] = cost_of(repo.sessions.list, disk)
        return cost

    found = each_of(run)
    bound = Cost(read=2050, written=1350, files=0, objects=5, steps=530)
    assert all(a <= b for a, b in zip(found, bound, strict=True)), found
    assert grown(status[FEW], status[MANY]) == set()
    assert grown(sessions[FEW], sessions[MANY]) == set()

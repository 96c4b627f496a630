"""gc and prune remember what is reachable: they find what a scan of everything finds, and read what is new."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.reliability.support.collecting import commit_of, forget_logs
from tests.store.support.histories import (
    append,
    errors,
    line,
    move,
    new_store,
    pack_paths,
    put,
    reopen,
)
from tests.support.files import flip
from tests.support.subjects import upkeep
from trace_store.base.oid import hash_object
from trace_store.errors import NotFoundError, StateError
from trace_store.maintenance import repack
from trace_store.maintenance.gc import ReachabilityScan
from trace_store.maintenance.purge import plan_purge, purge
from trace_store.maintenance.reachability_memory import KnownReachable, load_known
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob
from trace_store.objects.commit import Commit
from trace_store.odb import pack_writer
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.pack_writer import PackWriter
from trace_store.odb.packs import FrameObjects, Packs
from trace_store.store.store import Store

REFS = ["refs/heads/main", "refs/heads/other", "refs/heads/third", "refs/trash/heads/old"]


def scan(store: Store, known: KnownReachable) -> ReachabilityScan | None:
    """Return a scan without a grace period; None if the repository lacks something."""
    try:
        return ReachabilityScan(
            store, grace_ms=0, reflog_days=None, progress=lambda *_: None, known=known
        )
    except StateError:
        return None


def check(store: Store) -> None:
    """Check that a scan with the memory finds what one without it finds."""
    whole, quick = scan(store, KnownReachable()), scan(store, load_known(store))
    assert (whole is None) == (quick is None)
    if whole is not None and quick is not None:
        assert quick.loose.keys() == whole.loose.keys()
        assert quick.packed.keys() == whole.packed.keys()
        assert quick.reachable == whole.reachable
        assert quick.doomed == whole.doomed
        if quick.known.packs:
            assert set(quick.known.left) == set(whole.known.left)


class Machine:
    """Changes one repository at random."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.store = new_store(folder)
        self.oids = [append(self.store, "first")]
        self.contents = [hash_object(encode_blob(b"first"))]
        self.aside: list[tuple[Path, bytes]] = []
        self.count = 0

    def text(self) -> str:
        self.count += 1
        text = f"text {self.count} " * self.rng.choice([1, 1, 300])
        self.contents.append(hash_object(encode_blob(text.encode())))
        return text

    def append(self) -> None:
        self.oids.append(append(self.store, self.text(), self.rng.choice(REFS)))

    def begin(self) -> None:
        self.oids.append(append(self.store, self.text(), self.rng.choice(REFS), parent=None))

    def repeat(self) -> None:
        self.oids.append(append(self.store, "the same text", self.rng.choice(REFS)))

    def delete(self) -> None:
        move(self.store, self.rng.choice(REFS[1:]), None)

    def rewind(self) -> None:
        oid = self.rng.choice(self.oids)
        if self.store.objects.contains(oid):
            move(self.store, self.rng.choice(REFS), oid)

    def forget(self) -> None:
        forget_logs(self.store)

    def seal(self) -> None:
        seal(self.store)

    def pack(self) -> None:
        pack(self.store, level=self.rng.choice([None, None, 1, 2]))

    def gc(self) -> None:
        self.collect(lambda: upkeep(self.store).gc(grace_days=self.rng.choice([0, 14])))

    def prune(self) -> None:
        self.collect(lambda: upkeep(self.store).prune(grace_days=self.rng.choice([0, 14])))

    def collect(self, run: Callable[[], object]) -> None:
        try:
            run()
        except StateError:
            assert self.aside  # nothing else keeps it from its work

    def loose(self) -> None:
        """Write a loose commit over any other, which only sometimes gets a ref."""
        parents = [oid for oid in [self.rng.choice(self.oids)] if self.store.objects.contains(oid)]
        made = commit_of(self.text().encode(), parents, "tester")
        for _, data in made:
            self.store.objects.write(data)
        oid = made[-1][0]
        self.oids.append(oid)
        if self.rng.random() < 0.5:
            move(self.store, self.rng.choice(REFS), oid)

    def name_locally(self) -> None:
        folder = Path(self.store.layout.local_dir, "imports")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / str(self.rng.randrange(3))
        path.write_text(str(self.rng.choice(self.oids)))
        os.utime(path, ns=(1_700_000_000_123_456_789 + self.count,) * 2)

    def forget_locally(self) -> None:
        for path in Path(self.store.layout.local_dir, "imports").glob("*"):
            path.unlink()

    def take_pack(self) -> None:
        """Remove a pack, as git does when it checks out another commit."""
        packs = pack_paths(self.folder)
        if packs and not self.aside:
            path = self.rng.choice(packs)
            self.aside.append((path, path.read_bytes()))
            path.chmod(0o644)
            path.unlink()

    def take_loose(self) -> None:
        """Remove loose objects, as git does."""
        for oid in [*self.store.objects.loose.iterate()] if not self.aside else ():
            path = Path(self.store.layout.loose_file(oid.hex()))
            self.aside.append((path, path.read_bytes()))
            path.unlink()

    def return_files(self) -> None:
        while self.aside:
            path, data = self.aside.pop()
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)

    def keep_old_packs(self) -> None:
        """Have packs beside their replacements, as after a kill, or when git brings them back."""
        before = {path: path.read_bytes() for path in pack_paths(self.folder)}
        self.rng.choice([self.pack, self.gc, self.prune, self.seal])()
        for path in self.rng.sample([*before], self.rng.randrange(len(before) + 1)):
            if not path.exists():
                path.write_bytes(before[path])

    def copy_objects(self) -> None:
        """Write a pack with some objects that others have, as another clone does."""
        writer = PackWriter(self.store.disk, self.store.layout)
        oids = [*self.store.objects.packs.iterate()]
        for oid in self.rng.sample(oids, self.rng.randrange(len(oids) + 1)):
            if oid not in self.store.objects.purged:
                writer.add(oid, self.store.objects.read(oid))
        writer.finish()

    def purge(self) -> None:
        content = self.rng.choice(self.contents)
        try:
            purge(self.store, plan_purge(self.store, [content]), why="", by="tester", force=True)
        except NotFoundError:
            assert not self.store.objects.contains(content)

    def reopen(self) -> None:
        self.store.close()
        self.store = reopen(self.folder)


STEPS: dict[Callable[[Machine], None], int] = {
    Machine.append: 12,
    Machine.begin: 3,
    Machine.repeat: 2,
    Machine.delete: 3,
    Machine.rewind: 4,
    Machine.forget: 2,
    Machine.seal: 6,
    Machine.pack: 4,
    Machine.gc: 8,
    Machine.prune: 4,
    Machine.loose: 4,
    Machine.name_locally: 2,
    Machine.forget_locally: 1,
    Machine.take_pack: 1,
    Machine.take_loose: 1,
    Machine.return_files: 3,
    Machine.purge: 1,
    Machine.keep_old_packs: 3,
    Machine.copy_objects: 3,
    Machine.reopen: 1,
}


@pytest.mark.parametrize("seed", range(12))
def test_the_memory_finds_what_a_scan_of_everything_finds(tmp_path: Path, seed: int) -> None:
    machine = Machine(tmp_path, seed)
    for _ in range(60):
        (step,) = machine.rng.choices([*STEPS], [*STEPS.values()])
        step(machine)
        check(machine.store)
    machine.return_files()
    assert not errors(reopen(tmp_path))


def test_a_memory_that_is_damaged_is_not_used(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    append(store, "kept")
    upkeep(store).gc()
    assert load_known(store).packs
    path = Path(store.layout.reachable_file)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert load_known(store) == KnownReachable()
    check(store)


def test_what_was_missing_and_comes_back_is_reachable_with_all_it_links_to(tmp_path: Path) -> None:
    """Such as content in a pack that git had not checked out when gc ran."""
    store = new_store(tmp_path)
    linked = append(store, "linked", "refs/heads/other")
    pack(store)
    (path,) = pack_paths(tmp_path)
    move(store, "refs/heads/other", None)
    data = Commit([], "tester", 1, [], message="", meta={"mentions": linked}).encode()
    put(store, data, "refs/heads/main")
    seal(store)
    forget_logs(store)
    aside = path.read_bytes()
    path.chmod(0o644)
    path.unlink()
    store = reopen(tmp_path)
    upkeep(store).gc(grace_days=0)
    assert load_known(store).outside == {linked}
    path.write_bytes(aside)
    store = reopen(tmp_path)
    check(store)
    assert upkeep(store).prune(grace_days=0).taken == 0
    assert line(store, linked) == ["linked"]


def test_what_was_missing_and_is_packed_before_the_next_gc_is_followed(tmp_path: Path) -> None:
    """Such as loose objects that git had not checked out when gc ran, and had when `pack` did."""
    store = new_store(tmp_path)
    made = commit_of(b"linked", [], "tester")
    linked = made[-1][0]
    for _, data in made:
        store.objects.write(data)
    data = Commit([], "tester", 1, [], message="", meta={"mentions": linked}).encode()
    put(store, data, "refs/heads/main")
    seal(store)
    forget_logs(store)
    paths = [Path(store.layout.loose_file(oid.hex())) for oid, _ in made]
    aside = [path.read_bytes() for path in paths]
    for path in paths:
        path.unlink()
    upkeep(store).gc(grace_days=0)
    assert load_known(store).outside == {linked}
    for path, content in zip(paths, aside, strict=True):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    pack(store, level=1)
    check(store)
    assert upkeep(store).prune(grace_days=0).taken == 0
    assert line(store, linked) == [""]


@pytest.mark.parametrize("packs", [False, True])
def test_what_a_local_file_names_is_a_root_as_soon_as_it_is_here(
    tmp_path: Path, packs: bool
) -> None:
    store = new_store(tmp_path)
    append(store, "kept")
    data = encode_blob(b"written later")
    path = Path(store.layout.local_dir, "imports")
    path.parent.mkdir(exist_ok=True)
    path.write_text(str(hash_object(data)))
    os.utime(path, ns=(1_700_000_000_123_456_789,) * 2)
    upkeep(store).gc()
    assert load_known(store).files["imports"]
    store.objects.write(data)
    if packs:
        pack(store, level=1)
    check(store)
    assert upkeep(store).prune(grace_days=0).taken == 0


def test_a_loose_object_that_is_in_a_pack_that_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repack removes it without writing it again, so it is not in a pack whose objects are known."""
    store = new_store(tmp_path)
    append(store, "kept")
    upkeep(store).gc()
    known = load_known(store).packs
    data = encode_blob(b"loose")
    oid = store.objects.write(data)
    move(store, "refs/tags/blob", oid)
    upkeep(store).prune()
    assert load_known(store).outside == {oid}
    writer = PackWriter(store.disk, store.layout)
    writer.add(oid, data)
    writer.finish()
    monkeypatch.setattr(repack, "_to_combine", lambda *_: [*known])
    pack(store, level=1)
    assert not Path(store.layout.loose_file(oid.hex())).exists()
    check(store)
    assert upkeep(store).prune(grace_days=0).taken == 0
    assert store.objects.contains(oid)


def test_gc_reads_only_what_is_new(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    for number in range(100):
        append(store, f"message {number}")
    upkeep(store).gc()
    assert objects_read(lambda: upkeep(store).gc()) == 0
    append(store, "one more")
    assert 0 < objects_read(lambda: upkeep(store).gc()) < 10
    # A branch that is deleted for good leaves objects that only a scan of everything finds.
    append(store, "lost", "refs/heads/other", parent=None)
    upkeep(store).gc()
    move(store, "refs/heads/other", None)
    seal(store)
    forget_logs(store)
    assert objects_read(lambda: upkeep(store).gc()) > 200
    assert objects_read(lambda: upkeep(store).gc()) == 0
    assert upkeep(store).prune(grace_days=0).taken == 2


def objects_read(run: Callable[[], object]) -> int:
    """Return how many objects a call reads to follow their links."""
    read, read_frame, count = ObjectDatabase.read, Packs.read_frame, 0

    def counted(self: ObjectDatabase, oid: bytes) -> bytes:
        nonlocal count
        count += 1
        return read(self, oid)

    def counted_frame(self: Packs, name: str, number: int) -> FrameObjects:
        nonlocal count
        frame = read_frame(self, name, number)
        count += len(frame.objects)
        return frame

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ObjectDatabase, "read", counted)
        patch.setattr(Packs, "read_frame", counted_frame)
        run()
    return count


@pytest.mark.parametrize("repacks", [False, True])
def test_what_a_pulled_pack_has_twice_stays_reachable(tmp_path: Path, repacks: bool) -> None:
    """As after `git pull` from a working copy that packed the same history."""
    store, other = new_store(tmp_path), tmp_path / "other"
    append(store, "one")
    append(store, "two")
    seal(store)
    shutil.copytree(tmp_path / ".trace", other / ".trace")
    pack(reopen(other), level=2)
    append(store, "three")
    append(store, "four")
    upkeep(store).gc()
    for path in pack_paths(other):
        for each in path.parent.glob(f"{path.stem}*"):
            shutil.copy(each, Path(store.layout.pack_file(path.stem)).parent)
    store = reopen(tmp_path)
    if repacks:
        pack(store)
    forget_logs(store)
    assert upkeep(store).prune(grace_days=0).taken == 0
    assert not errors(reopen(tmp_path))


def test_what_is_packed_and_loose_stays_reachable(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    oids = [append(store, text) for text in ("one", "two", "three")]
    seal(store)
    assert isinstance(store.objects, ObjectDatabase)
    store.objects.loose.write(store.objects.read(oids[0]))
    forget_logs(store)
    upkeep(store).gc()
    assert upkeep(store).prune(grace_days=0).taken == 0
    assert not errors(reopen(tmp_path))


def test_what_stays_in_a_damaged_pack_is_unreachable_once_git_restores_it(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    append(store, "kept")
    seal(store)
    before = pack_paths(tmp_path)
    for _ in range(6):
        append(store, random.Random(1).randbytes(3000).hex(), "refs/heads/other")
    seal(store)
    (path,) = (each for each in pack_paths(tmp_path) if each not in before)
    move(store, "refs/heads/other", None)
    seal(store)
    forget_logs(store)
    upkeep(store).prune(grace_days=14)
    store.close()
    whole = path.read_bytes()
    flip(path)
    store = reopen(tmp_path)
    assert upkeep(store).prune(grace_days=0).damaged
    store.close()
    path.chmod(0o644)
    path.write_bytes(whole)
    check(reopen(tmp_path))


def test_packs_of_as_many_objects_as_fit_are_not_packed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packs of small objects are full long before they are large."""
    for module in (repack, pack_writer):
        monkeypatch.setattr(module, "MAXIMUM_PACK_OBJECTS", 32)
    store = new_store(tmp_path)
    for number in range(64):
        append(store, f"text {number} " * 10_000)
    assert len(pack(store).packs) > 3
    before = pack_paths(tmp_path)
    assert len(pack(store).packs) <= 1, "the last one, which is not full"
    assert len({*before} & {*pack_paths(tmp_path)}) >= 3
    assert not errors(reopen(tmp_path))

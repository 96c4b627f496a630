"""`trace fsck --repair`: recovers from copies, reports the rest, deletes nothing."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

import pytest

import trace_store
from tests.reliability.support.damage import Matrix, cases, kind_of
from tests.reliability.support.small_repository import IDEA, MAIN, Watch, say
from tests.reliability.test_damage import damaged_in_the_middle
from tests.store.support.histories import append, codes, journal_path, new_store, pack_paths, reopen
from tests.support.examples import FULL
from tests.support.files import flip
from trace_store.base.oid import ObjectId
from trace_store.errors import FormatError, NotFoundError, StorageError
from trace_store.maintenance.fsck import check_derived, fsck
from trace_store.maintenance.fsck_objects import ERROR
from trace_store.maintenance.repair_report import RepairReport
from trace_store.maintenance.repair_store import StoreRepair
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob
from trace_store.store.store import Store
from trace_store.testing.disks import FailingDisk

TEXT = "The release notes, line by line. "


def repaired(folder: Path, source: Store | None = None) -> RepairReport:
    with reopen(folder) as store:
        return StoreRepair(store, source).run()


def in_order(folder: Path) -> bool:
    with reopen(folder) as store:
        return fsck(store, also=[check_derived]) == []


def packed_twice(folder: Path) -> ObjectId:
    """Make a repository whose objects are in one pack; return the id of a commit."""
    with new_store(folder) as store:
        tip = append(store, TEXT)
        append(store, "later " * 30)
        seal(store)
    return tip


def copy_loose(folder: Path, copy: Path) -> None:
    """Put the objects of a sound copy into the repository, each in a file of its own."""
    with Store.open(str(copy)) as sound:
        contents = [sound.objects.read(oid) for oid in sound.objects.iterate()]
    with reopen(folder) as store:
        for data in contents:
            store.objects.write(data)


def test_a_damaged_pack_is_written_anew_from_loose_copies(tmp_path: Path) -> None:
    """As git's t5303: damage, proof that reading recovers, and that a repair clears it."""
    packed_twice(tmp_path)
    shutil.copytree(tmp_path / ".trace", tmp_path / "sound")
    (path,) = pack_paths(tmp_path)
    damaged = flip_in_content(path)
    with reopen(tmp_path) as store, pytest.raises(FormatError):
        list(store.objects.read_many(store.objects.iterate()))
    copy_loose(tmp_path, tmp_path / "sound")
    with reopen(tmp_path) as store:
        assert len(list(store.objects.read_many(store.objects.iterate()))) == 4
        assert "pack-damaged" in codes(store)
    report = repaired(tmp_path)
    assert not report.lost
    assert in_order(tmp_path)
    assert path not in pack_paths(tmp_path)
    kept = {(tmp_path / ".trace" / name).read_bytes() for name in report.kept}
    assert damaged in kept, "what was damaged is set aside as it was"
    assert repaired(tmp_path).mended == (), "a second repair finds nothing to do"


def flip_in_content(path: Path) -> bytes:
    """Flip one bit in the middle of a pack's first frame; return the new content."""
    flip(path, 60)
    return path.read_bytes()


def test_a_damaged_pack_is_written_anew_from_another_repository(tmp_path: Path) -> None:
    packed_twice(tmp_path)
    shutil.copytree(tmp_path / ".trace", tmp_path / "clone/.trace")
    for damage in (flip_in_content, lambda path: path.write_bytes(path.read_bytes()[:40])):
        (path,) = pack_paths(tmp_path)
        path.chmod(0o644)
        damage(path)
        with reopen(tmp_path / "clone") as clone:
            assert repaired(tmp_path, clone).lost == ()
        assert in_order(tmp_path)


def test_a_pack_that_is_gone_comes_back_from_another_repository(tmp_path: Path) -> None:
    tip = packed_twice(tmp_path)
    shutil.copytree(tmp_path / ".trace", tmp_path / "clone/.trace")
    (path,) = pack_paths(tmp_path)
    path.unlink()
    with reopen(tmp_path / "clone") as clone:
        report = repaired(tmp_path, clone)
    assert str(tip) in {each.what for each in report.mended}
    assert in_order(tmp_path)


def test_a_sealed_journal_that_is_still_there_is_a_second_copy(tmp_path: Path) -> None:
    packed_twice(tmp_path)
    assert journal_path(tmp_path, 1).exists()
    (path,) = pack_paths(tmp_path)
    flip_in_content(path)
    assert repaired(tmp_path).lost == ()
    assert in_order(tmp_path)


def test_what_is_found_nowhere_is_told_with_who_names_it(tmp_path: Path) -> None:
    tip = packed_twice(tmp_path)
    journal_path(tmp_path, 1).unlink()
    (path,) = pack_paths(tmp_path)
    flip_in_content(path)
    report = repaired(tmp_path)
    assert report.lost
    assert {ref for lost in report.lost for ref in lost.refs} == {MAIN}
    assert any(finding.severity == ERROR for finding in report.remaining)
    root = tmp_path / ".trace"
    told = (root / report.report).read_text(encoding="utf-8")
    assert all(lost.oid in told for lost in report.lost)
    (record,) = (root / "lost-found").glob("report-*.json-*")
    assert json.loads(record.read_bytes())["lost"] == trace_store.record(report)["lost"]
    assert MAIN in told
    with reopen(tmp_path) as store:
        for lost in report.lost:
            with pytest.raises(NotFoundError):
                store.objects.read(ObjectId.parse(lost.oid))
        assert store.refs.read(MAIN) is not None, "a branch stays where it is"
    assert tip


def test_what_was_set_aside_is_looked_through_again(tmp_path: Path) -> None:
    """A copy found later repairs objects that an earlier repair could not."""
    packed_twice(tmp_path)
    journal_path(tmp_path, 1).unlink()
    shutil.copytree(tmp_path / ".trace", tmp_path / "clone/.trace")
    (path,) = pack_paths(tmp_path)
    flip_in_content(path)
    assert repaired(tmp_path).lost
    with reopen(tmp_path / "clone") as clone:
        assert repaired(tmp_path, clone).lost == ()
    assert in_order(tmp_path)


def test_transactions_behind_damage_in_a_journal_come_back(tmp_path: Path) -> None:
    damaged_in_the_middle(tmp_path)
    with reopen(tmp_path) as store:
        before = store.refs.read(MAIN)
    report = repaired(tmp_path)
    assert not report.lost
    with reopen(tmp_path) as store:
        after = store.refs.read(MAIN)
        assert after != before
        found = list(store.refs.iterate("refs/lost-found/"))
    assert in_order(tmp_path)
    assert not found, "the branch goes on to what was acknowledged"


def test_a_seal_does_not_take_along_what_stands_behind_damage(tmp_path: Path) -> None:
    damaged_in_the_middle(tmp_path)
    with reopen(tmp_path) as store:
        before = set(store.objects.iterate())
        say(store, "four")
        seal(store)
        say(store, "five")
        seal(store)
    assert not journal_path(tmp_path, 1).exists()
    assert list((tmp_path / ".trace/lost-found/journal").iterdir())
    with reopen(tmp_path) as store:
        missing = before - set(store.objects.iterate())
        assert not missing


def test_a_cut_off_write_is_no_matter_for_repair(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        say(store, "one")
    with journal_path(tmp_path).open("ab") as file:
        file.write(b"\x40\x01\0\0\1\0\0\0half a frame")
    report = repaired(tmp_path)
    assert (report.mended, report.kept) == ((), ())


@pytest.mark.parametrize("where", ["lost", "to nothing"])
def test_a_ref_comes_back(tmp_path: Path, where: str) -> None:
    with new_store(tmp_path) as store:
        first = say(store, "one")
        seal(store)
        tip = say(store, "two")
        seal(store)
    folder = tmp_path / ".trace/refs/heads/main"
    (folder / str(tip)).unlink()
    if where == "to nothing":
        (folder / ("ab" * 32)).touch()
    repaired(tmp_path)
    with reopen(tmp_path) as store:
        assert store.refs.read(MAIN) in (first, tip)
        assert not [f for f in fsck(store) if f.code.startswith("ref-")]


def test_marks_of_a_merge_in_refs_and_head_are_cleared(tmp_path: Path) -> None:
    marks = b"<<<<<<< HEAD\nref: refs/heads/a\n=======\nref: refs/heads/b\n>>>>>>> theirs\n"
    with new_store(tmp_path) as store:
        tip = say(store, "one")
        seal(store)
    root = tmp_path / ".trace"
    for name in ("HEAD", f"refs/heads/main/{tip}", ".gitattributes", "refs/heads/notes.txt"):
        (root / name).write_bytes(marks)
    report = repaired(tmp_path)
    assert len(report.kept) == 4
    assert all((root / name).read_bytes() == marks for name in report.kept)
    with reopen(tmp_path) as store:
        assert store.refs.head().oid == tip
    assert in_order(tmp_path)


def test_a_purged_object_is_not_brought_back(tmp_path: Path) -> None:
    tip = packed_twice(tmp_path)
    shutil.copytree(tmp_path / ".trace", tmp_path / "clone/.trace")
    with reopen(tmp_path) as store:
        blob = next(oid for oid in store.objects.iterate() if oid != tip)
        (tmp_path / ".trace/tombstones").mkdir()
        (tmp_path / f".trace/tombstones/{blob}-{'0' * 16}").write_bytes(b"")
    (path,) = pack_paths(tmp_path)
    flip_in_content(path)
    with reopen(tmp_path / "clone") as clone:
        report = repaired(tmp_path, clone)
    assert str(blob) not in {each.what for each in report.mended}
    with reopen(tmp_path) as store, pytest.raises(NotFoundError):
        store.objects.read(blob)


def test_converted_line_ends_are_converted_back(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        oid = store.objects.write(encode_blob(b"one\ntwo\n"))
    path = tmp_path / ".trace/objects" / str(oid)[:2] / str(oid)[2:]
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    with reopen(tmp_path) as store:
        (found,) = fsck(store)
        assert "converted its line ends" in found.detail
    assert repaired(tmp_path).lost == ()
    with reopen(tmp_path) as store:
        assert store.objects.read(oid) == encode_blob(b"one\ntwo\n")
    assert in_order(tmp_path)


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    packed_twice(tmp_path)
    (path,) = pack_paths(tmp_path)
    flip_in_content(path)
    (tmp_path / ".trace/.gitignore").unlink()

    def picture() -> dict[str, bytes]:
        files = (p for p in (tmp_path / ".trace").rglob("*") if p.is_file())
        return {str(p): p.read_bytes() for p in files if p.suffix != ".idx"}

    before = picture()
    with reopen(tmp_path) as store:
        report = StoreRepair(store, dry_run=True).run()
    assert picture() == before
    assert {each.kind for each in report.mended} == {"file", "pack"}
    assert report.dry_run


def test_a_sound_repository_in_memory_is_left_alone() -> None:
    assert StoreRepair(Store.memory()).run().mended == ()


def damaged_everywhere(folder: Path) -> None:
    """Make a repository with damage that every step of a repair has to deal with, and copies of all of it."""
    packed_twice(folder)
    with reopen(folder) as store:
        oid = store.objects.write(encode_blob(b"loose\n"))
        start = store.journal.files[-1].end if store.journal.files else 0
        say(store, "one")
        start = store.journal.files[-1].end
        say(store, "two")
        say(store, "three", IDEA.removeprefix("refs/heads/"))
    flip(journal_path(folder), start + 30)
    flip_in_content(pack_paths(folder)[0])
    flip(folder / ".trace/objects" / str(oid)[:2] / str(oid)[2:], 9)
    (folder / ".trace/.gitattributes").write_bytes(b"*.txt text\n")
    (folder / ".trace/HEAD").write_bytes(b"nothing\n")
    (folder / ".trace/logs/HEAD.log").write_bytes(b"nothing\n")


def test_a_repair_may_be_interrupted_at_any_call(tmp_path: Path) -> None:
    """Whatever the disk refuses, a repair that is begun again ends as one that was not interrupted."""
    damaged_everywhere(tmp_path / "first")
    saved = {
        p.relative_to(tmp_path / "first"): p.read_bytes()
        for p in (tmp_path / "first").rglob("*")
        if p.is_file()
    }

    def again(folder: Path) -> None:
        for name, data in saved.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)

    def contents(folder: Path) -> tuple[set[bytes], object]:
        with reopen(folder) as store:
            report = fsck(store, also=[check_derived])
            wrong = sorted(f.code for f in report if f.severity == ERROR)
            return set(store.objects.iterate()), (list(store.refs.iterate()), wrong)

    again(tmp_path / "whole")
    counting = FailingDisk()
    with reopen(tmp_path / "whole", disk=counting) as store:
        StoreRepair(store).run()
    wanted = contents(tmp_path / "whole")
    assert not wanted[1][1]  # type: ignore[index]
    calls = counting.count
    assert calls > 60
    for number in range(1, calls + 1, 3):
        folder = tmp_path / str(number)
        again(folder)
        with contextlib.suppress(StorageError), reopen(folder, disk=FailingDisk(number)) as store:
            StoreRepair(store).run()
        repaired(folder)
        assert contents(folder) == wanted, number
        names = {p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        for name in ("objects/pack", "objects"):
            damaged = [d for n, d in saved.items() if f"/{name}/" in str(n) and n.suffix != ".idx"]
            assert all(data in names for data in damaged), number
        shutil.rmtree(folder)


def test_each_damage_of_the_matrix_is_repaired_or_told(tmp_path: Path) -> None:
    """For any damage: no traceback, no unreported loss, no work for a second repair."""
    matrix = Matrix(tmp_path)
    outcomes: dict[str, int] = {}
    for case in cases(
        matrix.files, every_bit=3001 if FULL else 9001, every_length=701 if FULL else 2101
    ):
        if case.sort == "longer":
            continue
        shutil.rmtree(matrix.root)
        for name, data in {**matrix.files, **case.change}.items():
            if data is not None:
                (matrix.root / name).parent.mkdir(parents=True, exist_ok=True)
                (matrix.root / name).write_bytes(data)
        try:
            store = Store.open(str(matrix.root), clock=Watch())
        except (FormatError, NotFoundError):
            assert kind_of(case.file) == "config"
            continue
        with store:
            report = StoreRepair(store).run()
            here = set(store.objects.iterate())
            lost = {str(oid) for oid in matrix.oids if oid not in here}
            wrong = [f for f in report.remaining if f.severity == ERROR]
            assert bool(wrong) <= bool(lost), (case[:3], wrong)
        with Store.open(str(matrix.root), clock=Watch()) as store:
            assert StoreRepair(store).run().mended == (), case[:3]
        outcomes[kind_of(case.file)] = outcomes.get(kind_of(case.file), 0) + 1
    assert len(outcomes) >= 11

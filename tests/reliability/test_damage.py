"""Damage of every sort: `fsck` names it, reads are right or refused, and nothing is removed.

The matrix samples here; `nox -s damage` goes through every bit and every length.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability.support.damage import BAD, GOOD, MEMORY, Matrix, cases, kind_of, table
from tests.reliability.support.small_repository import MAIN, say
from tests.store.support.histories import codes, journal_path, new_store, reopen
from tests.support.examples import FULL
from tests.support.files import flip
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.maintenance.fsck import check_derived, check_table, fsck
from trace_store.maintenance.fsck_objects import ERROR, INFO, ObjectChecks
from trace_store.maintenance.seal import seal
from trace_store.store.store import Store

EVERY_BIT, EVERY_LENGTH = (131, 53) if FULL else (401, 151)
"""Of so many bits, and lengths, one is taken: some five hundred cases, of each file some."""


@pytest.fixture
def matrix() -> Iterator[Matrix]:
    """Make the matrix, in memory where there is such a folder: each case writes files and reads them."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Matrix(Path(folder))


def test_no_damage_goes_unseen_or_gives_wrong_bytes(matrix: Matrix) -> None:
    outcomes = [
        matrix.outcome(case)
        for case in cases(matrix.files, every_bit=EVERY_BIT, every_length=EVERY_LENGTH)
    ]
    print(table(outcomes))
    assert [o for o in outcomes if o.verdict in BAD] == []
    assert {o.verdict for o in outcomes} <= set(GOOD)
    assert len({kind_of(name) for name in matrix.files}) >= 12, "a file of every kind"


def test_a_changed_digit_does_not_pass_a_journal_off_as_sealed(matrix: Matrix) -> None:
    published = matrix.root / "local/published"
    published.write_bytes(published.read_bytes().replace(b"sealed 2", b"sealed 3"))
    with Store.open(str(matrix.root)) as store:
        assert all(store.objects.contains(oid) for oid in matrix.oids)
        assert "published-unreadable" in {finding.code for finding in fsck(store)}


def test_a_file_of_an_earlier_version_without_its_check_is_taken_as_it_is(matrix: Matrix) -> None:
    published = matrix.root / "local/published"
    published.write_bytes(published.read_bytes().partition(b"check ")[0])
    with Store.open(str(matrix.root)) as store:
        assert fsck(store) == []


def damaged_in_the_middle(folder: Path) -> int:
    """Create a journal with a damaged second transaction of three; return its offset."""
    with new_store(folder) as store:
        say(store, "one")
        start = store.journal.files[-1].end
        say(store, "two")
        say(store, "three")
    path = journal_path(folder)
    flip(path, start + 30, 4)
    return start


def test_what_stands_behind_damage_in_a_journal_is_an_error(tmp_path: Path) -> None:
    start = damaged_in_the_middle(tmp_path)
    with reopen(tmp_path) as store:
        (found,) = fsck(store)
    assert (found.code, found.severity, found.what) == ("journal-damaged", ERROR, "journal/1")
    assert f"1 complete transactions follow damaged bytes at {start}" in found.detail


def test_a_write_that_was_cut_off_is_no_damage(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        say(store, "one")
        end = store.journal.files[-1].end
        say(store, "two " * 300)
    data = journal_path(tmp_path).read_bytes()
    for rest in (data[end:-1], data[end : end + 40] + bytes(600) + data[end + 640 :], b"\1"):
        journal_path(tmp_path).write_bytes(data[:end] + rest)
        with reopen(tmp_path) as store:
            assert [(f.code, f.severity) for f in fsck(store)] == [("journal-tail", INFO)]


def test_a_journal_that_is_gone_is_missed_where_something_tells_of_it(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        say(store, "one")
        seal(store)
        say(store, "two")
        store.transact(lambda _: Transaction((), [RefEdit("refs/tags/a", None, ANY)]))
        list(check_derived(store, ObjectChecks(store.objects)))
    from trace_store.history.log import log

    with reopen(tmp_path) as store:
        assert len(list(log(store, MAIN))) == 2
    journal_path(tmp_path).unlink()
    with reopen(tmp_path) as store:
        assert [finding.code for finding in check_table(store)] == ["commit-forgotten"]


def test_what_a_file_system_lost_of_a_reflog_is_named_and_a_line_cut_off_is_not(
    tmp_path: Path,
) -> None:
    with new_store(tmp_path) as store:
        say(store, "one")
        seal(store)
        path = Path(store.layout.log_file(MAIN))
        whole = path.read_bytes()
        for harmless in (whole[:50], whole[:50] + b"\0\n" + whole, b"\0\n" + whole):
            path.write_bytes(harmless)
            assert not fsck(store)
        for lost in (bytes(len(whole)), whole + bytes(40), whole[:50] + bytes(40) + b"\n" + whole):
            path.write_bytes(lost)
            (found,) = fsck(store)
            assert (found.code, found.what) == ("reflog-zeros", f"logs/{MAIN}.log")


def test_a_ref_that_lost_its_file_is_named(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        tip = say(store, "one")
        seal(store)
    (tmp_path / ".trace/refs/heads/main" / str(tip)).unlink()
    with reopen(tmp_path) as store:
        (found,) = [f for f in fsck(store) if f.code == "ref-file-missing"]
        assert (found.what, str(tip) in found.detail) == (MAIN, True)
        seal(store, fully=True)
        assert "ref-file-missing" not in codes(store), "a seal accepts what git did"


def test_head_on_a_branch_that_is_not_there_is_told(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        assert fsck(store) == []
        say(store, "one")
        store.refs.set_head("refs/heads/maio")
        assert codes(store) == {"head-unborn"}


@pytest.mark.parametrize(
    ("bytes_", "said"),
    [
        (b"<<<<<<< HEAD\nref: refs/heads/a\n=======\nref: refs/heads/b\n>>>>>>> theirs\n", "merge"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n", "Git LFS"),
    ],
)
def test_what_git_left_in_a_file_is_said(tmp_path: Path, bytes_: bytes, said: str) -> None:
    with new_store(tmp_path) as store:
        tip = say(store, "one")
        seal(store)
        oid = store.objects.write(b"\x92\xa4blob\xc4\x01x")
    root = tmp_path / ".trace"
    (pack,) = (root / "objects/pack").glob("*.pack")
    (root / "logs/refs/heads/main.log").write_bytes(bytes_)
    (root / "objects" / str(oid)[:2] / str(oid)[2:]).write_bytes(bytes_)
    for name in ("HEAD", f"refs/heads/main/{tip}", ".gitignore"):
        (root / name).write_bytes(bytes_)
    pack.chmod(0o644)
    pack.write_bytes(bytes_)
    with reopen(tmp_path) as store:
        found = {f.code: f.detail for f in fsck(store)}
    for code in (
        *("head-unreadable", "ref-stray-file", "root-file-changed", "reflog-damaged"),
        *("object-damaged", "pack-damaged"),
    ):
        assert said in found[code], (code, found[code])

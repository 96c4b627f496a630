"""Packs that are proven to be in order: a check finds the same with proofs and without, by one process or more."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.support.histories import append, new_store, pack_paths
from tests.support.examples import examples
from trace_store.base.oid import hash_object
from trace_store.contracts import Transaction
from trace_store.disk import worker_pool
from trace_store.disk.files import Disk
from trace_store.disk.layout import Layout
from trace_store.maintenance import fsck as pack_checks
from trace_store.maintenance import pack_proofs
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.fsck_objects import ERROR, Finding
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode, encode_blob, is_plain_blob, plain_blob_head
from trace_store.odb.index_scan import has_valid_entries
from trace_store.odb.pack_index import encode_index, encode_rows
from trace_store.odb.pack_writer import PackWriter
from trace_store.odb.packs import pack_names
from trace_store.store.store import Store

DISK = Disk()


def make(folder: Path) -> Path:
    """Write a repository of two packs, one of them with dictionaries, and loose objects."""
    source = random.Random(3)
    words = [source.randbytes(4).hex() for _ in range(200)]
    with new_store(folder) as store:
        for number in range(60):
            append(store, "\n".join(source.choices(words, k=source.choice((3, 40, 900)))))
            if number == 40:
                seal(store)
                pack(store, frame_bytes=20_000)
        lost = hash_object(encode_blob(b"lost"))
        strange = encode(["list", {"items": [lost], "type": "of strange things"}])
        salted = encode_blob(b"salted", bytes(16))
        objects = [(hash_object(data), data) for data in (strange, salted)]
        store.transact(lambda refs: Transaction(objects, []))
        store.objects.write(encode_blob(b"loose"))
        seal(store)
    return folder


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every check have two processes beside its own."""
    monkeypatch.setattr(pack_proofs, "PROCESS_BYTES", 1)
    monkeypatch.setattr(worker_pool, "processor_count", lambda: 3)


def check(folder: Path) -> list[Finding]:
    with Store.open(str(folder)) as store:
        return fsck(store)


def check_in_full(folder: Path) -> list[Finding]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack_checks, "prove", lambda *_: {})
        return check(folder)


def damaged(sound: Path, folder: Path, source: random.Random) -> str:
    """Copy a repository, change one thing in its packs, and say which."""
    shutil.copytree(sound, folder)
    path = source.choice(sorted((folder / ".trace/objects/pack").iterdir()))
    data = bytearray(path.read_bytes())
    at = source.randrange(len(data))
    how = source.choice(("flip", "flip", "flip", "cut", "remove", "zeros", "swap"))
    if how == "remove":
        path.unlink()
    else:
        if how == "flip":
            data[at] ^= 1 << source.randrange(8)
        elif how == "cut":
            del data[at:]
        elif how == "zeros":
            data[at : at + 40] = bytes(len(data[at : at + 40]))
        else:
            data[at : at + 64] = data[at + 32 : at + 64] + data[at : at + 32]
        path.write_bytes(data)
    return f"{how} {path.name} at {at}"


class TestFindings:
    def test_a_sound_repository_is_proven(self, sound: Path, together: None) -> None:
        layout = Layout(str(sound / ".trace"))
        names = [path.stem for path in pack_paths(sound)]
        assert len(names) == 2
        proofs = pack_proofs.prove(DISK, layout, names)
        assert sorted(proofs) == sorted(names)
        assert [f.code for f in check(sound / ".trace")] == ["unreachable-object-missing"]
        assert check(sound / ".trace") == check_in_full(sound / ".trace")

    @pytest.mark.parametrize("seed", range(60))
    def test_damage_is_found_all_the_same(self, sound: Path, tmp_path: Path, seed: int) -> None:
        what = damaged(sound, tmp_path / "copy", random.Random(seed))
        copy = tmp_path / "copy" / ".trace"
        shutil.copytree(tmp_path / "copy", tmp_path / "again")  # a check makes lost indexes again
        assert check(copy) == check_in_full(tmp_path / "again" / ".trace"), what

    @pytest.mark.parametrize("seed", range(60, 70))
    def test_more_processes_find_the_same(
        self, sound: Path, tmp_path: Path, seed: int, together: None
    ) -> None:
        what = damaged(sound, tmp_path / "copy", random.Random(seed))
        shutil.copytree(tmp_path / "copy", tmp_path / "again")
        found = check(tmp_path / "copy" / ".trace")
        assert found == check_in_full(tmp_path / "again" / ".trace"), what

    def test_what_is_named_across_packs(self, tmp_path: Path) -> None:
        """Verifying one pack proves nothing about others."""
        with new_store(tmp_path) as store:
            append(store, "one")
            seal(store)
        kept = pack_paths(tmp_path)
        for path in (*kept, *(path.with_suffix(".idx") for path in kept)):
            shutil.copy(path, tmp_path / path.name)
        with Store.open(str(tmp_path / ".trace")) as store:
            append(store, "two")
            seal(store)
        for path in pack_paths(tmp_path):
            if path not in kept:
                continue
            path.unlink()
        found = check(tmp_path / ".trace")
        assert found == check_in_full(tmp_path / ".trace")

    def test_what_is_wrong_in_two_packs_is_proven_in_none(self, tmp_path: Path) -> None:
        new_store(tmp_path).close()
        layout = Layout(str(tmp_path / ".trace"))
        wrong = b"\x92\xd9\x04blob\xc4\x01x"  # the kind could be shorter
        for other in (b"a", b"b", b"c"):
            writer = PackWriter(DISK, layout)
            for data in (wrong, encode_blob(other)):
                writer.add(hash_object(data), data)
            writer.finish()
        assert pack_proofs.prove(DISK, layout, pack_names(DISK, layout)) == {}
        found = check(tmp_path / ".trace")
        assert [f.what for f in found if f.severity == ERROR] == [str(hash_object(wrong))]
        assert found == check_in_full(tmp_path / ".trace")


class TestProcesses:
    @pytest.mark.parametrize(
        "program", ["", "import sys; sys.stdin.read(1); sys.exit(1)", "print('x' * 5)", "junk("]
    )
    def test_one_that_fails_is_replaced(
        self, sound: Path, together: None, monkeypatch: pytest.MonkeyPatch, program: str
    ) -> None:
        expected = check_in_full(sound / ".trace")
        monkeypatch.setattr(worker_pool, "_PROGRAM", program)
        assert check(sound / ".trace") == expected

    def test_one_that_cannot_be_started(
        self, sound: Path, together: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        assert check(sound / ".trace") == check_in_full(sound / ".trace")

    @pytest.mark.parametrize("executable", ["", "/usr/bin/uwsgi"])
    def test_a_program_that_is_no_python_is_not_started(
        self, sound: Path, together: None, monkeypatch: pytest.MonkeyPatch, executable: str
    ) -> None:
        monkeypatch.setattr(sys, "executable", executable)
        monkeypatch.setattr(subprocess, "Popen", None)
        assert check(sound / ".trace") == check_in_full(sound / ".trace")

    def test_none_for_little_content(self, sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(subprocess, "Popen", None)
        check(sound / ".trace")

    def test_they_end_when_the_check_is_interrupted(
        self, sound: Path, together: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started: list[subprocess.Popen[bytes]] = []
        popen = subprocess.Popen

        def note(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
            started.append(popen(*arguments, **options))  # type: ignore[call-overload]
            return started[-1]

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(subprocess, "Popen", note)
        monkeypatch.setattr(pack_proofs, "Prover", interrupted)
        with pytest.raises(KeyboardInterrupt):
            check(sound / ".trace")
        assert len(started) == 2
        assert all(process.returncode is not None for process in started)

    def test_modules_of_a_stranger_are_not_loaded(
        self, sound: Path, tmp_path: Path, together: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("trace_store", "blake3", "struct", "encodings"):
            (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'loaded')!r}, 'w')")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", ["", ".", *sys.path])
        check(sound / ".trace")
        assert not (tmp_path / "loaded").exists()


class TestIndex:
    @settings(max_examples=examples(80), deadline=None)
    @given(
        st.lists(st.binary(min_size=32, max_size=32), max_size=40, unique=True),
        st.integers(0, 1 << 30),
        st.booleans(),
    )
    def test_entries_lead_to_all_or_not(self, oids: list[bytes], seed: int, changed: bool) -> None:
        source = random.Random(seed)
        rows = encode_rows(0, range(0, 4 * len(oids), 4))
        data = bytearray(encode_index(b"".join(oids), rows, [], 100, bytes(32)))
        tables = range(56, len(data) - 32 - 38 * len(oids))
        if changed and tables:
            data[source.choice(tables)] ^= 1 << source.randrange(8)
        assert has_valid_entries(bytes(data)) == (not changed)

    def test_an_object_that_stands_there_twice_is_looked_at_closely(self) -> None:
        data = encode_index(bytes(64), encode_rows(0, [4, 8]), [], 100, bytes(32))
        assert not has_valid_entries(data)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.one_of(st.binary(max_size=600).map(encode_blob), st.binary(max_size=600)), st.integers(0, 9)
)
def test_a_plain_blob_is_known_by_its_beginning(data: bytes, cut: int) -> None:
    for each in (
        data,
        data[:-cut],
        data + bytes(cut),
        b"\x92\xa4blob\xc4" + data,
        b"\x92\xa4blob\xc5" + data,
    ):
        assert each.startswith(plain_blob_head(len(each))) == is_plain_blob(each)
    large = encode_blob(bytes(70_000))
    assert large.startswith(plain_blob_head(len(large)))

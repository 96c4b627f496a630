"""Bundles that are cut, flipped, extended, or made to deceive: refused, and nothing of them is taken."""

from __future__ import annotations

import contextlib
import io
import shutil
import struct
from pathlib import Path

import pytest

from tests.bundles.support.graphs import MAIN, Growing, all_refs, everything, files, store_in
from tests.store.support.histories import errors
from tests.support.subjects import bundles
from trace_store.base.oid import ObjectId, digest, hash_object
from trace_store.bundles.format import (
    END,
    MAXIMUM_HEADER_BYTES,
    BundledRef,
    BundleHeader,
    BundleReader,
    BundleWriter,
)
from trace_store.disk.files import Disk
from trace_store.errors import (
    CorruptBundleError,
    FormatError,
    ObjectNotFoundError,
    StorageError,
    TraceError,
    UnreadableInputError,
    UnsupportedFormatError,
)
from trace_store.objects.codec import encode, encode_blob
from trace_store.objects.commit import Commit
from trace_store.odb.pack import FRAME, HEADER, MAGIC, TRAILER, VERSION
from trace_store.odb.pack_writer import PackEncoder
from trace_store.store.store import Store
from trace_store.testing.disks import FailingDisk

ABSENT = ObjectId(bytes(range(32)))


def small_store(folder: Path) -> Growing:
    growing = Growing(store_in(folder), 1)
    growing.move(MAIN, growing.commit([growing.commit([])]))
    return growing


def bundle(store: Store, **options: bool) -> bytes:
    out = io.BytesIO()
    bundles(store).create(out.write, **options)  # type: ignore[arg-type]
    return out.getvalue()


def made(
    refs: dict[str, list[ObjectId]],
    objects: list[bytes],
    *,
    count: int | None = None,
    prerequisites: tuple[ObjectId, ...] = (),
    requires: tuple[str, ...] = (),
    packs: list[bytes] | None = None,
) -> bytes:
    """Return a bundle with right hashes, whatever else is wrong with it."""
    out = io.BytesIO()
    header = BundleHeader(
        tuple(BundledRef(name, tuple(tips)) for name, tips in refs.items()),
        prerequisites,
        len(objects) if count is None else count,
        requires=requires,
    )
    writer = BundleWriter(out.write, header)
    encoder = PackEncoder(writer.begin)
    for data in objects:
        encoder.add(hash_object(data), data)
    encoder.finish()
    for data in packs or ():
        writer.write(data)
        writer.complete("", b"")
    writer.finish()
    return out.getvalue()


def refused(folder: Path, data: bytes, error: type[TraceError] = CorruptBundleError) -> str:
    """Tell why a bundle is refused; nothing of it may be in the store, nor in its files."""
    if not (folder / ".trace").exists():
        small_store(folder).store.close()
    with Store.open(str(folder / ".trace"), durability="fast") as store:
        before, refs = files(folder), all_refs(store)
        with pytest.raises(error) as caught:
            bundles(store).import_(io.BytesIO(data).read)
        assert all_refs(store) == refs
        assert files(folder) == before
        with pytest.raises(error):
            bundles(store).verify(io.BytesIO(data).read)
    return str(caught.value)


def head_only(fields: bytes, line: bytes = b"trace bundle 1\n") -> bytes:
    data = line + struct.pack("<I", len(fields)) + fields
    data += digest(data)
    data += END + bytes(4)
    return data + digest(data)


class TestDamage:
    def test_any_bit(self, tmp_path: Path) -> None:
        data = bundle(small_store(tmp_path / "here").store)
        there = store_in(tmp_path / "there")
        before = files(tmp_path / "there")
        for place in range(len(data)):
            changed = bytearray(data)
            changed[place] ^= 1 << (place % 8)
            with pytest.raises(FormatError):
                bundles(there).import_(io.BytesIO(bytes(changed)).read)
        assert files(tmp_path / "there") == before
        assert all_refs(there) == {}

    def test_any_length(self, tmp_path: Path) -> None:
        data = bundle(small_store(tmp_path / "here").store)
        there = store_in(tmp_path / "there")
        before = files(tmp_path / "there")
        for length in range(len(data)):
            with pytest.raises(CorruptBundleError):
                bundles(there).import_(io.BytesIO(data[:length]).read)
        for more in (b"\n", data):
            with pytest.raises(CorruptBundleError, match="unexpected data"):
                bundles(there).import_(io.BytesIO(data + more).read)
        assert files(tmp_path / "there") == before
        assert everything(there) == {}

    def test_a_damaged_header_is_not_listed(self, tmp_path: Path) -> None:
        data = bytearray(bundle(small_store(tmp_path / "here").store))
        at = data.index(b"refs/heads/main")
        data[at + 11 : at + 15] = b"evil"
        with pytest.raises(CorruptBundleError, match="header hash mismatch"):
            bundles().list(io.BytesIO(bytes(data)).read)

    def test_a_file_of_another_kind(self, tmp_path: Path) -> None:
        for data in (b"", b"PK\x03\x04", b"# v2 git bundle\n", b"trace bundle x\n" + bytes(80)):
            assert "not a bundle" in refused(tmp_path, data)
        with pytest.raises(UnreadableInputError):
            bundles().list(str(tmp_path / "nothing"))
        with pytest.raises(UnreadableInputError):
            bundles().list(str(tmp_path))


class TestDeceit:
    def test_a_newer_version_is_no_damage(self, tmp_path: Path) -> None:
        for line in (b"trace bundle 2\n", b"trace bundle 10\n"):
            assert "version" in refused(tmp_path, head_only(b"", line), UnsupportedFormatError)
        data = made({}, [], requires=("encryption",))
        assert "encryption" in refused(tmp_path, data, UnsupportedFormatError)

    def test_header(self, tmp_path: Path) -> None:
        good = {"objects": 0, "prerequisites": [], "refs": [], "requires": []}
        tip = bytes(32)
        wrong: list[dict[str, object]] = [
            {"objects": -1},
            {"objects": True},
            {"objects": "0"},
            {"prerequisites": [b"x"]},
            {"prerequisites": 5},
            {"refs": [["refs/heads/main"]]},
            {"refs": [["refs/heads/main", []]]},
            {"refs": [["refs/heads/main", [tip, tip]]]},
            {"refs": [["refs/heads/main", [bytes([n]) * 32 for n in range(65)]]]},
            {"refs": [["refs/heads/../../x", [tip]]]},
            {"refs": [["refs/heads/con", [tip]]]},
            {"refs": [[b"refs/heads/main", [tip]]]},
            {"refs": [["refs/heads/b", [tip]], ["refs/heads/a", [tip]]]},
            {"refs": [["refs/heads/a", [tip]], ["refs/heads/a", [tip]]]},
            {"refs": {"refs/heads/a": [tip]}},
            {"head": "refs/heads/none"},
            {"head": 7},
            {"requires": [1]},
        ]
        for change in wrong:
            fields = encode({**good, **change})
            assert "header" in refused(tmp_path, head_only(fields)), change
        for missing in good:
            fields = encode({name: value for name, value in good.items() if name != missing})
            refused(tmp_path, head_only(fields))
        refused(tmp_path, head_only(b""))
        refused(tmp_path, head_only(b"\x80\x80"))
        refused(tmp_path, head_only(b"\x93\x01\x02\x03"))
        refused(tmp_path, head_only(b"\x91" * 100 + b"\x90"))
        refused(tmp_path, head_only(b"\xde\x00\x04" + encode(good)[1:]))  # not the shortest form
        long = b"trace bundle 1\n" + struct.pack("<I", MAXIMUM_HEADER_BYTES + 1)
        assert "too large" in refused(tmp_path, long)

    def test_unknown_fields_are_passed_over(self, tmp_path: Path) -> None:
        fields = {"objects": 0, "prerequisites": [], "refs": [], "requires": [], "zebra": 1}
        reader = BundleReader(io.BytesIO(head_only(encode(fields))).read)
        assert list(reader.packs()) == []

    def test_what_is_missing(self, tmp_path: Path) -> None:
        blob = encode_blob(b"said")
        lonely = Commit([ABSENT], "ada", 1, []).encode()
        tip = hash_object(lonely)
        assert "lacks" in refused(tmp_path, made({MAIN: [tip]}, [lonely]))
        assert "lacks" in refused(tmp_path, made({MAIN: [ABSENT]}, [blob]))
        assert "has 1 objects" in refused(tmp_path, made({}, [blob], count=2))
        assert "has 1 objects" in refused(tmp_path, made({}, [blob], count=0))
        needing = made({MAIN: [tip]}, [lonely], prerequisites=(ABSENT,))
        assert "a commit that is missing here" in refused(tmp_path, needing, ObjectNotFoundError)
        with Store.open(str(tmp_path / ".trace")) as store:
            here = store.refs.read(MAIN)
        assert here is not None
        other = made({MAIN: [tip]}, [lonely], prerequisites=(here,))
        assert "missing here" in refused(tmp_path, other, ObjectNotFoundError)
        # Without a repository it cannot be detected.
        bundles().verify(io.BytesIO(other).read, alone=True)

    def test_a_branch_is_a_commit(self, tmp_path: Path) -> None:
        blob = encode_blob(b"said")
        oid = hash_object(blob)
        assert "not a commit" in refused(tmp_path, made({"refs/heads/x": [oid]}, [blob]))
        with Store.open(str(tmp_path / ".trace")) as store:
            store.objects.write(blob)
        data = made({"refs/heads/x": [oid]}, [], prerequisites=(oid,))
        assert "not a commit" in refused(tmp_path, data)

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"\xc0",
            b"\x92\xa4blob\xc5\x00\x04said",
            encode(["commit", {"author": "x"}]),
            encode(["tag", {}]),
            b"\x92\xa4list\x82\xa1b\x01\xa1a\x02",
            b"\x91" * 70 + b"\xa1x",
        ],
    )
    def test_what_is_no_object(self, tmp_path: Path, data: bytes) -> None:
        assert hash_object(data).hex() in refused(tmp_path, made({}, [encode_blob(b"x"), data]))

    def test_packs(self, tmp_path: Path) -> None:
        bomb = HEADER.pack(MAGIC, VERSION, 1, 1, 0) + FRAME.pack(10, 1 << 31, 0, 0) + bytes(10)
        bomb += FRAME.pack(0, 0, 0, 0) + TRAILER.pack(1, 1, bytes(32))[:8]
        endless = HEADER.pack(MAGIC, VERSION, 1, 1, 0) + FRAME.pack(1 << 31, 1, 0, 0) + bytes(1000)
        for pack in (
            bomb + digest(bomb),
            bomb + bytes(32),
            endless,
            HEADER.pack(MAGIC, 9, 1, 1, 0) + bytes(100),
            b"TRPK",
            b"JUNK" + bytes(100),
        ):
            refused(tmp_path, made({}, [], packs=[pack]))

    def test_a_bundle_that_counts_its_packs_wrong(self, tmp_path: Path) -> None:
        data = made({}, [encode_blob(b"x")])[:-40]
        data += END + struct.pack("<I", 2)
        assert "1 packs, expected 2" in refused(tmp_path, data + digest(data))


class KilledError(Exception):
    """Stands for a process that ends."""


@pytest.mark.parametrize("ends", [False, True], ids=["refusing", "killed"])
def test_an_import_that_stops_anywhere_leaves_a_sound_store(tmp_path: Path, ends: bool) -> None:
    """Whatever the disk refuses, and wherever the process ends: refs only where all they lead to is."""
    here = small_store(tmp_path / "here")
    base = bundle(here.store)
    growing = Growing(store_in(tmp_path / "first"), 5, "bob")
    bundles(growing.store).import_(io.BytesIO(base).read)
    growing.move(MAIN, growing.commit([growing.store.refs.read(MAIN)]))  # type: ignore[list-item]
    growing.store.close()
    here.move(MAIN, here.commit([here.store.refs.read(MAIN)]))  # type: ignore[list-item]
    here.move("refs/heads/new", here.commit([]))
    data = bundle(here.store, everything=True)
    at = 0
    while True:
        at += 1
        folder = tmp_path / str(at)
        shutil.copytree(tmp_path / "first", folder)
        if not _import_until(folder, data, at, ends=ends):
            break
        with Store.open(str(folder / ".trace")) as store:
            assert errors(store) == []
            bundles(store).import_(io.BytesIO(data).read)
            assert len(store.refs.tips(MAIN)) == 2
            assert store.refs.read("refs/heads/new") == here.store.refs.read("refs/heads/new")
            assert errors(store) == []
    assert at > 15


def _import_until(folder: Path, data: bytes, at: int, *, ends: bool) -> bool:
    """Import with a disk that fails at the n-th change; tell whether it did."""

    def fail(call: str) -> None:
        raise KilledError(call) if ends else StorageError("the test's disk refuses", errno=5)

    disk: Disk = FailingDisk(at, fail)
    store = Store.open(str(folder / ".trace"), disk=disk)
    try:
        bundles(store).import_(io.BytesIO(data).read)
    except (KilledError, StorageError):
        return True
    finally:
        with contextlib.suppress(KilledError, StorageError):
            store.close()
    return False

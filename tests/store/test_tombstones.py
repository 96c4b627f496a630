"""Tombstones: purged objects are reported, and neither read nor stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.support.histories import new_store, reopen
from trace_store import Repo
from trace_store.base.oid import ObjectId, hash_object
from trace_store.contracts import Transaction
from trace_store.errors import CorruptObjectError, InvalidInputError, PurgedError
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob
from trace_store.odb.ingest import PackReceiver
from trace_store.odb.tombstones import (
    MAXIMUM_TEXT_CHARACTERS,
    Tombstone,
    Tombstones,
    check_reason,
    file_name,
    oid_of,
)
from trace_store.store.store import Store
from trace_store.testing.disks import RecordingDisk

DATA = encode_blob(b"the secret of the house")
OID = hash_object(DATA)


def objects_of(store: Store):  # type: ignore[no-untyped-def]
    store.objects.refresh()
    return store.objects


def bury(store: Store, oid: ObjectId = OID, why: str = "leaked", time: int = 1000) -> None:
    objects = objects_of(store)
    objects.tombstones.add([Tombstone(oid, time, "Ada", why)])
    objects.refresh()


def test_what_was_purged_is_told_and_not_given_even_where_the_bytes_are(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    objects = objects_of(store)
    objects.write(DATA)
    bury(store)
    with pytest.raises(PurgedError, match="was purged on 1970-01-01: leaked") as raised:
        objects.read(OID)
    assert raised.value.placeholder == "[purged 1970-01-01: leaked]"
    assert raised.value.by == "Ada"
    assert not objects.contains(OID)
    assert OID not in set(objects.iterate())
    assert objects.resolve_prefix(OID.hex()[:8]) == [OID]
    assert objects.reappeared() == [OID]
    with pytest.raises(PurgedError):
        list(objects.read_many([OID]))


def test_another_handle_learns_of_a_purge_when_the_journal_was_renewed(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    other = reopen(tmp_path)
    other.transact(
        lambda _: Transaction([(hash_object(b"\x92\xa4blob\xc4\x01a"), b"\x92\xa4blob\xc4\x01a")])
    )
    bury(store)
    store.alone(lambda: None)
    with pytest.raises(PurgedError):
        other.transact(lambda _: Transaction([(OID, DATA)]))
    assert other.transact(lambda _: Transaction([])) is not None
    store.close()
    other.close()


def test_nobody_takes_the_bytes_in_again(tmp_path: Path) -> None:
    first, second = Store.init(str(tmp_path / "a")), Store.init(str(tmp_path / "b"))
    first.transact(lambda _: Transaction([(OID, DATA)]))
    (name,) = seal(first).packs
    data = Path(first.layout.pack_file(name)).read_bytes()
    bury(second)
    with pytest.raises(PurgedError):
        objects_of(second).write(DATA)
    with pytest.raises(PurgedError):
        PackReceiver(second.disk, second.layout, objects_of(second)).add(data, "a pack")
    assert not list(Path(second.layout.objects_dir).rglob("*.pack"))
    assert objects_of(second).reappeared() == []
    first.close()
    second.close()


def test_seal_and_pack_leave_out_what_was_purged(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    kept = encode_blob(b"something else")
    store.transact(lambda _: Transaction([(OID, DATA), (hash_object(kept), kept)]))
    bury(store)
    seal(store)
    assert objects_of(store).packs.read(OID) is None
    assert objects_of(store).read(hash_object(kept)) == kept
    pack(store)
    assert objects_of(store).packs.read(OID) is None
    store.close()


def test_a_compiled_context_shows_a_placeholder_of_the_same_type(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        repo.append("user", "what is it?")
        repo.append("user", "the secret of the house")
        before = repo.compile().token_count
        bury(repo.store, why="told by mistake")
        context = repo.compile()
        text = "[purged 1970-01-01: told by mistake]"
        assert [message.text for message in context] == ["what is it?", text]
        assert context.to_openai()["messages"][1]["content"] == text
        assert context.token_count != before
        with Repo.init(str(tmp_path / "other")) as other:
            other.append("user", "what is it?")
            other.append("user", text)
            assert context.token_count == other.compile().token_count
        assert context.message_tokens()[1] == repo.compile().message_tokens()[1]
        assert b"".join(context.objects()).count(b"the secret") == 0


def test_fsck_tells_of_a_purge_and_of_bytes_that_came_back(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        repo.append("user", "the secret of the house")
        bury(repo.store)
        (found,) = fsck(repo.store)
        assert (found.code, found.severity) == ("purged-object-present", "warning")
        repo.seal()
        (found,) = fsck(repo.store)
        assert (found.code, found.what) == ("object-purged", str(OID))
        assert "leaked" in found.detail


def test_files_of_two_people_stand_beside_each_other_and_the_earliest_is_told(
    tmp_path: Path,
) -> None:
    store = new_store(tmp_path)
    later = Tombstone(OID, 2000, "Bob", "later")
    bury(store, why="first")
    folder = Path(store.layout.tombstones_dir)
    (folder / file_name(OID, later.encode())).write_bytes(later.encode())
    found = Tombstones(store.disk, store.layout).find(OID)
    assert len(list(folder.iterdir())) == 2
    assert found is not None
    assert (found.why, found.by, found.time) == ("first", "Ada", 1000)


HOSTILE = {
    "empty": b"",
    "no msgpack": b"\xc1",
    "another kind": b"\x92\xa4blob\xc4\x00",
    "control characters": Tombstone(OID, 1, "\x1b[2J", "").encode(),
    "a line end": Tombstone(OID, 1, "", "a\nb").encode(),
    "too long a reason": Tombstone(OID, 1, "", "x" * (MAXIMUM_TEXT_CHARACTERS + 1)).encode(),
    "too large": Tombstone(OID, 1, "x" * 9000, "").encode(),
    "no time": Tombstone(OID, 0, "", "").encode(),
    "a time beyond all bounds": Tombstone(OID, 1 << 60, "", "").encode(),
    "another object": Tombstone(hash_object(b"x"), 1, "", "").encode(),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_tombstone_says_nothing_and_counts_all_the_same(
    tmp_path: Path, data: bytes
) -> None:
    store = new_store(tmp_path)
    folder = Path(store.layout.tombstones_dir)
    folder.mkdir()
    name = file_name(OID, data)
    (folder / name).write_bytes(data)
    with pytest.raises(PurgedError, match=f"^object {OID} was purged$"):
        objects_of(store).read(OID)
    assert [f.code for f in fsck(store)] == ["object-purged", "tombstone-unreadable"][::-1]
    with pytest.raises(CorruptObjectError):
        objects_of(store).tombstones.add_files([(name, data)])
    store.close()


def test_files_of_other_names_are_passed_over(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    folder = Path(store.layout.tombstones_dir)
    folder.mkdir()
    for name in ("x", OID.hex(), f"{OID.hex()}-zz", f"{OID.hex().upper()}-{'0' * 16}", "a" * 200):
        (folder / name).write_bytes(b"")
        assert oid_of(name) is None
    assert objects_of(store).purged == frozenset()
    store.close()


@pytest.mark.parametrize("reason", ["x" * 600, "two\nlines", "\x1b[31m", "\ud800"])
def test_a_reason_is_a_line(reason: str) -> None:
    with pytest.raises(InvalidInputError):
        check_reason(reason)


def test_without_tombstones_an_append_looks_for_none(tmp_path: Path) -> None:
    class Looking(RecordingDisk):
        looks = 0

        def exists(self, path: str) -> bool:
            self.looks += path.endswith("tombstones")
            return super().exists(path)

    Store.init(str(tmp_path)).close()
    disk = Looking()
    with Repo(Store.open(str(tmp_path / ".trace"), disk=disk), author="Ada") as repo:
        for number in range(3):
            repo.append("user", f"message {number}")
        first = disk.looks
        for number in range(20):
            repo.append("user", f"another {number}")
        assert disk.looks == first <= 3

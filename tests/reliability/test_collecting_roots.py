"""What keeps objects: every place that names some is a root, and one that cannot be read is reported."""

from __future__ import annotations

import json
import os
import time
from base64 import b64encode
from pathlib import Path

import pytest

from tests.store.support.histories import MAIN, OTHER, append, move, new_store, put
from trace_store import FixedClock, Repo
from trace_store.base.oid import ObjectId, hash_object
from trace_store.contracts import RefEdit, Transaction
from trace_store.errors import CorruptObjectError, RefChangedError
from trace_store.maintenance.reachability import ReachableSet, find_roots, ids_within
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob
from trace_store.store.store import Store

GONE = ObjectId(b"\x07" * 32)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return new_store(tmp_path)


def obstacles(store: Store) -> dict[str, str]:
    return {each.what: each.reason for each in find_roots(store).obstacles}


def test_refs_are_roots_wherever_they_stand(store: Store) -> None:
    """Sealed ones, moved ones that only the journal knows, tags, trash, and each tip of a diverged branch."""
    first = append(store, "first")
    move(store, "refs/trash/old", first)
    seal(store)
    second = append(store, "second")
    other = append(store, "apart", OTHER, parent=None)
    move(store, "refs/tags/v1", other)
    third = append(store, "pulled", "refs/heads/pulled", parent=first)
    seal(store)
    folder = Path(store.layout.ref_dir(MAIN))
    (folder / str(third)).touch()  # as git does when it merges two sides
    newest = append(store, "not sealed")
    named = find_roots(store).named
    assert (named[first], named[newest]) == ("refs/trash/old", "journal/3")
    assert {first, second, other, third, newest} <= named.keys()
    assert not find_roots(store).obstacles


def test_a_detached_head_is_a_root(store: Store) -> None:
    lone = append(store, "lone")
    store.refs.set_head(lone)
    move(store, MAIN, None)
    seal(store)
    move(store, "refs/heads/x", append(store, "x", OTHER, parent=None))
    assert find_roots(store).named[lone] == "HEAD"


def test_what_a_frame_without_effect_holds_is_a_root(store: Store) -> None:
    append(store, "first")
    data = encode_blob(b"its ref was moved by another")
    with pytest.raises(RefChangedError):
        store.transact(
            lambda refs: Transaction([(hash_object(data), data)], [RefEdit(MAIN, GONE, GONE)], "")
        )
    assert put(store, encode_blob(b"of no ref at all")) in find_roots(store).named


def test_reflogs_are_told_apart(store: Store) -> None:
    first, second = append(store, "first"), append(store, "second")
    move(store, MAIN, first)
    seal(store)
    seal(store)
    assert {first, second} <= find_roots(store).logged().keys()


@pytest.mark.parametrize("form", ["hex", "base64"])
def test_what_importers_remember_is_a_root(store: Store, form: str) -> None:
    lone = append(store, "lone", OTHER)
    move(store, OTHER, None)
    seal(store)
    text = str(lone) if form == "hex" else b64encode(bytes(32) + lone + bytes(lone)).decode()
    folder = Path(store.layout.local_dir) / "imports"
    folder.mkdir()
    (folder / "one").write_text("checksum\n" + json.dumps({"oids": [2, text], "ref": MAIN}))
    seal(store)
    assert find_roots(store).named[lone] == "local/imports/one"


def test_ids_are_found_in_text_only_where_they_are_whole() -> None:
    oid = ObjectId(os.urandom(32))
    assert list(ids_within(f'"{oid}"'.encode())) == [oid]
    assert oid not in list(ids_within(f'"0{oid}"'.encode()))
    assert not list(ids_within(b"word " * 100 + bytes(range(256))))


@pytest.mark.parametrize(
    ("damage", "what", "reason"),
    [
        ("refs/heads/main/notes.txt", "refs/heads/main/notes.txt", "unreadable"),
        (f"refs/heads/lost/{GONE}", "refs/heads/lost", "incomplete"),
        ("HEAD", "HEAD", "unreadable"),
        ("logs/refs/heads/main.log", "logs/refs/heads/main.log", "unreadable"),
        ("logs/stray", "logs/stray", "unreadable"),
    ],
)
def test_what_cannot_be_read_is_named(store: Store, damage: str, what: str, reason: str) -> None:
    append(store, "first")
    seal(store)
    path = Path(store.layout.root, damage)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"" if damage.endswith(str(GONE)) else b"<<<<<<< ours\n")
    assert obstacles(store) == {what: reason}


def test_a_reflog_that_leads_to_nothing_is_named(store: Store) -> None:
    append(store, "first")
    seal(store)
    seal(store)
    log = Path(store.layout.log_file(MAIN))
    log.write_text(log.read_text() + f"- {GONE} 1 someone\tpruned elsewhere\n")
    assert obstacles(store) == {"logs/refs/heads/main.log": "incomplete"}


def test_a_line_that_an_interrupted_seal_left_is_no_damage(store: Store) -> None:
    append(store, "first")
    seal(store)
    log = Path(store.layout.log_file(MAIN))
    log.write_bytes(log.read_bytes() + b"- 12ab\0\n" + log.read_bytes() + b"half a li")
    assert not find_roots(store).obstacles


def test_marking_follows_every_link_and_notes_what_is_absent(store: Store) -> None:
    tips = [append(store, f"message {number}") for number in range(5)]
    marking = ReachableSet(store.objects.read)
    marking.add([tips[2]])
    assert len(marking.reached) == 6
    marking.add([tips[4], GONE])
    assert len(marking.reached) == 11
    assert marking.absent == {GONE: None}
    assert not marking.broken()


def test_marking_tells_a_history_that_is_cut_off(store: Store, tmp_path: Path) -> None:
    orphan = append(store, "its parent is elsewhere", parent=GONE)
    marking = ReachableSet(store.objects.read)
    marking.add([orphan])
    assert marking.broken() == {GONE: orphan}


def test_marking_stops_at_damage(store: Store) -> None:
    data = encode_blob(b"x" * 100)
    oid = store.objects.write(data)
    Path(store.layout.loose_file(oid.hex())).chmod(0o644)
    Path(store.layout.loose_file(oid.hex())).write_bytes(b"\xb0" + data[:-1] + b"y")
    with pytest.raises(CorruptObjectError):
        ReachableSet(store.objects.read).add([oid])


def test_prune_keeps_what_git_takes_out_of_sight_for_a_while(tmp_path: Path) -> None:
    """Such as `git checkout` of a commit from before the branch: its ref files go, and come back."""
    with Repo.init(tmp_path, author="Ada") as repo:
        repo.append("user", "first")
        repo.branches.switch("side", create=True)
        repo.append("user", "only on side")
        repo.branches.switch("main")
        repo.seal()
    folder = tmp_path / ".trace/refs/heads/side"
    aside = tmp_path / "aside"
    folder.rename(aside)
    later = FixedClock(int(time.time() * 1000) + 86_400_000)
    with Repo.open(tmp_path, clock=later) as repo:
        assert {each.name for each in repo.branches.list()} == {"main"}
        for _ in range(2):
            repo.maintenance.gc(grace_days=0, reflog_days=0)
            repo.maintenance.prune(grace_days=0)
    if folder.exists():
        folder.rmdir()
    aside.rename(folder)
    with Repo.open(tmp_path) as repo:
        assert [message.text for message in repo.compile("side")] == ["first", "only on side"]

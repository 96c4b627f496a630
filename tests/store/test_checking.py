"""fsck: reports damage, raises nothing, changes nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.store.support.histories import (
    MAIN,
    append,
    codes,
    errors,
    journal_path,
    line,
    move,
    new_store,
    pack_paths,
    put,
    reopen,
)
from tests.support.files import flip
from trace_store import Message, Repo
from trace_store.base.oid import hash_object
from trace_store.context import snapshots
from trace_store.context import snapshots as kept_folds
from trace_store.maintenance.fsck import check_folds, check_indexes, fsck
from trace_store.maintenance.fsck_objects import ERROR, WARNING, Finding, ObjectChecks
from trace_store.maintenance.repack import pack
from trace_store.maintenance.repair_store import StoreRepair
from trace_store.maintenance.seal import seal
from trace_store.objects import codec
from trace_store.objects.codec import encode, encode_blob
from trace_store.objects.commit import Commit
from trace_store.store.store import Store


def test_a_sound_repository(tmp_path: Path) -> None:
    for store in (Store.memory(), new_store(tmp_path)):
        assert fsck(store) == []
        for number in range(3):
            append(store, str(number))
        store.objects.write(encode_blob(b"loose"))
        assert fsck(store) == []
        seal(store)
        append(store, "later")
        assert fsck(store) == []


def test_a_missing_object_is_an_error_where_a_ref_leads_there(tmp_path: Path) -> None:
    for store in (Store.memory(), new_store(tmp_path)):
        missing = hash_object(b"nowhere")
        commit = Commit([], "me", 1, [], meta={"content": missing}).encode()
        put(store, commit)
        (found,) = fsck(store)
        assert (found.code, found.what) == ("unreachable-object-missing", str(missing))
        put(store, commit, MAIN)
        (found,) = fsck(store)
        assert (found.code, found.severity, found.what) == ("object-missing", ERROR, str(missing))


def test_a_damaged_loose_file_is_an_error_where_something_leads_there(tmp_path: Path) -> None:
    """Stored without a sync, it may be lost until a ref reaches it."""

    def found(code: str, severity: str) -> bool:
        (finding,) = [f for f in fsck(store) if f.code.endswith(("-damaged", "-cut-off"))]
        return (finding.code, finding.severity, finding.what) == (code, severity, str(content))

    store = new_store(tmp_path)
    append(store, "kept")
    content = store.objects.write(encode_blob(b"loose, and named by a loose commit"))
    commit = store.objects.write(Commit([], "me", 1, [], meta={"content": content}).encode())
    assert fsck(store) == []
    Path(store.layout.loose_file(content.hex())).write_bytes(b"\0")
    assert found("unreachable-object-cut-off", WARNING)
    move(store, "refs/heads/other", commit)
    assert found("object-damaged", ERROR)
    seal(store)
    move(store, "refs/heads/other", None)
    seal(store)
    assert found("object-damaged", ERROR), "its reflog leads there"
    for log in (tmp_path / ".trace" / "logs").rglob("other.log"):
        log.unlink()
    assert found("unreachable-object-cut-off", WARNING)
    (tmp_path / ".trace" / "logs" / "stray").write_bytes(b"nobody knows what this leads to")
    assert found("object-damaged", ERROR)
    append(store, "loose, and named by a loose commit")
    assert found("spare-object-cut-off", WARNING)
    Path(store.layout.loose_file(content.hex())).write_bytes(b"bytes of something else")
    assert found("object-damaged", ERROR), "that is not what a power cut leaves"


def test_links_of_unknown_kinds_and_fields_are_followed(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    missing = hash_object(b"nowhere")
    future = put(store, encode(["plan", {"steps": [{"deep": [missing]}]}]))
    fields = {"author": "me", "ops": [], "parents": [], "time": 1, "zeta": [future]}
    put(store, encode(["commit", fields]), MAIN)
    assert codes(store) == {"object-unknown-kind", "object-missing"}


def test_objects_that_are_not_canonical_or_not_readable(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    put(store, b"\x92\xa4blob\xc5\x00\x01x")  # a length that has a shorter spelling
    put(store, encode(["commit", {"author": "me"}]))
    put(store, b"")
    put(store, b"\x93\x01\x02\x03")
    assert codes(store) == {"object-not-canonical", "object-unreadable"}


def test_a_branch_must_name_a_commit(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    put(store, encode_blob(b"no commit"), MAIN)
    assert codes(store) == {"ref-not-commit"}


def test_changed_bytes_in_a_journal_are_named(tmp_path: Path) -> None:
    from trace_store.journal.frames import Frame, encode_transaction

    store = new_store(tmp_path)
    append(store, "one")
    frame = Frame.of_transaction([], "", 1, "", "")
    wrong = encode_transaction(frame, {hash_object(b"right"): b"wrong"})
    with journal_path(tmp_path).open("ab") as file:
        file.write(wrong)
    found = fsck(store)
    assert [(f.code, f.what) for f in found] == [("object-damaged", str(hash_object(b"right")))]


def test_every_file_is_deleted_in_turn(tmp_path: Path) -> None:
    """For any missing file, only the library's errors are raised, and fsck reports it."""
    store = new_store(tmp_path)
    append(store, "one")
    append(store, "side", "refs/heads/side")
    seal(store)
    append(store, "two")
    store.objects.write(encode_blob(b"loose"))
    store.refs.set_head(MAIN)
    store.close()
    root = tmp_path / ".trace"
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        content = path.read_bytes()
        path.unlink()
        if path.name != "config":
            with reopen(tmp_path) as again:
                found = codes(again)
            if path.suffix == ".pack" and path.is_relative_to(root / "objects"):
                assert "ref-incomplete" in found
            elif path.name in (".gitignore", ".gitattributes"):
                assert found == {"root-file-missing"}
            elif path.is_relative_to(root / "refs/heads/side"):
                assert "ref-file-missing" in found
            else:
                assert not [f for f in found if "damaged" in f or "missing" in f], path
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content)
    with reopen(tmp_path) as again:
        assert fsck(again) == []


def test_a_damaged_object_is_named(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    tip = append(store, "one " * 100)
    seal(store)
    store.close()
    (path,) = pack_paths(tmp_path)
    flip(path, 60)
    with reopen(tmp_path) as again:
        found = {(f.code, f.what) for f in errors(again)}
    assert ("object-damaged", str(tip)) in found


def test_checking_changes_nothing(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    append(store, "one")
    seal(store)
    append(store, "two")
    next(iter((tmp_path / ".trace/objects/pack").glob("*.idx"))).write_bytes(b"junk")
    with journal_path(tmp_path).open("ab") as file:
        file.write(b"tail")
    store.close()

    def picture() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in (tmp_path / ".trace").rglob("*") if p.is_file()}

    before = picture()
    with reopen(tmp_path) as again:
        assert {"pack-index-damaged", "journal-tail"} <= codes(again)
    changed = {name for name, content in picture().items() if before.get(name) != content}
    assert {Path(name).suffix for name in changed} <= {".idx"}, (
        "only derived files may be made again"
    )


def test_further_checks_are_asked(tmp_path: Path) -> None:
    mine = Finding("index-stale", "info", "index/main", "behind by one")
    assert fsck(new_store(tmp_path), also=[lambda *_: [mine]]) == [mine]


def test_mode_and_time_of_files_are_harmless(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    append(store, "one")
    seal(store)
    tip = store.refs.read(MAIN)
    store.close()
    for path in (tmp_path / ".trace").rglob("*"):
        os.utime(path, (5, 5))
        if path.is_file():
            path.chmod(0o644)
    with reopen(tmp_path) as again:
        assert line(again, tip) == ["one"]
        assert fsck(again) == []


def test_kept_folds_are_compared_with_their_histories(tmp_path: Path) -> None:
    with Repo.init(tmp_path, durability="fast") as repo:
        store, tips = repo.store, []
        for _ in range(2):
            repo.commit([Message("user", str(number)) for number in range(snapshots.WORTH)])
            tips.append(repo.resolve("HEAD"))
            snapshots.fold_of(store, tips[-1])
        first, last = sorted(Path(store.layout.folds_dir).iterdir())
        assert list(check_folds(store)) == []
        other = snapshots.fold_of(store, tips[0])
        last.write_bytes(kept_folds.pack(tips[1], other))
        first.write_bytes(b"damaged")  # unused
        (found,) = check_folds(store)
        assert (found.code, found.what) == ("kept-fold-differs", f"cache/folds/{last.name}")
        assert [each.what for each in StoreRepair(store).run().mended] == [found.what]
        assert list(check_folds(store)) == []
        assert len(repo.compile()) == 2 * snapshots.WORTH


def test_a_folder_of_kept_folds_that_is_none_is_passed_over(tmp_path: Path) -> None:
    with Repo.init(tmp_path, durability="fast") as repo:
        repo.append("user", "said")
        folder = Path(repo.store.layout.folds_dir)
        folder.parent.mkdir(exist_ok=True)
        folder.write_bytes(b"no folder")
        assert list(check_folds(repo.store)) == []


def test_a_check_decodes_a_commit_twice_for_its_form_and_for_its_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Repo.init(tmp_path, durability="fast") as repo:
        for number in range(50):
            repo.append("user", str(number))
        pack(repo.store)
    decoded: list[bytes] = []
    unpack = codec.unpack_unchecked

    def noted(data: bytes) -> Any:
        decoded.append(data)
        return unpack(data)

    monkeypatch.setattr(codec, "unpack_unchecked", noted)
    with reopen(tmp_path) as store:
        assert fsck(store) == []
        assert len(decoded) <= 50 + 5
        decoded.clear()
        assert list(check_indexes(store, ObjectChecks(store.objects), {})) == []
        assert len(decoded) <= 50 + 5

"""gc and prune: deleted and kept objects, and errors that stop them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.reliability.support.collecting import forget_logs
from tests.store.support.histories import (
    MAIN,
    OTHER,
    append,
    errors,
    line,
    main_line,
    move,
    new_store,
    pack_paths,
    reopen,
)
from tests.support.git import git
from tests.support.subjects import upkeep
from trace_store.base.oid import ObjectId
from trace_store.errors import ObjectNotFoundError, StateError
from trace_store.history.log import log
from trace_store.maintenance.fsck import check_table
from trace_store.maintenance.purge import plan_purge, purge
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob, links
from trace_store.odb.database import ObjectDatabase
from trace_store.store.revision import resolve
from trace_store.store.store import Store

DAY = 24 * 60 * 60
GONE = ObjectId(b"\x07" * 32)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return new_store(tmp_path)


def abandoned(store: Store) -> ObjectId:
    """Return a sealed, unreachable commit."""
    lone = append(store, "abandoned", OTHER, parent=None)
    seal(store)
    move(store, OTHER, None)
    seal(store)
    seal(store)
    forget_logs(store)
    return lone


def age(folder: Path, days: float) -> None:
    """Let everything below `objects/` have been written some days ago."""
    for path in folder.rglob("*"):
        if path.is_file():
            then = path.stat().st_mtime - days * DAY
            os.utime(path, (then, then))


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def in_store(store: Store, oid: ObjectId) -> bool:
    assert isinstance(store.objects, ObjectDatabase)
    store.objects.refresh()
    return store.objects.contains(oid)


def test_c13_every_name_resolves_after_collecting_with_age_0(store: Store) -> None:
    """Trap C13: HEAD and its reflog, other branches, tags, checkpoints, trash, and a ref of a namespace of its own."""
    first = append(store, "first")
    names = {}
    for ref in (
        "heads/other",
        "tags/v1",
        "checkpoints/before",
        "trash/heads/old",
        "transcripts/x/1",
    ):
        names[f"refs/{ref}"] = append(store, ref, f"refs/{ref}", parent=first)
    second = append(store, "second")
    seal(store)
    move(store, MAIN, first)
    seal(store)
    move(store, "refs/orig/HEAD", second)
    unsealed = append(store, "only in the journal", OTHER)
    detached = append(store, "detached", "refs/heads/short", parent=first)
    store.refs.set_head(detached)
    move(store, "refs/heads/short", None)
    for collect in (upkeep(store).gc, upkeep(store).prune, upkeep(store).gc):
        collect(grace_days=0)
    names |= {MAIN: first, OTHER: unsealed, "refs/orig/HEAD": second, "HEAD": detached}
    names[f"{MAIN}@{{1}}"] = second
    for name, oid in names.items():
        assert resolve(store, name) == oid
        assert line(store, oid)[0] == "first"
        assert in_store(store, oid)
    assert not errors(store)


def test_prune_drops_what_is_in_packs_and_gc_does_not(store: Store, tmp_path: Path) -> None:
    append(store, "kept")
    lone = abandoned(store)
    report = upkeep(store).gc(grace_days=0)
    assert (report.taken, report.sealed) == (0, 2)
    assert in_store(store, lone)
    report = upkeep(store).prune(grace_days=0)
    assert report.taken == 2
    assert not in_store(store, lone)
    assert main_line(store) == ["kept"]
    assert not errors(reopen(tmp_path))


def test_what_was_pruned_can_be_read_until_it_goes_for_good(store: Store, tmp_path: Path) -> None:
    append(store, "kept")
    lone = abandoned(store)
    upkeep(store).prune(grace_days=0)
    again = reopen(tmp_path)
    assert line(again, resolve(again, str(lone))) == ["abandoned"]
    assert upkeep(again).gc(grace_days=1).emptied == 0
    assert upkeep(again).gc(grace_days=0).emptied > 0
    with pytest.raises(ObjectNotFoundError):
        again.objects.read(lone)
    assert not list(Path(store.layout.quarantine_dir).glob("[!.]*"))


def test_a_ref_to_what_was_pruned_brings_it_back(store: Store, tmp_path: Path) -> None:
    append(store, "kept")
    lone = abandoned(store)
    upkeep(store).prune(grace_days=0)
    move(store, "refs/heads/rescued", lone)
    seal(store)
    upkeep(store).gc(grace_days=0)
    again = reopen(tmp_path)
    assert line(again, again.refs.read("refs/heads/rescued")) == ["abandoned"]
    assert in_store(again, lone)
    assert not errors(again)


def test_what_is_young_stays_with_all_it_leads_to(store: Store, tmp_path: Path) -> None:
    old = abandoned(store)
    age(Path(store.layout.objects_dir), 20)
    young = append(store, "younger", OTHER, parent=old)
    move(store, OTHER, None)
    seal(store)
    forget_logs(store)
    assert upkeep(store).prune().taken == 0
    assert line(store, young) == ["abandoned", "younger"]
    age(Path(store.layout.objects_dir), 20)
    assert upkeep(store).prune().taken == 4


def test_age_counts_from_when_it_was_noticed_though_packs_are_written_anew(store: Store) -> None:
    append(store, "kept")
    lone = abandoned(store)
    age(Path(store.layout.objects_dir), 20)
    upkeep(store).gc()
    pack(store, level=3)  # writes a young pack
    assert upkeep(store).prune().taken == 2
    assert not in_store(store, lone)


def test_loose_objects_go_by_their_own_age_and_young_ones_stay_loose(store: Store) -> None:
    append(store, "kept")
    old, young = (store.objects.write(encode_blob(text)) for text in (b"old", b"young"))
    path = Path(store.layout.loose_file(old.hex()))
    os.utime(path, (path.stat().st_mtime - 20 * DAY,) * 2)
    report = upkeep(store).gc()
    assert (report.taken, report.young, report.sealed) == (1, 1, 0)
    assert not in_store(store, old)
    assert Path(store.layout.loose_file(young.hex())).exists()


def test_writing_an_object_again_makes_it_young(store: Store) -> None:
    append(store, "kept")
    oid = store.objects.write(encode_blob(b"again"))
    path = Path(store.layout.loose_file(oid.hex()))
    os.utime(path, (path.stat().st_mtime - 20 * DAY,) * 2)
    store.objects.write(encode_blob(b"again"))
    assert upkeep(store).gc().taken == 0


def test_reachable_loose_objects_are_packed(store: Store) -> None:
    oid = store.objects.write(encode_blob(b"on a ref"))
    move(store, "refs/tags/blob", oid)
    upkeep(store).gc()
    assert not Path(store.layout.loose_file(oid.hex())).exists()
    assert store.objects.read(oid)


def test_a_dry_run_changes_nothing_and_says_what_a_run_would_do(
    store: Store, tmp_path: Path
) -> None:
    append(store, "kept")
    abandoned(store)
    store.objects.write(encode_blob(b"loose"))
    append(store, "not sealed")
    before = everything(tmp_path)
    told = [
        upkeep(store).gc(grace_days=0, dry_run=True),
        upkeep(store).prune(grace_days=0, dry_run=True),
    ]
    assert everything(tmp_path) == before
    assert [report.taken for report in told] == [1, 3]
    assert upkeep(store).gc(grace_days=0).taken == 1
    assert upkeep(store).prune(grace_days=0).taken == 2


@pytest.mark.parametrize("collect", ["gc", "prune"])
@pytest.mark.parametrize(
    ("damage", "named"),
    [
        ("refs/heads/main/notes.txt", "refs/heads/main/notes.txt"),
        (f"refs/heads/lost/{GONE}", "refs/heads/lost"),
        ("HEAD", "HEAD"),
        ("logs/refs/heads/main.log", "logs/refs/heads/main.log"),
    ],
)
def test_a_root_that_cannot_be_followed_stops_all_of_it(
    store: Store, tmp_path: Path, collect: str, damage: str, named: str
) -> None:
    append(store, "kept")
    abandoned(store)
    store.objects.write(encode_blob(b"loose"))
    path = Path(store.layout.root, damage)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"" if damage.endswith(str(GONE)) else b"<<<<<<< ours\n")
    before = everything(tmp_path)
    with pytest.raises(StateError, match=named) as refused:
        getattr(upkeep(store), collect)(grace_days=0)
    assert (refused.value.code, refused.value.what) == ("unknown-roots", named)
    assert everything(tmp_path) == before


def test_a_reflog_of_what_is_gone_stops_it_for_30_days(store: Store, tmp_path: Path) -> None:
    append(store, "kept")
    seal(store)
    seal(store)
    log = Path(store.layout.log_file(MAIN))
    now = store.clock.now()
    log.write_text(f"- {GONE} {now - 29 * DAY * 1000} someone\tof another branch of git\n")
    with pytest.raises(StateError, match=r"logs/refs/heads/main\.log"):
        upkeep(store).gc()
    log.write_text(f"- {GONE} {now - 31 * DAY * 1000} someone\tof another branch of git\n")
    assert upkeep(store).gc().entries == 1
    assert not log.read_text()


def test_a_history_that_is_cut_off_stops_it(store: Store) -> None:
    append(store, "its parent is elsewhere", parent=GONE)
    with pytest.raises(StateError, match=f"its parent {GONE}"):
        upkeep(store).prune(grace_days=0)


def test_reflogs_expire_by_age_and_by_what_leads_to_what_they_name(store: Store) -> None:
    first, second = append(store, "first"), append(store, "second")
    move(store, MAIN, first)
    seal(store)
    now = store.clock.now()
    log = Path(store.layout.log_file(MAIN))
    ages = {
        "too old": (first, 91),
        "old": (first, 89),
        "left": (second, 31),
        "lately left": (second, 29),
    }
    log.write_text(
        "".join(f"- {oid} {now - d * DAY * 1000} a\t{what}\n" for what, (oid, d) in ages.items())
    )
    assert upkeep(store).gc().entries == 2
    assert [entry.message for entry in store.refs.reflog(MAIN)][::-1] == ["old", "lately left"]
    assert upkeep(store).gc(reflog_days=0).entries > 2
    assert not store.refs.reflog(MAIN)


def test_quarantine_is_nothing_to_git(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    store = new_store(tmp_path)
    append(store, "kept")
    abandoned(store)
    git(tmp_path, "add", ".trace")
    assert upkeep(store).prune(grace_days=0).tracked == 1
    assert "quarantine" not in git(tmp_path, "status", "--porcelain", "--untracked-files=all")


def test_gc_leaves_packs_that_git_has(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    store = new_store(tmp_path)
    for text in ("one", "two"):
        append(store, text * 30000)
        seal(store)
        git(tmp_path, "add", ".trace")
    before = pack_paths(tmp_path)
    upkeep(store).gc(grace_days=0)
    assert pack_paths(tmp_path) == before


def test_a_link_in_quarantine_leads_nowhere(store: Store, tmp_path: Path) -> None:
    """Else bringing back would move objects out of another repository."""
    other = new_store(tmp_path / "other")
    oid = other.objects.write(encode_blob(b"of somebody else"))
    append(store, "kept")
    lone = abandoned(store)
    upkeep(store).prune(grace_days=0)
    folder = Path(store.layout.quarantine_dir, "1")
    folder.mkdir()
    (folder / "objects").symlink_to(Path(other.layout.objects_dir))
    move(store, "refs/heads/rescued", lone)  # restores existing objects
    assert in_store(store, lone)
    assert not in_store(store, oid)
    assert in_store(other, oid)


def test_a_commit_that_a_log_has_shown_is_not_missed_when_it_was_removed(
    store: Store, tmp_path: Path
) -> None:
    append(store, "stays")
    packed = append(store, "goes", OTHER, parent=None)
    with new_store(tmp_path / "another") as another:
        loose = append(another, "goes, too")
        for oid in (loose, *links(another.objects.read(loose))):
            store.objects.write(another.objects.read(oid))
    seal(store)
    move(store, OTHER, None)
    seal(store)
    seal(store)
    forget_logs(store)
    for collect, oid in ((upkeep(store).gc, loose), (upkeep(store).prune, packed)):
        assert [len(list(log(store, str(each)))) for each in (MAIN, oid)] == [1, 1]
        collect(grace_days=0)
        assert not in_store(store, oid)
        assert not list(check_table(store))
        assert len(list(log(store, MAIN))) == 1


def test_a_log_keeps_its_table_where_no_commit_goes(store: Store) -> None:
    append(store, "stays")
    assert len(list(log(store, MAIN))) == 1
    store.objects.write(encode_blob(b"goes"))
    table = Path(store.layout.commit_table_file)
    before = table.read_bytes()
    assert upkeep(store).gc(grace_days=0).taken == 1
    assert table.read_bytes() == before


def test_in_memory_too() -> None:
    store = Store.memory()
    kept = append(store, "kept")
    unreachable = store.objects.write(encode_blob(b"what nothing leads to"))
    upkeep(store).prune(grace_days=0)
    assert (store.objects.contains(kept), store.objects.contains(unreachable)) == (True, False)


def test_a_purge_reaches_packs_in_quarantine(store: Store, tmp_path: Path) -> None:
    text = "a text that must go for good, wherever it is: 6f1c2a"
    move(store, "refs/tags/kept", store.objects.write(encode_blob(text.encode())))
    store.objects.write(encode_blob(b"what nothing leads to"))
    pack(store, level=3)
    assert upkeep(store).prune(grace_days=0).replaced == 1
    assert list(Path(store.layout.quarantine_dir).rglob("*.pack"))
    report = purge(store, plan_purge(store, texts=[text]), by="tester", verify=True)
    assert report.absence is not None
    assert not report.absence.found

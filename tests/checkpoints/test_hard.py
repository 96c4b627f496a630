"""Hard checkpoints: an exact state under a name that never moves."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.support.subjects import bundles
from trace_store import Message, Repo, Store
from trace_store.contracts import RefEdit, Transaction
from trace_store.errors import (
    AlreadyExistsError,
    InvalidRefNameError,
    RefNotFoundError,
    StateError,
    UnbornBranchError,
)
from trace_store.history import commit
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.repack import pack
from trace_store.testing.disks import RecordingDisk
from trace_store.writer import Writer


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo.init(tmp_path / "r", author="Ada", durability="fast")
    repo.append("user", "one")
    repo.append("assistant", "two")
    return repo


def request(repo: Repo, revision: str = "HEAD") -> object:
    return repo.compile(revision).to_anthropic()


def test_restore_is_byte_equal_after_edits_gc_and_pack(repo: Repo) -> None:
    """Trap C27: a checkpoint is immutable."""
    before, tip = request(repo), repo.resolve("HEAD")
    saved = repo.checkpoints.save("before", reason="to come back")
    first = repo.compile().messages[0].address
    repo.edit(first, "another one")
    repo.remove(first)
    repo.reset("HEAD~3", hard=True)
    repo.append("user", "three")
    repo.seal()
    pack(repo.store)
    repo.maintenance.gc(grace_days=0)
    assert request(repo) != before
    assert request(repo, "checkpoints/before") == before
    done = repo.checkpoints.restore("before")
    assert (done.after, repo.resolve("HEAD"), request(repo)) == (tip, tip, before)
    assert repo.checkpoints.show("before") == saved
    assert fsck(repo.store) == []


def test_prune_at_once_keeps_what_only_a_checkpoint_names(repo: Repo) -> None:
    repo.checkpoints.save("kept")
    repo.checkpoints.save("summary", soft=True)
    text = repo.checkpoints.text("summary")
    wanted = request(repo)
    repo.branches.switch("other", create=True)
    repo.branches.delete("main")
    repo.reset("HEAD~1", hard=True)
    trash = [RefEdit(name, None, oid) for name, oid in repo.store.refs.iterate("refs/trash/")]
    repo.store.transact(lambda refs: Transaction((), trash), author="Ada")
    repo.seal()
    repo.maintenance.gc(grace_days=0)
    repo.maintenance.prune(grace_days=0)
    assert request(repo, "checkpoints/kept") == wanted
    assert repo.checkpoints.text("summary") == text
    assert fsck(repo.store) == []


def test_restore_over_unsealed_work_loses_nothing(repo: Repo) -> None:
    repo.checkpoints.save("early")
    repo.append("user", "not sealed yet")
    tip = repo.resolve("HEAD")
    assert repo.store.unsealed().transactions
    done = repo.checkpoints.restore("early")
    assert done.kept is not None
    assert repo.resolve("ORIG_HEAD") == tip == repo.resolve(done.kept)
    repo.undo()
    assert repo.resolve("HEAD") == tip


def test_restore_moves_another_branch_or_creates_one(repo: Repo) -> None:
    repo.checkpoints.save("here")
    here = repo.resolve("HEAD")
    repo.branches.create("idea")
    commit.commit(Writer(repo.store, author="Ada").on("idea"), [Message("user", "more")])
    done = repo.checkpoints.restore("here", ref="idea")
    assert (done.ref, done.after, repo.resolve("HEAD")) == ("refs/heads/idea", here, here)
    repo.undo()
    assert repo.resolve("idea") != here
    assert repo.checkpoints.restore("here", branch="new").before is None
    assert repo.resolve("new") == here
    with pytest.raises(AlreadyExistsError):
        repo.checkpoints.restore("here", branch="new")


def test_restore_on_a_detached_head(repo: Repo) -> None:
    repo.checkpoints.save("here")
    repo.branches.checkout("HEAD~1")
    done = repo.checkpoints.restore("here")
    assert done.ref is None
    assert repo.resolve("HEAD") == repo.resolve("main")


def test_a_checkpoint_of_a_branch_that_is_not_checked_out(repo: Repo) -> None:
    repo.branches.create("idea", "HEAD~1")
    assert repo.checkpoints.save("of-idea", ref="idea").branch == "refs/heads/idea"


@pytest.mark.parametrize("soft", [False, True])
def test_a_name_in_use_is_refused_and_keeps_its_state(repo: Repo, soft: bool) -> None:
    saved = repo.checkpoints.save("name")
    repo.append("user", "three")
    with pytest.raises(AlreadyExistsError, match="name already exists"):
        repo.checkpoints.save("name", soft=soft)
    assert repo.checkpoints.show("name") == saved


def test_bad_names_and_empty_branches(repo: Repo, tmp_path: Path) -> None:
    for name in ("", "a b", "auto/mine", "forks/mine", "archived/mine", "HEAD"):
        with pytest.raises(InvalidRefNameError):
            repo.checkpoints.save(name)
    with pytest.raises(RefNotFoundError):
        repo.checkpoints.restore("never")
    with pytest.raises(RefNotFoundError):
        repo.checkpoints.delete("never")
    with pytest.raises(UnbornBranchError):
        Repo.init(tmp_path / "empty").checkpoints.save("nothing")


def test_deleting_is_undone(repo: Repo) -> None:
    saved = repo.checkpoints.save("gone")
    (deleted,) = repo.checkpoints.delete("gone")
    assert repo.checkpoints.list() == []
    assert repo.resolve(deleted.kept[0]) == saved.oid
    repo.undo()
    assert repo.checkpoints.list() == [saved]


def test_an_undo_of_something_else_leaves_a_checkpoint(repo: Repo) -> None:
    saved = repo.checkpoints.save("stays")
    repo.append("user", "three")
    repo.undo()
    assert repo.checkpoints.list() == [saved]


def test_restore_waits_for_a_stopped_merge(repo: Repo) -> None:
    repo.checkpoints.save("here")
    repo.branches.create("idea")
    address = repo.compile().messages[0].address
    repo.edit(address, "ours")
    repo.branches.switch("idea")
    repo.edit(address, "theirs")
    repo.branches.switch("main")
    assert repo.merge("idea").outcome == "stopped"
    with pytest.raises(StateError, match="in progress"):
        repo.checkpoints.restore("here")


def test_a_bundle_carries_checkpoints(repo: Repo) -> None:
    repo.checkpoints.save("hard", reason="why")
    repo.checkpoints.save("soft", soft=True)
    out = io.BytesIO()
    repo.bundles.create(out.write, "hard", "soft")
    with Repo.memory() as other:
        out.seek(0)
        bundles(other.store).import_(out.read)
        assert [each.name for each in other.checkpoints.list()] == ["hard", "soft"]
        assert request(other, "checkpoints/hard") == request(repo)
        assert other.checkpoints.text("soft") == repo.checkpoints.text("soft")


def test_saving_costs_the_same_at_any_length(tmp_path: Path) -> None:
    costs = []
    for count in (2_000, 10_000):
        folder, disk = str(tmp_path / str(count)), RecordingDisk()
        with Store.init(folder, durability="fast") as store:
            messages = [Message("user", f"message {n}") for n in range(100)]
            for _ in range(count // 100):
                commit.commit(Writer(store, author="Ada"), messages)
            pack(store)
        with Repo(Store.open(f"{folder}/.trace", durability="fast", disk=disk)) as repo:
            disk.reset()
            repo.checkpoints.save("here")
            costs.append(disk.counts())
    small, large = costs
    assert large["read_bytes"] <= small["read_bytes"] + 4_096
    assert (large["opened"], large["written_bytes"]) == (small["opened"], small["written_bytes"])

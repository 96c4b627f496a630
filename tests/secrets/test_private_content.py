"""Private content: its id tells nothing to those who guess it, and is the same for the same content."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.support.subjects import bundles
from trace_store import Repo
from trace_store.base.environment import Environment
from trace_store.base.oid import ObjectId, hash_object
from trace_store.disk.files import Disk
from trace_store.errors import FormatError, PurgedError, StateError
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.purge import plan_purge, purge
from trace_store.objects.codec import MAXIMUM_BLOB_BYTES, encode_blob
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.content import is_private
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.secrets.user_files import content_salt, store_key
from trace_store.store.store import Store

PIN = "4711"


def surroundings(folder: Path) -> Environment:
    return Environment(author="Ada", data_dir=str(folder / "data"))


def content(repo: Repo) -> bytes:
    tip = repo.store.refs.head().oid
    assert tip is not None
    commit = Commit.decode(repo.store.objects.read(tip))
    oid: bytes = commit.operations[0].fields["messages"][0]["parts"][0]["blob"]
    return oid


def test_the_same_private_content_has_one_id_that_no_guess_confirms(tmp_path: Path) -> None:
    with Repo.init(tmp_path / "a", environment=surroundings(tmp_path)) as repo:
        repo.append("user", PIN, private=True)
        first = content(repo)
        repo.append("user", PIN, private=True)
        assert content(repo) == first
        repo.append("user", PIN)
        assert content(repo) == hash_object(encode_blob(PIN.encode())) != first
        assert [message.text for message in repo.compile()] == [PIN] * 3
        assert not fsck(repo.store)
        key_file = tmp_path / "data" / "trace" / repo.store.config.store_id / "key"
    assert stat.S_IMODE(os.stat(key_file).st_mode) == 0o600
    key = key_file.read_bytes()
    assert not any(key in p.read_bytes() for p in (tmp_path / "a").rglob("*") if p.is_file())
    with Repo.open(tmp_path / "a", environment=surroundings(tmp_path)) as repo:
        repo.append("user", PIN, private=True)
        assert content(repo) == first
    with Repo.init(tmp_path / "b", environment=surroundings(tmp_path)) as other:
        other.append("user", PIN, private=True)
        assert content(other) != first


def test_a_copy_of_a_repository_tells_nothing_about_the_original(tmp_path: Path) -> None:
    """Its owner sees the placeholder and the salt of whatever he gets the user to commit to it."""
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    said = f"log in with {token}"

    def shown(folder: Path) -> tuple[bytes, str]:
        with Repo.open(folder, environment=surroundings(tmp_path)) as repo:
            repo.append("user", PIN, private=True)
            private = content(repo)
            repo.append("user", said)
            text = repo.compile().messages[-1].text
            assert token not in text
            return private, text

    Repo.init(tmp_path / "own", environment=surroundings(tmp_path)).close()
    shutil.copytree(tmp_path / "own", tmp_path / "theirs")
    (tmp_path / "same").symlink_to(tmp_path / "own")
    own = shown(tmp_path / "own")
    assert shown(tmp_path / "same") == own == shown(tmp_path / "own")
    theirs = shown(tmp_path / "theirs")
    assert theirs[0] != own[0]
    assert theirs[1] != own[1]


def test_everything_that_says_something_can_be_private(tmp_path: Path) -> None:
    with Repo.init(tmp_path, environment=surroundings(tmp_path)) as repo:
        result = repo.append("user", "x")
        repo.edit(result.addresses[0], PIN, private=True)
        with repo.batch(private=True) as draft:
            draft.append("assistant", [ToolCall("c", "run", {"pin": PIN})])
        long = "y" * (MAXIMUM_BLOB_BYTES + 5)
        repo.append("user", long, private=True)
        assert [m.text for m in repo.compile()][::2] == [PIN, long]
        plain = {
            hash_object(encode_blob(text.encode())) for text in (PIN, '{"pin":"4711"}', "y" * 5)
        }
        assert plain.isdisjoint(repo.store.objects.iterate())


def test_a_repository_in_memory_has_private_content_too() -> None:
    with Repo.memory() as repo:
        repo.append("user", PIN, private=True)
        assert content(repo) != hash_object(encode_blob(PIN.encode()))


def test_a_bundle_carries_the_salt_and_a_purge_takes_both(tmp_path: Path) -> None:
    with Repo.init(tmp_path / "a", environment=surroundings(tmp_path)) as repo:
        repo.append("user", PIN, private=True)
        oid = ObjectId(content(repo))
        repo.bundles.create(str(tmp_path / "all.bundle"), everything=True)
        plan = plan_purge(repo.store, [oid])
        assert not plan.guessable
        purge(repo.store, plan, force=True)
        with pytest.raises(PurgedError):
            repo.append("user", PIN, private=True)
    with Store.init(str(tmp_path / "b")) as store:
        bundles(store).import_(str(tmp_path / "all.bundle"))
        assert store.objects.read(oid).startswith(b"\x93")


def test_a_key_is_whole_when_others_see_it_and_is_never_replaced(tmp_path: Path) -> None:
    found: list[bytes] = []

    class Crowded(Disk):
        """While a key is written another process asks for it."""

        def write(self, fd: int, data: bytes, at: int | None = None) -> int:
            found.append(store_key(surroundings(tmp_path), id_, "", Disk()))
            return super().write(fd, data, at)

    id_ = "0" * 32
    key = store_key(surroundings(tmp_path), id_, "", Crowded())
    assert found == [key]
    folder = tmp_path / "data" / "trace" / id_
    assert [each.name for each in folder.iterdir()] == ["key"]
    assert stat.S_IMODE((folder / "key").stat().st_mode) == 0o600


def test_a_key_that_is_none_is_refused(tmp_path: Path) -> None:
    with Store.init(str(tmp_path / "a")) as store:
        id_, disk = store.config.store_id, store.disk
        key = store_key(surroundings(tmp_path), id_, "", disk)
        assert store_key(surroundings(tmp_path), id_, "", disk) == key
        assert content_salt(key)(b"x") == content_salt(key)(b"x") != content_salt(key)(b"y")
        path = tmp_path / "data" / "trace" / id_ / "key"
        path.write_bytes(b"short")
        with pytest.raises(FormatError, match="not a 32-byte key"):
            store_key(surroundings(tmp_path), id_, "", disk)
        with pytest.raises(StateError):
            store_key(Environment(), id_, "", disk)


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("verb", ["compress", "compress twice", "trim", "apply"])
def test_what_is_written_from_private_messages_is_private(
    tmp_path: Path, verb: str, *, private: bool
) -> None:
    with Repo.init(tmp_path, environment=surroundings(tmp_path)) as repo:
        repo.append("user", "Read the letter.")
        repo.append("assistant", [ToolCall("c1", "Read", '{"file_path": "/letter"}')])
        letter = [ToolResult("c1", f"{PIN} is the PIN.\n" * 400, is_error=True)]
        repo.append("tool", letter, private=private)
        for turn in range(4):
            repo.append("user", f"Turn {turn}. " + "Something else. " * 100)
            repo.append("assistant", "Yes.")
        made = repo.resolve("HEAD")
        if verb == "trim":
            repo.compression.trim(1_800)
        elif verb == "apply":
            repo.compression.apply(repo.compression.suggest().proposals)
        else:
            repo.compression.compress(text=f"The PIN is {PIN}.", force=True)
        if verb == "compress twice":
            repo.append("user", "Go on. " * 200)
            made = repo.resolve("HEAD")
            repo.compression.compress(text=f"The PIN was {PIN}.", force=True)
        written = set(linked(repo, "HEAD")) - set(linked(repo, str(made)))
        assert written
        assert {is_private(oid, repo.store.objects.read) for oid in written} == {private}


def linked(repo: Repo, revision: str) -> list[ObjectId]:
    """The content that a commit names."""
    tip = Commit.decode(repo.store.objects.read(repo.resolve(revision)))
    return [
        ObjectId(part["blob"])
        for operation in tip.operations
        for parts in [operation.fields.get("parts", []), *_wordings(operation)]
        for whole in parts
        for part in whole.get("parts", [whole])
    ]


def _wordings(operation: Operation) -> list[list[dict[str, Any]]]:
    return [message["parts"] for message in operation.fields.get("messages", [])]

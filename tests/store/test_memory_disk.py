"""A disk in memory gives the answers of a real one, and a repository on it can do what any other can."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trace_store import Repo, Store
from trace_store.disk.files import (
    APPEND,
    CREATE,
    PRIVATE,
    READ,
    WRITE,
    Disk,
    files_below,
    read_file,
    replace_file,
)
from trace_store.errors import InvalidInputError, StorageError
from trace_store.store.memory_disk import MemoryDisk


def answer(call: Callable[[], object]) -> object:
    """Return what a call returns, or the number of its error."""
    try:
        return call()
    except StorageError as error:
        return f"error {error.errno}"


def opened(disk: Disk, path: str, mode: str) -> int:
    fd = disk.open(path, mode)
    assert fd is not None
    return fd


def names(disk: Disk, at: str) -> Iterator[object]:
    """Yield the answers to changes of names."""
    sub, file, other = f"{at}/a/b", f"{at}/a/b/file", f"{at}/other"
    yield answer(lambda: disk.open(file))
    yield answer(lambda: disk.open(file, CREATE))
    yield answer(lambda: disk.make_directory(sub))
    yield answer(lambda: disk.make_directory(sub))
    for mode in (CREATE, PRIVATE):
        fd = opened(disk, file + mode, mode)
        yield answer(lambda mode=mode: disk.open(file + mode, mode))  # type: ignore[misc]
        disk.close(fd)
    found = disk.stat(file + PRIVATE)
    assert found is not None
    yield stat.S_IMODE(found.st_mode), found.st_nlink, found.st_size
    yield answer(lambda: disk.open(sub))
    yield answer(lambda: disk.make_directory(file + CREATE))
    yield answer(lambda: disk.names(sub)), answer(lambda: disk.names(f"{at}/no"))
    yield answer(lambda: disk.scan(f"{at}/a")), answer(lambda: disk.scan(f"{at}/no"))
    yield answer(lambda: disk.link(file + CREATE, other))
    yield answer(lambda: disk.link(file + CREATE, other))
    yield answer(lambda: disk.link(f"{at}/no", f"{at}/new"))
    yield answer(lambda: disk.link(other, f"{at}/no/new"))
    yield disk.identity(other) == disk.identity(file + CREATE)
    yield answer(lambda: disk.rename(file + PRIVATE, other))
    yield disk.exists(other), disk.exists(file + PRIVATE), disk.exists(f"{other}/below")
    yield answer(lambda: disk.rename(f"{at}/no", other))
    yield answer(lambda: disk.rename(other, f"{at}/no/new"))
    yield answer(lambda: disk.rename(other, sub))
    yield answer(lambda: disk.rename(f"{at}/a", f"{at}/moved"))
    yield answer(lambda: disk.remove(f"{at}/moved/b"))
    yield answer(lambda: disk.remove_directory(f"{at}/moved/b"))
    yield answer(lambda: disk.sync_directory(f"{at}/no"))
    yield disk.remove(other), disk.remove(other), disk.remove_directory(f"{at}/no")
    yield [os.path.relpath(path, at) for path in files_below(disk, at)]


def contents(disk: Disk, at: str) -> Iterator[object]:
    """Yield the answers to changes of content."""
    path = f"{at}/file"
    fd = opened(disk, path, CREATE)
    yield disk.write(fd, b"first"), disk.write(fd, b", second"), disk.read_at(fd, 3, 6)
    disk.sync(fd)
    disk.close(fd)
    fd = opened(disk, path, WRITE)
    yield disk.write(fd, b"FIRST", 0), disk.write(fd, b"far", 20), disk.size(fd)
    before = disk.stat(path)
    yield disk.read_at(fd, 0, 100), disk.read_at(fd, 100, 5)
    disk.write(fd, b"!", 4)
    after = disk.stat(path)
    assert before is not None
    assert after is not None
    yield before.st_ino == after.st_ino, before.st_mtime_ns <= after.st_mtime_ns
    disk.protect(fd)
    disk.close(fd)
    if os.geteuid():
        yield answer(lambda: disk.open(path, APPEND))
    fd = opened(disk, path, READ)
    disk.remove(path)
    yield disk.read_at(fd, 0, 5), disk.exists(path)  # an open file outlives its name
    yield answer(lambda: disk.write(fd, b"x"))
    disk.close(fd)
    replace_file(disk, path, b"one")
    replace_file(disk, path, b"two")
    yield read_file(disk, path), disk.names(at)


def locks(disk: Disk, at: str) -> Iterator[object]:
    """Yield the answers to requests for locks."""
    first, second = opened(disk, f"{at}/lock", CREATE), opened(disk, f"{at}/lock", APPEND)
    yield disk.lock(first), disk.lock(first), disk.lock(second, blocking=False)
    disk.unlock(second)
    yield disk.lock(second, blocking=False)
    disk.unlock(first)
    yield disk.lock(second, blocking=False), disk.lock(first, blocking=False)
    disk.close(second)
    yield disk.lock(first, blocking=False)
    disk.close(first)


@pytest.mark.skipif(os.name == "nt", reason="compares with POSIX")
@pytest.mark.parametrize("script", [names, contents, locks])
def test_it_answers_as_a_real_disk(
    script: Callable[[Disk, str], Iterator[object]], tmp_path: Path
) -> None:
    memory = MemoryDisk()
    memory.make_directory("/at")
    assert [*script(memory, "/at")] == [*script(Disk(), str(tmp_path))]


def test_a_thread_waits_for_a_lock() -> None:
    disk = MemoryDisk()
    first, second = opened(disk, "/lock", CREATE), opened(disk, "/lock", APPEND)
    disk.lock(first)
    waiting = threading.Thread(target=disk.lock, args=[second])
    waiting.start()
    waiting.join(0.02)
    assert waiting.is_alive()
    disk.unlock(first)
    waiting.join(10)
    assert not disk.lock(first, blocking=False)


def test_many_appends_to_a_file_cost_little() -> None:
    disk = MemoryDisk()
    fd = opened(disk, "/file", CREATE)
    for _ in range(20_000):  # copying the file each time would move 20 GB
        disk.write(fd, bytes(100))
    assert disk.size(fd) == 2_000_000


def test_a_repository_in_memory_does_what_one_on_disk_does() -> None:
    with Repo.memory(author="test") as repo:
        repo.append("user", "keep this")
        repo.append("user", "the password is hunter2")
        repo.seal()
        assert repo.status().unsealed_bytes == 0
        plan = repo.maintenance.plan_purge(texts=["hunter2"])
        absence = repo.maintenance.purge(plan, verify=True).absence
        assert absence is not None
        assert absence.found == ()
        repo.maintenance.pack()
        repo.maintenance.gc()
        assert {each.code for each in repo.maintenance.fsck()} == {"object-purged"}
        assert repo.maintenance.repair().mended == ()
        assert "hunter2" not in repr([message.text for message in repo.compile()])
        assert not any(
            b"hunter2" in (read_file(repo.store.disk, path) or b"")
            for path in files_below(repo.store.disk, repo.store.layout.root)
        )


def test_another_handle_sees_the_same_repository() -> None:
    with Store.memory() as store, Store.open(store.layout.root, disk=store.disk) as other:
        Repo(store, author="one").append("user", "from one")
        Repo(other, author="two").append("user", "from two")
        assert [message.text for message in Repo(store).compile()] == ["from one", "from two"]
        assert Store.memory().refs.head().unborn  # another repository


def test_what_needs_a_folder_says_so() -> None:
    repo = Repo.memory()
    upkeep = repo.maintenance
    for call in (
        *(upkeep.doctor, upkeep.versions, upkeep.allowed_secrets),
        repo.transcripts.discover,
    ):
        with pytest.raises(InvalidInputError, match="in memory has no files"):
            call()

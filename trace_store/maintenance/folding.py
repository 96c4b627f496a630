"""Folding small packs into a new one, so that their number stays small.

Rule: a pack that the user's git has in its index is left alone, because replacing it would put the same bytes into
their history twice. Which packs are folded follows their sizes, so that each byte is written again only a few times.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from trace_store.errors import CorruptObjectError, CorruptPackError, StorageError
from trace_store.files import read_file
from trace_store.layout import PACK_SUFFIX
from trace_store.odb import ObjectDatabase
from trace_store.odb.pack import MAXIMUM_PACK_BYTES, split, walk
from trace_store.oid import ObjectId, hash_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.files import Disk
    from trace_store.store import Store

EXPECTED_RATIO = 4
"""How much smaller than their raw content packs usually are; only used to guess a size."""
ALWAYS_FOLD_BYTES = 32 * 1024
"""Packs up to this size are folded whatever comes to them: writing them again costs next to nothing."""
MAXIMUM_GIT_INDEX_BYTES = 256 * 1024 * 1024
_NAME_TAIL = 32
"""How many characters of a pack's name are looked for: git's index may leave out what names share in front."""


def choose_packs(store: Store, raw_bytes: int) -> list[str]:
    """Return the packs to fold together with `raw_bytes` of new content, oldest first."""
    sizes: list[tuple[int, int, str]] = []
    tracked: bytes | None = None
    assert isinstance(store.objects, ObjectDatabase)
    for name in store.objects.packs.names():
        found = store.disk.stat(store.layout.pack_file(name))
        if found is not None:
            sizes.append((found.st_size, found.st_mtime_ns, name))
    total = max(raw_bytes // EXPECTED_RATIO, ALWAYS_FOLD_BYTES)
    chosen: list[tuple[int, str]] = []
    for size, changed, name in sorted(sizes):
        if size > total or total + size > MAXIMUM_PACK_BYTES // 2:
            break
        if tracked is None:
            tracked = git_index(store.disk, store.layout.root)
            if tracked is None:
                break
        if (name[-_NAME_TAIL:] + PACK_SUFFIX).encode() in tracked or not _is_sound(store, name):
            continue
        total += size
        chosen.append((changed, name))
    return [name for _, name in sorted(chosen)]


def objects_of(store: Store, name: str) -> Iterator[tuple[ObjectId, bytes]]:
    """Yield (id, bytes) of all objects of a pack, in the order they were written.

    Raises:
        CorruptPackError: it cannot be read to its end.
    """
    assert isinstance(store.objects, ObjectDatabase)
    packed = store.objects.packs.get(name)
    if packed is None:
        raise CorruptPackError(
            f"pack {name[:12]} cannot be read", path=store.layout.pack_file(name)
        )
    count = 0
    for _, _, raw in walk(packed.pack):
        if isinstance(raw, CorruptObjectError):
            raise CorruptPackError(f"pack {name[:12]} is damaged: {raw}", path=packed.pack.path)
        for offset, length in split(raw):
            data = raw[offset : offset + length]
            count += 1
            yield hash_object(data), data
    if count != packed.pack.object_count:
        raise CorruptPackError(f"pack {name[:12]} lacks objects", path=packed.pack.path)


def remove_packs(store: Store, names: list[str]) -> None:
    """Remove packs all of whose objects are in another, durable one."""
    for name in names:
        try:
            store.disk.remove(store.layout.pack_file(name))
            store.disk.remove(store.layout.pack_index_file(name))
        except StorageError:
            continue  # on Windows a file that is open elsewhere stays; the next time it may go
    if names:
        assert isinstance(store.objects, ObjectDatabase)
        with store.mutex:
            store.objects.packs.refresh()


def git_index(disk: Disk, root: str) -> bytes | None:
    """Return the bytes of the index of the git repository around a path; None when it cannot be read, or is huge."""
    folder = os.path.dirname(os.path.abspath(root))
    while True:
        git = os.path.join(folder, ".git")
        if disk.stat(git) is not None:
            break
        parent = os.path.dirname(folder)
        if parent == folder:
            return b""
        folder = parent
    if disk.stat(os.path.join(git, "HEAD")) is None:
        git = _linked(disk, git, folder)
    pieces: list[bytes] = []
    for name in disk.names(git):
        if name == "index" or name.startswith("sharedindex."):
            try:
                data = read_file(disk, os.path.join(git, name), limit=MAXIMUM_GIT_INDEX_BYTES)
            except StorageError:
                return None
            pieces.append(data or b"")
    return b"".join(pieces)


def _linked(disk: Disk, path: str, folder: str) -> str:
    """Return the git directory that a file `.git` names, as in a linked work tree."""
    try:
        data = read_file(disk, path, limit=4096) or b""
    except StorageError:
        return path
    text = data.decode("utf-8", "surrogateescape").strip()
    return os.path.join(folder, text.removeprefix("gitdir:").strip())


def _is_sound(store: Store, name: str) -> bool:
    try:
        for _ in objects_of(store, name):
            pass
    except (CorruptPackError, CorruptObjectError):
        return False
    return True

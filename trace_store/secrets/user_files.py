"""The user's key and allow-list for one repository, stored outside of it.

Only the owner can read these files, and a repository cannot influence them. The key is 32 random bytes, created on
first use. It is never used directly: each place has a derived key, and each purpose one derived from that. If the key
is lost, the same content gets new hashes; nothing stored becomes unreadable.

The place matters because the id of a repository can be copied. Otherwise a copy would hash content as the original
does, and its hashes would reveal what the original contains.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from trace_store import errors
from trace_store.base.environment import Environment
from trace_store.base.ident import Randomness
from trace_store.base.oid import derived_key, keyed_digest
from trace_store.disk.files import (
    PRIVATE,
    Disk,
    create_file,
    make_durable_directory,
    read_file,
    replace_file,
)
from trace_store.objects.codec import SALT_BYTES
from trace_store.secrets.placeholders import ID_CHARACTERS
from trace_store.store.store import Store

PURPOSE = "trace-store 2026 ids of placeholders"
"""The purpose of the derived key. Never change it: every secret would get another placeholder."""
ALLOWED = "allowed-secrets"
MAXIMUM_BYTES = 1 << 20
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz234567")


def placeholder_key(disk: Disk, environment: Environment, store_id: str, place: str) -> bytes:
    """Return the key for placeholders of a repository at a place, as in `store_key`.

    If the user has no folder for keys, it is random and lasts as long as the process.

    Raises:
        FormatError, StorageError: as `store_key`.
    """
    if not environment.data_dir:
        return Randomness().take(KEY_BYTES)
    return derived_key(store_key(environment, store_id, place, disk), PURPOSE)


def allowed(disk: Disk, environment: Environment, store_id: str) -> list[str]:
    """Return the ids of false positives, oldest first."""
    if not environment.data_dir:
        return []
    data = read_file(disk, environment.store_file(store_id, ALLOWED), limit=MAXIMUM_BYTES) or b""
    return [line for line in data.decode("utf-8", "replace").splitlines() if is_finding_id(line)]


def write_allowed(disk: Disk, environment: Environment, store_id: str, ids: Iterable[str]) -> None:
    """Replace the list of false positives.

    Raises:
        StateError: the user has no data folder.
        StorageError: the file cannot be written.
    """
    path = environment.store_file(store_id, ALLOWED)
    make_durable_directory(disk, os.path.dirname(path))
    replace_file(disk, path, "".join(f"{each}\n" for each in ids).encode(), private=True)


def is_finding_id(text: str) -> bool:
    """Return True if a text has the form of a finding's id."""
    return len(text) == ID_CHARACTERS and _LETTERS.issuperset(text)


KEY_BYTES = 32
FILE = "key"
PLACES = "trace-store 2026 place of a repository"
SALTS = "trace-store 2026 salt of private content"
"""The purposes of derived keys. Never change them: the same content would get another id."""


def user_key(store: Store, environment: Environment) -> bytes:
    """Return the user's key for an open repository.

    It lasts as long as the process if the user has no data folder, or the repository is in memory. Raises as
    `store_key`.
    """
    if not environment.data_dir or not store.local:
        return Randomness().take(KEY_BYTES)
    # It is the user's file, which a server may create that changes nothing of the repository.
    return store_key(environment, store.config.store_id, store.layout.root, Disk())


def store_key(environment: Environment, store_id: str, place: str, disk: Disk) -> bytes:
    """Return the user's 32-byte key for a repository at a place; it is created if missing.

    Args:
        environment: has the location of the user's files.
        store_id: the id of the repository.
        place: the path of its `.trace`; "" in memory.
        disk: reads and writes the file.

    Raises:
        FormatError: the repository's id or the file is not valid.
        StateError: the user has no data folder.
        StorageError: the disk failed.
    """
    path = environment.store_file(store_id, FILE)
    found = read_file(disk, path, limit=1024)
    if found is None:
        folder = os.path.dirname(path)
        make_durable_directory(disk, folder)
        scratch = f"{path}.{os.getpid()}-{os.urandom(6).hex()}.tmp"
        create_file(disk, scratch, Randomness().take(KEY_BYTES), mode=PRIVATE)
        try:
            # Link, so that the key is complete and never replaces another; some file systems need a rename.
            if not disk.link(scratch, path) and not disk.exists(path):
                disk.rename(scratch, path)
        finally:
            disk.remove(scratch)
        disk.sync_directory(folder)
        found = read_file(disk, path, limit=1024)  # another process may have won the race
    if found is None or len(found) != KEY_BYTES:
        raise errors.FormatError(f"not a {KEY_BYTES}-byte key: {path}", path=path)
    where = os.fsencode(os.path.realpath(place)) if place else b""
    return keyed_digest(derived_key(found, PLACES), where)


def content_salt(key: bytes) -> Callable[[bytes], bytes]:
    """Return a function from private content to its salt, the same for the same content and key."""
    own = derived_key(key, SALTS)
    return lambda content: keyed_digest(own, content)[:SALT_BYTES]

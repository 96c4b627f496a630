"""The user's key and allow-list for one repository, kept outside it.

Rule: a repository has no say in it. What is written here can be read by its owner alone.

Rule: 32 random bytes in a file of the user's own, made when they are first needed and readable by nobody else. No
repository holds them. Nothing is hashed with them as they are: each place has a key that is derived from them, and each
purpose one from that. A key that is lost makes new hashes of the same content; nothing that is stored needs it to be
read.

The place counts since a stranger can copy the id of a repository. What is committed to the copy would get the hashes
that it has in the original, and whoever is then shown the copy could tell by them what the original has.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.files import Disk, create_file, make_durable_directory, read_file, replace_file
from trace_store.ident import Randomness
from trace_store.objects.codec import SALT_BYTES
from trace_store.oid import derived_key, keyed_digest
from trace_store.secrets.placeholders import ID_CHARACTERS
from trace_store.user_files import store_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trace_store.environment import Environment


PURPOSE = "trace-store 2026 ids of placeholders"
"""What the derived key is for; never changed, since the same secret would get another placeholder."""
ALLOWED = "allowed-secrets"
MAXIMUM_BYTES = 1 << 20
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz234567")


def placeholder_key(disk: Disk, environment: Environment, store_id: str, place: str) -> bytes:
    """Return the key of the placeholders of a repository at a place, which is as in `keys.store_key`.

    Where the user has no folder for keys, it lasts as long as the process does.

    Raises:
        FormatError, StorageError: as in `keys.store_key`.
    """
    if not environment.data_dir:
        return Randomness().take(KEY_BYTES)
    return derived_key(store_key(environment, store_id, place, disk), PURPOSE)


def allowed(disk: Disk, environment: Environment, store_id: str) -> list[str]:
    """Return the ids of findings that the user takes for no secrets, in the order in which that was said."""
    if not environment.data_dir:
        return []
    data = read_file(disk, store_file(environment, store_id, ALLOWED), limit=MAXIMUM_BYTES) or b""
    return [line for line in data.decode("utf-8", "replace").splitlines() if is_finding_id(line)]


def write_allowed(disk: Disk, environment: Environment, store_id: str, ids: Iterable[str]) -> None:
    """Keep the ids of findings that are no secrets, instead of those that were kept.

    Raises:
        StateError: the user has no folder for data.
        StorageError: they cannot be written.
    """
    path = store_file(environment, store_id, ALLOWED)
    make_durable_directory(disk, os.path.dirname(path))
    replace_file(disk, path, "".join(f"{each}\n" for each in ids).encode(), private=True)


def is_finding_id(text: str) -> bool:
    """Tell whether a text is an id as placeholders have it."""
    return len(text) == ID_CHARACTERS and _LETTERS.issuperset(text)


KEY_BYTES = 32
FILE = "key"
PLACES = "trace-store 2026 place of a repository"
SALTS = "trace-store 2026 salt of private content"
"""What derived keys are for; never changed, since the same content would get another id."""


def store_key(environment: Environment, store_id: str, place: str, disk: Disk) -> bytes:
    """Return the user's key for a repository at a place, 32 bytes; it is made when there is none.

    Args:
        environment: says where the user's files are.
        store_id: the repository's.
        place: the path of its `.trace`; empty: it is in memory.
        disk: reads and writes the file.

    Raises:
        FormatError: the repository's id is none, or the file holds something else.
        StateError: the user has no folder for data.
        StorageError: the disk refuses.
    """
    path = store_file(environment, store_id, FILE)
    found = read_file(disk, path, limit=1024)
    if found is None:
        folder = os.path.dirname(path)
        make_durable_directory(disk, folder)
        scratch = f"{path}.{os.getpid()}-{os.urandom(6).hex()}.tmp"
        create_file(disk, scratch, Randomness().take(KEY_BYTES), private=True)
        try:
            # A key is there whole or not at all, and never takes the place of one; some file systems have no links.
            if not disk.link(scratch, path) and not disk.exists(path):
                disk.rename(scratch, path)
        finally:
            disk.remove(scratch)
        disk.sync_directory(folder)
        found = read_file(disk, path, limit=1024)  # another process may have been quicker
    if found is None or len(found) != KEY_BYTES:
        raise errors.FormatError(f"not a key of {KEY_BYTES} bytes: {path}", path=path)
    where = os.fsencode(os.path.realpath(place)) if place else b""
    return keyed_digest(derived_key(found, PLACES), where)


def content_salt(key: bytes) -> Callable[[bytes], bytes]:
    """Return what gives private content its salt: the same content has the same, under the same key."""
    own = derived_key(key, SALTS)
    return lambda content: keyed_digest(own, content)[:SALT_BYTES]

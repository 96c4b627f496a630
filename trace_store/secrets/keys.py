"""The user's key for one repository: what makes hashes of secrets worthless to everybody else.

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
from trace_store.files import create_file, make_durable_directory, read_file
from trace_store.ident import Randomness
from trace_store.objects.codec import SALT_BYTES
from trace_store.oid import derived_key, keyed_digest
from trace_store.user_files import store_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.environment import Environment
    from trace_store.files import Disk

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

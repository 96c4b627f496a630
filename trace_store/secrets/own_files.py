"""What the user keeps about the secrets of one repository, outside of it: a key, and what was allowed.

Rule: a repository has no say in it. What is written here can be read by its owner alone.
"""

from __future__ import annotations

import os

from trace_store.files import Disk, make_durable_directory, read_file, replace_file
from trace_store.ident import Randomness
from trace_store.oid import derived_key
from trace_store.secrets.keys import KEY_BYTES, store_key
from trace_store.secrets.placeholders import ID_CHARACTERS
from trace_store.user_files import store_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

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

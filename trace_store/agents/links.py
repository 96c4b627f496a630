"""Links between repositories whose agents have a parent in the other one.

A link is the other repository's id and folder. Links are in a local file outside git, since folders differ by clone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from trace_store import errors, maintenance
from trace_store.base.frozen import value
from trace_store.disk.files import read_file, replace_file
from trace_store.store.discovery import find
from trace_store.store.store import Store
from trace_store.writer import Writer

_FILE = "links"


@value
class LinkedStore:
    """A linked repository.

    Attributes:
        id: its id.
        path: its `.trace` directory.
    """

    id: str
    path: str


def linked_stores(store: Store) -> list[LinkedStore]:
    """Return the links of a repository, sorted by id; empty if the file is unreadable."""
    if not store.local:
        return []
    try:
        saved = json.loads(read_file(store.disk, _path(store)) or b"{}")
    except ValueError:
        return []
    pairs = saved.items() if isinstance(saved, dict) else ()
    return [LinkedStore(id, path) for id, path in sorted(pairs) if isinstance(path, str)]


def link_stores(one: Store, other: Store) -> None:
    """Link two repositories both ways.

    Raises:
        StorageError: the disk failed.
    """
    for store, linked in ((one, other), (other, one)):
        known = {each.id: each.path for each in linked_stores(store)}
        if known.get(linked.config.store_id) != linked.layout.root:
            known[linked.config.store_id] = linked.layout.root
            store.disk.make_directory(store.layout.local_dir)
            data = json.dumps(known, indent=1).encode() + b"\n"
            # Not synced: after a power cut, the next `spawn` there links the folder again.
            scratch = store.layout.tmp_dir
            replace_file(store.disk, _path(store), data, durable=False, scratch=scratch)


def opened_or_made(writer: Writer, path: str) -> Writer:
    """Open the repository in a folder, or create it.

    Raises:
        UnsupportedFormatError: a newer version wrote it.
        UntrustedRepositoryError: another user owns it, and it is not trusted.
        StorageError: the disk failed.
    """
    folder = os.path.abspath(path)
    try:
        found = find(folder, writer.environment, explicit=folder)
    except errors.RepositoryNotFoundError:
        store = Store.init(folder, clock=writer.store.clock)
    else:
        store = Store.open(found, clock=writer.store.clock)
    return Writer(store, author=writer.author, environment=writer.environment)


@contextmanager
def opened(writer: Writer, link: LinkedStore) -> Iterator[Writer]:
    """Open a linked repository within a block.

    Raises:
        RepositoryNotFoundError: it is missing.
        StateError: another repository is in its place.
        UnsupportedFormatError: a newer version wrote it.
    """
    if not os.path.isdir(link.path):
        raise errors.RepositoryNotFoundError(
            f"the linked repository {link.path} is gone", path=link.path
        )
    store = Store.open(
        find(link.path, writer.environment, explicit=link.path), clock=writer.store.clock
    )
    try:
        if store.config.store_id != link.id:
            raise errors.StateError(
                f"{link.path} holds another repository than the linked one", path=link.path
            )
        yield Writer(store, author=writer.author, environment=writer.environment)
    finally:
        close(store)


def close(store: Store) -> None:
    """Seal a repository, so that git sees all commits, and close it."""
    try:
        maintenance.seal.seal_or_sync(store)
    finally:
        store.close()


def _path(store: Store) -> str:
    return os.path.join(store.layout.local_dir, _FILE)

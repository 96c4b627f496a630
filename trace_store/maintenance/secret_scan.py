"""Scans for secrets: of all stored objects, packed or not, reachable or not, and of files.

Invariant: read-only, and never returns a secret value. Findings name the object, its messages and the refs that
reach it.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.files import files_below, read_file
from trace_store.frozen import value
from trace_store.maintenance.holders import ObjectScan
from trace_store.objects.codec import BLOB, COMMIT, blob_content
from trace_store.odb.reachable import reachable_ids
from trace_store.oid import ObjectId

MAXIMUM_FILE_BYTES = 64 << 20
"""A larger file is reported, not scanned."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trace_store.files import Disk
    from trace_store.objects.address import Address
    from trace_store.secrets.engine import SecretFinding
    from trace_store.store.handle import Store

    Find = Callable[[bytes], Iterable[SecretFinding]]


@value
class StoredSecret:
    """A secret in an object.

    Attributes:
        rule: kind of secret.
        id: id to mark it as a false positive.
        oid: the object.
        kind: kind of the object.
        addresses: messages that contain it.
        commits: commits that link to the object, in a message, as a raw record, or through a list of chunks.
        refs: sorted full names of refs that reach one of these commits.
    """

    rule: str
    id: str
    oid: ObjectId
    kind: str
    addresses: tuple[Address, ...]
    commits: tuple[ObjectId, ...]
    refs: tuple[str, ...]


@value
class FileSecret:
    """A secret in a file.

    Attributes:
        rule: kind of secret.
        id: id to mark it as a false positive.
        path: the file.
        line: the number of the line, from 1.
    """

    rule: str
    id: str
    path: str
    line: int


@value
class FileScan:
    """Result of a scan of files.

    Attributes:
        found: the secrets, in the order of the files.
        files: number of files scanned.
        unreadable: the error of each other file, which names it.
    """

    found: tuple[FileSecret, ...]
    files: int
    unreadable: tuple[errors.StorageError, ...]


@value
class SecretScan:
    """Result of a scan.

    Attributes:
        found: one entry per secret and object.
        objects, bytes: amount scanned.
        unreadable: unreadable objects with the reason.
    """

    found: tuple[StoredSecret, ...]
    objects: int
    bytes: int
    unreadable: dict[ObjectId, str]


def scan_files(disk: Disk, path: str, find: Find) -> FileScan:
    """Scan a file, or all files below a folder, for secrets; links are not followed, and large files are left out."""
    found: list[FileSecret] = []
    unreadable: list[errors.StorageError] = []
    count = 0
    for each in files_below(disk, path) if os.path.isdir(path) else (path,):
        try:
            data = read_file(disk, each, limit=MAXIMUM_FILE_BYTES) or b""
        except errors.StorageError as error:
            unreadable.append(error)
            continue
        count += 1
        found += [
            FileSecret(secret.rule, secret.id, each, data.count(b"\n", 0, secret.start) + 1)
            for secret in find(data)
        ]
    return FileScan(tuple(found), count, tuple(unreadable))


def scan_stored(
    store: Store,
    find: Find,
    start: ObjectId | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> SecretScan:
    """Scan stored objects for secrets.

    Args:
        store: the repository.
        find: function that finds the secrets in a byte string, such as `Scanner.find_bytes`.
        start: scan only what this object reaches; default: everything, quarantine included.
        progress: receives the number of objects scanned.
    """
    scan = ObjectScan()
    within = None if start is None else reachable_ids(store.objects.read, [start])
    hits: dict[ObjectId, dict[tuple[str, str], str]] = {}
    count = size = 0
    for oid, kind, data in scan.objects(store, within):
        count += 1
        size += len(data)
        if progress is not None:
            progress(count)
        content = blob_content(data) if kind == BLOB else data
        for each in find(content):
            hits.setdefault(oid, {})[each.rule, each.id] = kind
    holders = scan.holders(store, frozenset(hits))
    by_commit = {holder.commit: holder for holder in holders.commits}
    stored: list[StoredSecret] = []
    for oid, secrets in hits.items():
        kind = next(iter(secrets.values()))
        holding = [h for h in holders.commits if scan.links_to(h, oid)]
        if kind == COMMIT:
            holding = [by_commit[oid]]
        addresses = dict.fromkeys(a for h in holding for a in scan.messages_with(h, oid))
        refs = sorted({ref for holder in holding for ref in holder.refs})
        stored += [
            StoredSecret(
                *(rule, id_, oid, kind, tuple(addresses)),
                tuple(holder.commit for holder in holding),
                tuple(refs),
            )
            for rule, id_ in secrets
        ]
    return SecretScan(tuple(stored), count, size, scan.unreadable)

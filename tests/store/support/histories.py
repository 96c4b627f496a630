"""Helpers to create and read histories in tests of the store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from trace_store.base.oid import ObjectId, hash_object
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.disk.files import Disk
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.fsck_objects import ERROR, Finding
from trace_store.objects.codec import encode_blob
from trace_store.objects.commit import Commit
from trace_store.store.store import Store

MAIN = "refs/heads/main"
OTHER = "refs/heads/other"


def append(
    store: Store, text: str, ref: str = MAIN, *, durability: str = "fast", parent: Any = ANY
) -> ObjectId:
    """Append a commit with one blob to a ref and return its id."""
    made: list[ObjectId] = []

    def build(refs: Any) -> Transaction:
        tip = refs.read(ref) if parent is ANY else parent
        blob = encode_blob(text.encode())
        meta = {"content": hash_object(blob)}
        parents = [] if tip is None else [tip]
        commit = Commit(
            parents, "tester", 1_700_000_000_000, [], message=text[:40], meta=meta
        ).encode()
        made.append(hash_object(commit))
        objects = [(hash_object(blob), blob), (made[-1], commit)]
        return Transaction(objects, [RefEdit(ref, made[-1], ANY)], f"append {text[:20]}")

    store.transact(build, author="tester", durability=durability)
    return made[-1]


def move(store: Store, ref: str, new: ObjectId | None) -> None:
    """Move a ref, whatever its value."""
    store.transact(lambda refs: Transaction([], [RefEdit(ref, new, ANY)], "move"), author="tester")


def put(store: Store, data: bytes, ref: str | None = None) -> ObjectId:
    """Store an object, and let a ref name it, whatever its value."""
    oid = hash_object(data)
    edits = [] if ref is None else [RefEdit(ref, oid, ANY)]
    store.transact(lambda refs: Transaction([(oid, data)], edits))
    return oid


def line(store: Store, tip: ObjectId | None) -> list[str]:
    """Return the messages along first parents, oldest first, reading every blob."""
    found: list[str] = []
    while tip is not None:
        commit = Commit.decode(store.objects.read(tip))
        store.objects.read(commit.meta["content"])
        found.append(commit.message)
        tip = commit.parents[0] if commit.parents else None
    return found[::-1]


def main_line(store: Store) -> list[str]:
    """Return the messages of main, oldest first."""
    return line(store, store.refs.read(MAIN))


def new_store(folder: Path, **options: Any) -> Store:
    """Create a store in a folder."""
    return Store.init(str(folder), durability="fast", **options)


def reopen(folder: Path, *, disk: Disk | None = None, durability: str = "fast") -> Store:
    """Open the store in a folder with another handle."""
    return Store.open(str(folder / ".trace"), durability=durability, disk=disk)


def errors(store: Store) -> list[Finding]:
    """Return the errors that fsck finds."""
    return [finding for finding in fsck(store) if finding.severity == ERROR]


def codes(store: Store) -> set[str]:
    """Return the codes of all findings of fsck."""
    return {finding.code for finding in fsck(store)}


def journals(folder: Path) -> list[int]:
    """Return the numbers of the journals on disk."""
    return sorted(int(name) for name in os.listdir(folder / ".trace" / "journal"))


def journal_path(folder: Path, number: int | None = None) -> Path:
    """Return a journal, by default the newest."""
    return folder / ".trace" / "journal" / str(number or journals(folder)[-1])


def pack_paths(folder: Path) -> list[Path]:
    """Return the packs on disk."""
    return sorted((folder / ".trace" / "objects" / "pack").glob("*.pack"))

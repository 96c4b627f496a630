"""What tests ask of a store after an import."""

from __future__ import annotations

from collections import Counter

import pytest

from trace_store.base.oid import ObjectId
from trace_store.context.fold import Entry, fold
from trace_store.importers.dedupe import chain, read_commit
from trace_store.objects.commit import Commit
from trace_store.objects.message import load_parts
from trace_store.objects.parts import Part, Text, ToolResult
from trace_store.store.store import Store
from trace_store.transcripts.sources import source_records

PREFIX = "refs/heads/sessions/claude-code/"


def branches(store: Store) -> dict[str, ObjectId]:
    """Refs of sessions, by the part of their names that tells them apart."""
    return {name.removeprefix(PREFIX): oid for name, oid in store.refs.iterate(PREFIX)}


def all_refs(store: Store) -> dict[str, ObjectId]:
    return dict(store.refs.iterate())


def tip_of(store: Store, ref: str) -> ObjectId:
    tip = store.refs.read(ref)
    assert tip is not None, list(all_refs(store))
    return tip


def count_reads(store: Store, monkeypatch: pytest.MonkeyPatch) -> Counter[bytes]:
    """Return a counter of the reads of each object from now on."""
    times: Counter[bytes] = Counter()
    read = type(store.objects).read

    def counting(objects: object, oid: bytes) -> bytes:
        times[oid] += 1
        return read(objects, oid)  # type: ignore[arg-type]

    monkeypatch.setattr(type(store.objects), "read", counting)
    return times


def commits(store: Store, tip: ObjectId) -> list[Commit]:
    """A branch's commits, oldest first."""
    return [commit for _, commit in chain(store, tip)][::-1]


def reachable(store: Store, prefix: str = "refs/heads/") -> dict[ObjectId, Commit]:
    found: dict[ObjectId, Commit] = {}
    for _, tip in store.refs.iterate(prefix):
        for oid, commit in chain(store, tip):
            if oid in found:
                break
            found[oid] = commit
    return found


def raw_records(store: Store, prefix: str = "refs/heads/") -> list[bytes]:
    """Every raw record that the store can give back."""
    return [
        raw
        for commit in reachable(store, prefix).values()
        for raw in source_records(commit, store.objects.read)
    ]


def visible(store: Store, tip: ObjectId) -> list[Entry]:
    return list(fold(tip, lambda oid: read_commit(store, oid)).visible())


def entries(store: Store, tip: ObjectId) -> list[Entry]:
    return fold(tip, lambda oid: read_commit(store, oid)).entries


def parts_of(store: Store, entry: Entry) -> tuple[Part, ...]:
    return load_parts(entry.parts, store.objects.read)


def says(store: Store, entry: Entry) -> str:
    """A message in short: its role, and its text or the ids of calls and results."""
    words = []
    for part in parts_of(store, entry):
        if isinstance(part, Text):
            words.append(part.text)
        elif isinstance(part, ToolResult):
            inner = " ".join(p.text for p in part.content if isinstance(p, Text))
            words.append(f"{part.call_id}={inner}")
        else:
            words.append(getattr(part, "id", part.type))
    return f"{entry.message['role']}: {' | '.join(words)}"


def context(store: Store, tip: ObjectId) -> list[str]:
    return [says(store, entry) for entry in visible(store, tip)]

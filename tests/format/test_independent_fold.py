"""The fold that the page alone tells is the fold of Trace, on random operations and on the golden vectors."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.format.support import independent_reader as independent
from trace_store.base.oid import hash_object
from trace_store.context.content import prefix_after, seen_of_entry
from trace_store.context.fold import Fold
from trace_store.objects import operations as ops
from trace_store.objects.address import HERE, Address
from trace_store.objects.commit import Commit, Operation

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text(encoding="utf-8"))
COMMITS = {bytes.fromhex(v["id"]): v for v in VECTORS if v["kind"] == "commit"}


def state_of(fold: Fold) -> list[tuple[Any, ...]]:
    return [
        (
            tuple(entry.address),
            entry.home,
            [(list(version.parts), version.place) for version in entry.versions],
            entry.current,
            (entry.hidden, entry.ghost, entry.priority),
            set(entry.labels),
            list(entry.keep),
        )
        for entry in fold.entries
    ]


def told_by_the_page(fold: independent.Fold) -> list[tuple[Any, ...]]:
    return [
        (e.address, e.home, e.wordings, e.counts, e.state, e.labels, list(e.keep))
        for e in fold.entries
    ]


def prefix_hashes(fold: Fold) -> list[bytes]:
    hashes, last = [], bytes(32)
    for entry in fold.visible():
        last = prefix_after(last, seen_of_entry(entry))
        hashes.append(last)
    return hashes


class Histories:
    """Makes random commits, of new messages and of such as are carried from elsewhere."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.elsewhere: list[dict[str, Any]] = []
        self._blobs = 0

    def commit(self, fold: Fold, parent: bytes | None) -> Commit:
        """Return a commit on a fold, with operations on existing messages."""
        count = self.random.randint(1, 4)
        there = [entry.address for entry in fold.entries]
        self._added = 0
        self._calls: list[Address] = []
        operations = [self._operation(fold, there) for _ in range(count)]
        return Commit([parent] if parent else [], "ada", 1, operations)  # type: ignore[list-item]

    def _operation(self, fold: Fold, there: list[Address]) -> Operation:
        random = self.random
        name = random.choice(ops.OPERATIONS) if there else ops.ADD
        some = random.sample(there, min(len(there), random.randint(1, 3)))
        if name == ops.ADD:
            after = random.choice(there) if there and random.random() < 0.4 else None
            return ops.add(self._messages(fold), after=after)
        if name == ops.EDIT:
            return ops.edit(some[0], self._parts())
        if name == ops.ANNOTATE:
            return ops.annotate(
                some,
                priority=random.choice((*ops.PRIORITIES, None)),
                labels=random.sample("abc", random.randint(0, 2)),
                unlabels=random.choice(("a", "b", "c")),
                keep=random.choice((None, [], [self._blob()])),
            )
        if name == ops.REMOVE:
            return ops.remove(some, ghost=random.random() < 0.5)
        if name == ops.RESTORE:
            version = random.choice((None, random.randrange(len(fold.entry(some[0]).versions))))
            return ops.restore(some[:1] if version else some, version=version)
        if name == ops.REPLACE:
            return ops.replace(some, self._messages(fold))
        if name == ops.MOVE:
            others = [address for address in there if address not in some]
            return ops.move(some, after=random.choice(others) if others else None)
        if name == ops.TOOLS:
            return ops.tools([self._blob()])
        if name == ops.USAGE:
            return ops.usage({"input_total": 3})
        return ops.config({"a": "b"}, {})

    def _messages(self, fold: Fold) -> list[dict[str, Any]]:
        return [self._message(fold) for _ in range(self.random.randint(0, 3))]

    def _message(self, fold: Fold) -> dict[str, Any]:
        random = self.random
        number, self._added = self._added, self._added + 1
        if self.elsewhere and random.random() < 0.4:
            return random.choice(self.elsewhere)
        parts = self._parts()
        known = [entry.address for entry in fold.entries] + self._calls
        known += [Address(*each["born"]) for each in self.elsewhere]
        for _ in range(random.choice((0, 0, 1, 2))):
            if known:
                call = random.choice(known)
                self._calls.append(Address(HERE, number))
                inner = self._parts()
                said = {"id": "c", "parts": inner, "type": "tool_result", "call": list(call)}
                parts.append(said)
        return {"kind": "dialogue", "parts": parts, "role": random.choice(("user", "assistant"))}

    def _parts(self) -> list[Any]:
        return [{"blob": self._blob(), "type": "text"}]

    def _blob(self) -> Any:
        self._blobs += 1
        return hash_object(self._blobs.to_bytes(4, "big"))


@pytest.mark.parametrize("seed", range(60))
def test_it_is_the_fold_of_trace(seed: int) -> None:
    histories = Histories(Random(seed))
    for _ in range(4):
        fold, told, parent = Fold(), independent.Fold(), None
        for _ in range(8):
            commit = histories.commit(fold, parent)
            data = commit.encode()
            parent = hash_object(data)
            fold.apply(parent, Commit.decode(data))
            told.apply(parent, independent.structure(data)[1])
            assert told_by_the_page(told) == state_of(fold)
            assert told.prefix_hashes() == prefix_hashes(fold)
            assert told.tools == fold.tools_commit
            for entry in told.entries:
                unit = {other.address for other in told.unit(entry)}
                assert unit == set(fold.unit(Address(*entry.address)))
        histories.elsewhere += [entry.to_carried() for entry in fold.entries]


def test_the_golden_vectors_have_the_context_that_they_say() -> None:
    assert len(COMMITS) == 7
    for oid, vector in COMMITS.items():
        line = [oid]
        while parents := independent.structure(data_of(line[0]))[1]["parents"]:
            line.insert(0, parents[0])
        fold, told = Fold(), independent.Fold()
        for each in line:
            fold.apply(each, Commit.decode(data_of(each)))
            told.apply(each, independent.structure(data_of(each))[1])
        assert told_by_the_page(told) == state_of(fold)
        assert told.prefix_hashes()[-1].hex() == prefix_hashes(fold)[-1].hex() == vector["prefix"]


def data_of(oid: bytes) -> bytes:
    return bytes.fromhex(COMMITS[oid]["bytes"])

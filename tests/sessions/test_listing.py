"""Rows of a list of sessions: one that continues equals one from the history, and reads only what is new."""

from __future__ import annotations

import json
import random
from contextlib import suppress

import pytest

from tests.support.examples import examples
from trace_store import Message, Repo, errors
from trace_store.base.oid import ObjectId, hash_object
from trace_store.context.compiler import ContextCompiler
from trace_store.contracts import RefEdit, Transaction
from trace_store.exporters import session as export_session
from trace_store.objects import operations as ops
from trace_store.objects.codec import encode_blob
from trace_store.objects.commit import Commit
from trace_store.objects.message import store_message
from trace_store.sessions import listing
from trace_store.transcripts.sources import SOURCE_KEY

WORDS = ("", "Build the quay.", "<command-name>/clear</command-name>", "Caveat:  the\nlast one")
FACTS = ("session.state", "session.closed", "tool.thread", "tool.session", "other")
MAIN, SIDE, RECORD = "refs/heads/main", "refs/heads/side", "refs/records/tool/t1"


class Player:
    """Changes a few branches at random."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.repo = Repo.memory()
        self.calls: list[str] = []

    def put(self, ref: str) -> None:
        """Add a commit of any time, with what an importer or a program may record."""
        store, chance = self.repo.store, self.chance
        objects: list[tuple[ObjectId, bytes]] = []

        def blob(content: bytes) -> ObjectId:
            data = encode_blob(content)
            objects.append((hash_object(data), data))
            return objects[-1][0]

        operations, meta = [], {}
        if chance.random() < 0.7:
            role = chance.choice(["user", "user", "assistant"])
            message = Message(role, chance.choice(WORDS) + " " * chance.randrange(3))
            operations.append(ops.add([store_message(message, blob)]))
        if chance.random() < 0.5:
            facts = {chance.choice(FACTS): str(chance.randrange(9)) for _ in range(2)}
            operations.append(ops.config(facts, {}))
        if chance.random() < 0.4:
            record = {"cwd": "/home/ada"} if chance.random() < 0.2 else {}
            record |= {"aiTitle": f"Title {chance.randrange(9)}"} if chance.random() < 0.2 else {}
            meta[SOURCE_KEY] = blob(json.dumps(record).encode())
        tip = store.refs.read(ref)
        data = Commit(
            [tip] if tip else [], "ada", chance.randrange(2000), operations, "", meta
        ).encode()
        objects.append((hash_object(data), data))
        edit = RefEdit(ref, objects[-1][0], tip)
        store.transact(lambda _: Transaction(objects, [edit], "put"), author="ada")

    def change(self, ref: str) -> None:
        """Change or hide messages."""
        chance, line = self.chance, self.repo.line(ref)
        messages = list(line.compile().messages)
        if not messages:
            return
        one = chance.choice(messages).address
        kind = chance.randrange(7)
        if kind == 0:
            line.edit(one, chance.choice(WORDS) + "!", force=True)
        elif kind == 1:
            line.remove(one, ghost=chance.random() < 0.5)
        elif kind == 2:
            line.annotate(one, priority="skip")
        elif kind == 3:
            line.move(one, last=True)
        elif kind == 4:
            line.replace([one], [Message("user", "A summary.")])
        elif kind == 5:
            self.repo.undo(ref=ref)
        else:
            line.revert("HEAD", favour="ours")

    def merge(self, ref: str) -> None:
        """Merge another branch into one."""
        how = self.chance.choice(["append", "interleave"])
        other = "side" if ref == MAIN else "main"
        self.repo.line(ref).merge(other, strategy=how, favour="ours", unrelated=True)

    def step(self) -> None:
        """Do anything that is possible."""
        kind, ref = self.chance.random(), self.chance.choice([MAIN, MAIN, SIDE, RECORD])
        if kind < 0.6 or self.repo.store.refs.read(ref) is None:
            self.put(ref)
            return
        with suppress(errors.TraceError):
            if kind < 0.8:
                self.change(ref)
            elif kind < 0.95:
                self.merge(ref)
            else:
                self.repo.branches.delete("side", force=True)
                self.repo.branches.create("side", "main~2")

    def check(self) -> None:
        """Check the rows that a list continues."""
        store = self.repo.store
        values = store.refs.values()
        tips = {ref: values[ref] for ref in (MAIN, SIDE, RECORD) if ref in values}
        for ref, row in listing.current_rows(store, tips).items():
            contexts = ContextCompiler(store, keeps_files=False)
            _, again = listing._read(store, contexts, ref, tips[ref], ())
            assert isinstance(row, listing.SessionRow)
            assert row.to_data() == again.to_data()


@pytest.mark.parametrize("seed", range(examples(60)))
def test_a_row_that_continues_is_that_of_the_history(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (listing, export_session):
        monkeypatch.setattr(module, "FACT_COMMITS", 4)
    player = Player(seed)
    for _ in range(20):
        for _ in range(player.chance.randrange(4)):
            player.step()
        player.check()

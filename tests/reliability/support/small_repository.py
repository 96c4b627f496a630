"""A repository of some thirty objects that has a file of every kind, to be damaged in every way."""

from __future__ import annotations

from pathlib import Path

import pytest

from trace_store.base.ident import Clock, FixedRandomness
from trace_store.base.oid import ObjectId, hash_object
from trace_store.context.compiler import ContextCompiler
from trace_store.contracts import RefEdit, Transaction
from trace_store.history.commit import write
from trace_store.history.draft import Draft
from trace_store.history.log import log
from trace_store.journal import published
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob
from trace_store.objects.commit import Tag
from trace_store.odb.pack_writer import PackWriter
from trace_store.refs import summary
from trace_store.store.store import Store
from trace_store.writer import Writer

MAIN = "refs/heads/main"
IDEA = "refs/heads/idea"
AUTHOR = "Ada <ada@example.org>"
_LINES = [f"def test_{word}():\n    assert mean([{n}]) == {n}\n" for n, word in enumerate("abcdef")]


class Watch(Clock):
    """A clock that advances by a second with each reading."""

    __slots__ = ("_now",)

    def __init__(self) -> None:
        self._now = 1_700_000_000_000

    def now(self) -> int:
        self._now += 1000
        return self._now


def say(store: Store, text: str, branch: str = "main") -> ObjectId:
    """Append one message to a branch."""
    draft = Draft(Writer(store, author=AUTHOR).on(branch))
    draft.append("user", text)
    return write(draft).oid


def move(store: Store, *edits: RefEdit) -> None:
    store.transact(lambda _: Transaction((), edits, "move"), author=AUTHOR)


def build(folder: Path) -> Path:
    """Make the repository in a folder and return its `.trace`.

    It has a pack without and one with a dictionary, loose objects plain and compressed, a sealed and an unsealed
    journal, a table of published tips, more refs than are looked at each time, reflogs, a compile index with counted
    tokens, the commit table, and remembered counts.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published, "MAXIMUM_CHANGED", 8)
        patch.setattr(summary, "ALWAYS_READ", 8)
        store = Store.init(
            str(folder), clock=Watch(), durability="fast", randomness=FixedRandomness()
        )
        with store:
            _fill(store)
    return folder / ".trace"


def _fill(store: Store) -> None:
    first = say(store, "The build is red.")
    say(store, "mean([]) divides by zero. " * 12)
    say(store, "Shall it raise ValueError, or return 0.0?")
    move(store, *(RefEdit(f"refs/tags/t{n:02}", first, None) for n in range(9)))
    seal(store)
    shared = set(store.objects.iterate())
    aside = Store.memory(clock=store.clock)
    for number in range(4):
        draft = Draft(Writer(aside, author=AUTHOR).on("idea"))
        draft.append("user", "".join(_LINES[number:]), kind="artifact")
        write(draft)
    writer = PackWriter(store.disk, store.layout, frame_bytes=128, shared_bytes=4096)
    for oid in aside.objects.iterate():
        if oid not in shared:
            writer.add(oid, aside.objects.read(oid))
    writer.finish()
    for number in range(1, 9):  # one of these is enough
        store.disk.remove(store.layout.log_file(f"refs/tags/t{number:02}"))
    move(store, RefEdit(IDEA, aside.refs.read(IDEA), None))
    store.refs.set_head(MAIN, author=AUTHOR)
    seal(store)
    tip = store.refs.read(MAIN)
    assert tip is not None
    plain = store.objects.write(encode_blob(b"Seen by nobody yet."))
    note = store.objects.write(encode_blob(b"Found and written down, line by line. " * 20))
    tag = Tag(tip, "v1", AUTHOR, store.clock.now(), "Told to the users").encode()
    draft = Draft(Writer(store, author=AUTHOR).on("main"))
    draft.append("assistant", "It returns 0.0 now.")
    write(draft, links=[("code", note), ("see", plain)])
    say(store, "Thank you.")
    say(store, "Tag the release.")
    move(store, RefEdit("refs/tags/v1", store.objects.write(tag), None))
    tip = store.refs.read(MAIN)
    assert tip is not None
    move(store, RefEdit("refs/checkpoints/done", tip, None))
    say(store, "And now the release notes.", "idea")
    assert hash_object(tag) in set(store.objects.iterate())
    contexts = ContextCompiler(store)
    for name in (MAIN, IDEA):
        contexts.compile(name).message_tokens()
    for entry in log(store, MAIN):
        entry.summary(60)
    store.refs.status()

"""The stream of a context's objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.message_strategies import messages as any_messages
from trace_store import Message, Repo, Text
from trace_store.context import bulk_read, compile_index
from trace_store.errors import CorruptObjectError
from trace_store.history import commit
from trace_store.history.draft import Draft
from trace_store.objects.codec import LIST, MAXIMUM_BLOB_BYTES, decode, encode_blob, links
from trace_store.objects.message import part_blobs
from trace_store.writer import Writer


def expected(repo: Repo) -> list[bytes]:
    """Return the objects of the context, message by message."""
    read = repo.store.objects.read
    found: list[bytes] = []
    before = b""
    for message in repo.compile().messages:
        record = message.record
        if record.home_commit != before:
            found.append(read(record.home_commit))
        before = record.home_commit
        if record.place_commit != record.home_commit:
            found.append(read(record.place_commit))
        for blob in [] if message.ghost else part_blobs(message.stored["parts"]):
            found.append(read(blob))
            if decode(found[-1])[0] == LIST:
                found += [read(chunk) for chunk in links(found[-1])]
    return found


changes = st.lists(st.tuples(st.sampled_from(["edit", "remove", "ghost"]), st.integers(0, 99)))


@given(st.lists(st.lists(any_messages, min_size=1, max_size=4), max_size=8), changes)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_it_holds_each_object_in_order(
    history: list[list[Message]], changed: list[tuple[str, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch, Repo.memory() as repo:
        patch.setattr(compile_index, "_BATCH", 3)
        addresses = [a for messages in history for a in repo.commit(messages).addresses]
        for change, number in changed if addresses else ():
            target = addresses[number % len(addresses)]
            if change == "edit":
                draft = Draft(Writer(repo.store, author="ada"))
                draft.edit(target, [Text(f"edited {number}")], force=True)
                commit.write(draft)
            else:
                repo.remove(target, ghost=change == "ghost")
        stream = b"".join(repo.compile().objects())
        assert stream == b"".join(expected(repo))
        unpacker = msgpack.Unpacker()
        unpacker.feed(stream)
        assert len(list(unpacker)) == len(expected(repo))


def test_an_empty_context_has_none() -> None:
    with Repo.memory() as repo:
        assert list(repo.compile().objects()) == []


def test_long_content_comes_with_its_chunks() -> None:
    with Repo.memory() as repo:
        repo.append("user", "x" * (MAXIMUM_BLOB_BYTES + 1))
        pieces = list(repo.compile().objects())
        assert b"".join(pieces) == b"".join(expected(repo))
        assert max(map(len, pieces)) < MAXIMUM_BLOB_BYTES + 2 * bulk_read.PIECE_BYTES


def test_pieces_are_large_and_bounded() -> None:
    with Repo.memory() as repo:
        for number in range(100):
            repo.append("user", f"{number}" + "x" * 50_000)
        sizes = [len(piece) for piece in repo.compile().objects()]
        assert min(sizes[:-1]) >= bulk_read.PIECE_BYTES
        assert max(sizes) < bulk_read.PIECE_BYTES + 60_000


def test_damage_is_told(tmp_path: Path) -> None:
    repo = Repo.init(tmp_path)
    repo.append("user", "Plan the release.")
    assert list(repo.compile().objects())
    blob = encode_blob(b"Plan the release.")
    for path in Path(repo.store.layout.root, "journal").iterdir():
        path.write_bytes(path.read_bytes().replace(blob, blob[:-1] + b"!"))
    with pytest.raises(CorruptObjectError):
        list(repo.compile().objects())


@pytest.mark.parametrize(
    "parts", [None, 5, [5], [{}], [{"blob": 5}], [{"type": "result", "call": 5}]]
)
def test_a_malformed_commit_of_a_forged_index_is_an_error(parts: object) -> None:
    """An index that comes with foreign files may name a commit that was never decoded."""
    repo = Repo.memory()
    repo.append("user", "Plan the release.")
    (message,) = repo.compile().messages
    tip, forged = message.record.home_commit, {"role": "user", "parts": parts}

    def read(oids: Iterable[bytes]) -> Iterator[bytes]:
        commit = ["commit", {"ops": [["add", {"messages": [forged]}]]}]
        return (msgpack.packb(commit) if oid == tip else b"" for oid in oids)

    ((block, offsets),) = repo.compile().view.blocks()
    with suppress(CorruptObjectError):
        list(bulk_read.object_stream([(block, offsets)], read))
    assert bulk_read.Loader(read).load(block, offsets[0]) is None

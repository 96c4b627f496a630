"""Frames that others have written are read in one loop as they are read one by one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trace_store.files import WRITE, Disk
from trace_store.journal.file import JournalFile
from trace_store.journal.folding import Fold
from trace_store.journal.frames import (
    Frame,
    Move,
    _frame,
    encode_begin,
    encode_end,
    encode_transaction,
    encode_void,
    scan,
)
from trace_store.journal.scanning import UsualFrames
from trace_store.oid import hash_object

BEGIN = encode_begin(b"l" * 16)
OIDS = [hash_object(bytes([number])) for number in range(4)]
values = st.none() | st.sampled_from(OIDS)
moves = st.builds(Move, st.sampled_from(["refs/heads/main", "refs/heads/b"]), values, values)
objects = st.lists(
    st.tuples(st.binary(min_size=1, max_size=2).map(hash_object), st.binary(max_size=80)),
    max_size=11,
)
times = st.integers(0, (1 << 64) - 1) | st.integers(1 << 40, (1 << 40) + 9)


@st.composite
def transactions(draw: st.DrawFn) -> bytes:
    frame = Frame.of_transaction(
        draw(st.lists(moves, min_size=1, max_size=1) | st.lists(moves, max_size=3)),
        draw(st.sampled_from(["", "me", "you"])),
        draw(times),
        draw(st.sampled_from(["", "commit", "é" * 300])),
        draw(st.sampled_from(["", "refs/heads/main"])),
    )
    return encode_transaction(frame, dict(draw(objects)))


@st.composite
def pieces(draw: st.DrawFn) -> list[bytes]:
    """Draw what processes write one after the other: many of it usual, some not, some no frame at all."""
    usual = draw(st.lists(transactions(), min_size=1, max_size=3))
    other = st.sampled_from(
        [encode_void(), encode_end(), BEGIN, b"torn", bytes(3), _frame(130, {}, [b"\x80"])]
    )
    return draw(st.lists(st.sampled_from(usual) | transactions() | other, max_size=25))


def told(frame: Frame) -> Any:
    said = (
        frame.author,
        frame.time,
        frame.message,
        frame.head,
        frame.line,
        frame.closed_line,
        frame.failed,
        list(frame.closes),
    )
    steps = [(move.name, move.old, move.new) for move in frame.moves]
    return frame.kind, frame.start, frame.end, said, steps, frame.objects


def one_by_one(data: bytes) -> list[Any]:
    found: list[Any] = []
    for frame in scan(lambda at, size: data[at : at + size], 0, len(data)):
        found.append(told(frame))
        if frame.kind == 2:
            break
    return found


def opened(path: Path) -> tuple[JournalFile, int]:
    fd = Disk().open(str(path), WRITE)
    assert fd is not None
    file = JournalFile(1, str(path), fd, (0, 0))
    file._usual = UsualFrames()
    return file, fd


@given(pieces(), st.integers(1, 300), st.data())
def test_frames_are_read_as_one_by_one(
    tmp_path_factory: Any, written: list[bytes], room: int, data: st.DataObject
) -> None:
    whole = b"".join([BEGIN, *written])
    if data.draw(st.booleans()):
        place = data.draw(st.integers(len(BEGIN), len(whole)))
        whole = whole[:place] + bytes([data.draw(st.integers(0, 255))]) + whole[place + 1 :]
    path = tmp_path_factory.getbasetemp() / "journal"
    path.write_bytes(b"")
    file, fd = opened(path)
    try:
        disk, fold, slowly = Disk(), Fold(), Fold()
        at = 0
        while at < len(
            whole
        ):  # what others write is looked at now and then, also while it is half there
            step = data.draw(st.integers(1, len(whole)))
            path_fd = os.open(path, os.O_WRONLY)
            os.pwrite(path_fd, whole[at : at + step] + bytes(room), at)
            os.close(path_fd)
            at += step
            file.scan(disk)
        expected = one_by_one(whole)
        assert [told(frame) for frame in file.frames] == expected
        assert file.end == (expected[-1][2] if expected else 0)
        places = {oid: place for *_, held in expected for oid, *place in held}
        voided = {oid for frame in file.frames if frame.voided for oid, _, _ in frame.objects}
        found = file.places()
        assert {oid: list(place) for oid, place in found.items() if oid not in voided} == {
            oid: place for oid, place in places.items() if oid not in voided
        }
        assert {oid: file.place(oid) for oid in file.objects} == found
        fold.apply_all(file.frames)
        for frame in file.frames:
            slowly.apply(frame)
        assert fold.frames == slowly.frames
        assert {name: (each.value, each.passed) for name, each in fold.refs.items()} == {
            name: (each.value, each.passed) for name, each in slowly.refs.items()
        }
    finally:
        os.close(fd)

"""Reading one object decompresses its frame only up to the object's end."""

from __future__ import annotations

import contextlib
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from trace_store.base.oid import hash_object
from trace_store.disk.files import Disk
from trace_store.disk.layout import Layout
from trace_store.errors import CorruptObjectError
from trace_store.odb import packs as packs_module
from trace_store.odb.compression import BLOCK_BYTES, Dictionary, PartialFrame, compress
from trace_store.odb.pack_writer import PackWriter
from trace_store.odb.packs import Packs

DISK = Disk()
LARGE_FRAME_BYTES = 5 * BLOCK_BYTES


def words(source: random.Random, size: int) -> bytes:
    """Return bytes that are compressible, but not extremely."""
    return source.randbytes(size // 2 + 1).hex().encode()[:size]


def packed(folder: Path, objects: list[bytes]) -> Packs:
    writer = PackWriter(
        DISK,
        Layout(str(folder)),
        frame_bytes=LARGE_FRAME_BYTES,
        shared_bytes=2 * LARGE_FRAME_BYTES,
    )
    for data in objects:
        writer.add(hash_object(data), data)
    writer.finish()
    return Packs(DISK, Layout(str(folder)))


@settings(max_examples=examples(40), deadline=None)
@given(
    st.integers(0, 4 * BLOCK_BYTES),
    st.lists(st.integers(0, 5 * BLOCK_BYTES), max_size=5),
    st.booleans(),
)
def test_a_beginning_is_that_of_the_whole(size: int, ends: list[int], shared: bool) -> None:
    data = words(random.Random(size), size)
    dictionary = Dictionary(data[: size // 2] + bytes(8)) if shared else None
    body = compress(data, level=3, dictionary=dictionary)
    partial = PartialFrame(body, size, dictionary=dictionary)
    for end in ends:
        before = len(partial.content)
        content = partial.until(end)
        assert len(content) >= max(min(end, size), before)
        assert len(content) <= max(end + BLOCK_BYTES, before)
        assert content == data[: len(content)]
    assert partial.until(size) == partial.until(size) == data


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([0, 3 * BLOCK_BYTES, 1 << 26]))
def test_objects_in_any_order(seed: int, cache_bytes: int) -> None:
    source = random.Random(seed)
    lines = [words(source, 3000) + b"\n" for _ in range(40)]
    sizes = [source.choice((40, 3000, 60_000, 200_000)) for _ in range(40)]
    objects = list(
        {b"".join(source.choices(lines, k=size // 3000)) + words(source, 40) for size in sizes}
    )
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(packs_module, "CACHE_BYTES", cache_bytes)
        packs = packed(Path(place), objects)
        for data in source.choices(objects, k=150):
            assert packs.read(hash_object(data)) == data
        found = packs.read_quickly([hash_object(data) for data in objects], 1 << 30)
        assert found == objects
        packs.close()


def test_reading_on_decompresses_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = random.Random(5)
    objects = [words(source, 3000) for _ in range(250)]
    packs = packed(tmp_path, objects)
    made: list[int] = []
    init = PartialFrame.__init__

    def counting(
        self: PartialFrame, data: bytes, size: int, *, dictionary: Dictionary | None
    ) -> None:
        made.append(size)
        init(self, data, size, dictionary=dictionary)

    monkeypatch.setattr(PartialFrame, "__init__", counting)
    for data in objects:
        assert packs.read(hash_object(data)) == data
    assert len(made) == 2, "a frame each"
    packs.close()


def test_damage_spares_what_stands_before_it(tmp_path: Path) -> None:
    source = random.Random(6)
    objects = [words(source, 3000) for _ in range(200)]
    packs = packed(tmp_path, objects)
    (path,) = tmp_path.rglob("*.pack")
    sound = path.read_bytes()
    for at in range(100, len(sound) - 100, len(sound) // 23):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 0x55]) + sound[at + 1 :])
        reader = Packs(DISK, Layout(str(tmp_path)))
        lost = 0
        for data in source.sample(objects, 60):
            read = None
            with contextlib.suppress(CorruptObjectError):
                read = reader.read(hash_object(data))
                assert read in (data, None), "it has no place in an index made anew"
            lost += read is None
        assert lost
        reader.close()
    packs.close()

"""Compressing frames in several threads gives the same packs as one thread."""

from __future__ import annotations

import random
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from trace_store.base.oid import hash_object
from trace_store.disk import system_calls
from trace_store.objects.codec import encode
from trace_store.odb import compression, pack_writer
from trace_store.odb.compression import BackgroundTasks
from trace_store.odb.ingest import pack_of
from trace_store.odb.pack import walk_objects
from trace_store.odb.pack_writer import PackEncoder

LEVEL = 9


class Kept:
    """Packs kept in memory."""

    def __init__(self) -> None:
        self.packs: list[bytearray] = []
        self.indexes: list[bytes] = []

    def begin(self) -> Kept:
        self.packs.append(bytearray())
        return self

    def write(self, data: bytes) -> None:
        self.packs[-1] += data

    def complete(self, name: str, index: bytes) -> None:
        self.indexes.append(index)


def packed(objects: list[bytes], threads: int, **options: int) -> Kept:
    kept = Kept()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack_writer, "MAXIMUM_THREADS", threads)
        patch.setattr(pack_writer, "processor_count", lambda: threads)
        encoder = PackEncoder(kept.begin, level=LEVEL, **options)
        for data in objects:
            encoder.add(hash_object(data), data)
        encoder.finish()
    return kept


def made_of(seed: int, count: int) -> list[bytes]:
    """Return blobs that share lines, and commits that link to earlier objects."""
    source = random.Random(seed)
    lines = [b"%d %d\n" % (number, source.getrandbits(64)) for number in range(60)]
    objects: list[bytes] = []
    for _ in range(count):
        if objects and source.random() < 0.4:
            named = source.choices(objects, k=source.randint(1, 3))
            objects.append(encode(["commit", *map(hash_object, named)]))
        else:
            text = b"".join(source.choices(lines, k=source.randint(0, 40)))
            objects.append(encode(["blob", text + source.randbytes(source.randint(0, 60))]))
    return list(dict.fromkeys(objects))


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    count=st.integers(0, 120),
    frame=st.sampled_from([1, 500, 4000]),
    shared=st.sampled_from([0, 3000, 40_000]),
    most=st.sampled_from([1000, 6000, 1 << 25]),
    threads=st.integers(2, 5),
)
def test_packs_do_not_depend_on_the_number_of_threads(
    seed: int, count: int, frame: int, shared: int, most: int, threads: int
) -> None:
    objects = made_of(seed, count)
    options = {"frame_bytes": frame, "shared_bytes": shared}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack_writer, "_MANY_BYTES", 1)
        patch.setattr(pack_writer, "MAXIMUM_PACK_BYTES", most)
        one, many = packed(objects, 1, **options), packed(objects, threads, **options)
    assert many.packs == one.packs
    assert many.indexes == one.indexes
    found = [
        oid
        for data in many.packs
        for _, _, held in walk_objects(pack_of(bytes(data), ""))
        if isinstance(held, list)
        for oid, _, _ in held
    ]
    assert sorted(found) == sorted(map(hash_object, objects))


def test_no_thread_is_begun_for_little(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(work: object) -> None:
        raise AssertionError("a thread was started")

    monkeypatch.setattr(compression, "_start", start)
    objects = made_of(1, 100)
    assert len(packed(objects, 4, frame_bytes=500, shared_bytes=3000).packs) == 1
    with pytest.raises(AssertionError):
        packed([bytes([n]) * 300_000 for n in range(9)], 4, shared_bytes=1 << 22)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.binary(max_size=4), max_size=30), st.integers(0, 5))
def test_results_come_in_the_order_of_the_tasks(contents: list[bytes], threads: int) -> None:
    assert (
        BackgroundTasks([partial(bytes, each) for each in contents], threads).results() == contents
    )


@pytest.mark.parametrize("threads", [0, 1, 3])
@pytest.mark.parametrize("error", [MemoryError, IndexError, KeyboardInterrupt])
def test_what_a_task_raises_is_raised(threads: int, error: type[BaseException]) -> None:
    def fail() -> bytes:
        raise error

    work = BackgroundTasks([bytes, fail, bytes], threads)
    with pytest.raises(error):
        work.results()


def test_there_is_at_least_one_processor() -> None:
    assert system_calls.processor_count() >= 1

"""Short links and dictionaries round-trip for any objects in any order."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.format.support import independent_reader as independent
from tests.store.test_packs import packs_in, write_packs
from tests.support.examples import examples
from tests.support.files import flip
from trace_store.base.oid import hash_object
from trace_store.disk.layout import MAXIMUM_OBJECT_BYTES, Layout
from trace_store.errors import CorruptObjectError
from trace_store.objects.codec import encode_blob
from trace_store.odb import compression, pack_writer
from trace_store.odb.compression import lines_in_common
from trace_store.odb.delta_links import MARK, expand_all_links, expand_links, shorten_links
from trace_store.odb.ingest import pack_of
from trace_store.odb.pack import SHORT_LINKS, Pack, walk_objects
from trace_store.odb.pack_index import build_index
from trace_store.odb.pack_writer import PackWriter

PIECES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([MARK, b"\xc4", b" ", MARK * 3, MARK + bytes(3), MARK + b"\1\0\0", b"\n"]),
)
"""Pieces of objects besides links."""
OBJECTS = st.lists(
    st.tuples(st.booleans(), st.lists(st.one_of(PIECES, st.integers(0, 30)), max_size=8)),
    max_size=30,
)


def made_of(described: list[tuple[bool, list[bytes | int]]]) -> list[bytes]:
    """Return objects; a number in the description is a link to an earlier object or to a missing one."""
    objects: list[bytes] = []
    for is_blob, pieces in described:
        data = b""
        for piece in pieces:
            if isinstance(piece, bytes):
                data += piece
            else:
                named = objects[piece] if piece < len(objects) else b"nowhere %d" % piece
                data += MARK + hash_object(named)
        objects.append(encode_blob(data) if is_blob else data)
    return list(dict.fromkeys(objects))


@settings(max_examples=examples(150), deadline=None)
@given(
    OBJECTS,
    st.randoms(use_true_random=False),
    st.sampled_from([1, 100, 4096]),
    st.sampled_from([0, 300, 1 << 20]),
)
def test_any_objects_in_any_order_come_back(
    described: list[tuple[bool, list[bytes | int]]], source: object, frame: int, shared: int
) -> None:
    objects = made_of(described)
    source.shuffle(objects)  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = write_packs(folder, objects, frame_bytes=frame, shared_bytes=shared)
        packs = packs_in(folder)
        asked: list[bytes] = [hash_object(data) for data in objects]
        assert packs.read_quickly(asked, 1 << 30) == objects
        for pack in names:
            held = packs.get(pack)
            assert held is not None
            held.index.load()  # as after many look-ups
        assert packs.read_quickly(asked, 1 << 30) == objects
        assert packs.read_quickly([*asked[::-1], *asked], 1 << 30) == [*objects[::-1], *objects]
        assert [packs.read(hash_object(data)) for data in objects] == objects
        assert sorted(packs.iterate()) == sorted(map(hash_object, objects))
        packs.close()
        for pack in names:
            path = Path(Layout(name).pack_file(pack))
            read = independent.read_pack(path.read_bytes(), pack)
            assert sorted(read.objects) == sorted(objects)
            opened = pack_of(path.read_bytes(), "")
            walked = [
                o for _, _, found in walk_objects(opened) if isinstance(found, list) for o in found
            ]
            assert [(oid, data) for oid, _, data in walked] == [
                (hash_object(data), data) for data in read.objects
            ]
            index = path.with_suffix(".idx").read_bytes()
            assert build_index(opened) == (index, True)
            assert independent.read_index(index).ids == list(map(hash_object, read.objects))


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(PIECES, max_size=12), st.lists(st.binary(max_size=5), max_size=5, unique=True))
def test_any_bytes_have_a_short_form(pieces: list[bytes], named: list[bytes]) -> None:
    ids = [hash_object(data) for data in named]
    data = b"".join(pieces) + b"".join(MARK + oid + b"x" for oid in ids)
    half = len(ids) // 2
    numbers: dict[bytes, int] = {oid: number for number, oid in enumerate(ids)}
    first: dict[bytes, int] = {oid: numbers[oid] for oid in ids[:half]}
    second: dict[bytes, int] = {oid: numbers[oid] for oid in ids[half:]}
    form = shorten_links(data, len(ids), first, second)
    assert expand_links(form, len(ids), ids.__getitem__) == data
    assert expand_all_links([form], len(ids), b"".join(ids)) == [data]
    assert independent.lengthened(form, named) == data


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(PIECES, max_size=12), st.integers(0, 4))
def test_any_form_is_read_alike(pieces: list[bytes], count: int) -> None:
    """Forms that no writer produces mean the same to both readers, or are rejected by both."""
    named = [b"%d" % number for number in range(count)]
    form = b"".join(pieces)
    try:
        expected = independent.lengthened(form, named)
    except (IndexError, ValueError):
        expected = None
    try:
        found = expand_links(form, count, lambda number: hash_object(named[number]))
    except CorruptObjectError:
        found = None
    assert found == expected
    ids = b"".join(map(hash_object, named))
    try:
        (quickly,) = expand_all_links([form], count, ids)
    except CorruptObjectError:
        quickly = None
    assert quickly == expected


def test_a_long_object_stays_as_it_is(tmp_path: Path) -> None:
    first = encode_blob(b"first")
    link = MARK + hash_object(first)
    objects = [first, b"a" * 100 + link, link + os.urandom(9 << 20), MARK * (1 << 20), link]
    write_packs(tmp_path, objects)
    packs = packs_in(tmp_path)
    assert [packs.read(hash_object(data)) for data in objects] == objects
    with pytest.raises(CorruptObjectError):
        expand_links(
            bytes(MAXIMUM_OBJECT_BYTES - 100) + (MARK + b"\1\0\0") * 10, 1, lambda _: b"x" * 32
        )


def damaged_copy(folder: Path, name: str, place: int) -> Pack:
    data = bytearray(Path(Layout(str(folder)).pack_file(name)).read_bytes())
    data[place] ^= 0x40
    return pack_of(bytes(data), "")


def test_damage_takes_along_what_names_it_and_no_more(tmp_path: Path) -> None:
    """If a content frame is damaged, a reader without an index loses only the commits that link to it."""
    blobs = [encode_blob(b"%d " % n + os.urandom(3000)) for n in range(60)]
    commits: list[bytes] = []
    writer: list[bytes] = []
    for number, blob in enumerate(blobs):
        parent = MARK + hash_object(commits[-1]) if commits else b"none"
        commits.append(b"commit %d " % number + parent + MARK + hash_object(blob))
        writer += (blob, commits[-1])
    (name,) = write_packs(tmp_path, writer, frame_bytes=10_000)
    path = Path(Layout(str(tmp_path)).pack_file(name))
    places = list(pack_of(path.read_bytes(), "").places())
    assert sum(1 for place in places if place.flags == SHORT_LINKS) == 1
    hit = next(place for place in places[3:] if not place.flags)
    damaged = damaged_copy(tmp_path, name, hit.offset + hit.compressed // 2)
    kept = {
        data
        for _, _, found in walk_objects(damaged)
        if isinstance(found, list)
        for _, _, data in found
    }
    lost = [blob for blob in blobs if blob not in kept]
    assert 0 < len(lost) <= 4
    first = blobs.index(lost[0])
    assert set(commits[:first]) <= kept
    index = path.with_suffix(".idx").read_bytes()
    assert not build_index(damaged)[1]
    packs = packs_in(tmp_path)
    flip(path, hit.offset + hit.compressed // 2, 0x40)
    path.with_suffix(".idx").write_bytes(index)
    assert [packs.read(hash_object(data)) for data in commits] == commits, "the index tells the ids"


class TestLines:
    def test_those_of_two_contents_come_once_and_in_order(self) -> None:
        contents = [b"one\ntwo\nthree\n", b"three\nfour\none\n", b"one\nfive\\nsix\\n", b"six\\n"]
        assert lines_in_common(contents) == b"one\nthree\nsix\\n"

    def test_no_more_than_a_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        contents = [b"".join(b"%04d\n" % n for n in range(100))] * 2
        monkeypatch.setattr(compression, "MAXIMUM_DICTIONARY_BYTES", 32)
        assert lines_in_common(contents) == b"".join(b"%04d\n" % n for n in range(6))

    def test_nothing_in_common(self) -> None:
        assert lines_in_common([b"one\n", b"two\n"]) == b""
        assert lines_in_common([]) == b""


def test_a_section_that_no_pack_has_room_for_goes_on_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack_writer, "MAXIMUM_PACK_BYTES", 60_000)
    shared = [
        b"".join(b"line %d of many\n" % ((n * k) % 701) for n in range(300)) for k in range(60)
    ]
    objects = [encode_blob(data + os.urandom(2000)) for data in shared]
    writer = PackWriter(
        packs_in(tmp_path)._disk,
        Layout(str(tmp_path)),
        frame_bytes=9000,
        shared_bytes=1 << 20,
    )
    for data in objects:
        writer.add(hash_object(data), data)
    names = writer.finish()
    assert len(names) > 2
    packs = packs_in(tmp_path)
    assert packs.read_quickly([hash_object(o) for o in objects], 1 << 30) == objects

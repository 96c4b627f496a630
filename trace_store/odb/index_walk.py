"""A pack gone through with its index at hand, from any frame on, and compared with it."""

from __future__ import annotations

from trace_store.errors import CorruptObjectError
from trace_store.odb.deflate import Dictionary
from trace_store.odb.pack import DICTIONARY, NEEDS_DICTIONARY, SHORT_LINKS, split
from trace_store.odb.short_links import lengthen_by_ids
from trace_store.oid import OID_BYTES, joined_digests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.odb.pack import FramePlace, Pack
    from trace_store.odb.pack_index import PackIndex


def walk_by_index(
    pack: Pack, index: PackIndex, places: Sequence[FramePlace], frames: range
) -> Iterator[tuple[int, list[bytes], list[bytes]]]:
    """Yield (number of the first object, objects, their stored forms) of frames that are as the index says.

    A link leads to what stands before, so when all frames of a pack are as its index says, that says the truth: each
    id is the hash of its object, where links were followed through ids that are. So frames can be walked in any order.

    Args:
        pack: the pack.
        index: its index, all of which is held.
        places: where all frames of the pack are.
        frames: which of them to walk; dictionaries are passed over.

    Raises:
        CorruptObjectError: a frame is damaged, or holds other objects than the index says, or at other places.
        StorageError: the disk refuses.
    """
    first = sum(place.objects for place in places[: frames.start])
    dictionary: Dictionary | None = None
    for number in range(frames.start - 1, -1, -1):
        if places[number].sort == DICTIONARY:
            dictionary = Dictionary(pack.decode(places[number]))
            break
    for number in frames:
        place = places[number]
        if place.sort == DICTIONARY:
            dictionary = Dictionary(pack.decode(place))
            continue
        needs = place.sort & NEEDS_DICTIONARY
        if needs and dictionary is None:
            raise CorruptObjectError("the dictionary of a frame is absent")
        raw = pack.decode(place, dictionary if needs else None)
        forms: list[bytes] = []
        rows: list[tuple[int, int, int]] = []
        for offset, size in split(raw, place.objects):
            forms.append(raw[offset : offset + size])
            rows.append((number, offset, offset + size))
        objects, ordinals = forms, range(first, first + place.objects)
        if rows:
            rows[-1] = number, rows[-1][1], 0
        if place.sort & SHORT_LINKS:
            ids = index.ids
            objects = [
                lengthen_by_ids(form, ordinal, ids)
                for form, ordinal in zip(forms, ordinals, strict=True)
            ]
        told = index.ids[OID_BYTES * ordinals.start : OID_BYTES * ordinals.stop]
        if joined_digests(objects) != told or list(index.rows(ordinals)) != rows:
            raise CorruptObjectError("a frame holds other objects than its index says")
        yield first, objects, forms
        first = ordinals.stop

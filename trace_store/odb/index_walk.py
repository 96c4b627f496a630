"""A pack gone through with its index at hand, from any frame on, and compared with it."""

from __future__ import annotations

from trace_store import errors
from trace_store.odb.deflate import Dictionary
from trace_store.odb.pack import DICTIONARY, NEEDS_DICTIONARY, SHORT_LINKS, split
from trace_store.odb.pack_index import ROW
from trace_store.odb.short_links import lengthen_all
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
    for number in frames:
        place = places[number]
        if place.sort == DICTIONARY:
            dictionary = Dictionary(pack.decode(place))
            continue
        needs = place.sort & NEEDS_DICTIONARY
        if needs and dictionary is None:
            dictionary = _dictionary_before(pack, places, number)
        raw = pack.decode(place, dictionary if needs else None)
        stop = first + place.objects
        cuts = list(split(raw, place.objects))
        rows = b"".join([ROW.pack(offset, number) for offset, _ in cuts])
        forms = [raw[offset : offset + size] for offset, size in cuts]
        objects = forms
        if place.sort & SHORT_LINKS:
            objects = lengthen_all(forms, first, index.ids)
        told = index.ids[OID_BYTES * first : OID_BYTES * stop]
        if joined_digests(objects) != told or index.stored_rows(first, stop) != rows:
            raise errors.CorruptObjectError("a frame holds other objects than its index says")
        yield first, objects, forms
        first = stop


def _dictionary_before(pack: Pack, places: Sequence[FramePlace], frame: int) -> Dictionary:
    for place in reversed(places[:frame]):
        if place.sort == DICTIONARY:
            return Dictionary(pack.decode(place))
    raise errors.CorruptObjectError("the dictionary of a frame is absent")

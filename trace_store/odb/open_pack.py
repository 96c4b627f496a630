"""A pack that is being written, from its first byte to its index.

Rule: objects are numbered before their frame is compressed, and noted only when it is written; so a frame for which
there is no room has left no trace in the pack.
"""

from __future__ import annotations

from trace_store.odb.pack import (
    COUNTS,
    FRAME,
    HEADER,
    MAGIC,
    MAXIMUM_PACK_FRAMES,
    MAXIMUM_PACK_OBJECTS,
    MAXIMUM_PACK_RAW_BYTES,
    VERSION,
    FramePlace,
)
from trace_store.odb.pack_index import encode_index
from trace_store.odb.short_links import shorten
from trace_store.oid import Digester

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Sink(Protocol):
        """Where the bytes of one pack go."""

        def write(self, data: bytes, /) -> object: ...
        def complete(self, name: str, index: bytes, /) -> object:
            """Take note that the pack is written, with the index that belongs to it."""
            ...


class Frame:
    """Objects that will stand in one frame."""

    __slots__ = ("links", "objects", "size")

    def __init__(self, links: bool) -> None:
        self.links = links
        self.objects: list[tuple[bytes, bytes]] = []
        self.size = 0


class Planned:
    """A frame that is being compressed; without objects a dictionary.

    Attributes:
        frame: its objects.
        offsets: where they stand in its raw content.
        raw: how long that is.
        sort: what the pack says of it.
    """

    __slots__ = ("frame", "offsets", "raw", "sort")

    def __init__(self, frame: Frame | None, offsets: list[int], raw: int, sort: int) -> None:
        self.frame = frame
        self.offsets = offsets
        self.raw = raw
        self.sort = sort


class OpenPack:
    """A pack that is being written."""

    def __init__(self, sink: Sink, level: int, frame_bytes: int, shared_bytes: int) -> None:
        self.sink = sink
        self.size = 0
        self.raw_bytes = 0
        self.places: list[FramePlace] = []
        self._ids: list[bytes] = []
        self._rows: list[tuple[int, int]] = []
        self._numbered = 0
        self._targets: dict[bytes, int] = {}
        self._body = Digester()
        self._whole = Digester()
        self._write(HEADER.pack(MAGIC, VERSION, level, frame_bytes, shared_bytes))

    @property
    def object_count(self) -> int:
        """How many objects are in it."""
        return len(self._ids)

    def has_room(self, planned: Planned) -> bool:
        """Tell whether one more frame is within what a pack may hold."""
        return (
            self.raw_bytes + planned.raw <= MAXIMUM_PACK_RAW_BYTES
            and len(self._ids) + len(planned.offsets) <= MAXIMUM_PACK_OBJECTS
            and len(self.places) < MAXIMUM_PACK_FRAMES
        )

    def forms(self, frame: Frame) -> list[bytes]:
        """Number the objects of the next frame, and return them in the form in which they are stored.

        Links lead to objects of the same frame, or of one without links. So a damaged frame takes along what names its
        own objects, but not all that follows.
        """
        first = self._numbered
        self._numbered += len(frame.objects)
        if not frame.links:
            self._targets.update((oid, n) for n, (oid, _) in enumerate(frame.objects, first))
            return [data for _, data in frame.objects]
        forms = []
        near: dict[bytes, int] = {}
        for number, (oid, data) in enumerate(frame.objects, first):
            forms.append(shorten(data, number, near, self._targets))
            near[oid] = number
        return forms

    def write_frame(self, planned: Planned, body: bytes) -> None:
        """Write the next of the frames whose objects are numbered, or a dictionary between them."""
        objects = [] if planned.frame is None else planned.frame.objects
        self._write(FRAME.pack(len(body), planned.raw, len(objects), planned.sort))
        self._rows += [(len(self.places), offset) for offset in planned.offsets]
        self._ids += [oid for oid, _ in objects]
        self.places.append(
            FramePlace(self.size, len(body), planned.raw, len(objects), planned.sort)
        )
        self._write(body)
        self.raw_bytes += planned.raw

    def finish(self) -> tuple[str, bytes]:
        """Write end and trailer, and return name and index."""
        self._write(FRAME.pack(0, 0, 0, 0))
        self._write(COUNTS.pack(len(self.places), len(self._ids)))
        check = self._body.digest()
        self._write(check)
        name = self._whole.digest().hex()
        ids = b"".join(self._ids)
        return name, encode_index(ids, self._rows, self.places, self.size, check)

    def _write(self, data: bytes) -> None:
        self.sink.write(data)
        self._body.update(data)
        self._whole.update(data)
        self.size += len(data)

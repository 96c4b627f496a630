"""A file that is read twice: whether what is read again is as it was the first time.

Rule: holds a hash of each page and the bytes of one, never the file.
"""

from __future__ import annotations

from collections.abc import Callable

from trace_store.oid import digest

PAGE_BYTES = 1 << 20

ReadAt = Callable[[int, int], bytes]


class Pages:
    """The pages of a file that is read on from some place, and may change meanwhile.

    Attributes:
        start, end: what was read.
    """

    __slots__ = ("_digests", "_held", "_read_at", "end", "start")

    def __init__(self, read_at: ReadAt, start: int = 0) -> None:
        self._read_at = read_at
        self.start = self.end = start
        self._digests: list[bytes] = []
        self._held: tuple[int, bytes, bool] = (-1, b"", False)

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of the file; those that follow what was read, by whole pages, are noted."""
        data = self._read_at(offset, size)
        if offset == self.end and not (offset - self.start) % PAGE_BYTES:
            # A slice of all of it is the data itself.
            for at in range(0, len(data), PAGE_BYTES):
                self._digests.append(digest(data[at : at + PAGE_BYTES]))
            self.end += len(data)
        return data

    def covers(self, offset: int, size: int) -> bool:
        """Tell whether bytes are among those that were noted."""
        return self.start <= offset and offset + size <= self.end

    def again(self, offset: int, size: int) -> tuple[bytes, bool]:
        """Return bytes of the file as it is now, fewer only at its end, and whether they are known to be as read."""
        number = (offset - self.start) // PAGE_BYTES
        at = offset - self.start - number * PAGE_BYTES
        if self.covers(offset, size) and at + size <= PAGE_BYTES:
            page, same = self._page(number)
            return page[at : at + size], same
        pieces: list[bytes] = []
        known, stop = True, offset + size
        while offset < stop:
            piece, same = self._some(offset, stop)
            known = known and same
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
        return b"".join(pieces), known

    def _some(self, offset: int, stop: int) -> tuple[bytes, bool]:
        """Return some of the bytes between two places."""
        if offset < self.start:
            return self._read_at(offset, min(stop, self.start) - offset), False
        if offset >= self.end:
            return self._read_at(offset, stop - offset), False
        number, at = divmod(offset - self.start, PAGE_BYTES)
        page, same = self._page(number)
        return page[at : at + stop - offset], same

    def _page(self, number: int) -> tuple[bytes, bool]:
        if self._held[0] != number:
            begin = self.start + number * PAGE_BYTES
            page = self._read_at(begin, min(PAGE_BYTES, self.end - begin))
            self._held = (number, page, digest(page) == self._digests[number])
        return self._held[1], self._held[2]

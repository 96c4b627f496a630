"""Server-sent events, the form of a streamed answer.

Chunks may be split anywhere. Only the data of an event is used, since it repeats the event's name.
"""

from __future__ import annotations

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAXIMUM_EVENT_BYTES = 4 << 20
_MARK = b"\xef\xbb\xbf"


def events(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of each event that has some; an incomplete last event is dropped.

    Raises:
        ModelNonsenseError: it is not UTF-8, or an event is longer than MAXIMUM_EVENT_BYTES.
    """
    data: list[bytes] = []
    size = 0
    for line in _lines(chunks):
        if not line:
            if data:
                yield _text(b"\n".join(data))
            data, size = [], 0
            continue
        name, _, rest = line.partition(b":")
        if name != b"data":
            continue
        data.append(rest.removeprefix(b" "))
        size += len(rest)
        if size > MAXIMUM_EVENT_BYTES:
            raise errors.ModelNonsenseError("an event of the model's answer is too long")


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield complete lines without their ends, which are LF, CR LF or CR."""
    begun: list[bytes] = []
    size = 0
    first, after_return = True, False
    for chunk in chunks:
        if after_return and chunk:
            chunk, after_return = chunk.removeprefix(b"\n"), False
        after_return = after_return or chunk.endswith(b"\r")
        *whole, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            line = b"".join([*begun, line])
            yield line.removeprefix(_MARK) if first else line
            begun, size, first = [], 0, False
        begun.append(rest)
        size += len(rest)
        if size > MAXIMUM_EVENT_BYTES:
            raise errors.ModelNonsenseError("a line of the model's answer is too long")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise errors.ModelNonsenseError("the model's answer is not UTF-8") from None

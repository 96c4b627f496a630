"""The canonical bytes of objects: msgpack with exactly one encoding per value.

Rule: equal values have equal bytes, forever. Maps have sorted text keys. Integers and lengths take their shortest
form. There are no floats and no extension types, and text is strict UTF-8. An object is an array whose first element is
its kind. The encoding is described at https://github.com/msgpack/msgpack/blob/master/spec.md.

Decoding has limits, because the bytes may come from a stranger: 64 levels, 65,536 elements per container, 1,048,576 in
all, and 16 MiB per structured object.
"""

from __future__ import annotations

import sys

from trace_store import errors
from trace_store.base.oid import OID_BYTES, ObjectId
from trace_store.objects import mini_msgpack

MAXIMUM_DEPTH = 64
MAXIMUM_ELEMENTS = 65_536
MAXIMUM_TOTAL_ELEMENTS = 1 << 20
"""Map keys count, too. An element takes at least one byte in a file, and up to about 100 bytes in memory."""
MAXIMUM_STRUCTURE_BYTES = 16 * 1024 * 1024
MAXIMUM_BLOB_BYTES = 8 * 1024 * 1024
SALT_BYTES = 16

BLOB = "blob"
COMMIT = "commit"
TAG = "tag"
LIST = "list"
KINDS = (BLOB, COMMIT, TAG, LIST)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_BLOB_HEAD = b"\x92\xa4blob"
_SALTED_HEAD = b"\x93\xa4blob"
_LIST_HEAD = b"\x92\xa4list"
_LENGTHS = {0xC4: (1, 0), 0xC5: (2, 0x100), 0xC6: (4, 0x10000)}
"""By marker byte: the size of the length field, and the smallest length that needs it."""
SHORT_HEAD_LIMIT = 16
"""Containers with fewer elements have their count in the first byte."""
ARRAY16_LIMIT = 0x10000
"""Arrays with fewer elements have a two-byte count."""
SMALL_ARRAYS = tuple(bytes((0x90 | count,)) for count in range(SHORT_HEAD_LIMIT))
_CACHED_TEXTS = 512
_INTEGER_FLOOR = -(2**63)
_INTEGER_CEILING = 2**64 - 1
_CONTAINERS = frozenset({dict, list, tuple})
_PLAIN = frozenset({bytes, ObjectId, str, int, bool, type(None)})
"""Types that msgpack encodes in one way only; it rejects integers out of range."""


def encode(value: Any) -> bytes:
    """Return the canonical bytes of None, bool, int, str, bytes, lists and maps.

    Raises:
        InvalidInputError: the value has another type, lone surrogates, or nests too deeply.
    """
    return encode_ordered(ordered(value))


def ordered(value: Any) -> Any:
    """Return a value with sorted maps; the value itself if its maps are sorted already.

    Raises:
        InvalidInputError: as `encode`.
    """
    if type(value) in _CONTAINERS and _is_canonical_value(value):
        return value
    return _canonical(value, 0)


def encode_ordered(value: Any) -> bytes:
    """Like `encode`, for a valid value whose map keys are sorted.

    Raises:
        InvalidInputError: it has lone surrogates, or an integer out of range.
    """
    if "msgpack" not in sys.modules:
        try:
            return mini_msgpack.pack(value)
        except mini_msgpack.UnsureError:
            pass
    import msgpack  # slow to import; plumbing commands manage without

    try:
        return msgpack.packb(value, use_bin_type=True)  # type: ignore[no-any-return]
    except (UnicodeEncodeError, OverflowError) as error:
        raise errors.InvalidInputError(f"cannot be stored: {error}") from error


def encode_text(value: str) -> bytes:
    """Return the canonical bytes of a text.

    Raises:
        InvalidInputError: it has a lone surrogate.
    """
    try:
        data = value.encode()
    except UnicodeEncodeError as error:
        raise errors.InvalidInputError(f"cannot be stored: {error}") from error
    size = len(data)
    if size < 32:
        return b"%c%b" % (0xA0 | size, data)
    if size < 256:
        return b"\xd9%c%b" % (size, data)
    return encode_ordered(value)


class _TextCache(dict[str, bytes]):
    """A cache of encoded texts that recur: authors, models, tool names and refs."""

    def __missing__(self, value: str) -> bytes:
        if len(self) >= _CACHED_TEXTS:
            self.clear()
        data = self[value] = encode_text(value)
        return data


encoded_texts = _TextCache()


def array_head(count: int) -> bytes:
    """Return the header of an array with fewer than 65,536 elements."""
    return SMALL_ARRAYS[count] if count < SHORT_HEAD_LIMIT else b"\xdc" + count.to_bytes(2, "big")


def encode_integer(value: int) -> bytes:
    """Return the canonical bytes of an integer, usually a time or the number of a message.

    Raises:
        InvalidInputError: it is out of range.
    """
    if 0 <= value < 0x80:
        return bytes((value,))
    if 0xFFFF_FFFF < value <= 0xFFFF_FFFF_FFFF_FFFF:
        return b"\xcf" + value.to_bytes(8, "big")
    return encode_ordered(value)


def check_readable(value: Any, size: int) -> None:
    """Check that `decode` will accept a structured object of this size in bytes.

    Raises:
        InvalidInputError: it has too many elements or bytes.
    """
    if size <= MAXIMUM_ELEMENTS:
        return  # an element takes at least one byte
    if size > MAXIMUM_STRUCTURE_BYTES:
        raise errors.InvalidInputError(
            f"a commit, tag or list has {size:,} bytes, over the limit of {MAXIMUM_STRUCTURE_BYTES:,}",
            code=errors.ErrorCode.TOO_LARGE,
        )
    stack = [value]
    total = 0
    while stack:
        value = stack.pop()
        total += 2 * len(value) if isinstance(value, dict) else len(value)
        if total > MAXIMUM_TOTAL_ELEMENTS:
            raise errors.InvalidInputError(
                f"an object has more than {MAXIMUM_TOTAL_ELEMENTS:,} elements",
                code=errors.ErrorCode.TOO_LARGE,
            )
        if len(value) > MAXIMUM_ELEMENTS:
            raise errors.InvalidInputError(
                f"an array or map in an object has {len(value):,} elements, over the limit of {MAXIMUM_ELEMENTS:,}",
                code=errors.ErrorCode.TOO_LARGE,
            )
        inner = value.values() if isinstance(value, dict) else value
        stack.extend(item for item in inner if isinstance(item, dict | list | tuple))


def decode(data: bytes) -> list[Any]:
    """Decode a structured object to `[kind, …]`.

    Raises:
        CorruptObjectError: the bytes are not an object, or exceed a limit.
    """
    value = decode_checked(data)
    _check_nested(value)
    return value


def decode_checked(data: bytes) -> list[Any]:
    """Decode an object whose keys, depth and types were checked before; raises as `decode`."""
    if len(data) > MAXIMUM_STRUCTURE_BYTES and data[:6] not in (_BLOB_HEAD, _SALTED_HEAD):
        raise errors.CorruptObjectError(f"the object has {len(data)} bytes, over the limit")
    if has_too_many_elements(data):
        raise errors.CorruptObjectError(
            f"the object has more than {MAXIMUM_TOTAL_ELEMENTS:,} elements"
        )
    value = unpack_unchecked(data)
    if not isinstance(value, list) or not value or not isinstance(value[0], str):
        raise errors.CorruptObjectError("not an object: the first element is not a kind")
    return value


def has_too_many_elements(data: bytes | memoryview) -> bool:
    """Return True if msgpack bytes have too many elements, without unpacking them.

    Bytes that are not msgpack are not detected here.
    """
    size = len(data)
    if size <= MAXIMUM_TOTAL_ELEMENTS:
        return False
    skips = _skips()
    at = 0
    for _ in range(MAXIMUM_TOTAL_ELEMENTS + 1):
        if at >= size:
            return False
        # Skip the content; the elements of arrays and maps follow their header.
        skip = skips[data[at]]
        if skip < 0:
            skip = 1 - skip + int.from_bytes(data[at + 1 : at + 1 - skip], "big")
        at += skip
    return True


def _skips() -> list[int]:
    """Return, by first byte, the size of an element, or the negative size of its length field."""
    skips = [1] * 256
    for length in range(32):
        skips[0xA0 + length] = 1 + length
    for first, width in ((0xC4, 1), (0xC5, 2), (0xC6, 4), (0xD9, 1), (0xDA, 2), (0xDB, 4)):
        skips[first] = -width
    for first, fixed in (
        *((0xCA, 4), (0xCB, 8), (0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8)),
        *((0xD0, 1), (0xD1, 2), (0xD2, 4), (0xD3, 8), (0xDC, 2), (0xDD, 4), (0xDE, 2), (0xDF, 4)),
    ):
        skips[first] = 1 + fixed
    return skips


def unpack_unchecked(data: bytes) -> Any:
    """Decode msgpack with a limited number of elements in each container.

    The total number of elements, the nesting depth and the keys of maps are left to the caller.

    Raises:
        CorruptObjectError: the bytes are not msgpack, or exceed a limit.
    """
    small = _unpack_small(data)
    return _unpack_large(data) if small is None else small


def _unpack_small(data: bytes) -> Any:
    """Return what short data holds, without an import of msgpack; None if msgpack must decode it."""
    if "msgpack" in sys.modules:
        return None
    try:
        return mini_msgpack.unpack(data)
    except mini_msgpack.UnsureError:
        return None


def _unpack_large(data: bytes) -> Any:
    import msgpack

    try:
        return msgpack.unpackb(
            data,
            raw=False,
            strict_map_key=True,
            max_array_len=MAXIMUM_ELEMENTS,
            max_map_len=MAXIMUM_ELEMENTS,
            max_ext_len=0,
            ext_hook=_refuse_extension,
        )
    except Exception as error:  # msgpack raises various ValueErrors, and UnicodeDecodeError
        raise errors.CorruptObjectError(f"not a readable object: {type(error).__name__}") from error


def unpack(data: bytes) -> Any:
    """Decode a value that is not an object, with the limits of `decode`.

    It is not checked whether the bytes are canonical.

    Raises:
        CorruptObjectError: the bytes are unreadable, or exceed a limit.
    """
    return decode(b"\x92\xa1v" + data)[1]


def is_canonical(data: bytes) -> bool:
    """Return True if the bytes are the canonical encoding of an object.

    Raises:
        CorruptObjectError: they are not an object.
    """
    return inspect(data)[1]


def inspect(data: bytes) -> tuple[list[Any], bool, list[bytes]]:
    """Decode an object; also return whether its bytes are canonical, and the ids that it links to, without order.

    Raises:
        CorruptObjectError: as `decode`.
    """
    value = decode_checked(data)
    containers = _check_nested(value)
    links: list[bytes] = []
    is_sorted = True
    for container in containers:
        items = container
        if type(container) is dict:
            before = ""
            for key in container:
                if key < before:
                    is_sorted = False
                before = key
            items = container.values()
        for item in items:
            if type(item) is bytes and len(item) == OID_BYTES:
                links.append(item)
    return value, is_sorted and encode_ordered(value) == data, links


def kind_of(data: bytes) -> str:
    """Return an object's kind, read from its first bytes.

    Raises:
        CorruptObjectError: the bytes are not an object.
    """
    if len(data) > 2 and data[0] & 0xF0 == 0x90 and data[1] & 0xE0 == 0xA0:
        end = 2 + (data[1] & 0x1F)
        try:
            return str(data[2:end], "utf-8")
        except UnicodeDecodeError:
            pass
    raise errors.CorruptObjectError("not an object: it does not start with a kind")


def is_blob(data: bytes) -> bool:
    """Return True if an object is a blob, with or without a salt."""
    return data.startswith((_BLOB_HEAD, _SALTED_HEAD))


def is_content(data: bytes) -> bool:
    """Return True for a blob and for a list of the chunks of one content."""
    kind = kind_of(data)
    return kind == BLOB or (kind == LIST and bool(chunks_of(data)))


def chunks_of(data: bytes) -> list[ObjectId]:
    """Return the ids of the chunks in a chunk list; [] for any other object."""
    if not data.startswith(_LIST_HEAD):
        return []
    fields = decode(data)[1:2]
    if not fields or not isinstance(fields[0], dict) or fields[0].get("type") != "chunks":
        return []
    return links(data)


def encode_blob(content: bytes, salt: bytes | None = None) -> bytes:
    """Return the bytes of a blob.

    Args:
        content: at most 8 MiB; longer content is a list of blobs.
        salt: 16 bytes hashed with private content, so that the id cannot be used to guess it.

    Raises:
        InvalidInputError: content or salt has the wrong length.
    """
    size = len(content)
    if salt is None:
        if size < 0x100:
            return b"%b\xc4%c%b" % (_BLOB_HEAD, size, content)
        if size < 0x10000:
            return b"%b\xc5%b%b" % (_BLOB_HEAD, size.to_bytes(2, "big"), content)
    if size > MAXIMUM_BLOB_BYTES:
        raise errors.InvalidInputError(
            f"a blob has {size} bytes, over the limit of {MAXIMUM_BLOB_BYTES}"
        )
    head = _BLOB_HEAD if salt is None else _SALTED_HEAD
    if size < 0x100:
        head += bytes((0xC4, size))
    elif size < 0x10000:
        head += b"\xc5" + size.to_bytes(2, "big")
    else:
        head += b"\xc6" + size.to_bytes(4, "big")
    if salt is None:
        return head + content
    if len(salt) != SALT_BYTES:
        raise errors.InvalidInputError(f"a salt must have {SALT_BYTES} bytes, not {len(salt)}")
    return head + content + bytes((0xC4, SALT_BYTES)) + salt


def is_plain_blob(data: bytes) -> bool:
    """Return True if the bytes are a canonical blob without a salt."""
    if data[:6] != _BLOB_HEAD or len(data) < 8:
        return False
    width, least = _LENGTHS.get(data[6], (0, 0))
    size = int.from_bytes(data[7 : 7 + width], "big")
    return width > 0 and size >= least and 7 + width + size == len(data)


def is_salted_blob(data: bytes) -> bool:
    """Return True if the bytes are a blob with a salt."""
    return data[:6] == _SALTED_HEAD


def plain_blob_head(size: int) -> bytes:
    """Return the header of a canonical unsalted blob of `size` bytes in all.

    Any bytes of this size with this header are such a blob. If no such blob has this size, the result is longer than
    `size`, so that no data of this size starts with it.
    """
    for mark, (width, least) in _LENGTHS.items():
        content = size - len(_BLOB_HEAD) - 1 - width
        if least <= content < 1 << 8 * width:
            return _BLOB_HEAD + bytes((mark,)) + content.to_bytes(width, "big")
    return bytes(size + 1)


def blob_content(data: bytes) -> bytes:
    """Return the content of a blob.

    Raises:
        CorruptObjectError: the bytes are not a blob.
    """
    if data.startswith(_BLOB_HEAD) and len(data) > 7:
        width = _LENGTHS.get(data[6], (0, 0))[0]
        start = 7 + width
        if width and start + int.from_bytes(data[7:start], "big") == len(data):
            return data[start:]
    elif is_salted_blob(data):
        value = decode(data)
        if len(value) == 3 and isinstance(value[1], bytes) and isinstance(value[2], bytes):
            return value[1]
    raise errors.CorruptObjectError("not a blob")


def links(data: bytes) -> list[ObjectId]:
    """Return the ids that an object links to, in order, with duplicates.

    Every 32-byte `bin` in a structured object is a link, including those in unknown kinds and fields. Blobs have no
    links.

    Raises:
        CorruptObjectError: the bytes are not an object.
    """
    return [] if kind_of(data) == BLOB else links_within(decode(data))


def links_within(value: Any) -> list[ObjectId]:
    """Return the ids in a decoded value, in order, with duplicates."""
    ids: list[ObjectId] = []
    _add_links([value], ids)
    return ids


def _add_links(items: Iterable[Any], ids: list[ObjectId]) -> None:
    # Recursive, since a decoded value has few levels.
    for item in items:
        kind = type(item)
        if kind is bytes:
            if len(item) == OID_BYTES:
                ids.append(ObjectId(item))
        elif kind is list:
            _add_links(item, ids)
        elif kind is dict:
            _add_links(item.values(), ids)


def _is_canonical_value(value: Any) -> bool:
    """Return True if the value is canonical already, with sorted map keys."""
    level: list[Any] = [value]
    for _ in range(MAXIMUM_DEPTH + 1):
        below: list[Any] = []
        for container in level:
            items = container
            if type(container) is dict:
                before = ""
                for key in container:
                    # `<` suffices, since keys are unique. `before` starts empty, since the first key may be empty.
                    if type(key) is not str or key < before:
                        return False
                    before = key
                items = container.values()
            for item in items:
                kind = type(item)
                if kind in _CONTAINERS:
                    below.append(item)
                elif kind not in _PLAIN:
                    return False
        if not below:
            return True
        level = below
    return False


def _canonical(value: Any, depth: int) -> Any:
    if depth > MAXIMUM_DEPTH:
        raise errors.InvalidInputError(f"nested deeper than {MAXIMUM_DEPTH} levels")
    if value is None or value is True or value is False or isinstance(value, str | bytes):
        return value
    if isinstance(value, int):
        if not _INTEGER_FLOOR <= value <= _INTEGER_CEILING:
            raise errors.InvalidInputError(f"integer out of range: {value}")
        return value
    if isinstance(value, list | tuple):
        return [_canonical(item, depth + 1) for item in value]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise errors.InvalidInputError(f"map key is not text: {key!r}")
        # Code point order equals the order of the UTF-8 bytes.
        return {key: _canonical(value[key], depth + 1) for key in sorted(value)}
    raise errors.InvalidInputError(f"cannot be stored: {type(value).__name__}")


def _check_nested(value: list[Any]) -> list[Any]:
    """Check the keys, the depth and the types of a decoded value, and return its lists and maps."""
    found: list[Any] = [value]
    for container in found:  # grows while it is walked
        items = container
        if type(container) is dict:
            # msgpack accepts `bin` keys, where links would be missed.
            for key in container:
                if type(key) is not str:
                    raise errors.CorruptObjectError("an object has a key that is not text")
            items = container.values()
        for item in items:
            kind = type(item)
            if kind is dict or kind is list:
                found.append(item)
            elif kind is float:
                raise errors.CorruptObjectError("an object has a float")
    if len(found) > MAXIMUM_DEPTH:  # otherwise there are too few containers to nest so deeply
        _check_depth(value)
    return found


def _check_depth(value: list[Any]) -> None:
    level: list[Any] = [value]
    for _ in range(MAXIMUM_DEPTH + 1):
        inner = (each.values() if type(each) is dict else each for each in level)
        level = [each for items in inner for each in items if type(each) in _CONTAINERS]
        if not level:
            return
    raise errors.CorruptObjectError(f"nested deeper than {MAXIMUM_DEPTH} levels")


def _refuse_extension(code: int, data: bytes) -> Any:
    raise ValueError(f"extension type {code} of {len(data)} bytes")

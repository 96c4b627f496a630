"""The ways in which a text may stand in a file: what is searched for when it must be nowhere.

Rule: pure. A text that stands in none of these spellings is not found: cut in two, encrypted, or spelled by a rule of
somebody's own.
"""

from __future__ import annotations

from base64 import b64encode

from trace_store.objects.content import bytes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SHORTEST_BYTES = 6
"""A shorter text is in too many files by chance to be searched for."""
LONGEST_BYTES = 4096
"""Of a longer text three pieces are searched for: from its beginning, its middle and its end."""
_PIECE_BYTES = 256
_URL_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

SPELLINGS = (
    "as it is, in UTF-8",
    "within a JSON string, and within a JSON string in one, with and without escapes for what is not ASCII",
    "in base64, standing anywhere in what is encoded, in both alphabets",
    "in UTF-16, of both byte orders",
    "in hexadecimal digits, of either case",
    "percent-encoded, as in a URL",
)
"""What `spellings` knows, in words."""


def spellings(content: bytes) -> set[bytes]:
    """Return the bytes that stand for a content in its different spellings; those of text only when it is text."""
    found = {content, content.hex().encode(), content.hex().upper().encode()}
    for shift in range(3):
        encoded = b64encode(bytes(shift) + content)
        # The first and last characters also hold bits of what stands before and behind.
        first, last = (0, 2, 3)[shift], -4 if (shift + len(content)) % 3 else len(encoded)
        core = encoded[first:last]
        found |= {core, core.translate(bytes.maketrans(b"+/", b"-_"))}
    found.add(b"".join(b"%c" % c if c in _URL_SAFE else b"%%%02X" % c for c in content))
    try:
        text = content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return _long_enough(found)
    import json  # late, as in all that plumbing may load

    for ascii_only in (False, True):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        found |= {bytes_of(once), bytes_of(json.dumps(once, ensure_ascii=ascii_only)[1:-1])}
    for encoding in ("utf-16-le", "utf-16-be"):
        found.add(text.encode(encoding, "surrogatepass"))
    return _long_enough(found)


def pieces(content: bytes) -> list[bytes]:
    """Return what of a content is searched for: all of it, three pieces of a long one, nothing of a short one."""
    if len(content) < SHORTEST_BYTES:
        return []
    if len(content) <= LONGEST_BYTES:
        return [content]
    middle = len(content) // 2
    return [
        content[:_PIECE_BYTES].decode("utf-8", "ignore").encode() or content[:_PIECE_BYTES],
        content[middle : middle + _PIECE_BYTES],
        content[-_PIECE_BYTES:],
    ]


class Needles:
    """Bytes to be searched for, with the names under which they are told."""

    __slots__ = ("_by_name",)

    def __init__(self, contents: Iterable[tuple[str, bytes]] = ()) -> None:
        """Prepare (name, content) pairs; each content is searched for in all its spellings."""
        self._by_name: dict[str, set[bytes]] = {}
        for name, content in contents:
            self.add(name, content)

    def __len__(self) -> int:
        return len(self._by_name)

    def add(self, name: str, content: bytes) -> bool:
        """Search for one more content; False when it is too short to be searched for."""
        found = pieces(content)
        for piece in found:
            self._by_name.setdefault(name, set()).update(spellings(piece))
        return bool(found)

    def find(self, data: bytes) -> list[str]:
        """Return the names of those that stand in some bytes."""
        return [n for n, forms in self._by_name.items() if any(form in data for form in forms)]

    def forms(self) -> set[bytes]:
        """Return all bytes that are searched for."""
        return set().union(*self._by_name.values())

    def without(self, data: bytes, instead: bytes) -> bytes:
        """Return bytes in which something else stands for whatever would be found."""
        for forms in self._by_name.values():
            for form in sorted(forms, key=len, reverse=True):
                data = data.replace(form, instead)
        return data


def _long_enough(found: set[bytes]) -> set[bytes]:
    return {form for form in found if len(form) >= SHORTEST_BYTES}

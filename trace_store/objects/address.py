"""Addresses: the id that a message keeps for ever.

A message is born in one commit, as number n of the messages that the commit adds. Its address is the first 16 bytes of
that commit's id, and n, whatever commits carry it elsewhere afterwards.

Rule: 16 bytes are no link to an object (only 32 are), so the commit in which a message was born may be pruned.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.ident import count_of, is_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    Parts: TypeAlias = Sequence[Mapping[str, Any]]

BIRTH_BYTES = 16
HERE = b""
"""The birth of a message of the commit that is being made, or of the commit in which the address stands."""
_SHORT = 12
RESULT = "tool_result"
"""The type of parts that name the message with their call."""
_HEX = frozenset("0123456789abcdef")


class Address(tuple[bytes, int]):
    """The id of a message: (birth, number). It compares, sorts and unpacks as that pair."""

    __slots__ = ()

    def __new__(cls, birth: bytes, number: int) -> Address:
        """Return the address of a message by the first bytes of the commit that it was born in, and its number."""
        return tuple.__new__(cls, (birth, number))

    @classmethod
    def of(cls, oid: bytes, number: int) -> Address:
        """Return the address of a message that is born in a commit, given the whole id of that."""
        return tuple.__new__(cls, (bytes(oid[:BIRTH_BYTES]), number))

    @classmethod
    def parse(cls, text: str) -> Address:
        """Return the address that a text names in full: 32 hex digits, a point and a number.

        Raises:
            InvalidInputError: it does not.
        """
        digits, _dot, number = text.rpartition(".")
        if len(digits) != 2 * BIRTH_BYTES or not _HEX.issuperset(digits) or not is_count(number):
            raise not_an_address(text)
        return cls(bytes.fromhex(digits), count_of(number))

    @property
    def birth(self) -> bytes:
        """The first 16 bytes of the id of the commit that it was born in; HERE for one that is being made."""
        return self[0]

    @property
    def number(self) -> int:
        """Its number among the messages that this commit adds."""
        return self[1]

    @property
    def hex(self) -> str:
        """The address in full, as `parse` takes it."""
        return f"{self[0].hex()}.{self[1]}"

    def short(self, digits: int = _SHORT) -> str:
        """Return the address as it is shown, with so many hex digits."""
        return f"{self[0].hex()[:digits] or 'this'}.{self[1]}"

    def __str__(self) -> str:
        return self.short()

    def __repr__(self) -> str:
        return f"Address({self.short()})"

    def __getnewargs__(self) -> tuple[bytes, int]:
        return (self[0], self[1])


def not_an_address(text: object) -> errors.InvalidInputError:
    """Return the error for what is no address of a message."""
    return errors.InvalidInputError(
        f"not the address of a message: {str(text)[:80]!r}",
        code=errors.ErrorCode.INVALID_ADDRESS,
    )


def read_address(stored: Any, oid: bytes) -> Address:
    """Return a stored address, `[birth, n]`, that stands in a commit with this id (or HERE)."""
    birth, number = stored
    return Address(bytes(birth), number) if birth else Address.of(oid, number)


def read_addresses(stored: Iterable[Any], oid: bytes) -> list[Address]:
    """Return stored addresses, as `read_address` does."""
    return [read_address(each, oid) for each in stored]


def absolute(parts: Parts, oid: bytes) -> Parts:
    """Return stored parts whose results name their calls by whole addresses, given the commit in which they stand."""
    for part in parts:
        if part["type"] == RESULT and "call" in part and not part["call"][0]:
            break
    else:
        return parts
    return [
        {**part, "call": list(read_address(part["call"], oid))} if "call" in part else part
        for part in parts
    ]

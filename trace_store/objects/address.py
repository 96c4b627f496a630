"""Addresses: permanent ids of messages, and their form in JSON.

A message is born in one commit, as number n of the messages that the commit adds. Its address is the first 16 bytes of
that commit's id, and n. It stays the same when other commits carry the message elsewhere.

Rule: 16 bytes are not a link (only 32 are), so the birth commit may be pruned.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.ident import count_of, is_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    Parts: TypeAlias = Sequence[Mapping[str, Any]]

BIRTH_BYTES = 16
HERE = b""
"""The birth of a message in the commit being created, or in the commit that contains the address."""
_SHORT = 12
RESULT = "tool_result"
"""The type of parts that name the message with their call."""
_HEX = frozenset("0123456789abcdef")


class Address(tuple[bytes, int]):
    """A message id (birth, number), which compares, sorts and unpacks as that pair."""

    __slots__ = ()

    def __new__(cls, birth: bytes, number: int) -> Address:
        """Create an address from the first bytes of the birth commit's id, and the number."""
        return tuple.__new__(cls, (birth, number))

    @classmethod
    def of(cls, oid: bytes, number: int) -> Address:
        """Return the address of a message, given the whole id of its birth commit."""
        return tuple.__new__(cls, (bytes(oid[:BIRTH_BYTES]), number))

    @classmethod
    def parse(cls, text: str) -> Address:
        """Parse a full address: 32 hex digits, a dot and a number.

        Raises:
            InvalidInputError: the text is anything else.
        """
        digits, _dot, number = text.rpartition(".")
        if len(digits) != 2 * BIRTH_BYTES or not _HEX.issuperset(digits) or not is_count(number):
            raise not_an_address(text)
        return cls(bytes.fromhex(digits), count_of(number))

    @property
    def birth(self) -> bytes:
        """The first 16 bytes of the birth commit's id; HERE for a commit being created."""
        return self[0]

    @property
    def number(self) -> int:
        """The message's number among those that the birth commit adds."""
        return self[1]

    @property
    def hex(self) -> str:
        """The full address, as `parse` takes it."""
        return f"{self[0].hex()}.{self[1]}"

    def short(self, digits: int = _SHORT) -> str:
        """Return the address with this many hex digits."""
        return f"{self[0].hex()[:digits] or 'this'}.{self[1]}"

    def __str__(self) -> str:
        return self.short()

    def __repr__(self) -> str:
        return f"Address({self.short()})"

    def __getnewargs__(self) -> tuple[bytes, int]:
        return (self[0], self[1])


def not_an_address(text: object) -> errors.InvalidInputError:
    """Return the error for an invalid message address."""
    return errors.InvalidInputError(
        f"not a message address: {str(text)[:80]!r}",
        code=errors.ErrorCode.INVALID_ADDRESS,
    )


def read_address(stored: Any, oid: bytes) -> Address:
    """Return a stored address `[birth, n]` of the commit `oid` (or HERE)."""
    birth, number = stored
    return Address(bytes(birth), number) if birth else Address.of(oid, number)


def read_addresses(stored: Iterable[Any], oid: bytes) -> list[Address]:
    """Return stored addresses; see `read_address`."""
    return [read_address(each, oid) for each in stored]


def resolve_calls(parts: Parts, oid: bytes) -> Parts:
    """Return stored parts whose results name their calls by full addresses.

    `oid` is the commit that contains the parts.
    """
    for part in parts:
        if part["type"] == RESULT and "call" in part and not part["call"][0]:
            break
    else:
        return parts
    return [
        {**part, "call": list(read_address(part["call"], oid))} if "call" in part else part
        for part in parts
    ]

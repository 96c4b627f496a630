"""Ranges of a context: the messages that a range names, and the originals behind a summary.

    A..B     messages in the context at commit B but not at commit A
    A        the context at commit A
    X..Y     from message X to message Y, in the order of the context
    X        message X

A side that is a commit and one that is a message can be combined. An empty side is the start or the end of the context.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.context.content import are_private
from trace_store.context.fold import REPLACED
from trace_store.context.snapshots import fold_of
from trace_store.objects import operations as ops
from trace_store.objects.address import Address, read_addresses
from trace_store.objects.codec import encode
from trace_store.objects.commit import read_commit
from trace_store.store import revision as revisions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trace_store.context.fold import Entry, Fold
    from trace_store.objects.commit import Operation
    from trace_store.store.store import Store

COMPRESSION = "compression"
UNREAD = "not shown to a model yet"
"""Reason to keep messages that arrived after the model's last answer."""
SUMMARY_REASONS = (COMPRESSION, "compaction", "merge")
"""Reasons of a `replace` whose messages are summaries."""
_REPLACES = encode(ops.REPLACE)
"""Bytes that stand in each commit with a `replace`."""


@value
class Origin:
    """The origin of a message that replaced others.

    Attributes:
        commit: the commit that replaced them.
        operation: its `replace`.
        messages: all messages that the operation added.
        targets: the messages that it replaced.
        sources: the messages that the new ones were written from.
    """

    commit: ObjectId
    operation: Operation
    messages: tuple[Address, ...]
    targets: tuple[Address, ...]
    sources: tuple[Address, ...]

    @property
    def is_summary(self) -> bool:
        """Whether the messages sum up their sources."""
        return self.operation.fields.get("reason") in SUMMARY_REASONS


def unread_from(roles: Sequence[str]) -> int:
    """Return the position of the first unread message, after the model's last answer; the end if all are read.

    Args:
        roles: the role of each visible message, in order.
    """
    last = max((at for at, role in enumerate(roles) if role == "assistant"), default=-1)
    return last + 1


def select(store: Store, tip: ObjectId, state: Fold, text: str) -> set[Address]:
    """Return the visible messages of a context that a range names; "" names all.

    Args:
        store: the store.
        tip: the commit of the context.
        state: the fold there.
        text: the range.

    Raises:
        InvalidInputError: the range is malformed, or names no message of the context.
        RevisionNotFoundError, AmbiguousRevisionError, MessageNotFoundError: a side of it does not exist.
    """
    visible = {entry.address for entry in state.visible()}
    if not text:
        return visible
    if "..." in text:
        raise errors.InvalidInputError("a symmetric range names no part of a context; use A..B")
    left, dots, right = text.partition("..")
    first, last = _side(store, left), _side(store, right)
    if dots:
        found = _up_to(store, tip, state, last) - _before(store, state, first)
    else:
        assert first is not None
        found = {first} if isinstance(first, Address) else _context(store, first)
    found &= visible
    if not found:
        raise errors.InvalidInputError(f"{text[:120]} names no message that the context shows")
    return found


def _side(store: Store, text: str) -> Address | ObjectId | None:
    if not text:
        return None
    try:
        return revisions.resolve_commit(store, text)
    except errors.RevisionNotFoundError:
        if not text.rpartition(".")[2].isdecimal():
            raise
        return revisions.resolve_address(store, text)


def _context(store: Store, commit: ObjectId) -> set[Address]:
    return {entry.address for entry in fold_of(store, commit).visible()}


def _up_to(store: Store, tip: ObjectId, state: Fold, last: object) -> set[Address]:
    if isinstance(last, Address):
        return {each.address for each in state.entries[: _position(state, last) + 1]}
    if last is None or last == tip:
        return set(state.addresses())  # `select` leaves out hidden ones
    assert isinstance(last, ObjectId)
    return _context(store, last)


def _before(store: Store, state: Fold, first: object) -> set[Address]:
    if isinstance(first, Address):
        return {each.address for each in state.entries[: _position(state, first)]}
    if isinstance(first, ObjectId):
        return _context(store, first)
    return set()


def _position(state: Fold, address: Address) -> int:
    return state.entries.index(state.entry(address))


class Origins:
    """The origins of a context's messages; each commit is read at most once."""

    def __init__(self, store: Store, state: Fold) -> None:
        self.state = state
        self._store = store
        self._of_commits: dict[bytes, list[Origin]] = {}

    def of(self, address: Address) -> Origin | None:
        """Return the origin of a message that replaced now-hidden ones; None for others.

        Raises:
            MessageNotFoundError: the context does not hold the message.
            CorruptObjectError: its commit is damaged.
        """
        entry = self.state.entry(address)
        if address.birth not in self._of_commits:
            self._of_commits[address.birth] = self._read(entry)
        for origin in self._of_commits[address.birth]:
            if address in origin.messages:
                return origin if self.hidden(origin.sources) else None
        return None

    def is_summary(self, address: Address) -> bool:
        """Return True if a message is a summary whose sources are hidden; raises as `of`."""
        origin = self.of(address)
        return origin is not None and origin.is_summary

    def originals(self, address: Address) -> tuple[Address, ...]:
        """Return the originals behind a summary, at every level; else the message itself. Raises as `of`."""
        found: dict[Address, None] = {}
        pending, seen = [address], {address}
        while pending:
            each = pending.pop()
            origin = self.of(each)
            if origin is None or not origin.is_summary:
                found[each] = None
                continue
            new = [a for a in self.hidden(origin.sources) if a not in seen]
            seen.update(new)
            pending += reversed(new)
        return tuple(found)

    def hidden(self, addresses: Iterable[Address]) -> list[Address]:
        """Return those of some messages that a replacement hides."""
        state = self.state
        return [a for a in addresses if a in state and state.entry(a).hidden == REPLACED]

    def _read(self, entry: Entry) -> list[Origin]:
        """Return the origins of all messages that were born with one."""
        read = self._store.objects.read
        try:
            oid = _birth(self._store, entry)
            if _REPLACES not in read(oid):  # most commits only append, and decoding takes long
                return []
            operations = read_commit(oid, read).operations
        except errors.NotFoundError:
            return []  # the birth commit was pruned, and its sources with it
        found: list[Origin] = []
        number = 0
        for operation in operations:
            count = ops.message_count(operation)
            if operation.name == ops.REPLACE:
                messages = tuple(
                    ops.address_of(stored, oid, number + n)
                    for n, stored in enumerate(operation.fields["messages"])
                )
                targets = tuple(read_addresses(operation.fields["targets"], oid))
                sources = tuple(read_addresses(operation.fields.get("sources", ()), oid)) or targets
                found.append(Origin(oid, operation, messages, targets, sources))
            number += count
        return found


def is_private(store: Store, state: Fold, addresses: Iterable[Address]) -> bool:
    """Return True if content that is written from some messages is private, because one of them is."""
    read = store.objects.read
    return any(are_private(state.entry(each).parts, read) for each in addresses)


def _birth(store: Store, entry: Entry) -> ObjectId:
    birth = entry.address.birth
    if entry.home[0].startswith(birth):  # else a merge or pick carried it here
        return ObjectId(entry.home[0])
    return revisions.resolve_commit(store, birth.hex())

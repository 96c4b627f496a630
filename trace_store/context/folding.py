"""The fold: operations in, the state of every message out.

Rule: the context of a commit is the fold of operations along first parents. No entry is ever dropped: a hidden message
stays at its place, so that it can be shown again. An operation may name any entry of its fold, and nothing else.
"""

from __future__ import annotations

from trace_store import errors, objects
from trace_store.context.message_entries import (
    REMOVED,
    REPLACED,
    Address,
    Entry,
    Place,
    Version,
)
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, Operation
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence, Set
    from typing import Any, TypeAlias

    Narrow: TypeAlias = Callable[["Fold", Operation, bytes], Operation | None]


FEW = 3
"""Entries that are looked for one by one; more are found in one walk."""


class Fold:
    """The state after a commit: entries in their order, and the tool schemas in force.

    Folds that were copied share their entries until one of them is changed, so entries change through `apply` alone.

    Attributes:
        entries: every message, visible or hidden, in order.
        tools: ids of the schema blobs; `tools_commit` is the commit that set them, or None.
        measured: the last commit with a report that measures its context, and the `tools_commit` there; or None.
    """

    __slots__ = ("_by_address", "_own", "entries", "measured", "tools", "tools_commit")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.tools: tuple[bytes, ...] = ()
        self.tools_commit: bytes | None = None
        self.measured: tuple[bytes, bytes | None] | None = None
        self._by_address: dict[Address, Entry] = {}
        self._own: set[Address] | None = None  # entries that may change here; None for all

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Fold:
        """Return a fold that holds some entries, in their order; who gave them must not change them any more."""
        made = cls()
        made.entries = list(entries)
        made._by_address = {entry.address: entry for entry in made.entries}
        return made

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, address: Address) -> bool:
        return address in self._by_address

    def visible(self) -> Iterator[Entry]:
        """Yield the entries that take part in the compiled context."""
        return (entry for entry in self.entries if entry.visible)

    def entry(self, address: Address) -> Entry:
        """Return the entry at an address.

        Raises:
            MessageNotFoundError: the fold has no such message.
        """
        try:
            return self._by_address[address]
        except KeyError:
            raise errors.MessageNotFoundError(
                f"this context has no message {_show(address)}",
                address=(ObjectId(address[0]), address[1]) if address[0] else address,
            ) from None

    def addresses(self) -> Set[Address]:
        """Return the addresses of all messages."""
        return self._by_address.keys()

    def copy(self) -> Fold:
        """Return a fold that changes independently."""
        other = Fold()
        other.entries = self.entries.copy()
        other._by_address = self._by_address.copy()
        other.tools = self.tools
        other.tools_commit = self.tools_commit
        other.measured = self.measured
        self._own, other._own = set(), set()
        return other

    def apply(
        self,
        oid: bytes,
        commit: Commit,
        others: Sequence[Fold | None] = (),
        narrow: Narrow | None = None,
    ) -> None:
        """Apply a commit's operations.

        Args:
            oid: the commit's id, or HERE while it is being made.
            commit: the commit.
            others: the folds of its parents, by place; only those that an `include` names are looked at.
            narrow: gives of an operation, (fold, operation, id of its commit), what is to be applied, or None;
                where a fold holds only a part of a context.

        Raises:
            InvalidOperationError: an operation names what its fold does not hold.
            UnsupportedFormatError: an operation is unknown to this version.
            CorruptObjectError: an operation's fields are damaged.
        """
        created = 0
        version = sum(ops.message_count(operation) for operation in commit.operations)
        for operation in commit.operations:
            try:
                apply_one = _APPLY[operation.name]
            except KeyError:
                raise errors.UnsupportedFormatError(
                    f"commit {ObjectId(oid).short()} holds the operation {operation.name[:40]!r}, "
                    "which this version does not know",
                    required=f"operation:{operation.name}",
                ) from None
            try:
                narrowed = operation if narrow is None else narrow(self, operation, oid)
                if narrowed is not None:
                    apply_one(self, narrowed, _Making(oid, created, version, others))
            except errors.MessageNotFoundError as error:
                raise errors.InvalidOperationError(
                    f"{operation.name}: {error.message}", address=error.address
                ) from error
            except (KeyError, TypeError, AttributeError, IndexError) as error:
                raise errors.CorruptObjectError(
                    f"commit {ObjectId(oid).short()}: the operation {operation.name} is damaged"
                ) from error
            created += ops.message_count(operation)
            version += operation.name == ops.EDIT
        if is_measured(commit):
            self.measured = oid, self.tools_commit

    def _add(self, entry: Entry, at: int) -> None:
        self.entries.insert(at, entry)
        self._by_address[entry.address] = entry
        if self._own is not None:
            self._own.add(entry.address)

    def _to_change(self, addresses: Sequence[Address]) -> list[Entry]:
        """Return entries that no other fold holds any more."""
        found = [self.entry(address) for address in addresses]
        if self._own is None:
            return found
        shared = {entry.address: entry for entry in found if entry.address not in self._own}
        if len(shared) > FEW:
            places = [at for at, each in enumerate(self.entries) if each.address in shared]
        else:
            places = [self.entries.index(entry) for entry in shared.values()]
        for at in places:
            entry = self.entries[at] = self.entries[at].copy()
            self._by_address[entry.address] = entry
        self._own |= shared.keys()
        return [self._by_address[address] for address in addresses]

    def _index(self, address: Address) -> int:
        return self.entries.index(self.entry(address))


class _Making:
    """What an operation must know of its commit: id, numbers of its first message and version, parents' folds."""

    __slots__ = ("created", "oid", "others", "version")

    def __init__(
        self, oid: bytes, created: int, version: int, others: Sequence[Fold | None]
    ) -> None:
        self.oid = oid
        self.created = created
        self.version = version
        self.others = others

    def address(self, target: Sequence[Any]) -> Address:
        commit, number = target
        return (bytes(commit) or self.oid, number)

    def addresses(self, operation: Operation) -> list[Address]:
        return [self.address(target) for target in operation.fields["targets"]]

    def entries(self, operation: Operation) -> list[Entry]:
        return [
            Entry((self.oid, self.created + i), message)
            for i, message in enumerate(operation.fields["messages"])
        ]


def is_append_only(commit: Commit) -> bool:
    """Tell whether a commit leaves all earlier messages as they are, so that it only adds at the end."""
    return all(operation.name in ops.ADDS_AT_END for operation in commit.operations)


def is_measured(commit: Commit) -> bool:
    """Tell whether a commit has a report that measures its context."""
    reports = any(operation.name == ops.USAGE for operation in commit.operations)
    return reports and objects.report_of(commit) is not None


def _append(state: Fold, operation: Operation, making: _Making) -> None:
    for entry in making.entries(operation):
        state._add(entry, len(state.entries))


def _include(state: Fold, operation: Operation, making: _Making) -> None:
    number = operation.fields["parent"]
    other = making.others[number] if 0 < number < len(making.others) else None
    if other is None:
        raise errors.InvalidOperationError(f"include: the commit has no parent {number}")
    after = operation.fields.get("after")
    at = state._index(making.address(after)) + 1 if after is not None else len(state.entries)
    for address in making.addresses(operation):
        theirs = other.entry(address)
        if address in state._by_address:
            continue  # including twice is one message
        state._add(theirs.copy(), at)
        at += 1


def _edit(state: Fold, operation: Operation, making: _Making) -> None:
    (entry,) = state._to_change([making.address(operation.fields["target"])])
    entry.reword(operation.fields["parts"], (making.oid, making.version))


def _annotate(state: Fold, operation: Operation, making: _Making) -> None:
    fields = operation.fields
    for entry in state._to_change(making.addresses(operation)):
        entry.priority = fields.get("priority", entry.priority)
        if entry.priority not in ops.PRIORITIES:
            raise errors.UnsupportedFormatError(
                f"unknown priority {entry.priority!r}", required=f"priority:{entry.priority}"
            )
        if "keep" in fields:
            entry.keep = tuple(fields["keep"])
        entry.labels = (entry.labels | set(fields.get("labels", ()))) - set(
            fields.get("unlabels", ())
        )


def _remove(state: Fold, operation: Operation, making: _Making) -> None:
    for entry in state._to_change(making.addresses(operation)):
        entry.hidden = REMOVED
        entry.ghost = bool(operation.fields.get("ghost", False))


def _restore(state: Fold, operation: Operation, making: _Making) -> None:
    version = operation.fields.get("version")
    for entry in state._to_change(making.addresses(operation)):
        if version is not None:
            if not 0 <= version < len(entry.versions):
                raise errors.InvalidOperationError(
                    f"message {_show(entry.address)} has {len(entry.versions)} versions, "
                    f"none numbered {version}"
                )
            entry.current = version
        entry.hidden = ""
        entry.ghost = False


def _replace(state: Fold, operation: Operation, making: _Making) -> None:
    targets = {id(entry) for entry in state._to_change(making.addresses(operation))}
    at = len(state.entries)
    for i, entry in enumerate(state.entries):
        if id(entry) in targets:
            at = min(at, i)
            entry.hidden = REPLACED
            entry.ghost = False
    for entry in making.entries(operation):
        state._add(entry, at)
        at += 1


def _move(state: Fold, operation: Operation, making: _Making) -> None:
    moved = list(dict.fromkeys(map(state.entry, making.addresses(operation))))
    after = operation.fields.get("after")
    neighbour = None if after is None else state.entry(making.address(after))
    if neighbour is not None and any(entry is neighbour for entry in moved):
        raise errors.InvalidOperationError("move: a message cannot be placed after itself")
    names = {entry.address for entry in moved}
    rest = [entry for entry in state.entries if entry.address not in names]
    at = 0 if neighbour is None else rest.index(neighbour) + 1
    state.entries[:] = [*rest[:at], *moved, *rest[at:]]


def _tools(state: Fold, operation: Operation, making: _Making) -> None:
    state.tools = tuple(operation.fields["schemas"])
    state.tools_commit = making.oid


def _usage(state: Fold, operation: Operation, making: _Making) -> None:
    """What a provider reported changes no message, and neither do facts and settings."""


def _show(address: Address) -> str:
    commit, number = address
    return f"{ObjectId(commit).short() or 'HERE'}.{number}"


_APPLY: dict[str, Callable[[Fold, Operation, _Making], None]] = {
    ops.APPEND: _append,
    ops.INCLUDE: _include,
    ops.EDIT: _edit,
    ops.ANNOTATE: _annotate,
    ops.REMOVE: _remove,
    ops.RESTORE: _restore,
    ops.REPLACE: _replace,
    ops.MOVE: _move,
    ops.TOOLS: _tools,
    ops.USAGE: _usage,
    ops.CONFIG: _usage,
}

__all__ = [
    "REMOVED",
    "REPLACED",
    "Address",
    "Entry",
    "Fold",
    "Place",
    "Version",
    "is_append_only",
    "is_measured",
]

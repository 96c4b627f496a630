"""The fold, the only interpreter of operations: it computes the state at a commit.

The context of a commit is the fold of operations along first parents. Entries are never dropped: a hidden message keeps
its position, so that it can be restored. The `target`, `targets` and `after` of an operation must be entries of the
fold, which may be hidden. Snapshots and compile indexes only cache its results.

A call and its results are a unit. They are hidden, skipped, pinned, replaced and moved together, and a message that
joins a unit later takes over its state.
"""

from __future__ import annotations

import struct

from trace_store import errors, objects
from trace_store.base.oid import ObjectId
from trace_store.objects import operations as ops
from trace_store.objects.address import RESULT, Address, read_address, resolve_calls
from trace_store.objects.commit import Commit, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence, Set
    from typing import Any, TypeAlias, TypeVar

    Answer = TypeVar("Answer")
    Stored: TypeAlias = ops.Stored
    Parts: TypeAlias = Sequence[Stored]
    ReadCommit: TypeAlias = Callable[[bytes], Commit]


_KEY = struct.Struct("<16sI32sI32sI")
Place = tuple[bytes, int]
"""The id of a commit, and the number of a message or version in that commit."""

REMOVED = "removed"
REPLACED = "replaced"
_HIDDEN = ("", REMOVED, REPLACED)
_GHOST, _MARKED, _EDITED = 4, 64, 128
_PRIORITY_AT = 4
STATES = {
    hidden | ghost | priority << _PRIORITY_AT | more: (
        *(_HIDDEN[hidden], bool(ghost), ops.PRIORITIES[priority]),
    )
    for hidden in range(len(_HIDDEN))
    for ghost in (0, _GHOST)
    for priority in range(len(ops.PRIORITIES))
    for more in (0, _MARKED, _EDITED, _MARKED | _EDITED)
}
"""For each value of `Entry.state`: (hidden, ghost, priority)."""


class Version:
    """One version of a message.

    Attributes:
        parts: in stored form, with full addresses in results.
        place: (commit id, number among all versions in the commit).
    """

    __slots__ = ("parts", "place")

    def __init__(self, parts: Parts, place: Place) -> None:
        self.parts = parts
        self.place = place


class Entry:
    """One message of a fold, with the effects of all operations.

    Attributes:
        address: its id.
        message: its stored form as created; the current content is `parts`.
        home: (id of the commit that contains the message, as new or carried; number among the messages that the commit
            adds).
        versions: its versions, oldest first; `current` is the index of the current one.
        hidden: "" if it is in the context, else REMOVED or REPLACED.
        ghost: whether a removed message leaves a short placeholder.
        priority, labels, keep: as annotated; `keep` holds the blobs of must-keep patterns.
    """

    __slots__ = (
        "address",
        "current",
        "ghost",
        "hidden",
        "home",
        "keep",
        "labels",
        "message",
        "priority",
        "versions",
    )

    def __init__(self, address: Address, message: Stored, home: Place, place: Place) -> None:
        """Create the entry of a new message; `place` is the place of its first version."""
        self.address = address
        self.message = message
        self.home = home
        self.versions = [Version(message["parts"], place)]
        self.current = 0
        self.hidden = ""
        self.ghost = False
        self.priority = ops.NORMAL
        self.labels: frozenset[str] = frozenset()
        self.keep: tuple[bytes, ...] = ()

    @classmethod
    def read(cls, stored: Stored, oid: bytes, number: int, version_number: int) -> Entry:
        """Return the entry of a message in a commit, new or carried with its state.

        Args:
            stored: the message.
            oid: the id of the commit.
            number: the number of the message among those that the commit adds.
            version_number: the number of its first version among all versions in the commit.

        Raises:
            KeyError, TypeError, IndexError: the stored form is damaged.
        """
        parts = resolve_calls(stored["parts"], oid)
        born = stored.get(ops.BORN)
        if born is None:
            message = stored if parts is stored["parts"] else {**stored, "parts": parts}
            return cls(Address.of(oid, number), message, (oid, number), (oid, version_number))
        message = {**ops.without_state(stored), "parts": parts}
        made = cls(read_address(born, oid), message, (oid, number), (oid, version_number))
        for at, edit in enumerate(stored.get("edits", ()), 1):
            made.add_version(resolve_calls(edit, oid), (oid, version_number + at))
        made.current = stored.get("current", made.current)
        made.versions[made.current]  # raises IndexError if there is no such version
        made.hidden = stored.get("hidden", "")
        made.ghost = bool(stored.get("ghost", False))
        made.priority = stored.get("priority", ops.NORMAL)
        made.labels = frozenset(stored.get("labels", ()))
        made.keep = tuple(stored.get("keep", ()))
        return made

    def to_carried(self) -> dict[str, Any]:
        """Return the stored form of the message with its state, for another commit that carries it."""
        stored: dict[str, Any] = {ops.BORN: list(self.address), **self.message}
        stored["parts"] = self.versions[0].parts
        if len(self.versions) > 1:
            stored["edits"] = [version.parts for version in self.versions[1:]]
            if self.current != len(self.versions) - 1:
                stored["current"] = self.current
        if self.hidden:
            stored["hidden"] = self.hidden
        if self.ghost:
            stored["ghost"] = True
        if self.priority != ops.NORMAL:
            stored["priority"] = self.priority
        if self.labels:
            stored["labels"] = sorted(self.labels)
        if self.keep:
            stored["keep"] = list(self.keep)
        return dict(sorted(stored.items()))

    @property
    def parts(self) -> Parts:
        """The current version, in stored form."""
        return self.versions[self.current].parts

    @property
    def earlier(self) -> int | None:
        """The number of the version before the current one that differs from it; None without one."""
        numbers = range(self.current - 1, -1, -1)
        return next((n for n in numbers if self.versions[n].parts != self.parts), None)

    @property
    def place(self) -> Place:
        """The place of the current version."""
        return self.versions[self.current].place

    @property
    def key(self) -> bytes:
        """Address, home and place as 92 bytes, the key of cached data about the message."""
        key: bytes = _KEY.pack(*self.address, *self.home, *self.place)
        return key

    @property
    def answers(self) -> tuple[Address, ...]:
        """The messages with the calls that its first version answers.

        They decide its unit, so an edit never changes units.
        """
        return call_messages(self.message["parts"])

    @property
    def state(self) -> int:
        """Hidden, ghost, priority, `is_marked` and `is_edited` as one number, a key of STATES."""
        state = _HIDDEN.index(self.hidden) | ops.PRIORITIES.index(self.priority) << _PRIORITY_AT
        state |= _GHOST if self.ghost else 0
        state |= _MARKED if self.is_marked else 0
        return state | (_EDITED if self.is_edited else 0)

    @property
    def is_edited(self) -> bool:
        """Whether the current version is not the first."""
        return bool(self.current)

    @property
    def is_marked(self) -> bool:
        """Whether it has labels or patterns."""
        return bool(self.labels or self.keep)

    @property
    def visible(self) -> bool:
        """Whether it is part of the compiled context, also as a ghost."""
        if self.hidden:
            return self.hidden == REMOVED and self.ghost
        return self.priority != ops.SKIP

    @property
    def is_ghost(self) -> bool:
        """Whether only its placeholder is shown."""
        return bool(self.hidden) and self.ghost

    def add_version(self, parts: Parts, place: Place) -> None:
        """Add a version and make it the current one."""
        self.versions.append(Version(parts, place))
        self.current = len(self.versions) - 1

    def same_state(self, other: Entry) -> bool:
        """Return True if an entry of another context has the same content, visibility and annotations."""
        return self is other or (
            self.hidden == other.hidden
            and self.ghost == other.ghost
            and self.priority == other.priority
            and self.labels == other.labels
            and self.keep == other.keep
            and self.parts == other.parts
        )

    def copy(self) -> Entry:
        """Return an entry that changes independently."""
        other = Entry.__new__(Entry)
        for name in Entry.__slots__:
            setattr(other, name, getattr(self, name))
        other.versions = list(self.versions)
        return other


def by_state(function: Callable[[Entry], Answer]) -> dict[int, Answer]:
    """Tabulate a function of an entry that depends only on `Entry.state`: its result for each state."""
    found = {}
    for state, shown in STATES.items():
        entry = Entry.__new__(Entry)
        entry.hidden, entry.ghost, entry.priority = shown
        entry.current = int(bool(state & _EDITED))
        entry.labels, entry.keep = frozenset("x" if state & _MARKED else ""), ()
        found[state] = function(entry)
    return found


def is_as_created(stored: Stored) -> bool:
    """Return True if a stored message is new, or carried in its original state."""
    return stored.keys() & ops.STATE <= {ops.BORN}


def call_messages(parts: Parts) -> tuple[Address, ...]:
    """Return the addresses of the messages whose calls these tool results answer, without duplicates."""
    found = [Address(*part["call"]) for part in parts if part["type"] == RESULT and "call" in part]
    return tuple(dict.fromkeys(found)) if found else ()


ONE_BY_ONE = 16
"""Up to this many entries are looked up one by one; more are found in one pass."""
_LOOK_BACK = 16
"""The search for an entry starts this many entries before the last one found."""


class Fold:
    """The state after a commit: entries in order, and the current tools.

    Copies share entries until one of them changes, so only `apply` may change entries.

    Attributes:
        entries: all messages, visible or hidden, in order.
        tools: ids of the schema blobs; `tools_commit` is the commit that set them, or None.
        measured: (commit, its `tools_commit`) of the last commit whose context size a provider reported; or None.
        links: for each message of a unit, the messages that it answers or that answer it, even if this fold
            lacks them.
    """

    __slots__ = (
        "_by_address",
        "_last",
        "_own",
        "entries",
        "links",
        "measured",
        "tools",
        "tools_commit",
    )

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.tools: tuple[bytes, ...] = ()
        self.tools_commit: bytes | None = None
        self.measured: tuple[bytes, bytes | None] | None = None
        self.links: dict[Address, tuple[Address, ...]] = {}
        self._by_address: dict[Address, Entry] = {}
        self._last = 0  # the last position looked up
        self._own: set[Address] | None = None  # entries not shared with a copy; None means all

    @classmethod
    def of(
        cls, entries: Iterable[Entry], links: dict[Address, tuple[Address, ...]] | None = None
    ) -> Fold:
        """Return a fold with the given entries, in order, which the caller must not change later.

        `links` are as in the attribute; None derives them from the entries.
        """
        state = cls()
        state.entries = list(entries)
        state._by_address = {entry.address: entry for entry in state.entries}
        state._own = set()
        if links is None:
            for entry in state.entries:
                state._link(entry)
        else:
            state.links = links
        return state

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, address: object) -> bool:
        return address in self._by_address

    def visible(self) -> Iterator[Entry]:
        """Yield the entries that are part of the compiled context."""
        return (entry for entry in self.entries if entry.visible)

    def entry(self, address: tuple[bytes, int]) -> Entry:
        """Return the entry at an address.

        Raises:
            MessageNotFoundError: the fold has no such message.
        """
        try:
            return self._by_address[address]  # type: ignore[index]
        except KeyError:
            found = Address(*address)
            raise errors.MessageNotFoundError(
                f"this context has no message {found}", address=found
            ) from None

    def addresses(self) -> Set[Address]:
        """Return the addresses of all messages."""
        return self._by_address.keys()

    def unit(self, address: Address) -> tuple[Address, ...]:
        """Return all messages of a unit, the given one first.

        The others follow breadth-first, in the order of `links`; `_adopt_unit_state` relies on this.
        """
        if address not in self.links:
            return (address,)
        found = [address]
        for each in found:
            found += [
                other
                for other in self.links.get(each, ())
                if other in self._by_address and other not in found
            ]
        return tuple(found)

    def units(self, addresses: Iterable[Address]) -> list[Address]:
        """Return all messages of some units, without duplicates, in the order given."""
        return list(dict.fromkeys(each for address in addresses for each in self.unit(address)))

    def unit_id(self, address: Address) -> Address:
        """Return the address of a unit's call, which identifies the unit.

        Any member may be given.
        """
        if address not in self.links:
            return address
        unit = self.unit(address)
        # A damaged unit may have no call: its messages answer themselves or a missing message.
        return min((each for each in unit if not self.entry(each).answers), default=min(unit))

    def in_order(self, addresses: Collection[Address]) -> list[Address]:
        """Return messages in the order of the context."""
        wanted = set(addresses)
        return [each.address for each in self.entries if each.address in wanted]

    def same_state(self, other: Fold) -> bool:
        """Return True if another fold has the same messages in the same order and state, and the same tools."""
        return (
            self.tools == other.tools
            and len(self.entries) == len(other.entries)
            and all(
                mine is theirs or (mine.address == theirs.address and mine.same_state(theirs))
                for mine, theirs in zip(self.entries, other.entries, strict=True)
            )
        )

    def changed_since(self, before: Fold) -> list[tuple[Entry | None, Entry]]:
        """Return the entries that changed, each after its earlier state, which is None for a new message.

        `before` is the fold that this one was copied from.
        """
        earlier = before._by_address.get
        return [
            (old, entry) for entry in self.entries if (old := earlier(entry.address)) is not entry
        ]

    def copy(self) -> Fold:
        """Return a fold that changes independently."""
        other = Fold()
        other.entries = self.entries.copy()
        other._by_address = self._by_address.copy()
        other.links = self.links.copy()
        other.tools = self.tools
        other.tools_commit = self.tools_commit
        other.measured = self.measured
        self._own, other._own = set(), set()
        return other

    def apply(self, oid: bytes, commit: Commit) -> None:
        """Apply a commit's operations; `oid` is its id, or `address.HERE` (empty) if it is not written yet.

        Raises:
            InvalidOperationError: an operation names a message that the fold does not have.
            UnsupportedFormatError: an operation is unknown to this version.
            CorruptObjectError: an operation's fields are damaged.
        """
        position = _CommitPosition(oid)
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
                apply_one(self, operation, position)
            except errors.MessageNotFoundError as error:
                raise errors.InvalidOperationError(
                    f"{operation.name}: {error.message}", address=error.address
                ) from error
            except (KeyError, TypeError, AttributeError, IndexError) as error:
                raise errors.CorruptObjectError(
                    f"commit {ObjectId(oid).short()}: the operation {operation.name} is damaged"
                ) from error
        if is_measured(commit):
            self.measured = oid, self.tools_commit

    def _insert(self, entry: Entry, at: int) -> None:
        self.entries.insert(at, entry)
        self._by_address[entry.address] = entry
        if self._own is not None:
            self._own.add(entry.address)
        self._link(entry)
        if entry.address in self.links:
            self._adopt_unit_state(entry)

    def _link(self, entry: Entry) -> None:
        for call in entry.answers:
            for one, other in ((entry.address, call), (call, entry.address)):
                known = self.links.get(one, ())
                if other not in known:
                    self.links[one] = (*known, other)

    def _adopt_unit_state(self, entry: Entry) -> None:
        """Give a new message and all other members of its unit the same state.

        The new message may have joined several units into one. The state is that of the first message linked to it.
        """
        others = self.unit(entry.address)[1:]
        if others:
            before = self._by_address[others[0]]
            state = before.hidden, before.ghost, before.priority
            for each in self._writable_entries((entry.address, *others)):
                each.hidden, each.ghost, each.priority = state

    def _writable_entries(self, addresses: Iterable[Address]) -> list[Entry]:
        """Return entries, copied if another fold shares them."""
        found = [self.entry(address) for address in addresses]
        if self._own is None:
            return found
        shared = {entry.address: entry for entry in found if entry.address not in self._own}
        if len(shared) > ONE_BY_ONE:
            places = [at for at, each in enumerate(self.entries) if each.address in shared]
        else:
            places = [self._position_of(entry) for entry in shared.values()]
        for at in places:
            entry = self.entries[at] = self.entries[at].copy()
            self._by_address[entry.address] = entry
        self._own.update(shared)
        return [self._by_address[entry.address] for entry in found]

    def _position_of(self, entry: Entry) -> int:
        """Return the position of an entry.

        The search starts near the position found last, because most operations come in order.
        """
        try:
            self._last = self.entries.index(entry, max(0, self._last - _LOOK_BACK))
        except ValueError:
            self._last = self.entries.index(entry)
        return self._last

    def _writable_units(self, addresses: Sequence[Address]) -> list[Entry]:
        for address in addresses:
            self.entry(address)  # raises if the message is missing
        return self._writable_entries(self.units(addresses))


class _CommitPosition:
    """The position within a commit: its id, and how many messages and versions came before."""

    __slots__ = ("added", "oid", "versions")

    def __init__(self, oid: bytes) -> None:
        self.oid = oid
        self.added = 0
        self.versions = 0

    def targets(self, operation: Operation) -> list[Address]:
        return ops.targets_of(operation, self.oid)

    def entries(self, operation: Operation) -> list[Entry]:
        found = []
        for stored in operation.fields["messages"]:
            found.append(Entry.read(stored, self.oid, self.added, self.versions))
            self.added += 1
            self.versions += 1 + len(stored.get("edits", ()))
            _check_priority(found[-1].priority)
        return found


def is_measured(commit: Commit) -> bool:
    """Return True if a provider reported the size of a commit's context."""
    for operation in commit.operations:
        if operation.name == ops.USAGE:
            return objects.reports.report_of(commit) is not None
    return False


def _add(state: Fold, operation: Operation, position: _CommitPosition) -> None:
    after = operation.fields.get("after")
    at = len(state.entries)
    if after is not None:
        at = state.entries.index(state.entry(read_address(after, position.oid))) + 1
    _insert_entries(state, operation, position, at)


def _insert_entries(state: Fold, operation: Operation, position: _CommitPosition, at: int) -> None:
    for entry in position.entries(operation):
        if entry.address not in state:  # an earlier merge may already have carried it here
            state._insert(entry, at)
            at += 1


def _edit(state: Fold, operation: Operation, position: _CommitPosition) -> None:
    (entry,) = state._writable_entries(position.targets(operation))
    parts = resolve_calls(operation.fields["parts"], position.oid)
    entry.add_version(parts, (position.oid, position.versions))
    position.versions += 1


def _annotate(state: Fold, operation: Operation, position: _CommitPosition) -> None:
    fields, targets = operation.fields, position.targets(operation)
    if "priority" in fields:
        _check_priority(fields["priority"])
        for entry in state._writable_units(targets):
            entry.priority = fields["priority"]
    added, removed = set(fields.get("labels", ())), set(fields.get("unlabels", ()))
    for entry in state._writable_entries(targets):
        if "keep" in fields:
            entry.keep = tuple(fields["keep"])
        entry.labels = (entry.labels | added) - removed


def _check_priority(priority: str) -> None:
    if priority not in ops.PRIORITIES:
        raise errors.UnsupportedFormatError(
            f"unknown priority {priority!r}", required=f"priority:{priority}"
        )


def _remove(state: Fold, operation: Operation, position: _CommitPosition) -> None:
    for entry in state._writable_units(position.targets(operation)):
        entry.hidden = REMOVED
        entry.ghost = bool(operation.fields.get("ghost", False))


def _restore(state: Fold, operation: Operation, position: _CommitPosition) -> None:
    version, targets = operation.fields.get("version"), position.targets(operation)
    if version is not None:
        for entry in state._writable_entries(targets):
            if not 0 <= version < len(entry.versions):
                raise errors.InvalidOperationError(
                    f"message {entry.address} has {len(entry.versions)} versions, "
                    f"none numbered {version}"
                )
            entry.current = version
    for entry in state._writable_units(targets):
        entry.hidden = ""
        entry.ghost = False


def _replace(state: Fold, operation: Operation, position: _CommitPosition) -> None:
    hidden = state._writable_units(position.targets(operation))
    if len(hidden) > ONE_BY_ONE:
        members = set(map(id, hidden))
        at = next(i for i, entry in enumerate(state.entries) if id(entry) in members)
    else:
        at = min(map(state._position_of, hidden), default=len(state.entries))
    for entry in hidden:
        entry.hidden = REPLACED
        entry.ghost = False
    _insert_entries(state, operation, position, at)


def _move(state: Fold, operation: Operation, position: _CommitPosition) -> None:
    targets = position.targets(operation)
    for address in targets:
        state.entry(address)
    moved = [state.entry(each) for each in _whole_units(state, targets)]
    after = operation.fields.get("after")
    neighbour = None if after is None else state.entry(read_address(after, position.oid))
    if neighbour in moved:  # within one unit, move only the named messages
        moved = [state.entry(each) for each in dict.fromkeys(targets)]
    if neighbour is not None and any(entry is neighbour for entry in moved):
        raise errors.InvalidOperationError("move: a message cannot be placed after itself")
    names = {entry.address for entry in moved}
    rest = [entry for entry in state.entries if entry.address not in names]
    at = 0 if neighbour is None else rest.index(neighbour) + 1
    state.entries[:] = [*rest[:at], *moved, *rest[at:]]


def _whole_units(state: Fold, targets: Sequence[Address]) -> list[Address]:
    """Return the members of units: units in the order given, members in context order."""
    found: dict[Address, None] = {}
    for address in targets:
        unit = state.unit(address)
        if address not in found:
            found.update(dict.fromkeys(state.in_order(unit) if len(unit) > 1 else unit))
    return list(found)


def _tools(state: Fold, operation: Operation, position: _CommitPosition) -> None:
    state.tools = tuple(operation.fields["schemas"])
    state.tools_commit = position.oid


def _ignore(state: Fold, operation: Operation, position: _CommitPosition) -> None:
    """Do nothing: usage, metadata, settings and hidden records change no message."""


_APPLY: dict[str, Callable[[Fold, Operation, _CommitPosition], None]] = {
    ops.ADD: _add,
    ops.EDIT: _edit,
    ops.ANNOTATE: _annotate,
    ops.REMOVE: _remove,
    ops.RESTORE: _restore,
    ops.REPLACE: _replace,
    ops.MOVE: _move,
    ops.TOOLS: _tools,
    ops.USAGE: _ignore,
    ops.CONFIG: _ignore,
    ops.RECORDS: _ignore,
}

__all__ = [
    "REMOVED",
    "REPLACED",
    "Address",
    "Entry",
    "Fold",
    "Place",
    "Version",
    "is_measured",
]


def fold(tip: bytes, read_commit: ReadCommit) -> Fold:
    """Return the fold of a commit.

    Raises:
        ObjectNotFoundError: a commit is missing.
        InvalidOperationError, UnsupportedFormatError, CorruptObjectError: as in `Fold.apply`.
    """
    commits, _ = commits_since(tip, read_commit, ())
    return apply_commits(Fold(), commits)


def commits_since(
    tip: bytes | None, read_commit: ReadCommit, known: Container[bytes]
) -> tuple[list[tuple[bytes, Commit]], bytes | None]:
    """Return the first-parent commits since the last known one, oldest first.

    The second value is the id of the known commit, or None.
    """
    commits: list[tuple[bytes, Commit]] = []
    oid: bytes | None = tip
    while oid is not None and oid not in known:
        commit = read_commit(oid)
        commits.append((oid, commit))
        oid = commit.parents[0] if commit.parents else None
    commits.reverse()
    return commits, oid


def apply_commits(state: Fold, commits: list[tuple[bytes, Commit]]) -> Fold:
    """Apply commits, oldest first, to a fold, and return it."""
    for oid, commit in commits:
        state.apply(oid, commit)
    return state

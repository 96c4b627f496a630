"""Disk usage: bytes by kind, branch and session, and what deduplication saves.

Invariant: read-only. An object shared by branches counts fully in each of them, and in `own` of none. An object's
disk bytes are its share of its pack frame.
"""

from __future__ import annotations

from _collections_abc import Mapping  # avoids loading collections.abc

from trace_store import errors
from trace_store.base.frozen import fields, value
from trace_store.base.oid import ObjectId
from trace_store.contracts.ref_names import BRANCHES, FILES, SESSIONS
from trace_store.objects.codec import BLOB, decode, is_plain_blob, kind_of, links_within
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.pack import walk_objects
from trace_store.store.store import Store
from trace_store.transcripts.segments import file_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@value
class Amount:
    """A number of objects and their size.

    Attributes:
        objects: number of objects.
        bytes: canonical bytes before compression.
        disk: bytes on disk.
    """

    JSON = "disk_bytes=disk"

    objects: int = 0
    bytes: int = 0
    disk: int = 0


def total_amount(amounts: Sequence[Amount]) -> Amount:
    """Return the sum of amounts of different objects."""
    return Amount(*(sum(getattr(each, name) for each in amounts) for name in fields(Amount)))


@value
class UsageRow:
    """Disk usage of a branch or session.

    Attributes:
        name: branch without `refs/heads/`, or `<format>/<session>`.
        whole: everything reachable from it.
        own: what only it reaches.
        files: number of source files of a session; 0 for a branch.
        file_bytes: original size of these files.
    """

    name: str
    whole: Amount
    own: Amount
    files: int = 0
    file_bytes: int = 0


@value
class StoreUsage:
    """Disk usage of a store.

    Attributes:
        total: all objects, each counted once.
        disk: size of packs, loose objects and journals.
        kinds: all objects by kind.
        branches, sessions: usage by name.
        unreachable: objects that no ref reaches.
        files, file_bytes: source files of all sessions, original size.
        repeated: bytes saved by sharing objects between sessions.
    """

    JSON = "disk_bytes=disk repeated_bytes=repeated"

    total: Amount
    disk: int
    kinds: Mapping[str, Amount]
    branches: tuple[UsageRow, ...]
    sessions: tuple[UsageRow, ...]
    unreachable: Amount
    files: int
    file_bytes: int
    repeated: int


@value
class _Object:
    kind: str
    size: int
    disk: float
    links: tuple[bytes, ...]


class _Sum:
    __slots__ = ("bytes", "disk", "objects")

    def __init__(self) -> None:
        self.objects = 0
        self.bytes = 0
        self.disk = 0.0

    def add(self, item: _Object) -> None:
        self.objects += 1
        self.bytes += item.size
        self.disk += item.disk

    def merge(self, other: _Sum) -> None:
        self.objects += other.objects
        self.bytes += other.bytes
        self.disk += other.disk

    def amount(self) -> Amount:
        return Amount(self.objects, self.bytes, round(self.disk))


class _Group:
    """Refs that are measured together."""

    __slots__ = ("file_bytes", "files", "name", "starts")

    def __init__(self, name: str, starts: Sequence[ObjectId] = ()) -> None:
        self.name = name
        self.starts = list(starts)
        self.files = 0
        self.file_bytes = 0


def measure(store: Store) -> StoreUsage:
    """Return the disk usage of a store."""
    objects = dict(_objects(store))
    branches, sessions, others = _groups(store)
    shares = _shares((*branches, *sessions, *others), objects)
    kinds: dict[str, _Sum] = {}
    total = _Sum()
    for item in objects.values():
        total.add(item)
        kinds.setdefault(item.kind, _Sum()).add(item)
    return StoreUsage(
        total=total.amount(),
        disk=_disk(store),
        kinds={kind: each.amount() for kind, each in sorted(kinds.items())},
        branches=_parts(branches, 0, shares),
        sessions=_parts(sessions, len(branches), shares),
        unreachable=shares.get(0, _Sum()).amount(),
        files=sum(group.files for group in sessions),
        file_bytes=sum(group.file_bytes for group in sessions),
        repeated=_repeated(sessions, len(branches), shares),
    )


def own_amounts(store: Store, names: Sequence[str]) -> list[Amount]:
    """Return the disk usage of some refs that no other ref or HEAD shares.

    An object that several of them reach counts for the first one, so the last amounts are what deleting the last refs
    would free.

    Raises:
        StorageError: the disk refuses.
    """
    numbers = {name: number for number, name in enumerate(names, 1)}
    groups = [_Group("others"), *map(_Group, names)]
    for ref, tips in store.refs.iterate_tips("refs/"):
        groups[numbers.get(ref, 0)].starts += tips
    head = store.refs.head().oid
    groups[0].starts += [head] if head else []
    sums = [_Sum() for _ in groups]
    for mask, total in _shares(groups, dict(_objects(store))).items():
        if mask:
            sums[(mask & -mask).bit_length() - 1].merge(total)
    return [each.amount() for each in sums[1:]]


def _groups(store: Store) -> tuple[list[_Group], list[_Group], list[_Group]]:
    """Return the branches, the sessions with all their refs, and the other refs."""
    branches: list[_Group] = []
    sessions: dict[str, _Group] = {}
    others: list[_Group] = []
    for ref, tips in store.refs.iterate_tips("refs/"):
        of = next((place for place in (SESSIONS, FILES) if ref.startswith(place)), None)
        if of is not None:
            name = "/".join(ref.removeprefix(of).split("/")[:2])
            session = sessions.setdefault(name, _Group(name))
            session.starts += tips
            if of == FILES:
                session.files += 1
                session.file_bytes += _file_bytes(store, tips)
        if ref.startswith(BRANCHES):
            branches.append(_Group(ref.removeprefix(BRANCHES), tips))
        elif of is None:
            others.append(_Group(ref, tips))
    return branches, list(sessions.values()), others


def _file_bytes(store: Store, tips: Iterable[ObjectId]) -> int:
    try:
        return sum(file_size(tip, store.objects.read) for tip in tips)
    except (errors.CorruptObjectError, errors.ObjectNotFoundError):
        return 0


Shares = Mapping[int, _Sum]
"""Sums of objects by the set of groups that reach them: bit n is group n."""


def _shares(groups: Sequence[_Group], objects: Mapping[bytes, _Object]) -> Shares:
    """Return the sums of all objects by the groups that reach them; 0 is none.

    Each object is visited once, independent of the number of groups.
    """
    masks: dict[bytes, int] = {}
    for number, group in enumerate(groups):
        for start in group.starts:
            masks[start] = masks.get(start, 0) | 1 << number
    shares: dict[int, _Sum] = {}
    left = set(objects)
    for oid in _topological_order(list(masks), objects):
        item, mask = objects[oid], masks.pop(oid)
        shares.setdefault(mask, _Sum()).add(item)
        left.discard(oid)
        for link in item.links:
            masks[link] = masks.get(link, 0) | mask
    for oid in left:
        shares.setdefault(0, _Sum()).add(objects[oid])
    return shares


def _topological_order(
    starts: Sequence[bytes], objects: Mapping[bytes, _Object]
) -> Iterator[bytes]:
    """Return the reachable objects in topological order, each before its links."""
    order: list[bytes] = []
    seen: set[bytes] = set()
    for start in starts:
        stack: list[tuple[bytes, bool]] = [(start, False)]
        while stack:
            oid, done = stack.pop()
            if done:
                order.append(oid)
            elif oid not in seen and oid in objects:
                seen.add(oid)
                stack.append((oid, True))
                stack += ((link, False) for link in objects[oid].links if link not in seen)
    return reversed(order)


def _parts(groups: Sequence[_Group], first: int, shares: Shares) -> tuple[UsageRow, ...]:
    """Return the usage of groups, the first of which has number `first`."""
    whole = [_Sum() for _ in groups]
    own = [_Sum() for _ in groups]
    for mask, total in shares.items():
        holders = _holders(mask, first, len(groups))
        for number in holders:
            whole[number].merge(total)
        if len(holders) == 1:
            own[holders[0]].merge(total)
    return tuple(
        UsageRow(group.name, all_.amount(), alone.amount(), group.files, group.file_bytes)
        for group, all_, alone in zip(groups, whole, own, strict=True)
    )


def _repeated(groups: Sequence[_Group], first: int, shares: Shares) -> int:
    times = ((len(_holders(mask, first, len(groups))), total) for mask, total in shares.items())
    return sum((count - 1) * total.bytes for count, total in times if count)


def _holders(mask: int, first: int, count: int) -> list[int]:
    """Return the positions of the set bits among `count` bits from `first` on."""
    digits = f"{(mask >> first) & ((1 << count) - 1):b}"
    return [len(digits) - 1 - at for at, digit in enumerate(digits) if digit == "1"]


def _objects(store: Store) -> Iterator[tuple[bytes, _Object]]:
    """Yield every sound object once, packed ones first."""
    database = store.objects
    seen: set[bytes] = set()
    for oid, data, disk in _packed(database):
        if oid not in seen:
            seen.add(oid)
            yield oid, _object_of(data, disk)
    for oid in database.iterate():
        if oid in seen:
            continue
        seen.add(oid)
        try:
            data = database.read(oid)
        except errors.CorruptObjectError:
            continue
        size = _loose_size(store, oid) or len(data)
        yield oid, _object_of(data, float(size))


def _packed(database: ObjectDatabase) -> Iterator[tuple[ObjectId, bytes, float]]:
    for name in database.packs.names():
        packed = database.packs.get(name)
        if packed is None:
            continue
        for _, place, objects in walk_objects(packed.pack):
            if isinstance(objects, errors.CorruptObjectError):
                continue
            whole = sum(len(data) for _, _, data in objects) or 1
            for oid, _, data in objects:
                yield oid, data, place.compressed * len(data) / whole


def _object_of(data: bytes, disk: float) -> _Object:
    if is_plain_blob(data):
        return _Object(BLOB, len(data), disk, ())
    kind = kind_of(data)
    links = () if kind == BLOB else tuple(links_within(decode(data)))
    return _Object(kind, len(data), disk, links)


def _loose_size(store: Store, oid: ObjectId) -> int:
    status = store.disk.stat(store.layout.loose_file(str(oid)))
    return 0 if status is None else status.st_size


def _disk(store: Store) -> int:
    """Return the size of the files that hold objects."""
    database = store.objects
    layout = store.layout
    paths = [
        *(layout.pack_file(name) for name in database.packs.names()),
        *(layout.loose_file(oid.hex()) for oid in database.loose.iterate()),
        *(layout.journal_file(file.number) for file in store.journal.files),
    ]
    stats = (store.disk.stat(path) for path in paths)
    return sum(each.st_size for each in stats if each is not None)

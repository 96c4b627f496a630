"""Scans of all stored objects: what holds an object, and which contain secrets.

Files outside the repository are scanned for secrets here too.

Invariant: read-only. All objects are scanned, packed or not, reachable or not. Holders of an object are messages,
commits, refs, and contexts sent to a provider. A secret's value is never returned; findings name the object, its
messages and the refs that reach it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.disk.files import Disk, files_below, read_file
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.codec import BLOB, COMMIT, LIST, blob_content, kind_of, links
from trace_store.objects.commit import Commit
from trace_store.objects.message import part_blobs
from trace_store.odb.reachable import reachable_ids
from trace_store.store.store import Store

MAXIMUM_FILE_BYTES = 64 << 20
"""A larger file is reported, not scanned."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.secrets.engine import SecretFinding

    Find = Callable[[bytes], Iterable[SecretFinding]]


@value
class ContentHolder:
    """A commit that links to purged content.

    Attributes:
        commit: commit id.
        messages: messages with the content in a version that the commit adds, carries or edits; empty if it is
            linked otherwise, such as by a raw record.
        refs: sorted full names of refs that reach it.
    """

    JSON = "addresses=messages"

    commit: ObjectId
    messages: tuple[Address, ...]
    refs: tuple[str, ...]


@value
class SentContext:
    """A context with purged content that a usage report shows was sent to a provider.

    Attributes:
        report: commit with the report.
        commit: commit of the context.
        provider, model: as reported, or "".
        sent: hash of the bytes sent, or "".
    """

    JSON = "provider? model? sent?"

    report: ObjectId
    commit: ObjectId
    provider: str
    model: str
    sent: str


@value
class Holders:
    """Everything that held some objects.

    Attributes:
        commits: sorted by id.
        refs: refs that reach one of them, or a source file that contains one of the objects.
        contexts: contexts that were sent.
    """

    commits: tuple[ContentHolder, ...]
    refs: tuple[str, ...]
    contexts: tuple[SentContext, ...]


class ObjectScan:
    """Commits and links collected in a scan of all objects.

    Attributes:
        unreadable: unreadable objects with the reason.
    """

    def __init__(self) -> None:
        self._commits: dict[bytes, Commit] = {}
        self._links: dict[bytes, Sequence[ObjectId]] = {}
        self._above: dict[bytes, list[bytes]] = {}
        """The lists that name an object."""
        self._lists: dict[frozenset[bytes], frozenset[bytes]] = {}
        self.unreadable: dict[ObjectId, str] = {}

    def objects(
        self, store: Store, oids: Iterable[ObjectId] | None = None
    ) -> Iterator[tuple[ObjectId, str, bytes]]:
        """Yield (id, kind, bytes) of these or all readable objects."""
        oids = [*store.objects.iterate(), *_quarantined(store)] if oids is None else list(oids)
        at = 0
        while at < len(oids):
            try:
                for oid, data in store.objects.read_many(oids[at:]):
                    at += 1
                    kind = self._record(oid, data)
                    if kind:
                        yield oid, kind, data
            except errors.TraceError as error:
                self.unreadable[oids[at]] = str(error)
                at += 1

    def _record(self, oid: ObjectId, data: bytes) -> str:
        try:
            kind = kind_of(data)
            if kind == COMMIT:
                self._commits[oid] = Commit.decode(data)
            if kind != BLOB:
                self._links[oid] = links(data)
            if kind == LIST:
                for named in self._links[oid]:
                    self._above.setdefault(named, []).append(oid)
        except errors.TraceError as error:
            self.unreadable[oid] = str(error)
            return ""
        return kind

    def messages_with(self, holder: ContentHolder, oid: bytes) -> tuple[Address, ...]:
        """Return the messages of a holder with an object."""
        return _messages(holder.commit, self._commits[holder.commit], frozenset((oid,)))

    def links_to(self, holder: ContentHolder, oid: bytes) -> bool:
        """Return True if a holder links to an object, directly or through lists."""
        lists = self._lists_with(frozenset((oid,)))
        return not (lists | {oid}).isdisjoint(self._links[holder.commit])

    def _lists_with(self, oids: frozenset[bytes]) -> frozenset[bytes]:
        """Return the lists that lead to objects: of chunks, of a source file, or the nodes of a sequence."""
        if oids not in self._lists:
            found: set[bytes] = set()
            wanted = set(oids)
            while wanted:
                above = {each for oid in wanted for each in self._above.get(oid, ())} - found
                found |= above
                wanted = above
            self._lists[oids] = frozenset(found)
        return self._lists[oids]

    def holders(self, store: Store, oids: frozenset[bytes]) -> Holders:
        """Return the holders of objects; call after `objects` has been consumed."""
        wanted = oids | self._lists_with(oids)
        holding = {
            oid: commit
            for oid, commit in self._commits.items()
            if oid in oids or not wanted.isdisjoint(self._links[oid])
        }
        held = self._ancestors_among(frozenset(holding))
        refs: dict[bytes, list[str]] = {}
        all_refs: set[str] = set()
        for name, tips in store.refs.iterate_tips():
            for tip in tips:
                if tip in held or self._reaches(tip, wanted):
                    all_refs.add(name)
                for oid in held.get(tip, ()):
                    refs.setdefault(oid, []).append(name)
        commits = [
            ContentHolder(
                ObjectId(oid), _messages(oid, commit, wanted), tuple(sorted(set(refs.get(oid, ()))))
            )
            for oid, commit in sorted(holding.items())
        ]
        return Holders(tuple(commits), tuple(sorted(all_refs)), tuple(self._sent(held)))

    def _reaches(self, oid: bytes, wanted: frozenset[bytes] | set[bytes]) -> bool:
        """Return True if a list or tag, or what it links to, links to wanted objects."""
        seen: set[bytes] = set()
        stack: list[bytes] = [oid]
        while stack:
            each = stack.pop()
            if each in seen or each in self._commits:
                continue
            seen.add(each)
            named = self._links.get(each, ())
            if each in wanted or not wanted.isdisjoint(named):
                return True
            stack.extend(named)
        return False

    def _ancestors_among(self, commits: frozenset[bytes]) -> Mapping[bytes, frozenset[bytes]]:
        """Return which of the given commits each commit descends from or is.

        Others are omitted.
        """
        held: dict[bytes, frozenset[bytes]] = {}
        for start in self._commits:
            stack: list[bytes] = [start]
            while stack:
                oid = stack[-1]
                if oid in held:
                    stack.pop()
                    continue
                commit = self._commits.get(oid)
                parents = () if commit is None else commit.parents
                open_ = [p for p in parents if p not in held and p in self._commits]
                if open_:
                    stack.extend(open_)
                    continue
                sets = [own for p in parents if (own := held.get(p))]
                if oid in commits:
                    sets.append(frozenset((oid,)))
                # Commits with equal sets share one object, so that a long history needs no more
                # memory.
                held[oid] = sets[0] if len(sets) == 1 else frozenset().union(*sets)
                stack.pop()
        return {oid: own for oid, own in held.items() if own}

    def _sent(self, held: Mapping[bytes, frozenset[bytes]]) -> Iterator[SentContext]:
        for oid, commit in sorted(self._commits.items()):
            for operation in commit.operations:
                if operation.name != ops.USAGE:
                    continue
                fields = operation.fields
                about = fields.get("about") or (commit.parents[0] if commit.parents else b"")
                if about in held:
                    texts = (str(fields.get(key, "")) for key in ("provider", "model", "sent"))
                    yield SentContext(ObjectId(oid), ObjectId(about), *texts)


def _quarantined(store: Store) -> list[ObjectId]:
    """Return objects that are only in quarantine."""
    oids: dict[ObjectId, None] = {}
    for taking in store.objects.quarantine.batches():
        oids.update(dict.fromkeys([*taking.packs.iterate(), *taking.loose.iterate()]))
    purged = store.objects.purged
    return [oid for oid in oids if oid not in purged and not store.objects.contains(oid)]


def _messages(oid: bytes, commit: Commit, wanted: frozenset[bytes]) -> tuple[Address, ...]:
    """Return the messages of a commit with a version that contains wanted objects."""
    versions = [
        (address, parts)
        for address, message in ops.added_messages(commit, oid)
        for parts in (message["parts"], *message.get("edits", ()))
    ]
    versions += [
        (ops.targets_of(each, oid)[0], each.fields["parts"])
        for each in commit.operations
        if each.name == ops.EDIT
    ]
    addresses = (address for address, parts in versions if not wanted.isdisjoint(part_blobs(parts)))
    return tuple(dict.fromkeys(addresses))


@value
class StoredSecret:
    """A secret in an object.

    Attributes:
        rule: kind of secret.
        id: id to mark it as a false positive.
        oid: the object.
        kind: kind of the object.
        addresses: messages that contain it.
        commits: commits that link to the object, in a message, as a raw record, or through a list of chunks.
        refs: sorted full names of refs that reach one of these commits.
    """

    JSON = "object=oid"

    rule: str
    id: str
    oid: ObjectId
    kind: str
    addresses: tuple[Address, ...]
    commits: tuple[ObjectId, ...]
    refs: tuple[str, ...]


@value
class FileSecret:
    """A secret in a file.

    Attributes:
        rule: kind of secret.
        id: id to mark it as a false positive.
        path: the file.
        line: the number of the line, from 1.
    """

    rule: str
    id: str
    path: str
    line: int


@value
class FileScan:
    """Result of a scan of files.

    Attributes:
        found: the secrets, in the order of the files.
        files: number of files scanned.
        unreadable: the error of each other file, which names it.
    """

    found: tuple[FileSecret, ...]
    files: int
    unreadable: tuple[errors.StorageError, ...]


@value
class SecretScan:
    """Result of a scan.

    Attributes:
        found: one entry per secret and object.
        objects, bytes: amount scanned.
        unreadable: unreadable objects with the reason.
    """

    found: tuple[StoredSecret, ...]
    objects: int
    bytes: int
    unreadable: dict[ObjectId, str]


def scan_files(disk: Disk, path: str, find: Find) -> FileScan:
    """Scan files for secrets that `find` finds in bytes."""
    found: list[FileSecret] = []
    unreadable: list[errors.StorageError] = []
    count = 0
    for each in files_below(disk, path) if os.path.isdir(path) else (path,):
        try:
            data = read_file(disk, each, limit=MAXIMUM_FILE_BYTES) or b""
        except errors.StorageError as error:
            unreadable.append(error)
            continue
        count += 1
        found += [
            FileSecret(secret.rule, secret.id, each, data.count(b"\n", 0, secret.start) + 1)
            for secret in find(data)
        ]
    return FileScan(tuple(found), count, tuple(unreadable))


def scan_stored(
    store: Store,
    find: Find,
    start: ObjectId | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> SecretScan:
    """Scan what an object reaches, or else everything and the quarantine, for secrets that `find` finds in bytes."""
    scan = ObjectScan()
    within = None if start is None else reachable_ids(store.objects.read, [start])
    hits: dict[ObjectId, dict[tuple[str, str], str]] = {}
    count = size = 0
    for oid, kind, data in scan.objects(store, within):
        count += 1
        size += len(data)
        if progress is not None:
            progress(count)
        content = blob_content(data) if kind == BLOB else data
        for each in find(content):
            hits.setdefault(oid, {})[each.rule, each.id] = kind
    holders = scan.holders(store, frozenset(hits))
    by_commit = {holder.commit: holder for holder in holders.commits}
    stored: list[StoredSecret] = []
    for oid, secrets in hits.items():
        kind = next(iter(secrets.values()))
        holding = [h for h in holders.commits if scan.links_to(h, oid)]
        if kind == COMMIT:
            holding = [by_commit[oid]]
        addresses = dict.fromkeys(a for h in holding for a in scan.messages_with(h, oid))
        refs = sorted({ref for holder in holding for ref in holder.refs})
        stored += [
            StoredSecret(
                *(rule, id_, oid, kind, tuple(addresses)),
                tuple(holder.commit for holder in holding),
                tuple(refs),
            )
            for rule, id_ in secrets
        ]
    return SecretScan(tuple(stored), count, size, scan.unreadable)

"""fsck of objects: hash, schema, canonical form, links."""

from __future__ import annotations

from trace_store import errors
from trace_store.frozen import value
from trace_store.objects.codec import (
    BLOB,
    COMMIT,
    LIST,
    TAG,
    is_canonical,
    is_plain_blob,
    kind_of,
    links,
)
from trace_store.objects.commit import Commit, Tag
from trace_store.oid import ObjectId, hash_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Walk = Callable[[], Iterable[tuple[bytes, bytes]]]


ERROR = "error"
WARNING = "warning"
INFO = "info"


@value
class Finding:
    """A problem or notable fact.

    Attributes:
        code: a stable code.
        severity: `error` (content is damaged or missing), `warning`, or `info`.
        what: the object, ref or file.
        detail: one sentence.
    """

    code: str
    severity: str
    what: str
    detail: str


class ObjectChecks:
    """Checks each object once and records its links.

    Attributes:
        present: ids of the objects with a sound copy.
        links: links by object id, without those of proven packs.
    """

    def __init__(self) -> None:
        self.present: set[bytes] = set()
        self.links: dict[bytes, tuple[bytes, ...]] = {}
        self._commits: set[bytes] = set()
        self._named: set[bytes] = set()
        self._rereads: list[Walk] = []

    def add_proven(
        self, oids: Iterable[bytes], commits: Iterable[bytes], named: Iterable[bytes], reread: Walk
    ) -> None:
        """Add objects that were proven sound.

        Args:
            oids: all of them.
            commits: the commits among them.
            named: links that may lead outside.
            reread: yields the objects again, to find out who links to a missing one.
        """
        self.present.update(oids)
        self._commits.update(commits)
        self._named.update(named)
        self._rereads.append(reread)

    def is_commit(self, oid: bytes) -> bool:
        """Return True if a checked object is a commit."""
        return oid in self._commits

    def check_named(self, oid: ObjectId, data: bytes, where: str) -> Iterator[Finding]:
        """Check bytes stored under an id."""
        if hash_object(data) != oid:
            yield Finding("object-damaged", ERROR, str(oid), f"hash mismatch in {where}")
        else:
            yield from self.check(oid, data, where)

    def check(self, oid: ObjectId, data: bytes, where: str) -> Iterator[Finding]:
        """Check an object whose hash is right."""
        if oid in self.present:
            return
        self.present.add(oid)
        if is_plain_blob(data):
            return
        try:
            kind = kind_of(data)
            canonical = is_canonical(data)
            if not canonical:
                yield Finding("object-not-canonical", ERROR, str(oid), f"a {kind} in {where}")
            if kind == COMMIT:
                Commit.decode(data)
                self._commits.add(oid)
            elif kind == TAG:
                Tag.decode(data)
            elif kind not in (BLOB, LIST):
                yield Finding("object-unknown-kind", INFO, str(oid), f"kind {kind[:40]!r}")
            if kind != BLOB:
                self.links[oid] = tuple(dict.fromkeys(links(data)))
        except (errors.FormatError, errors.CorruptObjectError, errors.InvalidInputError) as error:
            yield Finding("object-unreadable", ERROR, str(oid), f"in {where}: {error}")

    def reachable(self, roots: Iterable[bytes]) -> set[bytes]:
        """Return everything reachable from roots, including missing objects."""
        rereads, self._rereads = self._rereads, []
        for walk in rereads:
            for namer, data in walk():
                self.links.setdefault(namer, tuple(dict.fromkeys(links(data))))
        visited: set[bytes] = set()
        stack: list[bytes] = [root for root in roots if root in self.present]
        while stack:
            oid = stack.pop()
            if oid not in visited:
                visited.add(oid)
                stack.extend(self.links.get(oid, ()))
        return visited

    def missing(
        self, roots: Iterable[ObjectId], purged: frozenset[bytes] = frozenset()
    ) -> Iterator[Finding]:
        """Yield missing link targets: errors if reachable from a ref and not purged."""
        if self._named.union(*self.links.values()) <= self.present:
            return
        reachable = self.reachable(roots)
        for namer, names in sorted(self.links.items()):
            for name in dict.fromkeys(names):
                if name in self.present or name in purged:
                    continue
                if namer in reachable:
                    yield Finding("object-missing", ERROR, name.hex(), f"linked from {namer.hex()}")
                else:
                    detail = f"linked from unreachable {namer.hex()}"
                    yield Finding("unreachable-object-missing", INFO, name.hex(), detail)

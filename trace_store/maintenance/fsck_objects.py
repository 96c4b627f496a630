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
    """One thing that is not as it should be, or worth knowing.

    Attributes:
        code: a stable name of the kind of finding.
        severity: `error` (content is damaged or missing), `warning`, or `info`.
        what: the object, ref or file it is about.
        detail: one sentence.
    """

    code: str
    severity: str
    what: str
    detail: str


class ObjectChecks:
    """Checks each object once, and remembers what it names.

    Attributes:
        present: the ids of the objects that are sound somewhere.
        links: what they name, by their ids; without those that were taken over.
    """

    def __init__(self) -> None:
        self.present: set[bytes] = set()
        self.links: dict[bytes, tuple[bytes, ...]] = {}
        self._commits: set[bytes] = set()
        self._named: set[bytes] = set()
        self._again: list[Walk] = []

    def take_over(
        self, oids: Iterable[bytes], commits: Iterable[bytes], named: Iterable[bytes], again: Walk
    ) -> None:
        """Take over many objects that were found sound.

        Args:
            oids: all of them.
            commits: those that are commits.
            named: what they name and may not be among them.
            again: yields them, with their ids, for when something is missing and it is asked who names it.
        """
        self.present.update(oids)
        self._commits.update(commits)
        self._named.update(named)
        self._again.append(again)

    def is_commit(self, oid: bytes) -> bool:
        """Tell whether a checked object is a commit."""
        return oid in self._commits

    def check_named(self, oid: ObjectId, data: bytes, where: str) -> Iterator[Finding]:
        """Check bytes that stand somewhere under an id."""
        if hash_object(data) != oid:
            yield Finding(
                "object-damaged", ERROR, str(oid), f"its bytes in {where} have another hash"
            )
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
        """Return what sound objects lead to from some, these included; what they name and is not here, too."""
        again, self._again = self._again, []
        for walk in again:
            for namer, data in walk():
                self.links.setdefault(namer, tuple(dict.fromkeys(links(data))))
        found: set[bytes] = set()
        stack: list[bytes] = [root for root in roots if root in self.present]
        while stack:
            oid = stack.pop()
            if oid not in found:
                found.add(oid)
                stack.extend(self.links.get(oid, ()))
        return found

    def missing(
        self, roots: Iterable[ObjectId], purged: frozenset[bytes] = frozenset()
    ) -> Iterator[Finding]:
        """Yield what sound objects name and is not here: an error where a ref leads there, and it was not purged."""
        if self._named.union(*self.links.values()) <= self.present:
            return
        reachable = self.reachable(roots)
        for namer, names in sorted(self.links.items()):
            for name in dict.fromkeys(names):
                if name in self.present or name in purged:
                    continue
                if namer in reachable:
                    yield Finding("object-missing", ERROR, name.hex(), f"named by {namer.hex()}")
                else:
                    detail = f"named by {namer.hex()}, which no ref leads to"
                    yield Finding("unreachable-object-missing", INFO, name.hex(), detail)

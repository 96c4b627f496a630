"""Who held an object: messages, commits, refs, and contexts that were sent to a provider.

Rule: reads, never writes. Every commit that is here is looked at, also those that no ref leads to.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.frozen import value
from trace_store.objects import operations as ops
from trace_store.objects.codec import BLOB, COMMIT, kind_of, links
from trace_store.objects.commit import Commit
from trace_store.objects.message import part_blobs
from trace_store.odb.database import ObjectDatabase
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from trace_store.objects.address import Address
    from trace_store.store.handle import Store


@value
class Holder:
    """A commit that names purged content.

    Attributes:
        commit: its id.
        messages: those that say it there, by a wording that the commit adds, carries or edits; without any it is named
            otherwise, such as by a kept record.
        refs: the full names of the refs that lead to it, sorted.
    """

    commit: ObjectId
    messages: tuple[Address, ...]
    refs: tuple[str, ...]


@value
class SentContext:
    """A context with purged content that was sent to a provider, as a usage report says.

    Attributes:
        report: the commit with the report.
        commit: the commit whose context it was.
        provider, model: as reported, or "".
        sent: the hash of the bytes that were sent, or "".
    """

    report: ObjectId
    commit: ObjectId
    provider: str
    model: str
    sent: str


@value
class Holders:
    """All that held some objects.

    Attributes:
        commits: sorted by their ids.
        refs: every ref that leads to one of them, or to a kept file that is laid out with one of the objects.
        contexts: those that were sent.
    """

    commits: tuple[Holder, ...]
    refs: tuple[str, ...]
    contexts: tuple[SentContext, ...]


class Survey:
    """What was learned of a repository while all its objects went by.

    Attributes:
        unreadable: objects that could not be read, by their ids, and why.
    """

    def __init__(self) -> None:
        self._commits: dict[bytes, Commit] = {}
        self._links: dict[bytes, Sequence[ObjectId]] = {}
        self.unreadable: dict[ObjectId, str] = {}

    def objects(
        self, store: Store, oids: Iterable[ObjectId] | None = None
    ) -> Iterator[tuple[ObjectId, str, bytes]]:
        """Yield (id, kind, bytes) of these objects, or of all that there are, as far as they can be read."""
        oids = [*store.objects.iterate(), *_quarantined(store)] if oids is None else list(oids)
        at = 0
        while at < len(oids):
            try:
                for oid, data in store.objects.read_many(oids[at:]):
                    at += 1
                    kind = self._learn(oid, data)
                    if kind:
                        yield oid, kind, data
            except errors.TraceError as error:
                self.unreadable[oids[at]] = str(error)
                at += 1

    def _learn(self, oid: ObjectId, data: bytes) -> str:
        try:
            kind = kind_of(data)
            if kind == COMMIT:
                self._commits[oid] = Commit.decode(data)
            if kind != BLOB:
                self._links[oid] = links(data)
        except errors.TraceError as error:
            self.unreadable[oid] = str(error)
            return ""
        return kind

    def messages_with(self, holder: Holder, oid: bytes) -> tuple[Address, ...]:
        """Return the messages that say one object, as a holder has them."""
        return _messages(holder.commit, self._commits[holder.commit], frozenset((oid,)))

    def names(self, holder: Holder, oid: bytes) -> bool:
        """Tell whether a holder names an object, itself or by a list of chunks."""
        named = self._links[holder.commit]
        return oid in named or any(oid in self._links.get(each, ()) for each in named)

    def holders(self, store: Store, oids: frozenset[bytes]) -> Holders:
        """Return who holds some of these objects, or is one of them; `objects` has to have gone by."""
        lists = {
            oid
            for oid, named in self._links.items()
            if oid not in self._commits and not oids.isdisjoint(named)
        }
        wanted = oids | lists  # content in chunks, and pieces of kept files, are named by a list
        found = {
            oid: commit
            for oid, commit in self._commits.items()
            if oid in oids or not wanted.isdisjoint(self._links[oid])
        }
        held = self._held_before(frozenset(found))
        refs: dict[bytes, list[str]] = {}
        all_refs: set[str] = set()
        for name, tips in store.refs.iterate_tips():
            for tip in tips:
                if tip in held or self._reaches(tip, wanted):
                    all_refs.add(name)
                for oid in held.get(tip, ()):
                    refs.setdefault(oid, []).append(name)
        commits = [
            Holder(
                ObjectId(oid), _messages(oid, commit, wanted), tuple(sorted(set(refs.get(oid, ()))))
            )
            for oid, commit in sorted(found.items())
        ]
        return Holders(tuple(commits), tuple(sorted(all_refs)), tuple(self._sent(held)))

    def _reaches(self, oid: bytes, wanted: frozenset[bytes] | set[bytes]) -> bool:
        """Tell whether a list or tag, and those before it, name some of these objects."""
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

    def _held_before(self, found: frozenset[bytes]) -> Mapping[bytes, frozenset[bytes]]:
        """Return, for each commit, which of some commits it comes from or is; only for those that come from any."""
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
                if oid in found:
                    sets.append(frozenset((oid,)))
                # A history that adds nothing shares one set, so that a long one takes no more room.
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
    """Return what is only in quarantine."""
    if not isinstance(store.objects, ObjectDatabase):
        return []
    found: dict[ObjectId, None] = {}
    for taking in store.objects.quarantine.takings():
        found.update(dict.fromkeys([*taking.packs.iterate(), *taking.loose.iterate()]))
    purged = store.objects.purged
    return [oid for oid in found if oid not in purged and not store.objects.contains(oid)]


def _messages(oid: bytes, commit: Commit, wanted: frozenset[bytes]) -> tuple[Address, ...]:
    """Return the messages that some objects are said by, in wordings that stand in a commit."""
    said = [
        (address, parts)
        for address, message in ops.added_messages(commit, oid)
        for parts in (message["parts"], *message.get("edits", ()))
    ]
    said += [
        (ops.targets_of(each, oid)[0], each.fields["parts"])
        for each in commit.operations
        if each.name == ops.EDIT
    ]
    found = (address for address, parts in said if not wanted.isdisjoint(part_blobs(parts)))
    return tuple(dict.fromkeys(found))

"""Creation of bundles: selected refs and everything reachable from them.

Invariant: a bundle carries refs, so every selector must match at least one. A ref includes the refs below it. A
session branch includes the session's source files.

Invariant: the same selection, HEAD and compression level always give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from trace_store.base.oid import OID_BYTES, ObjectId
from trace_store.bundles.format import (
    TOMBSTONES,
    BundledRef,
    BundleHeader,
    BundleReader,
    BundleWriter,
    Write,
)
from trace_store.commit_table.graph import ancestors
from trace_store.contracts.ref_names import BRANCHES, FILES, SESSIONS, TRAJECTORIES, TRASH
from trace_store.errors import (
    AmbiguousRevisionError,
    InvalidInputError,
    NotFoundError,
    ObjectNotFoundError,
    RefNotFoundError,
    StateError,
    UnbornBranchError,
)
from trace_store.objects.commit import parents_of, read_commit
from trace_store.odb.pack_writer import SHARED_BYTES, PackEncoder
from trace_store.odb.reachable import reachable, reachable_ids
from trace_store.odb.tombstones import Tombstone, file_name, oid_of
from trace_store.store.revision import ref_of, resolve, resolve_commit
from trace_store.store.store import Store

_SESSION = "session"
"""The relation of a link from an event of a trajectory to its session."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Refs to bundle and commits to leave out.

    Attributes:
        refs: refs in name order.
        since: commits whose history the receiver already has.
    """

    refs: tuple[BundledRef, ...]
    since: tuple[ObjectId, ...]


def select_refs(
    store: Store,
    words: Sequence[str],
    *,
    everything: bool = False,
    trash: bool = False,
    since: Iterable[str] = (),
    sessions: bool = False,
) -> Selection:
    """Resolve selectors to the refs to bundle.

    Args:
        store: the source repository.
        words: refs, session id prefixes, ref folders, `A..B` (B without the history of A) or `^A` (exclude A).
            Default: the current branch.
        everything: select every ref outside the trash.
        trash: with `everything`, select the trash as well.
        since: commits whose history is left out.
        sessions: also select the branches with the sessions that selected trajectories mention.

    Raises:
        RefNotFoundError: a selector matches nothing.
        RevisionNotFoundError: a commit to leave out does not exist.
        AmbiguousRevisionError: a session id prefix matches several sessions.
        InvalidInputError: a selector names an object but no ref.
        UnbornBranchError: the current branch has no commit.
        StateError: nothing is selected, or HEAD is detached.
    """
    every = dict(store.refs.iterate_tips())
    all_names = list(every)
    excluded = list(since)
    names: set[str] = set()
    if everything:
        names.update(name for name in every if trash or not name.startswith(TRASH))
    for word in words or ([] if everything else ["HEAD"]):
        if word.startswith("^"):
            excluded.append(word[1:])
            continue
        if "..." in word:
            raise InvalidInputError(f"{word[:120]!r} is not a ref; a bundle carries refs")
        left, dots, right = word.partition("..")
        if dots:
            excluded.append(left or "HEAD")
        matched = _match_refs(store, all_names, (right or "HEAD") if dots else word)
        names.update(_with_files(all_names, matched))
    if not names:
        raise StateError("no ref to bundle")
    if sessions:
        names.update(_with_files(all_names, _mentioned_branches(store, every, names)))
    refs = tuple(BundledRef(name, every[name]) for name in sorted(names))
    return Selection(refs, tuple(resolve_commit(store, word) for word in excluded))


def _mentioned_branches(
    store: Store, every: Mapping[str, Sequence[ObjectId]], names: Iterable[str]
) -> list[str]:
    """Return the branches with the commits that events of trajectories mention as their sessions."""
    read = store.objects.read
    mentioned: set[str] = set()  # a link names its target by id, or by any text
    for name in names:
        if name.startswith(TRAJECTORIES):
            for oid in ancestors(every[name], lambda oid: parents_of(read(oid))):
                for relation, target in read_commit(oid, read).links:
                    if relation == _SESSION:
                        mentioned.add(str(target))
    found: list[str] = []
    for name, tips in every.items():
        if name.startswith(BRANCHES) and mentioned:
            history = ancestors(tips, lambda oid: parents_of(read(oid)))
            if not mentioned.isdisjoint(map(str, history)):
                found.append(name)
    return found


def _match_refs(store: Store, every: list[str], word: str) -> list[str]:
    """Return the refs that a selector matches, and the refs below them."""
    if word in ("HEAD", "@"):
        head = store.refs.head()
        if head.ref is None:
            raise StateError("HEAD is detached; a bundle carries refs")
        if head.oid is None:
            raise UnbornBranchError("HEAD has no commit yet", revision=word)
        return _below(every, head.ref)
    full = ref_of(store, word)
    if full is not None:
        return _below(every, full)
    folder = word.rstrip("/")
    for place in ("", "refs/", BRANCHES, SESSIONS):
        matched = _below(every, place + folder) if folder else []
        if matched:
            return matched
    matched = _match_session(every, word)
    if matched:
        return matched
    try:
        oid = resolve(store, word)
    except NotFoundError:
        raise RefNotFoundError(f"no such ref: {word[:120]!r}", ref=word) from None
    raise InvalidInputError(f"{word[:120]!r} is not a ref; a bundle carries refs", oid=oid)


def _below(every: list[str], name: str) -> list[str]:
    return [each for each in every if each == name or each.startswith(name + "/")]


def _match_session(every: list[str], prefix: str) -> list[str]:
    """Return the refs of the session whose id starts with `prefix`."""
    sessions = {
        "/".join(parts[:2])
        for parts in (
            name[len(SESSIONS) :].split("/") for name in every if name.startswith(SESSIONS)
        )
        if len(parts) > 1
        and (parts[1].startswith(prefix) or "/".join(parts[:2]).startswith(prefix))
    }
    if len(sessions) > 1:
        raise AmbiguousRevisionError(
            f"several sessions start with {prefix[:120]!r}",
            revision=prefix,
            candidates=sorted(sessions),
        )
    return [name for session in sessions for name in _below(every, SESSIONS + session)]


def _with_files(every: list[str], names: list[str]) -> list[str]:
    matched = list(names)
    for name in names:
        if name.startswith(SESSIONS):
            matched += _below(every, FILES + name[len(SESSIONS) :])
    return matched


Progress = Callable[[int, int], None]
"""Receives the number of objects written or read so far, and the total."""

Look = Callable[[bytes], object]
"""Receives the bytes of each object."""


@dataclass(frozen=True, slots=True)
class BundleReport:
    """Contents and size of a bundle.

    Attributes:
        refs: refs in the bundle.
        prerequisites: objects that the receiver must already have.
        object_count: number of objects.
        pack_count: number of packs.
        size_bytes: size in bytes.
        head: full name of the ref that HEAD was on, or "".
        secrets: number of secrets in it; None if it was not searched for any.
    """

    JSON = "objects=object_count packs=pack_count head?"

    refs: tuple[BundledRef, ...]
    prerequisites: tuple[ObjectId, ...]
    object_count: int
    pack_count: int
    size_bytes: int
    head: str
    secrets: int | None = None


def contents(store: Store, selection: Selection) -> tuple[BundleHeader, bytes]:
    """Return the header and the concatenated object ids.

    Raises:
        ObjectNotFoundError: a reachable object is missing.
    """
    read = store.objects.read
    starts: list[ObjectId] = []
    for ref in selection.refs:
        for tip in ref.tips:
            if not store.objects.contains(tip):
                raise ObjectNotFoundError(f"missing object {tip}, the tip of {ref.name}", oid=tip)
            starts.append(tip)

    def parents(oid: ObjectId) -> list[ObjectId]:
        return parents_of(read(oid))

    boundary = _Boundary(set(ancestors(selection.since, parents)))
    purged: set[bytes] = set()

    def absent(oid: ObjectId, referrer: ObjectId | None) -> None:
        # A ref to a purged object is an error; a link to one becomes a tombstone.
        if oid not in store.objects.purged or referrer is None:
            why = f", linked from {referrer}" if referrer else ""
            raise ObjectNotFoundError(f"missing object {oid}{why}", oid=oid, named_by=referrer)
        purged.add(oid)

    oids = [oid for oid, _ in reachable(read, starts, hidden=boundary, absent=absent)]
    # A receiver that has a commit also has its ancestors.
    older = set(ancestors((up for oid in boundary.met for up in parents(oid)), parents))
    prerequisites = sorted(boundary.met - older)
    if prerequisites:
        # The receiver is only sure to have what the prerequisites reach.
        present = reachable_ids(read, prerequisites)
        oids = [oid for oid in oids if oid not in present]
    head = store.refs.head().ref or ""
    header = BundleHeader(
        refs=selection.refs,
        prerequisites=tuple(prerequisites),
        object_count=len(oids),
        head=head if any(ref.name == head for ref in selection.refs) else "",
        requires=(TOMBSTONES,) if purged else (),
        tombstones=tuple(_tombstones(store, purged)),
    )
    return header, b"".join(oids)


def _tombstones(store: Store, purged: set[bytes]) -> list[tuple[str, bytes]]:
    """Return the tombstone files of purged objects; recreate unreadable ones."""
    tombstones = store.objects.tombstones
    files = [file for file in tombstones.valid_files() if oid_of(file[0]) in purged]
    readable = {oid_of(name) for name, _ in files}
    for oid in purged - readable:
        # The true time is lost; this is the least valid one.
        data = Tombstone(ObjectId(oid), time=1).encode()
        files.append((file_name(oid, data), data))
    return sorted(files)


class _Boundary:
    """Excluded commits, and those among them that a walk reached."""

    __slots__ = ("_commits", "met")

    def __init__(self, commits: set[ObjectId]) -> None:
        self._commits = commits
        self.met: set[ObjectId] = set()

    def __contains__(self, oid: object) -> bool:
        if oid not in self._commits:
            return False
        assert isinstance(oid, ObjectId)
        self.met.add(oid)
        return True


def write_bundle(
    store: Store,
    write: Write,
    header: BundleHeader,
    oids: bytes,
    level: int,
    progress: Progress | None,
    look: Look,
) -> BundleReport:
    """Write a bundle, show `look` the bytes of each object, and return the report."""
    writer = BundleWriter(write, header)
    encoder = PackEncoder(writer.begin, level=level, shared_bytes=SHARED_BYTES)
    for at in range(0, len(oids), OID_BYTES):
        oid = oids[at : at + OID_BYTES]
        data = store.objects.read(oid)
        encoder.add(oid, data)
        look(data)
        if progress is not None:
            progress(at // OID_BYTES + 1, header.object_count)
    encoder.finish()
    writer.finish()
    return report(writer)


def report(bundle: BundleReader | BundleWriter) -> BundleReport:
    """Return the report of a bundle that was read or written to its end."""
    header = bundle.header
    return BundleReport(
        refs=header.refs,
        prerequisites=header.prerequisites,
        object_count=header.object_count,
        pack_count=bundle.pack_count,
        size_bytes=bundle.size_bytes,
        head=header.head,
    )

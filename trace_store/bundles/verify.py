"""Check a bundle: every byte, every object, every link.

Rule: whatever takes a bundle goes through this first. An object may name what is in the bundle; and where the bundle
builds upon something, also what is here.
"""

from __future__ import annotations

from collections.abc import Callable

from trace_store.bundles.create import BundleReport, Progress
from trace_store.bundles.format import BundleHeader, BundleReader, Read
from trace_store.bundles.source import opened_bundle
from trace_store.errors import CorruptBundleError, CorruptPackError, ObjectNotFoundError
from trace_store.objects.codec import BLOB, COMMIT, kind_of, links
from trace_store.odb.ingest import pack_of
from trace_store.odb.verify import Examination, PackedObject
from trace_store.oid import ObjectId
from trace_store.refs.names import BRANCHES
from trace_store.store.handle import Store

Take = Callable[[bytes, str, Callable[[PackedObject], None]], object]
"""Given a pack's bytes, what it is called, and who is shown its objects."""


def list_bundle(source: str | Read) -> BundleHeader:
    """Return what a bundle says of itself, without reading further.

    Raises:
        UnreadableInputError: there is no such file, or it cannot be read.
        CorruptBundleError: it is no bundle, or its header is damaged.
        UnsupportedFormatError: a newer version wrote it.
    """
    with opened_bundle(source) as reader:
        return reader.header


def verify_bundle(
    source: str | Read, store: Store | None = None, *, progress: Progress | None = None
) -> BundleReport:
    """Read a bundle to its end, and return what is in it.

    Args:
        source: the path of a file, or a function that reads a stream.
        store: where it would be imported; without one, nobody looks whether its prerequisites are there.
        progress: told how far it is.

    Raises:
        As `list_bundle`; and
        CorruptBundleError: something is wrong with it.
        ObjectNotFoundError: what it builds upon is not in the store; `.missing` holds the ids.
    """
    with opened_bundle(source) as reader:
        if store is not None:
            check_prerequisites(store, reader.header)
        go_through(reader, examine, store=store, progress=progress)
        return report(reader)


def report(reader: BundleReader) -> BundleReport:
    """Return a bundle that was read to its end in figures."""
    header = reader.header
    return BundleReport(
        refs=header.refs,
        prerequisites=header.prerequisites,
        object_count=header.object_count,
        pack_count=reader.pack_count,
        size_bytes=reader.size_bytes,
        head=header.head,
    )


def check_prerequisites(store: Store, header: BundleHeader) -> None:
    """Accept a bundle all of whose prerequisites are in a store.

    Raises:
        ObjectNotFoundError: one is not; `.missing` holds the ids.
    """
    missing = tuple(oid for oid in header.prerequisites if not store.objects.contains(oid))
    if missing:
        count = len(missing)
        raise ObjectNotFoundError(
            f"the bundle builds upon {'a commit' if count == 1 else f'{count} commits'} that"
            f" {'is' if count == 1 else 'are'} not here, such as {missing[0]}",
            missing=missing,
        )


def go_through(
    reader: BundleReader,
    take: Take,
    *,
    store: Store | None,
    progress: Progress | None = None,
) -> None:
    """Read a bundle to its end and give its packs to `take`; returns when all of it has been found to be sound.

    Raises:
        CorruptBundleError: something is wrong with it.
        ObjectNotFoundError: it builds upon objects, and one of those that they lead to is not here.
    """
    check = _Check(reader.header, progress)
    for number, data in enumerate(reader.packs(), 1):
        try:
            take(data, f"pack {number} of the bundle", check.see)
        except CorruptPackError as error:
            raise CorruptBundleError(error.message) from error
    check.finish(store)


def examine(data: bytes, where: str, see: Callable[[PackedObject], None]) -> None:
    """Check a pack, and keep nothing of it."""
    for found in Examination(pack_of(data, where)).objects():
        see(found)


class _Check:
    """What was seen of a bundle, and what must still turn up."""

    def __init__(self, header: BundleHeader, progress: Progress | None) -> None:
        self._header = header
        self._progress = progress
        self._present: set[bytes] = set()
        self._named: dict[ObjectId, ObjectId] = {}
        self._kinds: dict[ObjectId, str] = {}
        self._tips = {tip for ref in header.refs for tip in ref.tips}

    def see(self, found: PackedObject) -> None:
        """Take note of an object, and of what it names."""
        oid = found.oid
        self._present.add(oid)
        self._named.pop(oid, None)
        if oid in self._tips:
            self._kinds[oid] = found.kind
        if found.kind != BLOB:
            for name in links(found.data):
                if name not in self._present:
                    self._named.setdefault(name, oid)
        if self._progress is not None:
            self._progress(len(self._present), self._header.object_count)

    def finish(self, store: Store | None) -> None:
        """Accept what was seen, when it is all that there should be."""
        header = self._header
        if len(self._present) != header.object_count:
            raise CorruptBundleError(
                f"the bundle holds {len(self._present)} objects, not {header.object_count}"
            )
        for name, namer in self._named.items():
            self._check_outside(name, f"{namer} names", store)
        for ref in header.refs:
            for tip in ref.tips:
                kind = self._kinds.get(tip)
                if kind is None:
                    self._check_outside(tip, f"{ref.name} stands for", store)
                    kind = None if store is None else kind_of(store.objects.read(tip))
                if kind not in (COMMIT, None) and ref.name.startswith(BRANCHES):
                    raise CorruptBundleError(
                        f"the branch {ref.name} of the bundle stands for no commit"
                    )

    def _check_outside(self, oid: ObjectId, why: str, store: Store | None) -> None:
        """Accept an object that is not in the bundle, because what this builds upon leads to it."""
        if oid in self._header.purged or (store is not None and oid in store.objects.purged):
            return  # nobody has it, and it is told why
        if not self._header.prerequisites:
            raise CorruptBundleError(f"the bundle lacks object {oid}, which {why}")
        if store is not None and not store.objects.contains(oid):
            raise ObjectNotFoundError(
                f"the bundle builds upon object {oid}, which {why} and which is not here",
                missing=(oid,),
            )

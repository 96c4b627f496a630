"""Verification of bundles: every byte, object and link.

Invariant: an import publishes nothing until all checks have passed. An object may link to objects in the bundle and,
if the bundle has prerequisites, to objects in the store.
"""

from __future__ import annotations

from collections.abc import Callable

from trace_store.base.oid import ObjectId
from trace_store.bundles.create import Progress
from trace_store.bundles.format import BundleHeader, BundleReader
from trace_store.contracts.ref_names import BRANCHES
from trace_store.errors import (
    CorruptBundleError,
    CorruptPackError,
    ErrorCode,
    ObjectNotFoundError,
)
from trace_store.objects.codec import BLOB, COMMIT, kind_of, links
from trace_store.odb.ingest import pack_of
from trace_store.odb.verify import PackedObject, PackVerifier
from trace_store.store.store import Store

Take = Callable[[bytes, str, Callable[[PackedObject], None]], object]
"""Receives the bytes of a pack, its name, and a callback for each object."""


def check_prerequisites(store: Store, header: BundleHeader) -> None:
    """Check that a store has all prerequisites of a bundle.

    Raises:
        ObjectNotFoundError: some are missing; `.missing` holds the ids.
    """
    missing = tuple(oid for oid in header.prerequisites if not store.objects.contains(oid))
    if missing:
        count = len(missing)
        raise ObjectNotFoundError(
            f"the bundle requires {'a commit' if count == 1 else f'{count} commits'} that"
            f" {'is' if count == 1 else 'are'} missing here, such as {missing[0]}",
            code=ErrorCode.PREREQUISITES_MISSING,
            missing=missing,
        )


def check_bundle(
    reader: BundleReader,
    take: Take,
    *,
    store: Store | None,
    progress: Progress | None = None,
) -> None:
    """Verify a bundle and pass its packs to `take`.

    Raises:
        CorruptBundleError: the bundle is damaged or incomplete.
        ObjectNotFoundError: something reachable from the prerequisites is missing.
    """
    check = _Check(reader.header, progress)
    for number, data in enumerate(reader.packs(), 1):
        try:
            take(data, f"pack {number} of the bundle", check.add)
        except CorruptPackError as error:
            raise CorruptBundleError(error.message) from error
    check.finish(store)


def check_pack(data: bytes, pack_name: str, on_object: Callable[[PackedObject], None]) -> None:
    """Check a pack without storing it."""
    for packed in PackVerifier(pack_of(data, pack_name)).objects():
        on_object(packed)


class _Check:
    """Objects read so far, and links not yet resolved."""

    def __init__(self, header: BundleHeader, progress: Progress | None) -> None:
        self._header = header
        self._progress = progress
        self._present: set[bytes] = set()
        self._unresolved: dict[ObjectId, ObjectId] = {}
        self._kinds: dict[ObjectId, str] = {}
        self._tips = {tip for ref in header.refs for tip in ref.tips}

    def add(self, packed: PackedObject) -> None:
        """Record an object and its links."""
        oid = packed.oid
        self._present.add(oid)
        self._unresolved.pop(oid, None)
        if oid in self._tips:
            self._kinds[oid] = packed.kind
        if packed.kind != BLOB:
            for linked in links(packed.data):
                if linked not in self._present:
                    self._unresolved.setdefault(linked, oid)
        if self._progress is not None:
            self._progress(len(self._present), self._header.object_count)

    def finish(self, store: Store | None) -> None:
        """Raise if objects are missing or a branch tip is not a commit."""
        header = self._header
        if len(self._present) != header.object_count:
            raise CorruptBundleError(
                f"bundle has {len(self._present)} objects, expected {header.object_count}"
            )
        for linked, referrer in self._unresolved.items():
            self._check_outside(linked, f"linked from {referrer}", store)
        for ref in header.refs:
            for tip in ref.tips:
                kind = self._kinds.get(tip)
                if kind is None:
                    self._check_outside(tip, f"the tip of {ref.name}", store)
                    kind = None if store is None else kind_of(store.objects.read(tip))
                if kind not in (COMMIT, None) and ref.name.startswith(BRANCHES):
                    raise CorruptBundleError(
                        f"branch {ref.name} of the bundle points to a {kind}, not a commit"
                    )

    def _check_outside(self, oid: ObjectId, why: str, store: Store | None) -> None:
        """Check an object that only the prerequisites can provide."""
        if oid in self._header.purged or (store is not None and oid in store.objects.purged):
            return  # purged: missing everywhere, with a tombstone
        if not self._header.prerequisites:
            raise CorruptBundleError(f"bundle lacks object {oid}, {why}")
        if store is not None and not store.objects.contains(oid):
            raise ObjectNotFoundError(
                f"the bundle requires object {oid}, {why}, which is missing here",
                missing=(oid,),
            )

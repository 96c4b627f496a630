"""What contexts of branches show, by their indexes: at the tip of one, and at commits that appends alone led on from.

Rule: reads records and folds nothing, but for an index that has to be made first.
"""

from __future__ import annotations

from trace_store import context
from trace_store.columns import DiskColumn, MemoryColumn
from trace_store.context.compile_index import CompileIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.context.compile_index import IndexView
    from trace_store.context.index_records import MessageRecord
    from trace_store.store import Store

    Address = tuple[bytes, int]


class Shown:
    """Looks up records in the indexes of some branches. That of the first is caught up when it is asked."""

    def __init__(self, store: Store, refs: Sequence[str]) -> None:
        self._store = store
        self._ref = refs[0]
        self._indexes = [self._index(ref) for ref in dict.fromkeys(refs)]
        self._views: dict[bytes, IndexView | None] = {}

    def find(self, tip: bytes, address: Address) -> MessageRecord | None:
        """Return the record of a message in the context of a commit; None when it is not shown, or no record tells.

        Raises:
            ObjectNotFoundError, CorruptObjectError, InvalidOperationError, UnsupportedFormatError: as in `fold`.
        """
        if tip not in self._views:
            self._views[tip] = self._view(tip)
        view = self._views[tip]
        return None if view is None else view.find(address)

    def _view(self, tip: bytes) -> IndexView | None:
        objects = self._store.objects
        if tip == self._store.refs.read(self._ref):
            return self._indexes[0].view(tip, objects.read, read_many=objects.read_many)
        found = (index.prefix_view(tip) for index in self._indexes)
        return next((view for view in found if view is not None), None)

    def _index(self, ref: str) -> CompileIndex:
        store = self._store
        column: DiskColumn | MemoryColumn = MemoryColumn()
        if store.local:
            column = DiskColumn(store.disk, store.layout.index_file(ref, "messages"))
        return CompileIndex(column, new_commits=lambda *two: context.new_commits(store, *two))

"""What contexts of a branch show, by its index: that of its tip, and of commits that appends led on from."""

from __future__ import annotations

from trace_store import context
from trace_store.columns import DiskColumn, MemoryColumn
from trace_store.context.compile_index import CompileIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.compile_index import IndexView
    from trace_store.context.index_records import MessageRecord
    from trace_store.store import Store

    Address = tuple[bytes, int]


class Shown:
    """Looks up records. The branch's index is caught up when one is asked for."""

    def __init__(self, store: Store, ref: str) -> None:
        self._store = store
        self._ref = ref
        column = (
            DiskColumn(store.disk, store.layout.index_file(ref, "messages"))
            if store.local
            else MemoryColumn()
        )
        self._index = CompileIndex(
            column, new_commits=lambda *two: context.new_commits(store, *two)
        )
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
            return self._index.view(tip, objects.read, read_many=objects.read_many)
        return self._index.prefix_view(tip)

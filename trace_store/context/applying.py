"""Whether a commit that is being made can be applied, found out from the index of its branch.

Rule: a yes is what a fold would say. Everything else is not an answer, and the fold has to be asked.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.columns import DiskColumn
from trace_store.context import index_records as form
from trace_store.context.compile_index import CompileIndex
from trace_store.context.deriving import applies
from trace_store.context.recent import Recent, new_commits
from trace_store.objects.commit import Commit, read_commit
from trace_store.store import Store


def surely_applies(store: Store, ref: str, tip: bytes, commit: Commit) -> bool:
    """Tell whether the context of a branch's tip holds what a commit names; False when only a fold can tell.

    The branch's index is caught up.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit of the branch is not here, or is damaged.
    """
    if not store.local:
        return False
    index = CompileIndex(DiskColumn(store.disk, store.layout.index_file(ref, "messages")))
    view = index.unfolded(tip, store.objects.read, store.objects.read_many)
    if view is None:
        return False
    data = view.opened.read(form.HEADER_BYTES, view.records * form.MESSAGE_BYTES)
    try:
        form.check_records(data)
    except errors.CorruptIndexError:
        return False

    def read(oid: bytes) -> Commit:
        return read_commit(oid, store.objects.read)

    recent = Recent(read, lambda one, other: new_commits(store, one, other))
    return applies(data, commit, recent)

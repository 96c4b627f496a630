"""What moves a branch asks first whether a merge, a pick or a rebase of it waits."""

from __future__ import annotations

from trace_store import joining

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store import Store


def check_nothing_waits(store: Store) -> None:
    """Raise StateError when something stopped half-way and waits for somebody to settle it."""
    if store.disk.exists(store.layout.stopped_file):
        joining.refuse_while_stopped(store)

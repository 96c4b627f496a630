"""What moves a branch asks first whether a merge, a pick or a rebase of it waits."""

from __future__ import annotations

from trace_cli.porcelain.opening import something_waits
from trace_store import joining

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store import Store


def check_nothing_waits(store: Store, *refs: str) -> None:
    """Raise StateError when something, or something that moves one of some refs, waits for somebody to settle it."""
    if something_waits(store):
        joining.refuse_while_stopped(store, refs)

"""Merge, cherry-pick, rebase and revert: one three-way merge with different bases."""

from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.merge import cherry_pick as cherry_pick
    from trace_store.merge import conflicts as conflicts
    from trace_store.merge import in_progress as in_progress
    from trace_store.merge import inputs as inputs
    from trace_store.merge import llm_assist as llm_assist
    from trace_store.merge import merge as merge
    from trace_store.merge import move as move
    from trace_store.merge import rebase as rebase
    from trace_store.merge import resolve as resolve
    from trace_store.merge import result as result
    from trace_store.merge import revert as revert
    from trace_store.merge import stopped as stopped
    from trace_store.merge.stopped import Stopped as Stopped

_HOMES = {"Stopped": "stopped"}

__all__ = [*_HOMES]
__getattr__ = names(__name__, _HOMES)

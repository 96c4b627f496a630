"""Checkpoints (restore points and summaries) and forks (branches to compare).

A checkpoint is a restore point: a tag object under `refs/checkpoints/`. A soft checkpoint is a summary, to be put into
another context. A fork is a branch whose fork point is a checkpoint.
"""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.checkpoints import automatic as automatic
    from trace_store.checkpoints import comparison as comparison
    from trace_store.checkpoints import forks as forks
    from trace_store.checkpoints import hard as hard
    from trace_store.checkpoints import soft as soft
    from trace_store.checkpoints import work_state as work_state

__getattr__ = submodules(__name__)

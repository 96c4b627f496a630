"""Task systems: where the tasks of trajectories are kept, and what they are called there."""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.trajectories.tasks import handle as handle

__getattr__ = submodules(__name__)

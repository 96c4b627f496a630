"""Task systems, such as GitHub, which hold the tasks of trajectories."""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.trajectories.tasks import handle as handle

__getattr__ = submodules(__name__)

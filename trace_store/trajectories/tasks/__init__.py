"""Task systems, such as GitHub, which hold the tasks of trajectories."""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.trajectories.tasks import tasks as tasks

__getattr__ = submodules(__name__)

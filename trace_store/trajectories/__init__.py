"""Trajectories: what agents did, decided and learned during a task, recorded while it happens.

A trajectory is the history of a ref under `refs/trajectories/`. Each event is one commit, and the agent is its author.
The commit's metadata holds the state so far, so recording an event reads one commit, however long the trajectory is.
"""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.trajectories import capture as capture
    from trace_store.trajectories import code as code
    from trace_store.trajectories import compact as compact
    from trace_store.trajectories import event_search as event_search
    from trace_store.trajectories import exports as exports
    from trace_store.trajectories import git as git
    from trace_store.trajectories import git_hooks as git_hooks
    from trace_store.trajectories import git_notes as git_notes
    from trace_store.trajectories import handle as handle
    from trace_store.trajectories import proposals as proposals
    from trace_store.trajectories import reading as reading
    from trace_store.trajectories import recording as recording
    from trace_store.trajectories import retrospective as retrospective
    from trace_store.trajectories import score as score
    from trace_store.trajectories import tasks as tasks
    from trace_store.trajectories import trail as trail
    from trace_store.trajectories import trail_import as trail_import
    from trace_store.trajectories import views as views
    from trace_store.trajectories import waiting as waiting

__getattr__ = submodules(__name__)

"""Trajectories: what agents did, decided and learned during a task, recorded while it happens.

A trajectory is the history of a ref under `refs/trajectories/`. Each event is one commit, and the agent is its author.
The commit's metadata holds the state so far, so recording an event reads one commit, however long the trajectory is.
"""

from trace_store.base.lazy_import import names

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
    from trace_store.trajectories import hook_log as hook_log
    from trace_store.trajectories import proposals as proposals
    from trace_store.trajectories import reading as reading
    from trace_store.trajectories import recording as recording
    from trace_store.trajectories import retrospective as retrospective
    from trace_store.trajectories import score as score
    from trace_store.trajectories import settle as settle
    from trace_store.trajectories import tasks as tasks
    from trace_store.trajectories import trail as trail
    from trace_store.trajectories import trail_import as trail_import
    from trace_store.trajectories import trajectories as trajectories
    from trace_store.trajectories import trajectory_index as trajectory_index
    from trace_store.trajectories import views as views
    from trace_store.trajectories import waiting as waiting
    from trace_store.trajectories import why as why
    from trace_store.trajectories.events import Alternative as Alternative
    from trace_store.trajectories.events import Event as Event
    from trace_store.trajectories.events import Task as Task
    from trace_store.trajectories.events import check_confidence as check_confidence
    from trace_store.trajectories.exports import Exports as Exports
    from trace_store.trajectories.exports import SavedFolder as SavedFolder
    from trace_store.trajectories.git_hooks import hooks_status as hooks_status
    from trace_store.trajectories.git_hooks import install_hooks as install_hooks
    from trace_store.trajectories.git_hooks import run_hook as run_hook
    from trace_store.trajectories.git_hooks import uninstall_hooks as uninstall_hooks
    from trace_store.trajectories.reading import Chapter as Chapter
    from trace_store.trajectories.reading import Filter as Filter
    from trace_store.trajectories.reading import SessionMessage as SessionMessage
    from trace_store.trajectories.reading import Trajectory as Trajectory
    from trace_store.trajectories.recording import Recorded as Recorded
    from trace_store.trajectories.retrospective import read_retrospective as read_retrospective
    from trace_store.trajectories.state import Agent as Agent
    from trace_store.trajectories.state import State as State
    from trace_store.trajectories.tasks.systems import LocalProject as LocalProject
    from trace_store.trajectories.tasks.systems import TaskRecord as TaskRecord
    from trace_store.trajectories.tasks.tasks import Followed as Followed
    from trace_store.trajectories.tasks.tasks import Refreshed as Refreshed
    from trace_store.trajectories.tasks.tasks import Tasks as Tasks
    from trace_store.trajectories.trail_import import trail_folders as trail_folders
    from trace_store.trajectories.trajectories import Recording as Recording
    from trace_store.trajectories.trajectories import Trajectories as Trajectories
    from trace_store.trajectories.views.view import View as View

_HOMES = {
    "Agent": "state",
    "Alternative": "events",
    "Chapter": "reading",
    "check_confidence": "events",
    "Event": "events",
    "Exports": "exports",
    "Filter": "reading",
    "Followed": "tasks.tasks",
    "hooks_status": "git_hooks",
    "install_hooks": "git_hooks",
    "LocalProject": "tasks.systems",
    "read_retrospective": "retrospective",
    "Recorded": "recording",
    "Recording": "trajectories",
    "Refreshed": "tasks.tasks",
    "run_hook": "git_hooks",
    "SavedFolder": "exports",
    "SessionMessage": "reading",
    "State": "state",
    "Task": "events",
    "TaskRecord": "tasks.systems",
    "Tasks": "tasks.tasks",
    "trail_folders": "trail_import",
    "Trajectories": "trajectories",
    "Trajectory": "reading",
    "uninstall_hooks": "git_hooks",
    "View": "views.view",
}

__all__ = [*_HOMES]
__getattr__ = names(__name__, _HOMES)

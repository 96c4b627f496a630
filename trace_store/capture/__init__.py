"""Capture: hooks of agents, which let Trace import sessions while they run.

A hook appends a line to the spool of the repository (`spool`), and a worker imports what grew (`worker`). `install`
adds our hooks to the settings of agents and removes them; `status` says whether they work.
"""

from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.capture import agents as agents
    from trace_store.capture import install as install
    from trace_store.capture import settings_change as settings_change
    from trace_store.capture import spool as spool
    from trace_store.capture import status as status
    from trace_store.capture import worker as worker
    from trace_store.capture.install import install_hooks as install_hooks
    from trace_store.capture.install import manual_entries as manual_entries
    from trace_store.capture.install import present_agents as present_agents
    from trace_store.capture.install import uninstall_hooks as uninstall_hooks
    from trace_store.capture.settings_change import SettingsChange as SettingsChange
    from trace_store.capture.spool import AgentEvent as AgentEvent
    from trace_store.capture.spool import MissedEvent as MissedEvent
    from trace_store.capture.spool import note_event as note_event
    from trace_store.capture.spool import personal_folder as personal_folder
    from trace_store.capture.spool import read_missed as read_missed
    from trace_store.capture.status import CaptureStatus as CaptureStatus
    from trace_store.capture.status import capture_status as capture_status
    from trace_store.capture.worker import CaptureRun as CaptureRun
    from trace_store.capture.worker import catch_up as catch_up

_HOMES = {
    "AgentEvent": "spool",
    "capture_status": "status",
    "CaptureRun": "worker",
    "CaptureStatus": "status",
    "catch_up": "worker",
    "install_hooks": "install",
    "manual_entries": "install",
    "MissedEvent": "spool",
    "note_event": "spool",
    "personal_folder": "spool",
    "present_agents": "install",
    "read_missed": "spool",
    "SettingsChange": "settings_change",
    "uninstall_hooks": "install",
}

__all__ = [*_HOMES]
__getattr__ = names(__name__, _HOMES)

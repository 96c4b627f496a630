"""Housekeeping: seal, repack, gc, fsck, repair, purge.

Modules that few commands need are imported on first use.
"""

from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.maintenance import adopt as adopt
    from trace_store.maintenance import doctor as doctor
    from trace_store.maintenance import du as du
    from trace_store.maintenance import fsck as fsck
    from trace_store.maintenance import gc as gc
    from trace_store.maintenance import lock_wait as lock_wait
    from trace_store.maintenance import lost_found as lost_found
    from trace_store.maintenance import maintenance as maintenance
    from trace_store.maintenance import object_scan as object_scan
    from trace_store.maintenance import pack_marks as pack_marks
    from trace_store.maintenance import purge as purge
    from trace_store.maintenance import reachability as reachability
    from trace_store.maintenance import repack as repack
    from trace_store.maintenance import repair_files as repair_files
    from trace_store.maintenance import repair_store as repair_store
    from trace_store.maintenance import schedule as schedule
    from trace_store.maintenance import seal as seal
    from trace_store.maintenance import second_copies as second_copies
    from trace_store.maintenance import verify_purged as verify_purged
    from trace_store.maintenance.lock_wait import lock_patiently as lock_patiently
    from trace_store.maintenance.maintenance import Maintenance as Maintenance
    from trace_store.maintenance.missing_objects import came_back as came_back
    from trace_store.maintenance.missing_objects import open_incomplete as open_incomplete
    from trace_store.maintenance.repair_files import open_damaged as open_damaged
    from trace_store.maintenance.schedule import seal_if_due_by_age as seal_if_due_by_age
    from trace_store.maintenance.second_copies import restore_missing as restore_missing

_HOMES = {
    "Maintenance": "maintenance",
    "came_back": "missing_objects",
    "open_incomplete": "missing_objects",
    "lock_patiently": "lock_wait",
    "open_damaged": "repair_files",
    "restore_missing": "second_copies",
    "seal_if_due_by_age": "schedule",
}

__all__ = [*_HOMES]
__getattr__ = names(__name__, _HOMES)

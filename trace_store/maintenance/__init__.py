"""Housekeeping: seal, repack, gc, fsck, repair, purge.

Modules that few commands need are imported on first use.
"""

from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.maintenance import adopt as adopt
    from trace_store.maintenance import doctor as doctor
    from trace_store.maintenance import du as du
    from trace_store.maintenance import fsck as fsck
    from trace_store.maintenance import gc as gc
    from trace_store.maintenance import lock_wait as lock_wait
    from trace_store.maintenance import lost_found as lost_found
    from trace_store.maintenance import object_scan as object_scan
    from trace_store.maintenance import purge as purge
    from trace_store.maintenance import reachability as reachability
    from trace_store.maintenance import repack as repack
    from trace_store.maintenance import repair as repair
    from trace_store.maintenance import repair_files as repair_files
    from trace_store.maintenance import schedule as schedule
    from trace_store.maintenance import seal as seal
    from trace_store.maintenance import second_copies as second_copies

__getattr__ = submodules(__name__)

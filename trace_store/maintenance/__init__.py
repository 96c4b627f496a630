"""Housekeeping: sealing the journal into packs, folding packs, checking everything.

Few commands come to seal: what these call is imported when it is first asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.maintenance.packing import pack
    from trace_store.maintenance.schedule import seal_if_due_by_age
    from trace_store.maintenance.sealing import seal

__all__ = ["pack", "seal", "seal_if_due_by_age"]

__getattr__ = door(
    __name__, {"pack": "packing", "seal": "sealing", "seal_if_due_by_age": "schedule"}
)

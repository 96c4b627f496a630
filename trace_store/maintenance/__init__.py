"""Housekeeping: sealing the journal into packs, folding packs, checking everything.

Few commands come to seal: what these call is imported when it is first asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.maintenance.adopting import adopt
    from trace_store.maintenance.packing import pack
    from trace_store.maintenance.schedule import seal_if_due_by_age
    from trace_store.maintenance.sealing import seal
    from trace_store.maintenance.waiting import (
        forget_holder,
        lock_patiently,
        locked_error,
        note_holder,
        tell_holder,
    )

__all__ = [
    "adopt",
    "forget_holder",
    "lock_patiently",
    "locked_error",
    "note_holder",
    "pack",
    "seal",
    "seal_if_due_by_age",
    "tell_holder",
]

__getattr__ = door(
    __name__,
    {
        "adopt": "adopting",
        "forget_holder": "waiting",
        "lock_patiently": "waiting",
        "locked_error": "waiting",
        "note_holder": "waiting",
        "pack": "packing",
        "seal": "sealing",
        "seal_if_due_by_age": "schedule",
        "tell_holder": "waiting",
    },
)

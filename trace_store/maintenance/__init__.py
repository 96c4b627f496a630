"""Housekeeping: sealing the journal into packs, folding packs, checking everything.

Few commands come to seal: what these call is imported when it is first asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.maintenance.adopting import adopt
    from trace_store.maintenance.git_settings import core_pager
    from trace_store.maintenance.handling import with_explanation
    from trace_store.maintenance.intact import gaps
    from trace_store.maintenance.journal_rests import keep_rests
    from trace_store.maintenance.loose_damage import damaged_loose
    from trace_store.maintenance.lost_found import files_in, is_kept
    from trace_store.maintenance.packing import pack
    from trace_store.maintenance.schedule import seal_if_due_by_age
    from trace_store.maintenance.sealing import seal
    from trace_store.maintenance.second_copies import keep_copies, put_back
    from trace_store.maintenance.telling import warn_of_unsealed
    from trace_store.maintenance.waiting import (
        forget_holder,
        lock_patiently,
        locked_error,
        note_holder,
        tell_holder,
    )

__all__ = [
    "adopt",
    "core_pager",
    "damaged_loose",
    "files_in",
    "forget_holder",
    "gaps",
    "is_kept",
    "keep_copies",
    "keep_rests",
    "lock_patiently",
    "locked_error",
    "note_holder",
    "pack",
    "put_back",
    "seal",
    "seal_if_due_by_age",
    "tell_holder",
    "warn_of_unsealed",
    "with_explanation",
]

__getattr__ = door(
    __name__,
    {
        "adopt": "adopting",
        "core_pager": "git_settings",
        "damaged_loose": "loose_damage",
        "files_in": "lost_found",
        "forget_holder": "waiting",
        "gaps": "intact",
        "is_kept": "lost_found",
        "keep_copies": "second_copies",
        "keep_rests": "journal_rests",
        "lock_patiently": "waiting",
        "locked_error": "waiting",
        "note_holder": "waiting",
        "pack": "packing",
        "put_back": "second_copies",
        "seal": "sealing",
        "seal_if_due_by_age": "schedule",
        "tell_holder": "waiting",
        "warn_of_unsealed": "telling",
        "with_explanation": "handling",
    },
)

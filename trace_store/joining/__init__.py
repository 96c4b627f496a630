"""Joining lines of history: merges, picked commits, rebases, and what is settled by hand.

What few commands need is offered here, and imported when it is first asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.joining.conflicts import Conflict, Settlement
    from trace_store.joining.merging import (
        Merge,
        MergeOptions,
        continue_merge,
        look_at_merge,
        merge,
    )
    from trace_store.joining.semantic import Advisor, Proposal
    from trace_store.joining.settling import abort, open_conflicts, resolve

_HOMES = {
    "conflicts": ("Conflict", "Settlement"),
    "merging": ("Merge", "MergeOptions", "continue_merge", "look_at_merge", "merge"),
    "semantic": ("Advisor", "Proposal"),
    "settling": ("abort", "open_conflicts", "resolve"),
}

__all__ = [
    "Advisor",
    "Conflict",
    "Merge",
    "MergeOptions",
    "Proposal",
    "Settlement",
    "abort",
    "continue_merge",
    "look_at_merge",
    "merge",
    "open_conflicts",
    "resolve",
]

__getattr__ = door(__name__, {name: home for home, names in _HOMES.items() for name in names})

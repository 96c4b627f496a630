"""Joining lines of history: merges, picked commits, rebases, and what is settled by hand.

What few commands need is offered here, and imported when it is first asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.joining.advising.judging import Judge, Judgement
    from trace_store.joining.advising.semantic import Advisor, Proposal
    from trace_store.joining.at_stake import ConflictMessage
    from trace_store.joining.conflicts import Conflict, Settlement
    from trace_store.joining.merging import (
        Merge,
        MergeOptions,
        continue_merge,
        look_at_merge,
        merge,
    )
    from trace_store.joining.moving import MovedMessages, move
    from trace_store.joining.reverting import Revert, Reverted, continue_revert, revert
    from trace_store.joining.rewriting.outcome import Rewrite
    from trace_store.joining.rewriting.picking import cherry_pick
    from trace_store.joining.rewriting.rebasing import continue_rewriting, rebase, to_rebase
    from trace_store.joining.rewriting.todo import Step
    from trace_store.joining.settling import (
        abort,
        find_conflict,
        met_conflicts,
        open_conflicts,
        resolve,
        resume,
    )
    from trace_store.joining.stops import Stop, read_stop, refuse_while_stopped

_HOMES = {
    "at_stake": ("ConflictMessage",),
    "conflicts": ("Conflict", "Settlement"),
    "advising.judging": ("Judge", "Judgement"),
    "merging": ("Merge", "MergeOptions", "continue_merge", "look_at_merge", "merge"),
    "moving": ("MovedMessages", "move"),
    "advising.semantic": ("Advisor", "Proposal"),
    "rewriting.picking": ("cherry_pick",),
    "rewriting.rebasing": ("continue_rewriting", "rebase", "to_rebase"),
    "reverting": ("Revert", "Reverted", "continue_revert", "revert"),
    "rewriting.outcome": ("Rewrite",),
    "settling": ("abort", "find_conflict", "met_conflicts", "open_conflicts", "resolve", "resume"),
    "stops": ("Stop", "read_stop", "refuse_while_stopped"),
    "rewriting.todo": ("Step",),
}

__all__ = [
    "Advisor",
    "Conflict",
    "ConflictMessage",
    "Judge",
    "Judgement",
    "Merge",
    "MergeOptions",
    "MovedMessages",
    "Proposal",
    "Revert",
    "Reverted",
    "Rewrite",
    "Settlement",
    "Step",
    "Stop",
    "abort",
    "cherry_pick",
    "continue_merge",
    "continue_revert",
    "continue_rewriting",
    "find_conflict",
    "look_at_merge",
    "merge",
    "met_conflicts",
    "move",
    "open_conflicts",
    "read_stop",
    "rebase",
    "refuse_while_stopped",
    "resolve",
    "resume",
    "revert",
    "to_rebase",
]

__getattr__ = door(__name__, {name: home for home, names in _HOMES.items() for name in names})

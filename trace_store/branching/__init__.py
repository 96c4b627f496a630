"""Moving about in a history: branches, tags, HEAD, steps back, and taking these steps back.

Rule: whatever a ref is moved away from, or was deleted with, is kept in the same transaction under a name in
`refs/trash/`; nothing is kept alive by a reflog alone. What a command needs of it is imported when it is asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.branching.branches import (
        Branch,
        branch_of_head,
        create_branch,
        delete_branches,
        find_branch,
        list_branches,
        look_at_branch,
        names_before_and_after,
        rename_branch,
    )
    from trace_store.branching.logs import find_log, has_log, newest_first
    from trace_store.branching.resetting import Reset, reset_hard, reset_soft
    from trace_store.branching.staging import (
        Recommitted,
        Staged,
        commit_staged,
        squash,
        staged,
        staged_tip,
    )
    from trace_store.branching.switching import Switched, begin_branch, begin_empty, detach, switch
    from trace_store.branching.tagging import TagEntry, create_tag, delete_tags, list_tags
    from trace_store.branching.trash import goes_on, keeping
    from trace_store.branching.undoing import Undone, redo, undo
    from trace_store.branching.upstreams import (
        Tracking,
        ahead_behind,
        required_upstream,
        set_upstream,
        tracking,
        unset_upstream,
        upstream_of,
    )

_HOMES = {
    "branches": (
        *(
            "Branch",
            "branch_of_head",
            "create_branch",
            "delete_branches",
            "find_branch",
            "list_branches",
        ),
        *("look_at_branch", "names_before_and_after", "rename_branch"),
    ),
    "logs": ("find_log", "has_log", "newest_first"),
    "resetting": ("Reset", "reset_hard", "reset_soft"),
    "staging": ("Recommitted", "Staged", "commit_staged", "squash", "staged", "staged_tip"),
    "switching": ("Switched", "begin_branch", "begin_empty", "detach", "switch"),
    "tagging": ("TagEntry", "create_tag", "delete_tags", "list_tags"),
    "trash": ("goes_on", "keeping"),
    "undoing": ("Undone", "redo", "undo"),
    "upstreams": (
        *("Tracking", "ahead_behind", "required_upstream", "set_upstream", "tracking"),
        *("unset_upstream", "upstream_of"),
    ),
}

__all__ = [
    "Branch",
    "Recommitted",
    "Reset",
    "Staged",
    "Switched",
    "TagEntry",
    "Tracking",
    "Undone",
    "ahead_behind",
    "begin_branch",
    "begin_empty",
    "branch_of_head",
    "commit_staged",
    "create_branch",
    "create_tag",
    "delete_branches",
    "delete_tags",
    "detach",
    "find_branch",
    "find_log",
    "goes_on",
    "has_log",
    "keeping",
    "list_branches",
    "list_tags",
    "look_at_branch",
    "names_before_and_after",
    "newest_first",
    "redo",
    "rename_branch",
    "required_upstream",
    "reset_hard",
    "reset_soft",
    "set_upstream",
    "squash",
    "staged",
    "staged_tip",
    "switch",
    "tracking",
    "undo",
    "unset_upstream",
    "upstream_of",
]

__getattr__ = door(__name__, {name: home for home, names in _HOMES.items() for name in names})

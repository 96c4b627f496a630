"""Commands for people, one file a family.

What only some calls of a command come to is imported by way of this package, when it is first asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.porcelain.giving_back import give_back, give_back_all, kept_otherwise
    from trace_cli.porcelain.importing import show_report
    from trace_cli.porcelain.placing import tell_where
    from trace_cli.porcelain.salvaging import repair_repository
    from trace_cli.porcelain.staging import commit_staged
    from trace_cli.porcelain.stopped import (
        tell_stopped,
        waiting_line,
        waiting_record,
        what_waits,
    )
    from trace_cli.porcelain.tracking import tracking_of, upstream_line

__all__ = [
    "commit_staged",
    "give_back",
    "give_back_all",
    "kept_otherwise",
    "repair_repository",
    "show_report",
    "tell_stopped",
    "tell_where",
    "tracking_of",
    "upstream_line",
    "waiting_line",
    "waiting_record",
    "what_waits",
]

__getattr__ = door(
    __name__,
    {
        "commit_staged": "staging",
        "give_back": "giving_back",
        "give_back_all": "giving_back",
        "kept_otherwise": "giving_back",
        "repair_repository": "salvaging",
        "show_report": "importing",
        "tell_stopped": "stopped",
        "tell_where": "placing",
        "tracking_of": "tracking",
        "upstream_line": "tracking",
        "waiting_line": "stopped",
        "waiting_record": "stopped",
        "what_waits": "stopped",
    },
)

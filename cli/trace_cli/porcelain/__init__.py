"""Commands for people, one file a family.

What only some calls of a command come to is imported by way of this package, when it is first asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.porcelain.finding import (
        address_in,
        found_again,
        looked_for,
        moved_to,
        tell_stopped,
        waiting_line,
        waiting_record,
        what_waits,
        written_readdressed,
    )
    from trace_cli.porcelain.giving_back import give_back, give_back_all, kept_otherwise
    from trace_cli.porcelain.importing import show_report
    from trace_cli.porcelain.placing import tell_where
    from trace_cli.porcelain.salvaging import repair_repository
    from trace_cli.porcelain.staging import commit_staged
    from trace_cli.porcelain.tracking import tracking_of, upstream_line

__all__ = [
    "address_in",
    "commit_staged",
    "found_again",
    "give_back",
    "give_back_all",
    "kept_otherwise",
    "looked_for",
    "moved_to",
    "repair_repository",
    "show_report",
    "tell_stopped",
    "tell_where",
    "tracking_of",
    "upstream_line",
    "waiting_line",
    "waiting_record",
    "what_waits",
    "written_readdressed",
]

__getattr__ = door(
    __name__,
    {
        "address_in": "finding",
        "commit_staged": "staging",
        "found_again": "finding",
        "give_back": "giving_back",
        "give_back_all": "giving_back",
        "kept_otherwise": "giving_back",
        "looked_for": "finding",
        "moved_to": "finding",
        "written_readdressed": "finding",
        "repair_repository": "salvaging",
        "show_report": "importing",
        "tell_stopped": "finding",
        "tell_where": "placing",
        "tracking_of": "tracking",
        "upstream_line": "tracking",
        "waiting_line": "finding",
        "waiting_record": "finding",
        "what_waits": "finding",
    },
)

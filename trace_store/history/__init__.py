"""Verbs on commits: writing them, walking over them, and how things stand.

What few commands need is offered here, and imported when it is first asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.history.entries import entry_of
    from trace_store.history.filters import LogFilter, matching, snippet_of
    from trace_store.history.growth import token_growth
    from trace_store.history.naming import named
    from trace_store.history.rewording import current_parts, reworded
    from trace_store.history.saying import summary, told
    from trace_store.history.walk import log
    from trace_store.history.writing import new_draft, write

__all__ = [
    "LogFilter",
    "current_parts",
    "entry_of",
    "log",
    "matching",
    "named",
    "new_draft",
    "reworded",
    "snippet_of",
    "summary",
    "token_growth",
    "told",
    "write",
]

__getattr__ = door(
    __name__,
    {
        "LogFilter": "filters",
        "current_parts": "rewording",
        "entry_of": "entries",
        "log": "walk",
        "matching": "filters",
        "named": "naming",
        "new_draft": "writing",
        "reworded": "rewording",
        "snippet_of": "filters",
        "summary": "saying",
        "told": "saying",
        "token_growth": "growth",
        "write": "writing",
    },
)

"""Comparing: what differs between two contexts, where each message comes from, and where something is.

What few commands need is offered here, and imported when it is first asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.comparing.changes import ContextDiff, MessageChange
    from trace_store.comparing.differing import diff
    from trace_store.comparing.rendered import RenderedDiff, diff_rendered
    from trace_store.comparing.words import Piece, lines_of_parts, paired_lines, word_diff

__all__ = [
    "ContextDiff",
    "MessageChange",
    "Piece",
    "RenderedDiff",
    "diff",
    "diff_rendered",
    "lines_of_parts",
    "paired_lines",
    "word_diff",
]

__getattr__ = door(
    __name__,
    {
        "ContextDiff": "changes",
        "MessageChange": "changes",
        "Piece": "words",
        "RenderedDiff": "rendered",
        "diff": "differing",
        "diff_rendered": "rendered",
        "lines_of_parts": "words",
        "paired_lines": "words",
        "word_diff": "words",
    },
)

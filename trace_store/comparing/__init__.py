"""Comparing: what differs between two contexts, where each message comes from, and where something is.

What few commands need is offered here, and imported when it is first asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.comparing.bisecting import find_first_bad
    from trace_store.comparing.blaming import Blame, Deed, blame
    from trace_store.comparing.changes import ContextDiff, MessageChange
    from trace_store.comparing.differing import diff
    from trace_store.comparing.finding import (
        Found,
        Holder,
        Wording,
        whohas_commit,
        whohas_content,
        whohas_message,
        whohas_text,
    )
    from trace_store.comparing.lines import lines_of_parts
    from trace_store.comparing.rendered import RenderedDiff, diff_rendered
    from trace_store.comparing.words import Piece, paired_lines, word_diff

__all__ = [
    "Blame",
    "ContextDiff",
    "Deed",
    "Found",
    "Holder",
    "MessageChange",
    "Piece",
    "RenderedDiff",
    "Wording",
    "blame",
    "diff",
    "diff_rendered",
    "find_first_bad",
    "lines_of_parts",
    "paired_lines",
    "whohas_commit",
    "whohas_content",
    "whohas_message",
    "whohas_text",
    "word_diff",
]

__getattr__ = door(
    __name__,
    {
        "Blame": "blaming",
        "ContextDiff": "changes",
        "Deed": "blaming",
        "Found": "finding",
        "Holder": "finding",
        "MessageChange": "changes",
        "Piece": "words",
        "RenderedDiff": "rendered",
        "Wording": "finding",
        "blame": "blaming",
        "diff": "differing",
        "diff_rendered": "rendered",
        "find_first_bad": "bisecting",
        "lines_of_parts": "lines",
        "paired_lines": "words",
        "whohas_commit": "finding",
        "whohas_content": "finding",
        "whohas_message": "finding",
        "whohas_text": "finding",
        "word_diff": "words",
    },
)

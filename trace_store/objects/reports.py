"""Reports that measure a context: a provider's usage, recorded in the commit whose context it counted.

Rule: input and output of a request together are the context after the answer. A commit with the report in it has that
context, unless it is a merge, puts something in the place of messages (a compaction asks about other text), was copied
from another line, or names another commit that the report is about.
"""

from __future__ import annotations

from trace_store.frozen import value
from trace_store.objects.commit import PICKED, REWRITES
from trace_store.objects.operations import REPLACE, USAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.objects.commit import Commit


@value
class ContextReport:
    """What a provider reported of a context.

    Attributes:
        token_count: its tokens: all input, cached or not, and the output.
        model: the model that answered; "" when that was not recorded.
        name: the model, else the provider, else the shape that the report came in.
    """

    token_count: int
    model: str
    name: str


def report_of(commit: Commit) -> ContextReport | None:
    """Return the report that measures the context of a commit, the last of several; None without one."""
    operations = commit.operations
    if all(each.name != USAGE for each in operations) or len(commit.parents) > 1:
        return None
    if any(each.name == REPLACE for each in operations):
        return None
    if any(relation in (REWRITES, PICKED) for relation, _ in commit.links):
        return None
    parent = commit.parents[0] if commit.parents else None
    for each in reversed(operations):
        if each.name != USAGE or each.fields.get("about", parent) != parent:
            continue
        read, written = (
            _count(each.fields.get("input_total")),
            _count(each.fields.get("output_total")),
        )
        if read:  # of some transcripts only the output is known, which measures no context
            model, provider, source = (
                _text(each.fields.get(key)) for key in ("model", "provider", "source")
            )
            return ContextReport(read + written, model, model or provider or source or "unknown")
    return None


def _count(field: object) -> int:
    return field if type(field) is int and field > 0 else 0


def _text(field: object) -> str:
    return field if isinstance(field, str) else ""

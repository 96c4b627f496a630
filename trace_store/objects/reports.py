"""Token counts that a provider reported for a commit's context.

Rule: input plus output of a request is the context after the answer. That is the context of the commit with the report,
unless the commit is a merge, replaces messages (a compaction sends other text), was picked or rebased, or the report is
about another commit.
"""

from __future__ import annotations

from collections.abc import Mapping

from trace_store.base.frozen import value
from trace_store.objects.commit import PICKED, REWRITES, Commit
from trace_store.objects.operations import REPLACE, USAGE


@value
class ContextReport:
    """A provider's report about a context.

    Attributes:
        token_count: all input tokens, cached or not, plus the output.
        model: the model, or "" if not recorded.
        name: the model, else the provider, else the report's format.
    """

    token_count: int
    model: str
    name: str


def report_of(commit: Commit) -> ContextReport | None:
    """Return the last report that counts the commit's own context, or None."""
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
        if token_count := reported_tokens(each.fields):
            model, provider, source = (
                _text(each.fields.get(key)) for key in ("model", "provider", "source")
            )
            return ContextReport(token_count, model, model or provider or source or "unknown")
    return None


def reported_tokens(usage: Mapping[str, object]) -> int:
    """Return the tokens of input and output, or 0 if the input is unknown, as in some transcripts."""
    read = _count(usage.get("input_total"))
    return read and read + _count(usage.get("output_total"))


def _count(field: object) -> int:
    return field if type(field) is int and field > 0 else 0


def _text(field: object) -> str:
    return field if isinstance(field, str) else ""

"""Token counts that a provider reported for a commit's context.

Rule: input plus output of a request is the context after the answer. That is the context of the commit with the report,
unless the commit is a merge, replaces messages (a compaction sends other text), or was picked or rebased. A report may
name another commit whose context was sent, because something came between: then the input alone counts that context.
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
        token_count: all input tokens, cached or not; with the output if the context is the commit's own.
        about: the commit whose context is counted; None is the commit with the report.
        model: the model, or "" if not recorded.
        name: the model, else the provider, else the report's format.
    """

    token_count: int
    about: bytes | None
    model: str
    name: str


def report_of(commit: Commit) -> ContextReport | None:
    """Return the last report of a commit that counts a context, or None."""
    operations = commit.operations
    names = [each.name for each in operations]
    if USAGE not in names:
        return None
    if commit.links and any(relation in (REWRITES, PICKED) for relation, _ in commit.links):
        return None
    sends_other_text = len(commit.parents) > 1 or REPLACE in names
    parent = commit.parents[0] if commit.parents else None
    for each in reversed(operations):
        if each.name != USAGE:
            continue
        about = each.fields.get("about", parent)
        if about == parent:
            about = None
        if about is None and sends_other_text:
            continue
        token_count = (
            reported_tokens(each.fields)
            if about is None
            else _count(each.fields.get("input_total"))
        )
        if token_count:
            model, provider, source = (
                _text(each.fields.get(key)) for key in ("model", "provider", "source")
            )
            name = model or provider or source or "unknown"
            return ContextReport(token_count, about, model, name)
    return None


def reported_tokens(usage: Mapping[str, object]) -> int:
    """Return the tokens of input and output, or 0 if the input is unknown, as in some transcripts."""
    read = _count(usage.get("input_total"))
    return read and read + _count(usage.get("output_total"))


def _count(field: object) -> int:
    return field if type(field) is int and field > 0 else 0


def _text(field: object) -> str:
    return field if isinstance(field, str) else ""

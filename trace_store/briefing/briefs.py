"""A brief of a repository: the choice, without secrets, written within the budget."""

from __future__ import annotations

import json
from collections.abc import Sequence

from trace_store.base.frozen import replace
from trace_store.briefing.brief import Brief, Candidate, write_brief
from trace_store.briefing.choice import BriefChoice
from trace_store.briefing.permission import BriefPermission
from trace_store.secrets import REDACT
from trace_store.secrets.guard import Guard
from trace_store.writer import Writer


def brief(
    writer: Writer,
    task: str,
    files: Sequence[str],
    budget: int,
    folder: str,
    *,
    for_agent: bool = False,
) -> Brief:
    """Return the brief of a repository; arguments and errors as in `Repo.brief`."""
    if for_agent:
        BriefPermission(writer.store, writer.environment).check()
    choice = BriefChoice(writer, task, files, folder)
    count = writer.contexts.tokenizer().count
    candidates = _redacted(writer, choice.candidates)
    found = write_brief(candidates, count, budget, choice.unknown, choice.repeat_count)
    return replace(found, skipped=choice.skipped)


def _redacted(writer: Writer, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates with placeholders for secrets, which a repository may store."""
    guard = Guard.of(writer.store, writer.environment, REDACT)
    texts = [[each.item.text, each.short] for each in candidates]
    data = json.dumps(texts, ensure_ascii=False).encode("utf-8", "replace")
    kept, found = guard.screened(data, "the brief")
    if not found:
        return list(candidates)
    return [
        replace(each, item=replace(each.item, text=text), short=short)
        for each, (text, short) in zip(candidates, json.loads(kept), strict=True)
    ]

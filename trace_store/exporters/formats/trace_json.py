"""A session as lossless JSON: complete messages, with times and usage reports.

Messages have the form of `providers/lossless.py` and two more keys: `timestamp`, and `usage` in normal form.
"""

from __future__ import annotations

from trace_store.base.ident import format_time
from trace_store.exporters.contract import Exported, ExportSession, file_name
from trace_store.exporters.lossy import coerce
from trace_store.exporters.lossy.drafts import ASSISTANT, drafts_of
from trace_store.exporters.lossy.loss_count import losses_of
from trace_store.providers.rendering import render
from trace_store.providers.wire import document_to_bytes

NAME = "trace-json"
SUFFIX = ".json"


def write(session: ExportSession) -> Exported:
    """Return the document; see `contract.FormatWriter`."""
    drafts = drafts_of(session)
    coerce.fit_times(drafts)
    document = render("json", [turn.message for turn in session.turns], session.tools).request
    for draft, message in zip(drafts, document["messages"], strict=True):
        draft.summary = False
        message["timestamp"] = format_time(draft.time)
        if draft.usage is not None and draft.role == ASSISTANT:
            message["usage"] = draft.usage.as_map()
    losses = losses_of(session, drafts, tools=len(session.tools))
    return Exported(document_to_bytes(document) + b"\n", losses, file_name(session, SUFFIX))

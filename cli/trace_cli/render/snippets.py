"""Snippets with the search hit in bold."""

from __future__ import annotations

from trace_cli.render.escape import safe
from trace_cli.render.tables import paint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation
    from trace_store.context.snippet import Snippet


def marked(invocation: Invocation, snippet: Snippet) -> str:
    """Return a snippet with the hit in bold."""
    text, start, end = snippet.text, snippet.start, snippet.end
    return safe(text[:start]) + paint(invocation, safe(text[start:end]), "bold") + safe(text[end:])

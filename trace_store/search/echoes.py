"""Echoes: what an agent was shown from this history, and how it asked for it.

An agent that searches over MCP is recorded, too. Its next search would find its own question and the earlier answer
before the original.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from trace_store.errors import FormatError, NotFoundError
from trace_store.objects.address import Address
from trace_store.objects.message import Message
from trace_store.objects.parts import Part, Text, ToolCall, ToolResult

READING_TOOLS = ("search", "log", "show", "compile", "diff", "why")
WRITING_TOOLS = ("decision", "finding", "pin", "checkpoint")
TOOL_PREFIX = "trace_"
"""Prefix of the names of the MCP server's tools, which keeps them apart from other servers' tools."""
BRIEF_BEGIN = "<trace-brief>"
_OWN_TOOL = re.compile(
    rf"(?:|.*__|(?:.*[^A-Za-z0-9])?trace[^A-Za-z0-9]){TOOL_PREFIX}(?:{'|'.join((*READING_TOOLS, *WRITING_TOOLS))})$",
    re.DOTALL,
)
"""A tool of ours; agents put the name of the server before it, as in `mcp__trace__trace_search`."""


def is_echo(parts: Sequence[Part], messages: Callable[[list[Address]], Sequence[Message]]) -> bool:
    """Return True if a message calls a tool of Trace, has the result of one, or hands over a brief.

    Args:
        parts: the parts of the message.
        messages: returns the messages of some addresses.
    """
    if any(isinstance(each, ToolCall) and _OWN_TOOL.match(each.name) for each in parts):
        return True
    if any(isinstance(each, Text) and BRIEF_BEGIN in each.text for each in parts):
        return True
    results = {each.call_id: each.call for each in parts if isinstance(each, ToolResult)}
    try:
        asked = messages([each for each in results.values() if each is not None])
    except (NotFoundError, FormatError):
        return False  # the call is not here
    return any(
        isinstance(call, ToolCall) and call.id in results and _OWN_TOOL.match(call.name)
        for message in asked
        for call in message.parts
    )

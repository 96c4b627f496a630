"""Request formats for models: OpenAI's two and Anthropic's.

A format converts a prompt to the fields of a request, and an answer to a Completion; it opens no connection.
"""

from __future__ import annotations

from trace_store.llm.apis.anthropic import Anthropic
from trace_store.llm.apis.chat import Chat
from trace_store.llm.apis.form import Form, StreamReader
from trace_store.llm.apis.responses import Responses

__all__ = ["FORMS", "Form", "StreamReader"]

FORMS: dict[str, type[Form]] = {"chat": Chat, "responses": Responses, "anthropic": Anthropic}
"""The formats by their name in settings."""

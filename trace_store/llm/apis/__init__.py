"""The forms in which models are asked: OpenAI's two and Anthropic's.

Rule: pure. A form turns a prompt into the fields of a request, and what comes back into a Completion; it opens nothing.
"""

from __future__ import annotations

from trace_store.llm.apis.anthropic import Anthropic
from trace_store.llm.apis.chat import Chat
from trace_store.llm.apis.form import Form, Hearing
from trace_store.llm.apis.responses import Responses

__all__ = ["FORMS", "Form", "Hearing"]

FORMS: dict[str, type[Form]] = {"chat": Chat, "responses": Responses, "anthropic": Anthropic}
"""By the name that settings call them."""

"""The messages of a request's contents, as an importer reads them."""

from __future__ import annotations

from typing import Any

from trace_store.objects.message import Message
from trace_store.providers.gemini import GeminiCalls, message_from_gemini


def messages_from_gemini(contents: list[dict[str, Any]], model: str = "") -> list[Message]:
    calls = GeminiCalls()
    return [message_from_gemini(each, "contents", model=model, calls=calls) for each in contents]

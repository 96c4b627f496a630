"""The way back: messages of every provider's form, and of Trace's own, become `Message` values.

Rule: pure functions of JSON values. Whoever reads a file of some tool takes its messages out and hands them to one
of these; nothing here knows files or tools.

    message_from_chat(form, where)          OpenAI chat completions and Anthropic, one message
    messages_from_responses(items, where)   items of OpenAI's Responses, which are messages by groups; or one
    messages_from_gemini(contents, where)   contents of Gemini; `message_from_gemini` for one at a time
    message_from_langchain(form, where)     LangChain's dumps, one message
    read_messages(values)                   objects of any of them, told by their shape
    parse_messages(text)                    JSON or JSONL of any of them, with requests and responses

`place_responses` and `place_gemini` yield `Placed(start, stop, message)`: which elements made which message.
`where` names the place in errors. Each form's reader is imported when it is first asked for.
"""

from __future__ import annotations

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.parsing.chat import content_parts, message_from_chat
    from trace_store.context.parsing.documents import Given, parse_messages, read_messages
    from trace_store.context.parsing.gemini import (
        GeminiCalls,
        message_from_gemini,
        messages_from_gemini,
        place_gemini,
    )
    from trace_store.context.parsing.langchain import is_langchain, message_from_langchain
    from trace_store.context.parsing.responses import (
        message_of_item,
        messages_from_responses,
        place_responses,
    )

__all__ = [
    "GeminiCalls",
    "Given",
    "content_parts",
    "is_langchain",
    "message_from_chat",
    "message_from_gemini",
    "message_from_langchain",
    "message_of_item",
    "messages_from_gemini",
    "messages_from_responses",
    "parse_messages",
    "place_gemini",
    "place_responses",
    "read_messages",
]

__getattr__ = door(
    __name__,
    {
        "GeminiCalls": "gemini",
        "Given": "documents",
        "content_parts": "chat",
        "is_langchain": "langchain",
        "message_from_chat": "chat",
        "message_from_gemini": "gemini",
        "message_from_langchain": "langchain",
        "message_of_item": "responses",
        "messages_from_gemini": "gemini",
        "messages_from_responses": "responses",
        "parse_messages": "documents",
        "place_gemini": "gemini",
        "place_responses": "responses",
        "read_messages": "documents",
    },
)

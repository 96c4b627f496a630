"""Version control for what a language model is shown.

    import trace_store

    repo = trace_store.Repo.open(".")
    repo.append("user", "Plan the release.")
    context = repo.compile()

Names are imported on first use, so that a command that needs few of them starts quickly.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.compiled import CompiledContext, CompiledMessage
    from trace_store.environment import Environment
    from trace_store.errors import ErrorCode, TraceError
    from trace_store.history.draft import CommitResult, Draft
    from trace_store.ident import Clock, FixedClock, SystemClock
    from trace_store.merge.conflicts import Conflict, Resolution
    from trace_store.merge.todo import Step, Todo
    from trace_store.objects.commit import Commit, Tag
    from trace_store.objects.message import Message
    from trace_store.objects.parts import Data, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
    from trace_store.oid import ObjectId
    from trace_store.repo import records as records
    from trace_store.repo.line import Line
    from trace_store.repo.repository import Repo
    from trace_store.store.handle import Store

__version__ = "0.1.0"

__all__ = [
    "Clock",
    "Commit",
    "CommitResult",
    "CompiledContext",
    "CompiledMessage",
    "Conflict",
    "Data",
    "Draft",
    "Environment",
    "ErrorCode",
    "FixedClock",
    "Image",
    "Line",
    "Message",
    "ObjectId",
    "Opaque",
    "Reasoning",
    "Repo",
    "Resolution",
    "Step",
    "Store",
    "SystemClock",
    "Tag",
    "Text",
    "Todo",
    "ToolCall",
    "ToolResult",
    "TraceError",
]

_HOMES = {
    "Clock": "ident",
    "Commit": "objects.commit",
    "CommitResult": "history.commit",
    "CompiledContext": "context.compiled",
    "CompiledMessage": "context.compiled",
    "Conflict": "merge.conflicts",
    "Data": "objects.parts",
    "Draft": "history.draft",
    "Environment": "environment",
    "ErrorCode": "errors",
    "FixedClock": "ident",
    "Image": "objects.parts",
    "Line": "repo.line",
    "Message": "objects.message",
    "ObjectId": "oid",
    "Opaque": "objects.parts",
    "Reasoning": "objects.parts",
    "records": "repo",
    "Repo": "repo.repository",
    "Resolution": "merge.conflicts",
    "Step": "merge.todo",
    "Store": "store.handle",
    "SystemClock": "ident",
    "Tag": "objects.commit",
    "Text": "objects.parts",
    "Todo": "merge.todo",
    "ToolCall": "objects.parts",
    "ToolResult": "objects.parts",
    "TraceError": "errors",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'trace_store' has no attribute {name!r}")
    import importlib

    value: object = getattr(importlib.import_module(f"trace_store.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

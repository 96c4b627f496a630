"""Version control for what a language model is shown.

    import trace_store

    repo = trace_store.Repo.open(".")
    repo.append("user", "Plan the release.")
    context = repo.compile()

Names are imported on first use, so that a command that needs few of them starts quickly.
"""

from __future__ import annotations

from trace_store.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store import checkpoints as checkpoints
    from trace_store import context as context
    from trace_store import maintenance as maintenance
    from trace_store import merge as merge
    from trace_store import providers as providers
    from trace_store import search as search
    from trace_store import secrets as secrets
    from trace_store import trajectories as trajectories
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


__getattr__ = names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

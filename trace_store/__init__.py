"""Version control for what a language model is shown.

    import trace_store

    repo = trace_store.Repo.open(".")
    repo.append("user", "Plan the release.")
    context = repo.compile()

Names are imported on first use, so that a command that needs few of them starts quickly.
"""

from __future__ import annotations

from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store import agents as agents
    from trace_store import briefing as briefing
    from trace_store import bundles as bundles
    from trace_store import checkpoints as checkpoints
    from trace_store import context as context
    from trace_store import maintenance as maintenance
    from trace_store import merge as merge
    from trace_store import providers as providers
    from trace_store import runs as runs
    from trace_store import search as search
    from trace_store import secrets as secrets
    from trace_store import sessions as sessions
    from trace_store import trajectories as trajectories
    from trace_store.base.environment import Environment
    from trace_store.base.ident import Clock, FixedClock, SystemClock
    from trace_store.base.oid import ObjectId
    from trace_store.context.compiled import CompiledContext, CompiledMessage
    from trace_store.errors import ErrorCode, TraceError
    from trace_store.history.draft import CommitResult, Draft
    from trace_store.merge.conflicts import Conflict, Resolution
    from trace_store.merge.todo import Step, Todo
    from trace_store.objects.commit import Commit, Tag
    from trace_store.objects.message import Message
    from trace_store.objects.parts import Data, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
    from trace_store.records import record as record
    from trace_store.repo.line import Line
    from trace_store.repo.repository import Repo
    from trace_store.store.store import Store

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
    "record",
]

_HOMES = {
    "Clock": "base.ident",
    "Commit": "objects.commit",
    "CommitResult": "history.commit",
    "CompiledContext": "context.compiled",
    "CompiledMessage": "context.compiled",
    "Conflict": "merge.conflicts",
    "Data": "objects.parts",
    "Draft": "history.draft",
    "Environment": "base.environment",
    "ErrorCode": "errors",
    "FixedClock": "base.ident",
    "Image": "objects.parts",
    "Line": "repo.line",
    "Message": "objects.message",
    "ObjectId": "base.oid",
    "Opaque": "objects.parts",
    "Reasoning": "objects.parts",
    "record": "records",
    "Repo": "repo.repository",
    "Resolution": "merge.conflicts",
    "Step": "merge.todo",
    "Store": "store.store",
    "SystemClock": "base.ident",
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

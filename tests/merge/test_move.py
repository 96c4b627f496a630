"""Moving messages: checking only the last messages gives the same as checking all."""

from __future__ import annotations

import contextlib
from itertools import count
from typing import Any

from trace_store import Repo, ToolCall, ToolResult
from trace_store.errors import InvalidOperationError, TraceError
from trace_store.merge.move import move
from trace_store.writer import Writer

NUMBERS = count()
KINDS = (
    "say",
    "say",
    "say",
    "call",
    "result",
    "mark",
    "edit",
    "remove",
    "ghost",
    "skip",
    "move",
    "side",
)


def _outcome(repo: Repo, named: list[str], where: str, beside: str) -> Any:
    try:
        found = move(Writer(repo.store, author="ada"), named, where, beside, dry_run=True)
    except TraceError as error:
        return error.code, str(error)
    return found.moved, found.after, found.warnings


def _do(repo: Repo, kind: str) -> None:
    """Do something to the context, if it can be done."""
    messages = list(repo.compile())
    shown = [message.address for message in messages]
    calls = [part.id for m in messages for part in m.parts if isinstance(part, ToolCall)]
    number = next(NUMBERS)
    if kind == "call":
        repo.append("assistant", [ToolCall(f"c{number}", "look", {})])
    elif kind == "result":
        if calls:
            repo.append("tool", [ToolResult(calls[-1], f"r{number}")])
    elif kind == "mark":
        repo.annotate(shown[-1], labels=["decision"])
    elif kind == "edit":
        repo.edit(shown[-1], f"e{number}")
    elif kind == "remove" and len(shown) > 1:
        repo.remove(shown[-1])
    elif kind == "ghost" and len(shown) > 1:
        repo.remove(shown[-1], ghost=True)
    elif kind == "skip" and len(shown) > 1:
        repo.annotate(shown[-1], priority="skip")
    elif kind == "move" and len(shown) > 2:
        with contextlib.suppress(InvalidOperationError):  # a call and its result are one
            repo.move(shown[-1], after=shown[-3] if number % 3 else None)
    elif kind == "side":
        repo.branches.create(f"side{number}", "HEAD")
        repo.branches.switch(f"side{number}")
        repo.append("user", f"s{number}")
        repo.branches.switch("main")
        repo.append("system", f"m{number}")
        repo.merge(f"side{number}", favour="ours")
    elif kind == "say":
        repo.append(
            "user", f"t{number}, see {shown[-1][0].hex()[:12]}.0" if shown else f"t{number}"
        )

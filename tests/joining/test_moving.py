"""Moving messages: what is looked at among the last messages comes to what the whole context does."""

from __future__ import annotations

import contextlib
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.joining.support.lines import ADA
from tests.support.examples import examples
from trace_store import FixedClock, Repo, ToolCall, ToolResult
from trace_store.context import ends
from trace_store.errors import InvalidOperationError, TraceError
from trace_store.joining.moving import AFTER, BEFORE, LAST, move

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


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=4, max_size=30),
    targets=st.lists(st.integers(0, 8), min_size=1, max_size=2, unique=True),
    neighbour=st.integers(0, 8),
    where=st.sampled_from([AFTER, BEFORE, LAST]),
    steps=st.integers(1, 6),
)
def test_the_last_messages_tell_what_the_whole_context_does(
    tmp_path_factory: pytest.TempPathFactory,
    kinds: list[str],
    targets: list[int],
    neighbour: int,
    where: str,
    steps: int,
) -> None:
    repo = Repo.init(
        tmp_path_factory.mktemp("moving"), environment=ADA, clock=FixedClock(), durability="fast"
    )
    repo.append("user", "go")
    for kind in kinds:
        _do(repo, kind)
    shown = [f"{a[0].hex()}.{a[1]}" for a in reversed([m.address for m in repo.compile()])]
    named = [shown[each % len(shown)] for each in targets]
    beside = shown[neighbour % len(shown)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ends, "STEPS", steps)
        quick = _outcome(repo, named, where, beside)
        patch.setattr(ends, "MOST_STEPS", 0)
        assert quick == _outcome(repo, named, where, beside)
    repo.close()


def _outcome(repo: Repo, named: list[str], where: str, beside: str) -> Any:
    try:
        found = move(repo.store, named, where, beside, author="ada", dry_run=True)
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
        repo.branch(f"side{number}", "HEAD")
        repo.switch(f"side{number}")
        repo.append("user", f"s{number}")
        repo.switch("main")
        repo.append("system", f"m{number}")
        repo.merge(f"side{number}", favour="ours")
    elif kind == "say":
        repo.append(
            "user", f"t{number}, see {shown[-1][0].hex()[:12]}.0" if shown else f"t{number}"
        )

"""Random histories of several lines that merge each other, in a repository."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.joining.support.lines import branch, on
from tests.support.changes import changes, draft_of
from trace_store import Message, Repo, ToolCall, ToolResult
from trace_store.errors import (
    ConflictError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    StateError,
    TraceError,
)
from trace_store.history import commit
from trace_store.merge.in_progress import clear_stop
from trace_store.merge.merge import merge
from trace_store.merge.result import MergeOptions

LINES = ("main", "side", "third")
line = st.sampled_from(LINES)
number = st.integers(0, 30)
role = st.sampled_from(["user", "assistant", "call", "open", "result"])
turns = st.tuples(st.just("say"), st.lists(role, min_size=1, max_size=3))
steps = st.one_of(
    st.tuples(st.just("change"), line, turns),
    st.tuples(st.just("change"), line, turns),
    st.tuples(st.just("change"), line, changes),
    st.tuples(st.just("merge"), line, line, st.sampled_from(["append", "interleave", "decisions"])),
    st.tuples(st.just("merge"), line, line, st.just("append")),
)
histories = st.lists(steps, min_size=1, max_size=14)


class Lines:
    """A repository with lines of history that begin at one commit."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        repo.append("user", "first")
        for name in LINES[1:]:
            branch(repo, name)
        self.known: list[Any] = [(repo.resolve("HEAD"), 0)]
        self._said = 0

    def do(self, step: tuple[Any, ...]) -> bool:
        """Do a step and tell whether it came to anything; HEAD is then on its line."""
        on(self.repo, step[1])
        try:
            if step[0] == "change":
                return self._change(step[2])
            if step[1] == step[2]:
                return False
            options = MergeOptions(strategy=step[3], favour="ours")
            merge(self.repo.store, step[2], options, author="ada")
        except (InvalidInputError, NotFoundError, FormatError, ConflictError, StateError):
            clear_stop(self.repo.store)
            return False
        return True

    def _change(self, change: tuple[Any, ...]) -> bool:
        draft = commit.new_draft(self.repo.store)
        before = len(self.known)
        try:
            if change[0] == "say":
                self.known += draft.extend([self._message(each) for each in change[1]])
            else:
                draft_of(draft, change, self.known)
            result = commit.write(self.repo.store, draft, author="ada")
        except TraceError:
            del self.known[before:]
            raise
        self.known[before:] = result.addresses
        return True

    def _message(self, role: str) -> Message:
        """Return a message; a call is answered by the next result, wherever that is."""
        self._said += 1
        if role in ("call", "open"):
            return Message("assistant", [ToolCall(f"c{self._said % 3}", "look", "{}")])
        if role == "result":
            return Message("tool", [ToolResult(f"c{self._said % 3}", "seen")])
        return Message(role, f"said {self._said}")

"""One agent: a session spawned by another session."""

from __future__ import annotations

from trace_store import errors, history
from trace_store.agents import links
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.contracts import agent_facts
from trace_store.contracts.ref_names import BRANCHES
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.sessions import facts as names
from trace_store.sessions.session import Session
from trace_store.store.process_lock import AGENT_LOCK, ProcessLock
from trace_store.store.store import Store

RUNNING, WAITING, FINISHED, INTERRUPTED = "running", "waiting", "finished", "interrupted"
SPAWNED = "spawned-by"
"""The link from an agent's first commit to its parent's."""
COLLAPSES = "collapses"
"""The link from a commit of the parent to the soft checkpoint of the agent."""

COLLAPSED = "agent."
"""Prefix of the parent's facts about collapsed agents: PREFIX + branch = last collapsed commit."""


@value
class AgentInfo:
    """Details of an agent.

    Attributes:
        name: its name.
        ref: the full name of its branch.
        parent: the full name of its parent's branch, or "" if unknown.
        point: the parent's commit at the spawn, or None.
        call: the id of the tool call that spawned it, or "".
        purpose: its first prompt.
        state: "running" (a process has it open), "waiting" (for the result of a call, or for its first request),
            "finished", or "interrupted" (it began, did not finish, and no process has it open).
        message_count: messages in its context.
        token_count: tokens of its context.
        last_step: one line about its last message.
        store: the folder of its repository; "" is this one.
        ahead: messages since the last collapse; None if it was never collapsed.
    """

    name: str
    ref: str
    parent: str
    point: ObjectId | None
    call: str
    purpose: str
    state: str
    message_count: int
    token_count: int
    last_step: str
    ahead: int | None
    store: str = ""


class AgentSession(Session):
    """A session spawned by another session.

    A lock marks it as running in this process. `release`, `close` and the end of the process release the lock.

    Attributes:
        owns_store: True if it has its own repository, which `release` closes.
    """

    _lock: ProcessLock | None = None
    owns_store = False

    @property
    def parent(self) -> str:
        """The full name of the parent's branch, or ""."""
        return history.facts.branch_facts(self._writer).get(names.PARENT, "")

    @property
    def purpose(self) -> str:
        """Its first prompt."""
        return history.facts.branch_facts(self._writer).get(agent_facts.PURPOSE, "")

    @property
    def open_calls(self) -> list[ToolCall]:
        """Calls without a result, which must be answered before the next request."""
        return open_calls(self)

    def hold(self) -> None:
        """Mark it as running in this process.

        Raises:
            LockedError: another process has it open.
        """
        store = self._writer.store
        if self._lock is not None or not store.local:
            return
        lock = ProcessLock(store, AGENT_LOCK, self.ref)
        if not lock.take():
            raise errors.LockedError(f"the agent {self.name} runs in another process", ref=self.ref)
        self._lock = lock

    def release(self) -> None:
        """Stop marking it as running in this process."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()
        if self.owns_store:
            links.close(self._writer.store)

    def close(self, reason: str = "") -> None:
        """End the agent; nothing can be added until it is reopened."""
        super().close(reason)
        self.release()


def is_held(store: Store, ref: str) -> bool:
    """Return True if a process has an agent open."""
    return store.local and ProcessLock(store, AGENT_LOCK, ref).is_held


def open_calls(session: Session) -> list[ToolCall]:
    """Return the visible calls without a result."""
    calls: dict[str, ToolCall] = {}
    for message in session.messages():
        for part in message.parts:
            if isinstance(part, ToolCall):
                calls[part.id] = part
            elif isinstance(part, ToolResult):
                calls.pop(part.call_id, None)
    return list(calls.values())


def name_of_agent(ref: str) -> str:
    """Return the name of an agent, given its branch."""
    return ref.removeprefix(f"{BRANCHES}sessions/agent/").removeprefix(BRANCHES)

"""Facts that the commits of a session record; the newest value of each is current."""

from __future__ import annotations

from collections.abc import Mapping

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.contracts.agent_facts import PREFIX as PREFIX
from trace_store.contracts.ref_names import BRANCHES
from trace_store.history.facts import branch_facts, is_set
from trace_store.writer import Writer

TYPE, FEATURE, TASK, STATE = (f"{PREFIX}{each}" for each in ("type", "feature", "task", "state"))
LIMIT, TARGET, REPLY = (f"{PREFIX}{each}" for each in ("limit", "target", "reply"))
CLOSED, ITERATION, CHECKS = f"{PREFIX}closed", f"{PREFIX}iteration", f"{PREFIX}checks"
WHY, SECONDS, COUNT, WORK = (f"compaction.{each}" for each in ("why", "seconds", "count", "work"))
PARENT, POINT = f"{PREFIX}parent", f"{PREFIX}point"
INLINE, BACKGROUND, OFF = "inline", "background", "off"
MODES = (INLINE, BACKGROUND, OFF)
"""Modes of compaction."""
DEFAULT_LIMIT, DEFAULT_TARGET, DEFAULT_REPLY = 100_000, 0.6, 8_000


@value
class SessionFacts:
    """Current facts of a session.

    Attributes:
        type: such as "dev"; "" for a session of another program.
        feature: its feature, or "".
        task: the id of its task, or "".
        state: its state, such as "in_qa", or "".
        limit: the maximum tokens of a request and its reply.
        target: the size after a compaction, as a share of the limit.
        reply: tokens reserved for the reply.
        closed: why it was closed; "" if it is open.
        iteration: the number of its last iteration; 0 if there is none.
    """

    type: str
    feature: str
    task: str
    state: str
    limit: int
    target: float
    reply: int
    closed: str
    iteration: int

    @property
    def room(self) -> int:
        """Maximum input tokens of a request."""
        return self.limit - self.reply

    @property
    def goal(self) -> int:
        """Target input tokens after a compaction."""
        return min(int(self.limit * self.target), self.room)

    @classmethod
    def of(cls, facts: Mapping[str, str]) -> SessionFacts:
        """Return the facts from values by name; invalid numbers become the defaults."""
        return cls(
            facts.get(TYPE, ""),
            facts.get(FEATURE, ""),
            facts.get(TASK, ""),
            facts.get(STATE, ""),
            _whole(facts.get(LIMIT, ""), DEFAULT_LIMIT),
            _share(facts.get(TARGET, "")),
            _whole(facts.get(REPLY, ""), DEFAULT_REPLY),
            facts.get(CLOSED, ""),
            _whole(facts.get(ITERATION, ""), 0),
        )


def check_open(writer: Writer) -> None:
    """Raise StateError if the session of a branch is closed."""
    head = writer.store.refs.head()
    if is_set(writer.contexts, head.ref or "HEAD", head.oid, CLOSED):
        reason = branch_facts(writer)[CLOSED]
        name = writer.ref.removeprefix(BRANCHES)
        raise errors.StateError(
            f"{name} is closed ({reason[:80]})", code=errors.ErrorCode.SESSION_CLOSED
        )


def _whole(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else default


def _share(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return DEFAULT_TARGET
    return found if 0 < found < 1 else DEFAULT_TARGET

"""The state of a trajectory after an event.

A list shows the state, and the state decides which events are allowed. Each event's commit holds it as metadata. Only
`after` computes it, event by event.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import fields, replace, value
from trace_store.trajectories import events as ev
from trace_store.trajectories.events import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trace_store.base.ident import Time

ACTIVE, COMPLETED, ABANDONED = "active", "completed", "abandoned"
META = "trajectory"
"""The key of the state in a commit's metadata."""
_STATUS = {ev.COMPLETED: COMPLETED, ev.ABANDONED: ABANDONED, ev.REOPENED: ACTIVE}
_ALWAYS = frozenset((ev.LINKED, ev.AMENDED, ev.RETROSPECTIVE, ev.REOPENED))
"""Events that are allowed after the end: code may be committed, and records corrected, later."""
FACTS = ("title", "description", "project", "tags", "task")


@value
class Agent:
    """An agent that took part.

    Attributes:
        name: its name.
        role: what it does, or "".
        joined, left: the times of its first and last event, in milliseconds since the epoch.
    """

    name: str
    role: str
    joined: Time
    left: Time


@value
class State:
    """A trajectory at one moment.

    Attributes:
        id: its id.
        title: what it is about.
        description: more about it.
        task: its task; None if it has none.
        project, tags: its project and tags.
        status: `active`, `completed` or `abandoned`.
        started, updated: the times of the first and the last event, in milliseconds since the epoch.
        branch: the full name of the branch on which it was started, or "".
        git_branch: the branch of git on which it was started, or "".
        worktree: the name of git's linked work tree in which it was started, or "".
        agents: who took part, by the time of joining.
        chapter: the title of the current chapter, or "".
        counts: the number of events of each type.
        confidence: the confidence of the retrospective; None if there is none.
    """

    JSON = "task=task.as_map branch? chapter? counts=counts_by_type -git_branch -worktree"

    id: str
    title: str = ""
    description: str = ""
    task: Task | None = None
    project: str = ""
    tags: tuple[str, ...] = ()
    status: str = ACTIVE
    started: Time = 0
    updated: Time = 0
    branch: str = ""
    git_branch: str = ""
    worktree: str = ""
    agents: tuple[Agent, ...] = ()
    chapter: str = ""
    counts: tuple[tuple[str, int], ...] = ()
    confidence: float | None = None

    @property
    def counts_by_type(self) -> dict[str, int]:
        """Number of events by type."""
        return dict(self.counts)

    def count(self, *types: str) -> int:
        """Return the number of events of some types, or of all."""
        return sum(count for type_, count in self.counts if not types or type_ in types)

    @property
    def is_active(self) -> bool:
        """Whether it has neither been completed nor abandoned."""
        return self.status == ACTIVE

    def after(self, data: Mapping[str, Any], agent: str, time: int) -> State:
        """Return the state after an event.

        Raises:
            StateError: the event is not allowed: the trajectory has ended, or is still active.
        """
        type_ = data["type"]
        self._check(type_)
        counts = dict(self.counts)
        counts[type_] = counts.get(type_, 0) + 1
        state = replace(
            self,
            agents=self._agents_after(agent, str(data.get("role", "")), time),
            counts=tuple(sorted(counts.items())),
            started=self.started or time,
            status=_STATUS.get(type_, self.status),
            updated=max(self.updated, time),
        )
        if type_ == ev.CHAPTER:
            return replace(state, chapter=data.get("title", ""))
        if type_ == ev.RETROSPECTIVE:
            return replace(state, confidence=data.get("confidence", self.confidence))
        if type_ == ev.STARTED:
            places = {name: data.get(name, "") for name in ("branch", "git_branch", "worktree")}
            return replace(state._with_facts(data), **places)
        if type_ == ev.AMENDED and "event" not in data:
            return state._with_facts(data["changes"])
        return state

    def _check(self, type_: str) -> None:
        if type_ == ev.REOPENED and self.is_active:
            raise errors.StateError(
                f"{self.id} is active already",
                code=errors.ErrorCode.TRAJECTORY_ACTIVE,
                name=self.id,
            )
        if self.is_active or type_ in _ALWAYS:
            return
        raise errors.StateError(
            f"{self.id} is {self.status}",
            code=errors.ErrorCode.TRAJECTORY_ENDED,
            name=self.id,
            status=self.status,
        )

    def _with_facts(self, facts: Mapping[str, Any]) -> State:
        changes = {name: facts[name] for name in FACTS if name in facts}
        if "tags" in changes:
            changes["tags"] = tuple(changes["tags"])
        if "task" in changes:
            changes["task"] = Task.read(changes["task"])
        return replace(self, **changes)

    def has_facts(self, facts: Mapping[str, Any]) -> bool:
        """Return True if an amendment by these facts would change none."""
        return self._with_facts(facts) == self

    def _agents_after(self, name: str, role: str, time: int) -> tuple[Agent, ...]:
        others = tuple(each for each in self.agents if each.name != name)
        if len(others) == len(self.agents):
            return (*others, Agent(name, role, time, time))
        return tuple(
            Agent(name, role or each.role, each.joined, max(each.left, time))
            if each.name == name
            else each
            for each in self.agents
        )

    def as_map(self) -> dict[str, Any]:
        """Return the stored JSON values, without empty ones."""
        plain: dict[str, Any] = {
            name: found
            for name in fields(self)
            if (found := getattr(self, name)) not in (None, "", (), 0)
        }
        plain["agents"] = [[each.name, each.role, each.joined, each.left] for each in self.agents]
        plain["counts"] = dict(self.counts)
        if self.tags:
            plain["tags"] = list(self.tags)
        if self.task is not None:
            plain["task"] = self.task.as_map()
        if self.confidence is not None:
            plain["confidence"] = repr(self.confidence)  # stored metadata has no floats
        return dict(sorted(plain.items()))

    @classmethod
    def read(cls, plain: object) -> State:
        """Return the state in a commit's metadata.

        Raises:
            CorruptObjectError: it is damaged.
        """
        try:
            stored = dict(plain)  # type: ignore[call-overload]
            stored["agents"] = tuple(Agent(*each) for each in stored.get("agents", ()))
            stored["counts"] = tuple(sorted(stored.get("counts", {}).items()))
            stored["tags"] = tuple(stored.get("tags", ()))
            stored["confidence"] = float(stored["confidence"]) if "confidence" in stored else None
            stored["task"] = Task.read(stored["task"]) if "task" in stored else None
            return cls(**{name: stored[name] for name in fields(cls) if name in stored})
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise errors.CorruptObjectError(
                f"the state of a trajectory is damaged: {error}"
            ) from error

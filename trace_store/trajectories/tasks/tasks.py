"""Tasks of trajectories: `repo.trajectories.tasks`. Only `look_up`, `refresh` and `sync` ask a system."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from trace_store import errors
from trace_store.base import check
from trace_store.base.environment import Environment
from trace_store.base.frozen import replace, value
from trace_store.disk.git import git_branch
from trace_store.store.store import Store
from trace_store.trajectories import events as ev
from trace_store.trajectories import reading
from trace_store.trajectories.events import NewEvent, Task, event_data
from trace_store.trajectories.recording import Recorder
from trace_store.trajectories.state import State
from trace_store.trajectories.tasks import systems
from trace_store.trajectories.tasks.systems import (
    DELETED,
    DONE,
    ENDED,
    LocalProject,
    TaskRecord,
    TaskSystem,
    is_standard,
)

_BEADS = re.compile(r"(?:^|[/_-])(bd-[a-z0-9]+(?:\.[0-9]+)*)(?=[/_-]|$)")
_KEY = re.compile(r"(?:^|[/_-])([A-Z][A-Z0-9]{0,9}-[0-9]{1,9})(?=[/_-]|$)")
_SMALL_KEY = re.compile(r"(?:^|/)([a-z][a-z0-9]{1,9}-[0-9]{1,9})(?=[/_-]|$)")
_DATE = re.compile(r"(?:^|(?<=[/_-]))[12][0-9]{3}[-_.][01][0-9](?:[-_.][0-3][0-9])?(?=[/_-]|$)")
_NUMBER = re.compile(r"(?:^|/)(?:gh-|issue-|#)?([1-9][0-9]{0,6})(?=[/_-]|$)")


@value
class Refreshed:
    """A task that was looked up for a trajectory.

    Attributes:
        record: the task, as its system describes it.
        state: the state of the trajectory after that.
        changed: whether the task's title or state changed, so that an amendment was recorded.
    """

    record: TaskRecord
    state: State
    changed: bool


@value
class Followed:
    """The action that a trajectory needs to follow its task.

    Attributes:
        state: the state of the trajectory, after the action if that was applied.
        before: the task as the trajectory has it.
        now: the task as its system describes it; None if the system was not asked.
        action: the event to record: `started`, `completed`, `abandoned`, `reopened`, `amended`, or "" for none.
        applied: whether the event was recorded.
        problem: why the task could not be looked up, or the event not recorded; None if all went well.
    """

    JSON = "trajectory=state.id task=before.id title before=before.state? state=now.state action?"

    state: State
    before: Task
    now: Task | None = None
    action: str = ""
    applied: bool = False
    problem: errors.TraceError | None = None

    @property
    def title(self) -> str:
        """The title of the task, the newest known."""
        return self.now.title if self.now else self.before.title


class Tasks:
    """The tasks of a repository's trajectories, and the systems that hold them.

    If `system` is "", it depends on the form of the id and on the environment: `beads`, `github`, `linear`, `jira`, one
    of another package, or `plain` for an id of no known system.
    """

    def __init__(
        self, store: Store, recorder: Recorder, environment: Environment, agent: str
    ) -> None:
        self._store = store
        self._recorder = recorder
        self._agent = agent
        root = store.layout.root
        self._project = LocalProject(root, os.path.dirname(root), environment, store.disk)

    def named(self, text: str, *, system: str = "") -> Task | None:
        """Return the task that a text names, without asking a system; None if it names none.

        Raises:
            InvalidInputError: the system is unknown.
        """
        check.text(text=text, system=system)
        if system:
            chosen = systems.system_named(system, self._project)
            plain = systems.system_named(systems.PLAIN, self._project)
            found = chosen, chosen.detect(text) or plain.detect(text)
        else:
            found = systems.detect(text, self._project)
        if not found[1]:
            return None
        where = system or ("" if found[0].name == systems.PLAIN else found[0].name)
        return Task("", system=where, id=found[1], url=text if "://" in text else "")

    def of_branch(self, *, system: str = "") -> Task | None:
        """Return the task that git's branch names, with the words after the id as its title; None if it names none.

        Raises:
            InvalidInputError: the system is unknown.
            StorageError: git's files cannot be read.
        """
        check.text(system=system)
        name = git_branch(self._store.disk, self._project.root, self._store.folder)
        for text, words in named_tasks(name):
            task = self.named(text, system=system)
            # If no system knows it, an id in lower case does not count.
            if task is not None and (task.system or system or text in name):
                return replace(task, title=words)
        return None

    def look_up(self, task: Task) -> TaskRecord:
        """Ask the system of a task for its record, if necessary over the network.

        A task of beads may name the same task in another system. That system is asked for the address, too.

        Raises:
            NotFoundError: there is no such task.
            TaskError: the system is unreachable, refuses, or gave an invalid answer.
            StateError: no system is configured for the task, or a setting is missing.
            InvalidInputError: the system is unknown, or a setting is not valid.
        """
        check.instance(Task, task=task)
        system, id = systems.system_of(task, self._project)
        record = system.resolve(id)
        return self._with_address(record) if record.external and not record.url else record

    def refresh(self, state: State) -> Refreshed:
        """Look up the task of a trajectory; record an amendment if the task's title or state changed.

        Raises:
            InvalidInputError: the trajectory has no task with an id.
            As `look_up`.
        """
        check.instance(State, state=state)
        if state.task is None or not state.task.id:
            raise errors.InvalidInputError(f"{state.id} has no task in a task system")
        record = self.look_up(state.task)
        changes = _changes(state, record.as_task())
        if not changes:
            return Refreshed(record, state, changed=False)
        return Refreshed(record, self._record(state, changes), changed=True)

    def sync(
        self, *, network: bool = False, apply: bool = False, agent: str = ""
    ) -> list[Followed]:
        """Complete, abandon or reopen trajectories whose task changed its state since it was last asked.

        A done task completes its trajectory, a canceled one abandons it, and a reopened one reopens it. A deleted one
        changes nothing. A task that is in progress and has no trajectory gets one, if the system is on this machine.

        Args:
            network: whether to ask systems that need the network; the others are always asked.
            apply: whether to record the changes.
            agent: who records them.

        Returns:
            One for each active trajectory with a task of a known system, for each that ended with its task, and for
            each task in progress that has none. A task that cannot be looked up does not stop the others.
        """
        check.flag(network=network, apply=apply)
        check.text(agent=agent)
        answers: dict[str, Task | errors.TraceError] = {}
        states = reading.list_trajectories(self._store)
        known = {(each.task.system, each.task.id) for each in states if each.task is not None}
        found = [self._begin(each, agent, apply=apply) for each in self._in_progress(known)]
        for state in states:
            task = state.task
            if task is None or not task.id or not (state.is_active or task.state in ENDED):
                continue
            followed = self._follow(state, task, answers, network=network)
            if followed is not None:
                must_apply = apply and followed.action
                found.append(self._apply(followed, agent) if must_apply else followed)
        return found

    def _in_progress(self, known: set[tuple[str, str]]) -> list[Task]:
        """Return the tasks in progress without a trajectory, of systems on this machine that can list them."""
        found: list[Task] = []
        for name in systems.CLASSES:
            system: TaskSystem = systems.system_named(name, self._project)
            if isinstance(system, systems.Lister):
                found += [each.as_task() for each in system.in_progress()]
        return [each for each in found if (each.system, each.id) not in known]

    def _begin(self, task: Task, agent: str, *, apply: bool) -> Followed:
        """Start a trajectory for a task, if `apply`."""
        followed = Followed(State("", title=task.title), task, task, ev.STARTED)
        if not apply:
            return followed
        try:
            facts = {"title": task.title or task.id, "task": task.as_map()}
            state = self._recorder.start(facts, agent or self._agent)
        except errors.TraceError as error:
            return replace(followed, problem=error)
        return replace(followed, state=state, applied=True)

    def _with_address(self, record: TaskRecord) -> TaskRecord:
        """Add the address of the same task in another system. Only one step is followed, so a cycle does no harm."""
        if "://" in record.external:
            return replace(record, url=record.external)
        system, id = systems.detect(record.external, self._project)
        if not id or system.name in (record.system, systems.PLAIN):
            return record
        try:
            return replace(record, url=system.resolve(id).url)
        except errors.TraceError as error:
            note = f"{record.external} was not found: {error.message}"
            return replace(record, notes=(*record.notes, note))

    def _follow(
        self,
        state: State,
        task: Task,
        answers: dict[str, Task | errors.TraceError],
        *,
        network: bool,
    ) -> Followed | None:
        try:
            system, id = systems.system_of(task, self._project)
        except errors.TraceError as error:
            return Followed(state, task, problem=error)
        if system.name == systems.PLAIN:
            return None
        if not (system.is_local or network):
            return Followed(state, task)
        key = f"{system.name} {id}"
        # A system that is down is not asked again for its other tasks.
        answer = answers.get(system.name) or answers.get(key)
        if answer is None:
            try:
                answer = system.resolve(id).as_task()
            except errors.TraceError as error:
                answer = error
                if isinstance(error, errors.TaskUnreachableError):
                    key = system.name
            answers[key] = answer
        if isinstance(answer, errors.TraceError):
            return Followed(state, task, problem=answer)
        return Followed(state, task, answer, _action(state, task, answer))

    def _apply(self, followed: Followed, agent: str) -> Followed:
        assert followed.now is not None
        changes = _changes(followed.state, followed.now)
        try:
            state = self._record(followed.state, changes, followed.action, agent)
        except errors.TraceError as error:  # for example, another process has completed it
            return replace(followed, problem=error)
        return replace(followed, state=state, applied=True)

    def _record(
        self,
        state: State,
        changes: Mapping[str, Any],
        action: str = ev.AMENDED,
        agent: str = "",
    ) -> State:
        """Record an amendment and the action in one transaction."""
        new = [event_data(ev.AMENDED, more={"changes": changes})]
        if action == ev.ABANDONED:
            new.append(event_data(action, "the task was canceled"))
        elif action != ev.AMENDED:
            new.append(event_data(action))
        events = [NewEvent(data, agent or self._agent) for data in new]
        return self._recorder.record(state.id, events)[-1].state


def _changes(state: State, now: Task) -> dict[str, Any]:
    """Return new facts of a trajectory; empty unless the title or the state of its task changed."""
    before = state.task
    assert before is not None
    if (before.title, before.state) == (now.title, now.state):
        return {}
    title = {"title": now.title} if state.title in (before.title, before.id) else {}
    return {"task": replace(now, url=now.url or before.url).as_map(), **title}


def _action(state: State, before: Task, now: Task) -> str:
    """Return the type of event to record for a task; "" if neither its state nor its title changed."""
    if state.is_active and now.state != before.state and now.state in ENDED:
        return ev.COMPLETED if now.state == DONE else ev.ABANDONED
    if not state.is_active and before.state in ENDED and now.state not in (*ENDED, DELETED):
        return ev.REOPENED
    return ev.AMENDED if _changes(state, now) else ""


def named_tasks(branch: str) -> Iterator[tuple[str, str]]:
    """Yield (possible id of a task, words after it) from the name of a branch, likely ids first.

    Issue trackers have ids in upper case, but suggest branch names in lower case.
    """
    branch = _DATE.sub("/", branch)
    for pattern, prefix in ((_BEADS, ""), (_KEY, ""), (_NUMBER, "#"), (_SMALL_KEY, "")):
        for found in pattern.finditer(branch):
            if is_standard(found[1]):
                continue
            name = found[1].upper() if pattern is _SMALL_KEY else prefix + found[1]
            yield name, " ".join(re.split(r"[/_-]+", branch[found.end() :])).strip()

"""Trajectories of a repository: `repo.trajectories`."""

from __future__ import annotations

import os

from trace_store import check, errors, trajectories
from trace_store.ident import parse_moment
from trace_store.trajectories import events as ev
from trace_store.trajectories import reading
from trace_store.trajectories.events import NewEvent, Task, event_data
from trace_store.trajectories.recording import Recorded, Recorder
from trace_store.trajectories.state import FACTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from trace_store.environment import Environment
    from trace_store.llm.contract import Model
    from trace_store.oid import ObjectId
    from trace_store.secrets.guard import Guard
    from trace_store.store.handle import Store
    from trace_store.trajectories.capture import Capture
    from trace_store.trajectories.code import Reason
    from trace_store.trajectories.compact import Compacted
    from trace_store.trajectories.event_search import FoundEvent
    from trace_store.trajectories.events import Alternative, Event
    from trace_store.trajectories.exports import Exports
    from trace_store.trajectories.git import Git
    from trace_store.trajectories.git_notes import NotesReport
    from trace_store.trajectories.reading import Chapter, SessionMessage, Trajectory
    from trace_store.trajectories.score import Score
    from trace_store.trajectories.state import State
    from trace_store.trajectories.tasks.handle import Tasks
    from trace_store.trajectories.trail_import import TrailImport

AGENT, CURRENT = "TRACE_AGENT", "TRACE_TRAJECTORY"
"""Environment variables: the agent's name, and the id of the current trajectory."""


class Recording:
    """Methods that record events.

    If `trajectory` is "", they use the current trajectory: the one in `TRACE_TRAJECTORY`, else the only active one that
    was started on HEAD's branch, else the only active one. If `agent` is "", it is the one in `TRACE_AGENT`, else the
    author. If `session` is None, the event links the tip of HEAD's branch.
    """

    def __init__(
        self, store: Store, *, author: str, guard: Guard, environment: Environment
    ) -> None:
        self._store = store
        self._author = author
        self._environment = environment
        self._recorder = Recorder(store, guard)

    def start(
        self,
        title: str,
        *,
        task: Task | None = None,
        description: str = "",
        project: str = "",
        tags: Sequence[str] = (),
        agent: str = "",
        role: str = "",
    ) -> State:
        """Start a trajectory and return its state; several may be active.

        Args:
            title: what it is about.
            task: its task; None if it has none.
            description: more about it.
            project: the project that it belongs to.
            tags: words to find it by.
            agent: who starts it.
            role: the role of that agent, such as lead.

        Raises:
            InvalidInputError: it has no title, or an argument is not valid.
        """
        check.text(title=title, description=description, project=project, role=role)
        if task is not None:
            check.instance(Task, task=task)
        facts = {
            "title": title,
            "task": None if task is None else task.as_map(),
            "description": description,
            "project": project,
            "tags": tags,
            "role": role,
        }
        return self._recorder.start(facts, self._agent(agent))

    def record(
        self,
        type: str,
        content: str = "",
        *,
        trajectory: str = "",
        agent: str = "",
        time: int | None = None,
        session: ObjectId | None = None,
        **fields: Any,
    ) -> Recorded:
        """Record an event and return it, with the state after it.

        Args:
            type: one of `trajectories.events.TYPES`, or another lower-case name.
            content: what happened, in words.
            trajectory: its id, or the beginning of it.
            agent: who did it.
            time: when it happened, in milliseconds since the epoch; None: now.
            session: the tip of the agent's branch at that time.
            fields: other fields, as JSON values: role, significance, tags, raw, and the fields of the type.

        Raises:
            InvalidInputError: the type or a field is not valid; the message names it.
            StateError: there is no current trajectory, there are several, or its state does not allow the event.
            RefNotFoundError: there is no such trajectory.
            SecretFoundError: it holds a secret, and the guard refuses secrets.
        """
        check.text(type=type, content=content, trajectory=trajectory)
        ev.check_type(type)
        ev.check_fields(fields)
        state = self.find(trajectory)
        data = event_data(type, content, fields)
        (recorded,) = self.record_all(state.id, [data], agent, time=time, session=session)
        return recorded

    def record_all(
        self,
        trajectory: str,
        new: Sequence[Mapping[str, Any]],
        agent: str = "",
        *,
        time: int | None = None,
        session: ObjectId | None = None,
    ) -> Sequence[Recorded]:
        """Record events of one agent in one transaction.

        Args:
            trajectory: its id.
            new: the events, as `events.event_data` returns them.
            agent: who did it.
            time: when they happened, in milliseconds since the epoch; None: now.
            session: the tip of the agent's branch at that time.

        Raises:
            As `record`.
        """
        check.text(trajectory=trajectory)
        check.items(new=new)
        who, session = self._agent(agent), session or self._session()
        events = [NewEvent(data, who, time, session) for data in new]
        return self._recorder.record(trajectory, events) if events else []

    def decide(
        self,
        question: str,
        chosen: str,
        *,
        reasoning: str = "",
        alternatives: Sequence[Alternative | str | Mapping[str, str]] = (),
        confidence: float | None = None,
        **more: Any,
    ) -> Recorded:
        """Record a decision; the question is optional but recommended.

        Args:
            question: what was to be decided, or "".
            chosen: the answer.
            reasoning: why.
            alternatives: the options not chosen: values, maps, or texts such as "a queue: more to operate".
            confidence: how sure the agent is, 0 to 1.
            more: as in `record`.

        Raises:
            As `record`.
        """
        check.text(question=question, chosen=chosen, reasoning=reasoning)
        if not chosen.strip():
            raise errors.InvalidInputError("a decision needs what was chosen", argument="chosen")
        return self.record(
            ev.DECISION,
            chosen,
            question=question,
            reasoning=reasoning,
            alternatives=alternatives,
            confidence=confidence,
            **more,
        )

    def chapter(self, title: str, **more: Any) -> Recorded:
        """Begin a chapter and end the previous one; raises as `record`."""
        check.text(title=title)
        if not title.strip():
            raise errors.InvalidInputError("a chapter needs a title", argument="title")
        return self.record(ev.CHAPTER, title=title, **more)

    def reflect(
        self,
        summary: str,
        *,
        approach: str = "",
        challenges: Sequence[str] = (),
        learnings: Sequence[str] = (),
        suggestions: Sequence[str] = (),
        confidence: float | None = None,
        **more: Any,
    ) -> Recorded:
        """Record a retrospective; what is not given is taken from the one before, which stays. Raises as `record`."""
        check.text(summary=summary, approach=approach)
        if not summary.strip():
            raise errors.InvalidInputError("a retrospective needs a summary", argument="summary")
        state = self.find(more.get("trajectory", ""))
        given = {
            "summary": summary,
            "approach": approach,
            "challenges": challenges,
            "learnings": learnings,
            "suggestions": suggestions,
            "confidence": confidence,
        }
        fields = self._retrospective(state, given)
        return self.record(ev.RETROSPECTIVE, **fields, **{**more, "trajectory": state.id})

    def _retrospective(self, state: State, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a retrospective, with those of the one before that are not given."""
        before = self.read(state.id).retrospective if state.count(ev.RETROSPECTIVE) else None
        known = {} if before is None else before.data
        names = trajectories.retrospective.FIELDS
        new = {name: given[name] for name in names if given.get(name) not in (None, "", (), [])}
        kept = {name: known[name] for name in names if name in known}
        return {**kept, **new, "time_spent": self._store.clock.now() - state.started}

    def draft_retrospective(self, model: Model, trajectory: str = "") -> dict[str, Any]:
        """Return a retrospective drafted by a model from the history; record nothing, since a person must review it.

        Raises:
            ModelError: the request failed, or the answer could not be used.
            As `find`.
        """
        check.function(model=model)
        if model is None:
            raise errors.InvalidInputError("a draft needs a model", argument="model")
        whole = self.read(trajectory)
        messages = [each for chapter in whole.chapters for each in self.session_messages(chapter)]
        return trajectories.retrospective.draft_retrospective(model, whole, messages)

    def complete(
        self,
        retrospective: Mapping[str, Any] | None = None,
        *,
        trajectory: str = "",
        agent: str = "",
    ) -> Recorded:
        """Complete a trajectory; record its retrospective, if given, in the same transaction.

        Args:
            retrospective: summary, approach, challenges, learnings, suggestions and confidence, as in `reflect`.
            trajectory: its id, or the beginning of it.
            agent: who ends it.

        Raises:
            As `record`.
        """
        state = self.find(trajectory)
        ends = [event_data(ev.COMPLETED)]
        if retrospective is not None:
            given = trajectories.retrospective.read_retrospective(retrospective)
            ends.insert(0, {"type": ev.RETROSPECTIVE, **self._retrospective(state, given)})
        return self.record_all(state.id, ends, agent)[-1]

    def abandon(self, reason: str = "", **more: Any) -> Recorded:
        """Abandon a trajectory; raises as `record`."""
        return self.record(ev.ABANDONED, reason, **more)

    def reopen(self, trajectory: str, **more: Any) -> Recorded:
        """Make an ended trajectory active again; raises as `record`."""
        return self.record(ev.REOPENED, trajectory=trajectory, **more)

    def amend(
        self, event: str = "", *, trajectory: str = "", agent: str = "", **changes: Any
    ) -> Recorded:
        """Amend an event, or the trajectory's own facts if `event` is ""; earlier versions stay.

        Args:
            event: the beginning of the event's address, or `d2` for the second decision.
            trajectory: its id, or the beginning of it.
            agent: who changes it.
            changes: the new values: for an event, the fields of `record`; for a trajectory, title, description,
                project, tags and task.

        Raises:
            MessageNotFoundError: there is no such event, or there are several.
            As `record`.
        """
        check.text(event=event, trajectory=trajectory)
        if not changes:
            raise errors.InvalidInputError("nothing to change", argument="changes")
        if not event:
            unknown = sorted(changes.keys() - set(FACTS))
            if unknown:
                raise errors.InvalidInputError(
                    f"a trajectory has no {', '.join(unknown)}", argument=unknown[0]
                )
            changed = event_data(ev.AMENDED, more={"changes": _facts(changes)})
            return self.record(
                ev.AMENDED, trajectory=trajectory, agent=agent, changes=changed["changes"]
            )
        self._recorder.record_waiting(self.find(trajectory, ended=True).id)
        whole = self.read(trajectory)
        found = reading.find_event(whole, event)
        ev.check_fields(changes)
        checked = event_data(found.type, more=changes)
        del checked["type"]
        if not checked:
            raise errors.InvalidInputError("nothing to change", argument="changes")
        return self.record(
            ev.AMENDED, trajectory=whole.id, agent=agent, event=found.id.hex, changes=checked
        )

    def find(self, trajectory: str = "", *, ended: bool = False) -> State:
        """Return the state of the named or the current trajectory.

        Args:
            trajectory: its id, or the beginning of it.
            ended: if none is active, return the one with the newest event.

        Raises:
            StateError: there is no current trajectory, or there are several; the message lists them.
            RefNotFoundError: there is no such trajectory.
            AmbiguousRevisionError: several ids have this prefix.
        """
        check.text(trajectory=trajectory)
        current = self._environment.variables(CURRENT).get(CURRENT, "")
        return reading.choose(self._store, trajectory or current, ended=ended)

    def read(self, trajectory: str = "") -> Trajectory:
        """Return the named, the current or else the last trajectory, with its events; raises as `find`."""
        return reading.read_trajectory(self._store, self.find(trajectory, ended=True).id)

    def last_events(self, trajectory: str = "", count: int = 5) -> Sequence[Event]:
        """Return the last events of a trajectory, oldest first, without reading the others."""
        check.integer(1, 2**53, count=count)
        id_ = self.find(trajectory, ended=True).id
        return reading.last_events(self._store, id_, count)

    def session_messages(
        self, chapter: Chapter, *, lines: bool = True, thinking: bool = True
    ) -> Sequence[SessionMessage]:
        """Return the messages of the agents' sessions during a chapter, by time.

        Without `lines`, only the thinking in them is returned; without `thinking`, only a line for each.
        """
        return trajectories.reading.session_messages(
            self._store, chapter, lines=lines, thinking=thinking
        )

    def _agent(self, given: str) -> str:
        check.text(agent=given)
        return given or self._environment.variables(AGENT).get(AGENT, "") or self._author

    def _session(self) -> ObjectId | None:
        return self._store.refs.head().oid


class Trajectories(Recording):
    """Records and reads the trajectories of a repository: `repo.trajectories`."""

    def list(self, *, since: int | str | None = None, **wanted: Any) -> list[State]:
        """Return trajectories, the most recently updated first.

        Args:
            since: the earliest start: milliseconds since the epoch, or text such as "2 days ago".
            wanted: other conditions, as in `reading.Filter`: agent, tag, task, project, status, confidence.

        Raises:
            InvalidInputError: `since` is not a time, or `confidence` not a number from 0 to 1.
        """
        if isinstance(since, str):
            moment = parse_moment(since, self._store.clock.now())
            if moment is None:
                raise errors.InvalidInputError(
                    f"since: not a time: {since[:80]!r}", argument="since"
                )
            since = moment
        check.count(since=since)
        if (least := wanted.get("confidence")) is not None:
            wanted["confidence"] = ev.check_confidence(least)
        return reading.list_trajectories(self._store, reading.Filter(since=since, **wanted))

    @property
    def capture(self) -> Capture:
        """Finds events in the output of agents: blocks, and decisions in prose."""
        named = self._environment.variables(CURRENT).get(CURRENT, "")
        return trajectories.capture.Capture(self._store, self._recorder, named, self._agent(""))

    def search(self, query: str, *, limit: int = 20, **wanted: str) -> Sequence[FoundEvent]:
        """Return the events that match a query, the newest first; links to commits are left out.

        Args:
            query: words, phrases and exclusions, as in `Repo.search`; may be "" if a condition is given.
            limit: maximum number of events.
            wanted: conditions, as in `event_search.EventFilter`: tag, task, file, commit, agent.

        Raises:
            InvalidInputError: the query has no word.
            StateError: full-text search is not available.
        """
        check.text(query=query, **wanted)
        check.integer(0, 2**31, limit=limit)
        found = trajectories.event_search
        return found.search_events(self._store, query, found.EventFilter(**wanted), limit)

    def similar(self, question: str, *, limit: int = 5, **wanted: str) -> Sequence[FoundEvent]:
        """Return past decisions on similar questions, the most similar first.

        Args:
            question: what is to be decided; decisions with its rare words come first.
            limit: maximum number of decisions.
            wanted: conditions, as in `search`.

        Raises:
            As `search`.
        """
        check.text(question=question, **wanted)
        check.integer(0, 2**31, limit=limit)
        found = trajectories.event_search
        return found.similar_decisions(self._store, question, found.EventFilter(**wanted), limit)

    def score(self, trajectory: str = "") -> Score:
        """Return the completeness of a record, 0 to 100, and what it lacks; raises as `find`."""
        return trajectories.score.score_trajectory(self._store, self.read(trajectory))

    def compact(
        self, *, older_than: str = "90d", how: str = "archive", apply: bool = False
    ) -> Sequence[Compacted]:
        """Archive, summarise or delete trajectories that ended long ago; return them, the oldest first.

        Args:
            older_than: the minimum time since the last event, such as "90d".
            how: `archive` moves them to the trash. `summarise` keeps the start, the end, decisions, findings, links and
                the last retrospective, and moves the rest to the trash. `delete` leaves nothing in the trash.
            apply: False only returns what would be done.

        Raises:
            InvalidInputError: `older_than` is not a duration, or `how` is unknown.
        """
        check.text(older_than=older_than, how=how)
        check.flag(apply=apply)
        return trajectories.compact.compact(
            self._store, self._recorder, older_than, how, self._author, apply=apply
        )

    def why(self, target: str, *, folder: str | Git = ".", limit: int = 10) -> Sequence[Reason]:
        """Return the trajectories and decisions behind a change of the code, the newest commit first.

        Args:
            target: a file, `FILE:LINE`, or a commit, as git names it.
            folder: a folder in the git repository, or a `Git` that runs there; `target` is relative to it.
            limit: maximum number of reasons.

        Raises:
            RevisionNotFoundError: it is neither a file nor a commit, or the line is not committed.
            StateError: the folder is in no git repository, or git is not installed.
        """
        check.text(target=target)
        check.integer(0, 2**31, limit=limit)
        return trajectories.code.why(self._store, trajectories.git.git_in(folder), target, limit)

    @property
    def code(self) -> Code:
        """Links to commits of the code, and notes on them."""
        return Code(self, self._store, self._agent(""))

    def import_trail(self, *paths: str | os.PathLike[str], dry_run: bool = False) -> TrailImport:
        """Import trajectories of `trail` (npm agent-trajectories); return the outcome of each file.

        If a trajectory exists already, only its missing events are added.

        Args:
            paths: files, folders, or projects with trail's folders.
            dry_run: only report what would be imported.
        """
        check.flag(dry_run=dry_run)
        for path in paths:
            check.path(paths=path)
        return trajectories.trail_import.import_files(
            self._store, self._recorder, [os.fspath(path) for path in paths], dry_run=dry_run
        )

    @property
    def exports(self) -> Exports:
        """Exports trajectories for readers: pages, timelines, the text of a pull request."""

        def find(trajectory: str) -> State:
            return self.find(trajectory, ended=True)

        return trajectories.exports.Exports(self._store, self._environment, find)

    @property
    def tasks(self) -> Tasks:
        """The tasks of trajectories, and the systems that hold them."""
        handle = trajectories.tasks.handle
        return handle.Tasks(self._store, self._recorder, self._environment, self._agent(""))


class Code:
    """The commits of the code that belong to trajectories: `repo.trajectories.code`."""

    def __init__(self, whole: Trajectories, store: Store, agent: str) -> None:
        self._trajectories = whole
        self._store = store
        self._agent = agent

    def link(
        self,
        commits: str | Sequence[str] = "HEAD",
        *,
        folder: str | Git = ".",
        trajectory: str = "",
        agent: str = "",
    ) -> Sequence[Recorded]:
        """Link commits of the code, with their files and patch ids; skip those that are linked already.

        Args:
            commits: their names in git, or one name.
            folder: a folder in the git repository, or a `Git` that runs there.
            trajectory: its id, or the beginning of it.
            agent: who made them.

        Raises:
            RevisionNotFoundError: git knows no such commit.
            StateError: the folder is in no git repository, or git is not installed; or as in `Trajectories.record`.
            RefNotFoundError: there is no such trajectory.
        """
        state, git = self._trajectories.find(trajectory), trajectories.git.git_in(folder)
        names = [commits] if isinstance(commits, str) else commits
        check.texts(commits=names)
        new = trajectories.code.new_links(self._store, state, git, names)
        return self._trajectories.record_all(state.id, new, agent)

    def link_later(
        self, commit: str = "HEAD", *, folder: str | Git = ".", trajectory: str = ""
    ) -> bool:
        """Link a commit of the code when the next event is recorded, and return whether it will be.

        This is for hooks: `.trace` stays as it was committed, and readers see the link at once. A commit that is linked
        already, or changes only files of Trace, is skipped. Arguments and errors are those of `link`.
        """
        check.text(commit=commit, trajectory=trajectory)
        state, git = self._trajectories.find(trajectory), trajectories.git.git_in(folder)
        new = trajectories.code.new_links(self._store, state, git, [commit])
        return self._wait(state.id, [link for link in new if link.get("files")]) > 0

    def follow_rewrite(self, pairs: Iterable[tuple[str, str]], *, folder: str | Git = ".") -> int:
        """Update the links to rewritten commits in all trajectories when their next event is recorded.

        Args:
            pairs: (old, new) ids of commits, as git gives them to its hook `post-rewrite`.
            folder: a folder in the git repository, or a `Git` that runs there.

        Returns:
            The number of links.

        Raises:
            As `link`.
        """
        git = trajectories.git.git_in(folder)
        replaced = trajectories.code.replaced_links(self._store, git, pairs)
        return sum(self._wait(state.id, changes) for state, changes in replaced)

    def _wait(self, trajectory: str, new: Sequence[Mapping[str, Any]]) -> int:
        session, now = self._store.refs.head().oid, self._store.clock.now()
        events = [NewEvent(data, self._agent, now, session) for data in new]
        if events:
            trajectories.waiting.add(self._store, trajectory, events)
        return len(events)

    def write_notes(
        self, trajectory: str = "", *, folder: str | Git = ".", remove: bool = False
    ) -> NotesReport:
        """Write the decisions behind each linked commit to a git note on it, or remove these notes.

        Args:
            trajectory: its id, or the beginning of it.
            folder: a folder in the git repository, or a `Git` that runs there.
            remove: whether to remove these notes; other notes stay.

        Raises:
            StateError: the folder is in no git repository, or git is not installed; or as in `Trajectories.find`.
            InvalidInputError: git refuses, for example because it does not know the user's name.
            RefNotFoundError: there is no such trajectory.
        """
        git = trajectories.git.git_in(folder)
        return trajectories.git_notes.write_notes(
            git, self._trajectories.read(trajectory), remove=remove
        )


def _facts(changes: Mapping[str, Any]) -> dict[str, Any]:
    facts = event_data(ev.STARTED, more=changes)
    del facts["type"]
    if isinstance(task := changes.get("task"), Task):
        facts["task"] = task.as_map()
    return facts

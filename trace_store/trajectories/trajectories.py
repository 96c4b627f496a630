"""Trajectories of a repository: `repo.trajectories`."""

from __future__ import annotations

import os

from trace_store import errors, trajectories
from trace_store.base import check
from trace_store.base.ident import parse_moment
from trace_store.trajectories import events as ev
from trace_store.trajectories import reading
from trace_store.trajectories.events import NewEvent, Task, event_data
from trace_store.trajectories.recording import Recorded, Recorder
from trace_store.trajectories.state import FACTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from trace_store.base.oid import ObjectId
    from trace_store.llm.contract import Model
    from trace_store.store.store import Store
    from trace_store.trajectories.capture import Capture
    from trace_store.trajectories.compact import Compacted
    from trace_store.trajectories.event_search import FoundEvent
    from trace_store.trajectories.events import Alternative, Event
    from trace_store.trajectories.exports import Exports
    from trace_store.trajectories.git import Git
    from trace_store.trajectories.git_notes import NotesReport
    from trace_store.trajectories.hook_log import Seen
    from trace_store.trajectories.reading import Chapter, SessionMessage, Trajectory
    from trace_store.trajectories.score import Score
    from trace_store.trajectories.settle import Unlinked
    from trace_store.trajectories.state import State
    from trace_store.trajectories.tasks.tasks import Tasks
    from trace_store.trajectories.trail_import import TrailImport
    from trace_store.trajectories.why import Reason
    from trace_store.writer import Writer

AGENT, CURRENT = "TRACE_AGENT", "TRACE_TRAJECTORY"
"""Environment variables: the agent's name, and the id of the current trajectory."""


class Recording:
    """Methods that record events.

    If `trajectory` is "", they use the current trajectory: the one in `TRACE_TRAJECTORY`, else the only active one that
    was started on HEAD's branch, else the only active one. If `agent` is "", it is the one in `TRACE_AGENT`, else the
    author. If `session` is None, the event links the tip of HEAD's branch.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._store = writer.store
        self._recorder = Recorder(writer)

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
            SecretFoundError: it holds a secret, and the repository refuses secrets.
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
        if time is None:
            places = self._places()
            new = [{**places, **data} if data["type"] == ev.DECISION else data for data in new]
        events = [NewEvent(data, who, time, session) for data in new]
        return self._recorder.record(trajectory, events) if events else []

    def _places(self) -> dict[str, str]:
        """Return where git's work tree is, which says what code a decision is about."""
        branch, stash = reading.git_branch(self._store), reading.newest_stash(self._store)
        places = {"branch": f"refs/heads/{branch}" if branch else "", "stash": stash[:12]}
        return {name: text for name, text in places.items() if text}

    def decide(
        self,
        question: str,
        chosen: str,
        *,
        reasoning: str = "",
        alternatives: Sequence[Alternative | str | Mapping[str, str]] = (),
        confidence: float | None = None,
        supersedes: str | Sequence[str] = (),
        until: int | str | None = None,
        **more: Any,
    ) -> Recorded:
        """Record a decision; the question is optional but recommended.

        Args:
            question: what was to be decided, or "".
            chosen: the answer.
            reasoning: why.
            alternatives: the options not chosen: values, maps, or texts such as "a queue: more to operate".
            confidence: how sure the agent is, 0 to 1.
            supersedes: earlier decisions that it replaces, in any trajectory: addresses, or `d2` of this one. They are
                amended in the same transaction.
            until: when it ends: milliseconds since the epoch, or a time or date as text; a date is included.
            more: as in `record`.

        Raises:
            MessageNotFoundError: there is no such earlier decision.
            As `record`.
        """
        check.text(question=question, chosen=chosen, reasoning=reasoning)
        if not chosen.strip():
            raise errors.InvalidInputError("a decision needs what was chosen", argument="chosen")
        fields = {
            "question": question,
            "reasoning": reasoning,
            "alternatives": alternatives,
            "confidence": confidence,
            "until": self._end(until),
            **more,
        }
        if not supersedes:
            return self.record(ev.DECISION, chosen, **fields)
        names = [supersedes] if isinstance(supersedes, str) else supersedes
        check.texts(supersedes=names)
        return self._replace(chosen, names, fields)

    def _replace(self, chosen: str, names: Sequence[str], fields: dict[str, Any]) -> Recorded:
        """Record a decision that replaces others; arguments and errors as in `decide`."""
        trajectory, who = fields.pop("trajectory", ""), self._agent(fields.pop("agent", ""))
        time, session = fields.pop("time", None), fields.pop("session", None)
        ev.check_fields(fields)
        state = self.find(trajectory)
        old = [reading.find_decision(self._store, state.id, name) for name in dict.fromkeys(names)]
        fields["supersedes"] = [event.id.hex for _, event in old]
        data = event_data(ev.DECISION, chosen, fields)
        new = {**({} if time else self._places()), **data}
        event = NewEvent(new, who, time, session or self._session())
        return self._recorder.record_replacement(state.id, event, old)

    def _end(self, until: int | str | None) -> int | None:
        """Return when a decision ends, in milliseconds since the epoch; None if it has no end."""
        if not isinstance(until, str):
            return until
        moment = parse_moment(until, self._store.clock.now(), is_end=True)
        if moment is None:
            raise errors.InvalidInputError(f"until: not a time: {until[:80]!r}", argument="until")
        return moment

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
        decisions: Sequence[Mapping[str, Any]] = (),
        **more: Any,
    ) -> Recorded:
        """Record a retrospective; what is not given is taken from the one before, which stays.

        `decisions` have `chosen`, `question`, `reasoning`, `alternatives` and others; those that the trajectory does
        not have are recorded before it. Raises as `record`.
        """
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
        self._record_decisions(state.id, decisions, more.get("agent", ""))
        fields = self._retrospective(state, given)
        return self.record(ev.RETROSPECTIVE, **fields, **{**more, "trajectory": state.id})

    def _record_decisions(
        self, id: str, decisions: Sequence[Mapping[str, Any]], agent: str
    ) -> None:
        """Record decisions of a retrospective that the trajectory does not have."""
        if decisions:
            read = trajectories.retrospective
            new = read.new_decisions(self.read(id), read.read_decisions(decisions))
            self.record_all(id, new, agent)

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
            retrospective: summary, approach, challenges, learnings, suggestions, confidence and decisions, as in
                `reflect`.
            trajectory: its id, or the beginning of it.
            agent: who ends it.

        Raises:
            As `record`.
        """
        state = self.find(trajectory)
        ends = [event_data(ev.COMPLETED)]
        if retrospective is not None:
            given = trajectories.retrospective.read_retrospective(retrospective)
            self._record_decisions(state.id, given.pop("decisions", ()), agent)
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

        If all values are so already, nothing is recorded.

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
        self._recorder.record_waiting(self.find(trajectory, ended=True).id)
        whole = self.read(trajectory)
        if not event:
            unknown = sorted(changes.keys() - set(FACTS))
            if unknown:
                raise errors.InvalidInputError(
                    f"a trajectory has no {', '.join(unknown)}", argument=unknown[0]
                )
            changed = event_data(ev.AMENDED, more={"changes": _facts(changes)})["changes"]
            if whole.state.has_facts(changed):
                return Recorded(whole.events[0], whole.state, changed=False)
            return self.record(ev.AMENDED, trajectory=whole.id, agent=agent, changes=changed)
        found = reading.find_event(whole, event)
        if "supersedes" in changes:
            raise errors.InvalidInputError(
                "only a new decision can supersede others", argument="supersedes"
            )
        if "until" in changes:
            changes["until"] = self._end(changes["until"])
        ev.check_fields(changes)
        checked = event_data(found.type, more=changes)
        del checked["type"]
        if not checked:
            raise errors.InvalidInputError("nothing to change", argument="changes")
        if all(found.data.get(name) == value for name, value in checked.items()):
            return Recorded(found, whole.state, changed=False)
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
        self._recorder.settle()
        variables = self._writer.environment.variables(CURRENT, AGENT)
        named = trajectory or variables.get(CURRENT, "")
        return reading.choose(self._store, named, agent=variables.get(AGENT, ""), ended=ended)

    def is_name(self, text: str) -> bool:
        """Return True if one word looks like the id of a trajectory, or is that of a trajectory or a task."""
        word = text.strip()
        if not word or len(word.split()) > 1:
            return False
        if word.startswith(reading.PREFIX):
            return True
        if not any(map(str.isdigit, word)):
            return False  # every id has a digit
        tasks = trajectories.tasks.tasks.Tasks(
            self._store, self._recorder, self._writer.environment, self._agent("")
        )
        if tasks.named(word) is not None:
            return True
        try:
            reading.find_state(self._store, word)
        except (errors.NotFoundError, errors.InvalidInputError):
            return False
        except errors.AmbiguousRevisionError:
            return True
        return True

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
        writer = self._writer
        return given or writer.environment.variables(AGENT).get(AGENT, "") or writer.author

    def variables(self, *names: str) -> dict[str, str]:
        """Return those environment variables that are set and not empty."""
        return self._writer.environment.variables(*names)

    def _session(self) -> ObjectId | None:
        return self._store.refs.head().oid


class Trajectories(Recording):
    """Records and reads the trajectories of a repository: `repo.trajectories`."""

    def list(
        self, *, since: int | str | None = None, limit: int | None = None, **wanted: Any
    ) -> list[State]:
        """Return trajectories, the most recently updated first.

        Args:
            limit: maximum number of trajectories.
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
        check.count(since=since, limit=limit)
        if (least := wanted.get("confidence")) is not None:
            wanted["confidence"] = ev.check_confidence(least)
        return reading.list_trajectories(self._store, reading.Filter(since=since, **wanted), limit)

    @property
    def capture(self) -> Capture:
        """Finds events in the output of agents: blocks, and decisions in prose."""
        named = self._writer.environment.variables(CURRENT).get(CURRENT, "")
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
        return trajectories.compact.compact(self._recorder, older_than, how, apply=apply)

    def why(self, target: str, *, folder: str | Git = ".", limit: int = 10) -> Sequence[Reason]:
        """Return the trajectories and decisions behind a change of the code, the newest commit first.

        Args:
            target: a file, `FILE:LINE`, `FILE:FIRST-LAST`, or a commit or a range, as git names them.
            folder: a folder in the git repository, or a `Git` that runs there; `target` is relative to it.
            limit: maximum number of reasons.

        Raises:
            RevisionNotFoundError: it is neither a file nor a commit, or the line is not committed.
            StateError: the folder is in no git repository, or git is not installed.
        """
        check.text(target=target)
        check.integer(0, 2**31, limit=limit)
        self._recorder.settle()
        return trajectories.why.why(self._store, trajectories.git.git_in(folder), target, limit)

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

        return trajectories.exports.Exports(self._store, self._writer.environment, find)

    @property
    def tasks(self) -> Tasks:
        """The tasks of trajectories, and the systems that hold them."""
        handle = trajectories.tasks.tasks
        return handle.Tasks(self._store, self._recorder, self._writer.environment, self._agent(""))


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
            trajectory: its id, or the beginning of it; if none is active, "" is the one with the newest event.
            agent: who made them.

        Raises:
            RevisionNotFoundError: git knows no such commit.
            StateError: the folder is in no git repository, or git is not installed; or as in `Trajectories.record`.
            RefNotFoundError: there is no such trajectory.
        """
        git = trajectories.git.git_in(folder)
        state = self._trajectories.find(trajectory, ended=True)
        names = [commits] if isinstance(commits, str) else commits
        check.texts(commits=names)
        new = trajectories.code.new_links(self._store, state, git, names)
        linked = self._trajectories.record_all(state.id, new, agent)
        trajectories.settle.forget_unlinked(self._store, [each.event.commit for each in linked])
        return linked

    def about(
        self,
        commit: str = "",
        files: Sequence[str] = (),
        *,
        folder: str | Git = ".",
        trajectory: str = "",
    ) -> dict[str, Any]:
        """Return the fields `commit` and `files` of a decision that is about some code, and link the commit.

        Args:
            commit: its name in git, or "".
            files: paths, relative to `folder`.
            folder: a folder in the git repository, or a `Git` that runs there.
            trajectory: its id, or the beginning of it.

        Raises:
            As `link`.
        """
        check.text(commit=commit)
        check.texts(files=files)
        git = trajectories.git.git_in(folder)
        about: dict[str, Any] = {"files": trajectories.code.from_top(git, files)} if files else {}
        if commit:
            self.link(commit, folder=git, trajectory=trajectory)
            about["commit"] = git.resolve(commit)
        return about

    def note(self, seen: Sequence[Seen]) -> bool:
        """Note what a hook of git saw, for the next command; return whether that is anything.

        `.trace` stays as it was committed, and readers see the links at once. A commit that is linked already, or that
        changes only files of Trace, is skipped.
        """
        variables = self._trajectories.variables(*trajectories.hook_log.VARIABLES)
        trajectories.hook_log.add(self._store, [each.made_in(variables) for each in seen])
        return bool(seen)

    def settle(self) -> None:
        """Link the commits that git's hooks have noted, as each command that records or reads a trajectory does."""
        trajectories.settle.settle(self._store, self._agent)

    def unlinked(self) -> Sequence[Unlinked]:
        """Return the commits that belong to no trajectory because several were active, oldest first."""
        self.settle()
        return trajectories.settle.unlinked(self._store)

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

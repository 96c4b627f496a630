"""Reading: events of trajectories in chapters, messages of sessions, and lists.

If two clones both recorded events, the ref has two tips. The trajectory is then the union of both histories, sorted by
time, and no merge is needed.

Prompts, thinking and tool calls are not copied into a trajectory. Each event links the tip of its agent's branch. The
messages of a chapter are in the commits between the tips linked before it and the tips linked in it.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice

from trace_store import context, disk, errors, trajectories
from trace_store.base.frozen import replace, value
from trace_store.base.ident import is_count
from trace_store.base.oid import MINIMUM_PREFIX, ObjectId, is_full_id, is_prefix
from trace_store.commit_table import graph
from trace_store.contracts.ref_names import TRAJECTORIES, check_text, is_ref_name
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import read_commit
from trace_store.objects.message import load_message
from trace_store.objects.parts import Data, Reasoning
from trace_store.trajectories import events as ev
from trace_store.trajectories.events import SESSION, Event
from trace_store.trajectories.state import ABANDONED, ACTIVE, META, State
from trace_store.trajectories.waiting import waiting_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from trace_store.base.ident import Time
    from trace_store.objects.commit import Commit
    from trace_store.store.store import Store
    from trace_store.trajectories.trajectory_index import TrajectoryIndex

WIDTH = 120
"""Maximum number of characters in the line of a message."""

PREFIX = "traj_"


@value
class Chapter:
    """A part of a trajectory.

    Attributes:
        title: its title; "" for the events before the first chapter.
        agent: who began it.
        started, ended: in milliseconds since the epoch; `ended` is None for the current chapter.
        events: what happened in it, oldest first.
        before: the tips of the agents' branches when it began.
        tips: the tips of these branches during it, and at its end.
    """

    JSON = "-before -tips"

    title: str
    agent: str
    started: Time
    ended: Time | None
    events: tuple[Event, ...]
    before: tuple[ObjectId, ...] = ()
    tips: tuple[ObjectId, ...] = ()

    def without(self, *types: str) -> Chapter:
        """Return the chapter without the events of some types."""
        return replace(self, events=tuple(e for e in self.events if e.type not in types))


@value
class Trajectory:
    """A whole trajectory.

    Attributes:
        state: its facts and status, as a list shows them.
        events: all of its events in order, amended ones in their latest version.
    """

    JSON = "*state -events ended reason? retrospective links files"

    state: State
    events: tuple[Event, ...]

    @property
    def id(self) -> str:
        """Its id."""
        return self.state.id

    @property
    def chapters(self) -> list[Chapter]:
        """Its chapters; the first has no title if it holds the events before the first chapter.

        A chapter belongs to its agent: an event of another agent with a chapter of its own is in that one.
        """
        parts: list[list[Event]] = [[]]
        starts: list[int] = [0]
        part_of: dict[str, int] = {}
        ends: dict[int, Event] = {}
        for number, event in enumerate(self.events):
            is_own = event.agent in part_of and not event.data.get(ev.IN_LAST)
            place = part_of[event.agent] if is_own else len(parts) - 1
            if event.type == ev.CHAPTER:
                ends[place] = event
                part_of[event.agent] = place = len(parts)
                parts.append([])
                starts.append(number)
            parts[place].append(event)
        first = 0 if any(map(_is_in_chapter, parts[0])) else 1
        return [
            self._chapter(starts[place], parts[place], ends.get(place))
            for place in range(first, len(parts))
        ]

    def _chapter(self, start: int, events: Sequence[Event], end: Event | None) -> Chapter:
        """Return the chapter with some events, the first of which has the number `start`."""
        first = self.events[start]
        return Chapter(
            str(first.data.get("title", "")) if first.type == ev.CHAPTER else "",
            first.agent,
            first.time,
            self.ended if end is None else end.time,
            tuple(filter(_is_in_chapter, events)),
            _sessions(self.events[: start + 1]),
            _sessions([*events[1:], *([] if end is None else [end])]),
        )

    @property
    def decisions(self) -> list[Event]:
        """Its decisions, oldest first."""
        return self.of_type(ev.DECISION)

    @property
    def retrospective(self) -> Event | None:
        """The newest retrospective; None if there is none."""
        return next(reversed(self.of_type(ev.RETROSPECTIVE)), None)

    @property
    def links(self) -> list[Event]:
        """The newest link to each code commit."""
        linked = self.of_type(ev.LINKED)
        return list({event.commit: event for event in linked if event.commit}.values())

    @property
    def files(self) -> list[str]:
        """The files of its links, relative to the repository, sorted."""
        alone = [event for event in self.of_type(ev.LINKED) if not event.commit]
        links = [*self.links, *alone]
        return sorted({str(path) for link in links for path in link.data.get("files", ())})

    @property
    def ended(self) -> Time | None:
        """When it was completed or abandoned, in milliseconds since the epoch; None while it is active."""
        if self.state.is_active:
            return None
        ends = self.of_type(ev.COMPLETED, ev.ABANDONED)
        return ends[-1].time if ends else self.state.updated

    @property
    def reason(self) -> str:
        """Why it was abandoned, or ""."""
        given_up = self.of_type(ev.ABANDONED) if self.state.status == ABANDONED else []
        return given_up[-1].content if given_up else ""

    def of_type(self, *types: str) -> list[Event]:
        """Return its events of some types, oldest first."""
        return [event for event in self.events if event.type in types]


def _is_in_chapter(event: Event) -> bool:
    return event.type in ev.IN_CHAPTER or event.type not in ev.TYPES


def _sessions(events: Sequence[Event]) -> tuple[ObjectId, ...]:
    """Return the tips of sessions that events link, each once."""
    return tuple(dict.fromkeys(event.session for event in events if event.session is not None))


@value
class Filter:
    """Conditions on trajectories; "" and None match anything.

    Attributes:
        agent: the name of an agent that took part.
        tag: one of its tags.
        task: the id of its task.
        project: its project.
        status: `active`, `completed` or `abandoned`.
        since: started at this time or later, in milliseconds since the epoch.
        confidence: the minimum confidence of its retrospective, 0 to 1.
    """

    agent: str = ""
    tag: str = ""
    task: str = ""
    project: str = ""
    status: str = ""
    since: int | None = None
    confidence: float | None = None

    def matches(self, state: State) -> bool:
        """Return True if a trajectory meets the conditions."""
        return (
            (not self.agent or any(each.name == self.agent for each in state.agents))
            and (not self.tag or self.tag in state.tags)
            and (not self.task or (state.task is not None and state.task.id == self.task))
            and (not self.project or state.project == self.project)
            and (not self.status or state.status == self.status)
            and (self.since is None or state.started >= self.since)
            and (self.confidence is None or (state.confidence or 0) >= self.confidence)
        )


def list_trajectories(
    store: Store, wanted: Filter | None = None, limit: int | None = None
) -> list[State]:
    """Return the trajectories that meet the conditions, the most recently updated first, at most `limit`.

    Each trajectory costs one read, however many events it has. Where there are many, an index has their states.

    Raises:
        ObjectNotFoundError, CorruptObjectError: an object is missing or damaged.
    """
    if (index := many(store)) is not None:
        try:
            states = index.states("" if wanted is None else wanted.status)
            fit = (state for state in states if wanted is None or wanted.matches(state))
            return list(islice(fit, limit))
        finally:
            index.close()
    found = (state_of(store, tips) for _, tips in store.refs.iterate_tips(TRAJECTORIES))
    kept = [state for state in found if wanted is None or wanted.matches(state)]
    return sorted(kept, key=lambda state: (-state.updated, state.id))[:limit]


def many(store: Store) -> TrajectoryIndex | None:
    """Return the index of the trajectories, if a repository has many refs; else None."""
    if not (store.local and store.refs.status().table):
        return None
    return trajectories.trajectory_index.open_index(store, state_of, links_of)


def state_of(store: Store, tips: Sequence[ObjectId]) -> State:
    """Return the state of a trajectory; raises as `list_trajectories`.

    If there are several tips, no commit has the state of both, so it is computed from all events.
    """
    state = State.read(read_commit(tips[0], store.objects.read).meta.get(META))
    if len(tips) == 1:
        return state
    joined = State(
        state.id,
        title=state.title,
        description=state.description,
        task=state.task,
        project=state.project,
        tags=state.tags,
        branch=state.branch,
        git_branch=state.git_branch,
        worktree=state.worktree,
    )
    for event in _events(store, tips):
        try:
            joined = joined.after(event.data, event.agent, event.time)
        except errors.StateError:  # one clone recorded something after the other had ended it
            active = replace(joined, status=ACTIVE)
            joined = replace(
                active.after(event.data, event.agent, event.time), status=joined.status
            )
    return joined


def find_state(store: Store, name: str) -> State:
    """Return the state of a trajectory, given its id, a unique prefix of it, or the id of its task.

    Raises:
        InvalidInputError: it cannot be an id.
        RefNotFoundError: there is none.
        AmbiguousRevisionError: several ids have this prefix, or several trajectories this task.
        As `list_trajectories`.
    """
    check_text(name)
    is_name = "/" not in name.removeprefix(TRAJECTORIES) and is_ref_name(
        TRAJECTORIES + name.removeprefix(TRAJECTORIES)
    )
    tips = store.refs.tips(trajectory_ref(name)) if is_name else ()
    if tips:
        return state_of(store, tips)
    found = [
        (ref, tips)
        for ref, tips in store.refs.iterate_tips(TRAJECTORIES)
        if is_name and name_of(ref).startswith((name, PREFIX + name))
    ]
    if len(found) > 1:
        names = [name_of(ref) for ref, _ in found]
        raise errors.AmbiguousRevisionError(
            f"several trajectories begin with {name[:80]!r}: {', '.join(names[:8])}", name=name
        )
    if found:
        return state_of(store, found[0][1])
    of_task = [state for state in list_trajectories(store) if _has_task(state, name)]
    of_task = [state for state in of_task if state.is_active] or of_task
    if len(of_task) > 1:
        names = [state.id for state in of_task]
        raise errors.AmbiguousRevisionError(
            f"several trajectories have the task {name[:80]!r}: {', '.join(names[:8])}", name=name
        )
    if not of_task:
        trajectory_ref(name)  # refuses what is no name
        raise not_found(name)
    return of_task[0]


def _has_task(state: State, name: str) -> bool:
    """Return True if a trajectory has the task with an id, in any of its forms, or an address."""
    if state.task is None or not name:
        return False
    ids = {each.lower().removeprefix("gh-").removeprefix("#") for each in (state.task.id, name)}
    return (bool(state.task.id) and len(ids) == 1) or name == state.task.url


def choose(
    store: Store, named: str = "", branch: str = "", *, agent: str = "", ended: bool = False
) -> State:
    """Return the current trajectory, or the named one.

    Of the active ones, it is that of the agent, of git's work tree, of a branch, of HEAD's branch, or of git's branch.

    Args:
        store: the repository's store.
        named: its id or the beginning of it, or the id of its task; "" for none.
        branch: the full name of a branch that is tried before HEAD's; "" for none.
        agent: the agent's name; "" for none.
        ended: if none is active, return the one with the newest event.

    Raises:
        StateError: none is active, or several are; the message lists them.
        As `find_state`.
    """
    if named:
        return find_state(store, named)
    active = list_trajectories(store, Filter(status=ACTIVE))
    found = active
    if len(active) > 1:
        found = [state for state in active if branch and state.branch == branch] or narrowed(
            active,
            agent=agent,
            worktree=worktree_of(store, store.folder),
            branch=store.refs.head().ref or "",
            git_branch=git_branch(store),
        )
    if len(found) == 1:
        return found[0]
    if not active:
        last = list_trajectories(store)[:1] if ended else ()
        if last:
            return last[0]
        raise errors.StateError("no trajectory is active", code=errors.ErrorCode.NO_TRAJECTORY)
    listed = "; ".join(f"{state.id} {state.title[:60]!r}" for state in active[:8])
    raise errors.StateError(
        f"several trajectories are active: {listed}",
        code=errors.ErrorCode.SEVERAL_TRAJECTORIES,
        names=[state.id for state in active],
    )


def narrowed(
    states: list[State], *, agent: str, worktree: str, branch: str, git_branch: str
) -> list[State]:
    """Return those trajectories that fit best: the agent's, else its work tree's, else its branch's."""
    tests = (
        [state for state in states if agent and any(each.name == agent for each in state.agents)],
        [state for state in states if state.worktree == worktree],
        [state for state in states if branch and state.branch == branch],
        [state for state in states if git_branch and state.git_branch == git_branch],
    )
    for kept in tests:
        both = [state for state in states if state in kept]
        states = both or states
    return states


def git_branch(store: Store) -> str:
    """Return the branch that git has checked out around a repository; "" if there is none."""
    try:
        return disk.git.git_branch(store.disk, store.layout.root, store.folder)
    except errors.StorageError:
        return ""


def newest_stash(store: Store) -> str:
    """Return the id of git's newest stash around a repository; "" if there is none."""
    try:
        return disk.git.newest_stash(store.disk, store.folder)
    except errors.StorageError:
        return ""


def worktree_of(store: Store, folder: str) -> str:
    """Return the name of git's linked work tree around a folder; "" in the main one, or without git."""
    try:
        return disk.git.worktree(store.disk, folder)
    except errors.StorageError:
        return ""


def links_of(store: Store, id: str) -> list[Event]:
    """Return the links of a trajectory, without those that wait to be recorded; raises as `list_trajectories`."""
    events = _amended(_events(store, store.refs.tips(trajectory_ref(id))))
    return [event for event in events if event.type == ev.LINKED]


def read_trajectory(store: Store, name: str) -> Trajectory:
    """Return a whole trajectory with the events that wait to be recorded; raises as `find_state`."""
    state = find_state(store, name)
    tips, late = store.refs.tips(TRAJECTORIES + state.id), waiting_events(store, state.id)
    for event in late:
        state = state.after(event.data, event.agent, event.time)
    return Trajectory(state, tuple(_amended([*_events(store, tips), *late])))


def last_events(store: Store, id: str, count: int) -> list[Event]:
    """Return the last events of the trajectory with an id, oldest first; raises as `list_trajectories`.

    Only these commits are read. An amendment is applied only if the amended event is among them.
    """
    read = store.objects.read
    waiting = {oid: read_commit(oid, read) for oid in store.refs.tips(trajectory_ref(id))}
    known = set(waiting)
    found: list[Event] = []
    while waiting and len(found) < count:
        oid = max(waiting, key=lambda each: waiting[each].time)
        commit = waiting.pop(oid)
        found[:0] = events_of(store, oid, commit)
        waiting.update(
            {each: read_commit(each, read) for each in commit.parents if each not in known}
        )
        known.update(commit.parents)
    return _amended([*found, *waiting_events(store, id)][-count:])


def _events(store: Store, tips: Sequence[ObjectId]) -> Iterator[Event]:
    """Yield the events of all tips by time, but each after its parents."""
    commits: dict[ObjectId, Commit] = {}

    def parents(oid: ObjectId) -> Sequence[ObjectId]:
        commits[oid] = read_commit(oid, store.objects.read)
        return commits[oid].parents

    for _ in graph.ancestors(tips, parents):
        pass
    newest_first = graph.topological(
        tips, lambda oid: commits[oid].parents, time_of=lambda oid: commits[oid].time
    )
    for oid in reversed(list(newest_first)):
        yield from events_of(store, oid, commits[oid])


def events_of(store: Store, oid: ObjectId, commit: Commit) -> Iterator[Event]:
    """Yield the events that a commit recorded, without amendments."""
    links = dict(commit.links)
    session = _session(links.get(SESSION))
    for address, stored in ops.added_messages(commit, oid):
        for part in load_message(stored, store.objects.read).parts:
            data = _value(part) if isinstance(part, Data) else {}
            if not data:  # it was purged
                data = {"type": ev.NOTE, "content": getattr(part, "text", "")}
            yield Event(
                address,
                commit.time,
                commit.author,
                str(data.get("type", ev.NOTE)),
                str(data.get("content", "")),
                data,
                session,
            )


def _session(target: object) -> ObjectId | None:
    """Return the tip of a session that an event mentions: text, since it may be missing."""
    if isinstance(target, ObjectId):
        return target
    return ObjectId.parse(target) if isinstance(target, str) and is_full_id(target) else None


def _value(part: Data) -> Mapping[str, Any]:
    try:
        return part.value
    except errors.CorruptObjectError:
        return {}


def _amended(events: Iterable[Event]) -> list[Event]:
    """Return events with their amendments applied; the amendments stay in the list."""
    found: list[Event] = []
    places: dict[str, int] = {}
    for event in events:
        places[event.id.hex] = len(found)
        found.append(event)
        at = places.get(str(event.data.get("event", ""))) if event.type == ev.AMENDED else None
        if at is not None:
            before, changes = found[at], event.data.get("changes")
            data = {**before.data, **(changes if isinstance(changes, dict) else {})}
            found[at] = replace(
                before,
                content=str(data.get("content", "")),
                data=data,
                versions=(*before.versions, before.data),
            )
    return found


def find_event(trajectory: Trajectory, name: str) -> Event:
    """Return the event whose address begins with some hex digits, or a decision by its number (`d1`).

    Raises:
        MessageNotFoundError: there is none, or there are several.
    """
    decisions, digits = trajectory.decisions, name.removesuffix(".0")
    if name[:1] == "d" and is_count(name[1:]) and 0 < int(name[1:]) <= len(decisions):
        return decisions[int(name[1:]) - 1]
    found = [each for each in trajectory.events if each.id.hex.startswith(digits)]
    if len(digits) < MINIMUM_PREFIX:
        found = []
    if len(found) == 1:
        return found[0]
    how = "several events" if found else "no event"
    raise errors.MessageNotFoundError(
        f"{how} {name[:80]!r} of {trajectory.id}",
        code=errors.ErrorCode.EVENT_NOT_FOUND,
        name=trajectory.id,
    )


def find_decision(store: Store, trajectory: str, name: str) -> tuple[str, Event]:
    """Return a decision, and the id of its trajectory.

    Args:
        store: the repository's store.
        trajectory: the id of the trajectory whose numbers (`d1`) count.
        name: `d1`, or the beginning of an address in any trajectory.

    Raises:
        MessageNotFoundError: there is no such decision, or there are several.
    """
    if name[:1] == "d" and is_count(name[1:]):
        return trajectory, find_event(read_trajectory(store, trajectory), name)
    digits = name.removesuffix(".0")
    found: list[tuple[str, Event]] = []
    for oid in store.objects.resolve_prefix(digits) if is_prefix(digits) else ():
        with suppress(errors.CorruptObjectError, errors.NotFoundError, errors.InvalidInputError):
            meta = read_commit(oid, store.objects.read).meta.get(META)
            id_ = str(meta.get("id", "")) if isinstance(meta, dict) else ""
            whole = read_trajectory(store, id_)
            found += [(id_, each) for each in whole.decisions if each.id == Address.of(oid, 0)]
    if len(found) == 1:
        return found[0]
    how = "several decisions" if found else "no decision"
    raise errors.MessageNotFoundError(
        f"{how} {name[:80]!r}", code=errors.ErrorCode.EVENT_NOT_FOUND, name=trajectory
    )


@value
class SessionMessage:
    """A message of a session.

    Attributes:
        address: its address.
        time: the time of its commit, in milliseconds since the epoch.
        agent: the author of its commit.
        line: its role and the start of its content; "" if it holds only thinking.
        thinking: the model's thinking in it, or "".
    """

    address: Address
    time: Time
    agent: str
    line: str
    thinking: str


def session_messages(
    store: Store, chapter: Chapter, *, lines: bool = True, thinking: bool = True
) -> list[SessionMessage]:
    """Return the messages that were added to the linked sessions during a chapter, oldest first.

    Without `lines`, only messages with thinking are returned, and without `thinking`, only those with a line.

    Missing commits, such as those of a branch that was not fetched, are skipped.

    Raises:
        CorruptObjectError: an object is damaged.
    """
    found: list[tuple[ObjectId, Commit]] = []
    known = set(chapter.before)
    for tip in chapter.tips:
        branch: list[tuple[ObjectId, Commit]] = []
        oid: ObjectId | None = tip
        while oid is not None and oid not in known:
            known.add(oid)
            try:
                commit = read_commit(oid, store.objects.read)
            except errors.ObjectNotFoundError:
                break
            if commit.time < chapter.started:  # a branch that no earlier event links
                break
            branch.append((oid, commit))
            oid = commit.parents[0] if commit.parents else None
        found += reversed(branch)
    found.sort(key=lambda each: each[1].time)
    messages = (each for oid, commit in found for each in _messages_of(store, oid, commit))
    wanted = (
        replace(each, line=each.line if lines else "", thinking=each.thinking if thinking else "")
        for each in messages
    )
    return [each for each in wanted if each.line or each.thinking]


def _messages_of(store: Store, oid: ObjectId, commit: Commit) -> list[SessionMessage]:
    read = store.objects.read
    found = []
    for address, stored in ops.added_messages(commit, oid):
        if ops.BORN in stored:  # a merge or a cherry-pick added it
            continue
        types = {part["type"] for part in stored["parts"]}
        line = "" if types == {"reasoning"} else context.content.message_line(stored, read, WIDTH)
        thinking = ""
        if "reasoning" in types:
            parts = load_message(stored, read).parts
            thinking = "\n".join(part.text for part in parts if isinstance(part, Reasoning))
        found.append(SessionMessage(address, commit.time, commit.author, line, thinking))
    return found


def trajectory_ref(id: str) -> str:
    """Return the full name of a trajectory's ref.

    Raises:
        InvalidInputError: the id is not valid.
    """
    check_text(id)
    name = id.removeprefix(TRAJECTORIES)
    if "/" in name or not is_ref_name(TRAJECTORIES + name):
        raise errors.InvalidInputError(f"not an id of a trajectory: {id[:80]!r}", value=id)
    return TRAJECTORIES + name


def name_of(ref: str) -> str:
    """Return the id of the trajectory with a ref."""
    return ref.removeprefix(TRAJECTORIES)


def not_found(id: str) -> errors.RefNotFoundError:
    """Return the error for a trajectory that does not exist."""
    return errors.RefNotFoundError(
        f"no trajectory {id[:80]!r}", code=errors.ErrorCode.TRAJECTORY_NOT_FOUND, name=id
    )

"""The JSON of `trail` 0.6, a program of AgentWorkforce: schema version 1, read and written.

Invariant: pure functions. Details that Trace has no field for are stored in an event's field `trail`, so that a
document that was read is written unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.ident import check_author, format_time
from trace_store.base.oid import ObjectId, hash_object
from trace_store.exporters.contract import Loss, Losses
from trace_store.importers.convert import time_of
from trace_store.objects.address import Address
from trace_store.trajectories import events as ev
from trace_store.trajectories.events import Event, NewEvent, event_data
from trace_store.trajectories.reading import PREFIX, Chapter, Trajectory, trajectory_ref
from trace_store.trajectories.state import ABANDONED, ACTIVE, COMPLETED, State

LEFTOVER = "trail"
"""The field of an event with the details that its other fields lose; see `leftover`."""
ATTRIBUTION = "agent_trace"
"""The field of a link with a record of Agent Trace, which says which lines of which files were written."""
VERSION = 1
DEFAULT_AGENT = "trail"
"""The author if a document names no agent."""
UNTITLED = "Work"
NO_APPROACH, NO_CONFIDENCE = "Not recorded", 0.5
"""Values of fields that trail requires, if they were not recorded."""
LONGEST_TITLE = 500
_URL = re.compile("[A-Za-z][A-Za-z0-9+.-]*:.")
_ENDS = {COMPLETED: ev.COMPLETED, ABANDONED: ev.ABANDONED}
_EVENT_FIELDS = frozenset(
    ("type", "content", "significance", "tags", "confidence", "raw", LEFTOVER)
)
_DECISION_FIELDS = frozenset(("question", "reasoning", "alternatives"))
_LISTS = ("challenges", "learnings", "suggestions")
LOSSES = {
    "earlier-version": "the version of an event, or of the facts, before an amendment",
    "earlier-retrospective": "a retrospective that a later one replaced",
    "link-detail": "a detail of a linked commit other than its id and its files",
    "reopening": "that the trajectory ended and was reopened",
    "session-link": "the session message that led to an event",
    "stand-in": "that a required field was not recorded; a default value is written",
    "task-url": "the address of a task, if it is not a URL",
    "thought": "an event with thinking, if thinking is left out",
    "title-end": "the end of a title of more than 500 characters",
}
"""What trail cannot hold; see `losses`."""

_DIGEST_CHARACTERS = 16


class _Missing:
    __slots__ = ()


MISSING = _Missing()
"""Marks a key that is absent, which is not the same as a key with the value null."""


@value
class ParsedTrail:
    """A trajectory read from a document of trail, to be recorded.

    Attributes:
        id: its id.
        events: its events, oldest first.
        problems: the values that could not be read, in words; the events keep the values themselves in `trail`.
    """

    id: str
    events: tuple[NewEvent, ...]
    problems: tuple[str, ...]


def render(trajectory: Trajectory) -> dict[str, Any]:
    """Return a trajectory as trail's JSON values."""
    kept = (each.get(LEFTOVER) for each in _facts(trajectory))
    document = _restored_object(_document(trajectory), next(filter(None, kept), None))
    last = trajectory.retrospective
    if last is not None:
        document["retrospective"] = _restored_object(_retrospective(last), last.data.get(LEFTOVER))
    document["chapters"] = [_whole_chapter(*each) for each in _chapters(trajectory)]
    return document


def _restored_object(derived: dict[str, Any], left: object) -> dict[str, Any]:
    """Return the original of a JSON object, or `derived` if the original is not an object."""
    found = restored(derived, left)
    return found if isinstance(found, dict) else derived


def losses(trajectory: Trajectory) -> tuple[Loss, ...]:
    """Return what trail's JSON of a trajectory cannot hold, by the codes of LOSSES."""
    lost = Losses()
    lost.add("earlier-version", count=len(trajectory.of_type(ev.AMENDED)))
    lost.add("earlier-retrospective", count=max(0, len(trajectory.of_type(ev.RETROSPECTIVE)) - 1))
    known = {"type", "commit", "files", LEFTOVER}
    lost.add("link-detail", count=sum(bool(each.data.keys() - known) for each in trajectory.links))
    lost.add("reopening", count=len(trajectory.of_type(ev.REOPENED)))
    lost.add("session-link", count=sum(each.session is not None for each in trajectory.events))
    if (last := trajectory.retrospective) is not None:
        missing = [name for name in ("summary", "approach") if not last.data.get(name)]
        missing += ["confidence"] if last.confidence is None else []
        kept = last.data.get(LEFTOVER)
        for name in [] if kept else missing:
            lost.add("stand-in", f"{name} of the retrospective")
    if (task := trajectory.state.task) is not None and task.url:
        lost.add("task-url", count=not _URL.match(task.url))
    lost.add("title-end", count=len(trajectory.state.title) > LONGEST_TITLE)
    return lost.all()


def attribution(trajectory: Trajectory) -> Mapping[str, Any] | None:
    """Return the newest record of Agent Trace that belongs to a trajectory, or None."""
    found = [each.data.get(ATTRIBUTION) for each in trajectory.of_type(ev.LINKED)]
    return next((each for each in reversed(found) if isinstance(each, dict)), None)


def _facts(trajectory: Trajectory) -> Iterator[Mapping[str, Any]]:
    """Yield the versions of the trajectory's facts, the newest first."""
    for each in reversed(trajectory.events):
        if each.type == ev.AMENDED and "event" not in each.data:
            yield each.data["changes"]
        elif each.type == ev.STARTED:
            yield each.data


def _document(trajectory: Trajectory) -> dict[str, Any]:
    """Return a document without chapters and retrospective."""
    state = trajectory.state
    id_ = state.id if state.id.startswith(PREFIX) else PREFIX + state.id
    document: dict[str, Any] = {
        "id": re.sub("[^a-z0-9_]", "_", id_.lower()),
        "version": VERSION,
        "task": _task(state),
        "status": state.status,
        "startedAt": format_time(state.started),
        "agents": [
            {
                "name": each.name,
                "role": each.role or ("contributor" if number else "lead"),
                "joinedAt": format_time(each.joined),
            }
            for number, each in enumerate(state.agents)
        ],
        "commits": [each.commit for each in trajectory.links],
        "filesChanged": trajectory.files,
        "tags": list(state.tags),
    }
    if trajectory.ended is not None:
        document["completedAt"] = format_time(trajectory.ended)
    if state.project:
        document["projectId"] = state.project
    return document


def _task(state: State) -> dict[str, Any]:
    task: dict[str, Any] = {"title": state.title[:LONGEST_TITLE] or state.id}
    if state.description:
        task["description"] = state.description
    if state.task is not None and (state.task.id or state.task.system):
        task["source"] = {
            "system": state.task.system or "plain",
            "id": state.task.id or state.task.title or state.id,
            **({"url": state.task.url} if _URL.match(state.task.url) else {}),
        }
    return task


def _chapters(trajectory: Trajectory) -> list[tuple[int, Event | None, Chapter]]:
    """Return (number, event that began it, chapter); the event is None for the events before the first chapter."""
    chapters, opening = trajectory.chapters, trajectory.of_type(ev.CHAPTER)
    first: list[Event | None] = [None] * (len(chapters) - len(opening))
    return list(zip(range(1, len(chapters) + 1), [*first, *opening], chapters, strict=True))


def _whole_chapter(number: int, opening: Event | None, chapter: Chapter) -> dict[str, Any]:
    events = [
        restored(_event(each, chapter.agent), each.data.get(LEFTOVER)) for each in chapter.events
    ]
    found = _restored_object(_chapter(number, chapter), opening and opening.data.get(LEFTOVER))
    return {**found, "events": [each for each in events if each is not MISSING]}


def _chapter(number: int, chapter: Chapter) -> dict[str, Any]:
    """Return a chapter without its events."""
    found = {
        "id": f"chap_{number}",
        "title": chapter.title or UNTITLED,
        "agentName": chapter.agent,
        "startedAt": format_time(chapter.started),
    }
    return found if chapter.ended is None else {**found, "endedAt": format_time(chapter.ended)}


def _event(event: Event, agent: str) -> dict[str, Any]:
    """Return an event as JSON; `agent` is the one who began its chapter."""
    found: dict[str, Any] = {"ts": event.time, "type": event.type}
    text = event.content or str(event.data.get("title") or event.type)
    is_decision = event.type == ev.DECISION
    found["content"] = f"{event.question or text}: {text}" if is_decision else text
    raw = event.data.get("raw")
    more = raw if isinstance(raw, dict) else {} if raw is None else {"raw": raw}
    more = {
        **{
            name: each
            for name, each in event.data.items()
            if name not in _EVENT_FIELDS | _DECISION_FIELDS
        },
        **more,
    }
    if is_decision:
        more = {**_decision(event), **more}
    if event.agent != agent:
        more["agent"] = event.agent
    if more:
        found["raw"] = raw if list(more) == ["raw"] else more
    if event.significance:
        found["significance"] = event.significance
    if event.confidence is not None:
        found["confidence"] = event.confidence
    if event.tags:
        found["tags"] = list(event.tags)
    return found


def _decision(event: Event) -> dict[str, Any]:
    found: dict[str, Any] = {
        "question": event.question or event.content,
        "chosen": event.content,
        "alternatives": [each.as_map() for each in event.alternatives],
        "reasoning": event.reasoning,
    }
    return found if event.confidence is None else {**found, "confidence": event.confidence}


def _retrospective(event: Event) -> dict[str, Any]:
    data = event.data
    found: dict[str, Any] = {
        "summary": data.get("summary") or UNTITLED,
        "approach": data.get("approach") or NO_APPROACH,
        "confidence": NO_CONFIDENCE if event.confidence is None else event.confidence,
    }
    for name in ("decisions", *_LISTS):
        if data.get(name):
            found[name] = data[name]
    if isinstance(spent := data.get("time_spent"), int):
        minutes = max(0, spent) // 60_000
        found["timeSpent"] = f"{minutes // 60}h {minutes % 60}m" if minutes >= 60 else f"{minutes}m"
    return found


def read(document: object) -> ParsedTrail:
    """Return the trajectory in a document of trail.

    Raises:
        UnreadableInputError: it is not a trajectory; the message says why.
    """
    try:
        return _Reader(document).parse()
    except RecursionError:
        raise _unreadable("its values are nested too deeply") from None


class _Reader:
    """Reads one document. A value that cannot be read is reported as a problem, and kept in the leftover."""

    def __init__(self, document: object) -> None:
        if not isinstance(document, dict):
            raise _unreadable("it is not a JSON object")
        if not isinstance(document.get("id"), str) or not document["id"]:
            raise _unreadable("it has no id")
        try:
            trajectory_ref(document["id"])
        except errors.InvalidInputError:
            raise _unreadable(f"its id is not valid: {document['id'][:80]!r}") from None
        if document.get("version", VERSION) != VERSION:
            raise _unreadable(f"it has version {str(document['version'])[:40]!r}, not {VERSION}")
        if not isinstance(document.get("chapters"), list):
            raise _unreadable("it has no list of chapters")
        self._document: dict[str, Any] = document
        self._problems: list[str] = []
        self._now = self._first_time()
        self._events: list[NewEvent] = []
        self._originals: list[object] = []
        """For each event, the JSON value that it was read from; None if no single value holds it."""
        self._joining: list[tuple[int, str, str]] = []
        """Time, name and role of the agents that have not joined yet."""

    def parse(self) -> ParsedTrail:
        """Return the trajectory."""
        self._start()
        for number, chapter in enumerate(self._document["chapters"], 1):
            if not isinstance(chapter, dict):
                self._problem(f"chapter {number} is not an object; it is left out")
                continue
            self._chapter(number, chapter)
        self._end()
        return ParsedTrail(self._document["id"], self._with_leftovers(), tuple(self._problems))

    def _start(self) -> None:
        """Add the first event, and note the agents that joined later."""
        document = self._document
        agents = [
            (self._time(each.get("joinedAt"), "an agent's joinedAt"), name, _text(each, "role"))
            for each in _objects(document.get("agents"))
            if (name := _agent(each.get("name")))
        ]
        named = [_agent(each.get("agentName")) for each in _objects(document["chapters"])]
        _, name, role = agents[0] if agents else (0, next(filter(None, named), DEFAULT_AGENT), "")
        task = document.get("task")
        if not isinstance(task, dict):
            self._problem("task is not an object")
            task = {"title": task} if isinstance(task, str) else {}
        title = _text(task, "title").strip() or document["id"]
        facts: dict[str, Any] = {
            "title": title,
            "description": _text(task, "description"),
            "project": _text(document, "projectId"),
            "tags": _texts(document.get("tags")),
            "role": role,
        }
        source = task.get("source")
        if isinstance(source, dict):
            names = ("system", "id", "url")
            facts["task"] = {
                "title": title,
                **{name: text for name in names if (text := _text(source, name))},
            }
        has_last = isinstance(document.get("retrospective"), dict)
        parts = {"chapters", "retrospective"} if has_last else {"chapters"}
        self._add(ev.STARTED, name, self._now, _without(document, parts), facts)
        self._joining = sorted(agents[1:], key=lambda each: each[0])

    def _chapter(self, number: int, chapter: dict[str, Any]) -> None:
        where = f"chapter {number}"
        agent = _agent(chapter.get("agentName")) or self._events[0].agent
        self._now = self._time(chapter.get("startedAt"), f"startedAt of {where}")
        self._join()
        facts = {"title": _text(chapter, "title")}
        self._add(ev.CHAPTER, agent, self._now, _without(chapter, {"events"}), facts)
        events = chapter.get("events")
        if not isinstance(events, list):
            self._problem(f"{where} has no list of events")
            events = []
        for at, event in enumerate(events, 1):
            if isinstance(event, str):
                self._add(ev.NOTE, agent, self._now, event, {"content": event})
            elif isinstance(event, dict):
                self._now = self._time(event.get("ts"), f"ts of event {at} of {where}")
                self._join()
                self._chapter_event(event, agent, f"event {at} of {where}")
            else:
                self._problem(f"event {at} of {where} is neither an object nor text; it is kept")
                self._add(ev.NOTE, agent, self._now, event, {})

    def _chapter_event(self, event: dict[str, Any], agent: str, where: str) -> None:
        type_, raw = event.get("type"), event.get("raw")
        if not ev.is_type(type_) or (type_ in ev.TYPES and type_ not in ev.IN_CHAPTER):
            self._problem(f"{where} has no valid type; it becomes a note")
            type_ = ev.NOTE
        data: dict[str, Any] = {"tags": _texts(event.get("tags"))}
        data["content"] = _text(event, "content")
        if event.get("significance") in ev.SIGNIFICANCES:
            data["significance"] = event["significance"]
        data["confidence"] = _confidence(event.get("confidence"))
        if isinstance(raw, dict):
            author = _agent(raw.get("agent"))
            if author and author != agent:
                data[ev.IN_LAST] = True
            agent = author or agent
            raw = _without(raw, {"agent"}) if author else raw
            if type_ == ev.DECISION and _text(raw, "chosen").strip():
                chosen, question = _text(raw, "chosen"), _text(raw, "question")
                data |= {"content": chosen, "reasoning": _text(raw, "reasoning")}
                data["question"] = "" if question == chosen else question
                data["alternatives"] = _alternatives(raw.get("alternatives"))
                if data["confidence"] is None:
                    data["confidence"] = _confidence(raw.get("confidence"))
                raw = _without(raw, {*_DECISION_FIELDS, "chosen", "confidence"})
        data["raw"] = raw
        self._add(str(type_), agent, self._now, event, data)

    def _end(self) -> None:
        """Add the links, the retrospective and the end."""
        document, author = self._document, self._events[0].agent
        status = _text(document, "status")
        if status not in (ACTIVE, *_ENDS):
            self._problem(f"status is not one of {ACTIVE}, {', '.join(_ENDS)}; {ACTIVE} is used")
        if status in _ENDS:
            self._now = self._time(document.get("completedAt"), "completedAt")
        self._join(everyone=True)
        last = document.get("retrospective")
        commits, files = _texts(document.get("commits")), _texts(document.get("filesChanged"))
        for commit in commits:
            self._add(ev.LINKED, author, self._now, None, {"commit": commit})
        if files:
            self._add(ev.LINKED, author, self._now, None, {"files": files})
        if isinstance(last, dict):
            texts = {name: _text(last, name) for name in ("summary", "approach")}
            lists = {name: _texts(last.get(name)) for name in _LISTS}
            decisions = last.get("decisions")
            more = {"decisions": decisions} if isinstance(decisions, list) else {}
            confidence = {"confidence": _confidence(last.get("confidence"))}
            fields = {**texts, **lists, **more, **confidence}
            self._add(ev.RETROSPECTIVE, author, self._now, last, fields)
        elif last is not None:
            self._problem("retrospective is not an object; it is kept")
        if status in _ENDS:
            self._add(_ENDS[status], author, self._now, None, {})

    def _join(self, *, everyone: bool = False) -> None:
        """Add the agents that joined until now."""
        while self._joining and (everyone or self._joining[0][0] <= self._now):
            time, name, role = self._joining.pop(0)
            self._add(ev.JOINED, name, time, None, {"role": role})

    def _add(
        self, type_: str, agent: str, time: int, original: object, data: Mapping[str, Any]
    ) -> None:
        content = data.get("content", "")
        more = {name: each for name, each in data.items() if name != "content"}
        self._events.append(NewEvent(event_data(type_, content, more), agent, time))
        self._originals.append(original)

    def _with_leftovers(self) -> tuple[NewEvent, ...]:
        """Return the events, each with its leftover."""
        trajectory = _as_trajectory(self._document["id"], self._events)
        derived: list[object] = [None] * len(self._events)
        places = {id(event): number for number, event in enumerate(trajectory.events)}
        for number, opening, chapter in _chapters(trajectory):
            if opening is not None:
                derived[places[id(opening)]] = _chapter(number, chapter)
            for event in chapter.events:
                derived[places[id(event)]] = _event(event, chapter.agent)
        if (last := trajectory.retrospective) is not None:
            derived[places[id(last)]] = _retrospective(last)
        derived[0] = _document(trajectory)
        kept = []
        for new, original, known in zip(self._events, self._originals, derived, strict=True):
            left = {} if known is None else leftover(original, known)
            data = {**new.data, LEFTOVER: left} if left else new.data
            kept.append(NewEvent(data, new.agent, new.time))
        return tuple(kept)

    def _first_time(self) -> int:
        """Return when the trajectory started, or the first time in the document."""
        document = self._document
        found = time_of(document.get("startedAt"))
        if found is None:
            self._problem("startedAt is not a time")
            chapters = _objects(document["chapters"])
            inside = [
                time_of(each.get("ts")) for one in chapters for each in _objects(one.get("events"))
            ]
            known = [time_of(each.get("startedAt")) for each in chapters] + inside
            found = next((time for time in known if time), 0)
        return found

    def _time(self, given: object, what: str) -> int:
        found = time_of(given)
        if found is None:
            self._problem(f"{what} is not a time; the time before it is used")
            return self._now
        return found

    def _problem(self, what: str) -> None:
        self._problems.append(what)


def read_attribution(document: Mapping[str, Any], agent: str) -> NewEvent:
    """Return a link that holds a record of Agent Trace; trail writes one beside each trajectory."""
    files = _objects(document.get("files"))
    about = f"lines of {len(files)} file{'' if len(files) == 1 else 's'}"
    data = event_data(ev.LINKED, more={"subject": about, ATTRIBUTION: dict(document)})
    return NewEvent(data, agent, time_of(document.get("timestamp")) or 0)


def _as_trajectory(id_: str, events: Iterable[NewEvent]) -> Trajectory:
    """Return a trajectory of events that are not stored yet."""
    state, found = State(id_), []
    for number, each in enumerate(events):
        time = each.time or 0
        state = state.after(each.data, each.agent, time)
        address = Address.of(ObjectId(number.to_bytes(32, "big")), 0)
        content = str(each.data.get("content", ""))
        found.append(Event(address, time, each.agent, each.data["type"], content, each.data))
    return Trajectory(state, tuple(found))


def _unreadable(why: str) -> errors.UnreadableInputError:
    return errors.UnreadableInputError(why, reason="not-a-trajectory")


def _objects(given: object) -> list[dict[str, Any]]:
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []


def _text(given: Mapping[str, Any], name: str) -> str:
    found = given.get(name)
    return found if isinstance(found, str) else ""


def _texts(given: object) -> list[str]:
    return [each for each in given if isinstance(each, str)] if isinstance(given, list) else []


def _without(given: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: each for name, each in given.items() if name not in names}


def _agent(given: object) -> str:
    """Return the name of an agent if a commit may have it as its author, else ""."""
    try:
        return check_author(given) if isinstance(given, str) else ""
    except errors.InvalidInputError:
        return ""


def _confidence(given: object) -> float | None:
    try:
        return None if given is None else ev.check_confidence(given)
    except errors.InvalidInputError:
        return None


def _alternatives(given: object) -> list[dict[str, str]]:
    found = []
    for each in given if isinstance(given, list) else []:
        if isinstance(each, str) and each.strip():
            found.append({"option": each})
        elif isinstance(each, dict) and _text(each, "option"):
            reason = _text(each, "reason")
            found.append(
                {"option": _text(each, "option"), **({"reason": reason} if reason else {})}
            )
    return found


def leftover(original: Any, derived: Any) -> dict[str, Any]:
    """Return the differences that turn `derived` into `original`, as JSON values; empty if they are equal.

    Trace's own fields lose details of an imported trajectory, such as whether a list was missing or empty. These are
    stored beside them as leftovers. A leftover applies only while its field is unchanged.
    """
    if isinstance(original, dict) and isinstance(derived, dict):
        inside = {
            name: found
            for name in sorted(original.keys() | derived.keys())
            if (found := leftover(original.get(name, MISSING), derived.get(name, MISSING)))
        }
        return {"in": inside} if inside else {}
    was = _digest(derived)
    if was == _digest(original):
        return {}
    return {
        **({} if was is None else {"was": was}),
        **({} if isinstance(original, _Missing) else {"is": original}),
    }


def restored(derived: Any, left: object) -> Any:
    """Return the original value, but `derived` where that has changed; MISSING if there was no value."""
    if not isinstance(left, dict):
        return derived
    inside = left.get("in")
    if isinstance(inside, dict):
        if not isinstance(derived, dict):
            return derived
        found = {name: restored(derived.get(name, MISSING), each) for name, each in inside.items()}
        return {name: each for name, each in {**derived, **found}.items() if each is not MISSING}
    if not left.keys() & {"was", "is"} or left.get("was") != _digest(derived):
        return derived
    return left.get("is", MISSING)


def _digest(value: Any) -> str | None:
    if isinstance(value, _Missing):
        return None
    text = json.dumps(value, ensure_ascii=True, sort_keys=True)
    return hash_object(text.encode("ascii")).hex()[:_DIGEST_CHARACTERS]

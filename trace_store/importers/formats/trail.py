"""Trail: trajectories, which are journals of an agent's decisions.

Events become commits without messages: the task, each event of each chapter, and the outcome. A commit has the kind
of event and its marks as metadata, and links to resulting code commits and files. The text stays in the raw record.
A file with merge conflict markers is read up to them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trace_store.environment import Environment
from trace_store.files import Disk
from trace_store.history.summary import EVENT_KEY
from trace_store.importers.contract import Skip
from trace_store.importers.convert import storable_name, time_of
from trace_store.importers.input_files import InputLine, files_in
from trace_store.importers.json_records import NOT_A_RECORD, Document, read_document, within
from trace_store.importers.sniff import file_shape
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import Event, Turn, TurnReader
from trace_store.transcripts.sources import Record

NAME = "trail"
SUFFIXES = (".json",)
FOLDERS = (".trajectories", os.path.join(".agentworkforce", "trajectories"))
CONFLICT = "conflict-markers"
END = "end"
"""Key of the commit with the outcome; one per trajectory."""
MAXIMUM_LINKS = 10_000
LONGEST_MENTION_BYTES = 4096

_CONFLICT_MARK = b"\n<<<<<<< "
_SINGLES = ("task", "retrospective")
_TASK, _RETROSPECTIVE = _SINGLES

Links = tuple[tuple[str, str], ...]


class TrailReader(TurnReader):
    """Reader of one trajectory."""

    AGENT = NAME

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._fields: Mapping[str, Any] = {}
        self._chapter: Mapping[str, Any] = {}
        self._has_ended = False

    def records(self, line: InputLine) -> Iterator[Record | Skip]:
        document = read_document(line, "chapters", singles=_SINGLES)
        is_trajectory = "chapters" in document.lists or document.singles or document.damage
        if not is_trajectory:
            yield Skip(line.number, NOT_A_RECORD, "no trajectory")
            return
        self._fields = document.fields
        self.state["session"] = storable_name(document.fields.get("id"))
        if _TASK in document.singles:
            yield document.singles[_TASK]
        for chapter in document.lists.get("chapters", []):
            if isinstance(chapter, Skip):
                yield chapter
                continue
            part = read_document(within(line, chapter), "events", bare=True)
            self._chapter = part.fields
            yield from part.lists.get("events", [])
        self._chapter = {}
        if _RETROSPECTIVE in document.singles:
            yield document.singles[_RETROSPECTIVE]
        if document.damage is not None:
            self._has_ended = True  # the outcome may be after the damage
            yield _damage(line, document)

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        if len(data) == 1 and _TASK in data:
            yield Turn(
                (),
                time=time_of(self._fields.get("startedAt")),
                meta={EVENT_KEY: _TASK},
                links=_task_links(data[_TASK]),
            )
        elif len(data) == 1 and _RETROSPECTIVE in data:
            self._has_ended = True
            yield self._end(data[_RETROSPECTIVE])
        else:
            yield self._event(data)

    def finish(self) -> Iterable[Event]:
        ended = self._fields.get("completedAt") is not None
        if not self._has_ended and (ended or self._work()):
            yield self._end(None)

    def label(self, record: Record) -> str:
        data = record.data
        if len(data) == 1 and next(iter(data)) in _SINGLES:
            return str(next(iter(data)))
        kind = data.get("type")
        return kind[:100] if isinstance(kind, str) else "note"

    def _event(self, data: Mapping[str, Any]) -> Turn:
        raw = data.get("raw")
        raw = raw if isinstance(raw, dict) else {}
        agents = (raw.get("agent"), self._chapter.get("agentName"))
        meta: dict[str, Any] = {EVENT_KEY: storable_name(data.get("type")) or "note"}
        chapter = storable_name(self._chapter.get("id"))
        if chapter:
            meta["chapter"] = chapter
        meta |= _marks({"confidence": raw.get("confidence"), **data})
        return Turn(
            (),
            time=time_of(data.get("ts")),
            author=next((name for each in agents if (name := storable_name(each))), ""),
            meta=meta,
        )

    def _end(self, retrospective: Any) -> Turn:
        outcome = retrospective if isinstance(retrospective, dict) else {}
        meta: dict[str, Any] = {EVENT_KEY: _RETROSPECTIVE if outcome else END}
        status = storable_name(self._fields.get("status"))
        if status:
            meta["status"] = status
        meta |= _marks({**outcome, "tags": self._fields.get("tags")})
        time = time_of(self._fields.get("completedAt"))
        return Turn((), key=END, time=time, meta=meta, links=self._work())

    def _work(self) -> Links:
        """Return links to what the work started from and led to."""
        fields = self._fields
        trace = fields.get("_trace")
        trace = trace if isinstance(trace, dict) else {}
        links = [("code-base", trace.get("startRef"))]
        links += [("code-commit", each) for each in _list(fields.get("commits"))]
        if not links[1:]:
            links.append(("code-commit", trace.get("endRef")))
        links.append(("agent-trace", trace.get("traceId")))
        links += [("file", each) for each in _list(fields.get("filesChanged"))]
        return mentions(links)


def mentions(candidates: Iterable[tuple[str, Any]]) -> Links:
    """Return storable links without duplicates, up to the limit of a commit."""
    kept = ((relation, each) for relation, each in candidates if _is_mention(each))
    return tuple(dict.fromkeys(kept))[:MAXIMUM_LINKS]


def _is_mention(value: Any) -> bool:
    if not isinstance(value, str) or not value:
        return False
    try:
        return len(value.encode()) <= LONGEST_MENTION_BYTES
    except UnicodeEncodeError:
        return False


def _task_links(task: Any) -> Links:
    source = task.get("source") if isinstance(task, dict) else None
    if not isinstance(source, dict):
        return ()
    system, id_ = storable_name(source.get("system")), storable_name(source.get("id"))
    named = ":".join(each for each in (system, id_) if each)
    return mentions([("task", source.get("url") or named)])


def _marks(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return significance, confidence and tags."""
    marks: dict[str, Any] = {}
    if storable_name(data.get("significance")):
        marks["significance"] = data["significance"]
    confidence = data.get("confidence")
    if isinstance(confidence, int | float) and not isinstance(confidence, bool):
        marks["confidence"] = str(confidence)[:40]
    tags = [tag for each in _list(data.get("tags")) if (tag := storable_name(each))]
    if tags:
        marks["tags"] = list(dict.fromkeys(tags))[:MAXIMUM_LINKS]
    return marks


def _damage(line: InputLine, document: Document) -> Skip:
    data = line.data or b""
    at = (b"\n" + data).find(_CONFLICT_MARK)
    if at < 0:
        assert document.damage is not None
        return document.damage
    what = "merge conflict markers; only the part before them was read"
    return Skip(line.number + data[:at].count(b"\n"), CONFLICT, what)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are a trail trajectory."""
    for form in file_shape(head).values[:1]:
        known = ("startedAt", "agents", "task", "status")
        if isinstance(form.get("chapters"), list) and any(key in form for key in known):
            return True
    return head.lstrip()[:1] == b"{" and b'"chapters"' in head and b'"traj_' in head


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the trajectories in trail's old and new folders."""
    paths = [
        path
        for name in FOLDERS
        for path in files_in(os.path.join(project_dir, name), disk, SUFFIXES)
    ]
    return [path for path in paths if _is_trajectory(os.path.basename(path))]


def _is_trajectory(name: str) -> bool:
    return name == "trajectory.json" or (
        name.startswith("traj_") and not name.endswith(".trace.json")
    )


FORMAT = TurnFormat(NAME, SUFFIXES, recognises, TrailReader, lambda head: True, finds)

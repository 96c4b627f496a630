"""Import of trail's files: finds them, adds their new events, and reports.

A trajectory is imported in one transaction. Importing it again adds only missing events.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.disk.files import Disk, read_file
from trace_store.importers.formats.agent_trace import TRAIL_FOLDERS
from trace_store.importers.input_files import files_in, is_folder
from trace_store.store.store import Store
from trace_store.trajectories import events as ev
from trace_store.trajectories import reading, trail
from trace_store.trajectories.events import Event, NewEvent
from trace_store.trajectories.reading import Trajectory, trajectory_ref
from trace_store.trajectories.recording import Recorder

Path = str | os.PathLike[str]

NEW, CONTINUED, UNCHANGED = "new", "continued", "unchanged"
SKIPPED, DAMAGED, REFUSED = "skipped", "damaged", "refused"
OUTCOMES = (NEW, CONTINUED, UNCHANGED, SKIPPED, DAMAGED, REFUSED)
MAXIMUM_BYTES = 64 << 20
SUFFIX, ATTRIBUTIONS = ".json", ".trace.json"
_DERIVED = ("index.json", "compaction.json")
_MARKER = ".compaction.json"
_CONFLICT = ("<<<<<<< ", "=======", ">>>>>>> ")
_ONCE = (ev.STARTED, ev.COMPLETED, ev.ABANDONED)
"""Types of events that a document has once; they are matched by type, not by time."""


@value
class ImportedFile:
    """The outcome of one file.

    Attributes:
        path: its path.
        outcome: one of OUTCOMES.
        trajectory: the id of its trajectory, or "".
        events: how many events were added.
        problems: why it was skipped, or which values could not be read.
        error: why it was not imported; None if it was.
    """

    JSON = "trajectory?"

    path: str
    outcome: str
    trajectory: str = ""
    events: int = 0
    problems: tuple[str, ...] = ()
    error: errors.TraceError | None = None


@value
class TrailImport:
    """The result of an import, or with `dry_run` the expected one.

    Attributes:
        files: the outcome of each file.
    """

    JSON = "events"

    files: tuple[ImportedFile, ...]

    @property
    def events(self) -> int:
        """How many events were added."""
        return sum(each.events for each in self.files)

    @property
    def failures(self) -> list[errors.TraceError]:
        """Why files were not imported."""
        return [each.error for each in self.files if each.error is not None]

    def count(self, outcome: str) -> int:
        """Return how many files had an outcome."""
        return sum(each.outcome == outcome for each in self.files)


def import_files(
    store: Store, recorder: Recorder, paths: Sequence[str], *, dry_run: bool = False
) -> TrailImport:
    """Import files and folders; one that cannot be imported does not stop the others.

    Raises:
        StorageError: the repository cannot be written.
    """
    disk, importer = Disk(), _Import(store, recorder, dry_run=dry_run)
    found = [file for path in paths for file in _files(path, disk)]
    # Records of Agent Trace come last: the trajectory of a record must exist.
    files = sorted(dict.fromkeys(found), key=lambda path: path.endswith(ATTRIBUTIONS))
    return TrailImport(tuple(importer.file(path, disk) for path in files))


def trail_folders(folder: str) -> list[str]:
    """Return the folders of a project in which trail keeps its files."""
    return [place for name in TRAIL_FOLDERS if is_folder(place := os.path.join(folder, name))]


def _files(path: str, disk: Disk) -> list[str]:
    if not is_folder(path):
        return [path]
    folders = trail_folders(path) or [path]
    found = [file for folder in folders for file in files_in(folder, disk, (SUFFIX,))]
    return [file for file in found if not _is_derived(os.path.basename(file))]


def _is_derived(name: str) -> bool:
    """Return True for files that trail derives from others."""
    return name in _DERIVED or name.endswith(_MARKER)


class _Import:
    """Imports files one by one."""

    def __init__(self, store: Store, recorder: Recorder, *, dry_run: bool) -> None:
        self._store = store
        self._recorder = recorder
        self._dry_run = dry_run
        self._seen: set[str] = set()
        """The ids of trajectories that a dry run would add."""

    def file(self, path: str, disk: Disk) -> ImportedFile:
        """Import a file and return its outcome."""
        id_ = ""
        try:
            document = _document(path, disk)
            if isinstance(document, dict) and document.get("type") == "compacted":
                sources = document.get("sourceTrajectories")
                count = len(sources) if isinstance(sources, list) else 0
                return ImportedFile(path, SKIPPED, problems=(f"a summary of {count} trajectories",))
            if isinstance(document, dict) and "files" in document and "chapters" not in document:
                return self._attribution(path, document)
            parsed = trail.read(document)
            id_ = parsed.id
            return self._trajectory(path, parsed)
        except errors.UnreadableInputError as error:
            return ImportedFile(path, DAMAGED, id_, error=_at(path, error))
        except (errors.InvalidInputError, errors.StateError, errors.AlreadyExistsError) as error:
            return ImportedFile(path, REFUSED, id_, error=_at(path, error))

    def _trajectory(self, path: str, parsed: trail.ParsedTrail) -> ImportedFile:
        is_new = not self._store.refs.tips(trajectory_ref(parsed.id))
        new = list(parsed.events)
        if not is_new:
            new = self._missing(reading.read_trajectory(self._store, parsed.id), parsed)
        elif self._dry_run and parsed.id in self._seen:
            new, is_new = [], False
        if new and not self._dry_run:
            self._recorder.record(parsed.id, new, is_new=is_new)
        elif new and not is_new:
            state = reading.find_state(self._store, parsed.id)
            for each in new:  # raises an error for an event that is not allowed
                state = state.after(each.data, each.agent, each.time or 0)
        self._seen.add(parsed.id)
        outcome = NEW if is_new else CONTINUED if new else UNCHANGED
        return ImportedFile(path, outcome, parsed.id, len(new), parsed.problems)

    def _attribution(self, path: str, document: Mapping[str, Any]) -> ImportedFile:
        """Link a record of Agent Trace to its trajectory."""
        id_ = document.get("trajectory")
        named = id_ if isinstance(id_, str) else ""
        is_here = named and self._store.refs.tips(trajectory_ref(named))
        if not is_here and named not in self._seen:
            why = (
                f"it belongs to {named[:80]}, which is not here"
                if named
                else "it belongs to no trajectory"
            )
            return ImportedFile(path, SKIPPED, named, problems=(why,))
        if is_here:
            trajectory = reading.read_trajectory(self._store, named)
            new = trail.read_attribution(document, trajectory.events[0].agent)
            stored = self._recorder.screened(new.data)
            if any(each.data == stored for each in trajectory.of_type(ev.LINKED)):
                return ImportedFile(path, UNCHANGED, named)
            if not self._dry_run:
                self._recorder.record(named, [new])
        return ImportedFile(path, CONTINUED, named, 1)

    def _missing(self, trajectory: Trajectory, parsed: trail.ParsedTrail) -> list[NewEvent]:
        """Return the events that a trajectory lacks, and amendments for those that trail changed.

        Raises:
            AlreadyExistsError: they have no event in common.
        """
        screened = [
            NewEvent(self._recorder.screened(each.data), each.agent, each.time)
            for each in parsed.events
        ]
        stored: dict[object, list[Event]] = {}
        for event in trajectory.events:
            first = event.versions[0] if event.versions else event.data
            stored.setdefault(_key(first, event.agent, event.time), []).append(event)
        matched: list[tuple[NewEvent, Event]] = []
        missing: list[NewEvent] = []
        for given, known in zip(parsed.events, screened, strict=True):
            same = stored.get(_key(known.data, known.agent, known.time or 0))
            if same:
                matched.append((known, same.pop(0)))
            elif not _is_implied(known, trajectory):
                missing.append(given)
        others = [event for event in trajectory.events if event.type not in _ONCE]
        if others and missing and not any(event.type not in _ONCE for _, event in matched):
            raise errors.AlreadyExistsError(
                f"{parsed.id} exists here with other content", name=parsed.id
            )
        return [*missing, *_amendments(trajectory, matched)]


def _is_implied(event: NewEvent, trajectory: Trajectory) -> bool:
    """Return True if other events of a trajectory already say what an event says."""
    type_, data = event.data["type"], event.data
    if type_ == ev.JOINED:
        return any(each.name == event.agent for each in trajectory.state.agents)
    if type_ == ev.LINKED:
        linked = {each.commit for each in trajectory.links}
        return data.get("commit", "") in {"", *linked} and {*data.get("files", ())} <= {
            *trajectory.files
        }
    first = next(iter(trajectory.chapters), None)
    is_first = first is not None and not first.title and event.time == first.started
    return type_ == ev.CHAPTER and is_first and data.get("title") == trail.UNTITLED


def _amendments(
    trajectory: Trajectory, matched: Iterable[tuple[NewEvent, Event]]
) -> list[NewEvent]:
    """Return an amendment for each imported event that trail has changed since the last import."""
    if not any(trail.LEFTOVER in event.data for event in trajectory.events):
        return []
    found = []
    for given, event in matched:
        left = given.data.get(trail.LEFTOVER, {})
        if event.type == ev.STARTED:
            changes = _changed_facts(trajectory, given.data)
        else:
            known = [each.get(trail.LEFTOVER, {}) for each in (event.data, *event.versions)]
            changes = {} if left in known else {trail.LEFTOVER: left}
        if changes:
            about = {} if event.type == ev.STARTED else {"event": event.id.hex}
            data = {"type": ev.AMENDED, "changes": changes, **about}
            found.append(NewEvent(data, given.agent, trajectory.state.updated))
    return found


def _changed_facts(trajectory: Trajectory, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a document that differ from all their recorded versions."""
    names = ("title", "description", "project", "tags", "task", trail.LEFTOVER)
    versions = [
        dict(each.data if each.type == ev.STARTED else each.data["changes"])
        for each in trajectory.events
        if each.type == ev.STARTED or (each.type == ev.AMENDED and "event" not in each.data)
    ]
    return {
        name: given[name]
        for name in names
        if name in given and given[name] not in [each.get(name) for each in versions]
    }


def _key(data: Mapping[str, Any], agent: str, time: int) -> object:
    """Return the key by which an event is matched with a stored one."""
    type_ = data["type"]
    if type_ in _ONCE:
        return type_
    if type_ == ev.JOINED:
        return type_, agent
    if type_ == ev.LINKED:
        return type_, data.get("commit"), *data.get("files", ())
    if type_ == ev.RETROSPECTIVE:
        return type_, data.get("summary")
    return type_, agent, time, data.get("content") or data.get("title")


def _document(path: str, disk: Disk) -> object:
    """Return the JSON value of a file.

    Raises:
        UnreadableInputError: it cannot be read, or is not JSON.
    """
    try:
        data = read_file(disk, path, limit=MAXIMUM_BYTES)
    except errors.StorageError as error:
        raise errors.UnreadableInputError(str(error), reason="unreadable") from error
    if data is None:
        raise errors.UnreadableInputError("there is no such file", reason="missing")
    text = data.decode("utf-8-sig", "replace")
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(_CONFLICT[0]):
            raise errors.UnreadableInputError(
                f"git left conflict markers in it, at line {number}", reason="conflict-markers"
            )
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        why = f"it is not JSON: {error.msg} at line {error.lineno}"
        raise errors.UnreadableInputError(why, reason="invalid-json") from None
    except ValueError as error:
        why = f"it is not JSON: {error}"
        raise errors.UnreadableInputError(why, reason="invalid-json") from None
    except RecursionError:
        why = "its values are nested too deeply"
        raise errors.UnreadableInputError(why, reason="invalid-json") from None


def _no_constant(name: str) -> object:
    raise ValueError(f"it has the number {name}")


def _at(path: str, error: errors.TraceError) -> errors.TraceError:
    """Return an error whose message begins with the path of the file."""
    data = {**error.data, "path": path}
    return error.__class__(f"{path}: {error.message}", code=error.code, **data)

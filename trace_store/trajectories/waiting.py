"""Events that wait: what git's hooks saw since the last event of a trajectory was recorded.

A hook runs right after a commit. If it changed `.trace`, the work tree would never be clean, and an event that no git
commit has would move with a `git switch`. So a hook writes lines of JSON to a file in `local/`, which git ignores.
Readers see these events at the end of the trajectory, and the next event that is recorded takes them along.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.base.oid import ObjectId, hash_object
from trace_store.disk.files import APPEND, PRIVATE, read_file
from trace_store.objects.address import Address
from trace_store.trajectories import events as ev
from trace_store.trajectories.events import Event, NewEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trace_store.store.store import Store

REPLACES = "replaces"
"""The field of an amendment with the linked commit that git replaced: a link that waits has no address yet."""


def add(store: Store, id: str, new: Sequence[NewEvent]) -> None:
    """Let events wait for the next one of a trajectory.

    Raises:
        StorageError: the file cannot be written.
    """
    import json  # as in `waiting`

    rows = [
        {
            "data": dict(each.data),
            "agent": each.agent,
            "time": each.time,
            "session": str(each.session or ""),
        }
        for each in new
    ]
    data = "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows).encode("ascii")
    path = _file(store, id)
    store.disk.make_directory(store.layout.waiting_dir)
    while not _with_lock(store, path, lambda fd: store.disk.write(fd, data)):
        created = store.disk.open(path, PRIVATE)
        if created is not None:
            store.disk.close(created)


def take(store: Store, id: str, record: Callable[[Sequence[NewEvent]], Sequence[str]]) -> None:
    """Let `record` record the events that wait, and return their addresses; then forget them."""
    path = _file(store, id)

    def take_all(_: int) -> None:
        events = waiting(store, id)
        if amendments := _amendments(events, record(_without_amendments(events))):
            record(amendments)
        store.disk.remove(path)

    if store.disk.exists(path):
        _with_lock(store, path, take_all)


def waiting(store: Store, id: str) -> list[NewEvent]:
    """Return the events that wait, oldest first; a damaged line is left out."""
    data = read_file(store.disk, _file(store, id))
    if not data:
        return []
    import json  # rarely needed, slow to import

    found: list[NewEvent] = []
    for line in data.splitlines():
        try:
            row = json.loads(line)
            session = ObjectId.parse(row["session"]) if row["session"] else None
            found.append(NewEvent({**row["data"]}, row["agent"], row["time"], session))
        except (ValueError, TypeError, KeyError, errors.InvalidInputError):
            continue
    return found


def trajectories_with_events(store: Store) -> set[str]:
    """Return the ids of the trajectories for which events wait."""
    return set(store.disk.names(store.layout.waiting_dir))


def waiting_events(store: Store, id: str) -> list[Event]:
    """Return the events that wait as readers see them; their addresses are not those that they will get."""
    events = waiting(store, id)
    found = list(map(_as_read, _without_amendments(events)))
    return found + [
        _as_read(each) for each in _amendments(events, [event.id.hex for event in found])
    ]


def _file(store: Store, id: str) -> str:
    return os.path.join(store.layout.waiting_dir, id)


def _as_read(event: NewEvent) -> Event:
    id = Address.of(hash_object(repr(event).encode("utf-8", "backslashreplace")), 0)
    type_ = str(event.data["type"])
    return Event(id, event.time or 0, event.agent, type_, "", event.data, event.session)


def _without_amendments(events: Sequence[NewEvent]) -> list[NewEvent]:
    return [each for each in events if REPLACES not in each.data]


def _amendments(events: Sequence[NewEvent], addresses: Sequence[str]) -> list[NewEvent]:
    """Return the amendments of links that wait; `addresses` are those of all other events, in their order."""
    found: list[NewEvent] = []
    known, links = iter(addresses), dict[str, list[str]]()
    for each in events:
        if REPLACES not in each.data:
            links.setdefault(str(each.data.get("commit")), []).append(next(known))
            continue
        changes = each.data["changes"]
        for link in links.pop(each.data[REPLACES], []):
            data = {"type": ev.AMENDED, "event": link, "changes": changes}
            found.append(NewEvent(data, each.agent, each.time, each.session))
            links.setdefault(changes["commit"], []).append(link)
    return found


def _with_lock(store: Store, path: str, act: Callable[[int], object]) -> bool:
    """Do something with a file under its lock; return False if it is not there, or was removed meanwhile."""
    disk = store.disk
    fd = disk.open(path, APPEND)
    if fd is None:
        return False
    try:
        disk.lock(fd)
        if disk.identity(path) != disk.identity(fd):
            return False
        act(fd)
        return True
    finally:
        disk.close(fd)  # it also releases the lock

"""Links between records: which message each record follows.

Links are followed to the nearest record with a message. If that fails, file order decides.
"""

from __future__ import annotations

from typing import Any

from trace_store.importers.contract import Place

Origin = tuple[int, int]
"""Origin of a record: thread and commit."""


class RecordLinks:
    """Record ids of a session, and what each record follows."""

    __slots__ = ("_places", "_roots", "_spoken", "spans")

    def __init__(self) -> None:
        self._spoken: dict[str, Origin] = {}
        self._roots: dict[str, str] = {}
        self._places: dict[str, Place] = {}
        self.spans: dict[str, tuple[int, int]] = {}  # byte range of the record with an id

    def origin(self, data: dict[str, Any]) -> Origin | str | None:
        """Return what a record follows.

        Thread and commit, the uuid of a root without message, or None.
        """
        if "parentUuid" not in data:
            return None
        parent = data["parentUuid"]
        if parent is None:
            uuid = data.get("uuid")
            return uuid if isinstance(uuid, str) else None
        if not isinstance(parent, str):
            return None
        spoken = self._spoken.get(parent)
        return self._roots.get(parent) if spoken is None else spoken

    def add_silent(self, uuid: str, origin: Origin | str | None) -> None:
        """Add a record without message: its followers get its origin."""
        if uuid in self._spoken:
            return  # already seen: this is a copy
        if isinstance(origin, str):
            self._roots[uuid] = origin
        elif origin is not None:
            self._spoken[uuid] = origin

    def add_message(self, uuid: str, thread: int, place: Place) -> None:
        """Add a record with a message."""
        self._spoken[uuid] = (thread, place[0])
        self._places[uuid] = place

    def redirect(self, uuid: str, thread: int, number: int) -> None:
        """Make followers of a record follow a later commit."""
        origin = self._spoken.get(uuid)
        if origin is not None:
            self._spoken[uuid] = (thread, number)

    def place(self, uuid: str) -> Place | None:
        """Return the message of a record, or None."""
        return self._places.get(uuid)

    def save(self) -> dict[str, Any]:
        """Return the state as plain values; JSON writes a tuple as a list."""
        return {
            "places": dict(self._places),
            "roots": dict(self._roots),
            "spans": dict(self.spans),
            "spoken": dict(self._spoken),
        }

    @classmethod
    def load(cls, saved: Any) -> RecordLinks:
        """Return the saved links."""
        links = cls()
        links._roots = dict(saved["roots"])
        links._places, links.spans, links._spoken = (
            {uuid: (one, other) for uuid, (one, other) in saved[name].items()}
            for name in ("places", "spans", "spoken")
        )
        return links

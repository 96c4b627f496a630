"""Where a record belongs: what the links between records say, as far as they can be followed.

Rule: links are followed to the nearest record that said something. What cannot be followed is Unknown, and then the
order of the file decides.
"""

from __future__ import annotations

from typing import Any

from trace_store.importers.contract import Place

Spoken = tuple[int, int]
"""Who said it: the thread, and the commit."""


class Finder:
    """The ids of a session's records, and what each of them hangs on."""

    __slots__ = ("_places", "_roots", "_spoken", "spans")

    def __init__(self) -> None:
        self._spoken: dict[str, Spoken] = {}
        self._roots: dict[str, str] = {}
        self._places: dict[str, Place] = {}
        self.spans: dict[str, tuple[int, int]] = {}  # where the record with an id is in the file

    def origin(self, data: dict[str, Any]) -> Spoken | str | None:
        """Return what a record hangs on: who said it, the uuid of a root where nothing was said, or None."""
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

    def note_silent(self, uuid: str, origin: Spoken | str | None) -> None:
        """Remember a record that says nothing: what hangs on it hangs on its origin."""
        if uuid in self._spoken:
            return  # said before; this is a copy
        if isinstance(origin, str):
            self._roots[uuid] = origin
        elif origin is not None:
            self._spoken[uuid] = origin

    def note_spoken(self, uuid: str, thread: int, place: Place) -> None:
        """Remember a record that says something, and its message."""
        self._spoken[uuid] = (thread, place[0])
        self._places[uuid] = place

    def note_copy(self, uuid: str, thread: int, number: int) -> None:
        """Let what hangs on a record that said something hang on a later commit."""
        origin = self._spoken.get(uuid)
        if origin is not None:
            self._spoken[uuid] = (thread, number)

    def place(self, uuid: str) -> Place | None:
        """Return the message that a record is in, or None for one that says nothing or is not here."""
        return self._places.get(uuid)

    def save(self) -> dict[str, Any]:
        """Return all of it as plain values: JSON writes a tuple as a list."""
        return {
            "places": dict(self._places),
            "roots": dict(self._roots),
            "spans": dict(self.spans),
            "spoken": dict(self._spoken),
        }

    @classmethod
    def load(cls, saved: Any) -> Finder:
        """Return what was saved."""
        finder = cls()
        finder._places = {
            uuid: (number, index) for uuid, (number, index) in saved["places"].items()
        }
        finder._roots = dict(saved["roots"])
        finder.spans = {uuid: (offset, size) for uuid, (offset, size) in saved["spans"].items()}
        finder._spoken = {
            uuid: (thread, number) for uuid, (thread, number) in saved["spoken"].items()
        }
        return finder

"""A format made of a reader: what the registry holds for each format in which one thing is said after the other.

Rule: glue. What the format means is in its reader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trace_store.environment import Environment
from trace_store.files import Disk
from trace_store.frozen import value
from trace_store.importers.decode import ReadAt
from trace_store.importers.files import Inner
from trace_store.importers.turn_plan import TurnPlan
from trace_store.importers.turns import TurnReader

Histories = Callable[[Environment, str, Disk], list[str]]
Inside = Callable[[str, Disk], Sequence[Inner]]


def _nowhere(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    return []


def _nothing(path: str, disk: Disk) -> Sequence[Inner]:
    return ()


def _never(head: bytes) -> bool:
    return False


@value
class TurnFormat:
    """A row of the registry; see `contract.Format` for what its parts are.

    Attributes:
        NAME, SUFFIXES: as there.
        recognises: tells from the first bytes of a file whether it is of this format.
        reader: makes the reader of a file, given its name without the ending.
        reads_document: tells from the first bytes whether the file is one document.
        finds: returns the transcripts of a project where the program keeps them.
        holds: tells from the first bytes of a file whether it holds several transcripts; see `contract.Holding`.
        looks_inside: returns the transcripts in such a file.
    """

    NAME: str
    SUFFIXES: tuple[str, ...]
    recognises: Callable[[bytes], bool]
    reader: Callable[[str], TurnReader]
    reads_document: Callable[[bytes], bool] = _never
    finds: Histories = _nowhere
    holds: Callable[[bytes], bool] = _never
    looks_inside: Inside = _nothing

    def sniff(self, head: bytes) -> bool:
        return self.recognises(head)

    def is_document(self, head: bytes) -> bool:
        return self.reads_document(head)

    def histories(self, environment: Environment, project_dir: str, disk: Disk) -> list[str]:
        return self.finds(environment, project_dir, disk)

    def plan(self, name: str, read_at: ReadAt) -> TurnPlan:
        return TurnPlan(self.reader(name))

    def resume(self, name: str, read_at: ReadAt, saved: Any) -> TurnPlan:
        return TurnPlan.load(self.reader(name), saved)

    def holds_several(self, head: bytes) -> bool:
        return self.holds(head)

    def inside(self, path: str, disk: Disk) -> Sequence[Inner]:
        return self.looks_inside(path, disk)

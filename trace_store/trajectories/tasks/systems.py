"""The task systems: look-up by name, and by the id of a task."""

from __future__ import annotations

import re
from typing import cast

from trace_store import errors
from trace_store.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.metadata import EntryPoint
    from typing import NoReturn

    from trace_store.trajectories.events import Task
    from trace_store.trajectories.tasks.record import Place, TaskSystem

GROUP = "trace.tasks"
"""The group of entry points; each names the class of a task system in another package."""
PLAIN = "plain"
CLASSES = {"beads": "Beads", "github": "GitHub", "linear": "Linear", "jira": "Jira"}
"""Modules and classes, in the order in which systems are tried; other packages and `plain` come last."""
_ID = re.compile(r"[A-Z][A-Z0-9_]*-[0-9]+")
_module = submodules("trace_store.trajectories.tasks")


class Plain:
    """Ids such as `ENG-456`, if no system is configured for them."""

    name, is_local = "plain", True

    def __init__(self, place: Place) -> None:
        pass

    def detect(self, text: str) -> str:
        """Return the id, if the text is one."""
        return text if _ID.fullmatch(text) else ""

    def resolve(self, id: str) -> NoReturn:
        """Raise an error, since there is no system to ask.

        Raises:
            StateError: always.
        """
        raise errors.StateError(
            f"no task system is configured for {id[:80]!r}",
            code=errors.ErrorCode.NO_TASK_SYSTEM,
            id=id,
        )


def system_names() -> list[str]:
    """Return the names of all systems."""
    return [*CLASSES, *sorted({point.name for point in _entry_points()} - {*CLASSES, PLAIN}), PLAIN]


def system_named(name: str, place: Place) -> TaskSystem:
    """Return a task system.

    Raises:
        InvalidInputError: it is unknown, or its package cannot be loaded.
    """
    if name == PLAIN:
        return Plain(place)
    if name in CLASSES:
        made: Callable[[Place], TaskSystem] = getattr(_module(name), CLASSES[name])
        return made(place)
    for point in _entry_points():
        if point.name == name:
            try:
                return cast("TaskSystem", point.load()(place))
            except (ImportError, AttributeError, SyntaxError) as error:
                raise errors.InvalidInputError(
                    f"cannot load the task system {name[:40]!r} from {point.value}: {error}"
                ) from error
    known = ", ".join(system_names())
    raise errors.InvalidInputError(f"unknown task system {name[:40]!r}: one of {known}")


def detect(text: str, place: Place) -> tuple[TaskSystem, str]:
    """Return the system and the id of the task that a text names; `plain` and "" if it names none.

    Raises:
        InvalidInputError: the package of a system cannot be loaded.
    """
    if text == "".join(text.split()):
        for name in _candidates(text):
            system = system_named(name, place)
            if id := system.detect(text):
                return system, id
    return system_named(PLAIN, place), ""


def system_of(task: Task, place: Place) -> tuple[TaskSystem, str]:
    """Return the system of a task and its id in that system; `plain` if no system is configured for it.

    Raises:
        InvalidInputError: the system is unknown.
    """
    if task.system:
        return system_named(task.system, place), task.id
    system, id = detect(task.url or task.id, place)
    return system, id or task.id


def _candidates(text: str) -> Iterator[str]:
    yield from CLASSES
    # Finding other packages is slow, and every id has a digit.
    if any(each.isdigit() for each in text):
        yield from (name for name in system_names() if name not in CLASSES)


def _entry_points() -> list[EntryPoint]:
    from importlib.metadata import entry_points  # only for systems of other packages

    return sorted(entry_points(group=GROUP), key=lambda point: point.name)

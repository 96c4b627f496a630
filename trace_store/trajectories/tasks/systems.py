"""Task systems: their interface, their tasks, and look-up by name or id.

A system is a class that is called with a `LocalProject`. Other packages add systems with entry points of the group
`trace.tasks`. The answer of a system is untrusted text: `TaskRecord.of` limits its length, and each output escapes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn, Protocol, cast, runtime_checkable

from trace_store import errors
from trace_store.base.environment import Environment
from trace_store.base.frozen import value
from trace_store.base.ident import parse_time
from trace_store.base.lazy_import import submodules
from trace_store.disk.files import Disk
from trace_store.trajectories.events import Task


class TaskSystem(Protocol):
    """A task system.

    Attributes:
        name: such as `github`.
        is_local: whether it answers without the network.
    """

    name: str
    is_local: bool

    def detect(self, text: str) -> str:
        """Return the id of a task in this system, given an id or an address; "" for any other text.

        A system of another package is asked only about texts with a digit.
        """

    def resolve(self, id: str) -> TaskRecord:
        """Ask for a task.

        Raises:
            NotFoundError: there is no such task.
            TaskError: the system is unreachable, refuses, or gave an invalid answer.
            StateError: a setting is missing.
        """


@runtime_checkable
class Lister(Protocol):
    """A task system on this machine that can list its tasks."""

    def in_progress(self) -> list[TaskRecord]:
        """Return the tasks in progress; [] if they cannot be read."""


TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from trace_store.base.ident import Time


OPEN, IN_PROGRESS, DONE, CANCELED = "open", "in_progress", "done", "canceled"
DELETED = "deleted"
"""The state of a task that is gone; it ends no trajectory."""
ENDED = (DONE, CANCELED)
TITLE_LENGTH, DESCRIPTION_LENGTH, STORED_LENGTH = 500, 65_536, 1_000
MAXIMUM_ANSWER_BYTES = 1 << 20
GROUP = "trace.tasks"
"""The group of entry points; each names the class of a task system in another package."""
PLAIN = "plain"
CLASSES = {"beads": "Beads", "github": "GitHub", "linear": "Linear", "jira": "Jira"}
"""Names of systems, which are also names of modules here, and their classes, in the order in which they are tried.

Systems of other packages and `plain` come last."""
_ID = re.compile(r"[A-Z][A-Z0-9_]*-[0-9]+")
# As in UTF-8, ISO-8601, BASE-64, GB-2312. A project with such a key needs the full address of its tasks.
_STANDARDS = frozenset(
    [
        "AES",
        "ANSI",
        "ASCII",
        "BASE",
        "CP",
        "CVE",
        "CWE",
        "ECMA",
        "ES",
        "FIPS",
        "GB",
        "GPT",
        "HTTP",
        "IEC",
        "IEEE",
        "ISO",
        "MD",
        "PEP",
        "PKCS",
        "RFC",
        "RSA",
        "SHA",
        "TLS",
        "UCS",
        "UTF",
    ]
)
_load_module = submodules("trace_store.trajectories.tasks")


@value
class LocalProject:
    """The project on this machine, as a task system sees it.

    Attributes:
        root: the `.trace` directory of the repository.
        folder: the project's folder.
        environment: has the keys and addresses of task systems.
        disk: reads files.
    """

    root: str
    folder: str
    environment: Environment
    disk: Disk


@value
class TaskRecord:
    """A task, as its system describes it.

    Attributes:
        system: the name of the system.
        id: its id there.
        title: what is to be done, on one line.
        state: `open`, `in_progress`, `done`, `canceled` or `deleted`.
        url: its page, or "".
        updated: when it last changed, in milliseconds since the epoch; 0 if that is unknown.
        labels: its labels.
        assignee: who works on it, or "".
        description: more about it.
        external: the id or address of the same task in another system, or "".
        notes: what a reader should know, such as that the answer may be outdated.
    """

    system: str
    id: str
    title: str
    state: str
    url: str = ""
    updated: Time = 0
    labels: tuple[str, ...] = ()
    assignee: str = ""
    description: str = ""
    external: str = ""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        system: str,
        id: object,
        *,
        title: object,
        state: str,
        url: object = "",
        updated: object = "",
        labels: Iterable[object] = (),
        assignee: object = "",
        description: object = "",
        external: object = "",
        notes: tuple[str, ...] = (),
    ) -> TaskRecord:
        """Return a task from the values of an answer; a value that is not text becomes "".

        Raises:
            TaskNonsenseError: it has no id or no title.
        """
        id_, title_ = _line(id), _line(title)
        if not id_ or not title_:
            raise errors.TaskNonsenseError(f"the answer of {system} has no id or no title")
        return cls(
            system,
            id_,
            title_,
            state,
            _line(url),
            _moment(updated),
            tuple(filter(None, map(_line, labels))),
            _line(assignee),
            _text(description, DESCRIPTION_LENGTH),
            _line(external),
            notes,
        )

    def as_task(self) -> Task:
        """Return the task that a trajectory stores. Each of its commits repeats it, so a long description is cut."""
        text = self.description
        if len(text) > STORED_LENGTH:
            text = text[: STORED_LENGTH - 1].rstrip() + "…"
        return Task(self.title, text, self.system, self.id, self.url, self.state)


def _text(given: object, length: int) -> str:
    if not isinstance(given, str):
        return ""
    # A surrogate without its pair cannot be stored.
    return given[:length].encode("utf-8", "replace").decode().strip()


def _line(given: object) -> str:
    return " ".join(_text(given, TITLE_LENGTH).split())


def _moment(given: object) -> int:
    try:
        return parse_time(given) if isinstance(given, str) and given else 0
    except (errors.InvalidInputError, OverflowError):
        return 0


def not_found(system: str, id: str) -> errors.NotFoundError:
    """Return the error for a task that does not exist, or that the user may not see."""
    return errors.NotFoundError(
        f"{system} shows no task {id[:80]!r}",
        code=errors.ErrorCode.TASK_NOT_FOUND,
        system=system,
        id=id,
    )


def is_standard(text: str) -> bool:
    """Return True if an id begins like the name of a standard, such as UTF-8 or ISO-8601."""
    return text.upper().split("-")[0] in _STANDARDS


class Plain:
    """Ids such as `ENG-456`, if no system is configured for them."""

    name, is_local = PLAIN, True

    def __init__(self, project: LocalProject) -> None:
        pass

    def detect(self, text: str) -> str:
        """Return the id, if the text is one."""
        return text if _ID.fullmatch(text) and not is_standard(text) else ""

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


def system_named(name: str, project: LocalProject) -> TaskSystem:
    """Return a task system.

    Raises:
        InvalidInputError: it is unknown, or its package cannot be loaded.
    """
    if name == PLAIN:
        return Plain(project)
    if name in CLASSES:
        made: Callable[[LocalProject], TaskSystem] = getattr(_load_module(name), CLASSES[name])
        return made(project)
    for point in _entry_points():
        if point.name == name:
            try:
                return cast("TaskSystem", point.load()(project))
            except (ImportError, AttributeError, SyntaxError) as error:
                raise errors.InvalidInputError(
                    f"cannot load the task system {name[:40]!r} from {point.value}: {error}"
                ) from error
    known = ", ".join(system_names())
    raise errors.InvalidInputError(f"unknown task system {name[:40]!r}: one of {known}")


def detect(text: str, project: LocalProject) -> tuple[TaskSystem, str]:
    """Return the system and the id of the task that a text names; `plain` and "" if it names none.

    Raises:
        InvalidInputError: the package of a system cannot be loaded.
    """
    if text == "".join(text.split()):  # ids and addresses have no spaces
        for name in _candidates(text):
            system = system_named(name, project)
            if id := system.detect(text):
                return system, id
    return system_named(PLAIN, project), ""


def system_of(task: Task, project: LocalProject) -> tuple[TaskSystem, str]:
    """Return the system of a task and its id in that system; `plain` if no system is configured for it.

    Raises:
        InvalidInputError: the system is unknown, or its package cannot be loaded.
    """
    if task.system:
        return system_named(task.system, project), task.id
    system, id = detect(task.url or task.id, project)
    return system, id or task.id


def _candidates(text: str) -> Iterator[str]:
    yield from CLASSES
    # Finding other packages is slow.
    if any(each.isdigit() for each in text):
        yield from (name for name in system_names() if name not in CLASSES)


def _entry_points() -> list[EntryPoint]:
    from importlib.metadata import entry_points  # only for systems of other packages

    return sorted(entry_points(group=GROUP), key=lambda point: point.name)

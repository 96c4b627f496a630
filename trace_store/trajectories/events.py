"""Events of a trajectory, and the values that they hold.

Rule: plain values and their stored JSON. An event is one message with one data part.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import fields, value
from trace_store.base.ident import format_time
from trace_store.objects.message import Message, is_kind
from trace_store.objects.parts import Data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from trace_store.base.ident import Time
    from trace_store.base.oid import ObjectId
    from trace_store.objects.address import Address

SCHEMA = "trace.event/1"
SESSION = "session"
"""The relation of an event's commit to the tip of the agent's branch, which it mentions and does not own."""
STARTED, JOINED, CHAPTER = "started", "joined", "chapter"
DECISION, FINDING, NOTE = "decision", "finding", "note"
ERROR, PROMPT, THINKING = "error", "prompt", "thinking"
TOOL_CALL, TOOL_RESULT = "tool_call", "tool_result"
SENT, RECEIVED = "message_sent", "message_received"
RETROSPECTIVE = "retrospective"
COMPLETED, ABANDONED, REOPENED = "completed", "abandoned", "reopened"
LINKED, AMENDED = "linked", "amended"
IN_CHAPTER = (
    *(PROMPT, THINKING, TOOL_CALL, TOOL_RESULT, SENT, RECEIVED, DECISION, ERROR, FINDING, NOTE),
)
"""Types of events inside a chapter. The other types start, end, link or amend something."""
TYPES = (
    *(STARTED, JOINED, CHAPTER, *IN_CHAPTER, RETROSPECTIVE),
    *(COMPLETED, ABANDONED, REOPENED, LINKED, AMENDED),
)
IN_LAST = "in_last_chapter"
"""The field of an event that is in the chapter that began last, though the chapter is another agent's."""
SIGNIFICANCES = ("low", "medium", "high", "critical")
FIELDS = frozenset(
    (
        *("type", "content", "title", "question", "reasoning", "alternatives", "confidence"),
        *("significance", "tags", "raw", "role", "to", "from", "summary", "approach", "time_spent"),
        *("challenges", "learnings", "suggestions", "commit", "patch_id", "subject", "files"),
        *("branch", "made", "source", "block", "event", "changes", "stash", "supersedes", "until"),
    )
)
"""What a caller may say of an event; other data goes into `raw`."""
REPLACED_BY = "replaced_by"
"""The field of a decision with the address of the one that replaced it; an amendment sets it."""
_ALIKE = 0.75
"""How much of a name must be that of a type to be taken for a misspelling of it, 0 to 1."""
_LISTS_OF_TEXT = (
    *("challenges", "learnings", "suggestions", "tags", "files", "approaches", "supersedes"),
)


@value
class Alternative:
    """An option that was not chosen.

    Attributes:
        option: what it was.
        reason: why it was not chosen, or "".
    """

    option: str
    reason: str = ""

    @classmethod
    def read(cls, given: object) -> Alternative:
        """Return an alternative from a value, a text (`option: reason` or `option`) or a map.

        Raises:
            InvalidInputError: it is none of these.
        """
        if isinstance(given, Alternative):
            return given
        if isinstance(given, str):
            option, _, reason = given.partition(": ")
            return cls(option.strip(), reason.strip())
        if isinstance(given, dict):
            return cls(str(given.get("option", "")), str(given.get("reason") or ""))
        raise errors.InvalidInputError(
            f"an alternative is text or has an option and a reason, not {str(given)[:40]!r}"
        )

    def as_map(self) -> dict[str, str]:
        """Return it as JSON values."""
        return {"option": self.option, **({"reason": self.reason} if self.reason else {})}


@value
class Task:
    """A task of a task system, or the title alone.

    Attributes:
        title: what is to be done.
        description: more about it.
        system: the task system, such as `github`; "" if the task is in none.
        id: the task's id in the system, such as `ENG-456`.
        url: its page.
        state: `open`, `in_progress`, `done`, `canceled` or `deleted` when the system was last asked; "" if
            it never was.
    """

    title: str
    description: str = ""
    system: str = ""
    id: str = ""
    url: str = ""
    state: str = ""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Task:
        """Return the task in stored JSON values."""
        return cls(**{name: str(given.get(name, "")) for name in fields(cls)})

    def as_map(self) -> dict[str, str]:
        """Return it as JSON values, without empty ones."""
        return {name: text for name in fields(self) if (text := getattr(self, name))}


@value
class Event:
    """One event, with its latest amendment.

    Attributes:
        id: its address: the commit that recorded it, and 0.
        time: when it happened, in milliseconds since the epoch.
        agent: who did it.
        type: one of `TYPES`, or another lower-case name.
        content: what happened, in words; for a decision, the chosen option.
        data: all fields, as JSON values.
        session: the tip of the agent's branch at that time; None if there was none.
        versions: earlier versions of `data`, oldest first.
    """

    id: Address
    time: Time
    agent: str
    type: str
    content: str
    data: Mapping[str, Any]
    session: ObjectId | None = None
    versions: tuple[Mapping[str, Any], ...] = ()

    @property
    def question(self) -> str:
        """The question of a decision; "" if there is none."""
        return str(self.data.get("question", ""))

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The options that a decision rejected."""
        return tuple(map(Alternative.read, self.data.get("alternatives", ())))

    @property
    def reasoning(self) -> str:
        """The reasons of a decision."""
        return str(self.data.get("reasoning", ""))

    @property
    def confidence(self) -> float | None:
        """How sure the agent was, 0 to 1; None if that was not recorded."""
        found = self.data.get("confidence")
        return float(found) if isinstance(found, int | float) else None

    @property
    def until(self) -> Time | None:
        """When a decision ends, in milliseconds since the epoch; None if it has no end."""
        found = self.data.get("until") if self.type == DECISION else None
        return found if isinstance(found, int) else None

    @property
    def replaced_by(self) -> str:
        """The address of the decision that replaced this one, or ""."""
        return str(self.data.get(REPLACED_BY, "")) if self.type == DECISION else ""

    @property
    def standing(self) -> tuple[str, ...]:
        """Notes for people on whether a decision is in force; empty if it is, without an end."""
        replaced = (f"replaced by {self.replaced_by[:12]}",) if self.replaced_by else ()
        end = format_time(self.until)[:16].replace("T", " ") if self.until else ""
        return (*replaced, *((f"until {end} UTC",) if end else ()))

    @property
    def supersedes(self) -> tuple[str, ...]:
        """The addresses of the decisions that this one replaced."""
        return tuple(map(str, self.data.get("supersedes", ()))) if self.type == DECISION else ()

    @property
    def significance(self) -> str:
        """One of `SIGNIFICANCES`, or ""."""
        return str(self.data.get("significance", ""))

    @property
    def tags(self) -> tuple[str, ...]:
        """Its tags."""
        return tuple(map(str, self.data.get("tags", ())))

    @property
    def commit(self) -> str:
        """The id of the linked code commit, in hex, or ""."""
        return str(self.data.get("commit", "")) if self.type == LINKED else ""


@value
class NewEvent:
    """An event to record.

    Attributes:
        data: as `event_data` returns it.
        agent: who did it.
        time: when it happened, in milliseconds since the epoch; None: now.
        session: the tip of the agent's branch; None: none.
    """

    data: Mapping[str, Any]
    agent: str
    time: int | None = None
    session: ObjectId | None = None


def is_type(name: object) -> bool:
    """Return True if a name is a type of events: one of `TYPES`, or any valid kind of messages."""
    return isinstance(name, str) and (name in TYPES or is_kind(name))


def check_type(name: object) -> None:
    """Check a type of events that a caller gave.

    Raises:
        InvalidInputError: it is not a type, or looks like a misspelt one of `TYPES`.
    """
    if not is_type(name):
        raise errors.InvalidInputError(f"not a type of events: {str(name)[:40]!r}", argument="type")
    if name not in TYPES:
        import difflib  # only for unusual types

        if meant := difflib.get_close_matches(str(name), TYPES, 1, _ALIKE):
            raise errors.InvalidInputError(
                f"no type of events {str(name)[:40]!r}; did you mean {meant[0]!r}?", argument="type"
            )


def check_fields(names: Iterable[str]) -> None:
    """Check the names of fields that a caller gave.

    Raises:
        InvalidInputError: one is not in `FIELDS`.
    """
    if unknown := sorted(set(names) - FIELDS):
        raise errors.InvalidInputError(
            f"an event has no field {unknown[0]!r}; raw takes other data", argument=unknown[0]
        )


def event_data(
    type: str, content: str = "", more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the stored JSON values of an event, without empty ones.

    Raises:
        InvalidInputError: a field has a wrong type or value; the message names it.
    """
    data: dict[str, Any] = {}
    for name, given in {"type": type, "content": content, **(more or {})}.items():
        found = _checked(name, given)
        if found not in (None, "", [], {}):
            data[name] = found
    return data


def event_message(data: Mapping[str, Any]) -> Message:
    """Return the message that stores an event.

    Raises:
        InvalidMessageError: a value cannot be written as JSON.
    """
    kind = DECISION if data["type"] == DECISION else "event"
    return Message("assistant", [Data(SCHEMA, dict(data))], kind=kind)


def _checked(name: str, given: Any) -> Any:
    if given is None:
        return None
    if name == "confidence":
        return check_confidence(given)
    if name == "significance":
        if given and given not in SIGNIFICANCES:
            raise errors.InvalidInputError(
                f"significance is one of {', '.join(SIGNIFICANCES)}, not {str(given)[:40]!r}",
                argument=name,
            )
        return given
    if name == "alternatives":
        return [Alternative.read(each).as_map() for each in _listed(name, given)]
    if name == "until":
        if isinstance(given, bool) or not isinstance(given, int) or not 0 < given < 2**53:
            raise errors.InvalidInputError("until is a time in milliseconds", argument=name)
        return given
    if name in _LISTS_OF_TEXT:
        return [text for each in _listed(name, given) if (text := str(each).strip())]
    if name in ("type", "content", "question", "reasoning", "title", "summary", "approach"):
        if not isinstance(given, str):
            raise errors.InvalidInputError(
                f"{name} is text, not {given.__class__.__name__}", argument=name
            )
        return given.strip()
    return given


def _listed(name: str, given: object) -> Sequence[Any]:
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list | tuple):
        raise errors.InvalidInputError(
            f"{name} is a list, not {given.__class__.__name__}", argument=name
        )
    return given


def check_confidence(given: object) -> float:
    """Return a confidence.

    Raises:
        InvalidInputError: it is not a number from 0 to 1.
    """
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= 1:
        return float(given)
    raise errors.InvalidInputError(
        f"confidence is a number from 0 to 1, not {repr(given)[:40]}", argument="confidence"
    )

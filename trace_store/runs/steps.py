"""Steps of a run, and the state of a run after each of them: plain values and their stored form.

A step is one message of the kind `step`: a data part with its facts and, if it has content, a text part. The state is
in the metadata of each commit, so that a list reads one commit a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from trace_store import errors
from trace_store.base.frozen import fields, replace, value
from trace_store.objects.address import Address
from trace_store.objects.message import Message, is_kind
from trace_store.objects.parts import Data, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.ident import Time


Tokens: TypeAlias = int | Mapping[str, int] | None
SCHEMA = "trace.step/1"
KIND = "step"
META = "run"
"""The key of the state in a commit's metadata."""
TYPES = (
    *("context_received", "thinking", "reconsidering", "tool_call", "tool_error", "web_search"),
    *("visit_page", "workspace_search", "message_sent", "message_edited"),
)
"""Types of steps with a meaning of their own; any other lower-case name is valid too."""
RUNNING, COMPLETED, FAILED = "running", "completed", "failed"
SUPERSEDED, INTERRUPTED = "superseded", "interrupted"
STATES = (RUNNING, COMPLETED, FAILED, INTERRUPTED, SUPERSEDED)
"""States of a run. `interrupted` is never stored; a reader computes it for a running one whose process is gone."""
TOTAL = "total"
MAXIMUM_TITLE = 500
"""Characters of a title or an error that are stored; the rest is cut with "…"."""


@value
class StepSource:
    """Something that a step read.

    Attributes:
        title: what it is called.
        url: where it is: an address of the web or a path; "" if it has none.
        type: what it is, such as `web` or `file`, or "".
    """

    title: str
    url: str = ""
    type: str = ""


@value
class Substep:
    """A part of a step, stored when the step ends.

    Attributes:
        title: what was done.
        started, completed: in milliseconds since the epoch; `completed` is 0 while it runs.
        content: what came of it, or "".
        error: why it failed, or "".
    """

    title: str
    started: Time
    completed: Time = 0
    content: str = ""
    error: str = ""


@value
class StepRecord:
    """A step of a run.

    Attributes:
        number: its number in the run, from 1.
        type: one of `TYPES`, or another lower-case name.
        title: what is done, in a few words; may be "".
        started, completed: in milliseconds since the epoch; `completed` is 0 while it runs.
        status: `running`, `completed` or `failed`.
        content: what came of it, or "".
        error: why it failed, or "".
        sources: what it read.
        substeps: its parts.
        message: the full address of the message that it led to, or "".
        tokens: counts by name, such as `input` and `output`; `total` if one number was given.
        model: the model that was called, or "".
        parent: the number of the step that it is a part of, or 0.
        retries: the number of the step that it tries again, or 0.
        address: the address of its own message.
    """

    JSON = "message? retries? parent? tokens=token_counts"

    number: int
    type: str
    title: str = ""
    started: Time = 0
    completed: Time = 0
    status: str = RUNNING
    content: str = ""
    error: str = ""
    sources: tuple[StepSource, ...] = ()
    substeps: tuple[Substep, ...] = ()
    message: str = ""
    tokens: tuple[tuple[str, int], ...] = ()
    model: str = ""
    parent: int = 0
    retries: int = 0
    address: Address | None = None

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.status == RUNNING

    @property
    def took(self) -> str:
        """How long it took, such as `1.5 s`; "" while it runs."""
        return duration(self.completed - self.started) if self.completed else ""

    @property
    def name(self) -> str:
        """Its title, or its type in words."""
        return self.title or self.type.replace("_", " ")

    @property
    def token_counts(self) -> dict[str, int]:
        """Its token counts by name."""
        return dict(self.tokens)

    def as_message(self) -> Message:
        """Return the message that stores it."""
        facts = _plain(self, "content", "address")
        content = [Text(self.content)] if self.content else []
        return Message("assistant", [Data(SCHEMA, facts), *content], kind=KIND)

    @classmethod
    def read(cls, parts: object, address: Address) -> StepRecord:
        """Return the step that the parts of a message store; a purged or damaged one has only its address."""
        facts: dict[str, Any] = {}
        texts: list[str] = []
        for part in parts if isinstance(parts, tuple | list) else ():
            if isinstance(part, Data):
                facts = _value(part)
            elif isinstance(part, Text):
                texts.append(part.text)
        try:
            known = {name: facts[name] for name in fields(cls) if name in facts}
            known["sources"] = tuple(StepSource(**each) for each in facts.get("sources", ()))
            known["substeps"] = tuple(Substep(**each) for each in facts.get("substeps", ()))
            known["tokens"] = tuple(sorted(facts.get("tokens", {}).items()))
            return cls(
                **{"number": 0, "type": KIND, **known}, content="\n".join(texts), address=address
            )
        except (TypeError, ValueError, AttributeError):
            return cls(0, KIND, content="\n".join(texts), address=address)


@value
class RunState:
    """A run after one of its commits.

    Attributes:
        id: its id.
        name: what it is about.
        agent: who runs.
        session: the full name of the branch that it works for, or "".
        message: the full address of the message that started it, or "".
        status: `running`, `completed`, `failed` or `superseded`.
        started, updated, ended: in milliseconds since the epoch; `ended` is 0 while it runs.
        step_count, failed: the number of steps, and of those that failed.
        last: the number of the step that began last, or 0; `last_type`, `last_title` and `last_started` are its own.
        tokens: the sum of its steps' tokens, by name.
        error: why it failed, or "".
        superseded_by: the id of the run that replaced it, or "".
    """

    JSON = "session? message? tokens=token_counts"

    id: str
    name: str = ""
    agent: str = ""
    session: str = ""
    message: str = ""
    status: str = RUNNING
    started: Time = 0
    updated: Time = 0
    ended: Time = 0
    step_count: int = 0
    failed: int = 0
    last: int = 0
    last_type: str = ""
    last_title: str = ""
    last_started: Time = 0
    tokens: tuple[tuple[str, int], ...] = ()
    error: str = ""
    superseded_by: str = ""

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.status == RUNNING

    @property
    def token_counts(self) -> dict[str, int]:
        """Its token counts by name."""
        return dict(self.tokens)

    def lasted(self, now: int) -> str:
        """Return how long it took, or has been running at a time, such as `2 h 5 min`."""
        return duration((self.ended or now) - self.started)

    def after_start(self, step: StepRecord) -> RunState:
        """Return the state after a step began."""
        return replace(
            self,
            step_count=max(self.step_count, step.number),
            last=step.number,
            last_type=step.type,
            last_title=step.title,
            last_started=step.started,
            updated=max(self.updated, step.started),
        )

    def after_end(self, step: StepRecord) -> RunState:
        """Return the state after a step ended."""
        sums = dict(self.tokens)
        for name, count in step.tokens:
            sums[name] = sums.get(name, 0) + count
        return replace(
            self,
            failed=self.failed + (step.status == FAILED),
            tokens=tuple(sorted(sums.items())),
            updated=max(self.updated, step.completed),
        )

    def ending(self, status: str, time: int, *, error: str = "", by: str = "") -> RunState:
        """Return the state after the end of the run."""
        ended = max(self.updated, time)
        return replace(
            self, status=status, ended=ended, updated=ended, error=error, superseded_by=by
        )

    def as_map(self) -> dict[str, Any]:
        """Return the stored JSON values, without empty ones."""
        return dict(sorted(_plain(self).items()))

    @classmethod
    def read(cls, plain: object) -> RunState:
        """Return the state in a commit's metadata.

        Raises:
            CorruptObjectError: it is damaged.
        """
        try:
            stored = dict(plain)  # type: ignore[call-overload]
            stored["tokens"] = tuple(sorted(stored.get("tokens", {}).items()))
            return cls(**{name: stored[name] for name in fields(cls) if name in stored})
        except (TypeError, ValueError, AttributeError) as error:
            raise errors.CorruptObjectError(f"the state of a run is damaged: {error}") from error


def check_type(type_: str) -> None:
    """Raise InvalidInputError if this cannot be the type of a step."""
    if not is_kind(type_):
        raise errors.InvalidInputError(
            f"the type of a step is a lower-case name, such as tool_call, not {type_[:40]!r}",
            argument="type",
        )


def tokens_of(given: Tokens) -> tuple[tuple[str, int], ...]:
    """Return token counts by name; one number is the total.

    Raises:
        InvalidInputError: a count is not an integer of at least 0.
    """
    counts: dict[str, object] = {TOTAL: given} if isinstance(given, int) else {**(given or {})}
    checked: list[tuple[str, int]] = []
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise errors.InvalidInputError(
                f"tokens are counts of at least 0, not {name}={str(count)[:40]}", argument="tokens"
            )
        if count:
            checked.append((short(storable(name)), count))
    return tuple(sorted(checked))


def duration(milliseconds: int) -> str:
    """Return a duration in words, such as `1.5 s` or `2 h 5 min`."""
    seconds = max(0, milliseconds) / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    hours, minutes = divmod(int(seconds) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def short(text: str, limit: int = MAXIMUM_TITLE) -> str:
    """Return a text on one line, cut with "…" if it is longer than the limit."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def storable(text: str) -> str:
    """Return a text with what UTF-8 cannot hold, such as half a surrogate pair, replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _plain(given: object, *without: str) -> dict[str, Any]:
    """Return the fields of a value as JSON values, without empty ones and some others."""
    found: dict[str, Any] = {}
    for name in fields(given):
        value = getattr(given, name)
        if value and name not in without:
            if name == "tokens":
                value = dict(value)
            elif isinstance(value, tuple):
                value = [_plain(each) for each in value]
            found[name] = value
    return found


def _value(part: Data) -> dict[str, Any]:
    try:
        return part.value
    except errors.CorruptObjectError:  # it was purged
        return {}

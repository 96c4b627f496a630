"""Work state, extracted from messages: files, tasks, decisions, open ends.

Files, commands and to-dos come from the tool calls and are exact for known tools. Decisions and findings are sentences
quoted from the messages, so nothing is invented, but some are missed.
"""

from __future__ import annotations

from trace_store.context.activity import RUN, activity_of
from trace_store.exporters.overview import excerpt
from trace_store.frozen import value
from trace_store.objects.address import record
from trace_store.trajectories.wording import (
    SENTENCE_CHARACTERS,
    SENTENCE_END,
    decisions_in,
    is_prompt,
    sentences,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from trace_store.context.activity import Activity, ToDo, ToolStep
    from trace_store.context.compiled import MessageLike
    from trace_store.trajectories.wording import Decision

SCHEMA = "trace.checkpoint/1"
MAXIMUM_FILES = 40
MAXIMUM_DECISIONS = 20
MAXIMUM_OPEN = 10
_REQUEST_CHARACTERS = 400
_OUTCOME_CHARACTERS = 800


@value
class FileNote:
    """A file that was used: numbers of reads and writes, and a quoted sentence about it, or ""."""

    path: str
    reads: int
    writes: int
    finding: str


@value
class WorkState:
    """The topic of some messages, and the progress of the work.

    Attributes:
        request: the beginning of the first prompt.
        latest_request: the beginning of the last prompt, or "" if it is the first.
        outcome: the beginning of the last answer.
        summary: a summary by a model, or "".
        files: files that were read or written, the latest last.
        tasks: the last to-do list.
        decisions: in order.
        open_ends: unfinished work, one sentence each.
        command_count: number of commands that were run.
        error_count: number of calls that failed.
        message_count: number of messages.
        token_count: their tokens.
    """

    request: str
    latest_request: str
    outcome: str
    summary: str
    files: tuple[FileNote, ...]
    tasks: tuple[ToDo, ...]
    decisions: tuple[Decision, ...]
    open_ends: tuple[str, ...]
    command_count: int
    error_count: int
    message_count: int
    token_count: int

    def as_map(self) -> dict[str, Any]:
        """Return it as JSON values, as a soft checkpoint stores it."""
        return {"schema": SCHEMA, **record(self)}

    def as_text(self) -> str:
        """Return it as Markdown, for a model and for people."""
        lines = [self.summary] if self.summary else []
        if not self.summary:
            lines += [f"Request: {self.request}"] * bool(self.request)
            lines += [f"Latest request: {self.latest_request}"] * bool(self.latest_request)
            lines += [f"Outcome: {self.outcome}"] * bool(self.outcome)
        lines += _section("Tasks", [f"[{'x' if t.is_done else ' '}] {t.text}" for t in self.tasks])
        lines += _section("Decisions", [_with_reason(each) for each in self.decisions])
        lines += _section("Files", [_file_line(each) for each in self.files])
        lines += _section("Open", self.open_ends)
        return "\n".join(lines)


def work_state(messages: Sequence[MessageLike], token_count: int) -> WorkState:
    """Return the state of the work in some messages; `token_count` is the number of their tokens.

    Raises:
        ObjectNotFoundError, CorruptObjectError: content is missing or damaged.
    """
    activity = activity_of(messages)
    prompts = [text for m in messages if is_prompt(m) and (text := m.text.strip())]
    answers = [text for m in messages if m.role == "assistant" and (text := m.text.strip())]
    findings = _findings(messages, activity)
    return WorkState(
        request=excerpt(prompts[0], _REQUEST_CHARACTERS) if prompts else "",
        latest_request=excerpt(prompts[-1], _REQUEST_CHARACTERS) if prompts[1:] else "",
        outcome=excerpt(answers[-1], _OUTCOME_CHARACTERS) if answers else "",
        summary="",
        files=tuple(
            FileNote(each.path, each.reads, each.writes, findings.get(each.path, ""))
            for each in activity.files[-MAXIMUM_FILES:]
        ),
        tasks=activity.todos,
        decisions=tuple(decisions_in(messages))[-MAXIMUM_DECISIONS:],
        open_ends=tuple(_open_ends(messages, activity)),
        command_count=len(activity.commands),
        error_count=len(activity.errors),
        message_count=len(messages),
        token_count=token_count,
    )


def _findings(messages: Sequence[MessageLike], activity: Activity) -> dict[str, str]:
    """Return the first sentence of an answer about each file, after it was read."""
    found: dict[str, str] = {}
    waiting: dict[str, str] = {}
    called: dict[Any, list[str]] = {}
    for step in activity.steps:
        if step.call is not None:
            called.setdefault(step.call, []).extend(step.action.paths)
    for message in messages:
        if message.role == "assistant" and waiting:
            for sentence in sentences(message.text):
                for name in [name for name in waiting if name in sentence]:
                    found.setdefault(waiting.pop(name), sentence)
        for path in called.get(getattr(message, "address", None), ()):
            name = path.rstrip("/").rsplit("/", 1)[-1]
            if name and path not in found:
                waiting.pop(name, None)
                waiting[name] = path
                if len(waiting) > MAXIMUM_FILES:
                    del waiting[next(iter(waiting))]
    return found


def _open_ends(messages: Sequence[MessageLike], activity: Activity) -> Iterator[str]:
    found: list[str] = []
    last: dict[str, ToolStep] = {}
    for step in activity.steps:
        if step.outcome is None:
            found.append(f"No result yet: {excerpt(step.action.subject, 100)}")
        elif step.action.kind == RUN:
            last[step.action.text] = step
    for step in last.values():
        if step.outcome is not None and step.outcome.failed:
            said = f": {step.outcome.error}" if step.outcome.error else ""
            found.append(excerpt(f"Failed: {step.action.subject}{said}", SENTENCE_CHARACTERS))
    yield from found[-MAXIMUM_OPEN:]
    said_last = [m for m in messages if m.role in ("user", "assistant") and m.text.strip()][-1:]
    for message in said_last:
        parts = [each for each in SENTENCE_END.split(message.text.strip()) if each.strip()]
        if message.role == "user":
            yield f"Unanswered: {excerpt(message.text, SENTENCE_CHARACTERS)}"
        elif parts and parts[-1].endswith("?"):
            yield f"Asked: {excerpt(parts[-1], SENTENCE_CHARACTERS)}"


def _section(title: str, items: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"- {item}" for item in items)] if items else []


def _with_reason(decision: Decision) -> str:
    has_reason = decision.reason and decision.reason not in decision.text
    return f"{decision.text} ({decision.reason})" if has_reason else decision.text


def _file_line(file: FileNote) -> str:
    uses = [("read", file.reads), ("written", file.writes)]
    said = ", ".join(word if count == 1 else f"{word} {count}x" for word, count in uses if count)
    return f"{file.path} ({said})" + (f": {file.finding}" if file.finding else "")

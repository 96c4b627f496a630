"""Subcommands of `trace trajectory` that record or amend events."""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.input import argument_text, text_from
from trace_cli.porcelain.trajectory import (
    RECORDING,
    SIGNIFICANCE,
    TAG,
    confidence_of,
    record,
)
from trace_store.trajectories import Task
from trace_store.trajectories.events import ERROR, FINDING, NOTE, RECEIVED, SENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_cli.runtime import Invocation, Results
    from trace_store.trajectories.recording import Recorded
    from trace_store.trajectories.trajectories import Trajectories

TEXT = Argument("TEXT", "text", "The text; - reads standard input")
ALTERNATIVE = Option(
    "--alternative --alternatives",
    "alternatives",
    "An option not chosen, and why; may be repeated",
    "OPTION: REASON",
    many=True,
)
REASONING = Option("--reasoning", "reasoning", "Why it was chosen", "TEXT")
QUESTION = Option("--question", "question", "What was to be decided", "TEXT")
UNTIL = Option("--until", "until", "When the decision ends; a date is included", "TIME")
CONFIDENCE = Option("--confidence", "confidence", "How sure you are, 0 to 1", "C")


@takes(Argument("TITLE", "title", "Title of the chapter"), *RECORDING)
def chapter(invocation: Invocation, *, title: str, **options: Any) -> Results:
    """Begin a chapter, and end the previous one.

    trace trajectory chapter "Tests"
    """
    return record(invocation, lambda tr, fields: tr.chapter(title, **fields), **options)


@takes(
    Argument("CHOSEN", "chosen", "What was chosen, or QUESTION|CHOSEN; - reads standard input"),
    QUESTION,
    REASONING,
    ALTERNATIVE,
    CONFIDENCE,
    SIGNIFICANCE,
    TAG,
    Option("--commit", "commit", "The commit of the code that it is about", "COMMIT", default=""),
    Option("--file", "files", "A file that it is about; may be repeated", "FILE", many=True),
    Option(
        "--supersedes",
        "supersedes",
        "An earlier decision that it replaces: its address, or d2; may be repeated",
        "DECISION",
        many=True,
    ),
    UNTIL,
    *RECORDING,
)
def decision(
    invocation: Invocation,
    *,
    chosen: str,
    question: str | None,
    reasoning: str | None,
    alternatives: list[str],
    confidence: str | None,
    commit: str,
    files: list[str],
    supersedes: list[str],
    until: str | None,
    **options: Any,
) -> Results:
    """Record a decision.

    A question and --reasoning are optional but recommended. With --question, a `|` in CHOSEN is part of the text. A
    decision belongs to the next commit, or to that of --commit. It is in force until --until, or until a later one
    supersedes it.

        trace trajectory decision "Which token?|JWT" --reasoning "No session store" --alternative "sessions: a store"
        trace trajectory decision "pytest" --confidence 0.8
    """
    chosen = text_from(invocation, "-") if chosen == "-" else argument_text(chosen)
    if question is None:
        before, bar, after = chosen.partition("|")
        question, chosen = (before, after) if bar else ("", chosen)
    return record(
        invocation,
        lambda tr, fields: tr.decide(
            question,
            chosen,
            reasoning=reasoning or "",
            alternatives=alternatives,
            confidence=confidence_of(confidence),
            supersedes=supersedes,
            until=until,
            **_about(invocation, tr, commit, files, fields["trajectory"]),
            **fields,
        ),
        **options,
    )


def _about(
    invocation: Invocation, tr: Trajectories, commit: str, files: list[str], trajectory: str
) -> dict[str, Any]:
    """Return the code that a decision is about; its commit is linked first."""
    if not (commit or files):
        return {}
    return tr.code.about(commit, files, folder=invocation.folder, trajectory=trajectory)


@takes(TEXT, SIGNIFICANCE, TAG, *RECORDING)
def finding(invocation: Invocation, *, text: str, **options: Any) -> Results:
    """Record a finding."""
    return _record_text(invocation, FINDING, text, **options)


@takes(TEXT, SIGNIFICANCE, TAG, *RECORDING)
def note(invocation: Invocation, *, text: str, **options: Any) -> Results:
    """Record a note."""
    return _record_text(invocation, NOTE, text, **options)


@takes(TEXT, SIGNIFICANCE, TAG, *RECORDING)
def error(invocation: Invocation, *, text: str, **options: Any) -> Results:
    """Record something that failed."""
    return _record_text(invocation, ERROR, text, **options)


@takes(
    TEXT,
    Option("--to", "to", "The receiver", "AGENT", default=""),
    Option("--from", "sender", "The sender", "AGENT", default=""),
    SIGNIFICANCE,
    TAG,
    *RECORDING,
)
def message(invocation: Invocation, *, text: str, to: str, sender: str, **options: Any) -> Results:
    """Record a message to or from another agent.

    trace trajectory message --to reviewer "Ready for review"
    """
    if bool(to) == bool(sender):
        raise usage_error("give --to or --from, not both")
    if to:
        return _record_text(invocation, SENT, text, to=to, **options)
    return _record_text(invocation, RECEIVED, text, **{"from": sender}, **options)


@takes(
    Argument(
        "EVENT",
        "event",
        "Address of an event, or d2 for the second decision (default: the trajectory itself)",
        OPTIONAL,
        default="",
    ),
    Option("--content", "content", "What happened, or what was chosen", "TEXT"),
    QUESTION,
    REASONING,
    ALTERNATIVE,
    CONFIDENCE,
    UNTIL,
    SIGNIFICANCE,
    Option("--title", "title", "The title of a chapter or of the trajectory", "TEXT"),
    Option("--description", "description", "More about the trajectory", "TEXT"),
    Option("--project", "project", "The project of the trajectory", "NAME"),
    TAG,
    Option("--task", "task", "The task of the trajectory", "ID", default=""),
    *RECORDING,
)
def amend(
    invocation: Invocation,
    *,
    event: str,
    alternatives: list[str],
    confidence: str | None,
    until: str | None,
    significance: str,
    tags: list[str],
    content: str | None,
    question: str | None,
    reasoning: str | None,
    title: str | None,
    description: str | None,
    project: str | None,
    task: str,
    **options: Any,
) -> Results:
    """Amend an event, or the trajectory itself; earlier versions stay.

    This works after the end, too. Fields that you do not give stay unchanged; alternatives and tags that you give
    replace the earlier ones. `trace trajectory show --json` has the earlier versions.

        trace trajectory amend d2 --reasoning "The library is no longer maintained"
        trace trajectory amend --title "Sign in with passkeys"
    """
    given = {
        "content": content,
        "question": question,
        "reasoning": reasoning,
        "alternatives": alternatives or None,
        "confidence": confidence_of(confidence),
        "until": until,
        "significance": significance or None,
        "title": title,
        "description": description,
        "project": project,
        "tags": tags or None,
    }
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}

    def write(tr: Trajectories, fields: dict[str, Any]) -> Recorded:
        if task:
            changes["task"] = tr.tasks.named(task) or Task("", id=task)
        return tr.amend(event, **fields, **changes)

    return record(invocation, write, **options)


def _record_text(invocation: Invocation, type: str, text: str, **options: Any) -> Results:
    text = text_from(invocation, "-") if text == "-" else argument_text(text)
    return record(invocation, lambda tr, fields: tr.record(type, text, **fields), **options)

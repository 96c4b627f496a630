"""Subcommands of `trace trajectory` that record what happens, or amend it."""

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
from trace_store.trajectories import events as ev

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_cli.runtime import Invocation

TEXT = Argument("TEXT", "text", "What happened; - reads standard input")
ALTERNATIVE = Option(
    "--alternative",
    "alternatives",
    "What was not chosen, and why not; may be repeated",
    "OPTION: REASON",
    many=True,
)
REASONING = Option("--reasoning", "reasoning", "Why", "TEXT")
QUESTION = Option("--question", "question", "What was to be decided", "TEXT")
CONFIDENCE = Option("--confidence", "confidence", "How sure you are, 0 to 1", "C")


@takes(Argument("TITLE", "title", "What it is about"), *RECORDING)
def chapter(invocation: Invocation, *, title: str, **how: Any) -> None:
    """Begin a chapter, which ends the one before.

    trace trajectory chapter "Tests"
    """
    record(invocation, lambda tr, about: tr.chapter(title, **about), **how)


@takes(
    Argument("CHOSEN", "chosen", "What was chosen; also as QUESTION|CHOSEN"),
    QUESTION,
    REASONING,
    ALTERNATIVE,
    CONFIDENCE,
    SIGNIFICANCE,
    TAG,
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
    **how: Any,
) -> None:
    """Record a decision.

    It should answer a question and say why, but need not. With --question, a `|` in CHOSEN is part of the text.

        trace trajectory decision "Which token?|JWT" --reasoning "No session store" --alternative "sessions: a store"
        trace trajectory decision "pytest" --confidence 0.8
    """
    chosen = argument_text(chosen)
    if question is None:
        before, bar, after = chosen.partition("|")
        question, chosen = (before, after) if bar else ("", chosen)
    record(
        invocation,
        lambda tr, about: tr.decide(
            question,
            chosen,
            reasoning=reasoning or "",
            alternatives=alternatives,
            confidence=confidence_of(confidence),
            **about,
        ),
        **how,
    )


@takes(TEXT, SIGNIFICANCE, TAG, *RECORDING)
def finding(invocation: Invocation, *, text: str, **how: Any) -> None:
    """Record something found out."""
    _record_text(invocation, ev.FINDING, text, **how)


@takes(TEXT, SIGNIFICANCE, TAG, *RECORDING)
def note(invocation: Invocation, *, text: str, **how: Any) -> None:
    """Record a note."""
    _record_text(invocation, ev.NOTE, text, **how)


@takes(TEXT, SIGNIFICANCE, TAG, *RECORDING)
def error(invocation: Invocation, *, text: str, **how: Any) -> None:
    """Record something that failed."""
    _record_text(invocation, ev.ERROR, text, **how)


@takes(
    TEXT,
    Option("--to", "to", "Who is sent it", "AGENT", default=""),
    Option("--from", "sender", "Who sent it", "AGENT", default=""),
    SIGNIFICANCE,
    TAG,
    *RECORDING,
)
def message(invocation: Invocation, *, text: str, to: str, sender: str, **how: Any) -> None:
    """Record a message to or from another agent.

    trace trajectory message --to reviewer "Ready for review"
    """
    if bool(to) == bool(sender):
        raise usage_error("give --to or --from, and not both")
    if to:
        _record_text(invocation, ev.SENT, text, to=to, **how)
    else:
        _record_text(invocation, ev.RECEIVED, text, **{"from": sender}, **how)


@takes(
    Argument(
        "EVENT",
        "event",
        "The address of an event, or d2 for the second decision; none for the trajectory itself",
        OPTIONAL,
        default="",
    ),
    Option("--content", "content", "What happened, or what was chosen", "TEXT"),
    QUESTION,
    REASONING,
    ALTERNATIVE,
    CONFIDENCE,
    SIGNIFICANCE,
    Option("--title", "title", "The title of a chapter or of the trajectory", "TEXT"),
    Option("--description", "description", "More about the trajectory", "TEXT"),
    Option("--project", "project", "The project of the trajectory", "NAME"),
    TAG,
    *RECORDING,
)
def amend(
    invocation: Invocation,
    *,
    event: str,
    alternatives: list[str],
    confidence: str | None,
    significance: str,
    tags: list[str],
    content: str | None,
    question: str | None,
    reasoning: str | None,
    title: str | None,
    description: str | None,
    project: str | None,
    **how: Any,
) -> None:
    """Change an event or the facts of a trajectory; earlier versions stay.

    This also works after the end. What is not given stays as it is.

        trace trajectory amend d2 --reasoning "The library is no longer maintained"
        trace trajectory amend --title "Sign in with passkeys"
    """
    given = {
        "content": content,
        "question": question,
        "reasoning": reasoning,
        "alternatives": alternatives or None,
        "confidence": confidence_of(confidence),
        "significance": significance or None,
        "title": title,
        "description": description,
        "project": project,
        "tags": tags or None,
    }
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    record(invocation, lambda tr, about: tr.amend(event, **about, **changes), **how)


def _record_text(invocation: Invocation, type: str, text: str, **how: Any) -> None:
    text = text_from(invocation, "-") if text == "-" else argument_text(text)
    record(invocation, lambda tr, about: tr.record(type, text, **about), **how)

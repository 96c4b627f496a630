"""Subcommands of `trace trajectory` that record a retrospective, or end or reopen a trajectory."""

from __future__ import annotations

import os

from trace_cli import porcelain
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.advice import asked_model
from trace_cli.porcelain.common import opened
from trace_cli.porcelain.input import parsed_json
from trace_cli.porcelain.trajectory import RECORDING, confidence_of, record
from trace_cli.render.escape import one_line
from trace_cli.render.records import json_bytes
from trace_store import errors, trajectories
from trace_store.trajectories.events import DECISION, RETROSPECTIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trace_cli.runtime import Invocation, Results
    from trace_store.repo.repository import Repo

SUMMARY, APPROACH, CONFIDENCE = "summary", "approach", "confidence"
LISTS = ("challenges", "learnings", "suggestions")
TITLES = {
    SUMMARY: "Summary",
    APPROACH: "Approach",
    "challenges": "Challenges (one a line)",
    "learnings": "Learnings (one a line)",
    "suggestions": "Suggestions (one a line)",
    CONFIDENCE: "Confidence (0 to 1)",
}
"""The headings of the template, by field."""
TYPED = "RETROSPECTIVE.md"
FLAGS = (
    Argument("SUMMARY", "summary", "What was done, in a few sentences", OPTIONAL, default=""),
    Option("--approach", "approach", "How it was done", "TEXT", default=""),
    Option("--challenge", "challenges", "What was hard; may be repeated", "TEXT", many=True),
    Option("--learning", "learnings", "What to know next time; may be repeated", "TEXT", many=True),
    Option("--suggestion", "suggestions", "What to do next; may be repeated", "TEXT", many=True),
    Option("--confidence", "confidence", "How sure you are, 0 to 1", "C", default=""),
    Option("--from", "file", "Read it from a JSON file, or from standard input (-)", "FILE"),
)


@takes(
    *FLAGS,
    Option("--ask", "ask", "Let the model of `trace config model` draft it; you review the draft"),
    Option("-n --dry-run", "dry_run", "Print the retrospective as JSON, and record nothing"),
    *RECORDING,
)
def reflect(
    invocation: Invocation, *, file: str | None, ask: bool, dry_run: bool, **given: Any
) -> Results:
    """Record the retrospective: what was done, what was hard, what to know next time.

    Without SUMMARY and --from, a template opens in your editor. What you do not give is taken from an earlier
    retrospective, which stays in the history.

        trace trajectory reflect "Tokens are signed and refreshed" --learning "Clocks differ" --confidence 0.9
        trace trajectory reflect --ask --dry-run > draft.json
        trace trajectory reflect --from draft.json
    """
    _refuse_name(invocation, given[SUMMARY])
    retrospective, options = _given(invocation, file, given)
    if ask and retrospective is not None:
        raise usage_error(
            "--ask drafts it: omit SUMMARY, --from and the options of the retrospective"
        )
    if retrospective is None:
        retrospective = _reviewed(invocation, options, ask=ask, dry_run=dry_run)
    if dry_run:
        invocation.write(json_bytes(retrospective, indent=2) + b"\n")
        return
    yield from record(
        invocation, lambda tr, fields: tr.reflect(**retrospective, **fields), **options
    )


@takes(*FLAGS, *RECORDING)
def complete(invocation: Invocation, *, file: str | None, **given: Any) -> Results:
    """Complete a trajectory, and record its retrospective if you give one.

    trace trajectory complete "Tokens are signed and refreshed" --confidence 0.9
    """
    _refuse_name(invocation, given[SUMMARY])
    retrospective, options = _given(invocation, file, given)
    recording = record(
        invocation, lambda tr, fields: tr.complete(retrospective, **fields), **options
    )
    for made, text in recording:
        yield made, text
        state = made.state
        missing = [type for type in (DECISION, RETROSPECTIVE) if not state.count(type)]
        if missing and not invocation.quiet:
            hint = f"`trace trajectory reflect --trajectory {state.id}` adds one"
            advice = f"; {hint}" if RETROSPECTIVE in missing else ""
            invocation.note(f"note: it has no {' and no '.join(missing)}{advice}")


@takes(Argument("REASON", "reason", "Why it is given up", OPTIONAL, default=""), *RECORDING)
def abandon(invocation: Invocation, *, reason: str, **options: Any) -> Results:
    """End a trajectory whose task was given up."""
    _refuse_name(invocation, reason)
    return record(invocation, lambda tr, fields: tr.abandon(reason, **fields), **options)


@takes(
    Argument("ID", "trajectory", "The trajectory", completes="TRAJECTORY"),
    *RECORDING[1:],
)
def reopen(invocation: Invocation, **options: Any) -> Results:
    """Make an ended trajectory active again."""
    return record(invocation, lambda tr, fields: tr.reopen(**fields), **options)


def _refuse_name(invocation: Invocation, text: str) -> None:
    """Refuse the name of a trajectory or a task in the place of a text: another trajectory would be ended."""
    if not text.strip() or len(text.split()) > 1:
        return
    with opened(invocation, quiet=True) as repo:
        is_name = repo.trajectories.is_name(text)
    if is_name:
        shown = one_line(text.strip(), 80)
        raise usage_error(
            f"{shown!r} names a trajectory or a task, and this takes a text",
            f"`--trajectory {shown}` chooses the trajectory",
        )


def _given(
    invocation: Invocation, file: str | None, given: dict[str, Any]
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the retrospective from the arguments, or None, and the other options."""
    given[CONFIDENCE] = confidence_of(given[CONFIDENCE])
    fields = {name: given.pop(name) for name in TITLES}
    fields = {name: value for name, value in fields.items() if value not in (None, "", [])}
    if file is None:
        if fields and SUMMARY not in fields:
            raise usage_error("a retrospective needs a summary", "give SUMMARY first")
        return fields or None, given
    if fields:
        raise usage_error("give --from or the retrospective's options, not both")
    name = "standard input" if file == "-" else repr(file)
    read = parsed_json(invocation.read(file), name)
    return trajectories.read_retrospective(read), given


def _reviewed(
    invocation: Invocation, options: Mapping[str, Any], *, ask: bool, dry_run: bool
) -> dict[str, Any]:
    """Return the retrospective that the user writes or reviews in an editor; with `dry_run`, the draft."""
    with opened(invocation, quiet=True) as repo:
        state = repo.trajectories.find(options["trajectory"])
        draft: dict[str, Any] = {}
        if ask:
            if not (dry_run or invocation.environment.editor):
                raise usage_error(
                    "no editor is set to review the draft",
                    "set VISUAL or EDITOR; or --dry-run prints the draft, and --from records it",
                )
            model = asked_model(invocation, repo)
            draft = repo.trajectories.draft_retrospective(model, state.id)
            if dry_run:
                return draft
        text = porcelain.editor.edited(
            invocation,
            template(f"{state.id} {state.title}", draft),
            TYPED,
            "give SUMMARY, or --from FILE",
        )
        return _parsed(repo, text)


def template(name: str, draft: Mapping[str, Any]) -> str:
    """Return the template for the editor: a heading and a draft for each field."""
    lines = [f"<!-- {' '.join(name.split())}: an empty summary records nothing -->", ""]
    for field, title in TITLES.items():
        found = draft.get(field, "")
        body = [f"- {each}" for each in found] if field in LISTS else [str(found)]
        lines += [f"# {title}", "", *body, ""]
    return "\n".join(lines)


def _parsed(repo: Repo, text: str) -> dict[str, Any]:
    try:
        return parse_template(text)
    except errors.InvalidInputError as error:
        if text.strip():
            path = os.path.relpath(repo.maintenance.keep_text(TYPED, text))
            error.data.setdefault("hint", f"nothing was recorded; your text is in {path}")
        raise


def parse_template(text: str) -> dict[str, Any]:
    """Return the fields of an edited template.

    Raises:
        InvalidInputError: there is no summary, or the confidence is not a number from 0 to 1.
    """
    headings = {f"# {title}": field for field, title in TITLES.items()}
    bodies: dict[str, list[str]] = {field: [] for field in TITLES}
    field = SUMMARY
    for line in text.splitlines():
        if line.strip() in headings:
            field = headings[line.strip()]
        elif not (line.startswith("<!--") and line.endswith("-->")):
            bodies[field].append(line.rstrip())
    found: dict[str, Any] = {}
    for name, lines in bodies.items():
        if name in LISTS:
            items = [line.strip().removeprefix("- ") for line in lines]
            value: Any = [item for item in items if item.strip("-")]
        else:
            value = "\n".join(lines).strip()
        if value:
            found[name] = confidence_of(value) if name == CONFIDENCE else value
    if SUMMARY not in found:
        raise usage_error("the summary is empty")
    return found

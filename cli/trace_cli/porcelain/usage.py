"""`trace usage`: token usage reported by providers."""

from __future__ import annotations

import trace_store
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, MESSAGE, QUIET, opened, recorded
from trace_cli.porcelain.input import parsed_json
from trace_cli.render.escape import one_line
from trace_cli.render.records import write_record
from trace_cli.render.tables import LEFT, RIGHT, number, table
from trace_cli.subcommands import Group
from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trace_cli.runtime import Invocation

HELP = """Without a subcommand, list the latest reports."""
COUNTS = ("input_total", "cache_read", "cache_write", "output_total", "reasoning")
DEFAULT_LIMIT = 20
LIMIT = Option(
    "-n --max-count",
    "limit",
    f"Stop after N reports (default: {DEFAULT_LIMIT})",
    "N",
    number=True,
)


@takes(LIMIT, JSON)
def usage(invocation: Invocation, *, limit: int | None, as_json: bool) -> None:
    """List the latest reports when no subcommand is given."""
    show(invocation, revision="HEAD", limit=limit, as_json=as_json)


@takes(
    Argument("JSON", "report", "The report; - or omitted: read standard input", OPTIONAL),
    Option("--model", "model", "The model that was asked", "MODEL", default=""),
    Option(
        "--about",
        "about",
        "The commit whose context was sent (default: HEAD)",
        "REVISION",
        default="",
    ),
    MESSAGE,
    JSON,
    QUIET,
)
def record(
    invocation: Invocation,
    *,
    report: str | None,
    model: str,
    about: str,
    message: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Record a report: the usage object of a response, or the whole response.

    Reports of OpenAI, Anthropic and Gemini are converted to one form.
    """
    if report in (None, "-") and invocation.waits_for_keyboard:
        raise usage_error("there is no report to record", "give JSON, or pipe it in")
    name = "standard input" if report in (None, "-") else "the report"
    data = (
        invocation.read("-")
        if report is None or report == "-"
        else report.encode("utf-8", "replace")
    )
    fields = parsed_json(data, name)
    if not isinstance(fields, dict):
        raise errors.UnreadableInputError(f"{name} is not a JSON object")

    recorded(
        invocation,
        lambda repo: repo.record_usage(fields, model=model, about=about or None, message=message),
        as_json=as_json,
        quiet=quiet,
    )


@takes(
    Argument("REVISION", "revision", "Start from this commit", OPTIONAL, default="HEAD"),
    LIMIT,
    JSON,
)
def show(invocation: Invocation, *, revision: str, limit: int | None, as_json: bool) -> None:
    """List reports, newest first, with counts in tokens."""
    limit = DEFAULT_LIMIT if limit is None else limit
    rows: list[tuple[str, ...]] = []
    with opened(invocation) as repo:
        for each in repo.usage(revision, limit=limit):
            record = trace_store.records.usage(each)
            if as_json:
                write_record(invocation, record)
            rows.append(_row(record))
    if as_json:
        return
    if not rows:
        invocation.note("no usage is recorded")
        return
    header = ("commit", "about", "model", "input", "cached", "written", "output", "reasoning")
    for line in table(invocation, header, rows, LEFT * 3 + RIGHT * 5):
        invocation.line(line)


def _row(record: Mapping[str, Any]) -> tuple[str, ...]:
    counts = (number(value) if isinstance(value := record.get(n), int) else "-" for n in COUNTS)
    model = one_line(str(record.get("model") or record.get("source") or ""), 40)
    return record["commit"][:12], (record["about"] or "-")[:12], model, *counts


GROUP = Group(HELP, {"record": record, "show": show}, bare=usage)

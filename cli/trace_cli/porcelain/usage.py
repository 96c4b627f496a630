"""`trace usage`: token usage reported by providers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import trace_store
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, MESSAGE, QUIET, opened, recorded
from trace_cli.porcelain.input import parsed_json
from trace_cli.render.escape import one_line
from trace_cli.render.tables import LEFT, RIGHT, counted, number, share, table
from trace_cli.runtime import Invocation
from trace_cli.subcommands import Group
from trace_store import errors
from trace_store.history.lookup import UsageTotal
from trace_store.history.usage_sums import (
    FILE,
    MESSAGES,
    MODEL,
    OUTPUT,
    OVERHEAD,
    TOOL,
    TOTAL,
    WAYS,
    UsageSums,
)
from trace_store.store import price_of, read_prices
from trace_store.store.prices import Price

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

HELP = """Without a subcommand, list the latest reports."""
NAMELESS = {
    MESSAGES: "(other messages)",
    OVERHEAD: "(instructions and tools)",
    OUTPUT: "(output)",
    TOTAL: "total",
}
COUNTS = ("input_total", "cache_read", "cache_write", "output_total", "reasoning")
DEFAULT_LIMIT = 20
NAME_COLUMNS = 60
LIMIT = Option(
    "-n --max-count",
    "limit",
    f"Stop after N reports (default: {DEFAULT_LIMIT})",
    "N",
    number=True,
)


BY = Option("--by", "by", f"Add all reports up by {', '.join(WAYS)}", "WAY", choices=WAYS)
COST = Option("--cost", "cost", "Show costs, by the prices of `trace config price.MODEL`")


@takes(LIMIT, BY, COST, JSON)
def usage(invocation: Invocation, *, limit: int | None, by: str, cost: bool) -> Results:
    """List the latest reports when no subcommand is given."""
    return show(invocation, revision="HEAD", limit=limit, by=by, cost=cost)


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
) -> Results:
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

    return recorded(
        invocation,
        lambda repo: repo.record_usage(fields, model=model, about=about or None, message=message),
    )


@takes(
    Argument("REVISION", "revision", "Start from this commit", OPTIONAL, default="HEAD"),
    LIMIT,
    BY,
    COST,
    JSON,
)
def show(
    invocation: Invocation, *, revision: str, limit: int | None, by: str, cost: bool
) -> Results:
    """List reports, newest first, with counts in tokens.

    --by adds all of them up, with a sum at the end. By tool or file, the input of each request is divided among the
    messages of its context by their tokens: a tool has its calls and their results, in every request that carried them.
    TOKENS counts each of them once. With --json, each row is a line; the last is the sum.

        trace usage --by model --cost
        trace usage show main --by tool
    """
    if by and limit is not None:
        raise usage_error("--by adds up all reports: it excludes -n", "name a range, as in A..B")
    with opened(invocation) as repo:
        prices = read_prices(invocation.environment) if cost else None
        if by:
            yield from _sums(invocation, repo.usage_by(by, revision, prices=prices), by, cost=cost)
            return
        reports = list(repo.usage(revision, limit=DEFAULT_LIMIT if limit is None else limit))
        costs = None if prices is None else [_cost(each, prices) for each in reports]
        records: object = (
            reports
            if costs is None
            else [trace_store.record(r, cost=c) for r, c in zip(reports, costs, strict=True)]
        )
        yield records, _lines(invocation, reports, costs)
        unpriced = [r.model for r, c in zip(reports, costs or (), strict=False) if c is None]
        _tell_unpriced(invocation, unpriced)


def _sums(invocation: Invocation, sums: UsageSums, by: str, *, cost: bool) -> Results:
    rows = [*sums.rows, sums.total]
    yield rows, _sum_lines(invocation, sums, by, cost=cost)
    _tell_unpriced(invocation, sums.unpriced)


def _sum_lines(invocation: Invocation, sums: UsageSums, by: str, *, cost: bool) -> Iterator[str]:
    if not sums.total.count:
        invocation.note("no usage is recorded")
        return
    rows: list[tuple[str, ...]] = []
    header: tuple[str, ...] = (by, "requests", "input", "cached", "written", "output", "reasoning")
    if by != MODEL:
        header = (by, "calls", "tokens", "input", "share", "output")
    for each in [*sums.rows, sums.total]:
        name = one_line(each.name or NAMELESS.get(each.part, ""), 1000)
        if len(name) > NAME_COLUMNS:  # the end of a path says most
            name = "…" + name[1 - NAME_COLUMNS :]
        if by == MODEL:
            counts = (each.count, *(getattr(each, key) for key in COUNTS))
            cells = tuple(map(number, counts))
        else:
            is_named = each.part in (TOOL, FILE)
            part = share(each.input_total, sums.total.input_total)
            cells = (
                number(each.count) if is_named else "",
                number(each.tokens) if each.tokens else "",
                number(each.input_total),
                part if sums.total.input_total else "",
                number(each.output_total) if each.part in (OUTPUT, TOTAL) else "",
            )
        rows.append((name, *cells, *([_money(each.cost)] if cost else [])))
    names = (*header, *(["cost"] if cost else []))
    yield from table(invocation, names, rows, LEFT + RIGHT * (len(names) - 1))
    if by != MODEL:
        yield f"share: of the {number(sums.total.input_total)} input tokens of {_requests(sums)}"


def _requests(sums: UsageSums) -> str:
    return counted(sums.total.count, "request")


def _cost(report: UsageTotal, prices: Mapping[str, Price]) -> float | None:
    price = price_of(prices, report.model)
    if price is None:
        return None
    return price.input_cost(report.fields) + price.output_cost(report.fields)


def _money(cost: float | None) -> str:
    return "-" if cost is None else f"{cost:,.4f}"


def _tell_unpriced(invocation: Invocation, models: Iterable[str]) -> None:
    """Name the models whose requests have no cost."""
    for model in dict.fromkeys(models):
        name = one_line(model, 80) or "reports without a model"
        said = f"note: no price for {name}: its requests have no cost"
        setting = f"`trace config price.{one_line(model, 80)} 'input=N output=N'` sets one, per million tokens"
        invocation.note(f"{said}; {setting}" if model else said)


def _lines(
    invocation: Invocation, found: Iterable[UsageTotal], costs: Sequence[float | None] | None
) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [_row(each) for each in found]
    if not rows:
        invocation.note("no usage is recorded")
        return
    header: tuple[str, ...] = (
        "commit",
        "about",
        "model",
        "input",
        "cached",
        "written",
        "output",
        "reasoning",
    )
    if costs is not None:
        header = (*header, "cost")
        rows = [(*row, _money(cost)) for row, cost in zip(rows, costs, strict=True)]
    yield from table(invocation, header, rows, LEFT * 3 + RIGHT * (len(header) - 3))


def _row(each: UsageTotal) -> tuple[str, ...]:
    fields = each.fields
    counts = (number(value) if isinstance(value := fields.get(n), int) else "-" for n in COUNTS)
    model = one_line(str(fields.get("model") or fields.get("source") or ""), 40)
    return each.commit.short(), each.about.short() if each.about else "-", model, *counts


GROUP = Group(HELP, {"record": record, "show": show}, bare=usage)

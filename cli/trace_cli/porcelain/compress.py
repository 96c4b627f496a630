"""`trace compress` and `trace expand`: summaries in place of messages, and the way back."""

from __future__ import annotations

from trace_cli import porcelain
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import (
    JSON,
    MESSAGE,
    QUIET,
    SECRETS,
    finish,
    opened_store,
    something_waits,
    tell_secrets,
)
from trace_cli.porcelain.input import argument_text, text_from
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import address_text, short_address, write_record
from trace_cli.render.tables import LEFT, RIGHT, counted, number, share, table
from trace_store import checkpoints, compression, errors, llm
from trace_store.compression.compress import limited_target, parse_target
from trace_store.compression.prompt import MINIMUM_WINDOW, WINDOW_TOKENS
from trace_store.config import AUTOMATIC_SETTING
from trace_store.secrets.guard import Guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_cli.runtime import Invocation
    from trace_store.compression.compress import Compression, Plan
    from trace_store.compression.report import SummaryReport
    from trace_store.store.handle import Store

SMALLER = "give --to at least the smallest possible, or a RANGE that holds more; pinned messages always stay"

BRANCH = Option("--branch", "branch", "The branch; HEAD's if not given", "NAME", completes="BRANCH")


@takes(
    Argument(
        "RANGE",
        "range",
        "Messages: ADDRESS..ADDRESS, A..B, or one of them; all if not given",
        OPTIONAL,
        default="",
        completes="COMMIT",
    ),
    Option(
        "--to",
        "to",
        "Tokens that the context should have: 60k, or 50% of its messages",
        "TOKENS",
        default="",
    ),
    Option("--manual", "manual", "The summary is TEXT; - reads it", "TEXT"),
    Option("--extractive", "extractive", "Ask no model, even if one is configured"),
    Option(
        "--window",
        "window",
        "Show the model at most N tokens at once",
        "N",
        number=True,
        least=MINIMUM_WINDOW,
        default=WINDOW_TOKENS,
    ),
    Option("--plan", "plan", "Show what would be replaced, and write nothing"),
    Option(
        "--budget", "budgets", "Show the plans for several targets: 32k,64k", "LIST", default=""
    ),
    Option("--report", "report", "List what summaries no longer mention; RANGE is one of them"),
    Option("--force", "force", "Compress again although hardly anything is new"),
    BRANCH,
    MESSAGE,
    SECRETS,
    JSON,
    QUIET,
)
def compress(
    invocation: Invocation,
    *,
    range: str,
    to: str,
    manual: str | None,
    extractive: bool,
    window: int,
    plan: bool,
    budgets: str,
    report: bool,
    force: bool,
    branch: str | None,
    message: str,
    secrets: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Replace messages by a summary, until the context has TOKENS tokens.

    Without a RANGE the newest messages stay as they are, as far as TOKENS allows. System messages, pinned messages and
    calls without a result always stay. Without --to the target is 60% of the budget (`trace config budget`); with a
    budget it is never more.

    If a model is configured (`trace model`), it writes the summary, and the messages are sent to it. Otherwise, or with
    --extractive, the summary quotes the sentences that matter most. Files, commands, errors and open to-dos are taken
    from the tool calls.

    Nothing is lost: `trace undo` takes the compression back, `trace expand ADDRESS` shows one part in full again.

        trace compress --to 50% --plan
        trace compress --budget 32k,64k,128k
        trace compress main~20 --to 40k
        trace compress --report
    """
    _check(range, to, manual, budgets, plan=plan, report=report, extractive=extractive)
    with opened_store(invocation, quiet=quiet) as store:
        if report:
            _write_reports(
                invocation, compression.report.report(store, range, ref=branch), as_json=as_json
            )
            return
        if budgets:
            _write_outcomes(invocation, store, range, budgets, branch, as_json=as_json)
            return
        target = parse_target(store, to, ref=branch) if to else limited_target(store, None)
        if target is None and manual is None:
            raise usage_error("--to TOKENS is missing", "or set a budget: `trace config budget`")
        try:
            if plan:
                found = compression.compress.plan(
                    store, range, to=limited_target(store, target), ref=branch
                )
                _write_plan(invocation, found, as_json=as_json)
                return
            done = _compress(
                *(invocation, store, range, target, manual),
                model=not extractive,
                window=window,
                force=force,
                branch=branch,
                message=message,
                secrets=secrets,
            )
        except errors.BudgetError as error:
            error.data.setdefault("hint", SMALLER)
            raise
        if as_json and not quiet:
            write_record(invocation, _record(done))
        elif not quiet:
            invocation.line(_line(done))


def _check(
    range: str,
    to: str,
    manual: str | None,
    budgets: str,
    *,
    plan: bool,
    report: bool,
    extractive: bool,
) -> None:
    chosen = [
        name
        for name, given in (("--plan", plan), ("--report", report), ("--budget", bool(budgets)))
        if given
    ]
    if len(chosen) > 1:
        raise usage_error(f"give one of {' and '.join(chosen)}")
    if manual is not None and (extractive or chosen):
        raise usage_error(f"--manual goes without {chosen[0] if chosen else '--extractive'}")
    if to and (report or budgets):
        raise usage_error(f"--to goes without {chosen[0]}")
    if report and ".." in range:
        raise usage_error("--report takes the ADDRESS of one summary, or none for all")


def _compress(
    invocation: Invocation,
    store: Store,
    range: str,
    target: int | None,
    manual: str | None,
    *,
    model: bool,
    window: int,
    force: bool,
    branch: str | None,
    message: str,
    secrets: str,
) -> Compression:
    text = "" if manual is None else _manual_text(invocation, manual)
    settings = None
    if model and not text:
        try:
            settings = llm.settings.read_settings(store.disk, invocation.environment)
        except errors.StateError as error:
            if error.code != errors.ErrorCode.NO_MODEL:
                raise
    guard = Guard.of(store, invocation.environment, secrets)
    if store.config.get(AUTOMATIC_SETTING):
        author = invocation.environment.author
        checkpoints.automatic.before(store, "compress", author=author)
    done = compression.compress.compress(
        store,
        range,
        to=target,
        author=invocation.environment.author,
        model=None if settings is None else llm.http_model.HttpModel(settings),
        name="" if settings is None else settings.name,
        text=text,
        window=window,
        force=force,
        ref=branch,
        message=message,
        guard=guard,
    )
    if done.result is not None:
        finish(invocation, store)
        tell_secrets(invocation, done.result.secrets, guard)
        if something_waits(store):
            porcelain.in_progress.tell_stopped(invocation, store, [done.result.ref])
    return done


def _manual_text(invocation: Invocation, manual: str) -> str:
    return text_from(invocation, "-") if manual == "-" else argument_text(manual)


def _line(done: Compression) -> str:
    found = done.plan
    if done.result is None:
        return f"the context has {counted(found.before, 'token')} already: nothing to compress"
    count = sum(len(run.targets) for run in found.runs)
    become = counted(len(done.texts), "summary").replace("summarys", "summaries")
    by = done.summariser if not done.model else one_line(done.model, 60)
    sizes = f"{number(found.before)} → {counted(done.after, 'token')}"
    return f"{done.result.oid.short()} {counted(count, 'message')} → {become} ({by}): {sizes}"


def _record(done: Compression) -> dict[str, Any]:
    result = done.result
    addresses = () if result is None else result.addresses
    return {
        "commit": None if result is None else str(result.oid),
        "ref": None if result is None else result.ref,
        **_plan_record(done.plan),
        "after": done.after,
        "summariser": done.summariser or None,
        "model": done.model or None,
        "summaries": [
            {"address": address_text(each), "text": text}
            for each, text in zip(addresses, done.texts, strict=True)
        ],
        "secrets": {} if result is None else dict(result.secrets),
    }


def _plan_record(found: Plan) -> dict[str, Any]:
    return {
        "target": found.target,
        "before": found.before,
        "after": found.after,
        "smallest": found.smallest,
        "runs": [
            {
                "messages": [address_text(each) for each in run.targets],
                "sources": [address_text(each) for each in run.sources],
                "token_count": run.token_count,
                "budget": run.budget,
            }
            for run in found.runs
        ],
        "kept": dict(found.kept),
    }


def _write_plan(invocation: Invocation, found: Plan, *, as_json: bool) -> None:
    if as_json:
        write_record(invocation, _plan_record(found))
        return
    if not found.runs:
        invocation.line(
            f"the context has {counted(found.before, 'token')} already: nothing to compress"
        )
        return
    rows = [
        (
            short_address(run.targets[0]),
            short_address(run.targets[-1]),
            number(len(run.targets)),
            number(run.token_count),
            number(run.budget),
        )
        for run in found.runs
    ]
    header = ("from", "to", "messages", "tokens", "at most")
    for line in table(invocation, header, rows, LEFT * 2 + RIGHT * 3):
        invocation.line(line)
    if found.kept:
        said = ", ".join(f"{number(count)} {why}" for why, count in found.kept.items())
        invocation.line(f"kept: {said}")
    invocation.line(
        f"{number(found.before)} → at most {counted(found.after, 'token')}; "
        f"the smallest possible is {number(found.smallest)}"
    )


def _write_outcomes(
    invocation: Invocation,
    store: Store,
    range: str,
    budgets: str,
    branch: str | None,
    *,
    as_json: bool,
) -> None:
    """Show the plans for several targets, without one where a target cannot be reached."""
    rows: list[tuple[str, ...]] = []
    records: list[dict[str, Any]] = []
    for typed in budgets.split(","):
        target = parse_target(store, typed.strip(), ref=branch)
        try:
            found = compression.compress.plan(store, range, to=target, ref=branch)
        except errors.BudgetError as error:
            smallest = error.data["needed"]
            records.append({"target": target, "smallest": smallest})
            rows.append((number(target), "", "", "", f"not possible: {smallest:,} at least"))
            continue
        records.append(_plan_record(found))
        count = sum(len(run.targets) for run in found.runs)
        left = share(found.after, found.before)
        rows.append(
            (number(target), number(count), number(len(found.runs)), number(found.after), left)
        )
    if as_json:
        write_record(invocation, {"outcomes": records})
        return
    header = ("target", "replaced", "summaries", "at most", "of now")
    for line in table(invocation, header, rows, RIGHT * 4 + LEFT):
        invocation.line(line)


def _write_reports(invocation: Invocation, reports: list[SummaryReport], *, as_json: bool) -> None:
    if as_json:
        write_record(invocation, {"summaries": [_report_record(each) for each in reports]})
        return
    if not reports:
        invocation.line("the context has no summary")
    for each in reports:
        checked = sum(each.checked.values())
        invocation.line(
            f"{short_address(each.summary)} stands for {counted(each.sources, 'message')}; "
            f"it does not mention {number(len(each.lost))} of {number(checked)}"
        )
        rows = [(one.kind, short_address(one.source), one_line(one.text, 400)) for one in each.lost]
        for line in table(invocation, (), rows, LEFT * 3):
            invocation.line(f"  {line}")


def _report_record(each: SummaryReport) -> dict[str, Any]:
    return {
        "summary": address_text(each.summary),
        "sources": each.sources,
        "checked": dict(each.checked),
        "lost": [
            {"kind": one.kind, "text": one.text, "source": address_text(one.source)}
            for one in each.lost
        ],
    }


@takes(
    Argument("ADDRESS", "target", "The message, such as HEAD.0", completes="ADDRESS"),
    BRANCH,
    MESSAGE,
    JSON,
    QUIET,
)
def expand(
    invocation: Invocation,
    *,
    target: str,
    branch: str | None,
    message: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show a compressed, removed or shortened message in full again.

    A summary becomes the messages that it replaced, a removed message or its placeholder the message itself, and an
    edited message gets its first version back. `trace compile --expand ADDRESS` does it for one compile.
    """
    with opened_store(invocation, quiet=quiet) as store:
        done = compression.expand.expand(
            store, target, author=invocation.environment.author, ref=branch, message=message
        )
        finish(invocation, store)
        if quiet:
            return
        if something_waits(store):
            porcelain.in_progress.tell_stopped(invocation, store, [done.result.ref])
        if as_json:
            record = {
                "commit": str(done.result.oid),
                "ref": done.result.ref,
                "what": done.what,
                "messages": [address_text(each) for each in done.messages],
            }
            write_record(invocation, record)
            return
        what = counted(len(done.messages), f"{done.what} message")
        invocation.line(f"{done.result.oid.short()} {safe(what)} shown in full")

"""`trace compress` and `trace expand`: summaries in place of messages, and the way back."""

from __future__ import annotations

from collections.abc import Iterator

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.advice import configured_model
from trace_cli.porcelain.common import (
    BRANCH,
    JSON,
    MESSAGE,
    NOTHING,
    QUIET,
    SECRETS,
    finish,
    opened,
    tell_secrets,
)
from trace_cli.porcelain.input import argument_text, text_from
from trace_cli.porcelain.progress import Progress
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import LEFT, RIGHT, counted, number, share, table
from trace_cli.runtime import Invocation
from trace_store import errors
from trace_store.compression.budgets import Compression
from trace_store.compression.losses import SummaryReport
from trace_store.compression.summaries import MINIMUM_WINDOW, WINDOW_TOKENS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results
    from trace_store.compression.compress import CompressionPlan, CompressionResult

SMALLER = "give --to at least the smallest possible, or a RANGE that holds more; pinned messages always stay"


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
    Option(
        "--instructions",
        "instructions",
        "What the summary should dwell on: 'focus on the schema'",
        "TEXT",
        default="",
    ),
    Option(
        "--keep-last",
        "keep_last",
        "Keep the last N turns of the user whole",
        "N",
        number=True,
        least=0,
    ),
    Option("--plan", "plan", "Show what would be replaced, and write nothing"),
    Option(
        "--budget", "budgets", "Show the plans for several targets: 32k,64k", "LIST", default=""
    ),
    Option("--report", "report", "List what a summary (RANGE; default: all) does not mention"),
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
    instructions: str,
    keep_last: int | None,
    plan: bool,
    budgets: str,
    report: bool,
    force: bool,
    branch: str,
    message: str,
    secrets: str,
) -> Results:
    """Replace messages by a summary, until the context has TOKENS tokens.

    Without a RANGE the newest messages stay as they are, as far as TOKENS allows. System messages, pinned messages,
    calls without a result, and what no model was shown yet always stay. Without --to the target is 60% of the budget
    (`trace config budget`); with a budget it is never more.

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
    with opened(invocation, secrets=secrets) as repo:
        subject = repo.compression
        if report:
            reports = subject.report(range, ref=branch)
            yield {"summaries": reports}, _report_lines(invocation, reports)
            return
        if budgets:
            yield from _outcomes(invocation, subject, range, budgets, branch)
            return
        target = subject.target(to, ref=branch) if to else None
        if target is None and manual is None and repo.store.config.budget is None:
            raise usage_error("--to TOKENS is missing", "or set a budget: `trace config budget`")
        try:
            if plan:
                found = subject.plan(target, range, keep_last=keep_last, ref=branch)
                yield found, _plan_lines(invocation, found)
                return
            with Progress(invocation) as progress:
                done = subject.compress(
                    target,
                    range,
                    keep_last=keep_last,
                    model=None if extractive or manual else configured_model(invocation, repo),
                    text="" if manual is None else _manual_text(invocation, manual),
                    window=window,
                    instructions=instructions,
                    force=force,
                    progress=lambda done, all_: progress.tell("summaries", done, all_),
                    message=message,
                    ref=branch,
                )
        except errors.BudgetError as error:
            error.data.setdefault("hint", SMALLER)
            raise
        if done.result is not None:
            finish(invocation, repo)
            tell_secrets(invocation, done.result.secrets, repo.guard)
            if (
                instructions
                and done.summariser == "extractive"
                and not done.speaks_of(instructions)
            ):
                invocation.note(
                    "note: without a model, sentences are quoted; none has a word of the instructions"
                )
        yield done, _line(done)


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


def _manual_text(invocation: Invocation, manual: str) -> str:
    return text_from(invocation, "-") if manual == "-" else argument_text(manual)


def _line(done: CompressionResult) -> str:
    found = done.plan
    if done.result is None:
        return f"the context has {counted(found.before, 'token')} already: nothing to compress"
    count = sum(len(run.targets) for run in found.runs)
    become = counted(len(done.texts), "summary").replace("summarys", "summaries")
    by = done.summariser if not done.model else one_line(done.model, 60)
    sizes = f"{number(found.before)} → {counted(done.after, 'token')}"
    return f"{done.result.oid.short()} {counted(count, 'message')} → {become} ({by}): {sizes}"


def _plan_lines(invocation: Invocation, found: CompressionPlan) -> Iterator[str]:
    if not found.runs:
        yield f"the context has {counted(found.before, 'token')} already: nothing to compress"
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
    yield from table(invocation, header, rows, LEFT * 2 + RIGHT * 3)
    if found.kept:
        said = ", ".join(f"{number(count)} {why}" for why, count in found.kept.items())
        yield f"kept: {said}"
    yield (
        f"{number(found.before)} → at most {counted(found.after, 'token')}; "
        f"with the same messages kept, at least {number(found.smallest)}"
    )


def _outcomes(
    invocation: Invocation,
    subject: Compression,
    range: str,
    budgets: str,
    branch: str,
) -> Results:
    """Yield the plans for several targets, without one where a target cannot be reached."""
    rows: list[tuple[str, ...]] = []
    plans: list[object] = []
    for typed in budgets.split(","):
        target = subject.target(typed.strip(), ref=branch)
        try:
            found = subject.plan(target, range, ref=branch)
        except errors.BudgetError as error:
            smallest = error.data["needed"]
            plans.append({"target": target, "smallest": smallest})
            rows.append((number(target), "", "", "", f"not possible: needs at least {smallest:,}"))
            continue
        plans.append(found)
        count = sum(len(run.targets) for run in found.runs)
        left = share(found.after, found.before)
        rows.append(
            (number(target), number(count), number(len(found.runs)), number(found.after), left)
        )
    header = ("target", "replaced", "summaries", "at most", "of current")
    yield {"outcomes": plans}, table(invocation, header, rows, RIGHT * 4 + LEFT)


def _report_lines(invocation: Invocation, reports: list[SummaryReport]) -> Iterator[str]:
    if not reports:
        yield "the context has no summary"
    for each in reports:
        checked = sum(each.checked.values())
        yield (
            f"{short_address(each.summary)} replaces {counted(each.sources, 'message')}; "
            f"it does not mention {number(len(each.lost))} of {number(checked)}"
        )
        rows = [(one.kind, short_address(one.source), one_line(one.text, 400)) for one in each.lost]
        for line in table(invocation, (), rows, LEFT * 3):
            yield f"  {line}"


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
    branch: str,
    message: str,
) -> Results:
    """Show a compressed, removed or shortened message in full again.

    Puts back what a summary, a removal or an edit replaced. `trace compile --expand ADDRESS` does it for one compile.
    """
    with opened(invocation) as repo:
        done = repo.compression.expand(target, message=message, ref=branch)
        finish(invocation, repo)
        what = counted(len(done.messages), f"{done.what} message")
        said = f"{done.result.oid.short()} {safe(what)} shown in full"
        if done.wordings > 1:
            said += f", in the first of {done.wordings} wordings"
            invocation.note(
                "note: `trace show --versions ADDRESS` lists them; `trace undo` goes back"
            )
        if done.summary is not None:
            name = short_address(done.summary)
            invocation.note(
                f"note: the summary {name} stays beside it; `trace expand {name}` puts back all"
            )
        yield done, said if done.result.changed else f"{NOTHING}: the message is shown in full"

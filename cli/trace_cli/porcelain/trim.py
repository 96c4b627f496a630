"""`trace trim`, `trace dedupe` and `trace suggest`: smaller contexts, without a model."""

from __future__ import annotations

import trace_store
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import EXIT_INVALID, EXIT_OK, usage_error
from trace_cli.porcelain.common import (
    BRANCH,
    JSON,
    MESSAGE,
    QUIET,
    finish,
    opened,
)
from trace_cli.porcelain.input import places_in
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address, write_record
from trace_cli.render.tables import LEFT, RIGHT, counted, heat_bar, number, share, table
from trace_store.compression.suggest import PIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_cli.runtime import Invocation
    from trace_store.compression.suggest import Suggestions
    from trace_store.compression.trim import TrimResult
    from trace_store.repo.repository import Repo

_SHADES = " ▁▂▃▄▅▆▇█"
_STRIP_COLUMNS = 60
_DRY_RUN = Option("-n --dry-run", "dry_run", "Show what would be saved, and write nothing")
_EXPLANATIONS = {
    "superseded": "files read again or changed later",
    "duplicate": "outputs that a later one repeats",
    "reasoning": "reasoning of old turns",
    "failed": "outputs of failed calls",
    "output": "old tool outputs, cut to head and tail",
    "arguments": "long arguments of old calls",
    "episode": "old work, replaced by notes",
    "prose": "old answers, cut to their first paragraph",
}


@takes(
    Argument("RANGE", "range", "Only these messages: FROM..TO, by address or commit", OPTIONAL),
    Option(
        "--to",
        "to",
        "The target in tokens, such as 80k, or the share of the messages' tokens to keep: 50%",
        "TOKENS",
    ),
    Option("--percent", "percent", "The share of the messages' tokens to keep", "N", number=True),
    Option(
        "--keep-last", "keep_last", "Leave the last N turns of the user unchanged", "N", number=True
    ),
    Option("--from", "first", "Change nothing before this message", "ADDRESS"),
    Option("--partial", "partial", "If the target cannot be met, trim as far as possible"),
    _DRY_RUN,
    BRANCH,
    MESSAGE,
    JSON,
    QUIET,
)
def trim_command(
    invocation: Invocation,
    *,
    range: str | None,
    to: str | None,
    percent: int | None,
    keep_last: int | None,
    first: str | None,
    partial: bool,
    dry_run: bool,
    branch: str,
    message: str,
    as_json: bool,
    quiet: bool,
) -> int:
    """Make the context fit a number of tokens, without a model; everything can be shown again.

    Old tool outputs, reasoning, finished work and old answers are shortened. The least useful go first: files that
    were read again, repeated outputs, failed calls. What the user said, instructions, pinned and important
    messages, the last to-do list and the newest messages stay as they are. One commit; `trace undo` takes it back, and
    `trace expand ADDRESS` shows one message whole.

        trace trim --to 80k --dry-run
        trace trim --percent 50
    """
    if (to is None) == (percent is None):
        raise usage_error(
            "give either --to TOKENS or --percent N", "for example: trace trim --percent 50"
        )
    if percent is not None and not 1 <= percent <= 99:
        raise usage_error("--percent takes a number from 1 to 99")
    if range is not None and first is not None:
        raise usage_error("RANGE and --from both say where to begin; leave one out")
    with opened(invocation, quiet=quiet) as repo:
        result = repo.compression.trim(
            repo.compression.target(to or f"{percent}%", ref=branch),
            range or (f"{first}.." if first else ""),
            keep_last=keep_last,
            partial=partial,
            dry_run=dry_run,
            message=message,
            ref=branch,
        )
        return _print_trim(invocation, repo, result, dry_run=dry_run, as_json=as_json, quiet=quiet)


@takes(_DRY_RUN, BRANCH, MESSAGE, JSON, QUIET)
def dedupe(
    invocation: Invocation,
    *,
    dry_run: bool,
    branch: str,
    message: str,
    as_json: bool,
    quiet: bool,
) -> int:
    """Let repeated reads of a file, and repeated outputs, point to the newest one.

    A read counts as repeated when the same part of the file, or all of it, was read again later. One commit; `trace
    undo` takes it back.

        trace dedupe --dry-run
    """
    with opened(invocation, quiet=quiet) as repo:
        result = repo.compression.dedupe(dry_run=dry_run, message=message, ref=branch)
        return _print_trim(invocation, repo, result, dry_run=dry_run, as_json=as_json, quiet=quiet)


def _print_trim(
    invocation: Invocation,
    repo: Repo,
    result: TrimResult,
    *,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    if result.commit is not None:
        finish(invocation, repo)
    code = EXIT_INVALID if dry_run and not result.met else EXIT_OK
    if quiet:
        return code
    if as_json:
        write_record(invocation, trace_store.records.trim(result))
        return code
    rows = [
        (_EXPLANATIONS[step.reason], number(step.count), f"-{number(step.tokens)}")
        for step in result.steps
    ]
    rows.append(("resulting context", "", number(result.after)))
    for line in table(invocation, ("", "messages", "tokens"), rows, LEFT + RIGHT + RIGHT):
        invocation.line(line)
    if not result.steps:
        invocation.note("nothing to trim" if result.met else "nothing can be trimmed")
    if not result.met and result.target is not None:
        invocation.note(f"the target of {number(result.target)} tokens cannot be met; this stays:")
        for name, tokens in result.stays.items():
            invocation.note(f"  {number(tokens):>9}  {name}")
    if result.commit is not None:
        saved = share(result.before - result.after, result.before)
        invocation.line(
            f"{result.commit.oid.short()} {number(result.before)} to {number(result.after)} tokens, {saved} saved"
        )
    elif dry_run and result.steps:
        invocation.note(f"nothing was written: {number(result.before)} tokens are in the context")
    return code


@takes(
    Option("--apply", "chosen", "Apply these proposals, such as 1,3-5 or all", "NUMBERS"),
    Option("-N --number", "most", "Show at most N proposals", "N", number=True),
    BRANCH,
    MESSAGE,
    JSON,
    QUIET,
)
def suggest_command(
    invocation: Invocation,
    *,
    chosen: str | None,
    most: int | None,
    branch: str,
    message: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Propose what could be shortened, replaced by a note, or pinned, with the tokens saved and the reason.

    The strip shows the heat of the context from its start to its end: how much the later messages still use each part.
    Nothing is written without --apply; `trace undo` takes it back. The reasons:

        superseded   the file was read again or changed later
        stale        the file has changed on disk since it was read
        duplicate    a later output is the same
        similar      a later output is almost the same
        failed       the call failed; its error stays
        cold         no later message uses the output, or the turn, any more
        pin          many later messages use what the user said here

        trace suggest
        trace suggest --apply 1,3-5
    """
    with opened(invocation, quiet=quiet) as repo:
        found = repo.compression.suggest(ref=branch)
        if chosen is not None:
            picked = [
                found.proposals[n] for n in places_in(chosen, len(found.proposals), "--apply")
            ]
            result = repo.compression.apply(picked, message=message, ref=branch)
            finish(invocation, repo)
            if as_json:
                write_record(invocation, {"commit": str(result.oid), "applied": len(picked)})
            elif not quiet:
                saved = sum(each.tokens for each in picked)
                what = counted(len(picked), "proposal")
                invocation.line(
                    f"{result.oid.short()} {what} applied, {number(saved)} tokens saved"
                )
            return
        if as_json:
            write_record(invocation, trace_store.records.suggestions(found))
        elif not quiet:
            _show(invocation, found, most)


def _show(invocation: Invocation, found: Suggestions, most: int | None) -> None:
    strip = _strip(found.heat, found.sizes)
    if strip:
        invocation.line(f"heat  start {strip} end")
    shown = found.proposals if most is None else found.proposals[:most]
    rows = [
        (
            str(place),
            short_address(each.addresses[0]),
            "pin" if each.action == PIN else number(each.tokens),
            heat_bar(each.heat),
            each.reason,
            one_line(each.explanation, 120),
        )
        for place, each in enumerate(shown, 1)
    ]
    header = ("", "address", "saves", "heat", "reason", "explanation")
    for line in table(invocation, header, rows, RIGHT + LEFT + RIGHT + LEFT + LEFT + LEFT):
        invocation.line(line)
    saved = sum(each.tokens for each in found.proposals)
    if found.proposals:
        what = counted(len(found.proposals), "proposal")
        invocation.line(f"{what}: saving {number(saved)} of {counted(found.tokens, 'token')}")
    else:
        invocation.note("nothing to propose")


def _strip(heat: Sequence[float], sizes: Sequence[int]) -> str:
    """Return the heat of a context as a line of block characters, from its start to its end."""
    shades = len(_SHADES) - 1
    return safe("".join(_SHADES[round(each * shades)] for each in _columns(heat, sizes)))


def _columns(heat: Sequence[float], sizes: Sequence[int]) -> list[float]:
    """Return a context's heat in columns with equal numbers of tokens."""
    total = sum(sizes)
    if not total:
        return []
    columns = [[0.0, 0.0] for _ in range(_STRIP_COLUMNS)]
    before = 0.0
    for value, size in zip(heat, sizes, strict=True):
        start, before = before, before + size * _STRIP_COLUMNS / total
        column = int(start)
        while column < _STRIP_COLUMNS and start < before:
            end = min(before, column + 1)
            columns[column][0] += value * (end - start)
            columns[column][1] += end - start
            start, column = end, column + 1
    return [warm / size if size else 0.0 for warm, size in columns]

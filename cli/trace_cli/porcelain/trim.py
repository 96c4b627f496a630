"""`trace trim`, `trace dedupe` and `trace suggest`: smaller contexts, without a model."""

from __future__ import annotations

import trace_store
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import EXIT_INVALID, EXIT_OK, usage_error
from trace_cli.porcelain.common import (
    BRANCH,
    JSON,
    MESSAGE,
    NOTHING,
    QUIET,
    finish,
    opened,
)
from trace_cli.porcelain.input import places_in
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import LEFT, RIGHT, counted, heat_bar, number, savings, table
from trace_store.compression.suggest import PIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_cli.runtime import Invocation, Results, ResultsAndCode
    from trace_store.compression.suggest import Suggestions
    from trace_store.compression.trim import TrimResult
    from trace_store.repo.repository import Repo

_SHADES = " ▁▂▃▄▅▆▇█"
_STRIP_COLUMNS = 60
_LISTED = 5
"""The number of lines of an older version of a file to list."""
_TOPICS = 5
_DRY_RUN = Option("-n --dry-run", "dry_run", "Show what would be saved, and write nothing")
_EXPLANATIONS = {
    "superseded": "files read or written again later",
    "duplicate": "outputs that a later one holds",
    "reasoning": "reasoning of old turns",
    "failed": "outputs of failed calls",
    "output": "old tool outputs, cut",
    "arguments": "long arguments of old calls",
    "episode": "old work, replaced by notes",
    "prose": "old answers, cut to their first paragraph",
}


@takes(
    Argument("RANGE", "range", "Only these messages: FROM..TO, by address or commit", OPTIONAL),
    Option(
        "--to",
        "to",
        "The target in tokens, such as 80k, or in percent of the messages' tokens: 50%",
        "TOKENS",
    ),
    Option(
        "--percent", "percent", "Keep this percentage of the messages' tokens", "N", number=True
    ),
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
) -> ResultsAndCode:
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
    with opened(invocation) as repo:
        result = repo.compression.trim(
            repo.compression.target(to or f"{percent}%", ref=branch),
            range or (f"{first}.." if first else ""),
            keep_last=keep_last,
            partial=partial,
            dry_run=dry_run,
            message=message,
            ref=branch,
        )
        return (yield from _trimmed(invocation, repo, result, dry_run=dry_run))


@takes(_DRY_RUN, BRANCH, MESSAGE, JSON, QUIET)
def dedupe(
    invocation: Invocation,
    *,
    dry_run: bool,
    branch: str,
    message: str,
) -> ResultsAndCode:
    """Let repeated reads of a file, and repeated outputs, point to the newest one.

    An output leaves if a later one has all of its lines, or shows a newer version of the whole file; lines that the
    newer version no longer has are listed. One commit; `trace undo` takes it back.

        trace dedupe --dry-run
    """
    with opened(invocation) as repo:
        result = repo.compression.dedupe(dry_run=dry_run, message=message, ref=branch)
        return (yield from _trimmed(invocation, repo, result, dry_run=dry_run))


def _trimmed(
    invocation: Invocation, repo: Repo, result: TrimResult, *, dry_run: bool
) -> ResultsAndCode:
    if result.commit is not None:
        finish(invocation, repo)
    yield result, _trim_lines(invocation, result, dry_run=dry_run)
    return EXIT_INVALID if dry_run and not result.met else EXIT_OK


def _trim_lines(invocation: Invocation, result: TrimResult, *, dry_run: bool) -> Iterator[str]:
    rows = [
        (_EXPLANATIONS[step.reason], number(step.count), f"-{number(step.tokens)}")
        for step in result.steps
    ]
    rows.append(("resulting context", "", number(result.after)))
    yield from table(invocation, ("", "messages", "tokens"), rows, LEFT + RIGHT + RIGHT)
    for address, lines in result.older:
        stand = "stands" if len(lines) == 1 else "stand"
        yield f"{address.short(8)}: {counted(len(lines), 'line')} of this version {stand} nowhere else:"
        yield from (f"    {one_line(line, 120)}" for line in lines[:_LISTED])
        if len(lines) > _LISTED:
            yield f"    and {number(len(lines) - _LISTED)} more: --json"
    if not result.steps:
        verb = "dedupe" if result.target is None else "trim"
        invocation.note(f"nothing to {verb}" if result.met else "nothing can be trimmed")
    if not result.met and result.target is not None:
        invocation.note(f"the target of {number(result.target)} tokens cannot be met; this stays:")
        for name, tokens in result.stays.items():
            invocation.note(f"  {number(tokens):>9}  {name}")
    if result.commit is not None:
        saved = savings(result.before, result.after, result.messages)
        yield f"{result.commit.oid.short()} {number(result.before)} to {number(result.after)} tokens: {saved}"
    elif dry_run and result.steps:
        invocation.note(f"nothing was written: {number(result.before)} tokens are in the context")


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
) -> Results:
    """Propose what could be shortened, replaced by a note, or pinned, with the tokens saved and the reason.

    The strip shows the heat of the context from its start to its end: how much the later messages still use each part.
    Nothing is written without --apply; `trace undo` takes it back. The reasons:

        superseded   the file was read or written again later, as a whole
        stale        the file has changed on disk since it was read
        duplicate    a later output has all of its lines
        similar      a later output is almost the same
        failed       the call failed; its error stays
        cold         no later message uses the output, or the turn, any more
        pin          many later messages use what the user said here

        trace suggest
        trace suggest --apply 1,3-5
    """
    with opened(invocation) as repo:
        found = repo.compression.suggest(ref=branch)
        if chosen is not None:
            picked = [
                found.proposals[n] for n in places_in(chosen, len(found.proposals), "--apply")
            ]
            if not picked:
                yield {"commit": None, "applied": 0, "changed": False}, NOTHING
                return
            result = repo.compression.apply(picked, message=message, ref=branch)
            finish(invocation, repo)
            saved = sum(each.tokens for each in picked)
            what = f"{counted(len(picked), 'proposal')} applied, {number(saved)} tokens saved"
            applied = {
                "commit": result.oid,
                "applied": len(picked),
                "changed": result.changed,
            }
            yield applied, f"{result.oid.short()} {what}" if result.changed else NOTHING
            return
        numbered = enumerate(found.proposals, 1)
        yield (
            lambda: trace_store.record(
                found, proposals=[trace_store.record(each, number=n) for n, each in numbered]
            ),
            _lines(invocation, found, most),
        )


def _lines(invocation: Invocation, found: Suggestions, most: int | None) -> Iterator[str]:
    strip = _strip(found.heat, found.sizes)
    if strip:
        yield f"heat  start {strip} end"
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
    yield from table(invocation, header, rows, RIGHT + LEFT + RIGHT + LEFT + LEFT + LEFT)
    saved = sum(each.tokens for each in found.proposals)
    if len(found.topics) > 1:
        largest = sorted(found.topics, key=lambda each: -each.tokens)[:_TOPICS]
        yield from table(
            invocation,
            ("tokens", "heat", "turns", "topic"),
            [
                (
                    number(t.tokens),
                    heat_bar(t.heat),
                    number(len(t.turns)),
                    one_line(", ".join(t.names), 80),
                )
                for t in largest
            ],
            RIGHT + LEFT + RIGHT + LEFT,
        )
    if found.proposals:
        what = counted(len(found.proposals), "proposal")
        yield f"{what}: saving {number(saved)} of {counted(found.tokens, 'token')}"
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

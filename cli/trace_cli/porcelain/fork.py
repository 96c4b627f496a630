"""`trace fork`: branches to try something, side by side, and the choice between them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from trace_cli.arguments import SOME, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, QUIET, finish, opened
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import LEFT, fit, number, table, terminal_width
from trace_cli.runtime import Invocation
from trace_store.checkpoints.comparison import ForkComparison
from trace_store.repo.repository import Repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

COMPARE, MERGE = "compare", "merge"
_WIDTH = 120
_SHOWN = 10
"""How many messages, files or decisions of a side are shown for people."""


@takes(
    Argument(
        "NAME",
        "words",
        "The new branch; `compare A B` shows two side by side, `merge WINNER LOSER` keeps one",
        SOME,
        completes="BRANCH",
    ),
    Option(
        "--from",
        "start",
        "The last message that it has, or a commit; HEAD if not given",
        "ADDRESS",
        default="",
    ),
    Option("--ref", "ref", "Fork this branch instead of HEAD's", "BRANCH", default="HEAD"),
    Option("-s --switch", "goes", "Go to the new branch"),
    Option("--html", "html", "With compare: write a page to FILE", "FILE"),
    Option("-m --message", "reason", "With merge: why the winner is kept", "REASON", default=""),
    JSON,
    QUIET,
)
def fork(
    invocation: Invocation,
    *,
    words: list[str],
    start: str,
    ref: str,
    goes: bool,
    html: str | None,
    reason: str,
) -> Results:
    """Fork a branch, compare two forks, or keep one of them.

    A fork is a branch that remembers its starting point. `fork merge` keeps the winner, records on it what the
    loser came to, and archives the loser as a checkpoint. If the winner was forked from the loser, the loser's name
    moves to the winner.

        trace fork idea                        a branch from here
        trace fork idea --from 8a3fe622.3      a branch that ends with this message
        trace fork compare main idea           messages, tokens, files, decisions, outcome
        trace fork compare main idea --html comparison.html
        trace fork merge idea main -m "half the code"
    """
    verb = words[0] if words[0] in (COMPARE, MERGE) and len(words) != 1 else ""
    if len(words) != (3 if verb else 1):
        raise usage_error(
            f"{verb or 'a fork'} takes {'two branches' if verb else 'one name'}",
            "for example: trace fork idea, trace fork compare main idea, trace fork merge idea main",
        )
    if verb and (start or goes or ref != "HEAD"):
        raise usage_error(f"--from, --ref and --switch are not for fork {verb}")
    if (html and verb != COMPARE) or (reason and verb != MERGE):
        raise usage_error(f"{'--html goes with compare' if html else '--message goes with merge'}")
    with opened(invocation) as repo:
        if verb == COMPARE:
            yield from _compare(invocation, repo, words[1:], html)
        elif verb == MERGE:
            yield from _merge(invocation, repo, words[1:], reason)
        else:
            yield from _create(invocation, repo, words[0], start, ref, goes)


def _create(
    invocation: Invocation,
    repo: Repo,
    name: str,
    start: str,
    ref: str,
    goes: bool,
) -> Results:
    made = repo.forks.create(name, start=start, ref=ref)
    if goes:
        repo.branches.switch(made.name)
    finish(invocation, repo)
    short = safe(made.name)
    of = f" of {safe(made.parent.removeprefix('refs/heads/'))}" if made.parent else ""
    then = "HEAD is on it" if goes else f"`trace switch {short}` goes to it"
    yield made, f"fork {short}{of} begins at {made.point.short()}; {then}"


def _compare(
    invocation: Invocation,
    repo: Repo,
    names: Sequence[str],
    html: str | None,
) -> Results:
    found = repo.forks.compare(*names)
    if html is not None:
        found.save_page(os.path.join(invocation.folder, html))
    wrote = "" if html is None else f"wrote {one_line(html, 200)}"
    yield found, wrote or _comparison_lines(invocation, found)


def _comparison_lines(invocation: Invocation, found: ForkComparison) -> Iterator[str]:
    """Yield both sides beside each other."""
    sides = (found.left, found.right)
    width = max(20, ((terminal_width(invocation) or _WIDTH) - 12) // 2)
    first, second = (side.numbers() for side in sides)
    rows: list[tuple[str, ...]] = [(n, number(first[n]), number(second[n])) for n in first]
    sections = [side.sections() for side in sides]
    for title in sections[0]:
        columns = [each[title] for each in sections]
        if title == "outcome":
            columns = [_wrapped(each[0], width) for each in columns]
        rows += _rows(title, columns)
    shown = [(row[0], *(fit(one_line(cell, 500), width) for cell in row[1:])) for row in rows]
    if not found.is_related:
        yield found.start
    since = f"since {found.point.short()}" if found.point else ""
    header = [since, *(fit(safe(side.name), width) for side in sides)]
    yield from table(invocation, header, shown, LEFT * 3)


def _rows(title: str, columns: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the last lines of two columns as rows, the first one with the title."""
    shown = []
    for column in columns:
        more = len(column) - _SHOWN
        shown.append([*([f"({more} more)"] if more > 0 else []), *column[-_SHOWN:]])
    height = max(map(len, shown))
    padded = [[*column, *[""] * (height - len(column))] for column in shown]
    return [(title if at == 0 else "", *row) for at, row in enumerate(zip(*padded, strict=True))]


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap  # few commands wrap text

    return textwrap.wrap(one_line(text, 800), width)


def _merge(
    invocation: Invocation,
    repo: Repo,
    names: Sequence[str],
    reason: str,
) -> Results:
    done = repo.forks.merge(*names, reason=reason)
    finish(invocation, repo)
    winner, loser = (safe(each.removeprefix("refs/heads/")) for each in (done.winner, done.loser))
    archive = safe(done.archived.removeprefix("refs/checkpoints/"))
    what = f"{loser} is at the same commit now" if done.is_moved else f"{loser} is deleted"
    yield (
        done,
        [
            f"kept {winner}, at {done.commit.short()}; {what}",
            f"{loser} was at {done.archived_tip.short()}: checkpoint {archive}; `trace undo` brings it back",
        ],
    )

"""`trace reset`, `trace undo`, `trace redo` and `trace reflog`."""

from __future__ import annotations

import trace_store
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, NOTHING, QUIET, finish, opened
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import counted, moment, paint
from trace_store.base.ident import count_of, format_time, is_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_cli.runtime import Invocation, Results
    from trace_store.base.oid import ObjectId
    from trace_store.history.undo import UndoResult

LINE = 280
"""The longest line about a move, in characters."""
LISTED = 20
"""How many operations `undo --list` shows."""
SEE_LIST = "`trace undo --list` numbers the operations"
DRY_RUN = Option("-n --dry-run", "dry_run", "Only print what would be done")


@takes(
    Argument(
        "REVISION",
        "revision",
        "The commit to reset to",
        OPTIONAL,
        default="HEAD",
        completes="COMMIT",
    ),
    Option("--soft", "soft", "Stage the commits after it (default)"),
    Option("--hard", "hard", "Move the commits after it to the trash"),
    JSON,
    QUIET,
)
def reset(
    invocation: Invocation,
    *,
    revision: str,
    soft: bool,
    hard: bool,
) -> Results:
    """Reset the current branch to a commit.

    Nothing is lost: ORIG_HEAD and the reflog name the old tip. With --soft, the later commits stay staged as
    `staged/heads/NAME`; with --hard they go to the trash. `trace undo` reverts either.

        trace reset HEAD~2             go back two commits and stage them
        trace reset --hard main~3      go back; the trash keeps the later commits
        trace reset --hard ORIG_HEAD   go to the previous tip
    """
    if soft and hard:
        raise usage_error("--soft and --hard exclude each other")
    with opened(invocation) as repo:
        done = repo.reset(revision, hard=hard)
        finish(invocation, repo)
        name = "HEAD" if done.ref is None else safe(done.ref.removeprefix("refs/heads/"))
        lines = [f"{name} is at {paint(invocation, done.after.short(), 'yellow')}"]
        if not done.changed:
            lines = [f"{NOTHING}: {lines[0]}"]
        if done.kept is not None:
            what = "the later commits" if not done.count else counted(done.count, "commit")
            where = "kept" if hard else "staged"
            where = where if done.count else f"is {where}"
            lines.append(f"{what} {where} as {safe(done.kept.removeprefix('refs/'))}")
        yield done, lines


@takes(
    Argument("N", "number", "Undo the operations 1 to N", OPTIONAL),
    Option("-l --list", "listed", "List the last operations, numbered"),
    Option(
        "-b --branch",
        "branch",
        "Undo the last operation that moved this branch",
        "BRANCH",
        default="",
        completes="BRANCH",
    ),
    Option("-a --all", "everyone", "Also those of others"),
    DRY_RUN,
    JSON,
    QUIET,
)
def undo(
    invocation: Invocation,
    *,
    number: str | None,
    listed: bool,
    branch: str,
    everyone: bool,
    dry_run: bool,
) -> Results:
    """Undo the last command that moved a branch, a tag or HEAD.

    Repeat it to undo earlier commands; `trace redo` redoes them. Commands are found in this working copy's reflogs.
    Commands that move no ref, such as purge, prune and config, cannot be undone: right after one, `trace undo` says
    which command is before it, and `trace undo 1` undoes that. Commands of other authors need --all.

        trace undo --list              list the last operations
        trace undo 3                   undo operations 1 to 3
        trace undo --branch idea       undo the last operation that moved it, whatever came after elsewhere
    """
    if branch and (listed or number is not None):
        raise usage_error("--branch takes no number and no --list")
    if listed and (number is not None or dry_run):
        raise usage_error("--list takes no number")
    if number is not None and not (is_count(number) and count_of(number)):
        raise usage_error(f"not the number of an operation: {number[:40]!r}", SEE_LIST)
    if listed:
        yield from _listed(invocation, everyone=everyone)
        return
    with opened(invocation) as repo:
        if number is None:
            undone = [repo.undo(ref=branch, everyone=everyone, dry_run=dry_run)]
        else:
            undone = repo.undo_to(count_of(number), everyone=everyone, dry_run=dry_run)
        if not dry_run:
            finish(invocation, repo)
        last, others = undone[-1], undone[0].others
        if others and not invocation.quiet:
            stay = "operation of others stays" if others == 1 else "operations of others stay"
            invocation.note(f"note: {others} newer {stay}; `trace undo --list` shows which")
        for done in undone:
            yield done, _step_lines(done, "undone", dry_run=dry_run, is_last=done is last)


@takes(Option("-a --all", "everyone", "Also what others undid"), DRY_RUN, JSON, QUIET)
def redo(invocation: Invocation, *, everyone: bool, dry_run: bool) -> Results:
    """Redo what `trace undo` undid last, unless another command ran since."""
    with opened(invocation) as repo:
        done = repo.redo(everyone=everyone, dry_run=dry_run)
        if not dry_run:
            finish(invocation, repo)
        yield done, _step_lines(done, "redone", dry_run=dry_run, is_last=True)


def _listed(invocation: Invocation, *, everyone: bool) -> Results:
    """List the last operations, newest first; those without a number are not undone."""
    with opened(invocation) as repo:
        found = repo.operations(LISTED, everyone=everyone)
        if not found:
            invocation.note("nothing to undo")
        for each in found:
            number = "-" if each.number is None else str(each.number)
            author = one_line(each.author, 40)
            by = "" if each.author == repo.writer.author else f" (by {author})"
            note = "" if each.can_be_undone else " (cannot be undone)"
            said = one_line(each.summary, LINE)
            yield each, f"{number:>3}  {moment(format_time(each.time))}  {said}{by}{note}"


@takes(
    Argument("REF", "name", "A branch or another ref", OPTIONAL, default="HEAD", completes="REF"),
    Option("-n --max-count", "limit", "Stop after N entries", "N", number=True, bare=True),
    JSON,
)
def reflog(invocation: Invocation, *, name: str, limit: int | None) -> Results:
    """List the previous positions of HEAD or a branch, newest first.

    The reflog is local to this working copy. All commands accept `HEAD@{2}` for the position two moves ago.
    """
    with opened(invocation) as repo:
        full = repo.branches.find_reflog(name)
        for number, entry in enumerate(repo.branches.reflog(full, limit=limit)):
            at = "-" * 12 if entry.new is None else entry.new.short()
            when = moment(format_time(entry.time))
            line = repo.branches.move_line(entry.message, entry.old, entry.new)
            said = one_line(line, LINE) or "moved"
            entry_name = f"{safe(name)}@{{{number}}}"
            text = f"{paint(invocation, at, 'yellow')}  {when}  {entry_name}: {said}"
            yield lambda e=entry, n=number: trace_store.record(e, ref=full, number=n), text


def _step_lines(done: UndoResult, word: str, *, dry_run: bool, is_last: bool) -> Iterator[str]:
    when = moment(format_time(done.time))
    word = f"would be {word}" if dry_run else word
    yield f"{word}: {one_line(done.summary, LINE)} ({when} UTC)"
    for name, before, now in done.moves:
        if not name.startswith("refs/trash/") and before != now:
            yield f"    {safe(name)}: {_place(before)} -> {_place(now)}"
    if done.head.ref is not None and not dry_run and is_last:
        at = "no commit yet" if done.head.oid is None else done.head.oid.short()
        name = safe(done.head.ref.removeprefix("refs/heads/"))
        yield f"on branch {name} at {at}"


def _place(oid: ObjectId | None) -> str:
    return "nothing" if oid is None else oid.short()

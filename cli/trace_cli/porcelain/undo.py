"""`trace reset`, `trace undo`, `trace redo` and `trace reflog`."""

from __future__ import annotations

import trace_store
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, QUIET, finish, opened
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted, moment, paint
from trace_store import Repo
from trace_store.ident import format_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_cli.runtime import Invocation
    from trace_store.history.undo import UndoResult
    from trace_store.oid import ObjectId

LINE = 280
"""The longest line about a move, in characters."""
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
    as_json: bool,
    quiet: bool,
) -> None:
    """Reset the current branch to a commit.

    Nothing is lost: ORIG_HEAD and the reflog name the old tip. With --soft, the later commits stay staged as
    `staged/heads/NAME`; with --hard they go to the trash. `trace undo` reverts either.

        trace reset HEAD~2             go back two commits and stage them
        trace reset --hard main~3      go back; the trash keeps the later commits
        trace reset --hard ORIG_HEAD   go to the previous tip
    """
    if soft and hard:
        raise usage_error("--soft and --hard exclude each other")
    with opened(invocation, quiet=quiet) as repo:
        done = repo.reset(revision, hard=hard)
        finish(invocation, repo)
        if as_json:
            record = {
                "ref": done.ref,
                "before": _hex(done.before),
                "commit": str(done.after),
                "kept": done.kept,
                "count": done.count,
            }
            write_record(invocation, record)
        if as_json or quiet:
            return
        name = "HEAD" if done.ref is None else safe(done.ref.removeprefix("refs/heads/"))
        invocation.line(f"{name} is at {paint(invocation, done.after.short(), 'yellow')}")
        if done.kept is not None:
            what = "the later commits" if not done.count else counted(done.count, "commit")
            where = "kept" if hard else "staged"
            where = where if done.count else f"is {where}"
            invocation.line(f"{what} {where} as {safe(done.kept.removeprefix('refs/'))}")


@takes(DRY_RUN, JSON, QUIET)
def undo(invocation: Invocation, *, dry_run: bool, as_json: bool, quiet: bool) -> None:
    """Undo the last command that moved a branch, a tag or HEAD.

    Repeat it to undo earlier commands; `trace redo` redoes them. Commands are found in this working copy's reflogs.
    Commands that move no ref, such as purge, prune and config, cannot be undone.
    """
    _step(invocation, Repo.undo, "undone", dry_run=dry_run, as_json=as_json, quiet=quiet)


@takes(DRY_RUN, JSON, QUIET)
def redo(invocation: Invocation, *, dry_run: bool, as_json: bool, quiet: bool) -> None:
    """Redo what `trace undo` undid last, unless another command ran since."""
    _step(invocation, Repo.redo, "redone", dry_run=dry_run, as_json=as_json, quiet=quiet)


@takes(
    Argument("REF", "name", "A branch or another ref", OPTIONAL, default="HEAD", completes="REF"),
    Option("-n --max-count", "limit", "Stop after N entries", "N", number=True, bare=True),
    JSON,
)
def reflog(invocation: Invocation, *, name: str, limit: int | None, as_json: bool) -> None:
    """List the previous positions of HEAD or a branch, newest first.

    The reflog is local to this working copy. All commands accept `HEAD@{2}` for the position two moves ago.
    """
    with opened(invocation) as repo:
        full = repo.branches.find_reflog(name)
        for number, entry in enumerate(repo.branches.reflog(full, limit=limit)):
            if as_json:
                record = {
                    "ref": full,
                    "number": number,
                    "before": _hex(entry.old),
                    "commit": _hex(entry.new),
                    "time": format_time(entry.time),
                    "author": entry.author,
                    "message": entry.message,
                }
                write_record(invocation, record)
                continue
            at = "-" * 12 if entry.new is None else entry.new.short()
            when = moment(format_time(entry.time))
            line = repo.branches.move_line(entry.message, entry.old, entry.new)
            said = one_line(line, LINE) or "moved"
            entry_name = f"{safe(name)}@{{{number}}}"
            invocation.line(f"{paint(invocation, at, 'yellow')}  {when}  {entry_name}: {said}")


def _step(
    invocation: Invocation,
    step: Callable[..., UndoResult],
    word: str,
    *,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    with opened(invocation, quiet=quiet) as repo:
        done = step(repo, dry_run=dry_run)
        if not dry_run:
            finish(invocation, repo)
        if as_json:
            write_record(invocation, trace_store.records.undone(done))
        if as_json or quiet:
            return
        when = moment(format_time(done.time))
        word = f"would be {word}" if dry_run else word
        ends = next((move[1:] for move in done.moves if move[0] == done.head.ref), (None, None))
        line = repo.branches.move_line(done.message, ends[1], ends[0])
        said = one_line(line, LINE) or "a move"
        invocation.line(f"{word}: {said} ({when} UTC)")
        for name, before, now in done.moves:
            if not name.startswith("refs/trash/") and before != now:
                invocation.line(f"    {safe(name)}: {_place(before)} -> {_place(now)}")
        if done.head.ref is not None and not dry_run:
            at = "no commit yet" if done.head.oid is None else done.head.oid.short()
            name = safe(done.head.ref.removeprefix("refs/heads/"))
            invocation.line(f"on branch {name} at {at}")


def _place(oid: ObjectId | None) -> str:
    return "nothing" if oid is None else oid.short()


def _hex(oid: ObjectId | None) -> str | None:
    return None if oid is None else str(oid)

"""`trace reset`, `trace undo`, `trace redo` and `trace reflog`: steps back, and what was done."""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, QUIET, check_nothing_waits, finish, opened_store
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted, moment, paint
from trace_store import errors, history
from trace_store.ident import format_time
from trace_store.objects.commit import read_commit
from trace_store.oid import is_full_id
from trace_store.refs.log_messages import UNDO, read_join, split_undo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from trace_cli.runtime import Invocation
    from trace_store.history.undo import UndoResult
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

SHORT = 12
DRY_RUN = Option("-n --dry-run", "dry_run", "Say what would be done, and do nothing")


@takes(
    Argument(
        "REVISION", "revision", "Where to go back to", OPTIONAL, default="HEAD", completes="COMMIT"
    ),
    Option("--soft", "soft", "Stage what was after, to be committed again; it is the default"),
    Option("--hard", "hard", "Put what was after into the trash"),
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
    """Move HEAD's branch to a commit.

    Nothing is lost. ORIG_HEAD names where the branch stood, and its reflog does. With --soft what was after stays as
    one ref, `staged/heads/NAME`; with --hard it goes to the trash. `trace undo` takes either back.

        trace reset HEAD~2             go two commits back; what they did is staged
        trace reset --hard main~3      go back; what was after is in the trash
        trace reset --hard ORIG_HEAD   go where the branch was before
    """
    if soft and hard:
        raise usage_error("--soft and --hard are two ways; choose one")
    with opened_store(invocation, quiet=quiet) as store:
        check_nothing_waits(store)
        author = invocation.environment.author
        step = history.reset.reset_hard if hard else history.reset.reset_soft
        done = step(store, revision, author=author)
        finish(invocation, store)
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
            what = "what was after" if not done.count else counted(done.count, "commit")
            where = "kept" if hard else "staged"
            where = where if done.count else f"is {where}"
            invocation.line(f"{what} {where} as {safe(done.kept.removeprefix('refs/'))}")


@takes(DRY_RUN, JSON, QUIET)
def undo(invocation: Invocation, *, dry_run: bool, as_json: bool, quiet: bool) -> None:
    """Take back the last command that moved a branch, a tag or HEAD.

    Called again, it takes back the one before; `trace redo` takes up again what was taken back. Each is found in the
    reflogs of this working copy. Commands that move no ref, such as purge, prune and config, cannot be undone.
    """
    _step(invocation, history.undo.undo, "undone", dry_run=dry_run, as_json=as_json, quiet=quiet)


@takes(DRY_RUN, JSON, QUIET)
def redo(invocation: Invocation, *, dry_run: bool, as_json: bool, quiet: bool) -> None:
    """Take up again what `trace undo` took back last, unless something else was done since."""
    _step(
        invocation, history.undo.redo, "done again", dry_run=dry_run, as_json=as_json, quiet=quiet
    )


@takes(
    Argument("REF", "name", "A branch or another ref", OPTIONAL, default="HEAD", completes="REF"),
    Option("-n --max-count", "limit", "At most so many entries", "N", number=True, bare=True),
    JSON,
)
def reflog(invocation: Invocation, *, name: str, limit: int | None, as_json: bool) -> None:
    """List where HEAD, or a branch, has been, newest first.

    The log belongs to this working copy. `HEAD@{2}` names where HEAD was two moves ago, in every command.
    """
    with opened_store(invocation) as store:
        full = history.reflog.find_log(store, name)
        for number, entry in enumerate(history.reflog.newest_first(store, full)):
            if number == limit:
                break
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
            said = _said(store, entry.message, entry.old, entry.new) or "moved"
            told = f"{safe(name)}@{{{number}}}"
            invocation.line(f"{paint(invocation, at, 'yellow')}  {when}  {told}: {said}")


def _step(
    invocation: Invocation,
    step: Callable[..., UndoResult],
    word: str,
    *,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    with opened_store(invocation, quiet=quiet) as store:
        if not dry_run:
            check_nothing_waits(store)
        done = step(store, author=invocation.environment.author, dry_run=dry_run)
        if not dry_run:
            finish(invocation, store)
        if as_json:
            write_record(invocation, _record(done))
        if as_json or quiet:
            return
        when = moment(format_time(done.time))
        word = f"would be {word}" if dry_run else word
        ends = next((move[1:] for move in done.moves if move[0] == done.head.ref), (None, None))
        said = _said(store, done.message, ends[1], ends[0]) or "a move"
        invocation.line(f"{word}: {said} ({when} UTC)")
        for name, before, now in done.moves:
            if not name.startswith("refs/trash/") and before != now:
                invocation.line(f"    {safe(name)}: {_place(before)} -> {_place(now)}")
        if done.head.ref is not None and not dry_run:
            at = "no commit yet" if done.head.oid is None else done.head.oid.short()
            name = safe(done.head.ref.removeprefix("refs/heads/"))
            invocation.line(f"on branch {name} at {at}")


def _record(done: UndoResult) -> dict[str, Any]:
    return {
        "message": done.message,
        "author": done.author,
        "time": format_time(done.time),
        "moves": [
            {"ref": name, "before": _hex(before), "now": _hex(now)}
            for name, before, now in done.moves
        ],
        "ref": done.head.ref,
        "commit": _hex(done.head.oid),
    }


def _said(store: Store, message: str, old: ObjectId | None, new: ObjectId | None) -> str:
    """Return what a reflog says, and of a commit about which nobody said anything what it did."""
    word, said = split_undo(read_join(message)[1])
    told, oid = _told(message), old if word == UNDO else new
    if said != "commit" or oid is None:
        return told
    try:
        commit = read_commit(oid, store.objects.read)
        return f"{told}: {one_line(history.summary.summary(store, commit), 72)}"
    except errors.TraceError:
        return told  # it is gone, or damaged: that is for others to tell


def _told(message: str) -> str:
    """Return what a reflog says, for people: ids in it are cut."""
    words = (word[:SHORT] if is_full_id(word) else word for word in message.split(" "))
    return one_line(" ".join(words), 200)


def _place(oid: ObjectId | None) -> str:
    return "nothing" if oid is None else oid.short()


def _hex(oid: ObjectId | None) -> str | None:
    return None if oid is None else str(oid)

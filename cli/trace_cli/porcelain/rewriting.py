"""`trace cherry-pick`, `trace rebase` and `trace move`: commits made anew, and messages in another place."""

from __future__ import annotations

from trace_cli import porcelain
from trace_cli.arguments import ANY, OPTIONAL, SOME, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.advising import judge as judging
from trace_cli.porcelain.conflicts import conflict_records, settled_records
from trace_cli.porcelain.editing import edited
from trace_cli.porcelain.opening import (
    JSON,
    MESSAGE,
    QUIET,
    SECRETS,
    finish,
    opened_store,
    something_waits,
)
from trace_cli.porcelain.reading import text_from
from trace_cli.porcelain.stopping import FAVOUR, GOING_ON, Run
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import address_text, short_address, write_record
from trace_cli.render.tables import counted
from trace_store import branching, history, joining
from trace_store.joining.moving import AFTER, BEFORE, FIRST, LAST
from trace_store.joining.moving import move as move_messages
from trace_store.joining.rewriting import todo
from trace_store.joining.rewriting.steps import UP_TO_DATE
from trace_store.joining.stops import CHERRY_PICK, REBASE
from trace_store.objects.commit import read_commit
from trace_store.revision import resolve_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from trace_cli.runtime import Invocation
    from trace_store.joining import Judge
    from trace_store.joining.rewriting.steps import Rewrite
    from trace_store.joining.rewriting.todo import Step
    from trace_store.joining.safety import MeaningWarning
    from trace_store.oid import ObjectId
    from trace_store.secrets import Guard
    from trace_store.store import Store

JUDGE = Option(
    "--judge", "judge", "Ask the model of `trace config model` what may mean something else"
)


@takes(
    Argument(
        "WHAT...",
        "wanted",
        "Commits, ranges A..B, or addresses of messages",
        ANY,
        completes="COMMIT",
    ),
    Option("--at", "at", "Take single messages as they are at REVISION", "REVISION", default=""),
    FAVOUR,
    JUDGE,
    *GOING_ON,
    SECRETS,
    JSON,
    QUIET,
)
def cherry_pick(
    invocation: Invocation,
    *,
    wanted: list[str],
    at: str,
    favour: str,
    judge: bool,
    go_on: bool,
    abort: bool,
    skip: bool,
    secrets: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Put copies of commits or messages at the end of the current branch.

    Each copy names what it was made from. A single message comes with the calls or results that it stands with, as they
    are in its commit, or with --at in that context. At conflicts nothing is written, as with `trace merge`.
    """
    run = Run(
        invocation,
        CHERRY_PICK,
        go_on=go_on,
        abort=abort,
        skip=skip,
        secrets=secrets,
        as_json=as_json,
        quiet=quiet,
    )
    run.check("WHAT", wanted)

    def begin(store: Store, guard: Guard) -> Rewrite:
        author = invocation.environment.author
        return joining.cherry_pick(
            store,
            wanted,
            author=author,
            at=at,
            favour=favour,
            guard=guard,
            judge=judging(invocation, store, wanted=judge),
        )

    _carry_out(invocation, run, CHERRY_PICK, begin, judge=judge, quiet=quiet)


@takes(
    Argument(
        "UPSTREAM",
        "upstream",
        "What stays as it is; without it the branch's upstream",
        OPTIONAL,
        completes="COMMIT",
    ),
    Option(
        "--onto", "onto", "What the commits go on; UPSTREAM, if not given", "REVISION", default=""
    ),
    Option("--root", "root", "Make all commits of the branch anew, from its first one on"),
    Option("-i --interactive", "interactive", "Edit the to-do list first"),
    Option("--todo", "todo_file", "Read the to-do list from FILE; - reads it", "FILE"),
    Option("--print-todo", "print_todo", "Print the to-do list, and do nothing"),
    Option("--drop-pinned", "drop_pinned", "Let pinned messages be dropped"),
    FAVOUR,
    JUDGE,
    *GOING_ON,
    SECRETS,
    JSON,
    QUIET,
)
def rebase(
    invocation: Invocation,
    *,
    upstream: str | None,
    onto: str,
    root: bool,
    interactive: bool,
    todo_file: str | None,
    print_todo: bool,
    drop_pinned: bool,
    favour: str,
    judge: bool,
    go_on: bool,
    abort: bool,
    skip: bool,
    secrets: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Make the commits of the current branch since UPSTREAM anew, on top of it.

    Each keeps author, time and message, and names the one that it was made from, so that old addresses are still
    understood. With -i or --todo a list says what becomes of each, in any order: pick, reword, edit, squash, fixup or
    drop. What the branch stood for stays in the trash, and ORIG_HEAD names it.
    """
    run = Run(
        invocation,
        REBASE,
        go_on=go_on,
        abort=abort,
        skip=skip,
        secrets=secrets,
        as_json=as_json,
        quiet=quiet,
    )
    run.check("UPSTREAM", root or upstream, needed=False)
    if upstream and root:
        raise usage_error("--root makes all commits anew, so that there is no UPSTREAM")

    def begin(store: Store, guard: Guard) -> Rewrite | None:
        def plan(steps: Sequence[Step]) -> Sequence[Step]:
            text = todo.written(steps, lambda oid: _say(store, oid))
            if todo_file is not None:
                text = text_from(invocation, todo_file)
            elif interactive:
                text = edited(invocation, text, "todo")
            found = todo.read(text, [step.oid for step in steps])
            if (
                interactive
                and all(step.deed == todo.DROP for step in found)
                and not todo.lines(text)
            ):
                raise usage_error(
                    "the to-do list is empty, and nothing was done", "`drop ID` leaves a commit out"
                )
            return [_reworded(invocation, store, each) for each in found] if interactive else found

        base = None if root else upstream or branching.required_upstream(store)
        if print_todo:
            for line in _printed(store, base):
                invocation.line(line)
            return None
        return joining.rebase(
            store,
            base,
            author=invocation.environment.author,
            onto=onto,
            plan=plan if interactive or todo_file is not None else None,
            drop_pinned=drop_pinned,
            favour=favour,
            guard=guard,
            judge=judging(invocation, store, wanted=judge),
        )

    _carry_out(invocation, run, REBASE, begin, judge=judge, quiet=quiet, drop_pinned=drop_pinned)


@takes(
    Argument("ADDRESS...", "targets", "Messages, such as ab12cd.0", SOME, completes="ADDRESS"),
    Option("--after", "after", "Place them after this message", "ADDRESS", default=""),
    Option("--before", "before", "Place them before this message", "ADDRESS", default=""),
    Option("--first", "first", "Place them before all others"),
    Option("--last", "last", "Place them after all others"),
    Option("-n --dry-run", "dry_run", "Only say what it may change"),
    MESSAGE,
    JSON,
    QUIET,
)
def move(
    invocation: Invocation,
    *,
    targets: list[str],
    after: str,
    before: str,
    first: bool,
    last: bool,
    dry_run: bool,
    message: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Place messages elsewhere in the context, and warn when that may change what they mean.

    A tool call and its results move as one, and nothing is put between them.
    """
    ways = [(AFTER, after), (BEFORE, before), (FIRST, first), (LAST, last)]
    given = [(where, each) for where, each in ways if each]
    if len(given) != 1:
        raise usage_error("give one of --after, --before, --first and --last")
    where, beside = given[0]
    with opened_store(invocation, quiet=quiet) as store:
        found = move_messages(
            store,
            targets,
            where,
            beside if isinstance(beside, str) else "",
            author=invocation.environment.author,
            message=message,
            dry_run=dry_run,
        )
        finish(invocation, store, quiet=quiet)
        waits = None
        if found.result is not None and something_waits(store) and not quiet:
            porcelain.tell_stopped(invocation, store, [found.result.ref])
            waits = porcelain.waiting_record(porcelain.what_waits(store))
        if as_json:
            record = {
                "commit": str(found.result.oid) if found.result else None,
                "waiting": waits,
                "moved": [address_text(address) for address in found.moved],
                "after": address_text(found.after) if found.after else None,
                "warnings": _warning_records(found.warnings),
            }
            write_record(invocation, record)
            return
        _warn(invocation, found.warnings)
        if not quiet:
            done = f"{found.result.oid} " if found.result else ""
            count = len(found.moved)
            there = "stands there already" if count == 1 else "stand there already"
            said = "moved" if found.result else "would be moved" if dry_run else there
            invocation.line(f"{done}{counted(count, 'message')} {said}")


def _say(store: Store, oid: ObjectId) -> str:
    said = history.summary(store, read_commit(oid, store.objects.read), 60)
    return "".join(c if c.isprintable() else " " for c in said)


def _reworded(invocation: Invocation, store: Store, step: Step) -> Step:
    """Return a step of an edited list; whoever asks for another message without giving one is asked in an editor."""
    if step.deed != todo.REWORD or step.message not in ("", _say(store, step.oid)):
        return step
    said = read_commit(step.oid, store.objects.read).message
    message = edited(invocation, f"{said}\n", "message.txt").strip()
    if not message:
        raise usage_error("the message is empty, and nothing was done")
    return todo.Step(todo.REWORD, step.oid, message)


def _printed(store: Store, upstream: str | None) -> Iterable[str]:
    tip = resolve_commit(store, "HEAD")
    base = None if upstream is None else resolve_commit(store, upstream)
    steps = [todo.Step(todo.PICK, oid) for oid in joining.commits_since(store, base, tip)]
    return map(safe, todo.written(steps, lambda oid: _say(store, oid)).splitlines())


def _carry_out(
    invocation: Invocation,
    run: Run,
    kind: str,
    begin: Callable[[Store, Guard], Rewrite | None],
    *,
    judge: bool,
    quiet: bool,
    drop_pinned: bool = False,
) -> None:
    def tell(store: Store, found: Rewrite) -> None:
        if found.step is not None:
            invocation.line(f"at {found.step.oid.short()} {safe(_say(store, found.step.oid))}")
            return
        _warn(invocation, found.warnings)
        if not quiet:
            invocation.line(_line(found, kind))

    def judged(store: Store) -> Judge | None:
        return judging(invocation, store, wanted=judge)

    def record(store: Store, found: Rewrite) -> list[dict[str, Any]]:
        return [_record(store, found)]

    run.carry_out(begin, record, tell, judge=judged, drop_pinned=drop_pinned)


def _line(found: Rewrite, kind: str) -> str:
    branch = safe(found.ref.removeprefix("refs/heads/"))
    if found.outcome == UP_TO_DATE:
        return f"{branch} is up to date: there is nothing to do"
    what = "made anew" if kind == REBASE else "picked"
    kept = sum(old == new for old, new in found.made)
    count, new = len(found.made) - kept, len({new for old, new in found.made if old != new})
    parts = [f"{counted(count, 'commit')} {what}{f' as {new}' if new != count else ''}"]
    if kept:
        parts.append(f"{kept} as before")
    if found.dropped:
        parts.append(f"{len(found.dropped)} dropped")
    return f"{found.after} {', '.join(parts)}"


def _warn(invocation: Invocation, warnings: Iterable[MeaningWarning]) -> None:
    for warning in warnings:
        said = one_line(warning.meaning, 600)
        others = ", ".join(short_address(address) for address in warning.others)
        about = f" ({others})" if others else ""
        invocation.note(f"warning: {short_address(warning.address)}: {said}{about}")


def _warning_records(warnings: Iterable[MeaningWarning]) -> list[dict[str, Any]]:
    return [
        {
            "kind": warning.kind,
            "meaning": warning.meaning,
            "address": address_text(warning.address),
            "others": [address_text(address) for address in warning.others],
        }
        for warning in warnings
    ]


def _record(store: Store, found: Rewrite) -> dict[str, Any]:
    return {
        "outcome": found.outcome,
        "ref": found.ref,
        "before": str(found.before) if found.before else None,
        "commit": str(found.after) if found.after else None,
        "made": [{"from": str(old), "commit": str(new)} for old, new in found.made],
        "dropped": [str(oid) for oid in found.dropped],
        "stopped_at": str(found.step.oid) if found.step else None,
        "conflicts": conflict_records(store, found.conflicts),
        "settled": settled_records(found.settled),
        "warnings": _warning_records(found.warnings),
    }

"""`trace cherry-pick` and `trace rebase`: commits made anew."""

from __future__ import annotations

from trace_cli.arguments import ANY, OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.advising import judge as judging
from trace_cli.porcelain.conflicts import conflict_records, settled_records
from trace_cli.porcelain.opening import JSON, QUIET, SECRETS
from trace_cli.porcelain.planning import first_list, planned, printed, say, step_record
from trace_cli.porcelain.stopping import FAVOUR, GOING_ON, Run
from trace_cli.porcelain.warning import warn, warning_records
from trace_cli.render.escape import safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted
from trace_store import branching, joining
from trace_store.joining.rewriting.outcome import UP_TO_DATE
from trace_store.joining.stops import CHERRY_PICK, REBASE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from trace_cli.runtime import Invocation
    from trace_store.joining import Judge
    from trace_store.joining.rewriting.outcome import Rewrite
    from trace_store.joining.rewriting.todo import Step
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
    """Bring commits or messages of another branch to the end of the current one.

    Messages keep their addresses. A single message comes with its call or results, as they are in its commit, or with
    --at in that context. At conflicts nothing is written, as with `trace merge`.
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
    run.check("WHAT", wanted, alone=["--at"] * bool(at) + ["--favour"] * bool(favour))

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

    Each keeps author, time and message, and names the commit that it was made from. Messages keep their addresses. With
    -i or --todo a list says what becomes of each, in any order: pick, reword, edit, squash, fixup or drop. What the
    branch stood for stays in the trash, and ORIG_HEAD names it.
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
    beginning = {
        "--onto": onto,
        "--interactive": interactive,
        "--todo": todo_file is not None,
        "--print-todo": print_todo,
        "--favour": favour,
    }
    given = [option for option, is_ in beginning.items() if is_]
    run.check("UPSTREAM", root or upstream, needed=False, alone=given)
    ways = [each for each in given if each in ("--interactive", "--todo", "--print-todo")]
    if print_todo and interactive:
        ways.remove("--interactive")  # it prints what -i would show
    if len(ways) > 1:
        raise usage_error(f"{' and '.join(ways[:2])} are two ways; choose one")
    if upstream and root:
        raise usage_error("--root makes all commits anew, so that there is no UPSTREAM")

    def begin(store: Store, guard: Guard) -> Rewrite | None:
        def plan(steps: Sequence[Step]) -> Sequence[Step]:
            return planned(invocation, store, steps, todo_file)

        base = None if root else upstream or branching.required_upstream(store)
        if print_todo:
            _print_todo(invocation, store, first_list(store, base, onto), as_json=as_json)
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


def _print_todo(
    invocation: Invocation, store: Store, steps: Sequence[Step], *, as_json: bool
) -> None:
    if as_json:
        for step in steps:
            write_record(invocation, step_record(store, step))
    else:
        for line in printed(store, steps):
            invocation.line(line)


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
            invocation.line(f"at {found.step.oid.short()} {safe(say(store, found.step.oid))}")
            return
        warn(invocation, found.warnings)
        if not quiet:
            invocation.line(_line(invocation, found, kind))

    def judged(store: Store) -> Judge | None:
        return judging(invocation, store, wanted=judge)

    def record(store: Store, found: Rewrite) -> list[dict[str, Any]]:
        return [_record(store, found)]

    run.carry_out(begin, record, tell, judge=judged, drop_pinned=drop_pinned)


def _line(invocation: Invocation, found: Rewrite, kind: str) -> str:
    branch = safe(found.ref.removeprefix("refs/heads/"))
    if found.outcome == UP_TO_DATE and found.dropped:
        return f"{branch} is as it was: {counted(len(found.dropped), 'commit')} left out"
    if found.outcome == UP_TO_DATE and found.there:
        names = ", ".join(oid.short() for oid in found.there[:3])
        more = f" and {len(found.there) - 3} more" if len(found.there) > 3 else ""
        return f"{branch} has all of {names}{more} already: there is nothing to do"
    if found.outcome == UP_TO_DATE:
        return f"{branch} is up to date: there is nothing to do"
    oid = found.after.short() if found.after and invocation.terminal else found.after
    if found.before and not (found.made or found.there or found.dropped):
        return f"{oid} {branch} went forward from {found.before.short()}"
    what = "made anew" if kind == REBASE else "picked"
    kept = sum(old == new for old, new in found.made)
    count, new = len(found.made) - kept, len({new for old, new in found.made if old != new})
    parts = [f"{counted(count, 'commit')} {what}{f' as {new}' if new != count else ''}"]
    if kept:
        parts.append(f"{kept} as before")
    if found.there:
        parts.append(f"{len(found.there)} there already")
    if found.dropped:
        parts.append(f"{len(found.dropped)} dropped")
    return f"{oid} {', '.join(parts)}"


def _record(store: Store, found: Rewrite) -> dict[str, Any]:
    return {
        "outcome": found.outcome,
        "ref": found.ref,
        "before": str(found.before) if found.before else None,
        "commit": str(found.after) if found.after else None,
        "made": [{"from": str(old), "commit": str(new)} for old, new in found.made],
        "dropped": [str(oid) for oid in found.dropped],
        "there": [str(oid) for oid in found.there],
        "stopped_at": str(found.step.oid) if found.step else None,
        "conflicts": conflict_records(store, found.conflicts),
        "settled": settled_records(found.settled),
        "warnings": warning_records(found.warnings),
    }

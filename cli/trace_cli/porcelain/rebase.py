"""`trace cherry-pick` and `trace rebase`."""

from __future__ import annotations

from trace_cli.arguments import ANY, OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.advice import asked_model
from trace_cli.porcelain.common import JSON, QUIET, SECRETS
from trace_cli.porcelain.editor import edited, keep_typed
from trace_cli.porcelain.in_progress import FAVOUR, GOING_ON, Run, warn
from trace_cli.porcelain.input import text_from
from trace_cli.render.escape import safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted
from trace_store import context, errors, history, repo
from trace_store.context.content import message_line
from trace_store.merge import todo
from trace_store.merge.in_progress import CHERRY_PICK, REBASE
from trace_store.merge.result import UP_TO_DATE
from trace_store.objects import operations as ops
from trace_store.objects.commit import read_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from trace_cli.runtime import Invocation
    from trace_store.merge.result import Rewrite
    from trace_store.merge.todo import Step
    from trace_store.oid import ObjectId
    from trace_store.repo.in_progress import Stopped
    from trace_store.repo.repository import Repo
    from trace_store.store.handle import Store


def printed(store: Store, steps: Sequence[Step]) -> Iterable[str]:
    """Return the lines of a to-do list."""
    return map(safe, todo.written(steps, lambda oid: say(store, oid)).splitlines())


def step_record(store: Store, step: Step) -> dict[str, str]:
    """Return a step as JSON."""
    return {"action": step.action, "commit": str(step.oid), "summary": say(store, step.oid)}


def planned(
    invocation: Invocation, store: Store, steps: Sequence[Step], file: str | None
) -> Sequence[Step]:
    """Read the to-do list from a file, or let the user edit it.

    Raises:
        InvalidInputError: a line is invalid. An edited list is saved, and the hint names the file.
    """
    known = [step.oid for step in steps]
    if file is not None:
        return todo.read(text_from(invocation, file), known)
    if not steps:
        return steps
    written = todo.written(steps, lambda oid: say(store, oid))
    editor = invocation.environment.list_editor
    otherwise = "use --todo FILE; --print-todo prints a list to start from"
    text = edited(invocation, written, "todo", otherwise, editor)
    if not todo.lines(text):
        raise usage_error(
            "the to-do list is empty; nothing was changed", "`drop ID` drops a commit"
        )
    try:
        found = todo.read(text, known)
    except errors.InvalidInputError as error:
        kept = keep_typed(store, text, "todo")
        hint = f"the list is saved; fix it, then use --todo {kept} in place of -i"
        words = ", ".join(todo.ACTIONS)
        raise errors.InvalidInputError(f"{error.message}; actions: {words}", hint=hint) from error
    return [_reworded(invocation, store, each) for each in found]


def say(store: Store, oid: ObjectId) -> str:
    """Return a commit's summary on one line."""
    read = store.objects.read
    commit = read_commit(oid, read)
    said = history.summary.summary(store, commit, 60)
    targets = [each for operation in commit.operations for each in ops.targets_of(operation, oid)]
    if len(targets) == 1 and not commit.message:
        try:
            message = context.snapshots.fold_of(store, oid).entry(targets[0]).message
            said += f" ({message_line(message, read, 40)})"
        except (errors.NotFoundError, errors.FormatError):
            pass  # the summary has the address
    return "".join(c if c.isprintable() else " " for c in said)


def _reworded(invocation: Invocation, store: Store, step: Step) -> Step:
    """Return a step, with its message edited if `reword` gives none."""
    if step.action != todo.REWORD or step.message not in ("", say(store, step.oid)):
        return step
    said = read_commit(step.oid, store.objects.read).message
    otherwise = "write `reword ID MESSAGE`"
    message = edited(invocation, f"{said}\n", "message.txt", otherwise).strip()
    if not message:
        raise usage_error("the message is empty; nothing was changed")
    return todo.Step(todo.REWORD, step.oid, message)


JUDGE = Option("--judge", "judge", "Ask the model which messages may have changed their meaning")


@takes(
    Argument(
        "WHAT...",
        "wanted",
        "Commits, ranges A..B, or message addresses",
        ANY,
        completes="COMMIT",
    ),
    Option("--at", "at", "Apply single messages as of REVISION", "REVISION", default=""),
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
    """Apply commits or messages from another branch to the end of this one.

    Messages keep their addresses. A single message comes with its call or results, as of its commit, or with --at as of
    another revision. At conflicts nothing is written, as with `trace merge`.
    """
    run = Run(invocation, CHERRY_PICK, (go_on, abort, skip), secrets, as_json=as_json, quiet=quiet)
    run.check("WHAT", wanted, alone=["--at"] * bool(at) + ["--favour"] * bool(favour))

    def begin(here: Repo) -> Rewrite | Stopped:
        model = asked_model(invocation, here) if judge else None
        return here.cherry_pick(*wanted, at=at, favour=favour, judge=model)

    _carry_out(invocation, run, CHERRY_PICK, begin, judge=judge, quiet=quiet)


@takes(
    Argument(
        "UPSTREAM",
        "upstream",
        "The base to compare with (default: the upstream)",
        OPTIONAL,
        completes="COMMIT",
    ),
    Option("--onto", "onto", "The new base (default: UPSTREAM)", "REVISION", default=""),
    Option("--root", "root", "Reapply all commits of the branch"),
    Option("-i --interactive", "interactive", "Edit the to-do list first"),
    Option("--todo", "todo_file", "Read the to-do list from FILE; - reads standard input", "FILE"),
    Option("--print-todo", "print_todo", "Only print the to-do list"),
    Option("--drop-pinned", "drop_pinned", "Allow dropping pinned messages"),
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
    """Reapply the commits of the current branch since UPSTREAM on top of it.

    Commits keep author, time and message, and link to the original. Messages keep their addresses. With -i or --todo, a
    list says what to do with each commit, in any order: pick, reword, edit, squash, fixup or drop. The old tip goes to
    the trash, and ORIG_HEAD names it.
    """
    run = Run(invocation, REBASE, (go_on, abort, skip), secrets, as_json=as_json, quiet=quiet)
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
        raise usage_error(f"{' and '.join(ways[:2])} exclude each other")
    if upstream and root:
        raise usage_error("--root takes no UPSTREAM")

    def begin(here: Repo) -> Rewrite | Stopped | None:
        def plan(steps: Sequence[Step]) -> Sequence[Step]:
            return planned(invocation, here.store, steps, todo_file)

        if print_todo:
            steps = here.branches.todo(None if root else upstream or "", onto=onto)
            _print_todo(invocation, here.store, steps, as_json=as_json)
            return None
        return here.rebase(
            None if root else upstream or "",
            onto=onto,
            plan=plan if interactive or todo_file is not None else None,
            drop_pinned=drop_pinned,
            favour=favour,
            judge=asked_model(invocation, here) if judge else None,
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
    begin: Callable[[Repo], Rewrite | Stopped | None],
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

    run.carry_out(
        begin,
        lambda found: [repo.records.rewrite(found)],
        tell,
        judge=judge,
        drop_pinned=drop_pinned,
    )


def _line(invocation: Invocation, found: Rewrite, kind: str) -> str:
    branch = safe(found.ref.removeprefix("refs/heads/"))
    if found.outcome == UP_TO_DATE and found.dropped:
        return f"{branch} is unchanged: {counted(len(found.dropped), 'commit')} dropped"
    if found.outcome == UP_TO_DATE and found.there:
        names = ", ".join(oid.short() for oid in found.there[:3])
        more = f" and {len(found.there) - 3} more" if len(found.there) > 3 else ""
        return f"{branch} already contains {names}{more}"
    if found.outcome == UP_TO_DATE:
        return f"{branch} is already up to date"
    oid = found.after.short() if found.after and invocation.terminal else found.after
    if found.before and not (found.made or found.there or found.dropped):
        return f"{oid} {branch} fast-forwarded from {found.before.short()}"
    what = "reapplied" if kind == REBASE else "picked"
    kept = sum(old == new for old, new in found.made)
    count, new = len(found.made) - kept, len({new for old, new in found.made if old != new})
    parts = [f"{counted(count, 'commit')} {what}{f' as {new}' if new != count else ''}"]
    if kept:
        parts.append(f"{kept} unchanged")
    if found.there:
        parts.append(f"{len(found.there)} already there")
    if found.dropped:
        parts.append(f"{len(found.dropped)} dropped")
    return f"{oid} {', '.join(parts)}"

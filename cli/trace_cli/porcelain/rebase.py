"""`trace cherry-pick` and `trace rebase`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import trace_store
from trace_cli.arguments import ANY, OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.advice import asked_model
from trace_cli.porcelain.common import JSON, QUIET, SECRETS, entry_of, opened
from trace_cli.porcelain.editor import edited
from trace_cli.porcelain.in_progress import FAVOUR, GOING_ON, ResumableCommand
from trace_cli.porcelain.input import text_from
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import counted
from trace_cli.runtime import Invocation
from trace_store import errors
from trace_store.merge.in_progress import CHERRY_PICK, REBASE
from trace_store.merge.result import UP_TO_DATE, Rewrite
from trace_store.merge.stopped import Stopped
from trace_store.merge.todo import ACTIONS, Step, Todo
from trace_store.repo.repository import Repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results


def planned(invocation: Invocation, here: Repo, steps: Todo, file: str | None) -> Sequence[Step]:
    """Read the to-do list from a file, or let the user edit it.

    Raises:
        InvalidInputError: a line is invalid. An edited list is saved, and the hint names the file.
    """
    if file is not None:
        return steps.read(text_from(invocation, file))
    if not steps:
        return steps
    editor = invocation.environment.list_editor
    otherwise = "use --todo FILE; --print-todo prints a list to start from"
    text = edited(invocation, steps.text, "todo", otherwise, editor)
    if not steps.lines(text):
        raise usage_error(
            "the to-do list is empty; nothing was changed", "`drop ID` drops a commit"
        )
    try:
        steps.read(text)
    except errors.InvalidInputError as error:
        kept = here.maintenance.keep_text("todo", text)
        hint = f"the list is saved; fix it, then use --todo {os.path.relpath(kept)} in place of -i"
        words = ", ".join(ACTIONS)
        raise errors.InvalidInputError(f"{error.message}; actions: {words}", hint=hint) from error
    return steps.read(text, lambda message: _reworded(invocation, message))


def _reworded(invocation: Invocation, message: str) -> str:
    """Let the user edit the message of a commit."""
    otherwise = "write `reword ID MESSAGE`"
    message = edited(invocation, f"{message}\n", "message.txt", otherwise).strip()
    if not message:
        raise usage_error("the message is empty; nothing was changed")
    return message


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
    Option("--after", "after", "Put single messages after this one", "ADDRESS", default=""),
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
    after: str,
    favour: str,
    judge: bool,
    go_on: bool,
    abort: bool,
    skip: bool,
    secrets: str,
) -> Results:
    """Apply commits or messages from another branch to the end of this one.

    Messages keep their addresses. A single message comes with its call or results, as of its commit, or with --at as of
    another revision; with --after it is put there. What is already there makes no commit. At conflicts nothing is
    written, as with `trace merge`.
    """
    command = ResumableCommand(invocation, CHERRY_PICK, (go_on, abort, skip), secrets)
    command.check(
        "WHAT",
        wanted,
        alone=["--at"] * bool(at) + ["--after"] * bool(after) + ["--favour"] * bool(favour),
    )

    def begin(here: Repo) -> Rewrite | Stopped:
        model = asked_model(invocation, here) if judge else None
        return here.cherry_pick(*wanted, at=at, after=after, favour=favour, judge=model)

    return _carry_out(invocation, command, CHERRY_PICK, begin, judge=judge)


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
) -> Results:
    """Reapply the commits of the current branch since UPSTREAM on top of it.

    Commits keep author, time and message, and link to the original. Messages keep their addresses. With -i or --todo, a
    list says what to do with each commit, in any order: pick, reword, edit, squash, fixup or drop. The old tip goes to
    the trash, and ORIG_HEAD names it.
    """
    command = ResumableCommand(invocation, REBASE, (go_on, abort, skip), secrets)
    beginning = {
        "--onto": onto,
        "--interactive": interactive,
        "--todo": todo_file is not None,
        "--print-todo": print_todo,
        "--favour": favour,
    }
    given = [option for option, is_ in beginning.items() if is_]
    command.check("UPSTREAM", root or upstream, needed=False, alone=given)
    ways = [each for each in given if each in ("--interactive", "--todo", "--print-todo")]
    if print_todo and interactive:
        ways.remove("--interactive")  # it prints what -i would show
    if len(ways) > 1:
        raise usage_error(f"{' and '.join(ways[:2])} exclude each other")
    if upstream and root:
        raise usage_error("--root takes no UPSTREAM")

    if print_todo:
        return _todo(invocation, None if root else upstream or "", onto)

    def begin(here: Repo) -> Rewrite | Stopped:
        def plan(steps: Todo) -> Sequence[Step]:
            return planned(invocation, here, steps, todo_file)

        return here.rebase(
            None if root else upstream or "",
            onto=onto,
            plan=plan if interactive or todo_file is not None else None,
            drop_pinned=drop_pinned,
            favour=favour,
            judge=asked_model(invocation, here) if judge else None,
        )

    return _carry_out(invocation, command, REBASE, begin, judge=judge, drop_pinned=drop_pinned)


def _todo(invocation: Invocation, upstream: str | None, onto: str) -> Results:
    with opened(invocation) as here:
        steps = here.todo(upstream, onto=onto)
        result = (trace_store.record(step, summary=steps.summary(step)) for step in steps)
        yield result, map(safe, steps.text.splitlines())


def _carry_out(
    invocation: Invocation,
    command: ResumableCommand,
    kind: str,
    begin: Callable[[Repo], Rewrite | Stopped],
    *,
    judge: bool,
    drop_pinned: bool = False,
) -> Results:
    def lines(here: Repo, found: Rewrite) -> Iterator[str]:
        if found.step is not None:
            said = entry_of(here, found.step.oid).summary(60, target_width=40)
            yield f"at {found.step.oid.short()} {one_line(said, 200)}"
        else:
            yield _line(invocation, found, kind)
            yield from _hidden_lines(here, found)

    return command.carry_out(begin, lines, judge=judge, drop_pinned=drop_pinned)


def _hidden_lines(here: Repo, found: Rewrite) -> Iterator[str]:
    """Yield how to see what a pick found there, if the branch hides it, as a revert does."""
    for oid in found.there if found.outcome == UP_TO_DATE else ():
        for address in entry_of(here, oid).addresses:
            if here.message(address).hidden:
                yield f"it is hidden here; `trace restore {address.short()}` shows it"


def _line(invocation: Invocation, found: Rewrite, kind: str) -> str:
    branch = safe(found.ref.removeprefix("refs/heads/"))
    if found.outcome == UP_TO_DATE and found.dropped:
        return f"{branch} is unchanged: {counted(len(found.dropped), 'commit')} dropped"
    if found.outcome == UP_TO_DATE and found.there:
        names = ", ".join(oid.short() for oid in found.there[:3])
        more = f" and {len(found.there) - 3} more" if len(found.there) > 3 else ""
        are = "are" if len(found.there) > 1 else "is"
        return f"{branch} is unchanged: {names}{more} {are} already there"
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

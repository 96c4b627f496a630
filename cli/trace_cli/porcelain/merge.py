"""`trace merge` and `trace resolve`."""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.advice import asked_model, reviewed
from trace_cli.porcelain.common import JSON, MESSAGE, QUIET, SECRETS, opened
from trace_cli.porcelain.editor import settle_in_editor
from trace_cli.porcelain.in_progress import (
    FAVOUR,
    GOING_ON,
    STOPPED,
    ResumableCommand,
    conflict_lines,
    waiting,
)
from trace_cli.porcelain.input import argument_text, text_from
from trace_cli.render.escape import safe
from trace_cli.render.tables import counted, number
from trace_store.merge.conflicts import BOTH, OURS, TEXT, THEIRS
from trace_store.merge.in_progress import MERGE
from trace_store.merge.inputs import APPEND, SEMANTIC, STRATEGIES
from trace_store.merge.result import ALLOWED, FAST_FORWARD, MERGED, NEVER, ONLY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation, Results
    from trace_store.merge.result import Merge
    from trace_store.merge.stopped import Stopped
    from trace_store.repo.repository import Repo


@takes(
    Argument(
        "REVISION",
        "revision",
        "What to merge (default: diverged tips, or the upstream)",
        OPTIONAL,
        completes="COMMIT",
    ),
    Option(
        "-s --strategy",
        "strategy",
        "append, interleave, ours, theirs, decisions or semantic",
        "STRATEGY",
        default=APPEND,
        choices=STRATEGIES,
    ),
    FAVOUR,
    Option("--no-ff", "no_ff", "Create a merge commit even if a fast-forward is possible"),
    Option("--ff-only", "ff_only", "Fail unless a fast-forward is possible"),
    Option("--squash", "squash", "Create a commit with one parent"),
    Option("--allow-unrelated-histories", "unrelated", "Merge branches without a common ancestor"),
    Option("--review", "review", "Review the model's proposal (the default on a terminal)"),
    Option("--no-review", "no_review", "Accept the model's proposal if it is valid"),
    *GOING_ON,
    MESSAGE,
    SECRETS,
    JSON,
    QUIET,
)
def merge(
    invocation: Invocation,
    *,
    revision: str | None,
    strategy: str,
    favour: str,
    no_ff: bool,
    ff_only: bool,
    squash: bool,
    unrelated: bool,
    review: bool,
    no_review: bool,
    go_on: bool,
    abort: bool,
    skip: bool,
    message: str,
    secrets: str,
) -> Results:
    """Merge another branch into this one.

    Messages and changes that only the other branch has are added. The strategy decides how: append (theirs after ours),
    interleave (by time), ours (record the merge, add nothing), theirs (the context becomes theirs), decisions (only
    messages with the label decision), semantic (a model resolves conflicts, and may summarize new messages; see `trace
    model`).

    At conflicts nothing is written, and the exit code is 3. Resolve them with `trace resolve`, then run `trace merge
    --continue`; or cancel with `trace merge --abort`.
    """
    command = ResumableCommand(invocation, MERGE, (go_on, abort, skip), secrets)
    beginning = {
        "--strategy": strategy != APPEND,
        "--favour": favour,
        "--no-ff": no_ff,
        "--ff-only": ff_only,
        "--squash": squash,
        "--allow-unrelated-histories": unrelated,
    }
    command.check(
        "REVISION", revision, needed=False, alone=[o for o, is_ in beginning.items() if is_]
    )
    if no_ff and (ff_only or squash):
        raise usage_error(f"--no-ff and {'--squash' if squash else '--ff-only'} exclude each other")
    if favour and strategy in (OURS, THEIRS):
        raise usage_error(f"--favour has no effect with --strategy {strategy}")

    def begin(here: Repo) -> Merge | Stopped:
        ask = reviewed(invocation, strategy, review=review, no_review=no_review)
        return here.merge(
            revision or "",
            strategy=strategy,
            favour=favour,
            fast_forward=ONLY if ff_only else NEVER if no_ff else ALLOWED,
            squash=squash,
            unrelated=unrelated,
            message=message,
            model=asked_model(invocation, here) if strategy == SEMANTIC else None,
            review=ask,
        )

    def lines(here: Repo, found: Merge) -> list[str]:
        stopped = found.outcome == STOPPED
        return [] if stopped else [_line(invocation, found, skipped=skip)]

    return command.carry_out(begin, lines, message)


def _line(invocation: Invocation, found: Merge, *, skipped: bool) -> str:
    branch = safe(found.ref.removeprefix("refs/heads/"))
    if not found.theirs:
        return f"nothing to merge: {branch} has no second tip and no upstream"
    if found.after == found.before and skipped:
        return f"{branch} is unchanged: the conflicting commit was skipped"
    if found.after == found.before:
        return f"{branch} is already up to date"
    assert found.after is not None
    oid = found.after.short() if invocation.terminal else str(found.after)
    if found.outcome == FAST_FORWARD:
        start = found.before.short() if found.before else "nothing"
        return f"{oid} {branch} fast-forwarded from {start}"
    what = "merged" if found.outcome == MERGED else "squashed"
    settled = f", {counted(len(found.settled), 'conflict')} resolved" if found.settled else ""
    hidden = f", {number(found.hidden)} of them hidden" if found.hidden else ""
    changed = f", {number(found.changed)} changed" if found.changed else ""
    brought = counted(found.included, "new message")
    return f"{oid} {what}: {brought}{hidden}{changed}{settled}"


@takes(
    Argument(
        "CONFLICT",
        "which",
        "A conflict number, a message address, or all",
        OPTIONAL,
        default="",
        completes="ADDRESS",
    ),
    Argument("TEXT", "text", "The resolved text; - reads standard input", OPTIONAL),
    Option("--ours", "ours", "Use the version of the current branch"),
    Option("--theirs", "theirs", "Use the incoming version"),
    Option("--both", "both", "Keep both"),
    Option("-F --file", "file", "Read the resolved text from FILE", "FILE"),
    Option("-e --edit", "edit", "Edit both versions between conflict markers"),
    JSON,
    QUIET,
)
def resolve(
    invocation: Invocation,
    *,
    which: str,
    text: str | None,
    ours: bool,
    theirs: bool,
    both: bool,
    file: str | None,
    edit: bool,
) -> Results:
    """List and resolve conflicts of a merge, cherry-pick, revert or rebase.

    Without a choice, list the conflicts. A conflict keeps its number and can be resolved again until you continue.

    --edit opens $GIT_EDITOR, $VISUAL or $EDITOR with both versions between conflict markers. The saved text is the
    resolution.
    """
    said = [OURS] * ours + [THEIRS] * theirs + [BOTH] * both + [TEXT] * (text is not None)
    said += [TEXT] * (file is not None) + [TEXT] * edit
    if len(said) > 1:
        raise usage_error("choose one resolution")
    with opened(invocation) as here:
        stop = waiting(here)
        met = sorted([*stop.conflicts, *stop.settled], key=lambda each: each.number)
        if which not in ("", "all") and not said:
            met = [stop.conflict(which)]
        if said:
            if edit:
                typed = settle_in_editor(invocation, met, which)
            elif said == [TEXT]:
                typed = _text(invocation, text, file)
            else:
                typed = ""
            stop.resolve(which, said[0], typed)
            met = list(stop.conflicts)
        open_ = [each for each in met if each.resolution is None]
        settled = stop.settled if said else [each for each in met if each.resolution]
        lines = conflict_lines(invocation, met)
        if not open_ and (said or not which):
            lines.append(f"all conflicts are resolved: run `trace {stop.kind} --continue`")
        yield {"conflicts": open_, "settled": settled}, lines


def _text(invocation: Invocation, text: str | None, file: str | None) -> str:
    typed = text is not None and text != "-"
    return argument_text(text or "") if typed else text_from(invocation, file or "-")

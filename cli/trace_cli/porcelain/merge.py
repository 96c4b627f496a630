"""`trace merge` and `trace resolve`: bringing another line of history in, and settling what contradicts."""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.advice import advisor
from trace_cli.porcelain.common import JSON, MESSAGE, QUIET, SECRETS, opened_store
from trace_cli.porcelain.conflicts import conflict_lines, conflict_records, settled_records
from trace_cli.porcelain.editor import settle_in_editor
from trace_cli.porcelain.in_progress import FAVOUR, GOING_ON, STOPPED, Run
from trace_cli.porcelain.input import argument_text, text_from
from trace_cli.render.escape import safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted, number
from trace_store import merge as merging
from trace_store.merge.conflicts import BOTH, OURS, TEXT, THEIRS
from trace_store.merge.in_progress import MERGE, read_stop
from trace_store.merge.inputs import APPEND, STRATEGIES
from trace_store.merge.result import ALLOWED, FAST_FORWARD, MERGED, NEVER, ONLY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_cli.runtime import Invocation
    from trace_store.merge.result import Merge
    from trace_store.secrets.guard import Guard
    from trace_store.store.handle import Store


@takes(
    Argument(
        "REVISION",
        "revision",
        "What to merge; without it the tips of a diverged branch, or else its upstream",
        OPTIONAL,
        completes="COMMIT",
    ),
    Option(
        "-s --strategy",
        "strategy",
        "How: append, interleave, ours, theirs, decisions, semantic",
        "STRATEGY",
        default=APPEND,
        choices=STRATEGIES,
    ),
    FAVOUR,
    Option("--no-ff", "no_ff", "Make a commit also where the branch could just go forward"),
    Option("--ff-only", "ff_only", "Refuse to make a commit"),
    Option("--squash", "squash", "Bring the messages in by a commit with one parent"),
    Option("--allow-unrelated-histories", "unrelated", "Merge also what shares no commit"),
    Option("--review", "review", "Show what a model proposes, and ask; on a terminal it is asked"),
    Option("--no-review", "no_review", "Take what a model proposes, when it is valid"),
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
    as_json: bool,
    quiet: bool,
) -> None:
    """Bring another line of history into the current branch.

    A merge without a conflict adds no message: what theirs has and ours has not comes in, and what theirs changed is
    changed. The strategy says how: append (theirs after ours), interleave (by time), ours (theirs counts as merged,
    nothing comes in), theirs (the context becomes theirs), decisions (only messages with the label decision), semantic
    (a model settles the conflicts, and may put summaries in the place of new messages; see `trace model`).

    At conflicts nothing is written, and the exit code is 3. `trace resolve` settles them, `trace merge --continue` goes
    on, `trace merge --abort` gives up.
    """
    run = Run(
        invocation,
        MERGE,
        go_on=go_on,
        abort=abort,
        skip=skip,
        secrets=secrets,
        as_json=as_json,
        quiet=quiet,
    )
    beginning = {
        "--strategy": strategy != APPEND,
        "--favour": favour,
        "--no-ff": no_ff,
        "--ff-only": ff_only,
        "--squash": squash,
        "--allow-unrelated-histories": unrelated,
    }
    run.check("REVISION", revision, needed=False, alone=[o for o, is_ in beginning.items() if is_])
    if no_ff and (ff_only or squash):
        raise usage_error(
            f"--no-ff and {'--squash' if squash else '--ff-only'} contradict each other"
        )
    if favour and strategy in (OURS, THEIRS):
        raise usage_error(
            f"--strategy {strategy} settles everything, so that --favour says nothing"
        )

    def begin(store: Store, guard: Guard) -> Merge:
        options = merging.result.MergeOptions(
            strategy=strategy,
            favour=favour,
            fast_forward=ONLY if ff_only else NEVER if no_ff else ALLOWED,
            squash=squash,
            unrelated=unrelated,
            message=message,
        )
        advise = advisor(invocation, store, strategy, review=review, no_review=no_review)
        author = invocation.environment.author
        return merging.merge.merge(
            store, revision or "", options, author=author, guard=guard, advise=advise
        )

    def tell(store: Store, found: Merge) -> None:
        if found.outcome != STOPPED and not quiet:
            invocation.line(_line(invocation, found, skipped=skip))

    run.carry_out(begin, lambda store, found: [_record(store, found)], tell, message)


def _line(invocation: Invocation, found: Merge, *, skipped: bool) -> str:
    branch = safe(found.ref.removeprefix("refs/heads/"))
    if not found.theirs:
        return f"{branch} has one tip and no upstream: there is nothing to merge"
    if found.after == found.before and skipped:
        return f"{branch} is as it was: what the merge stopped at is left out"
    if found.after == found.before:
        return f"{branch} is up to date: there is nothing to merge"
    assert found.after is not None
    oid = found.after.short() if invocation.terminal else str(found.after)
    if found.outcome == FAST_FORWARD:
        start = found.before.short() if found.before else "nothing"
        return f"{oid} {branch} went forward from {start}"
    what = "merged" if found.outcome == MERGED else "squashed"
    settled = f", {counted(len(found.settled), 'conflict')} settled" if found.settled else ""
    hidden = f", {number(found.hidden)} of them hidden" if found.hidden else ""
    changed = f", {number(found.changed)} changed" if found.changed else ""
    brought = counted(found.included, "new message")
    return f"{oid} {what}: {brought}{hidden}{changed}{settled}"


def _record(store: Store, found: Merge) -> dict[str, Any]:
    return {
        "outcome": found.outcome,
        "ref": found.ref,
        "before": str(found.before) if found.before else None,
        "commit": str(found.after) if found.after else None,
        "merged": [str(oid) for oid in found.theirs],
        "included": found.included,
        "hidden": found.hidden,
        "changed": found.changed,
        "conflicts": conflict_records(store, found.conflicts),
        "settled": settled_records(found.settled),
    }


@takes(
    Argument(
        "CONFLICT",
        "which",
        "Its number, the address of its message, or all",
        OPTIONAL,
        default="",
        completes="ADDRESS",
    ),
    Argument("TEXT", "text", "What the message says from now on; - reads it", OPTIONAL),
    Option("--ours", "ours", "Take what the current branch has"),
    Option("--theirs", "theirs", "Take what comes in"),
    Option("--both", "both", "Take both"),
    Option("-F --file", "file", "Read the text from FILE", "FILE"),
    Option("-e --edit", "edit", "Open the editor with both sides between markers"),
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
    as_json: bool,
    quiet: bool,
) -> None:
    """Settle a conflict of a merge, pick, revert or rebase that stopped; without a choice list them.

    A conflict keeps its number, and may be settled anew until what stopped goes on.

    On a terminal, --edit opens $GIT_EDITOR, $VISUAL or $EDITOR with both sides between conflict markers; what is saved
    is the text.
    """
    said = [OURS] * ours + [THEIRS] * theirs + [BOTH] * both + [TEXT] * (text is not None)
    said += [TEXT] * (file is not None) + [TEXT] * edit
    if len(said) > 1:
        raise usage_error("give one way to settle it")
    with opened_store(invocation, quiet=quiet) as store:
        met = merging.resolve.met_conflicts(store)
        if which not in ("", "all") and not said:
            met = (merging.resolve.find_conflict(met, which),)
        if said:
            if edit:
                typed = settle_in_editor(invocation, store, met, which)
            elif said == [TEXT]:
                typed = _text(invocation, text, file)
            else:
                typed = ""
            merging.resolve.resolve(store, which, merging.conflicts.Resolution(said[0], typed))
            met = merging.resolve.met_conflicts(store)
        open_ = [each for each in met if each.resolution is None]
        if as_json:
            settled = settled_records([each for each in met if each.resolution is not None])
            record = {"conflicts": conflict_records(store, open_), "settled": settled}
            write_record(invocation, record)
        elif not quiet:
            for line in conflict_lines(invocation, store, open_ if said else met):
                invocation.line(line)
            if not open_ and (said or not which):
                found = read_stop(store)
                kind = found.kind if found else MERGE
                invocation.line(f"all is settled: `trace {kind} --continue` goes on")


def _text(invocation: Invocation, text: str | None, file: str | None) -> str:
    typed = text is not None and text != "-"
    return argument_text(text or "") if typed else text_from(invocation, file or "-")

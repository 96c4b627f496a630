"""`trace checkpoint`: restore points, and summaries to continue from."""

from __future__ import annotations

import trace_store
from trace_cli.arguments import ANY, OPTIONAL, SOME, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.advice import asked_model
from trace_cli.porcelain.common import (
    JSON,
    NOTHING,
    QUIET,
    SECRETS,
    finish,
    opened,
    tell_unknown_model,
)
from trace_cli.render.changes import diff_lines
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import LEFT, counted, date, fit, paint, table
from trace_cli.subcommands import Group
from trace_store.checkpoints.hard import SOFT
from trace_store.contracts.ref_names import FORKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_cli.runtime import Invocation, Results
    from trace_store.checkpoints.hard import Checkpoint
    from trace_store.context.compiled import CompiledContext
    from trace_store.repo.repository import Repo

HELP = """Save states to return to, and summaries to continue from.

A checkpoint is a restore point: the exact state of a branch under a name that never moves. A soft checkpoint is a
summary, which `trace checkpoint inject` puts at the start of another context. Automatic ones are made when the setting
`automatic_checkpoints` says so: `on`, or some of merge, rebase, compress, todos, files, tests, topic, tokens.
"""
BRANCH_WIDTH = 30
NAME = Argument("NAME", "name", "The checkpoint", completes="CHECKPOINT")


@takes(
    Argument("NAME", "name", "What to call it"),
    Option(
        "--ref",
        "ref",
        "Save this branch or commit instead of HEAD's",
        "REVISION",
        default="HEAD",
        completes="COMMIT",
    ),
    Option("--soft", "soft", "Save a summary instead of the state"),
    Option("--range", "range", "With --soft: sum up these messages only", "A..B", default=""),
    Option("--ask", "ask", "With --soft: let the model of `trace config model` write the prose"),
    Option("-m --message", "reason", "Why it is saved", "REASON", default=""),
    SECRETS,
    JSON,
    QUIET,
)
def save(
    invocation: Invocation,
    *,
    name: str,
    ref: str,
    soft: bool,
    range: str,
    ask: bool,
    reason: str,
    secrets: str,
) -> Results:
    """Save the state of a branch under a name.

    The name must be free: a checkpoint never moves. With --soft a summary is saved: request, outcome, to-dos, decisions
    with reasons, files with findings, and what is open, all taken from the messages by rules.

        trace checkpoint save before-refactoring
        trace checkpoint save tried-sqlite --ref idea -m "too slow"
        trace checkpoint save handover --soft
    """
    if (ask or range) and not soft:
        raise usage_error(f"{'--ask' if ask else '--range'} goes with --soft")
    with opened(invocation, secrets=secrets) as repo:
        model = asked_model(invocation, repo) if ask else None
        made = repo.checkpoints.save(
            name, ref=ref, reason=reason, soft=soft, range=range, model=model
        )
        finish(invocation, repo)
        what = "soft checkpoint" if soft else "checkpoint"
        of = repo.checkpoints.source(made)
        yield made, f"{what} {safe(made.name)} of {of.short() if of else 'nothing'}"


@takes(
    Argument("PATTERN", "patterns", "Only names like these", ANY),
    Option("--automatic", "automatic", "List automatic checkpoints"),
    Option("-a --all", "everything", "Also list automatic checkpoints and fork points"),
    JSON,
)
def list_(
    invocation: Invocation,
    *,
    patterns: list[str],
    automatic: bool,
    everything: bool,
) -> Results:
    """List checkpoints by name; automatic ones and fork points are counted, and listed apart."""
    with opened(invocation) as repo:
        found = repo.checkpoints.list(*patterns)
    made = [each for each in found if each.is_automatic]
    own = [each for each in found if not (each.is_automatic or each.ref.startswith(FORKS))]
    shown = found if everything else made if automatic else own
    yield shown, _list_lines(invocation, shown)
    if made and not (everything or automatic or invocation.as_json):
        invocation.note(
            f"note: {counted(len(made), 'automatic checkpoint')} not shown; --automatic lists them"
        )


def _list_lines(invocation: Invocation, shown: Sequence[Checkpoint]) -> Iterator[str]:
    rows = [
        (
            safe(each.name),
            each.form,
            each.commit.short(),
            date(each.time)[:16],
            fit(safe(each.branch.removeprefix("refs/heads/")), BRANCH_WIDTH),
            one_line(each.reason, 60),
        )
        for each in shown
    ]
    styles = [("", "dim", "yellow", "", "green", "")] * len(rows)
    yield from table(invocation, (), rows, LEFT * 6, styles)


@takes(
    NAME, Option("--model", "model", "Count tokens as for this model", "MODEL", default=""), JSON
)
def show(invocation: Invocation, *, name: str, model: str) -> Results:
    """Show a checkpoint: what it names and why it was made; of a soft one also the summary."""
    with opened(invocation) as repo:
        tell_unknown_model(invocation, model)
        found = repo.checkpoints.show(name)
        context = None if found.form == SOFT else repo.compile(found.commit, model=model)
        yield (
            lambda: trace_store.record(
                found,
                message_count=None if context is None else len(context),
                token_count=None if context is None else context.token_count,
                data=repo.checkpoints.data(found.name) if context is None else None,
            ),
            _lines(invocation, repo, found, context),
        )


def _lines(
    invocation: Invocation, repo: Repo, found: Checkpoint, context: CompiledContext | None
) -> Iterator[str]:
    source = repo.checkpoints.source(found)
    what = "soft checkpoint" if context is None else "checkpoint"
    of = f" of {safe(found.branch.removeprefix('refs/heads/'))}" if found.branch else ""
    at = paint(invocation, source.short(), "yellow") if source else "nothing"
    yield f"{what} {safe(found.name)}{of} at {at}, {date(found.time)} UTC"
    made = f"    made by {one_line(found.author, 60)}" if found.author else "    made"
    if found.is_automatic or found.trigger != "manual":
        made += f", trigger {safe(found.trigger)}"
    yield made + (f": {one_line(found.reason, 200)}" if found.reason else "")
    if context is not None:
        tokens = counted(context.token_count, "token")
        yield f"context: {counted(len(context), 'message')}, {tokens}"
    else:
        for line in repo.checkpoints.text(found.name).splitlines():
            yield safe(line)


@takes(
    NAME,
    Argument("REVISION", "ref", "Compare with this; HEAD if not given", OPTIONAL, default="HEAD"),
    Option("--stat", "stat", "Show how many tokens each message gained or lost, and the sums"),
    Option("--model", "model", "Count tokens as for this model", "MODEL", default=""),
    JSON,
)
def diff(invocation: Invocation, *, name: str, ref: str, stat: bool, model: str) -> Results:
    """Show what changed in the context since a checkpoint."""
    with opened(invocation) as repo:
        invocation.page()
        tell_unknown_model(invocation, model)
        found = repo.checkpoints.diff(name, ref, model=model)
        yield found, diff_lines(invocation, found, stat=stat, side=False, around=3)


@takes(
    NAME,
    Option("--ref", "ref", "Move this branch", "BRANCH", default="HEAD"),
    Option(
        "-b --branch",
        "branch",
        "Create this branch at the checkpoint, and move none",
        "NAME",
        default="",
    ),
    JSON,
    QUIET,
)
def restore(invocation: Invocation, *, name: str, ref: str, branch: str) -> Results:
    """Return to a checkpoint: move HEAD's branch there, or create a branch.

    Nothing is lost: the old tip goes to the trash, ORIG_HEAD names it, and `trace undo` brings it back.

        trace checkpoint restore before-refactoring
        trace checkpoint restore before-refactoring --branch again
    """
    if branch and ref != "HEAD":
        raise usage_error("--ref moves a branch, --branch creates one; give one of them")
    with opened(invocation) as repo:
        done = repo.checkpoints.restore(name, ref=ref, branch=branch)
        finish(invocation, repo)
        is_head = not branch and done.ref == repo.head.ref
    where = safe(done.ref.removeprefix("refs/heads/")) if done.ref else "HEAD"
    lines = [f"{where} is at {done.after.short()}, checkpoint {safe(done.checkpoint.name)}"]
    if not done.changed:
        lines = [f"{NOTHING}: {lines[0]}"]
    if done.before is not None and done.before != done.after:
        also = [safe(done.kept.removeprefix("refs/"))] if done.kept else []
        names = " and ".join(["ORIG_HEAD"] * is_head + also)
        is_kept = f", kept as {names}" if names else ""
        lines.append(f"it was at {done.before.short()}{is_kept}; `trace undo` brings it back")
    elif branch:
        lines.append(f"`trace switch {where}` goes to it")
    yield done, lines


@takes(Argument("NAME...", "names", "The checkpoints", SOME, completes="CHECKPOINT"), JSON, QUIET)
def delete(invocation: Invocation, *, names: list[str]) -> Results:
    """Delete checkpoints into the trash; `trace undo` brings them back."""
    with opened(invocation) as repo:
        found = repo.checkpoints.delete(*names)
        finish(invocation, repo)
    for each in found:
        name = safe(each.ref.split("/", 2)[2])
        kept = safe(each.kept[0].removeprefix("refs/"))
        yield each, [f"deleted checkpoint {name}", f"kept as {kept}; `trace undo` brings it back"]


@takes(
    NAME,
    Option(
        "--ref", "ref", "Put it into this branch; a new one begins with it", "BRANCH", default=""
    ),
    JSON,
    QUIET,
)
def inject(invocation: Invocation, *, name: str, ref: str) -> Results:
    """Put a soft checkpoint at the start of a context, after its system messages.

    A second time it says that the summary is there, and changes nothing.
    """
    with opened(invocation) as repo:
        done = repo.checkpoints.inject(name, ref=ref)
        finish(invocation, repo)
    address = short_address(done.address)
    if done.commit is not None:
        what = safe(done.checkpoint.name)
        yield done, f"{done.commit.short()} put {what} at the start, as {address}"
    elif done.is_hidden:
        yield done, f"the context has it, hidden; `trace restore {address}` shows it again"
    else:
        yield done, f"the context has it already, as {address}"


GROUP = Group(
    HELP,
    {
        "save": save,
        "list": list_,
        "show": show,
        "diff": diff,
        "restore": restore,
        "delete": delete,
        "inject": inject,
    },
)

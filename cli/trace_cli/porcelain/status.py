"""`trace status`."""

from __future__ import annotations

import trace_store
from trace_cli import porcelain
from trace_cli.arguments import Option, takes
from trace_cli.porcelain.common import JSON, opened_store, something_waits, tell_unknown_model
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted, date, number, paint, share, size, weight
from trace_store import checkpoints, context, history
from trace_store.history.status import status as standing
from trace_store.objects.commit import read_commit
from trace_store.refs.head import NAME
from trace_store.refs.names import FORKS, staged_ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation
    from trace_store.history.branches import Tracking
    from trace_store.history.status import Status
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store


@takes(Option("--model", "model", "The model for token counts", "MODEL", default=""), JSON)
def status(invocation: Invocation, *, model: str, as_json: bool) -> None:
    """Show the branch, the size of the context, its budget, and what needs attention."""
    with opened_store(invocation) as store:
        tell_unknown_model(invocation, model)
        found = standing(context.compiler.ContextCompiler(store), model=model)
        compared = _compared(store, found)
        stop = porcelain.in_progress.what_waits(store) if something_waits(store) else None
        staged = store.refs.read(staged_ref(found.ref or NAME))
        if staged is not None:  # rare
            staged = history.reset.staged_tip(store)
        fork = None
        if found.ref is not None and store.refs.read(FORKS + found.ref.removeprefix("refs/heads/")):
            fork = checkpoints.forks.fork_of(store, found.ref)
        bisecting = store.local and store.disk.exists(store.layout.bisect_file)
        if as_json:
            waits = None if stop is None else trace_store.records.waiting(stop)
            begun = {
                "staged": None if staged is None else str(staged),
                "bisecting": bisecting,
                "fork_of": None if fork is None else fork.parent or None,
                "fork_point": None if fork is None else str(fork.point),
            }
            write_record(
                invocation,
                {**trace_store.records.status(found, compared), **begun, "waiting": waits},
            )
            return
        for line in _status_lines(invocation, store, found, compared):
            invocation.line(line)
        if fork is not None:
            of = f" of {safe(fork.parent.removeprefix('refs/heads/'))}" if fork.parent else ""
            invocation.line(f"fork{of} at {paint(invocation, fork.point.short(), 'yellow')}")
        if staged is not None:
            invocation.line(f"staged: {_staged_line(store, staged, found)}")
        if bisecting:
            invocation.line(
                "bisecting: `trace bisect log` shows the progress, `trace bisect reset` ends the search"
            )
        if stop is not None:
            kind, what = safe(stop.kind), porcelain.in_progress.waiting_line(stop)
            invocation.line(paint(invocation, f"waiting: {what}", "red"))
            invocation.line(
                f"    `trace resolve` lists conflicts, `trace {kind} --continue` finishes, --abort cancels"
            )
        count = found.branch_count
        if found.oid is None and count == 1:
            [(name, _)] = store.refs.iterate("refs/heads/")
            name = name.removeprefix("refs/heads/")
            invocation.line(f"1 branch; `trace switch {safe(name)}` goes to it")
        elif count > (found.oid is not None):
            invocation.line(f"{number(count)} branches; `trace branch` lists them")


def _staged_line(store: Store, staged: ObjectId, found: Status) -> str:
    """Return the staged commits and a hint, depending on whether they still fit HEAD."""
    what = f"commits up to {staged.short()}"
    if found.oid is None or history.trash.goes_on(store, staged, found.oid):
        return f"{what}; `trace commit --staged` commits them as one"
    place = safe(staged_ref(found.ref or NAME).removeprefix("refs/"))
    return f"{what}, not on top of HEAD; `trace branch NAME {place}` creates a branch from them"


def _compared(store: Store, found: Status) -> Tracking | None:
    """Compare HEAD's branch with its upstream; None without one, the common case."""
    if found.ref is None or not store.local or not store.disk.exists(store.layout.upstreams_file):
        return None
    return tracking_of(store, found.ref, found.oid)


def _status_lines(
    invocation: Invocation, store: Store, found: Status, compared: Tracking | None
) -> list[str]:
    if found.branch is not None:
        head = f"on branch {paint(invocation, safe(found.branch), 'green')}"
    else:
        head = paint(invocation, "HEAD detached", "red")
    if found.oid is None:
        return [f"{head}, no commit yet", *_attention(invocation, found)]
    commit = read_commit(found.oid, store.objects.read)
    when = date(commit.time) + (" UTC" if commit.time else "")
    latest = one_line(history.summary.summary(store, commit), 72)
    lines = [
        f"{head} at {paint(invocation, found.oid.short(), 'yellow')}, {when}",
        f"    {latest}",
        *([] if compared is None else [upstream_line(compared)]),
        f"context: {counted(found.message_count, 'message')}, {_tokens(found)}",
    ]
    if found.budget is not None:
        part = share(found.token_count or 0, found.budget)
        over = (found.token_count or 0) > found.budget
        text = f"budget:  {part} of {counted(found.budget, 'token')}"
        lines.append(paint(invocation, text, "red") if over else text)
    return lines + _attention(invocation, found)


def _tokens(found: Status) -> str:
    if found.token_count is None:
        return "tokens not counted"
    return weight(found)


def _attention(invocation: Invocation, found: Status) -> list[str]:
    """Return the lines about states that need attention."""
    lines: list[str] = []
    for name, tips in found.diverged.items():
        ends = ", ".join(tip.short() for tip in tips)
        lines.append(
            paint(invocation, f"diverged: {safe(name)} has {len(tips)} tips: {ends}", "red")
        )
    lines += [
        paint(invocation, f"incomplete: the commit of {safe(name)} is missing", "red")
        for name in found.incomplete
    ]
    if found.returned:
        what = f"{counted(len(found.returned), 'purged object')} stored again"
        lines.append(paint(invocation, f"{what}; `trace purge --again` removes them", "red"))
    if found.unsealed_transactions:
        what = f"{counted(found.unsealed_transactions, 'change')}, {size(found.unsealed_bytes)}"
        lines.append(f"unsealed: {what} in the journal; `trace seal` writes them for git")
    return lines


def tracking_of(store: Store, ref: str, oid: ObjectId | None) -> Tracking | None:
    """Compare a branch at a commit with its upstream; None if it has none."""
    return history.branches.tracking(store, ref, oid)


def upstream_line(compared: Tracking) -> str:
    """Return the line about the upstream."""
    name = safe(compared.upstream.removeprefix("refs/heads/"))
    if compared.ahead is None or compared.behind is None:
        return f"upstream: {name}, without a commit"
    said = [
        f"{which} by {counted(count, 'commit')}"
        for which, count in (("ahead", compared.ahead), ("behind", compared.behind))
        if count
    ]
    return f"upstream: {name}, {' and '.join(said) or 'at the same commit'}"

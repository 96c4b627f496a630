"""`trace status`."""

from __future__ import annotations

import trace_store
from trace_cli.arguments import Option, takes
from trace_cli.porcelain.common import JSON, opened, tell_unknown_model
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted, date, number, paint, share, size, token_summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation
    from trace_store.history.branches import Tracking
    from trace_store.history.status import Status


@takes(Option("--model", "model", "The model for token counts", "MODEL", default=""), JSON)
def status(invocation: Invocation, *, model: str, as_json: bool) -> None:
    """Show the branch, the size of the context, its budget, and what needs attention."""
    with opened(invocation) as repo:
        tell_unknown_model(invocation, model)
        found, stop = repo.status(model=model), repo.in_progress
        fork = repo.branches.fork.of(found.ref) if found.ref and found.is_fork else None
        if as_json:
            write_record(invocation, trace_store.records.status(found, fork, stop))
            return
        for line in _status_lines(invocation, found):
            invocation.line(line)
        if fork is not None:
            of = f" of {safe(fork.parent.removeprefix('refs/heads/'))}" if fork.parent else ""
            invocation.line(f"fork{of} at {paint(invocation, fork.point.short(), 'yellow')}")
        if found.staged is not None:
            invocation.line(f"staged: {_staged_line(found)}")
        if found.is_bisecting:
            invocation.line(
                "bisecting: `trace bisect log` shows the progress, `trace bisect reset` ends the search"
            )
        if stop is not None and stop.kind:
            what = f"waiting: {safe(stop.description)} is in progress"
            invocation.line(paint(invocation, what, "red"))
            invocation.line(
                f"    `trace resolve` lists conflicts, `trace {safe(stop.kind)} --continue` finishes,"
                " --abort cancels"
            )
        count = found.branch_count
        if found.oid is None and count == 1:
            [only] = repo.branches.list()
            invocation.line(f"1 branch; `trace switch {safe(only.name)}` goes to it")
        elif count > (found.oid is not None):
            invocation.line(f"{number(count)} branches; `trace branch` lists them")


def _staged_line(found: Status) -> str:
    """Return the staged commits and a hint, depending on whether they still fit HEAD."""
    assert found.staged is not None
    what = f"commits up to {found.staged.short()}"
    if found.is_staged_here:
        return f"{what}; `trace commit --staged` commits them as one"
    place = safe(found.staged_ref.removeprefix("refs/"))
    return f"{what}, not on top of HEAD; `trace branch NAME {place}` creates a branch from them"


def _status_lines(invocation: Invocation, found: Status) -> list[str]:
    if found.branch is not None:
        head = f"on branch {paint(invocation, safe(found.branch), 'green')}"
    else:
        head = paint(invocation, "HEAD detached", "red")
    if found.oid is None:
        return [f"{head}, no commit yet", *_attention(invocation, found)]
    when = date(found.time) + (" UTC" if found.time else "")
    lines = [
        f"{head} at {paint(invocation, found.oid.short(), 'yellow')}, {when}",
        f"    {one_line(found.summary, 72)}",
        *([] if found.tracking is None else [_upstream_line(found.tracking)]),
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
    return token_summary(found)


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


def _upstream_line(compared: Tracking) -> str:
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

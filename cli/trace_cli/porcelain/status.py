"""`trace status`."""

from __future__ import annotations

import trace_store
from trace_cli.arguments import Option, takes
from trace_cli.porcelain.common import JSON, opened, tell_unknown_model, waiting
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import counted, date, gauge, number, paint, share, size, token_summary
from trace_store.contracts.ref_names import BRANCHES, SESSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_cli.runtime import Invocation, Results
    from trace_store.checkpoints.forks import Fork
    from trace_store.history.branch_state import Tracking
    from trace_store.history.status import Status
    from trace_store.merge.stopped import Stopped
    from trace_store.repo.repository import Repo


@takes(Option("--model", "model", "The model for token counts", "MODEL", default=""), JSON)
def status(invocation: Invocation, *, model: str) -> Results:
    """Show the branch, the size of the context, its budget, and what needs attention."""
    with opened(invocation) as repo:
        tell_unknown_model(invocation, model)
        found, stop = repo.status(model=model), repo.in_progress
        fork = repo.forks.of(found.ref) if found.ref and found.is_fork else None
        yield (
            lambda: trace_store.record(
                found,
                fork_of=fork and (fork.parent or None),
                fork_point=fork and fork.point,
                waiting=waiting(stop),
                runs=repo.runs.running() if found.is_running else [],
            ),
            _lines(invocation, repo, found, fork, stop),
        )


def _lines(
    invocation: Invocation, repo: Repo, found: Status, fork: Fork | None, stop: Stopped | None
) -> Iterator[str]:
    yield from _status_lines(invocation, found)
    if fork is not None:
        of = f" of {safe(fork.parent.removeprefix('refs/heads/'))}" if fork.parent else ""
        yield f"fork{of} at {paint(invocation, fork.point.short(), 'yellow')}"
    if found.ref and found.ref.startswith(SESSIONS) and found.oid is not None:
        yield from _session_lines(invocation, repo, found.ref)
    if found.is_running:
        for run in repo.runs.running():
            name = one_line(run.state.name, 60)
            yield f"running: {one_line(run.activity, 100)} ({name}); `trace runs watch {run.id}`"
    if found.staged is not None:
        yield f"staged: {_staged_line(found)}"
    if found.is_bisecting:
        yield "bisecting: `trace bisect log` shows the progress, `trace bisect reset` ends the search"
    if stop is not None and stop.kind:
        what = f"waiting: {safe(stop.description)} is in progress"
        yield paint(invocation, what, "red")
        yield (
            f"    `trace resolve` lists conflicts, `trace {safe(stop.kind)} --continue` finishes,"
            " --abort cancels"
        )
    yield from _branch_lines(found)
    yield from _record_lines(repo, found)


def _session_lines(invocation: Invocation, repo: Repo, ref: str) -> Iterator[str]:
    """Yield the fill level of a session started by Trace, and the tokens its compactions saved."""
    if not repo.sessions.is_started(ref):
        return
    session = repo.sessions.open(ref)
    if not session.facts.type:
        return
    preview, past = session.preview(), session.history()
    said = f"session: {number(preview.total)} of {counted(preview.limit, 'token')}"
    if past:
        saved = sum(each.saved for each in past)
        said += f"; {counted(len(past), 'compaction')} saved {number(saved)}"
    yield gauge(invocation, said, preview.total + preview.reply, preview.limit)


def _branch_lines(found: Status) -> Iterator[str]:
    """Yield how many branches there are, and in a new clone which was worked on last."""
    count, newest = found.branch_count, found.newest_branch
    if newest is not None and newest != found.ref:
        name = safe(newest.removeprefix(BRANCHES))
        yield f"worked on last: {name}; `trace switch {name}` goes to it"
    if count > 1:
        yield f"{number(count)} branches; `trace branch` lists them"


def _record_lines(repo: Repo, found: Status) -> Iterator[str]:
    """Yield how many records of frameworks there are, and the one worked on last, if that is newer than HEAD."""
    if found.newest_record is not None:
        [title] = repo.sessions.titles(found.newest_record).values()
        name = found.newest_record
        yield f"worked on last: {one_line(title, 72)}; `trace view {safe(name)}` shows it"
    if found.record_count:
        yield f"{counted(found.record_count, 'record')} of frameworks; `trace sessions` lists their threads"


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
        what = f"diverged: {safe(name)} has {len(tips)} tips: {ends}"
        lines.append(paint(invocation, what, "red") + _joining(found, name))
    lines += [
        paint(invocation, f"incomplete: the commit of {safe(name)} is missing", "red")
        for name in found.incomplete
    ]
    lines += [
        f"recovered: {counted(count, 'commit')} not on the branch; `trace merge {safe(name)}` adds them"
        for name, count in found.recovered.items()
    ]
    if found.returned:
        what = f"{counted(len(found.returned), 'purged object')} stored again"
        lines.append(paint(invocation, f"{what}; `trace purge --again` removes them", "red"))
    if found.unsealed_transactions:
        what = f"{counted(found.unsealed_transactions, 'change')}, {size(found.unsealed_bytes)}"
        lines.append(f"unsealed: {what} in the journal; `trace seal` writes them for git")
    return lines


def _joining(found: Status, name: str) -> str:
    """Return how to join the tips of a branch; "" for other refs, whose tips join with the next write."""
    branch = name.removeprefix(BRANCHES)
    if branch == name:
        return ""
    if branch == found.branch:
        return "; `trace merge` joins them"
    return f"; `trace switch {safe(branch)}`, then `trace merge` joins them"


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
    line = f"upstream: {name}, {' and '.join(said) or 'at the same commit'}"
    if not compared.behind:
        return line
    return f"{line}; `trace merge` {'joins them' if compared.ahead else 'brings them in'}"

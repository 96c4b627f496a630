"""`trace branch`: list, create, rename and delete branches."""

from __future__ import annotations

import trace_store
from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import (
    JSON,
    NOTHING,
    QUIET,
    entry_of,
    finish,
    opened,
)
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import LEFT, date, fit, table, terminal_width
from trace_store import errors
from trace_store.base.ident import known_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from trace_cli.runtime import Invocation, Results
    from trace_store.base.oid import ObjectId
    from trace_store.history.branch_state import Branch, Tracking
    from trace_store.history.log import LogEntry
    from trace_store.history.trash_refs import DeletedRef
    from trace_store.repo.repository import Repo
    from trace_store.store.store import Store

SUMMARY_WIDTH = 72
ROOMY, NAME_WIDTH = 120, 30
"""On a terminal with fewer columns `-v` omits times and cuts names to this width."""
RELATIONS = ("contains", "merged", "unmerged")
"""The relations between branches and a commit that can be listed."""


@takes(
    Argument("NAME START", "names", "The branch, and its start point", ANY, completes="BRANCH"),
    Option("-l --list", "listing", "List branches whose names match the patterns"),
    Option("--contains", "contains", "List branches that contain NAME (default: HEAD)"),
    Option("--merged", "merged", "List branches merged into NAME (default: HEAD)"),
    Option("--no-merged", "unmerged", "List branches not merged into NAME (default: HEAD)"),
    Option("-v --verbose", "verbose", "Show the latest commit of each branch"),
    Option("-m --move", "move", "Rename NAME (default: HEAD's branch)"),
    Option("-M", "overwrite", "Rename even if the new name exists"),
    Option("-d -D --delete", "delete", "Delete branches; the trash keeps them"),
    Option("-u --set-upstream-to", "upstream", "Set the upstream of NAME", "UPSTREAM"),
    Option("--unset-upstream", "unset", "Remove the upstream of NAME"),
    Option("--show-current", "current", "Print the current branch"),
    Option(
        "-f --force",
        "force",
        "Reset an existing branch, or delete one with a stopped merge",
    ),
    JSON,
    QUIET,
)
def branch(
    invocation: Invocation,
    *,
    names: list[str],
    listing: bool,
    contains: bool,
    merged: bool,
    unmerged: bool,
    verbose: bool,
    move: bool,
    overwrite: bool,
    delete: bool,
    upstream: str | None,
    unset: bool,
    current: bool,
    force: bool,
) -> Results:
    """List, create, rename or delete branches.

    Without NAME, list them: `*` marks the current one, and `ahead 2, behind 1` compares a branch with its upstream.
    Deleting loses nothing: the trash keeps the old tip, and `trace undo` restores the branch.

        trace branch idea              create a branch at HEAD; `trace switch idea` goes to it
        trace branch idea main~2       create it at another commit
        trace branch -m idea plan      rename it
        trace branch -d plan           delete it
        trace branch -u main idea      set the upstream of idea
        trace branch --contains ab12cd list branches that contain a commit
    """
    move, force = move or overwrite, force or overwrite
    asked = [contains, merged, unmerged]
    chosen = [move, delete, upstream is not None, unset, current, listing, *asked]
    if sum(chosen) > 1:
        raise usage_error("these options exclude each other")
    with opened(invocation) as repo:
        if current:
            ref = repo.store.refs.head().ref
            yield {"ref": ref}, [] if ref is None else safe(ref.removeprefix("refs/heads/"))
        elif move:
            yield from _rename(invocation, repo, names, force=force)
        elif delete:
            if not names:
                raise usage_error("no branch is named", "for example: trace branch -d idea")
            found = _delete(repo, names, force=force)
            finish(invocation, repo)
            yield from deleted(repo, "branch", found)
        elif upstream is not None or unset:
            yield from _set_upstream(repo, names, upstream)
        elif any(asked):
            yield from _list(invocation, repo, names, verbose=verbose, asked=asked)
        elif names and not (listing or verbose):
            yield from _create(invocation, repo, names, force=force)
        else:
            yield from _list(invocation, repo, names, verbose=verbose)


def _delete(repo: Repo, names: Sequence[str], *, force: bool) -> Sequence[DeletedRef]:
    try:
        return repo.branches.delete(*names, force=force)
    except errors.StateError as error:
        if error.code == errors.ErrorCode.IN_PROGRESS:
            name, kind = str(error.data["ref"]).removeprefix("refs/heads/"), error.data["kind"]
            cancel = f"`trace switch {name}`, then `trace {kind} --abort` cancels it"
            error.data["hint"] = f"{cancel}; -d -f deletes the branch anyway"
        raise


def _create(
    invocation: Invocation,
    repo: Repo,
    names: Sequence[str],
    *,
    force: bool,
) -> Results:
    if len(names) > 2:
        raise usage_error("give one name and at most one start point")
    made = repo.branches.create(*names, force=force)
    finish(invocation, repo)
    name, at = safe(made.name), made.oid.short()
    lines = [f"created branch {name} at {at}; `trace switch {name}` goes to it"]
    if not made.changed:
        lines = [f"{NOTHING}: branch {name} is at {at}"]
    if made.kept is not None:
        lines.append(_kept_line(repo, made.kept, f"branch -f {name}"))
    yield made, lines


def _rename(
    invocation: Invocation,
    repo: Repo,
    names: Sequence[str],
    *,
    force: bool,
) -> Results:
    if not 1 <= len(names) <= 2:
        raise usage_error("no new name is given", "for example: trace branch -m idea plan")
    old = names[0] if len(names) == 2 else _current(repo.store)
    done = repo.branches.rename(old, names[-1], force=force)
    finish(invocation, repo)
    before = safe((done.renamed_from or "").removeprefix("refs/heads/"))
    said = f"renamed branch {before} to {safe(done.name)}"
    yield done, said if done.changed else f"{NOTHING}: the branch is named {safe(done.name)}"


def _set_upstream(
    repo: Repo,
    names: Sequence[str],
    upstream: str | None,
) -> Results:
    if len(names) > 1:
        raise usage_error("-u takes one branch")
    done = repo.branches.track(names[0] if names else "HEAD", upstream)
    other = done.tracking.upstream if done.tracking else None
    with_what = safe(other.removeprefix("refs/heads/")) if other else "nothing"
    said = f"upstream of branch {safe(done.name)}: {with_what}"
    yield done, said if done.changed else f"{NOTHING}: the {said}"


def _current(store: Store) -> str:
    """Return the short name of HEAD's branch, which need not have a commit."""
    ref = store.refs.head().ref
    if ref is None:
        raise errors.DetachedHeadError("HEAD is detached: there is no current branch")
    return ref.removeprefix("refs/heads/")


def _list(
    invocation: Invocation,
    repo: Repo,
    patterns: Sequence[str],
    *,
    verbose: bool,
    asked: Sequence[bool] = (),
) -> Results:
    """List branches; with a relation in `asked`, the first pattern is its commit."""
    related: dict[str, str] = {}
    if any(asked):
        commit = patterns[0] if patterns else "HEAD"
        related = {name: commit for name, is_ in zip(RELATIONS, asked, strict=True) if is_}
        patterns = patterns[1:]
    found = repo.branches.list(*patterns, **related)
    lines = _lines(invocation, repo, found, verbose=verbose, filtered=bool(patterns or related))
    yield (_with_tip(repo, each) for each in found), lines


def _with_tip(repo: Repo, each: Branch) -> dict[str, Any]:
    """Return the JSON of a branch with the time and summary of its tip, if that is here."""
    tip = _tip(repo, each.oid)
    time, summary = (None, None) if tip is None else (known_time(tip.time), tip.tip_summary())
    return trace_store.record(each, time=time, summary=summary)


def _tip(repo: Repo, oid: ObjectId) -> LogEntry | None:
    try:
        return entry_of(repo, oid)
    except errors.TraceError:
        return None


def _lines(
    invocation: Invocation, repo: Repo, found: Sequence[Branch], *, verbose: bool, filtered: bool
) -> Iterator[str]:
    head = repo.store.refs.head()
    rows: list[tuple[str, ...]] = []
    styles: list[tuple[str, ...]] = []
    narrow = verbose and 0 < terminal_width(invocation) < ROOMY
    if head.ref is None and head.oid is not None and not filtered:
        summary = _said(repo, head.oid, verbose, narrow)
        rows.append(("*", "(HEAD detached)", head.oid.short(), "", summary))
        styles.append(("", "red", "yellow", "", ""))
    for each in found:
        mark = "*" if each.is_current else ""
        summary = _said(repo, each.oid, verbose, narrow)
        name = fit(safe(each.name), NAME_WIDTH) if narrow else safe(each.name)
        rows.append((mark, name, each.oid.short(), _compared(each), summary))
        styles.append(("", "green" if each.is_current else "", "yellow", "cyan", ""))
    if not any(row[3] for row in rows):  # no branch has an upstream
        rows, styles = ([(*row[:3], row[4]) for row in each] for each in (rows, styles))
    yield from table(invocation, (), rows, LEFT * len(rows[0]) if rows else "", styles)
    if head.unborn and head.ref is not None and not filtered:
        name = safe(head.ref.removeprefix("refs/heads/"))
        invocation.note(f"note: HEAD is on {name}, which has no commit yet")


def _said(repo: Repo, oid: ObjectId, verbose: bool, narrow: bool) -> str:
    if not verbose:
        return ""
    entry = _tip(repo, oid)
    if entry is None:
        return "(not here)"
    when = "" if narrow else f"{date(entry.time)[:16]}  "
    return f"{when}{one_line(entry.tip_summary(SUMMARY_WIDTH), SUMMARY_WIDTH)}"


def _compared(each: Branch) -> str:
    said = tracking_text(each.tracking)
    return (
        f"diverged, {len(each.tips)} tips" + (f", {said}" if said else "")
        if len(each.tips) > 1
        else said
    )


def tracking_text(tracking: Tracking | None) -> str:
    """Return e.g. `[main: ahead 2]`, as git prints it; "" without an upstream."""
    if tracking is None:
        return ""
    name = safe(tracking.upstream.removeprefix("refs/heads/"))
    if tracking.oid is None:
        return f"[{name}: gone]"
    counts = [("ahead", tracking.ahead), ("behind", tracking.behind)]
    said = ", ".join(f"{word} {count:,}" for word, count in counts if count)
    return f"[{name}: {said}]" if said else f"[{name}]"


def deleted(repo: Repo, what: str, found: Sequence[DeletedRef]) -> Results:
    """Yield the deleted refs, with lines about where they are kept."""
    for each in found:
        name = safe(each.ref.split("/", 2)[2])
        kept = [_kept_line(repo, kept, f"{what} {name}") for kept in each.kept]
        yield each, [f"deleted {what} {name} (was {each.oid.short()})", *kept]


def _kept_line(repo: Repo, kept: str, command: str) -> str:
    """Return where an old tip is kept, and how to restore it: by a command during a merge, else by `trace undo`."""
    place = safe(kept.removeprefix("refs/"))
    back = f"trace {command} {place}" if repo.in_progress is not None else "trace undo"
    return f"kept as {place}; `{back}` restores it"

"""`trace branch`: listing, making, renaming and deleting branches."""

from __future__ import annotations

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import (
    JSON,
    QUIET,
    check_nothing_waits,
    finish,
    opened_store,
    something_waits,
)
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import LEFT, date, fit, table, terminal_width
from trace_store import errors, history
from trace_store.ident import known_time
from trace_store.objects.commit import read_commit
from trace_store.revision import resolve_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from trace_cli.runtime import Invocation
    from trace_store.history.branches import Branch, DeletedRef, Tracking
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

SUMMARY_WIDTH = 72
ROOMY, NAME_WIDTH = 120, 30
"""On a terminal with fewer columns `-v` leaves out times, and shows so much of a name."""
RELATIONS = ("contains", "merged", "unmerged")
"""How branches may stand to a commit that is asked about."""


@takes(
    Argument("NAME START", "names", "The branch, and where it begins", ANY, completes="BRANCH"),
    Option("-l --list", "listing", "List the branches whose names are like the patterns given"),
    Option("--contains", "contains", "List those that have the commit NAME, or HEAD's"),
    Option("--merged", "merged", "List those of which NAME, or HEAD, has all"),
    Option("--no-merged", "unmerged", "List those of which NAME, or HEAD, has not all"),
    Option("-v --verbose", "verbose", "Show what the latest commit of each says"),
    Option("-m --move", "move", "Rename: NAME, or HEAD's branch, to the other name"),
    Option("-M", "overwrite", "Rename, also to the name of another branch: -m -f"),
    Option("-d -D --delete", "delete", "Delete branches into the trash"),
    Option("-u --set-upstream-to", "upstream", "Compare NAME with this branch", "UPSTREAM"),
    Option("--unset-upstream", "unset", "Compare NAME with none any more"),
    Option("--show-current", "current", "Print the name of HEAD's branch"),
    Option(
        "-f --force", "force", "Take a name that there is; what it stood for is kept in the trash"
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
    as_json: bool,
    quiet: bool,
) -> None:
    """List, make, rename or delete branches.

    Without NAME it lists them: `*` is where HEAD is, and `ahead 2, behind 1` compares a branch with its upstream.
    Nothing is lost by deleting: the trash keeps what the branch stood for, and `trace undo` brings it back.

        trace branch idea              begin a branch at HEAD; `trace switch idea` goes to it
        trace branch idea main~2       begin it elsewhere
        trace branch -m idea plan      rename it
        trace branch -d plan           delete it
        trace branch -u main idea      compare idea with main
        trace branch --contains ab12cd which branches have a commit
    """
    move, force = move or overwrite, force or overwrite
    asked = [contains, merged, unmerged]
    chosen = [move, delete, upstream is not None, unset, current, listing, *asked]
    if sum(chosen) > 1:
        raise usage_error("several things to do with branches; choose one")
    with opened_store(invocation, quiet=quiet) as store:
        author = invocation.environment.author
        if current:
            _show_current(invocation, store, as_json=as_json)
        elif move:
            _rename(invocation, store, names, force=force, as_json=as_json, quiet=quiet)
        elif delete:
            if not names:
                raise usage_error("no branch is named", "for example: trace branch -d idea")
            found = history.branches.delete_branches(store, names, author=author)
            finish(invocation, store)
            tell_deleted(invocation, store, "branch", found, as_json=as_json, quiet=quiet)
        elif upstream is not None or unset:
            _set_upstream(invocation, store, names, upstream, as_json=as_json, quiet=quiet)
        elif any(asked):
            _list(invocation, store, names, verbose=verbose, as_json=as_json, asked=asked)
        elif names and not (listing or verbose):
            _create(invocation, store, names, force=force, as_json=as_json, quiet=quiet)
        else:
            _list(invocation, store, names, verbose=verbose, as_json=as_json)


def _create(
    invocation: Invocation,
    store: Store,
    names: Sequence[str],
    *,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    if len(names) > 2:
        raise usage_error("a branch has one name and begins at one place")
    author = invocation.environment.author
    ref, oid, kept = history.branches.create_branch(store, *names, author=author, force=force)
    finish(invocation, store)
    if as_json:
        write_record(invocation, {"ref": ref, "commit": str(oid), "kept": kept})
    elif not quiet:
        name = safe(ref.removeprefix("refs/heads/"))
        invocation.line(f"branch {name} begins at {oid.short()}; `trace switch {name}` goes to it")
        if kept is not None:
            _tell_kept(invocation, store, kept, f"branch -f {name}")


def _rename(
    invocation: Invocation,
    store: Store,
    names: Sequence[str],
    *,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    if not 1 <= len(names) <= 2:
        raise usage_error("no new name is given", "for example: trace branch -m idea plan")
    old = names[0] if len(names) == 2 else _current(store)
    check_nothing_waits(store, *history.branches.names_before_and_after(store, old, names[-1]))
    author = invocation.environment.author
    before, after = history.branches.rename_branch(
        store, old, names[-1], author=author, force=force
    )
    finish(invocation, store)
    if as_json:
        write_record(invocation, {"before": before, "ref": after})
    elif not quiet:
        one, other = (safe(name.removeprefix("refs/heads/")) for name in (before, after))
        invocation.line(f"branch {one} is called {other}")


def _set_upstream(
    invocation: Invocation,
    store: Store,
    names: Sequence[str],
    upstream: str | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    if len(names) > 1:
        raise usage_error("one branch at a time is compared with another")
    ref = history.branches.find_branch(store, names[0] if names else "HEAD")
    other = None
    if upstream is None:
        history.branches.unset_upstream(store, ref)
    else:
        other = history.branches.find_branch(store, upstream)
        if other == ref:
            raise usage_error("a branch is not compared with itself")
        history.branches.set_upstream(store, ref, other)
    if as_json:
        write_record(invocation, {"ref": ref, "upstream": other})
    elif not quiet:
        name = safe(ref.removeprefix("refs/heads/"))
        with_what = safe(other.removeprefix("refs/heads/")) if other else "nothing"
        invocation.line(f"branch {name} is compared with {with_what}")


def _show_current(invocation: Invocation, store: Store, *, as_json: bool) -> None:
    ref = store.refs.head().ref
    if as_json:
        write_record(invocation, {"ref": ref})
    elif ref is not None:
        invocation.line(safe(ref.removeprefix("refs/heads/")))


def _current(store: Store) -> str:
    """Return the short name of HEAD's branch, which need not have a commit."""
    ref = store.refs.head().ref
    if ref is None:
        raise errors.DetachedHeadError("HEAD is detached: it is on no branch")
    return ref.removeprefix("refs/heads/")


def _list(
    invocation: Invocation,
    store: Store,
    patterns: Sequence[str],
    *,
    verbose: bool,
    as_json: bool,
    asked: Sequence[bool] = (),
) -> None:
    """List branches; where it is asked how they stand to a commit, the first pattern is that."""
    related: dict[str, ObjectId] = {}
    if any(asked):
        commit = resolve_commit(store, patterns[0] if patterns else "HEAD")
        related = {name: commit for name, is_ in zip(RELATIONS, asked, strict=True) if is_}
        patterns = patterns[1:]
    found = history.branches.list_branches(store, patterns, **related)
    head = store.refs.head()
    if as_json:
        for each in found:
            write_record(invocation, _record(store, each))
        return
    rows: list[tuple[str, ...]] = []
    styles: list[tuple[str, ...]] = []
    narrow = verbose and 0 < terminal_width(invocation) < ROOMY
    if head.ref is None and head.oid is not None and not (patterns or related):
        told = _said(store, head.oid, verbose, narrow)
        rows.append(("*", "(HEAD detached)", head.oid.short(), "", told))
        styles.append(("", "red", "yellow", "", ""))
    for each in found:
        mark = "*" if each.is_current else ""
        told = _said(store, each.oid, verbose, narrow)
        name = fit(safe(each.name), NAME_WIDTH) if narrow else safe(each.name)
        rows.append((mark, name, each.oid.short(), _compared(each), told))
        styles.append(("", "green" if each.is_current else "", "yellow", "cyan", ""))
    if not any(row[3] for row in rows):  # none is compared with another
        rows, styles = ([(*row[:3], row[4]) for row in each] for each in (rows, styles))
    for line in table(invocation, (), rows, LEFT * len(rows[0]) if rows else "", styles):
        invocation.line(line)
    if head.unborn and head.ref is not None and not (patterns or related):
        name = safe(head.ref.removeprefix("refs/heads/"))
        invocation.note(f"note: HEAD is on {name}, which has no commit yet")


def _said(store: Store, oid: Any, verbose: bool, narrow: bool) -> str:
    if not verbose:
        return ""
    try:
        commit = read_commit(oid, store.objects.read)
    except errors.TraceError:
        return "(not here)"
    when = "" if narrow else f"{date(commit.time)[:16]}  "
    return f"{when}{one_line(history.summary.summary(store, commit), SUMMARY_WIDTH)}"


def _compared(each: Branch) -> str:
    said = tracking_text(each.tracking)
    return (
        f"diverged, {len(each.tips)} tips" + (f", {said}" if said else "")
        if len(each.tips) > 1
        else said
    )


def tracking_text(tracking: Tracking | None) -> str:
    """Return how a branch stands to its upstream, in brackets as git has it; "" when it has none."""
    if tracking is None:
        return ""
    name = safe(tracking.upstream.removeprefix("refs/heads/"))
    if tracking.oid is None:
        return f"[{name}: gone]"
    counts = [("ahead", tracking.ahead), ("behind", tracking.behind)]
    said = ", ".join(f"{word} {count:,}" for word, count in counts if count)
    return f"[{name}: {said}]" if said else f"[{name}]"


def _record(store: Store, each: Branch) -> dict[str, Any]:
    compared = each.tracking
    try:
        commit = read_commit(each.oid, store.objects.read)
    except errors.TraceError:
        commit = None  # it is not here
    return {
        "name": each.name,
        "ref": each.ref,
        "commit": str(each.oid),
        "tips": [str(tip) for tip in each.tips],
        "current": each.is_current,
        "upstream": None if compared is None else compared.upstream,
        "ahead": None if compared is None else compared.ahead,
        "behind": None if compared is None else compared.behind,
        "time": None if commit is None else known_time(commit.time),
        "summary": None if commit is None else history.summary.summary(store, commit),
    }


def tell_deleted(
    invocation: Invocation,
    store: Store,
    what: str,
    found: Sequence[DeletedRef],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Say what was deleted, and where it is kept."""
    for each in found:
        if as_json:
            write_record(
                invocation, {"ref": each.ref, "object": str(each.oid), "kept": list(each.kept)}
            )
        elif not quiet:
            name = safe(each.ref.split("/", 2)[2])
            invocation.line(f"deleted {what} {name}, which was at {each.oid.short()}")
            for kept in each.kept:
                _tell_kept(invocation, store, kept, f"{what} {name}")


def _tell_kept(invocation: Invocation, store: Store, kept: str, anew: str) -> None:
    """Say where something is kept that a ref stood for; nothing is undone while something waits."""
    place = safe(kept.removeprefix("refs/"))
    back = f"trace {anew} {place}" if something_waits(store) else "trace undo"
    invocation.line(f"kept as {place}; `{back}` brings it back")

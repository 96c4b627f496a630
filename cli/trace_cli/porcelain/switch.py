"""`trace switch` and `trace checkout`: where HEAD is."""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import (
    JSON,
    QUIET,
    check_nothing_waits,
    finish,
    is_revision,
    opened_store,
)
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import paint
from trace_store import errors, history
from trace_store.objects.commit import read_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_cli.runtime import Invocation
    from trace_store.history.switch import SwitchResult
    from trace_store.refs.head import Head
    from trace_store.store.handle import Store


@takes(
    Argument("NAME", "name", "The branch; - is the one before", OPTIONAL, completes="BRANCH"),
    Argument("START", "start", "Where a new branch begins", OPTIONAL, completes="REVISION"),
    Option("-c --create", "create", "Make the branch, and go to it"),
    Option("-C --force-create", "recreate", "The same, also when there is one of this name"),
    Option("-d --detach", "detached", "Scan at a commit without a branch"),
    Option("--orphan", "orphan", "Go to a branch that has no commit yet"),
    JSON,
    QUIET,
)
def switch(
    invocation: Invocation,
    *,
    name: str | None,
    start: str | None,
    create: bool,
    recreate: bool,
    detached: bool,
    orphan: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Go to another branch.

    What a model is shown is then that branch's. NAME may also be the id of a session, or its beginning.

        trace switch idea              go to a branch
        trace switch -c idea           make one at HEAD, and go to it
        trace switch -                 go back
        trace switch --detach main~3   look at a commit, without a branch
    """
    if create + recreate + detached + orphan > 1:
        raise usage_error("-c, -C, --detach and --orphan are different ways to go; choose one")
    if name is None and not detached:
        raise usage_error("no branch is named", "`trace branch` lists them, -c makes one")
    if start is not None and not (create or recreate):
        raise usage_error("only a new branch begins somewhere", "-c makes one")
    with opened_store(invocation, quiet=quiet) as store:
        check_nothing_waits(store)
        author = invocation.environment.author
        if detached:
            done = history.switch.detach(store, name or "HEAD", author=author)
        elif orphan:
            done = history.switch.begin_empty(store, name or "", author=author)
        elif create or recreate:
            done = history.switch.begin_branch(
                store, name or "", start, author=author, force=recreate
            )
        else:
            done = _switched(store, name or "", author)
        finish(invocation, store)
        _tell_switch(invocation, store, done, as_json=as_json, quiet=quiet)


@takes(
    Argument("REVISION", "revision", "The branch or the commit", OPTIONAL, completes="REVISION"),
    Argument("START", "start", "With -b: where the branch begins", OPTIONAL, completes="REVISION"),
    Option("-b", "create", "Make the branch, and go to it"),
    Option(
        "--detach", "detached", "Scan at the commit that a branch stands for, without the branch"
    ),
    JSON,
    QUIET,
)
def checkout(
    invocation: Invocation,
    *,
    revision: str | None,
    start: str | None,
    create: bool,
    detached: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Go to a branch, or look at any commit.

    With the name of a branch it is `trace switch`. With any other revision HEAD is *detached*: it stands for that
    commit and for no branch, so that you can look at the context as it was, compile it, or begin a branch there.
    Branches stay where they are. A commit made there belongs to no branch; `trace switch -c NAME` keeps it under a
    name.
    """
    if revision is None and not detached:
        raise usage_error("no branch and no commit is named", "`trace log` lists commits")
    revision = "HEAD" if revision is None else revision
    if start is not None and not create:
        raise usage_error("only a new branch begins somewhere", "-b makes one")
    with opened_store(invocation, quiet=quiet) as store:
        check_nothing_waits(store)
        author = invocation.environment.author
        if create:
            done = history.switch.begin_branch(store, revision, start, author=author)
        elif detached:
            done = history.switch.detach(store, revision, author=author)
        else:
            try:
                done = history.switch.switch(store, revision, author=author)
            except (errors.RefNotFoundError, errors.DetachedHeadError):
                done = history.switch.detach(store, revision, author=author)
        finish(invocation, store)
        _tell_switch(invocation, store, done, as_json=as_json, quiet=quiet)


def _switched(store: Store, name: str, author: str) -> SwitchResult:
    try:
        return history.switch.switch(store, name, author=author)
    except errors.RefNotFoundError as error:
        raise errors.RefNotFoundError(
            error.message,
            hint="--detach looks at a commit" if is_revision(store, name) else "-c makes a branch",
        ) from error


def _tell_switch(
    invocation: Invocation, store: Store, done: SwitchResult, *, as_json: bool, quiet: bool
) -> None:
    after = done.after
    if as_json:
        record = {
            "ref": after.ref,
            "commit": None if after.oid is None else str(after.oid),
            "detached": after.ref is None,
            "created": done.created,
            "reset": done.reset,
            "before": _head_record(done.before),
            "kept": done.kept,
            "replaced": done.replaced,
        }
        write_record(invocation, record)
    if as_json or quiet:
        return
    if after.ref is not None:
        name = paint(invocation, safe(after.ref.removeprefix("refs/heads/")), "green")
        stayed = (done.before.ref, done.before.oid) == (after.ref, after.oid)
        if stayed and not done.created and not done.reset:
            invocation.line(f"already on branch {name}")
        else:
            new = "new branch" if done.created else "branch"
            how = ", reset to" if done.reset else " at"
            at = ", which has no commit yet" if after.oid is None else f"{how} {after.oid.short()}"
            invocation.line(f"on {new} {name}{at}")
    elif after.oid is not None:
        said = one_line(
            history.summary.summary(store, read_commit(after.oid, store.objects.read)), 72
        )
        invocation.line(f"HEAD is detached at {after.oid.short()}: {said}")
        invocation.note(
            "note: you are looking at a commit without a branch; all branches stay where they are. "
            "`trace switch -` goes back, `trace switch -c NAME` begins a branch here"
        )
    if done.replaced is not None:
        kept = safe(done.replaced.removeprefix("refs/"))
        invocation.line(f"what it stood for is kept as {kept}")
    if done.kept is not None:
        invocation.line(f"what no branch has is kept as {safe(done.kept.removeprefix('refs/'))}")


def _head_record(head: Head) -> dict[str, Any]:
    return {"ref": head.ref, "commit": None if head.oid is None else str(head.oid)}

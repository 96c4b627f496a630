"""`trace switch` and `trace checkout`."""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, QUIET, entry_of, finish, is_revision, opened
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import paint
from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_cli.runtime import Invocation, Results
    from trace_store.history.switch import SwitchResult
    from trace_store.repo.repository import Repo


@takes(
    Argument("NAME", "name", "The branch; - is the previous one", OPTIONAL, completes="BRANCH"),
    Argument("START", "start", "Start point of a new branch", OPTIONAL, completes="REVISION"),
    Option("-c --create", "create", "Create the branch and switch to it"),
    Option("-C --force-create", "recreate", "The same, and reset an existing branch"),
    Option("-d --detach", "detached", "Detach HEAD at a commit"),
    Option("--orphan", "orphan", "Switch to a new branch without a commit"),
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
) -> Results:
    """Switch branches.

    The context for the model is then that of the branch. NAME can also be a session id (prefix).

        trace switch idea              switch to a branch
        trace switch -c idea           create one at HEAD and switch to it
        trace switch -                 switch to the previous branch
        trace switch --detach main~3   detach HEAD at a commit
    """
    if create + recreate + detached + orphan > 1:
        raise usage_error("-c, -C, --detach and --orphan exclude each other")
    if name is None and not detached:
        raise usage_error("no branch is named", "`trace branch` lists branches, -c creates one")
    if start is not None and not (create or recreate):
        raise usage_error("a start point requires a new branch", "-c creates a branch there")
    with opened(invocation) as repo:
        if detached:
            done = repo.branches.checkout(name or "HEAD", detach=True)
        elif orphan or create or recreate:
            done = repo.branches.switch(
                name or "", create=not orphan, start=start, force=recreate, orphan=orphan
            )
        else:
            done = _switched(repo, name or "")
        finish(invocation, repo)
        yield done, _lines(invocation, repo, done)


@takes(
    Argument("REVISION", "revision", "The branch or the commit", OPTIONAL, completes="REVISION"),
    Argument("START", "start", "With -b: the start point", OPTIONAL, completes="REVISION"),
    Option("-b", "create", "Create the branch and switch to it"),
    Option("--detach", "detached", "Detach HEAD at the tip of the branch"),
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
) -> Results:
    """Switch branches or detach HEAD at a commit.

    With a branch name, this is `trace switch`. With any other revision, HEAD is *detached*: it names a commit and no
    branch. You can inspect and compile the context as of that commit, or create a branch there. Branches do not move. A
    commit made on a detached HEAD belongs to no branch; `trace switch -c NAME` creates one for it.
    """
    if revision is None and not detached:
        raise usage_error("no branch or commit is named", "`trace log` lists commits")
    revision = "HEAD" if revision is None else revision
    if start is not None and not create:
        raise usage_error("a start point requires a new branch", "-b creates a branch there")
    with opened(invocation) as repo:
        if create:
            done = repo.branches.switch(revision, create=True, start=start)
        else:
            done = repo.branches.checkout(revision, detach=detached)
        finish(invocation, repo)
        yield done, _lines(invocation, repo, done)


def _switched(repo: Repo, name: str) -> SwitchResult:
    try:
        return repo.branches.switch(name)
    except errors.RefNotFoundError as error:
        raise errors.RefNotFoundError(
            error.message,
            hint="--detach detaches HEAD there"
            if is_revision(repo, name)
            else "-c creates a branch",
        ) from error


def _lines(invocation: Invocation, repo: Repo, done: SwitchResult) -> Iterator[str]:
    after = done.after
    if after.ref is not None:
        name = paint(invocation, safe(after.ref.removeprefix("refs/heads/")), "green")
        if not done.changed:
            yield f"already on branch {name}"
        else:
            new = "new branch" if done.created else "branch"
            how = ", reset to" if done.reset else " at"
            at = ", no commit yet" if after.oid is None else f"{how} {after.oid.short()}"
            yield f"on {new} {name}{at}"
    elif after.oid is not None:
        said = one_line(entry_of(repo, after.oid).tip_summary(), 72)
        yield f"HEAD is detached at {after.oid.short()}: {said}"
        invocation.note(
            "note: HEAD is at a commit, on no branch; branches have not moved. "
            "`trace switch -` goes back, `trace switch -c NAME` creates a branch here"
        )
    if done.replaced is not None:
        kept = safe(done.replaced.removeprefix("refs/"))
        yield f"the old tip is kept as {kept}"
    if done.kept is not None:
        yield f"commits on no branch are kept as {safe(done.kept.removeprefix('refs/'))}"

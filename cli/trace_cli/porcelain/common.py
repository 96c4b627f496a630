"""Shared by everyday commands: opening the repository, common options, messages."""

from __future__ import annotations

import trace_store
from trace_cli import porcelain, render
from trace_cli.arguments import SOME, Argument, Option
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import counted
from trace_store import Store, errors
from trace_store.contracts.ref_names import FILES, TRASH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trace_cli.runtime import Invocation, Results
    from trace_store.base.oid import ObjectId
    from trace_store.disk.files import Disk
    from trace_store.history.draft import CommitResult
    from trace_store.history.log import LogEntry
    from trace_store.merge.stopped import Stopped
    from trace_store.refs.rewind_guard import Change
    from trace_store.repo.repository import Repo
    from trace_store.secrets.guard import Guard


SHOWN_REFS = 3
SHOWN_VALUES = 20
NOTHING = "nothing to do"
"""What a command says that changes nothing; its exit status is 0."""
JSON = Option("--json", "as_json", "Print JSON (see `trace help json`)")
QUIET = Option("-q --quiet", "quiet", "Print nothing")
MESSAGE = Option("-m --message", "message", "The commit message", "MESSAGE", default="")
SECRETS = Option(
    "--secrets",
    "secrets",
    "What to do with secrets: redact, block, warn or off",
    "MODE",
    default="",
    completes="MODE",
)
BRANCH = Option(
    "-b --branch",
    "branch",
    "Work on this branch instead of HEAD's",
    "BRANCH",
    default="",
    completes="BRANCH",
)
TARGETS = Argument(
    "ADDRESS...",
    "targets",
    "Message addresses, such as ab12cd.0 or HEAD.0",
    SOME,
    completes="ADDRESS",
)


def opened_store(
    invocation: Invocation, *, quiet: bool = False, hurried: bool = False, damaged: bool = False
) -> Store:
    """Open the repository of this run, and report what git changed in it.

    The result is a context manager. Closing it does not seal. If `hurried`, only HEAD's branch is checked. If
    `damaged`, its configuration may be corrupt or missing.

    Raises:
        RepositoryNotFoundError: there is no repository here.
    """
    where = Store.find(
        invocation.folder, invocation.environment, explicit=invocation.directory, damaged=damaged
    )
    if invocation.failure is not None:
        return _opened_incomplete(invocation, where)
    store = trace_store.maintenance.open_damaged(where) if damaged else Store.open(where)
    store.folder = invocation.folder
    store.objects.last_resort = lambda: trace_store.maintenance.came_back(
        store, invocation.tell_came_back
    )
    if invocation.interactive:
        store.journal.lock_waiter = _TerminalLockWaiter(invocation)
    try:
        lacks = store.lacks_files()
        if hurried and not lacks:
            return store
        moved = store.refs.moved_by_git()
        if (moved or lacks) and _put_back(invocation, store):
            moved = store.refs.moved_by_git()
        if not (quiet or invocation.quiet):
            _tell_moved(invocation, store.refs.rewind_guard.untold(moved))
    except BaseException:
        store.close()
        raise
    return store


class _TerminalLockWaiter:
    """Names the holder of a lock on a terminal after a second of waiting."""

    __slots__ = ("_invocation",)

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation

    def lock(self, disk: Disk, fd: int, path: str) -> None:
        """Take the exclusive lock of an open file; wait as long as necessary."""
        if not disk.lock(fd, blocking=False):
            trace_store.maintenance.lock_patiently(disk, fd, path, self)

    def tell(self, holder: object) -> None:
        """Print the holder of the lock."""
        self._invocation.note(f"waiting for {one_line(str(holder), 200)}…")


class opened:  # noqa: N801 - it is called like a function
    """Open the repository as `opened_store` does, as a `Repo` that is closed, without a seal, after a `with` block.

    `secrets` is the value of `--secrets`.
    """

    __slots__ = ("_repo",)

    def __init__(
        self,
        invocation: Invocation,
        *,
        quiet: bool = False,
        hurried: bool = False,
        damaged: bool = False,
        secrets: str = "",
    ) -> None:
        store = opened_store(invocation, quiet=quiet, hurried=hurried, damaged=damaged)
        environment = invocation.environment
        try:
            self._repo = trace_store.Repo(
                store, author=None, environment=environment, secrets=secrets
            )
        except errors.TraceError:
            store.close()
            raise

    def __enter__(self) -> Repo:
        return self._repo

    def __exit__(self, *_: object) -> None:
        self._repo.store.close()


class _Overwriting:
    """A `with` block that writes a file which --force overwrites; the error that it exists says so."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, errors.AlreadyExistsError):
            error.data.setdefault("hint", "--force overwrites it")


overwriting = _Overwriting()


def is_revision(repo: Repo, text: str) -> bool:
    """Return True if a text names a commit rather than a time."""
    try:
        repo.resolve(f"{text}^{{commit}}")
    except (errors.NotFoundError, errors.InvalidInputError):
        return False
    return True


def entry_of(repo: Repo, revision: str | ObjectId) -> LogEntry:
    """Return one commit as the log shows it."""
    [entry] = repo.log(revision, limit=1)
    return entry


def waiting(stopped: Stopped | None) -> Stopped | None:
    """Return the stopped operation for JSON; None without one, or if its file is damaged."""
    return stopped if stopped is not None and stopped.kind else None


def finish(invocation: Invocation, repo: Repo, *, seals: bool = True) -> None:
    """Seal, to make commits visible to git; without `seals` only if a seal is due."""
    if not seals:
        trace_store.maintenance.seal_if_due_by_age(repo.store)
        return
    try:
        repo.seal()
    except (errors.LockedError, errors.StorageError) as error:
        # The commit is durable. An error here would make callers repeat it.
        invocation.note(f"note: not sealed: {one_line(error.message, 200)}")


def recorded(
    invocation: Invocation,
    write: Callable[[Repo], CommitResult],
    *,
    secrets: str = "",
    branch: str = "",
    seals: bool = True,
) -> Results:
    """Let `write` make one commit on HEAD or a branch, seal, and yield the result.

    Tokens are printed on a terminal only: a script should not wait for the tokenizer to load.
    """
    with opened(invocation, hurried=not seals, secrets=secrets) as repo:
        tells_tokens = invocation.terminal and not (invocation.quiet or invocation.as_json)
        before = repo.compile(ref=branch).token_count if tells_tokens else 0
        result = write(repo)
        finish(invocation, repo, seals=seals)
        if invocation.quiet:
            return
        stopped = repo.in_progress
        if stopped is not None:
            porcelain.in_progress.tell_stopped(invocation, stopped, [result.ref])
        tell_secrets(invocation, result.secrets, repo.guard)
        if branch and not result.parents and repo.head.oid is not None:
            invocation.note(f"note: {safe(branch)} is a new branch; this commit is its first")
        if not invocation.as_json:
            _tell_unit(invocation, result)
        if not result.changed:
            text = NOTHING
        elif tells_tokens:
            after = repo.compile(ref=branch).token_count
            what = _line(result.oid.short(), result)
            text = f"{what}, {after - before:+,} tokens: the context has {after:,}"
        else:
            text = _line(str(result.oid), result)
        yield lambda: trace_store.record(result, waiting=waiting(stopped)), text


def _tell_unit(invocation: Invocation, result: CommitResult) -> None:
    """Report which messages were changed along with a call or result of their unit."""
    if not result.also:
        return
    names = ", ".join(map(render.records.short_address, result.also[:4]))
    more = f" and {len(result.also) - 4} more" if len(result.also) > 4 else ""
    verbs = (
        "belongs to the same call and goes"
        if len(result.also) == 1
        else "belong to the same call and go"
    )
    invocation.note(f"note: {names}{more} {verbs} with it")


def guarded_message(invocation: Invocation, repo: Repo, message: str) -> str:
    """Redact secrets from the message of a commit or a tag.

    Raises:
        SecretFoundError: the message has a secret, and the settings block secrets.
    """
    if not message:
        return message
    gathering = repo.guard.gathering()
    message = gathering.text(message)
    tell_secrets(invocation, gathering.secrets, repo.guard)
    return message


def tell_secrets(invocation: Invocation, found: Mapping[str, int], guard: Guard) -> None:
    """Report the secrets found by kind, and whether they were replaced."""
    if found:
        kinds = ", ".join(f"{rule} {count:,}" for rule, count in found.items())
        became = "replaced" if guard.redacts else "found, but not replaced"
        invocation.note(f"{counted(sum(found.values()), 'secret')} {became} ({kinds})")


def _line(name: str, result: CommitResult) -> str:
    """Return a commit's id and number of messages, or its summary if it has none."""
    if result.message_count:
        return f"{name} {counted(result.message_count, 'message')}"
    return f"{name} {one_line(result.summary(), 100)}"


def _put_back(invocation: Invocation, store: Store) -> bool:
    """Restore packs and refs that git deleted before they were in git.

    Returns True if there were any.
    """
    found = trace_store.maintenance.restore_missing(store)
    if found:
        what = [counted(len(found.packs), "pack")] if found.packs else []
        what += [safe(name) for name, _ in found.tips[:SHOWN_REFS]]
        more = len(found.tips) - SHOWN_REFS
        what += [f"{more:,} more"] if more > 0 else []
        invocation.note(f"note: restored after git removed it: {', '.join(what)}")
    return bool(found)


def _opened_incomplete(invocation: Invocation, where: str) -> Store:
    """Open a repository with missing objects to show what there is, and name where histories end."""
    store, gaps = trace_store.maintenance.open_incomplete(where)
    for gap in gaps:
        name, first = safe(gap.name), gap.missing[0]
        count = counted(len(gap.missing), "commit")
        if gap.child is None:
            what = f"the newest {count} of {name}"
        elif gap.before is None:
            what = f"what came before {gap.child.short()} on {name}"
        else:
            what = f"{count} before {gap.child.short()} on {name}"
        invocation.note(f"incomplete: missing: {what} (commit {first})")
    return store


def _tell_moved(invocation: Invocation, moved: list[Change]) -> None:
    for name, before, now in moved:
        if name.startswith((FILES, TRASH)):
            continue  # these change along with other refs
        if before == now:
            invocation.note(f"note: git added another tip of {safe(name)}")
        else:
            was = before.short() if before else "nothing"
            became = now.short() if now else "nothing"
            invocation.note(f"note: git moved {safe(name)} from {was} to {became}")


def tell_unmatched(invocation: Invocation, what: str, wanted: str, known: Sequence[str]) -> None:
    """Report that a filter's value is nowhere, and which values there are."""
    what = "fact" if what == "meta" else what
    names = ", ".join(one_line(each, 40) for each in known[:SHOWN_VALUES])
    more = f" and {len(known) - SHOWN_VALUES:,} more" if len(known) > SHOWN_VALUES else ""
    there = f"{what}s here: {names}{more}" if known else f"there is no {what} here"
    invocation.note(f"nothing with the {what} {one_line(wanted, 40)!r}; {there}")


def tell_unknown_model(invocation: Invocation, model: str) -> None:
    """Report that a model is unknown, and suggest the closest name."""
    if not model:
        return
    near = trace_store.context.nearest_model(model)
    if near is not None:
        meant = f"; did you mean {near!r}?" if near else ""
        invocation.note(
            f"note: unknown model {one_line(model, 60)!r}: its tokens are estimated{meant}"
        )

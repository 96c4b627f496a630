"""Commands that stop at conflicts: start, continue, abort."""

from __future__ import annotations

from trace_cli.arguments import Option
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import finish, opened_store
from trace_cli.porcelain.conflicts import choices_line, conflict_lines
from trace_cli.render.escape import safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted
from trace_store import checkpoints, errors, merge, secrets
from trace_store.config import AUTOMATIC_SETTING
from trace_store.merge.conflicts import OURS, THEIRS
from trace_store.merge.in_progress import WORDS, read_stop
from trace_store.merge.in_progress import refuse_while_stopped as refuse_while_stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from trace_cli.runtime import Invocation
    from trace_store.merge.conflicts import Conflict
    from trace_store.merge.in_progress import Stop
    from trace_store.merge.llm_assist.review import Judge
    from trace_store.secrets.guard import Guard
    from trace_store.store.handle import Store


STOPPED = "stopped"
CONTINUE = Option("--continue", "go_on", "Continue after all conflicts are resolved")
ABORT = Option("--abort", "abort", "Cancel and restore the state before")
SKIP = Option("--skip", "skip", "Skip the current commit and continue")
GOING_ON = (CONTINUE, ABORT, SKIP)
FAVOUR = Option(
    "-X --favour",
    "favour",
    "Resolve all conflicts with ours or theirs",
    "SIDE",
    default="",
    choices=(OURS, THEIRS),
)


class Run:
    """One call of a command that may stop at conflicts, with its options."""

    __slots__ = ("_invocation", "_json", "_kind", "_quiet", "_secrets", "_way")

    def __init__(
        self,
        invocation: Invocation,
        kind: str,
        *,
        go_on: bool,
        abort: bool,
        skip: bool,
        secrets: str,
        as_json: bool,
        quiet: bool,
    ) -> None:
        self._invocation = invocation
        self._kind = kind
        self._way = ["go on"] * go_on + ["abort"] * abort + ["skip"] * skip
        self._secrets = secrets
        self._json = as_json
        self._quiet = quiet

    def check(
        self, what: str, given: object, *, needed: bool = True, alone: Sequence[str] = ()
    ) -> None:
        """Raise a usage error unless one of the argument, --continue etc. is given.

        `alone` are the given options that only a new command accepts, not --continue, --abort or --skip.
        """
        if given == "":
            raise usage_error(f"{what} is empty")
        if self._way and alone:
            raise usage_error(f"{alone[0]} cannot be combined with --continue, --abort or --skip")
        if len(self._way) + bool(given) > 1 or (needed and not (self._way or given)):
            raise usage_error(f"give one of {what}, --continue, --abort and --skip")

    def carry_out(
        self,
        begin: Callable[[Store, Guard], Any],
        record: Callable[[Store, Any], list[dict[str, Any]]],
        tell: Callable[[Store, Any], None],
        message: str = "",
        judge: Callable[[Store], Judge | None] = lambda store: None,
        drop_pinned: bool = False,
    ) -> None:
        """Start, continue or abort, seal, and print the result.

        Args:
            begin: starts the command; returns its result, or None if there is nothing to print.
            record: returns the result as JSON.
            tell: prints the result for people.
            message: the commit message of a continued merge.
            judge: returns the model that judges reapplied commits on --continue.
            drop_pinned: whether a continued rebase may drop pinned messages.

        Raises:
            ConflictError: it stopped at conflicts.
        """
        invocation = self._invocation
        with opened_store(invocation, quiet=self._quiet) as store:
            if self._way == ["abort"]:
                self._give_up(store)
                return
            guard = secrets.guard.Guard.of(store, invocation.environment, self._secrets)
            found: Any
            if self._way:
                found = merge.resolve.resume(
                    store,
                    kind=self._kind,
                    author=invocation.environment.author,
                    message=message,
                    guard=guard,
                    judge=judge(store),
                    skip=self._way == ["skip"],
                    drop_pinned=drop_pinned,
                )
            else:
                if store.config.get(AUTOMATIC_SETTING):
                    author = invocation.environment.author
                    checkpoints.automatic.before(store, self._kind, author=author)
                found = begin(store, guard)
            if found is None:
                return
            stopped = found.outcome == STOPPED
            if not stopped:
                finish(invocation, store)
            if self._json:
                for each in record(store, found):
                    write_record(invocation, each)
            elif stopped:
                tell(store, found)
                for line in conflict_lines(invocation, store, found.conflicts):
                    invocation.line(line)
            else:
                tell(store, found)
            if stopped:
                raise _stopped(self._kind, found.conflicts)

    def _give_up(self, store: Store) -> None:
        given_up = merge.resolve.abort(store, self._kind)
        if self._json:
            write_record(self._invocation, {"aborted": given_up.kind, "ref": given_up.ref})
        elif not self._quiet:
            branch = safe(given_up.ref.removeprefix("refs/heads/"))
            now = store.refs.read(given_up.ref) if given_up.ref else None
            moved = now is not None and now != given_up.before
            where = f"stays at {now.short()}" if now and moved else "is unchanged"
            self._invocation.line(f"{WORDS[self._kind]} aborted: {branch} {where}")


def _stopped(kind: str, conflicts: Sequence[Conflict]) -> Exception:
    """Return the error for a command that stopped at conflicts."""
    return errors.ConflictError(
        f"the {WORDS[kind]} stopped at {counted(len(conflicts), 'conflict')}; nothing is written yet",
        code=errors.ErrorCode.MERGE_CONFLICT,
        hint=f"`{choices_line(conflicts)}` resolves one; then `trace {kind} --continue`, or --skip for "
        "this commit, or --abort",
    )


def what_waits(store: Store) -> Stop | None:
    """Return the operation in progress; None if there is none or it is unreadable."""
    try:
        return read_stop(store)
    except errors.FormatError:
        return None  # `--continue` reports it


def tell_stopped(invocation: Invocation, store: Store, refs: Collection[str | None]) -> None:
    """Report that an operation is in progress on one of the refs just written."""
    found = what_waits(store)
    if found is not None and found.ref in refs:
        kind = safe(found.kind)
        invocation.note(
            f"note: {waiting_line(found)}; your commit is on the branch, and "
            f"`trace {kind} --continue` continues from it"
        )


def waiting_line(found: Stop) -> str:
    """Return a line about the operation in progress."""
    return f"{safe(found.said)} is in progress"

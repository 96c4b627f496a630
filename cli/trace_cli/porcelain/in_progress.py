"""Commands that stop at conflicts: start, continue, abort."""

from __future__ import annotations

from itertools import chain

from trace_cli.arguments import Option
from trace_cli.failures import usage_error
from trace_cli.porcelain.advice import asked_model
from trace_cli.porcelain.common import finish, opened
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import counted, paint
from trace_store import errors
from trace_store.merge import Stopped
from trace_store.merge.conflicts import BOTH, OURS, TEXT, THEIRS
from trace_store.merge.in_progress import MERGE, WORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import Any

    from trace_cli.runtime import Invocation, Results
    from trace_store.merge.conflicts import Conflict, ConflictMessage
    from trace_store.merge.meaning_warnings import MeaningWarning
    from trace_store.repo.repository import Repo

WIDTH = 72
SHOWN_MESSAGES = 3
_OPTIONS = {OURS: "--ours", THEIRS: "--theirs", BOTH: "--both", TEXT: "TEXT"}


def conflict_lines(invocation: Invocation, found: Sequence[Conflict]) -> list[str]:
    """Return the lines that list open and resolved conflicts."""
    lines = []
    for conflict in found:
        name = " ".join(short_address(address) for address in conflict.addresses[:1])
        said = conflict.resolution
        kind = paint(invocation, conflict.kind, "red" if said is None else "green")
        head = f"{conflict.number}  {kind}  {name}".rstrip()
        if said is not None:
            how = one_line(said.text, WIDTH) if said.choice == TEXT else said.choice
            lines.append(f"{head}  resolved: {how}")
            continue
        lines.append(f"{head}  {conflict.meaning}")
        for side, entries in (("ours", conflict.ours), ("theirs", conflict.theirs)):
            for entry in entries[:SHOWN_MESSAGES]:
                lines.append(
                    f"     {side:6}  {_state(entry)}{one_line(entry.summary(WIDTH), WIDTH)}"
                )
            if len(entries) > SHOWN_MESSAGES:
                more = counted(len(entries) - SHOWN_MESSAGES, "more message")
                lines.append(f"             and {more}")
    return lines


def _state(entry: ConflictMessage) -> str:
    marks = [entry.hidden] if entry.hidden else []
    if entry.priority != "normal":
        marks.append(entry.priority)
    return f"[{', '.join(marks)}] " if marks else ""


def choices_line(found: Sequence[Conflict]) -> str:
    """Return the command that resolves one of the open conflicts."""
    allowed = [name for name in _OPTIONS if all(name in each.choices for each in found)]
    ways = " | ".join(_OPTIONS[name] for name in allowed or [OURS])
    return f"trace resolve NUMBER {ways}"


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


class ResumableCommand:
    """One call of a command that may stop at conflicts, with its options; `way` are those of GOING_ON."""

    __slots__ = ("_invocation", "_kind", "_secrets", "_way")

    def __init__(
        self,
        invocation: Invocation,
        kind: str,
        way: tuple[bool, bool, bool],
        secrets: str,
    ) -> None:
        self._invocation = invocation
        self._kind = kind
        go_on, abort, skip = way
        self._way = ["go on"] * go_on + ["abort"] * abort + ["skip"] * skip
        self._secrets = secrets

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
        begin: Callable[[Repo], Any],
        lines: Callable[[Repo, Any], Iterable[str]],
        message: str = "",
        judge: bool = False,
        drop_pinned: bool = False,
    ) -> Results:
        """Start, continue or abort, seal, and yield the result.

        Args:
            begin: starts the command; returns its result.
            lines: returns the lines about the result.
            message: the commit message of a continued merge.
            judge: whether the model judges reapplied commits on --continue.
            drop_pinned: whether a continued rebase may drop pinned messages.

        Raises:
            ConflictError: it stopped at conflicts.
        """
        invocation = self._invocation
        with opened(invocation, secrets=self._secrets) as repo:
            if self._way == ["abort"]:
                yield from self._give_up(repo)
                return
            found: Any
            if self._way:
                found = waiting(repo, self._kind).continue_(
                    skip=self._way == ["skip"],
                    message=message,
                    judge=asked_model(invocation, repo) if judge else None,
                    drop_pinned=drop_pinned,
                )
            else:
                found = begin(repo)
            stopped = isinstance(found, Stopped)
            if stopped:
                found = found.so_far
            else:
                finish(invocation, repo)
            if not invocation.as_json:
                warn(invocation, getattr(found, "warnings", ()))
            conflicts = conflict_lines(invocation, found.conflicts) if stopped else ()
            yield found, chain(lines(repo, found), conflicts)
            if stopped:
                raise _stopped(self._kind, found.conflicts)

    def _give_up(self, repo: Repo) -> Results:
        given_up = waiting(repo, self._kind)
        given_up.abort()
        branch = safe(given_up.ref.removeprefix("refs/heads/"))
        now = repo.line(given_up.ref).head.oid if given_up.ref else None
        moved = now is not None and now != given_up.before
        where = f"stays at {now.short()}" if now and moved else "is unchanged"
        yield (
            {"aborted": self._kind, "ref": given_up.ref},
            f"{WORDS[self._kind]} aborted: {branch} {where}",
        )


def waiting(repo: Repo, kind: str = "") -> Stopped:
    """Return the operation in progress.

    Raises:
        StateError: there is none, or it is of another kind.
    """
    return repo.stopped(kind)


def _stopped(kind: str, conflicts: Sequence[Conflict]) -> Exception:
    """Return the error for a command that stopped at conflicts."""
    skip = "" if kind == MERGE else ", or --skip for this commit"
    return errors.ConflictError(
        f"the {WORDS[kind]} stopped at {counted(len(conflicts), 'conflict')}; nothing is written yet",
        code=errors.ErrorCode.MERGE_CONFLICT,
        hint=f"`{choices_line(conflicts)}` resolves one; then `trace {kind} --continue`{skip}, or --abort",
    )


def tell_stopped(
    invocation: Invocation, found: Stopped | None, refs: Collection[str | None]
) -> None:
    """Report that an operation is in progress on one of the refs just written."""
    if found is not None and found.kind and found.ref in refs:
        invocation.note(
            f"note: {safe(found.description)} is in progress; your commit is on the branch, and "
            f"`trace {safe(found.kind)} --continue` continues from it"
        )


def warn(invocation: Invocation, warnings: Iterable[MeaningWarning]) -> None:
    """Print warnings on standard error."""
    for warning in warnings:
        said = one_line(warning.meaning, 600)
        others = ", ".join(short_address(address) for address in warning.others)
        about = f" ({others})" if others else ""
        invocation.note(f"warning: {short_address(warning.address)}: {said}{about}")

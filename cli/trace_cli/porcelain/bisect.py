"""`trace bisect`."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import trace_store
from trace_cli.arguments import ANY, COMMAND, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, entry_of, opened
from trace_cli.render.escape import one_line
from trace_cli.render.tables import counted
from trace_cli.runtime import Invocation
from trace_cli.subcommands import Group
from trace_store import errors
from trace_store.context.compiled import CompiledContext
from trace_store.history.bisect import (
    BAD,
    COMMITS,
    GOOD,
    SKIP,
    BisectStep,
    OngoingBisection,
    Verdict,
)
from trace_store.providers import FORMATS
from trace_store.repo.repository import Repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

HELP = """A search starts with a bad commit and an earlier good one. Trace then picks a commit between them. Mark it
with `trace bisect good`, `bad` or `skip`, or let `trace bisect run` run a command on each. With --messages Trace
searches the messages of one context instead: each step is the context up to one message."""
SKIPS = 125
_STANDARD_ERROR = 2


@takes(
    Argument(
        "REVISION",
        "revisions",
        "A bad commit (default: HEAD), then good ones",
        ANY,
        completes="COMMIT",
    ),
    Option("--messages", "messages", "Search the messages of the bad commit's context"),
    JSON,
)
def start(invocation: Invocation, *, revisions: list[str], messages: bool) -> Results:
    """Start a search with a bad commit and good ones.

    Without a good commit, the search covers the whole history.
    """
    if messages and len(revisions) > 1:
        raise usage_error("--messages takes one commit")
    with opened(invocation) as here:
        search = here.branches.start_bisection(*revisions, messages=messages)
        step = search.next
        yield _result(search, step), _lines(here, search, step)
        if invocation.terminal and not step.is_done and not invocation.as_json:
            shown = (
                f"`trace compile {search.state.commit.short()}`, cut"
                if messages
                else "`trace compile ID` shows it"
            )
            invocation.note(
                f"note: HEAD does not move; {shown}; then mark it with `trace bisect good` or `bad`. "
                "`trace bisect run COMMAND` runs a command with each context on standard input"
            )


def _marking(word: str, text: str) -> Callable[..., Results]:
    @takes(
        Argument(
            "POINT", "points", "Commits, or numbers of messages (default: the current one)", ANY
        ),
        JSON,
    )
    def mark(invocation: Invocation, *, points: list[str]) -> Results:
        with opened(invocation) as here:
            search = _going_on(here)
            step = search.mark(word, *points)
            yield _result(search, step), _lines(here, search, step)

    mark.__doc__ = text
    return mark


@takes(JSON)
def next_(invocation: Invocation) -> Results:
    """Print the current commit again."""
    with opened(invocation) as here:
        search = _going_on(here)
        step = search.next
        yield _result(search, step), _lines(here, search, step)


@takes()
def reset(invocation: Invocation) -> None:
    """End the search."""
    with opened(invocation) as here:
        if not here.branches.end_bisection():
            invocation.note("no search was in progress")


@takes(JSON)
def log(invocation: Invocation) -> Results:
    """List the results so far."""
    with opened(invocation) as here:
        for each in _going_on(here).state.verdicts:
            yield each, f"{each.word:5}{_runs(each)} {each.point}"


@takes(
    Argument("COMMAND", "command", "The command with its arguments", COMMAND),
    Option(
        "--repeat", "repeat", "Run it N times for each commit", "N", number=True, least=1, default=1
    ),
    Option(
        "--threshold",
        "threshold",
        "A commit is bad from K failures on",
        "K",
        number=True,
        least=1,
    ),
    Option(
        "-f --format",
        "form",
        f"The format of its input: {', '.join(FORMATS)}",
        "FORMAT",
        default="text",
        completes="RENDERER",
    ),
    JSON,
)
def run(
    invocation: Invocation,
    *,
    command: list[str],
    repeat: int,
    threshold: int | None,
    form: str,
) -> Results:
    """Run a command on the remaining commits, and print the result.

    The command gets the context on standard input, or in a file whose name replaces `{}` in its arguments. Exit code 0
    means good, 125 untestable, any other up to 127 bad. A killed command ends the search. The bad commit and the named
    good ones are tested first. The output of the command goes to standard error.

    A nondeterministic command can run several times per commit. If its results differ for a commit, the search stops,
    unless --threshold says how many failures make it bad. The exit code is 3 then, and also if skipped commits leave
    the result open.

        trace bisect start HEAD HEAD~40
        trace bisect run --repeat 5 --threshold 3 -- ./ask.sh
    """
    if form not in FORMATS:
        raise usage_error(f"unknown format {form!r}", f"formats: {', '.join(FORMATS)}")
    if threshold is not None and threshold > repeat:
        raise usage_error("--threshold cannot exceed --repeat")
    with opened(invocation) as here:
        search = _going_on(here)
        trial = _Trial(invocation, command, form)
        step = search.run(trial.passes, repeat=repeat, threshold=threshold, progress=trial.tell)
        yield _result(search, step), _lines(here, search, step)
        if len(step.found) > 1:
            raise errors.ConflictError(
                f"any of {len(step.found)} may be the first bad one, since some were skipped",
                hint="mark them with `trace bisect good` or `bad`, or end the search with `trace bisect reset`",
            )


class _Trial:
    """Runs a command on contexts."""

    def __init__(self, invocation: Invocation, command: Sequence[str], form: str) -> None:
        self._invocation = invocation
        self._command = command
        self._form = form
        self._last: tuple[CompiledContext, bytes] | None = None

    def passes(self, context: CompiledContext) -> bool | None:
        """Run the command on a context; return None if it cannot tell.

        Raises:
            StateError: the command cannot be run, or was killed.
        """
        if self._last is None or self._last[0] is not context:
            data = context.render(self._form).to_bytes()
            self._last = context, data
        code = self._once(self._last[1])
        return None if code == SKIPS else not code

    def tell(self, verdict: Verdict) -> None:
        """Print a verdict."""
        said = f"{verdict.failed} of {verdict.runs} failed{verdict.word and f', {verdict.word}'}"
        self._invocation.note(
            f"{verdict.point[:12]}: {'untestable' if verdict.word == SKIP else said}"
        )

    def _once(self, data: bytes) -> int:
        """Return the exit code of the command on a context."""
        if not any("{}" in word for word in self._command):
            return self._exit(self._command, data)
        handle, path = tempfile.mkstemp(prefix="trace-bisect-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            return self._exit([word.replace("{}", path) for word in self._command], None)
        finally:
            os.remove(path)

    def _exit(self, command: Sequence[str], data: bytes | None) -> int:
        self._invocation.flush()
        try:
            done = subprocess.run(
                command,
                input=b"" if data is None else data,
                stdout=_STANDARD_ERROR,
                check=False,
            )
        except OSError as error:
            raise errors.StateError(
                f"cannot run {command[0]!r}: {error.strerror or error}"
            ) from error
        if not 0 <= done.returncode < 128:
            raise errors.StateError(f"{command[0]!r} was killed: exit code {done.returncode}")
        return done.returncode


def _going_on(here: Repo) -> OngoingBisection:
    search = here.branches.bisection
    if search is None:
        raise errors.StateError(
            "no search is in progress", hint="`trace bisect start BAD GOOD` starts one"
        )
    return search


def _result(search: OngoingBisection, step: BisectStep) -> Callable[[], dict[str, Any]]:
    return lambda: {**trace_store.record(search.state), **trace_store.record(step)}


def _lines(here: Repo, search: OngoingBisection, step: BisectStep) -> Iterator[str]:
    """Yield the next point to test, or the result."""
    kind = "commit" if search.state.kind == COMMITS else "message"
    if not step.is_done:
        steps = max(step.left - 1, 1).bit_length()
        what = counted(step.left, kind)
        yield f"{what} left, about {counted(steps, 'step')}; try this:"
        yield _described(here, search, step.point)
        return
    if len(step.found) > 1:
        yield "some were skipped; the first bad one is among these:"
    else:
        yield f"the first bad {kind}:"
    last = {each.point: each for each in search.state.verdicts}
    for point in step.found:
        verdict = last.get(point)
        runs = _runs(verdict) if verdict is not None else ""
        yield f"{_described(here, search, point)}{runs}"


def _described(here: Repo, search: OngoingBisection, point: str) -> str:
    """Return a line about a point."""
    if search.state.kind == COMMITS:
        return f"{point[:12]}  {one_line(entry_of(here, point).summary(80), 120)}"
    message = here.compile(search.state.commit).messages[int(point) - 1]
    said = one_line(message.summary(80), 120)
    return f"{point} messages, the last of them {message.address}  {said}"


def _runs(verdict: Verdict) -> str:
    return f"  ({verdict.failed} of {verdict.runs} failed)" if verdict.runs else ""


GROUP = Group(
    HELP,
    {
        "start": start,
        GOOD: _marking(GOOD, "Mark a commit as good; the current one if none is named."),
        BAD: _marking(BAD, "Mark a commit as bad; the current one if none is named."),
        SKIP: _marking(SKIP, "Mark a commit as untestable; the current one if none is named."),
        "run": run,
        "next": next_,
        "log": log,
        "reset": reset,
    },
)

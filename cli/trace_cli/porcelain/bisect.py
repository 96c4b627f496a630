"""`trace bisect`."""

from __future__ import annotations

import os
import subprocess
import tempfile

from trace_cli.arguments import ANY, COMMAND, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, opened_store
from trace_cli.render.escape import one_line
from trace_cli.render.records import write_record
from trace_cli.render.tables import counted
from trace_cli.subcommands import Group
from trace_store import errors, history, providers, repo
from trace_store.context.compiler import ContextCompiler
from trace_store.context.content import message_line
from trace_store.history import bisect
from trace_store.history.bisect import BAD, COMMITS, GOOD, MESSAGES, SKIP, Bisection, Step, Verdict
from trace_store.objects.commit import read_commit
from trace_store.oid import ObjectId
from trace_store.providers import FORMATS
from trace_store.revision import resolve_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trace_cli.runtime import Invocation
    from trace_store.store.handle import Store

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
def start(invocation: Invocation, *, revisions: list[str], messages: bool, as_json: bool) -> None:
    """Start a search with a bad commit and good ones.

    Without a good commit, the search covers the whole history.
    """
    with opened_store(invocation) as store:
        bad, *goods = [resolve_commit(store, each) for each in revisions or ["HEAD"]]
        if messages and goods:
            raise usage_error("--messages takes one commit")
        told = [Verdict(BAD, str(bad)), *(Verdict(GOOD, str(each)) for each in goods)]
        count = len(ContextCompiler(store).compile(bad)) if messages else 0
        if messages:
            if not count:
                raise errors.StateError("the context has no messages")
            told = [Verdict(BAD, str(count))]
        search = Bisection(MESSAGES if messages else COMMITS, bad, tuple(told))
        step = bisect.next_step(store, search, count)
        bisect.save(store, search)
        _say(invocation, store, search, step, as_json=as_json)
        if invocation.terminal and not step.is_done and not as_json:
            shown = (
                f"`trace compile {bad.short()}`, cut" if messages else "`trace compile ID` shows it"
            )
            invocation.note(
                f"note: HEAD does not move; {shown}; then mark it with `trace bisect good` or `bad`. "
                "`trace bisect run COMMAND` runs a command with each context on standard input"
            )


def _marking(word: str, text: str) -> Callable[..., None]:
    @takes(
        Argument(
            "POINT", "points", "Commits, or numbers of messages (default: the current one)", ANY
        ),
        JSON,
    )
    def mark(invocation: Invocation, *, points: list[str], as_json: bool) -> None:
        with opened_store(invocation) as store:
            search, count = _going_on(store)
            for point in points or [_current(store, search, count)]:
                search = search.with_verdict(Verdict(word, _point(store, search, count, point)))
            step = bisect.next_step(store, search, count)
            bisect.save(store, search)
            _say(invocation, store, search, step, as_json=as_json)

    mark.__doc__ = text
    return mark


@takes(JSON)
def next_(invocation: Invocation, *, as_json: bool) -> None:
    """Print the current commit again."""
    with opened_store(invocation) as store:
        search, count = _going_on(store)
        step = bisect.next_step(store, search, count)
        _say(invocation, store, search, step, as_json=as_json)


@takes()
def reset(invocation: Invocation) -> None:
    """End the search."""
    with opened_store(invocation) as store:
        if not bisect.forget(store):
            invocation.note("no search was in progress")


@takes(JSON)
def log(invocation: Invocation, *, as_json: bool) -> None:
    """List the results so far."""
    with opened_store(invocation) as store:
        search, _ = _going_on(store)
        for each in search.verdicts:
            if as_json:
                write_record(invocation, repo.records.bisect_answer(each))
            else:
                invocation.line(f"{each.word:5}{_runs(each)} {each.point}")


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
    as_json: bool,
) -> None:
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
    with opened_store(invocation) as store:
        search, count = _going_on(store)
        trial = _Trial(invocation, store, search, command, form)
        for each in {each.point: each for each in search.verdicts}.values():
            if each.word == SKIP or each.runs:
                continue
            told = trial.told(each.point, repeat, threshold)
            if told.word not in (each.word, SKIP):
                raise errors.StateError(
                    f"{each.point[:12]} was marked {each.word}, but the command reports {told.word}"
                )
            search = search.with_verdict(Verdict(each.word, each.point, told.failed, told.runs))
        step = bisect.next_step(store, search, count)
        while not step.is_done:
            search = search.with_verdict(trial.told(step.point, repeat, threshold))
            bisect.save(store, search)
            step = bisect.next_step(store, search, count)
        bisect.save(store, search)
        _say(invocation, store, search, step, as_json=as_json)
        if len(step.found) > 1:
            raise errors.ConflictError(
                f"any of {len(step.found)} may be the first bad one, since some were skipped",
                hint="mark them with `trace bisect good` or `bad`, or end the search with `trace bisect reset`",
            )


class _Trial:
    """Runs a command on contexts."""

    def __init__(
        self,
        invocation: Invocation,
        store: Store,
        search: Bisection,
        command: Sequence[str],
        form: str,
    ) -> None:
        self._invocation = invocation
        self._contexts = ContextCompiler(store)
        self._search = search
        self._command = command
        self._form = form

    def told(self, point: str, repeat: int, threshold: int | None) -> Verdict:
        """Run the command on a point and return its verdict.

        Raises:
            ConflictError: its runs disagree, and there is no threshold.
            StateError: the command cannot be run, or was killed.
        """
        data = self._context(point)
        failed = 0
        for _ in range(repeat):
            code = self._once(data)
            if code == SKIPS:
                self._invocation.note(f"{point[:12]}: untestable")
                return Verdict(SKIP, point)
            failed += code != 0
        word = bisect.verdict_for(failed, repeat, threshold)
        self._invocation.note(f"{point[:12]}: {failed} of {repeat} failed{word and f', {word}'}")
        if not word:
            raise errors.ConflictError(
                f"inconclusive: {failed} of {repeat} runs failed at {point[:12]}",
                hint="--threshold K sets how many failures are bad; `trace bisect skip` skips it",
            )
        return Verdict(word, point, failed, repeat)

    def _context(self, point: str) -> bytes:
        if self._search.kind == MESSAGES:
            whole = self._contexts.compile(self._search.commit)
            messages = [each.message() for each in whole.messages[: int(point)]]
            return providers.wire.to_bytes(whole.plain(messages).render(self._form).request)
        context = self._contexts.compile(ObjectId.parse(point))
        return providers.wire.to_bytes(context.render(self._form).request)

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


def _going_on(store: Store) -> tuple[Bisection, int]:
    """Return the search in progress, and its number of messages (0 for commits)."""
    search = bisect.load(store)
    if search is None:
        raise errors.StateError(
            "no search is in progress", hint="`trace bisect start BAD GOOD` starts one"
        )
    if search.kind == COMMITS:
        return search, 0
    return search, len(ContextCompiler(store).compile(search.commit))


def _current(store: Store, search: Bisection, count: int) -> str:
    step = bisect.next_step(store, search, count)
    if step.is_done:
        raise errors.StateError(
            "the search is finished", hint="`trace bisect reset` ends the search"
        )
    return step.point


def _point(store: Store, search: Bisection, count: int, text: str) -> str:
    """Return a point in its stored form."""
    if search.kind == COMMITS:
        return str(resolve_commit(store, text))
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= count):
        raise usage_error(f"not a message number from 1 to {count:,}: {text[:40]!r}")
    return str(int(text))


def _say(
    invocation: Invocation, store: Store, search: Bisection, step: Step, *, as_json: bool
) -> None:
    """Print the next point to test, or the result."""
    if as_json:
        record = {
            "kind": search.kind,
            "commit": str(search.commit),
            "next": step.point or None,
            "left": step.left,
            "found": list(step.found),
            "told": [repo.records.bisect_answer(each) for each in search.verdicts],
        }
        write_record(invocation, record)
        return
    if not step.is_done:
        steps = max(step.left - 1, 1).bit_length()
        what = counted(step.left, "commit" if search.kind == COMMITS else "message")
        invocation.line(f"{what} left, about {counted(steps, 'step')}; try this:")
        invocation.line(_described(store, search, step.point))
        return
    if len(step.found) > 1:
        invocation.line("some were skipped; the first bad one is among these:")
    else:
        invocation.line(f"the first bad {'commit' if search.kind == COMMITS else 'message'}:")
    last = {each.point: each for each in search.verdicts}
    for point in step.found:
        told = last.get(point)
        runs = _runs(told) if told is not None else ""
        invocation.line(f"{_described(store, search, point)}{runs}")


def _described(store: Store, search: Bisection, point: str) -> str:
    """Return a line about a point."""
    read = store.objects.read
    if search.kind == COMMITS:
        oid = ObjectId.parse(point)
        said = history.summary.summary(store, read_commit(oid, read), 80)
        return f"{oid.short()}  {one_line(said, 120)}"
    contexts = ContextCompiler(store)
    message = contexts.compile(search.commit).messages[int(point) - 1]
    said = "" if message.ghost else message_line(message.stored, read, 80)
    return f"{point} messages, the last of them {message.address}  {one_line(said, 120)}"


def _runs(told: Verdict) -> str:
    return f"  ({told.failed} of {told.runs} failed)" if told.runs else ""


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

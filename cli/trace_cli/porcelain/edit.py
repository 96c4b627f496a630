"""Commands that change existing messages: edit, priorities, labels, remove and restore."""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, MESSAGE, QUIET, SECRETS, TARGETS, recorded
from trace_cli.porcelain.input import argument_text, single_message, text_from
from trace_cli.render.escape import safe
from trace_store import errors
from trace_store.objects.operations import IMPORTANT, NORMAL, PINNED, SKIP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_cli.runtime import Invocation, Results
    from trace_store.history.draft import CommitResult
    from trace_store.repo.repository import Repo


@takes(
    Argument("ADDRESS", "target", "The message address, such as HEAD.0", completes="ADDRESS"),
    Argument("TEXT", "text", "The new text; - reads standard input", OPTIONAL),
    Option("-F --file", "file", "Read the new text from FILE", "FILE"),
    Option(
        "--parts",
        "from_json",
        "TEXT or FILE is JSON: a message, or parts as in `show --json`",
    ),
    Option("--call", "call", "Edit the result of this call", "ID", default=""),
    Option("--all", "all_results", "Edit all results of the message"),
    Option("--force", "force", "Allow separating a call from its result"),
    MESSAGE,
    SECRETS,
    JSON,
    QUIET,
)
def edit(
    invocation: Invocation,
    *,
    target: str,
    text: str | None,
    file: str | None,
    from_json: bool,
    call: str,
    all_results: bool,
    force: bool,
    message: str,
    secrets: str,
) -> Results:
    """Change the text of a message.

    TEXT replaces the message's text, or the text of its tool result. If the message has several results, name one with
    --call, or give --all. Tool calls, images and reasoning stay, so that a call keeps its result. --parts replaces
    everything. Earlier versions are kept: `trace show --versions ADDRESS` lists them, `trace restore --version N
    ADDRESS` restores one.
    """
    if (text is None) == (file is None):
        raise usage_error("give TEXT or -F FILE", "- reads standard input")
    chosen = [option for option, is_ in {"--call": call, "--all": all_results}.items() if is_]
    if len(chosen) > 1:
        raise usage_error("--call and --all exclude each other")
    if from_json and chosen:
        raise usage_error(f"{chosen[0]} cannot be combined with --parts")
    typed = text is not None and text != "-"
    given = argument_text(text or "") if typed else text_from(invocation, file or "-")

    def write(repo: Repo) -> CommitResult:
        if from_json:
            parts = single_message(given).parts
            return repo.edit(target, parts, force=force, message=message)
        return repo.edit(target, given, call=call, all_results=all_results, message=message)

    try:
        yield from recorded(invocation, write, secrets=secrets)
    except errors.InvalidOperationError as error:
        if not error.data.get("calls") or error.code == errors.ErrorCode.SEVERAL_RESULTS:
            raise
        raise usage_error(error.message, "--force edits it anyway") from error


@takes(TARGETS, MESSAGE, JSON, QUIET)
def pin(invocation: Invocation, *, targets: list[str], message: str) -> Results:
    """Protect messages from compression."""
    return _annotate(invocation, targets, message, priority=PINNED)


@takes(
    TARGETS,
    Option("--keep", "keep", "Text that a summary has to contain", "PATTERN", many=True),
    MESSAGE,
    JSON,
    QUIET,
)
def important(
    invocation: Invocation,
    *,
    targets: list[str],
    keep: list[str],
    message: str,
) -> Results:
    """Mark messages as important: a summary may shorten them, but has to keep the patterns."""
    return _annotate(invocation, targets, message, priority=IMPORTANT, keep=keep or None)


@takes(TARGETS, MESSAGE, JSON, QUIET)
def normal(invocation: Invocation, *, targets: list[str], message: str) -> Results:
    """Reset the priority of messages."""
    return _annotate(invocation, targets, message, priority=NORMAL)


@takes(TARGETS, MESSAGE, JSON, QUIET)
def skip(invocation: Invocation, *, targets: list[str], message: str) -> Results:
    """Leave messages out of the context until their priority changes."""
    return _annotate(invocation, targets, message, priority=SKIP)


@takes(
    TARGETS,
    Option("--add -a", "add", "Add this label", "LABEL", many=True),
    Option("--take -t", "take", "Remove this label", "LABEL", many=True),
    MESSAGE,
    JSON,
    QUIET,
)
def label(
    invocation: Invocation,
    *,
    targets: list[str],
    add: list[str],
    take: list[str],
    message: str,
) -> Results:
    """Add or remove labels of messages."""
    if not (add or take):
        raise usage_error("give --add or --take", "for example: trace label HEAD.0 --add decision")
    return _annotate(invocation, targets, message, labels=add, unlabels=take)


@takes(
    TARGETS,
    Option("--ghost", "ghost", "Leave a placeholder with the address"),
    Option("--force", "force", "Hide pinned messages without asking"),
    MESSAGE,
    JSON,
    QUIET,
)
def remove(
    invocation: Invocation,
    *,
    targets: list[str],
    ghost: bool,
    force: bool,
    message: str,
) -> Results:
    """Hide messages; `trace restore` shows them again at their position.

    A pinned message is hidden only with --force, or after confirmation on a terminal.
    """

    def write(repo: Repo) -> CommitResult:
        pinned = [] if force else [each for each in targets if _is_pinned(repo, each)]
        if pinned:
            _ask(invocation, pinned)
        return repo.remove(targets, ghost=ghost, message=message)

    return recorded(invocation, write)


@takes(
    TARGETS,
    Option("--version", "version", "Restore version N; 0 is the first", "N", number=True),
    MESSAGE,
    JSON,
    QUIET,
)
def restore(
    invocation: Invocation,
    *,
    targets: list[str],
    version: int | None,
    message: str,
) -> Results:
    """Show hidden messages at their position again, or take edited and trimmed messages back by one wording.

    Repeat it to go back further; --version N goes to one wording, `trace expand ADDRESS` to the first.
    `trace show --versions ADDRESS` lists them.
    """

    def run(repo: Repo) -> CommitResult:
        done = repo.restore(targets, version=version, message=message)
        for each in targets if not done.changed else ():
            if repo.message(each).priority == SKIP:
                invocation.note(f"hint: {safe(each)} is skipped: `trace normal {safe(each)}`")
        return done

    return recorded(invocation, run)


def _is_pinned(repo: Repo, target: str) -> bool:
    """Return True if a message is pinned in HEAD's context, or its call or result; `remove` reports errors."""
    try:
        unit = repo.message(target).unit
        return any(repo.message(each).priority == PINNED for each in unit)
    except errors.TraceError:
        return False


def _ask(invocation: Invocation, pinned: Sequence[str]) -> None:
    """Ask for confirmation to hide pinned messages.

    Raises:
        InvalidInputError: there is no terminal to ask on, or the answer is no.
    """
    said = ", ".join(pinned)
    if not invocation.waits_for_keyboard:
        raise usage_error(f"pinned: {said}", "--force hides it anyway")
    invocation.note(f"{said} is pinned; hide it? [y/N] ", end="")
    if invocation.stdin.readline().strip().lower() not in (b"y", b"yes"):
        raise usage_error("nothing was hidden", "--force does not ask")


def _annotate(
    invocation: Invocation,
    targets: list[str],
    message: str,
    *,
    priority: str | None = None,
    keep: list[str] | None = None,
    labels: Sequence[str] = (),
    unlabels: Sequence[str] = (),
) -> Results:
    return recorded(
        invocation,
        lambda repo: repo.annotate(
            targets,
            priority=priority,
            keep=keep,
            labels=labels,
            unlabels=unlabels,
            message=message,
        ),
    )

"""`trace sessions start | add | request | preview | compact | clear | …`: sessions that never overflow."""

from __future__ import annotations

import json
from collections.abc import Iterator

import trace_store
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.advice import configured_model
from trace_cli.porcelain.common import JSON, NOTHING, QUIET, SECRETS, finish, opened
from trace_cli.porcelain.input import parsed_json, text_from
from trace_cli.porcelain.sessions import WHICH
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import LEFT, RIGHT, counted, gauge, moment, number, paint, table
from trace_cli.runtime import Invocation
from trace_store import errors
from trace_store.base.ident import format_time
from trace_store.context.faults import PROVIDERS
from trace_store.contracts.ref_names import BRANCHES
from trace_store.providers.documents import Given
from trace_store.sessions.compactions import CompactionEntry
from trace_store.sessions.facts import DEFAULT_LIMIT, DEFAULT_REPLY
from trace_store.sessions.requests import Preview
from trace_store.sessions.session import EVENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

EXTRACTIVE = Option("--extractive", "extractive", "Ask no model, even if one is configured")


@takes(
    Argument("TYPE", "type", "pm, dev, qa, harness, merge or any name"),
    Argument("NAME", "name", "Its name (default: the time)", OPTIONAL, default=""),
    Option("--feature", "feature", "Its feature", "NAME", default=""),
    Option("--task", "task", "Its task", "ID", default=""),
    Option("--state", "state", "Its state", "STATE", default="open"),
    Option(
        "--description",
        "description",
        "The agent's role; - reads standard input",
        "TEXT",
        default="",
    ),
    Option("--context", "context", "About the project; - reads standard input", "TEXT", default=""),
    Option(
        "--limit",
        "limit",
        "Maximum tokens of a request and its reply",
        "N",
        number=True,
        least=1,
        default=DEFAULT_LIMIT,
    ),
    Option(
        "--reply",
        "reply",
        "Tokens reserved for the reply",
        "N",
        number=True,
        least=0,
        default=DEFAULT_REPLY,
    ),
    SECRETS,
    JSON,
    QUIET,
)
def start(
    invocation: Invocation,
    *,
    type: str,
    name: str,
    feature: str,
    task: str,
    state: str,
    description: str,
    context: str,
    limit: int,
    reply: int,
    secrets: str,
) -> Results:
    """Start a session: a branch whose requests fit a limit.

    trace sessions start dev login --task T-12 --description "You write code." --limit 100000
    """
    if description == context == "-":
        raise usage_error("only one of --description and --context can be read")
    described, known = (
        text_from(invocation, "-") if each == "-" else each for each in (description, context)
    )
    with opened(invocation, secrets=secrets) as repo:
        session = repo.sessions.start(
            type,
            name=name,
            feature=feature,
            task=task,
            state=state,
            description=described,
            context=known,
            limit=limit,
            reply=None if reply == DEFAULT_REPLY else reply,
        )
        finish(invocation, repo)
        yield (
            trace_store.record(session.facts, session=session.name, ref=session.ref),
            f"started {safe(session.name)}",
        )


@takes(
    WHICH,
    Argument("TEXT", "text", "The text of a message; - reads standard input", OPTIONAL),
    Option("--role", "role", "The role of TEXT", "ROLE", default="user"),
    Option("--file", "file", "Messages as JSON, one or a list; - reads standard input", "FILE"),
    Option("--usage", "usage", "The provider's usage report", "JSON"),
    Option(
        "--request",
        "request",
        "The output of `trace sessions request --json` that the reply answers",
        "FILE",
    ),
    SECRETS,
    JSON,
    QUIET,
)
def add(
    invocation: Invocation,
    *,
    name: str,
    text: str | None,
    role: str,
    file: str | None,
    usage: str | None,
    request: str | None,
    secrets: str,
) -> Results:
    """Add messages to a session as one commit.

    trace sessions add login "Fix the test."
    trace sessions add login --file reply.json --request request.json
    """
    if text is None and file is None:
        raise usage_error("there is nothing to add", "give TEXT or --file")
    if usage is not None and request is None:
        raise usage_error("--usage goes with --request")
    said = text_from(invocation, "-") if text == "-" else text
    messages: list[Given] = [] if said is None else [{"role": role, "content": said}]
    about = (
        None if request is None else parsed_json(text_from(invocation, request).encode(), request)
    )
    with opened(invocation, secrets=secrets) as repo:
        if file is not None:
            messages += _messages(invocation, file)
        session = repo.sessions.open(name)
        report = None if usage is None else parsed_json(usage.encode(), "--usage")
        made = session.add(*messages, usage=report, request=about)
        finish(invocation, repo)
        yield made, f"{made.oid.short()} {counted(made.message_count, 'message')}"


@takes(
    WHICH,
    Argument(
        "MESSAGE", "message", "A prompt to add first; - reads standard input", OPTIONAL, default=""
    ),
    Option(
        "--provider",
        "provider",
        f"The format: {', '.join(PROVIDERS)}",
        "NAME",
        default=PROVIDERS[0],
        choices=PROVIDERS,
    ),
    EXTRACTIVE,
    SECRETS,
    JSON,
)
def request(
    invocation: Invocation,
    *,
    name: str,
    message: str,
    provider: str,
    extractive: bool,
    secrets: str,
) -> Results:
    """Print the next request of a session as JSON, within its limit.

    Messages that a model has seen are compacted first, if needed; standard error reports it. --json adds the tokens,
    the commit and the hash, as `trace sessions add --request` expects.

        trace sessions request login "Fix the test." --json > request.json
    """
    text = text_from(invocation, "-") if message == "-" else message
    with opened(invocation, secrets=secrets) as repo:
        session = repo.sessions.open(
            name, model=None if extractive else configured_model(invocation, repo)
        )
        made = session.request(text, provider=provider)
        finish(invocation, repo)
        for each in made.done:
            invocation.note(one_line(each, 300))
        yield made, json.dumps(made.body, ensure_ascii=False)


@takes(WHICH, Argument("MESSAGE", "message", "A prompt to include", OPTIONAL, default=""), JSON)
def preview(invocation: Invocation, *, name: str, message: str) -> Results:
    """Show the tokens of the next request by part."""
    with opened(invocation) as repo:
        found = repo.sessions.open(name).preview(message)
        yield found, _preview_lines(invocation, found)


def _preview_lines(invocation: Invocation, found: Preview) -> Iterator[str]:
    parts = ("description", "context", "summary", "messages", "beside", "total")
    rows = [(each, number(getattr(found, each))) for each in parts]
    yield from table(invocation, ("part", "tokens"), rows, LEFT + RIGHT)
    said = f"at most {number(found.bound)} of {number(found.limit)}, {number(found.reply)} for the reply"
    yield gauge(invocation, said, found.bound + found.reply, found.limit)


@takes(
    WHICH,
    Option(
        "--instructions", "instructions", "What the summary should focus on", "TEXT", default=""
    ),
    EXTRACTIVE,
    JSON,
    QUIET,
)
def compact(invocation: Invocation, *, name: str, instructions: str, extractive: bool) -> Results:
    """Compact a session now; `trace undo --branch` undoes it."""
    with opened(invocation) as repo:
        session = repo.sessions.open(
            name, model=None if extractive else configured_model(invocation, repo)
        )
        try:
            done = session.compact(instructions=instructions)
        except errors.StateError as error:
            error.data.setdefault("hint", "`trace sessions preview` shows the tokens of each part")
            raise
        finish(invocation, repo)
        yield done, f"{done.commit.short()} {_compaction(done)}"


@takes(
    WHICH,
    Option("--all", "everything", "Also hide summaries and pinned messages"),
    Option("-y --yes", "yes", "Do not ask"),
    JSON,
    QUIET,
)
def clear(invocation: Invocation, *, name: str, everything: bool, yes: bool) -> Results:
    """Hide the messages of a session, except instructions, summaries and pinned messages."""
    with opened(invocation) as repo:
        session = repo.sessions.open(name)
        if everything and not yes and invocation.waits_for_keyboard:
            _confirm(invocation, session.name)
        done = session.clear(all=everything)
        finish(invocation, repo)
        if done is None:
            yield {"changed": False}, NOTHING
        else:
            yield done, f"{done.oid.short()} cleared"


def _confirm(invocation: Invocation, name: str) -> None:
    invocation.note(f"hide all messages of {safe(name)}? [y/N] ", end="")
    if invocation.stdin.readline().strip().lower() not in (b"y", b"yes"):
        raise usage_error("nothing was hidden", "--yes skips the question")


@takes(WHICH, Argument("STATE", "state", "Such as in_qa"), JSON, QUIET)
def set_state(invocation: Invocation, *, name: str, state: str) -> Results:
    """Set the state of a session."""
    with opened(invocation) as repo:
        session = repo.sessions.open(name)
        changed = session.state != state
        session.state = state
        finish(invocation, repo)
        said = f"{safe(session.name)} is {one_line(state, 100)}"
        yield (
            {"session": session.name, "state": state, "changed": changed},
            (said if changed else f"{NOTHING}: {said}"),
        )


@takes(WHICH, Argument("REASON", "reason", "Why", OPTIONAL, default=""), JSON, QUIET)
def close(invocation: Invocation, *, name: str, reason: str) -> Results:
    """Close a session: nothing can be added until it is reopened."""
    with opened(invocation) as repo:
        session = repo.sessions.open(name)
        session.close(reason)
        finish(invocation, repo)
        yield (
            {"session": session.name, "closed": session.facts.closed},
            f"closed {safe(session.name)}",
        )


@takes(WHICH, JSON, QUIET)
def reopen(invocation: Invocation, *, name: str) -> Results:
    """Reopen a closed session."""
    with opened(invocation) as repo:
        session = repo.sessions.open(name)
        changed = bool(session.facts.closed)
        session.reopen()
        finish(invocation, repo)
        said = f"{safe(session.name)} is open"
        yield (
            {"session": session.name, "changed": changed},
            (said if changed else f"{NOTHING}: {said}"),
        )


@takes(WHICH, JSON)
def summary(invocation: Invocation, *, name: str) -> Results:
    """Show the tasks, decisions, files, checks and summaries of a session."""
    with opened(invocation) as repo:
        found = repo.sessions.open(name).summary
        state = found.state
        lines = [] if state is None else state.as_text().splitlines()
        shown = [*lines, *(["", found.text] if found.text else [])]
        yield found, (one_line(line, 2_000) for text in shown for line in text.split("\n"))


@takes(WHICH)
def export(invocation: Invocation, *, name: str) -> None:
    """Print a whole session as JSON, hidden messages included, as first written."""
    with opened(invocation) as repo:
        found = repo.sessions.open(name).export()
    invocation.line(json.dumps(found, ensure_ascii=False, indent=2))


@takes(
    WHICH,
    Option("--reject", "reject", "Reject it"),
    Option("-m --message", "reason", "Why", "REASON", default=""),
    JSON,
    QUIET,
)
def review(invocation: Invocation, *, name: str, reject: bool, reason: str) -> Results:
    """Approve or reject a session; the decision goes to the trajectory of its task."""
    with opened(invocation) as repo:
        session = repo.sessions.open(name)
        trajectory = session.review(approved=not reject, reason=reason)
        finish(invocation, repo)
        word = "rejected" if reject else "approved"
        yield (
            {"session": session.name, "approved": not reject, "trajectory": trajectory},
            (f"{word} {safe(session.name)} in {safe(trajectory)}"),
        )


@takes(WHICH, JSON)
def compactions(invocation: Invocation, *, name: str) -> Results:
    """List the compactions of a session, newest first, also those by its agent or its provider."""
    with opened(invocation) as repo:
        found = repo.sessions.open(name).history()
        for each in found:
            when = moment(format_time(each.time))
            yield (
                each,
                f"{paint(invocation, each.commit.short(), 'yellow')}  {when}  {_compaction(each)}",
            )
        if not found:
            invocation.note("no compactions")


def _compaction(done: CompactionEntry) -> str:
    by = f"{done.summariser} {one_line(done.model, 60)}".strip()
    why = f", {done.why}" if done.why else ""
    return f"{number(done.before)} to {number(done.after)} tokens by {by}{why}"


@takes(
    Argument("SESSION", "name", "One session (default: all)", OPTIONAL, default=""),
    Option("--timeout", "timeout", "Stop after this long without an event", "SECONDS", number=True),
    JSON,
)
def watch(invocation: Invocation, *, name: str, timeout: int | None) -> Results:
    """Print session events of all processes until interrupted."""
    with opened(invocation) as repo:
        ref = repo.sessions.open(name).ref if name else ""
        with repo.store.follow(timeout=timeout) as events:
            for event in events:
                if event.kind != EVENT or (ref and event.data.get("ref") != ref):
                    continue
                rest = {k: v for k, v in event.data.items() if k not in ("ref", "event")}
                said = " ".join(f"{key}={one_line(str(each), 100)}" for key, each in rest.items())
                branch = safe(str(event.data.get("ref")).removeprefix(BRANCHES))
                when = moment(format_time(event.moment))
                yield (
                    {"time": format_time(event.moment), **event.data},
                    f"{when}  {branch}  {safe(str(event.data.get('event')))}  {said}".rstrip(),
                )


def _messages(invocation: Invocation, path: str) -> list[Given]:
    """Return the message or messages of a JSON file."""
    given = parsed_json(text_from(invocation, path).encode(), path)
    return given if isinstance(given, list) else [given]

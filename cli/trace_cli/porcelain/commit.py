"""`trace init` and `trace commit`."""

from __future__ import annotations

import trace_store
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import (
    MESSAGE,
    QUIET,
    SECRETS,
    finish,
    opened,
    recorded,
    tell_secrets,
    waiting,
)
from trace_cli.porcelain.input import argument_text, messages_from, text_from
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import counted
from trace_store import Message, ToolResult, errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from trace_cli.runtime import Invocation, Results
    from trace_store import Repo
    from trace_store.history.draft import CommitResult


@takes(
    Argument("FOLDER", "path", "The project folder", OPTIONAL),
    Option("--json", "as_json", "Print JSON (see `trace help json`)"),
    Option("-q --quiet", "quiet", "Print nothing"),
)
def init(invocation: Invocation, *, path: str | None) -> Results:
    """Create a repository.

    It is a folder `.trace` in the project folder, to be committed to git with the code. An existing one is left as it
    is, and the exit code is 5. Without FOLDER, `--dir` or the variable TRACE_DIR can name another place.
    """
    if path is not None and invocation.directory is not None:
        raise usage_error("give --dir or FOLDER, not both")
    named = invocation.directory or (invocation.environment.trace_dir if path is None else None)
    created = trace_store.Repo.init(
        path or ".", directory=named, environment=invocation.environment
    )
    directory, where = created.store.layout.root, created.maintenance.file_system
    created.store.close()
    yield {"directory": directory}, f"created an empty repository in {safe(directory)}"
    if not (where.locks or invocation.quiet):
        warning = f"{safe(directory)} is on {safe(where.name)}: {where.note}"
        invocation.note(f"note: {warning}; let one machine write at a time")


RESULT = "--json is about the input; --result-json prints the result as JSON"


def _shortcut(role: str) -> Option:
    help = f"Add a message with role {role}; - reads standard input"
    return Option(f"--{role}", role, help, "TEXT", joins="said")


@takes(
    Argument("TEXT", "text", "The text of a message; - reads standard input", OPTIONAL),
    Option("--role", "role", "The role of TEXT or FILE", "ROLE", default="user"),
    _shortcut("system"),
    _shortcut("developer"),
    _shortcut("user"),
    _shortcut("assistant"),
    _shortcut("tool"),
    Option(
        "--call-id",
        "call_ids",
        "The call that --tool answers; one for each, in order",
        "ID",
        many=True,
    ),
    Option("-F --file", "file", "Read the text of a message from FILE", "FILE"),
    Option("--json", "from_json", "The input is JSON: a message or a list"),
    Option("--jsonl", "from_jsonl", "The input has one JSON message per line"),
    Option("--branch", "branch", "Commit to this branch", "NAME", completes="BRANCH"),
    Option(
        "--private", "private", "Salt the hash so that the id cannot be used to guess the content"
    ),
    Option(
        "--meta",
        "meta",
        "Add metadata, which `trace log --meta` finds",
        "NAME=VALUE",
        many=True,
    ),
    Option(
        "--set",
        "settings",
        "Record a generation setting, such as temperature",
        "NAME=VALUE",
        many=True,
    ),
    Option("--staged", "staged", "Commit what `trace reset` staged"),
    MESSAGE,
    SECRETS,
    Option("--result-json", "as_json", "Print the result as JSON (--json is about the input)"),
    QUIET,
    Option("--no-seal", "no_seal", "Do not seal: faster in a loop"),
)
def commit(
    invocation: Invocation,
    *,
    text: str | None,
    role: str,
    said: list[tuple[str, str]],
    call_ids: list[str],
    file: str | None,
    from_json: bool,
    from_jsonl: bool,
    branch: str | None,
    private: bool,
    meta: list[str],
    settings: list[str],
    staged: bool,
    message: str,
    secrets: str,
    no_seal: bool,
) -> Results:
    """Record messages as one commit.

    All messages of one call form one commit: the role options in the given order, then TEXT, then FILE. Without these,
    standard input is read unless it is a terminal. Only one option can read standard input. The command prints the
    commit's id and its number of messages.

    --json and --jsonl accept messages, requests and responses of OpenAI (Chat Completions and Responses), Anthropic,
    Gemini and LangChain, and the output of `trace compile --format json`. The format is detected.

    Secrets are replaced by placeholders, unless --secrets or your settings say otherwise.

    The author is TRACE_AUTHOR, else `trace config user.name`, else git's `user.name`, else the name of your account.

    The commit is sealed, so that `git add .trace` finds it. In a loop, use --no-seal for each commit and `trace seal`
    at the end: the commits are equally durable, and share one pack.

        trace commit --user "What is 6 times 7?" --assistant "42."
        trace commit --tool "42" --call-id call_1
        trace commit --role assistant -F answer.md
        trace commit --jsonl < messages.jsonl
        trace commit --assistant "42." --set temperature=0.2 --meta ticket=T-12
    """
    if staged:
        if text or said or file or from_json or from_jsonl or branch or private or meta or settings:
            raise usage_error("--staged takes no messages")
        return commit_staged(invocation, message=message, secrets=secrets, seals=not no_seal)
    if from_json and from_jsonl:
        raise usage_error("give --json or --jsonl, not both")
    typed = [text, *(each for _, each in said)]
    reads_file = file is not None or from_json or from_jsonl
    if typed.count("-") + (reads_file and file in (None, "-")) > 1:
        raise usage_error("only one option can read standard input", "put the other texts in files")
    messages = _said(invocation, said, call_ids)
    if text is not None and not (from_json or from_jsonl):
        messages.append(Message(role, _text(invocation, text)))
    elif text is not None and text != "-":
        raise usage_error("--json and --jsonl read -F FILE or standard input")
    if reads_file or not messages:
        try:
            messages += _read(invocation, file, role, from_json or from_jsonl)
        except errors.UnreadableInputError as error:
            if messages and file is None:  # --json was likely meant as --result-json
                error.data.setdefault("hint", RESULT)
            elif file is None and not (from_json or from_jsonl):
                error.data.setdefault("hint", "for example: trace commit --user TEXT")
            raise
    if not messages:
        raise usage_error("there is nothing to commit")
    facts, generated = _facts(meta), _facts(settings)
    if branch == "":
        raise usage_error("--branch names no branch")
    more: dict[str, Any] = {"private": private, "meta": facts, "settings": generated}

    def write(repo: Repo) -> CommitResult:
        result = repo.commit(messages, message=message, ref=branch or "", **more)
        if any(isinstance(part, ToolResult) for each in messages for part in each.parts):
            _tell_orphans(invocation, result)
        return result

    return recorded(
        invocation,
        write,
        secrets=secrets,
        branch=branch or "",
        seals=not no_seal,
    )


def _tell_orphans(invocation: Invocation, result: CommitResult) -> None:
    """Report results whose call the context does not hold."""
    for id in () if invocation.quiet else result.orphan_results:
        name = one_line(id, 60)
        invocation.note(f"note: there is no call {name!r}; requests leave its result out")


def _facts(given: Sequence[str]) -> dict[str, str]:
    """Parse options of the form NAME=VALUE."""
    found: dict[str, str] = {}
    for each in given:
        name, sign, value = each.partition("=")
        if not (name and sign):
            raise usage_error(f"{each[:40]!r} is not NAME=VALUE")
        if name in found:
            raise usage_error(f"{name[:40]!r} is given twice")
        found[name] = value
    return found


def _said(
    invocation: Invocation, said: Sequence[tuple[str, str]], call_ids: Sequence[str]
) -> list[Message]:
    """Return the messages of the role options in the order given; the n-th result answers the n-th call."""
    results = sum(role == "tool" for role, _ in said)
    if call_ids and len(call_ids) != results:
        raise usage_error(
            f"{counted(len(call_ids), 'call')} and {counted(results, 'result')}: "
            "--call-id and --tool go in pairs",
            "for example: trace commit --tool TEXT --call-id ID",
        )
    calls = list(call_ids)
    found: list[Message] = []
    for role, typed in said:
        text = _text(invocation, typed)
        if role == "tool" and calls:
            found.append(Message(role, [ToolResult(calls.pop(0), text)]))
        else:
            found.append(Message(role, text))
    return found


def _text(invocation: Invocation, typed: str) -> str:
    return text_from(invocation, "-") if typed == "-" else argument_text(typed)


def _read(invocation: Invocation, file: str | None, role: str, is_json: bool) -> list[Message]:
    if file is None and invocation.waits_for_keyboard:
        raise usage_error("there is nothing to commit", "for example: trace commit --user TEXT")
    if is_json:
        return messages_from(invocation, file or "-")
    return [Message(role, text_from(invocation, file or "-"))]


def commit_staged(
    invocation: Invocation,
    *,
    message: str,
    secrets: str,
    seals: bool,
) -> Results:
    """Commit what is staged for HEAD's branch, seal, and print the result."""
    with opened(invocation, secrets=secrets) as repo:
        done = repo.commit_staged(message)
        finish(invocation, repo, seals=seals)
        if invocation.quiet:
            return
        tell_secrets(invocation, done.secrets, repo.guard)
        name = done.oid.short() if invocation.terminal else str(done.oid)
        made_of = counted(len(done.staged.commits), "staged commit")
        yield (
            lambda: trace_store.record(done, waiting=waiting(repo.in_progress)),
            f"{name} {counted(done.message_count, 'message')}, from {made_of}",
        )

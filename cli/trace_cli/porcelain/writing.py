"""`trace init` and `trace commit`: making a repository, and recording messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from trace_cli.failures import usage_error
from trace_cli.porcelain.opening import Message as CommitMessage
from trace_cli.porcelain.opening import Quiet, recorded
from trace_cli.porcelain.ordering import option_order
from trace_cli.porcelain.reading import argument_text, messages_from, text_from
from trace_cli.render.escape import safe
from trace_cli.render.records import write_record
from trace_cli.runtime import Invocation
from trace_store.objects.message import Message
from trace_store.objects.parts import ToolResult
from trace_store.repo import Repo


def init(
    ctx: typer.Context,
    path: Annotated[
        str, typer.Argument(metavar="FOLDER", help="The project's folder.", show_default=False)
    ] = ".",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing.")] = False,
) -> None:
    """Make a repository.

    It is a folder `.trace` in the project's folder, to be committed to git beside the code. An existing one is left as
    it is, and the exit code is 5.
    """
    invocation: Invocation = ctx.obj
    with Repo.init(path, environment=invocation.environment) as repo:
        directory = repo.store.layout.root
    if as_json:
        write_record(invocation, {"directory": directory})
    elif not quiet:
        invocation.line(f"made an empty repository in {safe(directory)}")


def _shortcut(role: str) -> Any:
    return typer.Option(f"--{role}", metavar="TEXT", help=f"Add a message of the role {role}.")


def commit(
    ctx: typer.Context,
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT", help="A message's text; - reads standard input.", show_default=False
        ),
    ] = None,
    role: Annotated[
        str,
        typer.Option("--role", metavar="ROLE", help="The role of TEXT, or of the text in FILE."),
    ] = "user",
    system: Annotated[list[str] | None, _shortcut("system")] = None,
    developer: Annotated[list[str] | None, _shortcut("developer")] = None,
    user: Annotated[list[str] | None, _shortcut("user")] = None,
    assistant: Annotated[list[str] | None, _shortcut("assistant")] = None,
    tool: Annotated[list[str] | None, _shortcut("tool")] = None,
    call_id: Annotated[
        str, typer.Option("--call-id", metavar="ID", help="The tool call that --tool answers.")
    ] = "",
    file: Annotated[
        str | None,
        typer.Option("-F", "--file", metavar="FILE", help="Read a message's text from FILE."),
    ] = None,
    from_json: Annotated[
        bool, typer.Option("--json", help="FILE or standard input is JSON: a message, or a list.")
    ] = False,
    from_jsonl: Annotated[
        bool, typer.Option("--jsonl", help="FILE or standard input has one JSON message a line.")
    ] = False,
    branch: Annotated[
        str | None,
        typer.Option("--branch", metavar="NAME", help="Commit to this branch, not to HEAD's."),
    ] = None,
    message: CommitMessage = "",
    result_json: Annotated[
        bool,
        typer.Option("--result-json", help="Print the result as JSON (--json names the input)."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Record messages as one commit.

    All messages of one call make one commit: the role options in the order in which they are given, then TEXT, then
    FILE. With neither of them, standard input is read when it is not a terminal. On success the commit's id and its
    number of messages are printed.

        trace commit --user "What is 6 times 7?" --assistant "42."
        trace commit --role assistant -F answer.md
        trace commit --jsonl < messages.jsonl
    """
    invocation: Invocation = ctx.obj
    given = {
        "system": system,
        "developer": developer,
        "user": user,
        "assistant": assistant,
        "tool": tool,
    }
    messages = _in_order(option_order(ctx), given, call_id)
    if from_json and from_jsonl:
        raise usage_error("--json and --jsonl are two forms; give one")
    if text is not None and not (from_json or from_jsonl):
        content = text_from(invocation, "-") if text == "-" else argument_text(text)
        messages.append(Message(role, content))
    elif text is not None and text != "-":
        raise usage_error("with --json and --jsonl, messages come from -F FILE or standard input")
    if file is not None or from_json or from_jsonl or not messages:
        messages += _read(invocation, file, role, from_json, from_jsonl)
    if not messages:
        raise usage_error("there is no message to record")
    recorded(
        ctx,
        lambda _, draft: draft.extend(messages),
        message=message,
        as_json=result_json,
        quiet=quiet,
        branch=branch,
    )


def _in_order(
    order: Sequence[str], given: dict[str, list[str] | None], call_id: str
) -> list[Message]:
    left = {role: list(texts or ()) for role, texts in given.items()}
    names = [name for name in order if name in left]
    found: list[Message] = []
    for role in names:
        if not left[role]:
            continue
        text = argument_text(left[role].pop(0))
        if role == "tool" and call_id:
            found.append(Message(role, [ToolResult(call_id, text)]))
        else:
            found.append(Message(role, text))
    return found


def _read(
    invocation: Invocation, file: str | None, role: str, as_json: bool, as_lines: bool
) -> list[Message]:
    if file is None and invocation.waits_for_keyboard:
        raise usage_error("there is no message to record", "for example: trace commit --user TEXT")
    if as_json or as_lines:
        return messages_from(invocation, file or "-")
    return [Message(role, text_from(invocation, file or "-"))]

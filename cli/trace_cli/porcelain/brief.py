"""`trace brief`: what an agent should know at the start of a task."""

from __future__ import annotations

import contextlib
import json

import trace_store
from trace_cli.arguments import Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, NOTHING, opened
from trace_cli.render.escape import safe
from trace_cli.runtime import Invocation
from trace_store.capture.spool import SESSION_START

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results


@takes(
    Option(
        "--task",
        "task",
        "The id of a task or trajectory, or words (default: the current trajectory)",
        "TASK",
        default="",
    ),
    Option(
        "--file --files",
        "files",
        "A file whose decisions are wanted; may be repeated",
        "FILE",
        many=True,
    ),
    Option(
        "--budget",
        "budget",
        "At most this many tokens",
        "TOKENS",
        number=True,
        least=1,
        default=1_500,
    ),
    Option("--allow", "allow", "Allow this repository to brief agents by itself"),
    Option("--disallow", "disallow", "Withdraw that"),
    JSON,
)
def brief(
    invocation: Invocation,
    *,
    task: str,
    files: list[str],
    budget: int,
    allow: bool,
    disallow: bool,
) -> Results:
    """Show what an agent should know at the start: decisions in force, failed approaches, the last session.

    Decisions that were replaced, have ended, or whose commits were reverted are left out. Each line has the address of
    its source. The text never exceeds the budget.

    Agents get a brief by themselves, from hooks or `trace mcp`, only from repositories for which you said --allow. That
    is your own setting, which no clone or copy inherits.

        trace brief
        trace brief --task ENG-456 --budget 800
        trace brief --file src/tokens.py
    """
    if allow and disallow:
        raise usage_error("--allow and --disallow exclude each other")
    if (allow or disallow) and (task or files):
        raise usage_error("--allow and --disallow take no other option")
    with opened(invocation) as repo:
        if allow or disallow:
            permission = trace_store.briefing.BriefPermission(repo.store, invocation.environment)
            changed = permission.grant() if allow else permission.withdraw()
            verb = "may" if allow else "may not"
            text = f"this repository {verb} brief agents"
            yield {"allowed": allow, "changed": changed}, text if changed else NOTHING
            return
        found = repo.brief(task=task, files=files, budget=budget, folder=invocation.folder)
    if not invocation.as_json:
        invocation.page()
    yield found, safe(found.text).removesuffix("\n")
    for file in found.unknown:
        invocation.note(f"note: no decision is known about {safe(file)}")
    if found.skipped:
        names = ", ".join(map(safe, found.skipped))
        looked_at = len(files) - len(found.skipped)
        invocation.note(f"note: not looked at, after the first {looked_at} files: {names}")


def brief_agent(invocation: Invocation, directory: str) -> None:
    """Print the brief of a `.trace` directory for an agent whose session begins, as its hook's output.

    The agent gets none if the user did not allow it, if nothing is known, or if anything fails.
    """
    with contextlib.suppress(Exception):
        invocation.directory = directory
        with opened(invocation, quiet=True) as repo:
            found = repo.brief(folder=invocation.folder, for_agent=True)
        if found.notes:
            context = {"hookEventName": SESSION_START, "additionalContext": found.text}
            invocation.line(json.dumps({"hookSpecificOutput": context}))

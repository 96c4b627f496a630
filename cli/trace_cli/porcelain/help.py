"""`trace help`: help for commands, topics, and the list of all commands."""

from __future__ import annotations

import os

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.commands import COMMANDS, HEADINGS, TOPICS
from trace_cli.failures import usage_error
from trace_store import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation


TOPIC_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "topics")
NAME_COLUMNS = 16


@takes(
    Option("-a --all", "everything", "List all commands and topics"),
    Argument("COMMAND", "words", "A command, a subcommand or a topic", ANY, completes="HELPED"),
)
def show_help(invocation: Invocation, *, everything: bool, words: list[str]) -> int:
    """Show help, as `trace COMMAND --help` does.

    Topics are json (the objects that --json prints), operations (the fields and operations of a commit) and revisions
    (how to name commits and messages).

        trace help
        trace help -a
        trace help bundle create
        trace help json
    """
    if everything:
        if words:
            raise usage_error("--all takes no command")
        invocation.page()
        for line in all_commands():
            invocation.line(line)
        return 0
    if len(words) == 1 and words[0] in TOPICS:
        invocation.page()
        with open(os.path.join(TOPIC_FOLDER, f"{words[0]}.txt"), "rb") as file:
            invocation.write(file.read())
        return 0
    assert invocation.run is not None
    return invocation.run([*words, "--help"])


def all_commands() -> list[str]:
    """Return the lines that list each command and topic."""
    lines: list[str] = []
    for category, title in HEADINGS.items():
        lines += [f"{title}:", ""]
        rows = [each for each in COMMANDS if each.category == category]
        lines += [f"  {each.name:<{NAME_COLUMNS}}{each.help}" for each in rows]
        lines.append("")
    lines += ["Topics, for `trace help TOPIC`:", ""]
    return [*lines, *(f"  {name:<{NAME_COLUMNS}}{text}" for name, text in TOPICS.items())]


@takes()
def show_version(invocation: Invocation) -> None:
    """Print the version."""
    invocation.line(f"trace {__version__}")

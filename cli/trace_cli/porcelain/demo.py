"""`trace demo`: the main workflow, run on a packaged sample in its own folder.

Rule: the demo runs exactly the commands that it shows, and shows their real output.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence

import trace_store
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.render.escape import safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import paint
from trace_cli.runtime import Invocation
from trace_store import Repo, ToolResult
from trace_store.disk.layout import DIRECTORY_NAME
from trace_store.errors import StorageError
from trace_store.objects.parts import Part

SAMPLE = os.path.join(os.path.dirname(trace_store.__file__), "samples", "claude-code.jsonl")
SESSION = "session.jsonl"
NEXT = (
    ("cd {folder}", "go there"),
    ("trace show HEAD~3", "one commit in full"),
    ("trace log --full", "who did what, and when"),
    ('trace commit --user "Thank you."', "continue the session"),
    ("trace compile --format openai", "the request for OpenAI"),
    ("trace import --all", "in your own project: import its sessions"),
    ("trace --help", "the common commands"),
)


@takes(
    Argument("FOLDER", "folder", "An empty folder (default: a temporary one)", OPTIONAL),
    Option("--sample", "sample", "Print the sample transcript only"),
)
def demo(invocation: Invocation, *, folder: str | None, sample: bool) -> None:
    """Show how Trace works, on a sample transcript.

    Imports a packaged transcript, inspects it, shortens it, and compiles the request. The folder stays, so that you can
    experiment in it.

        trace demo
        trace demo --sample > session.jsonl
    """
    if sample:
        if folder is not None:
            raise usage_error("--sample takes no folder: it prints the transcript")
        invocation.write(invocation.read(SAMPLE))
        return
    place = _folder(folder)
    steps = _Steps(invocation, place)
    steps.say("A Claude Code session becomes a branch:")
    steps.run("init")
    steps.run("import", SESSION)
    steps.say("Each message is a commit; log shows the tokens it added, and the total:")
    steps.run("log", "--tokens", "-n", "6")
    steps.say("What the model would see next, with token counts:")
    steps.run("compile", "--table")
    first, longest, failed = _targets(invocation, place)
    steps.say("Shorten the longest tool result, remove a failed run, and pin the task:")
    steps.run("edit", longest, "(wordcount.py as it was; read it again when it is needed)")
    steps.run("remove", *failed, "-m", "a failed run is of no use any more")
    steps.run("pin", first)
    steps.run("compile", "--table")
    steps.say("Nothing is lost. A request in the format of Anthropic, ready to send:")
    steps.run("compile", "--format", "anthropic", "-o", "request.json")
    steps.run("status")
    steps.say("Verify every byte and every hash:")
    steps.run("fsck")
    steps.say(f"The repository is in {safe(place)}. What to try next:")
    width = max(len(command) for command, _ in NEXT[1:])
    for command, meaning in (*_activation(), *NEXT):
        shown = safe(command.format(folder=shlex.quote(place)))
        invocation.line(f"  {shown.ljust(width)}  {paint(invocation, meaning, 'dim')}")


def _activation() -> list[tuple[str, str]]:
    """Return a command that puts `trace` on the path, if it is not there yet."""
    script = os.path.join(sys.prefix, "bin", "activate")
    if shutil.which("trace") is None and sys.prefix != sys.base_prefix and os.path.isfile(script):
        return [(f". {shlex.quote(script)}", "put `trace` on your path")]
    return []


class _Steps:
    """Shows commands and runs them in the demo folder."""

    def __init__(self, invocation: Invocation, folder: str) -> None:
        self._invocation = invocation
        self._folder = folder

    def say(self, text: str) -> None:
        self._invocation.line()
        self._invocation.line(paint(self._invocation, text, "bold"))

    def run(self, *words: str) -> None:
        invocation = self._invocation
        invocation.line()
        shown = "$ trace " + " ".join(map(shlex.quote, words))
        invocation.line(paint(invocation, safe(shown), "cyan"))
        if invocation.run is None:
            raise usage_error("the demo runs from the command line only")
        # Explicit, so that TRACE_DIR and --dir have no effect.
        named = os.path.join(self._folder, DIRECTORY_NAME)
        code = invocation.run(["-C", self._folder, "--dir", named, *words])
        if code:
            raise StorageError(f"`trace {words[0]}` ended with {code}", path=self._folder)


def _folder(name: str | None) -> str:
    """Return the folder to work in, with the sample in it."""
    try:
        if name is None:
            place = tempfile.mkdtemp(prefix="trace-demo-")
        else:
            os.makedirs(name, exist_ok=True)
            place = os.path.abspath(name)
            if os.listdir(place):
                raise usage_error(f"{name!r} is not empty", "the demo needs an empty folder")
        shutil.copyfile(SAMPLE, os.path.join(place, SESSION))
    except OSError as error:
        raise StorageError(f"cannot set up the demonstration: {error.strerror}") from error
    return place


def _targets(invocation: Invocation, folder: str) -> tuple[str, str, list[str]]:
    """Return the addresses of the first message, the longest tool result, and a failed result with its call."""
    directory = os.path.join(folder, DIRECTORY_NAME)
    repo = Repo.open(folder, directory=directory, environment=invocation.environment)
    try:
        context = repo.contexts.compile("HEAD")
        messages = list(context.messages)
        weights = [tokens for tokens, _ in context.message_tokens()]
        alone = [i for i, message in enumerate(messages) if _is_one_result(message.parts)]
        failed = next(i for i in alone if _is_failure(messages[i].parts[0]))
        longest = max((i for i in alone if i != failed), key=lambda i: weights[i])
        addresses = [short_address(message.address) for message in messages]
        # A single result answers the message just before it.
        return addresses[0], addresses[longest], addresses[failed - 1 : failed + 1]
    finally:
        repo.store.close()


def _is_one_result(parts: Sequence[Part]) -> bool:
    return len(parts) == 1 and isinstance(parts[0], ToolResult)


def _is_failure(part: Part) -> bool:
    return isinstance(part, ToolResult) and part.is_error

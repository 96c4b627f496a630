"""The entry points: parse plain command lines here, leave all others to Typer.

Rule: this module decides what runs, and turns an error into one line, a hint and an exit code. It imports nothing that
a plumbing command does not need.
"""

from __future__ import annotations

import gc
import os
import sys

from trace_cli.arguments import arguments_of, parse
from trace_cli.commands import BY_NAME
from trace_cli.failures import (
    EXIT_BUG,
    EXIT_DAMAGED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_OUTPUT_CLOSED,
    OutputClosedError,
)
from trace_cli.runtime import Invocation
from trace_store import __version__, errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


READERS = frozenset(
    (
        *(
            "blame",
            "branch",
            "brief",
            "checkpoint",
            "compile",
            "diff",
            "export",
            "log",
            "reflog",
            "search",
        ),
        *("sessions", "show", "status", "suggest", "tag", "trajectory", "trash", "usage", "view"),
        *("whohas", "why"),
    )
)
"""Commands that show what there is if objects are missing."""
COLLECT_AFTER = 50_000
"""Objects before the first garbage collection; few commands create as many."""


def run() -> int:
    """Run the command of this process and exit without freeing memory: the console script.

    Everything is written and closed by then. Freeing each object would take a tenth of the run.
    """
    gc.set_threshold(COLLECT_AFTER)
    code = main()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return code  # the interpreter reports the closed stream
    os._exit(code)


def main(arguments: Sequence[str] | None = None, invocation: Invocation | None = None) -> int:
    """Run one command and return its exit code; nothing is raised.

    Args:
        arguments: the words after the program's name; None: those of the process.
        invocation: streams and environment; None: those of the process.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    here = Invocation() if invocation is None else invocation
    here.run = lambda further: _run(further, here)
    here.write_result = lambda result: _load("trace_cli.render.records:write_result")(here, result)
    here.escape = _guarded
    try:
        code = _run(words, here)
        here.close()
        return code
    except errors.TraceError as error:
        if _may_show_rest(words, here, error):
            here.failure = error
            return main(arguments, here) or EXIT_DAMAGED
        here.close()
        if here.output_failed:
            _forget_output()
        if isinstance(error, errors.StorageError) and here.failure is not None:
            error = here.failure  # it would have written; what is missing is the reason
        complain(here, error.message, _load("trace_cli.advice:hint")(error))
        return int(_load("trace_cli.advice:exit_code")(error))
    except KeyboardInterrupt:
        here.close()
        here.note("")
        return EXIT_INTERRUPTED
    except OutputClosedError:
        if here.close():
            return EXIT_OK  # the user quit the pager
        _forget_output()
        return EXIT_OUTPUT_CLOSED
    except Exception as error:  # noqa: BLE001 - the last line of defence
        return _defect(here, error)


def complain(invocation: Invocation, message: str, advice: str = "") -> None:
    """Print an error line, and a hint line if there is one."""
    try:
        invocation.note(f"trace: error: {_flat(message)}")
        if advice:
            invocation.note(f"hint: {_flat(advice)}")
    except OutputClosedError:
        _forget_output()


def _may_show_rest(words: list[str], invocation: Invocation, error: errors.TraceError) -> bool:
    """Return True if a reading command failed for a missing object before it printed anything."""
    found = None if invocation.failure or invocation.wrote else _globals(words)
    missing = isinstance(error, errors.ObjectNotFoundError)
    if found is None or not missing or isinstance(error, errors.PurgedError):
        return False
    return bool(found[3]) and found[3][0] in READERS


def _run(words: list[str], invocation: Invocation) -> int:
    found = _globals(words)
    if found is not None:
        folders, directory, shown, rest = found
        if rest == ["--version"]:
            invocation.line(f"trace {__version__}")
            return 0
        if rest[:1] == ["hook"] and rest[1:] not in ([], ["--help"]):
            # Hooks of other versions may have other options: none is ever an error.
            invocation.apply_global_options(folders, directory, **shown)
            if rest[1] == "git":
                return int(_load("trace_cli.porcelain.hooks:run_git_hook")(invocation, rest[2:]))
            briefing = _load("trace_cli.plumbing.hook:note")(invocation, rest[1:])
            if briefing:
                _load("trace_cli.porcelain.brief:brief_agent")(invocation, briefing)
            return 0
        command = BY_NAME.get(rest[0]) if rest else None
        if command is not None:
            function, given = _load(command.target), rest[1:]
            if not callable(function):
                function, given = function.choose(given)
            items = arguments_of(function)
            values = None if items is None else parse(items, given)
            if values is not None:
                invocation.apply_global_options(folders, directory, **shown)
                return invocation.call(function, values)
    return int(_load("trace_cli.app:run_typer")(words, invocation))


def _globals(
    words: list[str],
) -> tuple[list[str], str | None, dict[str, bool], list[str]] | None:
    """Parse global options.

    Returns (-C folders, --dir, keyword arguments of `Invocation.apply_global_options`, other words), or None if Typer
    has to report.
    """
    folders: list[str] = []
    directory: str | None = None
    shown: dict[str, bool] = {}
    position = 0
    while position < len(words):
        word = words[position]
        if word == "--no-color":
            shown["color"] = False
        elif word == "--no-pager":
            shown["pages"] = False
        elif word in ("-C", "--dir"):
            position += 1
            if position == len(words):
                return None
            if word == "-C":
                folders.append(words[position])
            else:
                directory = words[position]
        elif word.startswith("--dir="):
            directory = word[len("--dir=") :]
        else:
            break
        position += 1
    return folders, directory, shown, words[position:]


def _load(target: str):  # type: ignore[no-untyped-def]
    module, _, attribute = target.partition(":")
    __import__(module)
    return getattr(sys.modules[module], attribute)


def _guarded(text: str) -> str:
    """Escape terminal control sequences."""
    return str(_load("trace_cli.render.escape:guarded")(text))


def _safe(text: str) -> str:
    return str(_load("trace_cli.render.escape:safe")(text))


def _flat(text: str) -> str:
    return _safe(text).replace("\n", "\\n").replace("\t", " ")


def _forget_output() -> None:
    """Redirect standard output to nowhere, so that the interpreter's flush at exit cannot fail."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):
        pass


def _defect(invocation: Invocation, error: Exception) -> int:
    """Report an unexpected error."""
    if invocation.environment.debug:
        import traceback

        invocation.note(_safe("".join(traceback.format_exception(error))), end="")
    complain(
        invocation,
        f"unexpected {type(error).__name__}: {error}",
        "this is a bug in Trace; please report it with the traceback that TRACE_DEBUG=1 prints",
    )
    return EXIT_BUG

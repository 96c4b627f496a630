"""Write the reference pages that are made from the code: docs/errors.md and docs/cli.md.

python tools/write_reference.py            write them
python tools/write_reference.py --check    exit 1 and show the difference when one is not current
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from trace_cli import advice, app, commands
from trace_store import errors

DOCS = Path(__file__).resolve().parents[1] / "docs"
HEAD = "<!-- Made by tools/write_reference.py from the code; changes here are overwritten. -->\n"


def error_classes(
    root: type[errors.TraceError] = errors.TraceError, depth: int = 0
) -> Iterator[tuple[int, type[errors.TraceError]]]:
    """Yield (depth, class) of the error tree, as it is written."""
    yield depth, root
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from error_classes(child, depth + 1)


def error_codes() -> list[str]:
    """Return every error code, in the order they were added."""
    return [code for name, code in vars(errors.ErrorCode).items() if name.isupper()]


def exit_code_of(error: type[errors.TraceError]) -> int:
    """Return the exit code that a command ends with on an error of this class."""
    return advice.exit_code(error(""))


def errors_page() -> str:
    """Return docs/errors.md."""
    lines = [
        "# Errors and exit codes\n",
        HEAD,
        "A command that fails prints one line on standard error, sometimes a second one with a hint, and ends with one"
        " of these codes:\n",
        "| exit code | meaning |",
        "|---:|---|",
    ]
    meanings: dict[int, list[str]] = {}
    for _, code, meaning in advice.EXIT_CODES:
        meanings.setdefault(code, []).append(meaning)
    for code, meaning in advice.OTHER_EXIT_CODES:
        meanings.setdefault(code, []).append(meaning)
    lines += [f"| {code} | {'; '.join(meanings[code])} |" for code in sorted(meanings)]
    lines += [
        "",
        "The library raises the classes below; all are in `trace_store.errors`, and catching one catches those under"
        " it. `code` is stable and machine-readable: codes are added, never renamed. What else an error knows"
        " (a path, candidates, what was expected) is in attributes.\n",
        "| class | `code` | exit code | hint |",
        "|---|---|---:|---|",
    ]
    named: set[str] = set()
    for depth, error in error_classes():
        named.add(error.code)
        bases = [
            base.__name__ for base in error.__bases__ if not issubclass(base, errors.TraceError)
        ]
        also = f" ({', '.join(bases)})" if bases and depth else ""
        hint = advice.HINTS.get(error.code, "")
        indent = "· " * depth
        lines.append(
            f"| {indent}`{error.__name__}`{also} | `{error.code}` | {exit_code_of(error)} | {hint} |"
        )
    unclassed = [code for code in error_codes() if code not in named]
    if unclassed:
        lines += ["", "Codes of cases without a class of their own:\n"]
        lines += [f"- `{code}`" for code in unclassed]
    return "\n".join(lines) + "\n"


def cli_page() -> str:
    """Return docs/cli.md."""
    root = app.root_command()
    lines = ["# Commands\n", HEAD, "Options of `trace` itself stand before the command:\n"]
    lines += parameter_table(root, "trace")
    lines += [
        "",
        "Data goes to standard output, everything else to standard error. [Errors](errors.md) lists the exit codes.\n",
    ]
    for category, title in commands.PANELS.items():
        rows = [row for row in commands.COMMANDS if row.category == category]
        lines += [
            f"## {title}\n",
            *(f"- [`trace {r.name}`](#trace-{r.name}): {r.help}" for r in rows),
            "",
        ]
        for row in rows:
            lines += command_section(app.load_command(row), f"trace {row.name}", "###")
    return "\n".join(lines).rstrip() + "\n"


def command_section(command: Any, path: str, heading: str) -> list[str]:
    """Return the lines that describe one command, and its subcommands."""
    context = command.make_context(path, [], resilient_parsing=True)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    lines = [f"{heading} {path}\n", f"`{usage}`\n", *paragraphs(command.help or ""), ""]
    table = parameter_table(command, path)
    if table:
        lines += [*table, ""]
    for child in getattr(command, "commands", {}).values():
        lines += command_section(child, f"{path} {child.name}", f"{heading}#")
    return lines


def paragraphs(text: str) -> list[str]:
    """Return help text as lines of Markdown; an indented paragraph stays as it is, in a block."""
    lines: list[str] = []
    for paragraph in text.replace("\f", "").strip().split("\n\n"):
        rows = [row for row in paragraph.splitlines() if row.strip() != "\b"]
        if all(row.startswith("    ") for row in rows):
            lines += ["```text", *rows, "```", ""]
        else:
            lines += [" ".join(row.strip() for row in rows), ""]
    return lines[:-1]


def parameter_table(command: Any, path: str) -> list[str]:
    """Return a table of arguments and options, in the order of the command's help."""
    context = command.make_context(path, [], resilient_parsing=True)
    rows: list[str] = []
    for parameter in command.get_params(context):
        if getattr(parameter, "hidden", False) or parameter.name == "help":
            continue
        if parameter.param_type_name == "argument":
            name = f"`{parameter.make_metavar(context)}`"
        else:
            value = "" if parameter.is_flag else f" {parameter.make_metavar(context)}"
            name = ", ".join(
                f"`{flag}{value}`" for flag in (*parameter.opts, *parameter.secondary_opts)
            )
        text = " ".join((parameter.help or "").split()).replace("|", "\\|")
        rows.append(f"| {name} | {text} |")
    return ["| | |", "|---|---|", *rows] if rows else []


PAGES: dict[str, Callable[[], str]] = {"errors.md": errors_page, "cli.md": cli_page}


def differences(name: str) -> str:
    """Return how a page on disk differs from what the code says; "" when it does not."""
    path = DOCS / name
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    wanted = PAGES[name]()
    return "".join(
        difflib.unified_diff(
            found.splitlines(keepends=True),
            wanted.splitlines(keepends=True),
            f"docs/{name}",
            "the code",
        )
    )


def main() -> int:
    """Write or check the pages; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; tell whether they are current"
    )
    if parser.parse_args().check:
        changed = "".join(differences(name) for name in PAGES)
        sys.stdout.write(changed)
        return 1 if changed else 0
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Instructions of whole commands, beside a bare interpreter: `python -m benchmarks.instructions [PYTHON…]`.

Each PYTHON is the interpreter of an environment in which Trace is installed; several are compared with the first. Needs
valgrind, whose `cachegrind` counts what a process executes. Other load on the machine does not change the counts.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

MESSAGES = 100
ID, FILE = "{id}", "{file}"
COMMANDS = (
    *("--version", f"rev-parse {ID}", "rev-parse HEAD", "cat-file -p HEAD", f"hash-object {FILE}"),
    *("for-each-ref", "ls-context", "config", "log -n 20", "status", "show", "compile", "branch"),
    *(
        "switch other",
        "diff HEAD~1 HEAD",
        "commit -q --no-seal --user TEXT",
        "commit -q --user TEXT",
    ),
)
CHANGING = ("switch", "commit")
"""Commands that are not run once before, because the second run would do something else."""
_COUNTED = re.compile(r"I\s+refs:\s+([\d,]+)")


class Subject:
    """An installed Trace, and a repository of `MESSAGES` messages in one pack that it wrote."""

    def __init__(self, python: str, folder: Path) -> None:
        self._python = python
        self._folder = folder
        self._environment = {
            **{
                name: each
                for name, each in os.environ.items()
                if not name.startswith(("TRACE_", "PYTHON"))
            },
            "HOME": str(folder),
            "PYTHONHASHSEED": "0",
            "TRACE_AUTHOR": "ada",
        }
        self._repository = folder / "repository"
        self._repository.mkdir(parents=True)
        self._file = folder / "file"
        self._file.write_text("hello\n", encoding="utf-8")
        self._trace("init", "-q")
        for number in range(MESSAGES):
            role = "--assistant" if number % 2 else "--user"
            self._trace("commit", "-q", "--no-seal", role, f"message {number} says what was done")
        self._trace("pack")
        self._trace("branch", "other")
        self._id = self._trace("rev-parse", "HEAD").strip()

    def bare(self) -> int:
        """Return the instructions of an interpreter that does nothing."""
        return self._counted([self._python, "-c", "pass"], self._repository)

    def command(self, words: str) -> int:
        """Return the instructions of a command, in a copy of the repository."""
        given = words.format(id=self._id, file=self._file).split()
        copy = self._folder / "copy"
        shutil.copytree(self._repository, copy)
        try:
            if given[0] not in CHANGING:
                self._trace(*given, folder=copy)  # writes what later runs find written
            return self._counted([*self._program(), *given], copy)
        finally:
            shutil.rmtree(copy)

    def _program(self) -> list[str]:
        return [self._python, str(Path(self._python).with_name("trace"))]

    def _trace(self, *words: str, folder: Path | None = None) -> str:
        return subprocess.run(
            [*self._program(), *words],
            cwd=folder or self._repository,
            env=self._environment,
            check=True,
            capture_output=True,
            encoding="utf-8",
        ).stdout

    def _counted(self, command: Sequence[str], folder: Path) -> int:
        options = ("--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={os.devnull}")
        result = subprocess.run(
            ["valgrind", *options, *command],
            cwd=folder,
            env=self._environment,
            check=True,
            capture_output=True,
            encoding="utf-8",
        )
        found = _COUNTED.search(result.stderr)
        if found is None:
            raise SystemExit(f"valgrind counted nothing: {result.stderr[-200:]}")
        return int(found[1].replace(",", ""))


def table(ratios: Sequence[Mapping[str, float]]) -> str:
    """Return a Markdown table of ratios to the bare interpreter, with the change from the first to the last."""
    several = len(ratios) > 1
    heads = ["command", *(f"{number}" for number in range(1, len(ratios) + 1))]
    lines = ["| " + " | ".join([*heads, *(["change"] if several else [])]) + " |"]
    lines.append("|---" + "|---:" * (len(ratios) + several) + "|")
    for command in COMMANDS:
        values = [each[command] for each in ratios]
        cells = [
            f"`{command}`".replace(ID, "ID").replace(FILE, "FILE"),
            *map("{:.2f}".format, values),
        ]
        change = [f"{values[-1] / values[0] - 1:+.0%}"] if several else []
        lines.append("| " + " | ".join([*cells, *change]) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("python", nargs="*", default=[sys.executable], metavar="PYTHON")
    given = parser.parse_args(arguments)
    if shutil.which("valgrind") is None:
        parser.error("there is no valgrind here")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for number, python in enumerate(given.python):
            subject = Subject(python, Path(folder) / str(number))
            bare = subject.bare()
            ratios.append({words: subject.command(words) / bare for words in COMMANDS})
    print(table(ratios))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

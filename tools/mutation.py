"""Mutation tests: put small faults into modules, one at a time, and count those that their tests notice.

    python -m tools.mutation                               every mutant of every area; many hours
    python -m tools.mutation --sample 15 --seed 1          15 of each area; seed 1 always takes the same
    python -m tools.mutation retention --sample 40         of one area

`nox -s mutation -- …` installs what it needs. Cosmic Ray makes the mutants: another comparison, another operator, a
number off by one, a loop that does not run. The tests run here, since Cosmic Ray would run a whole folder for each:

- All files are copied, and only the copy is changed.
- One run of an area's tests records which tests reach which line. A mutant gets the tests that reach its line, the
  fastest first, until one fails.
- A test process is forked from one that has loaded the libraries, but nothing of Trace.

A mutant is killed if a test fails or takes too long. Survivors are printed with the line before and after. Some change
nothing that a user sees; `mutation_survivors.txt` lists these, each with the reason, and they count as neither.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import importlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import tokenize
import traceback
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ACCEPTED = Path(__file__).with_name("mutation_survivors.txt")
LIMIT_SECONDS = 240
LOADED_BEFORE = (
    *("pytest", "coverage", "hypothesis", "httpx", "typer", "rich.table", "tiktoken", "msgpack"),
    *("blake3", "filelock", "re2", "sqlite3", "markdown_it"),
)
"""Libraries that the tests use, which each test process has from the start."""


class Area(NamedTuple):
    """Modules to mutate, and the tests that should notice."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


AREAS = {
    "compression": Area(
        ("trace_store/compression",),
        ("tests/compression", "tests/cli/test_compressing.py", "tests/cli/test_trimming.py"),
    ),
    "retention": Area(
        ("trace_store/history/retention.py",),
        ("tests/history/test_trash.py", "tests/cli/test_trash.py"),
    ),
    "trash_entries": Area(
        ("trace_store/history/trash_entries.py",),
        ("tests/history/test_trash.py", "tests/cli/test_trash.py"),
    ),
    "search": Area(("trace_store/search",), ("tests/search", "tests/trajectories/test_search.py")),
    "purge": Area(
        ("trace_store/maintenance/purge.py",),
        (
            *("tests/secrets/test_purging.py", "tests/secrets/test_purging_interrupted.py"),
            *("tests/secrets/test_reissuing.py", "tests/cli/test_purge.py"),
            *("tests/store/test_tombstones.py", "tests/cases/test_purge.py"),
        ),
    ),
    "guard": Area(
        ("trace_store/secrets/guard.py",), ("tests/secrets", "tests/cases/test_secrets.py")
    ),
    "automatic": Area(
        ("trace_store/checkpoints/automatic.py",), ("tests/checkpoints/test_automatic.py",)
    ),
}


class Place(NamedTuple):
    """Where a fault can be put.

    Attributes:
        path: of the module.
        line: its number.
        operator: the name of Cosmic Ray's operator.
        occurrence: which of the operator's places in the module it is.
    """

    path: str
    line: int
    operator: str
    occurrence: int


class Mutant(NamedTuple):
    """One fault.

    Attributes:
        place: where it is.
        before, after: the lines that differ, without their margin.
        source: the whole module with the fault.
    """

    place: Place
    before: str
    after: str
    source: str

    @property
    def name(self) -> str:
        """The name by which the list of accepted survivors knows it; it stays when lines move."""
        return f"{self.place.path}: {self.before} -> {self.after}"


class Reached(NamedTuple):
    """The tests that reach each line of a module, and how long each test takes."""

    lines: Mapping[str, Mapping[int, Sequence[str]]]
    seconds: Mapping[str, float]


# --- mutants ----------------------------------------------------------------------------------------------------------


def places_in(path: str) -> Iterator[Place]:
    """Yield where faults can be put into a module."""
    from cosmic_ray import ast as trees
    from cosmic_ray import plugins

    code = (ROOT / path).read_text(encoding="utf-8")
    passive = _passive(code)
    nodes = list(trees.ast_nodes(trees.get_ast(code)))
    for name in plugins.operator_names():
        operator_class = plugins.get_operator(name)
        if operator_class.arguments() or not _is_chosen(name.partition("/")[2]):
            continue
        operator = operator_class()
        starts = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (line, column) in enumerate(starts):
            if not {(line, None), (line, column)} & passive:
                yield Place(path, line, name, occurrence)


def mutant_at(place: Place) -> Mutant:
    """Return the fault at a place."""
    from cosmic_ray import plugins
    from cosmic_ray.mutating import mutate_code

    code = (ROOT / place.path).read_text(encoding="utf-8")
    source = mutate_code(code, plugins.get_operator(place.operator)(), place.occurrence)
    before, after = _difference(code.splitlines(), source.splitlines())
    return Mutant(place, before, after, source)


def _is_chosen(operator: str) -> bool:
    """Return False for operators whose mutants no test can miss, or that read the same."""
    kind, *of = operator.split("_")
    if kind == "ReplaceComparisonOperator":
        identity = {"Is", "IsNot"}
        return not identity & {*of} or {*of} == identity
    # Cosmic Ray cannot replace an exception with a dotted name.
    return kind not in ("RemoveDecorator", "NoOp", "ExceptionReplacer")


def _passive(code: str) -> set[tuple[int, int | None]]:
    """Return the places of annotations and of stars that multiply nothing, and the lines only for a type checker."""
    found: set[tuple[int, int | None]] = set()
    for node in ast.walk(ast.parse(code)):
        for name in ("annotation", "returns"):
            annotation = getattr(node, name, None)
            if annotation is not None:
                inside = (each for each in ast.walk(annotation) if isinstance(each, ast.expr))
                for each in inside:
                    found.update(
                        (each.lineno, c) for c in range(each.col_offset, each.end_col_offset or 0)
                    )
    found.update(_stars(code))
    found.update(
        (n, None) for n, line in enumerate(code.splitlines(), 1) if "TYPE_CHECKING" in line
    )
    return found


def _stars(code: str) -> Iterator[tuple[int, int]]:
    """Yield the places of stars before arguments and parameters."""
    previous = ""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.string in ("*", "**") and previous in ("(", ",", "[", "{", "=", "yield", "return"):
            yield token.start
        if token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.NEWLINE, tokenize.INDENT):
            previous = token.string


def _difference(before: Sequence[str], after: Sequence[str]) -> tuple[str, str]:
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    said = (" ".join(map(str.strip, each[start : len(each) - end])) for each in (before, after))
    return next(said), next(said)


def choose(places: Sequence[Place], sample: int, seed: int) -> list[Place]:
    """Return a sample, at most one of each line; all for 0."""
    if not sample:
        return list(places)
    taken: dict[tuple[str, int], Place] = {}
    for each in random.Random(seed).sample(places, len(places)):
        taken.setdefault((each.path, each.line), each)
        if len(taken) == sample:
            break
    return sorted(taken.values())


# --- test processes ---------------------------------------------------------------------------------------------------


class Recorder:
    """A plugin of pytest: records which tests reach which lines of some modules."""

    def __init__(self, folder: Path, modules: Sequence[str]) -> None:
        import coverage

        self._paths = {str(folder / each): each for each in modules}
        self._coverage = coverage.Coverage(
            data_file=None, include=list(self._paths), config_file=False
        )
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    def __enter__(self) -> Recorder:
        self._coverage.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._coverage.stop()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0) + report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_runtest_logfinish(self) -> None:
        self._coverage.switch_context("")

    def reached(self) -> dict[str, Any]:
        data = self._coverage.get_data()
        lines = {
            own: data.contexts_by_lineno(path)
            for path, own in self._paths.items()
            if path in data.measured_files()
        }
        return {"lines": lines, "seconds": self.seconds, "failed": sorted(self.failed)}


def run_tests(
    folder: Path, tests: Sequence[str], record: Path | None, modules: Sequence[str] = ()
) -> int:
    """Run tests of a copy in a process of their own; return its exit status, or -1 if it takes too long."""
    child = os.fork()
    if child:
        return _wait(child, LIMIT_SECONDS * (20 if record else 1))
    status = 99
    try:
        os.setsid()
        output = os.open(folder.parent / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(folder)
        scratch = folder.parent / "tmp"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        paths = [str(folder), str(folder / "cli")]
        os.environ |= {"TMPDIR": str(scratch), "PYTHONPATH": os.pathsep.join(paths)}
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the copy holds compiled modules
        sys.dont_write_bytecode = False
        sys.path[:] = [
            *paths,
            *(each for each in sys.path if each not in ("", str(ROOT), str(ROOT / "cli"))),
        ]
        tempfile.tempdir = None
        for name in [each for each in sys.modules if each.partition(".")[0] == "tools"]:
            del sys.modules[name]
        pytest = importlib.import_module("pytest")
        words = [
            "-q",
            "--no-header",
            "--tb=short",
            "--assert=plain",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-r",
            "N",
        ]
        words += ["--timeout", str(LIMIT_SECONDS), "--basetemp", str(scratch / "pytest")]
        if record is None:
            status = int(pytest.main([*words, "-x", *tests]))
        else:
            with Recorder(folder, modules) as recorder:
                status = int(pytest.main([*words, *tests], plugins=[recorder]))
            record.write_text(json.dumps(recorder.reached()), encoding="utf-8")
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _wait(child: int, seconds: float) -> int:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def copied(folder: Path) -> Path:
    """Copy the project, compiled, and return the copy."""
    copy = folder / "copy"
    skipped = shutil.ignore_patterns(
        *(
            ".git",
            ".venv",
            ".nox",
            ".trace",
            "site",
            "dist",
            "__pycache__",
            ".*_cache",
            ".hypothesis",
        )
    )
    shutil.copytree(ROOT, copy, ignore=skipped, symlinks=True)
    compileall.compile_dir(copy, quiet=2)
    return copy


def reached_by(folder: Path, area: Area, modules: Sequence[str]) -> Reached:
    """Run the tests of an area, and return what they reach; a test that fails without any fault is left out.

    Raises:
        SystemExit: the tests do not run.
    """
    record = folder.parent / "reached.json"
    if run_tests(folder, area.tests, record, modules) not in (0, 1):
        raise SystemExit((folder.parent / "output").read_text(encoding="utf-8", errors="replace"))
    said = json.loads(record.read_text(encoding="utf-8"))
    for each in said["failed"]:
        print(f"  left out, since it fails without any fault: {each}", flush=True)
    left_out = {"", *said["failed"]}
    lines = {
        path: {
            int(line): [each for each in tests if each not in left_out]
            for line, tests in found.items()
        }
        for path, found in said["lines"].items()
    }
    return Reached(lines, said["seconds"])


def is_killed(folder: Path, mutant: Mutant, reached: Reached, area: Area) -> bool:
    """Return True if a test notices a mutant; the copy is as before afterwards."""
    place = mutant.place
    of_line = reached.lines.get(place.path, {}).get(place.line)
    if of_line is None:
        # A line within a statement: the tests of the line above that starts it.
        above = [n for n in reached.lines.get(place.path, {}) if n < place.line]
        of_line = reached.lines[place.path][max(above)] if above else []
    tests = sorted(of_line, key=lambda each: reached.seconds.get(each, 0)) or [*area.tests]
    path = folder / place.path
    original = path.read_text(encoding="utf-8")
    compiled = Path(cache_from_source(str(path)))
    compiled.unlink(missing_ok=True)
    try:
        path.write_text(mutant.source, encoding="utf-8")
        return run_tests(folder, tests, None) != 0
    finally:
        path.write_text(original, encoding="utf-8")
        compiled.unlink(missing_ok=True)


# --- the command ------------------------------------------------------------------------------------------------------


def accepted() -> dict[str, str]:
    """Return the survivors that change nothing a user sees: name and reason."""
    found: dict[str, str] = {}
    name = ""
    for line in ACCEPTED.read_text(encoding="utf-8").splitlines() if ACCEPTED.exists() else ():
        if line.startswith("    "):
            found[name] = line.strip()
        elif line and not line.startswith("#"):
            name = line
    return found


def measure(name: str, sample: int, seed: int, folder: Path) -> tuple[int, int]:
    """Try the mutants of an area, print the survivors, and return how many were killed, and of how many."""
    area = AREAS[name]
    modules = [
        path.relative_to(ROOT).as_posix()
        for each in area.modules
        for path in ([ROOT / each] if each.endswith(".py") else sorted((ROOT / each).glob("*.py")))
    ]
    reached = reached_by(folder, area, modules)
    every = [place for path in modules for place in places_in(path)]
    known = accepted()
    chosen = choose(every, sample, seed)
    killed = equivalent = 0
    for mutant in map(mutant_at, chosen):
        if mutant.name in known:
            equivalent += 1
        elif is_killed(folder, mutant, reached, area):
            killed += 1
        else:
            print(f"  survived: {mutant.place.path}:{mutant.place.line} {mutant.place.operator}")
            print(f"    - {mutant.before}\n    + {mutant.after}", flush=True)
    count = len(chosen) - equivalent
    print(
        f"{name}: {killed} of {count} killed, {equivalent} accepted, of {len(every)} mutants",
        flush=True,
    )
    return killed, count


def main() -> int:
    """Measure the areas that the command line names; return 1 if fewer are killed than asked."""
    parser = argparse.ArgumentParser(
        prog="tools.mutation", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("areas", nargs="*", help=f"default: all of {' '.join(AREAS)}")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="so many of each area")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="which ones")
    parser.add_argument("--at-least", type=int, default=80, metavar="PERCENT", help="asked: 80")
    asked = parser.parse_args()
    areas = asked.areas or list(AREAS)
    if unknown := [each for each in areas if each not in AREAS]:
        parser.error(f"unknown area {unknown[0]}; areas are {' '.join(AREAS)}")
    for each in LOADED_BEFORE:
        importlib.import_module(each)
    killed = count = 0
    with tempfile.TemporaryDirectory(prefix="trace-mutation-") as folder:
        copy = copied(Path(folder))
        for name in areas:
            got = measure(name, asked.sample, asked.seed, copy)
            killed, count = killed + got[0], count + got[1]
    print(f"together: {killed} of {count} killed ({killed / max(count, 1):.0%})")
    return int(100 * killed < asked.at_least * count)


if __name__ == "__main__":
    sys.exit(main())

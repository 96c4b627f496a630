"""Measure how much of the library an operation passes through, and how large its packages and signatures are.

    python -m tools.crossings                 calls, modules and crossings of three operations
    python -m tools.crossings --signatures    public signatures that pass context along; lines and modules by package
    python -m tools.crossings --root FOLDER   the same for another checkout, to compare two versions

The counts are of Python functions in `trace_store` and `trace_cli`, by `sys.setprofile`, without the code of modules
that are imported:

    calls      every entry of a function, also when a generator continues
    modules    modules with at least one call
    crossings  calls whose caller is in another module of the two
    packages   crossings whose caller is in another package: the first folder below `trace_store` or `trace_cli`, where
               a module directly below is its own package

A call from outside, such as from the standard library, is no crossing. Each operation has run once before, so that
modules are imported. Counts differ by a few calls between runs, since ids do.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {"trace_store": "trace_store", "trace_cli": "cli/trace_cli"}
"""Where the source of each root package is."""
PASSED_ALONG = ("author", "guard", "salt")
TURNS = 19
"""Number of turns in the context to trim, each of four messages."""
_FILE_LINES = "\n".join(f"{number:4}  x_{number} = {number} * value" for number in range(60))


class Crossings(NamedTuple):
    """The calls of one operation; the module's docstring defines each number."""

    calls: int
    modules: int
    crossings: int
    packages: int


class Signatures(NamedTuple):
    """How many public functions and methods there are, and how many have each parameter of `PASSED_ALONG`."""

    functions: int
    with_parameter: dict[str, int]
    with_any: int


def crossings(operation: Callable[[], object], root: Path = ROOT) -> Crossings:
    """Run an operation and count its calls in the packages below `root`."""
    packages = {name: f"{root / folder}{os.sep}" for name, folder in SOURCES.items()}
    homes: dict[str, str] = {}  # the path of a module below its root package, or "", by file name
    calls: Counter[tuple[str, str]] = Counter()

    def home_of(file: str) -> str:
        known = homes.get(file)
        if known is None:
            inside = (name for name, folder in packages.items() if file.startswith(folder))
            name = next(inside, "")
            known = homes[file] = f"{name}/{file[len(packages[name]) :]}" if name else ""
        return known

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            callee = home_of(frame.f_code.co_filename)
            if callee:
                caller = frame.f_back
                calls[home_of(caller.f_code.co_filename) if caller else "", callee] += 1

    sys.setprofile(profile)
    try:
        operation()
    finally:
        sys.setprofile(None)
    between = {pair: count for pair, count in calls.items() if pair[0] and pair[0] != pair[1]}
    return Crossings(
        calls.total(),
        len({callee for _, callee in calls}),
        sum(between.values()),
        sum(count for pair, count in between.items() if package_of(pair[0]) != package_of(pair[1])),
    )


def package_of(home: str) -> str:
    """Return the package of a module such as `trace_store/refs/head.py`: `trace_store/refs`."""
    return "/".join(home.removesuffix(".py").split("/")[:2])


def operations(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the name of each operation and what runs it, on new repositories in a folder."""
    import trace_store
    from trace_cli import main

    def command(*words: str) -> None:
        if main.main(["-C", str(folder), *words]):
            raise SystemExit(f"trace {' '.join(words)} failed")

    command("init", "-q")
    command("commit", "-q", "--user", "the first message")
    yield "commit -q", lambda: command("commit", "-q", "--user", "another message")

    def with_context(name: str) -> Any:
        (folder / name).mkdir()
        repo = trace_store.Repo.init(folder / name)
        for message in messages(trace_store):
            repo.commit([message])
        return repo

    before, repo = with_context("before"), with_context("context")
    before.compression.trim(before.compression.target("50%"))
    target = repo.compression.target("50%")
    yield "trim", lambda: repo.compression.trim(target)
    before.search("multiplies")
    yield "search, warm", lambda: before.search("multiplies")


def messages(trace_store: Any) -> Iterator[Any]:
    """Yield a context to trim: questions, files that were read, and answers."""
    for turn in range(TURNS):
        path, call = f"src/module_{turn % 5}.py", f"call_{turn}"
        yield trace_store.Message("user", f"What does line {turn} of {path} do?")
        reads = trace_store.ToolCall(call, "Read", {"file_path": path})
        yield trace_store.Message("assistant", [trace_store.Text("I read the file."), reads])
        result = trace_store.ToolResult(call, f"# {path}, read {turn}\n{_FILE_LINES}")
        yield trace_store.Message("tool", [result])
        yield trace_store.Message("assistant", f"It multiplies the value by {turn}. " * 8)


def measured(root: Path = ROOT) -> dict[str, Crossings]:
    """Return the crossings of each operation, by its name."""
    kept, here = dict(os.environ), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, TRACE_AUTHOR="ada")
        try:
            return {
                name: crossings(operation, root) for name, operation in operations(Path(folder))
            }
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(kept)


def signatures(root: Path = ROOT) -> Signatures:
    """Count the public functions and methods of the library, and those with the parameters of `PASSED_ALONG`."""
    having: Counter[str] = Counter()
    functions = having_any = 0
    for path in sorted((root / "trace_store").rglob("*.py")):
        for function in public_functions(ast.parse(path.read_text("utf-8")).body):
            given = function.args
            names = {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
            functions += 1
            having_any += not names.isdisjoint(PASSED_ALONG)
            having.update(names.intersection(PASSED_ALONG))
    return Signatures(functions, {name: having[name] for name in PASSED_ALONG}, having_any)


def public_functions(body: Sequence[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the public functions of a module, and the public methods and constructors of its public classes."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.name.startswith("_") or node.name == "__init__":
                yield node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body)


def sizes(root: Path = ROOT) -> dict[str, tuple[int, int]]:
    """Return the number of modules and of lines of each package, by its name."""
    found: dict[str, tuple[int, int]] = {}
    for name, folder in SOURCES.items():
        for path in sorted((root / folder).rglob("*.py")):
            package = package_of(f"{name}/{path.relative_to(root / folder).as_posix()}")
            modules, lines = found.get(package, (0, 0))
            found[package] = modules + 1, lines + path.read_text("utf-8").count("\n")
    return found


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table whose columns after the first are numbers."""
    lines = [f"| {' | '.join(head)} |", f"|---{'|---:' * (len(head) - 1)}|"]
    for first, *numbers in rows:
        lines.append(f"| {first} | {' | '.join(f'{number:,}' for number in numbers)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--signatures", action="store_true", help="print signatures and sizes")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to measure")
    given = parser.parse_args(arguments)
    root = given.root.resolve()
    if given.signatures:
        found = signatures(root)
        rows = [(f"with `{name}`", count) for name, count in found.with_parameter.items()]
        rows = [("all", found.functions), *rows, ("with any of these", found.with_any)]
        print(table(("public functions and methods", "count"), rows), "\n")
        packages = sizes(root)
        total = (sum(m for m, _ in packages.values()), sum(n for _, n in packages.values()))
        each = [(name, *size) for name, size in packages.items()]
        print(table(("package", "modules", "lines"), [*each, ("all", *total)]))
        return
    sys.path[:0] = [str(root), str(root / "cli")]
    head = ("operation", "calls", "modules", "crossings", "packages")
    print(table(head, [(name, *each) for name, each in measured(root).items()]))


if __name__ == "__main__":
    main()

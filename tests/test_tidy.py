"""House rules that no linter knows, checked on the source itself.

Each rule keeps a promise of CONTRIBUTING.md; a failure names the place that broke it.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from tests.support.everyday import everyday_modules, loaded_modules

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"trace_store": ROOT / "trace_store", "trace_cli": ROOT / "cli" / "trace_cli"}

MODULE_LINES = 800
FUNCTION_LINES = 60
PUBLIC_METHODS = 20
FRONT_DOOR_METHODS = {
    ("trace_store/repo/line.py", "Line"): 32,
    ("trace_store/repo/repository.py", "Repo"): 29,
}
"""Higher limits: `Line` has one short method for each verb, `Repo` a property for each subject."""
FRONT_DOOR_NAMES = 30

AT_THE_TOP = {
    *(".ci", ".gitattributes", ".gitignore", ".trace-example"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md"),
    *("justfile", "noxfile.py", "pyproject.toml", "requirements-dev.lock", "requirements.lock"),
    *("benchmarks", "cli", "docs", "tests", "tools", "trace_store"),
}
MAY_READ_ENVIRONMENT = {"trace_store/base/environment.py"}
MAY_HASH = {"trace_store/base/oid.py"}
MAY_TELL_TIME = {"trace_store/base/ident.py"}
MAY_WRITE = {"trace_store/disk/files.py", "trace_store/disk/system_calls.py"}

TOO_DEAR = {
    *("asyncio", "dataclasses", "enum", "filelock", "httpx", "json", "logging", "pathlib"),
    *("pydantic", "re", "rich", "subprocess", "tempfile", "tiktoken", "tomllib", "typer", "typing"),
}

SLOW_TO_LOAD = {
    *("concurrent.futures", "httpx", "importlib.metadata", "subprocess"),
    *("trace_store.bundles.create", "trace_store.bundles.format", "trace_store.bundles.ingest"),
    *("trace_store.compression.compress", "trace_store.exporters.files"),
    *("trace_store.llm.http_model", "trace_store.merge.llm_assist.answer"),
    *("trace_store.merge.llm_assist.review", "trace_store.merge.llm_assist.semantic"),
    *("trace_store.search.query", "trace_store.secrets.engine", "trace_store.sessions.listing"),
    *("trace_store.trajectories.event_search", "trace_store.trajectories.proposals"),
    "trace_store.trajectories.trail_import",
}
"""Modules as slow to load as a whole command, some for what they load; a type of theirs does not load them."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    """One source file, read once."""

    name: str  # relative to the repository, with slashes
    text: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]  # of the whole tree


@functools.cache
def modules() -> tuple[Module, ...]:
    paths = sorted(path for folder in PACKAGES.values() for path in folder.rglob("*.py"))
    return tuple(
        Module(path.relative_to(ROOT).as_posix(), text, tree, tuple(ast.walk(tree)))
        for path in paths
        for text in [path.read_text(encoding="utf-8")]
        for tree in [ast.parse(text)]
    )


@functools.cache
def floors() -> tuple[tuple[str, ...], ...]:
    """Return the floors of the library from the ground up, as the import contract lists them, without empty ones."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contract = next(c for c in contracts["importlinter"]["contracts"] if c["id"] == "floors")
    there = {path.stem for path in (ROOT / "trace_store").iterdir()}
    names = ([*re.findall(r"\w+", layer)] for layer in reversed(contract["layers"]))
    return tuple(floor for each in names if (floor := tuple(n for n in each if n in there)))


def library() -> Iterator[Module]:
    return (module for module in modules() if module.name.startswith("trace_store/"))


def functions(module: Module) -> Iterator[Function]:
    return (node for node in module.nodes if isinstance(node, Function))


def body_lines(node: Function) -> int:
    """Count the lines of a function after its docstring."""
    has_more = ast.get_docstring(node, clean=False) is not None and len(node.body) > 1
    first = node.body[1] if has_more else node.body[0]
    return (node.end_lineno or first.lineno) - first.lineno + 1


def imported(node: ast.AST) -> list[str]:
    """Name the modules that an import statement asks for; a relative one is our own."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return ["trace_store"] if node.level else [node.module or ""]
    return []


def dotted(node: ast.AST) -> str:
    """Write an expression such as `os.environ` back as text; anything else is empty."""
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return node.id if isinstance(node, ast.Name) else ""


def uses(
    allowed: set[str], matches: Callable[[ast.AST], bool], within: Iterator[Module] | None = None
) -> list[str]:
    """Name every place outside `allowed` that holds a matching node."""
    return [
        f"{module.name}:{getattr(node, 'lineno', 0)}"
        for module in (within or modules())
        if module.name not in allowed
        for node in module.nodes
        if matches(node)
    ]


def report(found: list[str]) -> None:
    assert not found, "\n" + "\n".join(found)


# --- size ---------------------------------------------------------------------------------------


def test_modules_fit() -> None:
    sizes = {module.name: module.text.count("\n") for module in modules()}
    report([f"{name}: {lines} lines" for name, lines in sizes.items() if lines > MODULE_LINES])


def test_functions_fit() -> None:
    report(
        [
            f"{module.name}:{node.lineno} {node.name}: {body_lines(node)} lines"
            for module in modules()
            for node in functions(module)
            if body_lines(node) > FUNCTION_LINES
        ]
    )


def test_no_class_becomes_everything() -> None:
    """A class that every feature can reach is where features go to entangle themselves."""
    found: list[str] = []
    for module in modules():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                methods = [item for item in node.body if isinstance(item, Function)]
                names = {item.name for item in methods if not item.name.startswith("_")}
                most = FRONT_DOOR_METHODS.get((module.name, node.name), PUBLIC_METHODS)
                if len(names) > most:
                    found.append(f"{module.name}:{node.lineno} {node.name}: {len(names)} methods")
    report(found)


def test_public_class_names_are_unique() -> None:
    """A reader who searches for a name finds one thing."""
    places: dict[str, list[str]] = {}
    for module in modules():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(f"{module.name}:{node.lineno}")
    report([f"{name}: {', '.join(found)}" for name, found in places.items() if len(found) > 1])


def test_front_door_is_small_sorted_and_real() -> None:
    import trace_store

    names = list(trace_store.__all__)
    assert len(names) <= FRONT_DOOR_NAMES
    assert names == sorted(names, key=lambda name: (name.islower(), name.casefold()))
    report([name for name in names if not hasattr(trace_store, name)])


# --- one place for each effect ------------------------------------------------------------------


def test_environment_is_read_in_one_place() -> None:
    names = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}

    def reads(node: ast.AST) -> bool:
        if isinstance(node, ast.ImportFrom):
            return node.module == "os" and any(alias.name in names for alias in node.names)
        return isinstance(node, ast.Attribute) and dotted(node) in {f"os.{n}" for n in names}

    report(uses(MAY_READ_ENVIRONMENT, reads))


def test_hashing_happens_in_one_place() -> None:
    """One module decides which hash names things; a checksum (zlib.crc32) names nothing."""
    hashes = {"blake3", "hashlib", "_blake2", "_sha1", "_sha2", "hmac"}
    report(uses(MAY_HASH, lambda node: not hashes.isdisjoint(imported(node))))


def test_time_is_told_in_one_place() -> None:
    """A repository is a function of its inputs, and the clock is one of them."""
    clocks = {
        *("time.time", "time.time_ns", "time.localtime", "time.ctime", "time.strftime"),
        *("datetime.now", "datetime.utcnow", "datetime.today", "date.today"),
        *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today"),
    }
    report(
        uses(MAY_TELL_TIME, lambda node: isinstance(node, ast.Call) and dotted(node.func) in clocks)
    )


def test_disk_is_written_in_one_place() -> None:
    """What writes goes through files.Disk, so that a test can count, tear and refuse it."""
    verbs = {
        *(
            "chmod",
            "fdatasync",
            "fsync",
            "ftruncate",
            "link",
            "makedirs",
            "mkdir",
            "open",
            "pwrite",
        ),
        *("remove", "removedirs", "rename", "renames", "replace", "rmdir", "symlink", "truncate"),
        *("unlink", "utime", "write", "writev"),
    }
    calls = {f"os.{verb}" for verb in verbs}
    methods = {"write_text", "write_bytes", "touch", "rmdir", "symlink_to", "hardlink_to"}

    def writes(node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return False
        name = dotted(node.func)
        if name in {"open", "io.open"}:
            mode = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "mode")]
            return any(
                not isinstance(m, ast.Constant) or not set("wax+").isdisjoint(str(m.value))
                for m in mode
            )
        attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return name in calls or attribute in methods

    report(uses(MAY_WRITE, writes, library()))
    modules_that_write = {"shutil", "tempfile"}
    report(
        uses(MAY_WRITE, lambda node: not modules_that_write.isdisjoint(imported(node)), library())
    )


def test_library_errors_name_no_command() -> None:
    """Errors of the library name no commands; hints are in trace_cli/advice.py."""
    names_command = re.compile(r"`(?:trace|git) |(?:^|[\s(`])--[a-z]")

    def hints(node: ast.AST) -> bool:
        if not (isinstance(node, ast.Call) and dotted(node.func).endswith("Error")):
            return False
        texts = [
            n.value for each in node.args for n in ast.walk(each) if isinstance(n, ast.Constant)
        ]
        is_hint = any(keyword.arg == "hint" for keyword in node.keywords)
        return is_hint or any(names_command.search(text) for text in texts if isinstance(text, str))

    report(uses(set(), hints, library()))


# --- imports ------------------------------------------------------------------------------------


def test_no_late_imports_of_own_code() -> None:
    """A late import of our own code hides a cycle; a module's `__getattr__` is a lazy door."""
    found: list[str] = []
    for module in modules():
        for function in functions(module):
            if function.name == "__getattr__":
                continue
            found += [
                f"{module.name}:{node.lineno} in {function.name}"
                for node in ast.walk(function)
                if isinstance(node, ast.Import | ast.ImportFrom)
                and any(name.split(".")[0] in PACKAGES for name in imported(node))
            ]
    report(found)


def test_only_the_top_floors_reach_packages_through_the_root() -> None:
    """`import trace_store` names no package, so the contracts about floors do not see what is used."""
    report(
        [
            f"{module.name}:{node.lineno}"
            for module in modules()
            if not module.name.startswith(("trace_store/repo/", "cli/"))
            for node in module.nodes
            if isinstance(node, ast.Import) and "trace_store" in imported(node)
        ]
    )


def test_what_is_reached_through_a_package_is_there() -> None:
    """A package that loads its modules late promises any name, so the type checker believes in all of them."""
    found: list[str] = []
    for module in modules():
        packages = packages_in(module.tree)
        for name, parts, line in chains(module.tree, set(packages)):
            reached: object = packages[name]
            for part in parts:
                if not isinstance(reached, ModuleType) or not hasattr(reached, "__path__"):
                    break
                try:
                    reached = getattr(reached, part)
                except AttributeError:
                    found.append(f"{module.name}:{line} {name}.{'.'.join(parts)}")
                    break
    report(found)


def packages_in(tree: ast.Module) -> dict[str, ModuleType]:
    """Return the modules of ours that a module imports, by the names that it gives them."""
    found: dict[str, ModuleType] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            wanted = [(alias.asname or alias.name, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            wanted = [
                (each.asname or each.name, f"{node.module}.{each.name}") for each in node.names
            ]
        else:
            continue
        for name, full in wanted:
            if full.split(".")[0] in PACKAGES and "." not in name:
                module = module_of(full)
                if module is not None:
                    found[name] = module
    return found


@functools.cache
def module_of(full: str) -> ModuleType | None:
    """Return the module of a full name; None if it names something in a module."""
    try:
        return import_module(full)
    except ModuleNotFoundError:
        return None


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, and those of a class in place of the class."""
    for node in body:
        yield from statements(node.body) if isinstance(node, ast.ClassDef) else (node,)


def chains(tree: ast.Module, names: set[str]) -> Iterator[tuple[str, list[str], int]]:
    """Yield `name`, `["a", "b"]` and the line of each `name.a.b`.

    A function that has a variable or argument of that name is left out.
    """
    for block in statements(tree.body):
        bound = {
            node.id if isinstance(node, ast.Name) else node.arg
            for node in ast.walk(block)
            if isinstance(node, ast.arg)
            or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        }
        wanted = names - bound
        for node in ast.walk(block) if wanted else ():
            if isinstance(node, ast.Attribute):
                first, *parts = dotted(node).split(".")
                if first in wanted:
                    yield first, parts, node.lineno


WRITERS = {
    "writer": "the one way to write",
    "history/commit": "appends, whose text its own collector redacts",
    "history/branches": "HEAD, a file, under the journal's lock",
    "history/branch_state": "upstreams, a file, under the journal's lock",
    "merge/in_progress": "what stopped, a file, under the journal's lock",
    "importers/write": "whole transcripts, which are redacted as they are read",
    "maintenance/adopt": "objects that were stored before",
    "maintenance/purge": "objects that were stored before",
    "maintenance/repair_store": "refs of objects that were stored before",
}
"""Modules that may call `Store.transact` or `advance`, and why; all others begin a change of a `Writer`.

Plumbing stores bytes as they are given, so that their ids are known before.
"""


def test_text_is_stored_through_the_writer() -> None:
    """So no verb can store a text that was not checked for secrets, or leave out what follows a change."""
    found: list[str] = []
    for module in modules():
        place = module.name.removeprefix("trace_store/").removesuffix(".py")
        if place in WRITERS or place.startswith(("store/", "testing/", "cli/trace_cli/plumbing/")):
            continue
        for node in module.nodes:
            if isinstance(node, ast.Attribute) and node.attr in ("transact", "advance"):
                found.append(f"{module.name}:{node.lineno} .{node.attr}")
    report(found)


def test_nothing_is_imported_by_computed_name() -> None:
    """The tables of commands name modules as text, and a lazy package its own; others would escape the layers."""
    allowed = {
        "cli/trace_cli/app.py",
        "cli/trace_cli/main.py",
        "cli/trace_cli/subcommands.py",
        "trace_store/base/lazy_import.py",
    }
    fronts = {
        (module.name, node.lineno)
        for module in modules()
        for function in functions(module)
        if function.name == "__getattr__"
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
    }
    found = [
        f"{module.name}:{node.lineno}"
        for module in modules()
        if module.name not in allowed
        for node in module.nodes
        if isinstance(node, ast.Call)
        and dotted(node.func) in {"import_module", "importlib.import_module", "__import__"}
        and (module.name, node.lineno) not in fronts
    ]
    report(found)


def test_no_module_is_shadowed_by_what_its_package_exports() -> None:
    """When a package exports merge() of its merge.py, `package.merge` means one or the other."""
    names = {module.name for module in modules()}
    found: list[str] = []
    for module in modules():
        folder, _, file = module.name.rpartition("/")
        if file != "__init__.py":
            continue
        exported = [
            alias.asname or alias.name
            for node in module.nodes
            if isinstance(node, ast.ImportFrom)
            and not folder.endswith((node.module or "").replace(".", "/"))
            for alias in node.names
        ]
        found += [f"{module.name}: {name}" for name in exported if f"{folder}/{name}.py" in names]
    report(found)


def test_standard_library_is_not_shadowed() -> None:
    tops = {path.stem for folder in (ROOT, ROOT / "cli") for path in folder.glob("*/__init__.py")}
    assert not tops & {"trace", "cli"}
    assert not {path.parent.name for path in ROOT.glob("*/__init__.py")} & sys.stdlib_module_names


def loaded_by(imports: list[str]) -> set[str]:
    """Name the modules that a bare interpreter loads for these imports, without `site`."""
    paths = [str(ROOT), str(ROOT / "cli"), *{sysconfig.get_path(k) for k in ("purelib", "platlib")}]
    script = (
        f"import sys; sys.path += {paths!r}\n"
        f"before = set(sys.modules)\n"
        f"{''.join(f'import {name}{chr(10)}' for name in imports)}"
        f"print(*sorted(set(sys.modules) - before))\n"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return {name.split(".")[0] for name in run.stdout.split()}


def full_name(module: Module) -> str:
    name = module.name.removeprefix("cli/").removesuffix(".py").removesuffix("/__init__")
    return name.replace("/", ".")


def of_the_type_checker(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements of a module that only a type checker runs."""
    blocks = (node for node in tree.body if isinstance(node, ast.If))
    return [each for b in blocks if ast.unparse(b.test) == "TYPE_CHECKING" for each in b.body]


def is_for_types(node: ast.stmt) -> bool:
    """Return True if a module has the names that a statement imports for the type checker alone."""
    if isinstance(node, ast.ImportFrom):
        source = import_module(node.module or "")
        return not any(hasattr(source, each.name) for each in node.names)
    return False


@pytest.mark.parametrize("with_json", [False, True])
def test_everyday_modules_load_nothing_dear(with_json: bool) -> None:
    """Each of these costs about as much as a whole plumbing command."""
    names = sorted(name for name, only_json in everyday_modules().items() if only_json <= with_json)
    allowed = {"json", "re", "enum", "typing"} if with_json else set()
    dear = loaded_by(names) & TOO_DEAR - allowed
    blame = [f"{name}: {sorted(loaded_by([name]) & dear)}" for name in names] if dear else []
    report([line for line in blame if not line.endswith("[]")])
    assert not dear


def test_other_modules_import_what_they_need_at_the_top() -> None:
    """Check that modules which no everyday command loads import at the top.

    Imports for types are left where a package loads its modules late, where an everyday module has a name for the type
    checker alone, and where the module is slow to load.
    """
    everyday = loaded_modules()
    found: list[str] = []
    for module in modules():
        is_late = any("trace_store.base.lazy_import" in imported(node) for node in module.tree.body)
        if full_name(module) in everyday or is_late:
            continue
        for node in of_the_type_checker(module.tree):
            names = set(imported(node))
            if names and not names & SLOW_TO_LOAD and not is_for_types(node):
                found.append(f"{module.name}:{node.lineno}")
    report(found)


def test_front_door_is_light() -> None:
    """`import trace_store` alone loads names, not the house."""
    assert not loaded_by(["trace_store"]) & TOO_DEAR


# --- the project's files ------------------------------------------------------------------------


def test_every_module_says_what_it_is() -> None:
    report([m.name for m in modules() if m.text.strip() and not ast.get_docstring(m.tree)])


def test_every_package_is_in_the_drawing() -> None:
    drawing = (ROOT / "docs" / "architecture.md").read_text("utf-8").split("```")[1]
    packages = {found.parent.name for found in (ROOT / "trace_store").glob("*/__init__.py")}
    assert packages - set(re.findall(r"\w+", drawing)) - {"samples"} == set()


def test_contributing_lists_the_floors_of_the_import_contract() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Floors")[1]
    rows = re.findall(r"(?m)^\| (`.*?) \|", text.split("\n## ")[0])
    assert [sorted(re.findall(r"`(\w+)`", row)) for row in rows] == [sorted(f) for f in floors()]


def test_every_test_file_is_collected() -> None:
    """A test file with a misspelt name would never run, unnoticed."""
    helpers = {"conftest.py", "__init__.py", "__main__.py"}
    stray = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if not path.name.startswith("test_")
        and path.name not in helpers
        and "support" not in path.relative_to(ROOT).parts[:-1]
    ]
    report(stray)


def test_nothing_stray_lies_at_the_top() -> None:
    """What a command printed, or a scratch file, is easily committed with the rest."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    top = {name.partition("/")[0] for name in listed.stdout.splitlines()}
    report(sorted(top - AT_THE_TOP))


def test_no_work_is_left_as_a_note() -> None:
    notes = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    report(
        [
            f"{module.name}:{number}"
            for module in modules()
            for number, line in enumerate(module.text.splitlines(), 1)
            if notes.search(line)
        ]
    )


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_locks_pin_by_hash_and_name_no_host(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert not re.search(r"://|--(extra-)?index-url|--find-links|@ file", text)
    pins = re.split(r"\n(?=[a-z0-9])", re.sub(r"(?m)^#.*\n", "", text).strip())
    pinned = re.compile(r"[a-z0-9.-]+(\[[a-z0-9,-]+\])?==\S+")
    assert all(pinned.match(pin) and "--hash=sha256:" in pin for pin in pins)


def test_locks_hold_every_declared_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = {
        "requirements.lock": project["dependencies"],
        "requirements-dev.lock": [*project["dependencies"], *extras["test"], *extras["dev"]],
    }
    for lock, requirements in wanted.items():
        text = (ROOT / lock).read_text(encoding="utf-8")
        locked = set(re.findall(r"(?m)^([a-z0-9-]+)==", text))
        names = {re.split(r"[\[<>=;~! ]", each, maxsplit=1)[0] for each in requirements}
        missing = {name.lower().replace(".", "-") for name in names} - locked - {project["name"]}
        assert not missing, f"{lock}: run the recipe that writes it; missing {sorted(missing)}"


def test_version_is_written_once_in_each_place() -> None:
    import trace_store

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == trace_store.__version__

"""Modules that a console script takes straight from their compiled files."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import py_compile
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

import pytest

from trace_cli import compiled
from trace_cli.compiled import CompiledModule, CompiledModules

ROOT = Path(__file__).resolve().parents[2]
ENDING = importlib.util.cache_from_source("x.py").rpartition("x")[2]
CALL = (
    "import sys; from trace_cli.console import run; import atexit\n"
    "import os; end = os._exit\n"
    "def told(code):\n"
    "    found = {type(m.__loader__).__name__ for n, m in sys.modules.items() if n.startswith('trace_store.')}\n"
    "    print(*sorted(found), sys.modules['trace_cli.main'].__file__, flush=True); end(code)\n"
    "os._exit = told\n"
    "sys.exit(run())\n"
)


def found(folder: Path, name: str) -> ModuleSpec | None:
    return CompiledModules(ENDING).find_spec(f"trace_store.{name}", [str(folder)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "inner").mkdir()
    for place in (tmp_path / "some.py", tmp_path / "inner" / "__init__.py"):
        place.write_text("value = 1\n\ndef where():\n    return __file__\n")
        py_compile.compile(str(place), doraise=True)
    return tmp_path


@pytest.mark.parametrize("name", ["some", "inner"])
def test_what_is_found_is_what_the_interpreter_finds(folder: Path, name: str) -> None:
    spec, usual = found(folder, name), PathFinder.find_spec(f"trace_store.{name}", [str(folder)])
    assert spec is not None
    assert usual is not None
    for trait in ("name", "origin", "cached", "has_location", "submodule_search_locations"):
        assert getattr(spec, trait) == getattr(usual, trait)
    assert isinstance(spec.loader, CompiledModule)
    assert isinstance(spec.loader, importlib.machinery.SourceFileLoader)
    module, other = map(importlib.util.module_from_spec, (spec, usual))
    spec.loader.exec_module(module)
    assert usual.loader is not None
    usual.loader.exec_module(other)
    assert module.value == other.value == 1
    assert module.where() == other.where() == spec.origin
    assert module.where.__code__ == other.where.__code__
    assert module.where.__code__.co_filename == spec.origin
    assert module.__cached__ == other.__cached__
    assert spec.loader.get_source(spec.name) == Path(str(spec.origin)).read_text()


def test_a_module_that_moved_says_where_it_is(folder: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(
        folder, moved, copy_function=shutil.copy2, ignore=shutil.ignore_patterns("else*")
    )
    spec = found(moved, "some")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.where.__code__.co_filename == str(moved / "some.py")


def test_other_modules_are_left_to_the_interpreter(folder: Path) -> None:
    finder = CompiledModules(ENDING)
    assert finder.find_spec("trace_store", None) is None
    assert finder.find_spec("other.some", [str(folder)]) is None
    assert finder.find_spec("trace_stored.some", [str(folder)]) is None
    assert found(folder, "absent") is None


def test_a_source_that_changed_is_left_to_the_interpreter(folder: Path) -> None:
    source = folder / "some.py"
    before = source.stat()
    source.write_text(source.read_text() + "# longer\n")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert found(folder, "some") is None
    source.write_text(source.read_text().removesuffix("# longer\n"))
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert found(folder, "some") is not None
    os.utime(source, (before.st_atime, before.st_mtime + 1))
    assert found(folder, "some") is None


def test_what_is_not_compiled_so_is_left_to_the_interpreter(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = folder / "__pycache__" / f"some{ENDING}"
    whole = cached.read_bytes()
    cached.write_bytes(b"\0\0" + whole[2:])  # by another interpreter
    assert found(folder, "some") is None
    cached.write_bytes(whole[:9])
    assert found(folder, "some") is None
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(folder / "some.py"), doraise=True, invalidation_mode=mode)
    assert found(folder, "some") is None
    cached.write_bytes(whole)
    assert found(folder, "some") is not None
    monkeypatch.setattr(compiled, "MAXIMUM_BYTES", len(whole))
    assert found(folder, "some") is None
    cached.unlink()
    assert found(folder, "some") is None


def console(paths: list[Path], **variables: str) -> list[str]:
    """Return what kinds of loaders a command used, and where its module is from."""
    site = {sysconfig.get_path(key) for key in ("purelib", "platlib")}
    run = subprocess.run(
        [sys.executable, "-P", "-c", CALL, "rev-parse", "0" * 64],
        env={"PYTHONPATH": os.pathsep.join([*map(str, paths), *site]), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in run.stderr
    return run.stdout.splitlines()[-1].split()


def test_a_console_script_starts_from_whatever_it_is_installed_as(tmp_path: Path) -> None:
    for source in (ROOT / "trace_store", ROOT / "cli" / "trace_cli"):
        ignored = shutil.ignore_patterns("__pycache__", "data", "samples")
        shutil.copytree(source, tmp_path / source.name, ignore=ignored)
    main = str(tmp_path / "trace_cli" / "main.py")
    once = {"PYTHONDONTWRITEBYTECODE": "1"}
    assert console([tmp_path], **once) == ["SourceFileLoader", main]
    assert console([tmp_path], PYTHONPYCACHEPREFIX=str(tmp_path / "cache")) == [
        "SourceFileLoader",
        main,
    ]
    assert console([tmp_path]) == ["SourceFileLoader", main]  # which leaves it compiled
    assert console([tmp_path]) == ["CompiledModule", main]
    changed = tmp_path / "trace_store" / "oid.py"
    changed.write_text(changed.read_text() + "\n")
    assert console([tmp_path], **once) == ["CompiledModule", "SourceFileLoader", main]
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in tmp_path.glob("trace_*/**/*.py"):
            file.write(path, path.relative_to(tmp_path))
    assert console([archive])[0] == "zipimporter"


def test_an_interpreter_in_which_it_cannot_work_starts_all_the_same(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['trace_cli.compiled'] = None; sys.argv = ['trace', '--version']; "
        "from trace_cli.console import run; sys.exit(run())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("trace ")

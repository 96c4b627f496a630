"""Names that others rely on: error classes and codes, exit codes, and the pages made from them."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from trace_cli import advice, failures
from trace_store import errors

ROOT = Path(__file__).resolve().parents[1]
CODES = ROOT / "tests" / "format" / "error-codes.txt"

TREE = """
TraceError
  NotFoundError
    ObjectNotFoundError
      PurgedError
    RefNotFoundError
    RevisionNotFoundError
    MessageNotFoundError
    RepositoryNotFoundError
  AlreadyExistsError
  InvalidInputError
    AmbiguousRevisionError
    InvalidRefNameError
    InvalidMessageError
    InvalidOperationError
    UnreadableInputError
  StateError
    DetachedHeadError
    UnbornBranchError
    UntrustedRepositoryError
    ClosedError
    RewoundError
    RefLostError
  ConflictError
    SecretFoundError
  ConcurrencyError
    LockedError
    RefChangedError
  FormatError
    CorruptObjectError
    CorruptPackError
    CorruptJournalError
    CorruptIndexError
    CorruptBundleError
    BrokenHistoryError
    UnsupportedFormatError
  StorageError
  RenderError
  BudgetError
  ModelError
    ModelUnreachableError
    ModelRefusedError
    ModelNonsenseError
    ModelCancelledError
  TaskError
    TaskUnreachableError
    TaskRefusedError
    TaskNonsenseError
"""


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "write_reference", ROOT / "tools" / "write_reference.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_files_are_current(writer: ModuleType) -> None:
    """`nox -s reference` updates them."""
    assert [path.name for path in writer.GENERATED if writer.differences(path)] == []


def test_a_stale_page_is_noticed(
    writer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = writer.errors_page().replace("| 130 |", "| 131 |")
    path = tmp_path / "errors.md"
    path.write_text(stale, encoding="utf-8")
    monkeypatch.setattr(writer, "ROOT", tmp_path)
    monkeypatch.setattr(writer, "GENERATED", {path: writer.errors_page})
    assert "-| 131 |" in writer.differences(path)


def test_error_tree_is_as_promised(writer: ModuleType) -> None:
    tree = [f"{'  ' * depth}{error.__name__}" for depth, error in writer.error_classes()]
    assert tree == TREE.strip("\n").splitlines()


def test_error_tree_is_drawn_where_it_stands(writer: ModuleType) -> None:
    drawn = re.findall(r"\b\w+Error\b", (errors.__doc__ or "").partition("Rule:")[0])
    drawn = [name for name in drawn if name not in {"LookupError", "ValueError"}]
    assert sorted(drawn) == sorted(error.__name__ for _, error in writer.error_classes())


def test_error_codes_are_unique_and_none_disappears(writer: ModuleType) -> None:
    codes = writer.error_codes()
    assert len(codes) == len(set(codes))
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in codes)
    assert codes == CODES.read_text(encoding="utf-8").split(), "only ever add lines at the end"


def test_every_group_of_errors_has_its_exit_code(writer: ModuleType) -> None:
    found = {error: writer.exit_code_of(error) for _, error in writer.error_classes()}
    bugs = {error for error, code in found.items() if code == failures.EXIT_BUG}
    assert bugs == {errors.TraceError}
    assert set(advice.HINTS) <= set(writer.error_codes())


def test_errors_travel_between_processes() -> None:
    import pickle

    error = errors.RefChangedError("the ref moved", ref="refs/heads/main", expected=None)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.ref) == (type(error), str(error), "refs/heads/main")


@functools.cache
def finding_codes() -> dict[str, set[str]]:
    """Return the code and severities of every finding that the source makes."""
    found: dict[str, set[str]] = {}
    folders = (ROOT / "trace_store", ROOT / "cli" / "trace_cli")
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "Finding" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding":
                code, severity = node.args[0], ast.unparse(node.args[1]).lower()
                assert isinstance(code, ast.Constant), f"{path}:{node.lineno}"
                found.setdefault(str(code.value), set()).add(severity)
    return found


def test_every_finding_is_explained() -> None:
    text = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| `([a-z-]+)` \| ([a-z, ]+) \|", text)
    made = finding_codes()
    assert sorted(code for code, _ in rows) == sorted(made)
    wrong = {
        code: severities
        for code, severities in rows
        if made[code] <= {"error", "warning", "info"} and set(severities.split(", ")) != made[code]
    }
    assert not wrong


def test_no_code_of_a_finding_disappears() -> None:
    pinned = (ROOT / "tests" / "format" / "finding-codes.txt").read_text(encoding="utf-8").split()
    assert pinned == sorted(finding_codes()), "only ever add lines"

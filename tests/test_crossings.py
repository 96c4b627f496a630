"""The tool that counts calls between modules, and signatures."""

from __future__ import annotations

from pathlib import Path

from tools import crossings
from trace_store.base import check
from trace_store.objects.address import Address


def test_calls_between_modules_and_packages_are_counted() -> None:
    assert crossings.crossings(lambda: None) == (0, 0, 0, 0)
    once = crossings.crossings(lambda: check.text(text="called from here, which is no crossing"))
    assert (once.modules, once.crossings, once.packages) == (1, 0, 0)
    two = crossings.crossings(lambda: Address.parse(f"{'0' * 32}.0"))
    assert two.modules > 1
    assert two.calls > two.crossings > 0


def test_each_operation_is_measured() -> None:
    here = Path.cwd()
    measured = crossings.measured()
    assert Path.cwd() == here
    assert list(measured) == ["commit -q", "trim", "search, warm"]
    for each in measured.values():
        assert each.calls > each.crossings > each.packages > 0
        assert each.modules > 10


def test_public_signatures_and_lines_are_counted(tmp_path: Path) -> None:
    package, command_line = tmp_path / "trace_store" / "refs", tmp_path / "cli" / "trace_cli"
    package.mkdir(parents=True)
    command_line.mkdir(parents=True)
    (command_line / "main.py").write_text("pass\n", "utf-8")
    (package / "head.py").write_text(
        "def move(store, *, author, salt=None): ...\n"
        "def _private(author): ...\n"
        "class Head:\n"
        "    def __init__(self, guard): ...\n"
        "    def read(self): ...\n",
        "utf-8",
    )
    assert crossings.signatures(tmp_path) == (3, {"author": 1, "guard": 1, "salt": 1}, 2)
    assert crossings.sizes(tmp_path) == {"trace_store/refs": (1, 5), "trace_cli/main": (1, 1)}

"""The table of docs/design/growth.md: the cost and the test of each operation."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.growth.support.counting import Cost
from tests.growth.support.stores import AXES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "design" / "growth.md"
SAME = "–"
_ROW = re.compile(r"^\|(.+)\|\s*$", re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")


class Row(NamedTuple):
    """One operation.

    Attributes:
        operations: what it is called, as written in code spans.
        grows: by axis the counts that grow.
        test: the name of the test that shows it.
    """

    operations: tuple[str, ...]
    grows: dict[str, frozenset[str]]
    test: str


@cache
def rows() -> tuple[Row, ...]:
    """Return the rows that name a test."""
    found: list[Row] = []
    for match in _ROW.finditer(PAGE.read_text(encoding="utf-8")):
        cells = [cell.strip() for cell in match[1].split(" | ")]
        if len(cells) != 2 + len(AXES) or not cells[-1].startswith("`test_"):
            continue
        grows = {axis: _counts(cell) for axis, cell in zip(AXES, cells[1:-1], strict=True)}
        found.append(Row(tuple(_CODE.findall(cells[0])), grows, cells[-1].strip("`")))
    return tuple(found)


def _counts(cell: str) -> frozenset[str]:
    if cell == SAME:
        return frozenset()
    counts = frozenset(cell.split(", "))
    assert counts <= set(Cost._fields), f"no counts: {cell}"
    return counts


def row_of(test: str) -> Row:
    """Return the row that names a test."""
    found = [row for row in rows() if row.test == test]
    assert len(found) == 1, f"{test} has {len(found)} rows in {PAGE.name}"
    return found[0]

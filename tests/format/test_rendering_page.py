"""The page on rendering names all repairs and renderers, and its JSON is accepted."""

from __future__ import annotations

import json
import re
from pathlib import Path

from trace_store.providers.lossless import parse
from trace_store.providers.rendering import ADAPTATIONS, FAULTS, RENDERERS, render

PAGE = Path(__file__).resolve().parents[2] / "docs" / "format" / "rendering.md"
TEXT = PAGE.read_text(encoding="utf-8")


def rows(heading: str) -> list[str]:
    """Return the first column of the table below a heading."""
    section = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"(?m)^\| `([^`]+)` \|", section)


def test_every_fault_and_adaptation_has_its_row() -> None:
    assert sorted(rows("Calls and results")) == sorted(FAULTS)
    assert sorted(rows("What is adapted")) == sorted(ADAPTATIONS)


def test_every_renderer_has_its_row_and_version() -> None:
    table = dict(re.findall(r"(?m)^\| `([\w-]+)` \| (\d+) \|", TEXT))
    assert table == {name: str(each.version) for name, each in RENDERERS.items()}


def test_the_lossless_example_is_what_the_code_writes() -> None:
    [block] = re.findall(r"(?ms)^```json\n(.*?)^```$", TEXT)
    document = json.loads(block)
    assert render("json", parse(document)).request == document

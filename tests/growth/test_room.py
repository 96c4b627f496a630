"""The cost of making room in long contexts: the table "Making room" of docs/design/growth.md.

With TRACE_TEST_FULL, at the sizes of the table, and compared with it; otherwise at small sizes. The rows are printed.
"""

from __future__ import annotations

import os
import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.growth.conftest import looked
from tests.growth.support.counting import Cost, cost_of, grown, use_disk
from tests.growth.support.stores import Place, QuickRecordingDisk, Size, build, copy, work

FULL = "TRACE_TEST_FULL" in os.environ
SIZES = (2_000, 10_000, 100_000) if FULL else (1_000, 3_000)
TABLE = Path(__file__).parents[2] / "docs" / "design" / "growth.md"


def removed(place: Place) -> None:
    """Hide a message, as an earlier command would have."""
    place.trace("remove", "HEAD~5.0", "-q")
    looked(place)


COMMANDS = {
    "trim --percent 50 --partial": (
        False,
        r"resulting context .*\n.* tokens: \d+(\.\d)?% of the messages saved",
    ),
    "dedupe": (False, r"files read or written again later .*\n(.*\n)*.* saved"),
    "suggest": (False, r"reason +explanation\n +1 "),
    "compress --to 50% --extractive": (False, r"\d messages → \d+ summar.* \(extractive\): "),
    "checkpoint save here": (True, r"^checkpoint here of [0-9a-f]{12}\n$"),
    "fork idea": (True, r"idea"),
    "remove HEAD~3.0 --ghost": (False, r"^[0-9a-f]{64} remove: "),
    "trash": (False, r"\n1 message, \d+ tokens recoverable"),
    "restore HEAD~6.0": (False, r"^[0-9a-f]{64} restore: "),
}
"""Each command, whether its cost is constant, apart from the seal's look at one pack, and what it says."""


@pytest.fixture(scope="session")
def long_contexts(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Return a repository of each size."""
    base = tmp_path_factory.mktemp("room")
    for size in SIZES:
        build(base / str(size), Size(history=0, messages=size, branches=2), work)
    return {size: base / str(size) for size in SIZES}


@pytest.mark.timeout(1_200 if FULL else 120)
@pytest.mark.parametrize("command", COMMANDS)
def test_cost_of_making_room(
    command: str, long_contexts: dict[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = QuickRecordingDisk()
    is_constant, right = COMMANDS[command]

    def cost(size: int, run: int) -> Cost:
        use_disk(monkeypatch, disk)
        place = Place(tmp_path / f"{size}-{run}", disk)
        copy(long_contexts[size], place.folder)
        removed(place)
        said: list[str] = []
        found = cost_of(lambda: said.append(place.trace(*command.split())), disk)
        assert re.search(right, said[0]), said[0]
        return found

    cost(SIZES[0], 0)  # what the process does only once
    costs = [cost(size, 1) for size in SIZES]
    print(f"\n| `trace {command}` | {' | '.join(map(cell, costs))} |")
    for (size, small), (more, large) in pairwise(zip(SIZES, costs, strict=True)):
        above = grown(small, large, 1 if is_constant else more / size)
        if is_constant:
            above -= {
                "steps"
            }  # the seal afterwards looks at the frames of one pack, of 32 MiB at most
        assert not above, f"{sorted(above)} grow: {small} → {large}"
    if FULL:
        [row] = [
            line for line in TABLE.read_text().splitlines() if f"| `trace {command}` |" in line
        ]
        told = [numbers(each) for each in row.split("|")[2:-1]]
        assert all(map(is_near, told, (numbers(cell(cost)) for cost in costs))), row


def cell(cost: Cost) -> str:
    """Return the counts of a cell of the table."""
    read, written = (rounded(count / 1024) for count in (cost.read, cost.written))
    return f"{read} / {written} KiB, {rounded(cost.objects)}"


def numbers(text: str) -> list[int]:
    """Return the numbers in a cell."""
    return [int(each.replace(",", "")) for each in re.findall(r"\d[\d,]*\d|\d", text)]


def is_near(one: list[int], other: list[int]) -> bool:
    """Return True if the numbers are the same, but for what rounding and small changes make of them."""
    return all(abs(a - b) <= 4 + max(a, b) / 4 for a, b in zip(one, other, strict=True))


def rounded(count: float) -> str:
    """Return a count with one significant digit, or two below 3."""
    digits = 1 if f"{count:e}"[0] > "2" else 2
    return f"{int(float(f'{count:.{digits - 1}e}')):,}"

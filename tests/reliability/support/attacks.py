"""The table of docs/design/security-tests.md: attacks tried in each class, and results.

python -m tests.reliability.support.attacks
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]
CLASSES = {
    "test_attack_names.py": "names and paths",
    "test_attack_links.py": "links and special files",
    "test_attack_settings.py": "settings and files that would run",
    "test_attack_decoding.py": "decoding bombs and lies",
    "test_attack_terminal.py": "terminal control sequences",
    "test_attack_ownership.py": "ownership and trust",
    "test_attack_length.py": "long texts",
    "test_hostile_packs.py": "packs, beyond those",
    "test_hostile_bundles.py": "bundles, beyond those",
    "test_bad_input.py": "bad input to commands",
}
ELSEWHERE = (
    "tests/store/test_hostile_packs.py",
    "tests/bundles/test_hostile_bundles.py",
    "tests/cli/test_bad_input.py",
)


class Counting:
    """Counts the outcomes of the tests of each file."""

    def __init__(self) -> None:
        self.found: dict[str, Counter[str]] = {name: Counter() for name in CLASSES}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a result."""
        counts = self.found.get(Path(report.nodeid.split("::")[0]).name)
        if counts is not None and (report.when == "call" or not report.passed):
            counts[report.outcome] += 1


def main() -> int:
    """Run all and print the table."""
    counting = Counting()
    root = FOLDER.parents[1]
    paths = [*sorted(FOLDER.glob("test_attack_*.py")), *(root / each for each in ELSEWHERE)]
    code = pytest.main(["-q", "-p", "no:cacheprovider", *map(str, paths)], plugins=[counting])
    print(
        "\n| class | inputs | as documented | otherwise | not possible here |\n|---|---|---|---|---|"
    )
    for name, what in CLASSES.items():
        counts = counting.found[name]
        row = (sum(counts.values()), counts["passed"], counts["failed"], counts["skipped"])
        print(f"| {what} | {' | '.join(map(str, row))} |")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())

"""Trace as this environment has it, for benchmarks that would install it into one of its own."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.installation import Installation

ROOT = Path(__file__).resolve().parents[2]


class InstalledHere(Installation):
    """This environment in place of one of its own, which takes a package index."""

    def __init__(self, folder: Path) -> None:
        self.python = sys.executable
        self.trace = str(folder / "trace")
        self.environment = {"HOME": str(folder)}
        script = (
            f"#!{sys.executable}\nimport sys\nsys.path[:0] = {[str(ROOT), str(ROOT / 'cli')]!r}\n"
        )
        script += "from trace_cli.main import main\nsys.exit(main())\n"
        Path(self.trace).write_text(script, "utf-8")
        Path(self.trace).chmod(0o755)

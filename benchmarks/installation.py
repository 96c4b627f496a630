"""Trace installed as a user has it: by pip into an environment of its own, with its modules compiled.

Rule: made once for a state of the source; what is measured never sees this source tree.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.model import Unavailable

ROOT = Path(__file__).resolve().parents[1]
INSTALLED = ("trace_store", "cli", "pyproject.toml")
LOWEST_PIP = "25.0"
"""Earlier ones write console scripts that import `re`, which costs half a start of the interpreter."""


class Installation:
    """An environment that has Trace.

    Attributes:
        python: its interpreter.
        trace: its console script.
        environment: the variables that its processes are given.
    """

    def __init__(self, folder: Path) -> None:
        programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
        self.python = str(programs / "python")
        self.trace = str(programs / "trace")
        self.environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder)}


def installation(work: Path) -> Installation:
    """Return an environment in the work folder with Trace installed from its source.

    Raises:
        Unavailable: pip is not here, or could not install it.
    """
    folder = work.absolute() / f"installed-{_source()}"
    if not folder.exists():
        part = folder.with_name(f"{folder.name}.{os.getpid()}.part")
        try:
            # Its place is in its console script, so it is made where it stays.
            venv.create(folder, with_pip=True)
            _install(folder, "--upgrade", f"pip>={LOWEST_PIP}")
            _install(folder, str(ROOT))
        except Unavailable:
            if folder.exists():
                folder.rename(part)
                shutil.rmtree(part, ignore_errors=True)
            raise
    return Installation(folder)


def _install(folder: Path, *what: str) -> None:
    command = [Installation(folder).python, "-m", "pip", "install", "--quiet", "--no-input", *what]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=clean)
    if run.returncode:
        last = run.stderr.strip().splitlines()[-1:] or ["no word"]
        raise Unavailable(f"pip failed: {last[0][:200]}")


def _source() -> str:
    """Return a short hash of all that is installed."""
    told = hashlib.sha256()
    for name in INSTALLED:
        path = ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                told.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return told.hexdigest()[:10]

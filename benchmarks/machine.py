"""What a figure depends on besides the code: machine, load, versions, command, date."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import trace_store
from benchmarks.model import Unavailable
from benchmarks.peers import load

ROOT = Path(__file__).resolve().parents[1]


def machine(work: Path) -> dict[str, Any]:
    """Describe the machine and the file system of the work folder."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "file_system": _file_system(work),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def load_average() -> float:
    """Return how many processes wanted a core during the last minute."""
    return round(os.getloadavg()[0], 2)


def versions(peer: str) -> dict[str, str]:
    """Return the versions of a peer's components."""
    if peer.startswith("trace"):
        return {"trace-store": trace_store.__version__, "commit": _commit()}
    try:
        packages = load(peer).packages
    except Unavailable:
        return {}
    return {name: _version(name) for name in packages}


def now() -> str:
    """Return the time in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _version(name: str) -> str:
    if name == "sqlite":
        import sqlite3

        return sqlite3.sqlite_version
    if name == "git":
        run = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False)
        return run.stdout.split()[-1] if run.stdout else ""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _commit() -> str:
    """Return the commit of this source tree, with a plus when files differ from it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.stdout.strip()


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _file_system(folder: Path) -> str:
    """Return the type of the file system that a folder is on, where the system tells."""
    if sys.platform != "linux":
        return ""
    best = ("", "")
    real = str(folder.resolve())
    for line in Path("/proc/mounts").read_text("utf-8").splitlines():
        _, point, kind, *_ = line.split()
        if (real + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1]

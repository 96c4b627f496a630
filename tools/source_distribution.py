"""Source distributions of packages, whose own tests the recipes run over Trace's stores."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path


def unpack(folder: Path, package: str, version: str) -> Path:
    """Return the folder of a source distribution, which pip downloads if it is not there."""
    name = f"{package.replace('-', '_')}-{version}"
    if not (folder / name).is_dir():
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", f"--no-binary={package}"]
        subprocess.run([*pip, "--dest", str(folder), f"{package}=={version}"], check=True)
        with tarfile.open(folder / f"{name}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return folder / name

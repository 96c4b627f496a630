"""A file system in an image, whose power can be cut: the image is cloned while it is written to.

The images lie on an XFS of their own, because cloning a file there is atomic: no write of the file system in the image
falls between two parts of the clone. So a clone holds what had reached the device at one moment, as a disk does after a
power cut, also in the middle of what the file system writes; what only its memory held is not there.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ENTER = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
"""What gives a command mounts and processes of its own, which end with it, however it ends."""
OUTER_BYTES = 4 << 30
IMAGE_BYTES = 320 << 20
"""Apparent size of the sparse images. XFS requires 300 MiB."""
_CLONE = 0x40049409  # FICLONE


class Kind(NamedTuple):
    """A file system, and how it is mounted."""

    tool: str
    options: str = "loop"


KINDS = {
    "ext4": Kind("mkfs.ext4"),
    "ext4-noauto_da_alloc": Kind("mkfs.ext4", "loop,noauto_da_alloc"),
    "xfs": Kind("mkfs.xfs"),
    "btrfs": Kind("mkfs.btrfs"),
}


def missing(kind: str) -> str:
    """Return why the power of such a file system cannot be cut here; empty when it can."""
    if sys.platform != "linux":
        return "images are mounted on Linux alone"
    if os.geteuid():
        return "only root mounts images"
    for tool in ("mkfs.xfs", KINDS[kind].tool, "losetup", "mount", "umount", "unshare"):
        if shutil.which(tool, path=_path()) is None:
            return f"{tool} is not installed"
    for words in (["losetup", "--find"], [*ENTER, "true"]):
        if (said := _run(words, check=False)).returncode:
            return f"`{' '.join(words)}` does not work here: {said.stderr.strip()}"
    return ""


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def _run(words: list[str], *, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, check=check, capture_output=True, text=True, env={**os.environ, "PATH": _path()}
    )


class Machine:
    """One computer: a disk with a file system of this kind, mounted at `root`. Made within ENTER only."""

    def __init__(self, kind: str, folder: str) -> None:
        self.kind = KINDS[kind]
        self.folder = Path(tempfile.mkdtemp(prefix="trace-power-", dir=folder))
        self.outer = self.folder / "outer"
        self.root = self.folder / "disk"
        self.outer.mkdir()
        self.root.mkdir()
        self.number = 0
        self.mounted = False
        whole = self.folder / "outer.img"
        with whole.open("wb") as file:
            file.truncate(OUTER_BYTES)
        _run(["mkfs.xfs", "-q", str(whole)])
        _run(["mount", "-o", "loop", str(whole), str(self.outer)])
        whole.unlink()  # nothing of it is left, however this process ends

    @property
    def image(self) -> Path:
        return self.outer / f"{self.number}.img"

    def install(self) -> None:
        """Put in a new disk, with nothing on it."""
        self.stop()
        self.image.unlink(missing_ok=True)
        self.number += 1
        with self.image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        _run([self.kind.tool, "-q", str(self.image)])
        self.start()

    def cut(self) -> None:
        """Snapshot the disk; everything continues until `restart`."""
        with (
            self.image.open("rb") as now,
            (self.outer / f"{self.number + 1}.img").open("wb") as kept,
        ):
            fcntl.ioctl(kept, _CLONE, now.fileno())

    def restart(self) -> None:
        """Continue with the snapshot; all processes on the disk must have ended.

        Raises:
            subprocess.CalledProcessError: it cannot be mounted.
        """
        self.stop()
        self.image.unlink()
        self.number += 1
        self.start()

    def start(self) -> None:
        _run(["mount", "-o", self.kind.options, str(self.image), str(self.root)])
        self.mounted = True

    def stop(self) -> None:
        if self.mounted:
            _run(["umount", str(self.root)])
            self.mounted = False

    def remove(self) -> None:
        """Leave nothing behind."""
        self.stop()
        _run(["umount", str(self.outer)])
        shutil.rmtree(self.folder)

"""What an operation costs, in things that can be counted."""

from __future__ import annotations

import cProfile
import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple

import pytest

from trace_store.disk.files import Disk
from trace_store.testing.disks import RecordingDisk


class Cost(NamedTuple):
    """Counts of one run; none of them depends on the machine.

    Attributes:
        read: bytes read.
        written: bytes written.
        files: paths looked up or changed, and names listed.
        objects: hashes made and objects decoded.
        steps: calls of functions.
    """

    read: int
    written: int
    files: int
    objects: int
    steps: int


SLACK = Cost(read=64 * 1024, written=1024, files=12, objects=12, steps=600)
"""What a constant cost may differ by: one frame of a pack that is fuller, one more look at a table that is halved."""
TOLERANCE = 1.05


def cost_of(run: Callable[[], object], disk: RecordingDisk) -> Cost:
    """Return the cost of a call."""
    disk.reset()
    profile = cProfile.Profile()
    profile.enable()
    try:
        run()
    finally:
        profile.disable()
    steps = objects = 0
    for entry in profile.getstats():
        steps += entry.callcount
        name = entry.code if isinstance(entry.code, str) else entry.code.co_qualname
        if "'digest' of 'blake3" in name or name == "decode":
            objects += entry.callcount
    return Cost(disk.read_bytes, disk.written_bytes, disk.touched, objects, steps)


def calls_of(run: Callable[[], object]) -> Counter[str]:
    """Count the calls of each Python function of Trace, by qualified name."""
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and (
            "trace_store" in code.co_filename or "trace_cli" in code.co_filename
        ):
            calls[code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return calls


def grown(small: Cost, large: Cost, factor: float = 1.0) -> set[str]:
    """Return the names of the counts that are more than `factor` times as large."""
    return {
        name
        for name, a, b, slack in zip(Cost._fields, small, large, SLACK, strict=True)
        if b > a * factor * TOLERANCE + slack
    }


def use_disk(monkeypatch: pytest.MonkeyPatch, disk: RecordingDisk) -> None:
    """Let whatever makes a disk of its own take this one."""
    for name, module in list(sys.modules.items()):
        ours = name.startswith(("trace_store.", "trace_cli.")) and name != "trace_store.disk.files"
        if ours and getattr(module, "Disk", None) is Disk:
            monkeypatch.setattr(module, "Disk", lambda: disk)

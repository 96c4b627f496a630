"""The lock of long work, for a disk in memory: filelock knows the real one only."""

from __future__ import annotations

import filelock
import pytest


class Free:
    """A lock that nobody else wants, and that goes with its process."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def acquire(self, **_: object) -> None:
        """Take it."""

    def release(self) -> None:
        """Let go of it."""


@pytest.fixture(scope="module", autouse=True)
def no_lock_on_the_real_disk() -> object:
    """Keep what is done on a disk in memory off the real one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filelock, "FileLock", Free)
        yield

"""The lock of long work, for a disk in memory: filelock knows the real one only."""

from __future__ import annotations

import filelock
import pytest


class Free:
    """An uncontended lock that ends with its process."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def acquire(self, **_: object) -> None:
        """Take it."""

    def release(self) -> None:
        """Let go of it."""


@pytest.fixture(scope="module", autouse=True)
def no_lock_on_the_real_disk() -> object:
    """Keep operations on an in-memory disk off the real one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filelock, "FileLock", Free)
        yield

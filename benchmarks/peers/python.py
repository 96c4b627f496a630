"""The interpreter itself, and what comes with it."""

from __future__ import annotations


class Python:
    """Keeps nothing; the standard library is what others are measured against."""

    store = "python"
    packages: tuple[str, ...] = ()

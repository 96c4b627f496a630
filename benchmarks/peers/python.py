"""The interpreter and its standard library."""

from __future__ import annotations


class Python:
    """Stores nothing; the standard library as a baseline."""

    store = "python"
    packages: tuple[str, ...] = ()

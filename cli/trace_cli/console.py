"""The console script: a process of its own that starts quickly, runs one command, and ends at once."""

from __future__ import annotations

import gc
import os
import sys

try:
    from trace_cli.compiled import install
except ImportError:

    def install() -> None:
        """Do nothing: an interpreter without what the loader builds on loads modules in its own way."""


COLLECT_AFTER = 50_000
"""How many objects are made, beyond those freed, before the first search for cycles; few commands make so many."""


def run() -> int:
    """Run one command, and end the process instead of letting it take itself apart.

    Everything is written and closed by then; freeing each object of a process that ends takes a tenth of its time, and
    so does looking for cycles among what is being imported.
    """
    gc.set_threshold(COLLECT_AFTER)
    install()
    __import__("trace_cli.main")  # not before: it is loaded quickly, too
    code: int = sys.modules["trace_cli.main"].main()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return code  # the interpreter tells of it in its own way
    os._exit(code)

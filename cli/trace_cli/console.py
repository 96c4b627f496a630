"""The console script: run one command and end the process at once."""

from __future__ import annotations

import gc
import os
import sys

from trace_cli.main import main

COLLECT_AFTER = 50_000
"""Objects made before the first garbage collection; few commands make as many."""


def run() -> int:
    """Run one command and exit without freeing memory.

    Everything is written and closed by then. Freeing each object would take a tenth of the run.
    """
    gc.set_threshold(COLLECT_AFTER)
    code = main()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return code  # the interpreter reports the closed stream
    os._exit(code)

"""Live runs: what an agent does, step by step, while it does it.

A run is the history of a ref under `refs/runs/`. A step is a message: its start is one commit that adds it, its end one
that edits it, so a crash loses nothing that began. Only progress passes without being stored.
"""

from trace_store.base.lazy_import import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.runs import run as run
    from trace_store.runs import runs as runs
    from trace_store.runs import steps as steps
    from trace_store.runs.decorator import traced as traced
    from trace_store.runs.run import Emitter as Emitter
    from trace_store.runs.run import NullRun as NullRun
    from trace_store.runs.run import Run as Run
    from trace_store.runs.run import RunStep as RunStep
    from trace_store.runs.run import StepEmitter as StepEmitter
    from trace_store.runs.runs import Runs as Runs

_HOMES = {
    "Emitter": "run",
    "NullRun": "run",
    "Run": "run",
    "RunStep": "run",
    "Runs": "runs",
    "StepEmitter": "run",
    "traced": "decorator",
}

__all__ = [*_HOMES]
__getattr__ = names(__name__, _HOMES)

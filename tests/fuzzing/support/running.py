"""Running a target under the fuzzer, in a process of its own.

The library is imported here, while the fuzzer instruments what is imported.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.fuzzing.support.mutation import change_json
from tests.fuzzing.support.targets import MEGABYTES, SECONDS_AN_INPUT, TARGETS, Target

LIBRARY = Path(__file__).parents[3] / "trace_store"
CORPUS = Path(__file__).parents[1] / "corpus"


SEED = 1
"""The seed of the fuzzer if its inputs must be the same every time; 0 would choose a random one."""


def fuzz(name: str, seconds: int, work: Path, runs: int | None = None) -> None:
    """Fuzz a target for so many seconds; ends the process, with 0 when nothing was found.

    Args:
        name: the target.
        seconds: how long; the fuzzer stops at the first finding.
        work: a folder for new inputs, and for the one that failed.
        runs: stop after so many inputs, which are the same every time; None takes random ones until the time is up.
    """
    import atheris

    target = TARGETS[name]
    with atheris.instrument_imports(["trace_store"], exclude=_unwatched(target)):
        check = target.check()
    found = work / "new"
    found.mkdir(parents=True, exist_ok=True)
    stored = CORPUS / name
    options = [
        *(f"-max_total_time={seconds}", f"-timeout={SECONDS_AN_INPUT}"),
        *(f"-rss_limit_mb={MEGABYTES}", f"-max_len={target.longest}", "-print_final_stats=1"),
        *(() if runs is None else (f"-runs={runs}", f"-seed={SEED}")),
        *(f"-artifact_prefix={work}/", str(found)),
        *([str(stored)] if stored.is_dir() else []),
    ]

    def mutate(data: bytes, limit: int, seed: int) -> bytes:
        return change_json(data, limit, seed, atheris.Mutate)

    own = {"custom_mutator": mutate} if target.json else {}
    atheris.Setup([sys.argv[0], *options], check, **own)
    atheris.Fuzz()


def _unwatched(target: Target) -> list[str]:
    """Return the modules whose coverage tells nothing of a target: to instrument them all takes ten seconds."""
    found = []
    for path in LIBRARY.rglob("*.py"):
        parts = path.relative_to(LIBRARY).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if not any(f"{name}.".startswith(f"{watched}.") for watched in target.watched):
            found.append(f"trace_store.{name}" if name else "trace_store")
    return found

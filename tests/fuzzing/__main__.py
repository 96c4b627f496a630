"""Coverage-guided fuzzing: `python -m tests.fuzzing [TARGET…] [--seconds N]`, or `nox -s fuzz`.

    python -m tests.fuzzing --list                        the targets
    python -m tests.fuzzing decoder --seconds 900         one of them for a quarter of an hour
    python -m tests.fuzzing 'import-*' --seconds 10       some of them, two at a time
    python -m tests.fuzzing --seconds 10 --report r.jsonl all of them
    python -m tests.fuzzing --runs 300                    the same 300 inputs for each target, every time

Prints a line for each: seconds, executions, coverage (edges), features, and what was found. A finding is kept in the
work folder, and `python -m tests.fuzzing TARGET --input FILE` shows it again; once it is mended, its input goes to
`corpus/TARGET/`, which every run of the test suite goes through.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.fuzzing.support.running import CORPUS, fuzz
from tests.fuzzing.support.targets import TARGETS

GRACE_SECONDS = 60
"""For loading and instrumenting, and for the last input."""
_STATE = re.compile(rb"#(\d+)\s+\S+\s+cov: (\d+) ft: (\d+)")
_STEPS = re.compile(rb"^(#\d+\t|INFO:|WARNING:|stat::).*\n", re.MULTILINE)
_EXECUTED = re.compile(rb"stat::number_of_executed_units:\s*(\d+)")


def main() -> int:
    """Run the requested targets and return the exit status."""
    options = _options()
    if options.child:
        fuzz(options.targets[0], options.seconds, Path(options.work), options.runs)
        return 0
    if options.list:
        print("\n".join(TARGETS))
        return 0
    if options.seeds:
        from tests.fuzzing.support.seeds import write  # imports tests of every format

        write(CORPUS)
        return 0
    named = {word: fnmatch.filter(TARGETS, word) for word in options.targets}
    unknown = [word for word, names in named.items() if not names]
    if unknown:
        print(f"no such target: {', '.join(unknown)}", file=sys.stderr)
        return 2
    if options.input:
        TARGETS[options.targets[0]].check()(Path(options.input).read_bytes())
        print("nothing found")
        return 0
    if importlib.util.find_spec("atheris") is None:
        print("fuzzing is skipped: atheris has no wheel for this Python and system")
        return 0
    names = dict.fromkeys(name for names in named.values() for name in names)
    return _run_all(list(names or TARGETS), options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument(
        "--runs", type=int, help="stop after so many inputs, which are the same every time"
    )
    parser.add_argument("--jobs", type=int, default=2, help="how many run at a time")
    parser.add_argument("--report", help="a file that gets a line of JSON for each target")
    parser.add_argument("--work", help="where findings and new inputs are kept")
    parser.add_argument("--input", help="run a target once, with this file")
    parser.add_argument("--seeds", action="store_true", help="write the corpus's beginnings anew")
    parser.add_argument("--list", action="store_true", help="name the targets")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _run_all(names: list[str], options: argparse.Namespace) -> int:
    work = Path(options.work or tempfile.mkdtemp(prefix="trace-fuzz-"))
    print(f"{'target':28} {'seconds':>7} {'executions':>11} {'edges':>6} {'features':>8}  found")

    def run(name: str) -> dict[str, Any]:
        return _run(name, options.seconds, work / name, options.runs)

    found = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(run, names):
            found += bool(result["found"])
            print(
                f"{result['target']:28} {result['seconds']:7.0f} {result['executions']:11,}"
                f" {result['edges']:6,} {result['features']:8,}  {result['found'] or 'nothing'}",
                flush=True,
            )
            if options.report:
                with open(options.report, "a", encoding="utf-8") as file:
                    file.write(json.dumps(result) + "\n")
            if result["found"]:
                print(result["said"], file=sys.stderr)
    return 1 if found else 0


def _run(name: str, seconds: int, work: Path, runs: int | None) -> dict[str, Any]:
    work.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.fuzzing", name, "--child", "--work", str(work)]
    environment = dict(os.environ)
    if runs is not None:
        command += ["--runs", str(runs)]
        environment["PYTHONHASHSEED"] = "0"  # the order of a set decides which inputs are kept
    started = time.monotonic()
    try:
        done = subprocess.run(
            [*command, "--seconds", str(seconds)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            timeout=seconds + GRACE_SECONDS,
            check=False,
        )
        said, code = done.stdout, done.returncode
    except subprocess.TimeoutExpired as error:
        said, code = error.stdout or b"", -1
    states = _STATE.findall(said)
    executed = _EXECUTED.search(said)
    kept = sorted(path.name for path in work.iterdir() if path.is_file())
    return {
        "target": name,
        "seconds": round(time.monotonic() - started, 1),
        "executions": int(executed[1] if executed else states[-1][0] if states else 0),
        "edges": int(states[-1][1]) if states else 0,
        "features": int(states[-1][2]) if states else 0,
        "found": "" if code == 0 else ", ".join(kept) or f"exit status {code}",
        "said": "" if code == 0 else _STEPS.sub(b"", said)[-6000:].decode("utf-8", "replace"),
    }


if __name__ == "__main__":
    sys.exit(main())

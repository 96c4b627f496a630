"""The everyday commands, whose start-up time is limited, and the modules that they load.

`docs/design/009-start-up.md` says why. The start-up rules of CONTRIBUTING.md hold for these modules; all others import
what they need at the top.

    python -m tests.support.everyday FOLDER    run all in an empty folder, and print the modules of Trace that they load
"""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LEAN_PLUMBING = [
    ["--version"],
    ["rev-parse", "HEAD"],
    ["rev-parse", "{packed}"],
    *(["cat-file", "-t", f"{{{where}}}"] for where in ("packed", "loose", "journal")),
    *(["cat-file", "--raw", f"{{{where}}}"] for where in ("packed", "loose", "journal")),
    ["cat-file", "-s", "HEAD"],
    ["cat-file", "-p", "HEAD"],
    ["hash-object", "file"],
    ["hash-object", "-w", "file"],
    ["symbolic-ref", "HEAD"],
    ["count-objects", "-v"],
]
"""Plumbing that does without small standard modules, too; a word in braces is where its object is."""
PLUMBING = [
    ["rev-list", "HEAD"],
    ["for-each-ref"],
    ["update-ref", "refs/heads/other", "HEAD"],
    ["ls-context"],
    ["cat-context"],
    ["ls-objects"],
    ["ls-objects", "--all", "--kind", "commit"],
    ["verify-pack", "-v"],
]
RARE_PLUMBING = [
    ["merge-base", "HEAD", "other"],
    ["ls-parts"],
    ["compile-index", "main"],
    ["emit", "tick"],
    ["follow", "-n", "1", "--since", "1 hour ago"],
    ["write-commit"],
    ["pack-objects", "out"],
    ["show-index", "{index}"],
    ["index-pack", "{pack}"],
    ["unpack-objects"],
]
"""Plumbing that reads or writes packs, JSON or events."""
PORCELAIN = [
    ["log"],
    ["log", "-n", "1"],
    ["status"],
    ["commit", "--no-seal", "--user", "more"],
    ["commit", "-q"],
    ["commit", "--user", "sealed"],
    ["seal"],
    ["config"],
    ["config", "budget"],
    ["version"],
    ["show"],
    ["compile"],
    ["branch"],
    ["branch", "-v"],
    ["switch", "-c", "idea"],
]
WITH_JSON = [
    ["show", "--json"],
    ["log", "--json"],
    ["status", "--json"],
    ["compile", "-f", "openai"],
]
"""What programs read; it loads `json`, and some modules that `json` imports."""
AT_EACH_STEP = [
    ["trajectory", "start", "a task"],
    ["trajectory", "decision", "SQLite", "--question", "Which database?"],
    ["trajectory", "finding", "one process writes"],
    ["trajectory", "list"],
    ["trajectory", "status"],
    ["trajectory", "complete", "done"],
    ["branch", "-q", "again"],
    ["edit", "-q", "HEAD.0", "other words"],
    ["tag", "v1"],
    ["checkpoint", "save", "here"],
    ["switch", "-q", "again"],
    ["commit", "-q", "--user", "meanwhile"],
    ["merge", "-q", "idea"],
    ["undo"],
    ["redo"],
    ["remove", "-q", "main~1.0"],
    ["trash"],
    ["diff"],
    ["trim", "--percent", "99", "--partial"],
    ["sessions"],
    ["hook", "claude-code"],
]
"""What agents and hooks run at every step. Their modules load late what not every verb needs, but may load `json`."""
LIBRARY = "append"
"""The verb of `Line` that an agent calls for every message."""


def everyday_modules() -> dict[str, bool]:
    """Return the modules of Trace that everyday commands load, and whether only those in `WITH_JSON` do."""
    return {name: mark == "json" for name, mark in loaded_modules().items() if mark != "steps"}


@functools.cache
def loaded_modules() -> dict[str, str]:
    """Return the modules of Trace that the commands here load.

    The mark of a module is "json" if only those in `WITH_JSON` load it, "steps" if only those in `AT_EACH_STEP` do.
    """
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [sys.executable, "-m", __name__, folder],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env={"PYTHONPATH": f"{ROOT}:{ROOT / 'cli'}", "HOME": folder, "TRACE_AUTHOR": "Ada"},
        )
    assert run.returncode == 0, run.stderr
    rows = (line.split() for line in run.stdout.splitlines())
    return {name: "".join(mark) for name, *mark in rows}


def _run_all(folder: Path) -> Callable[[list[str]], bytes]:
    """Run every command without JSON in this process; return a function that runs one more."""
    import io
    import os

    from trace_cli.main import main
    from trace_cli.runtime import Invocation

    os.chdir(folder)
    Path("file").write_bytes(b"content")

    def run(words: list[str], stdin: bytes = b"from a hook") -> bytes:
        output, error = io.BytesIO(), io.BytesIO()
        invocation = Invocation(output=output, error=error, input=io.BytesIO(stdin), terminal=False)
        if main(words, invocation):
            raise SystemExit(f"trace {' '.join(words)}: {error.getvalue().decode()}")
        return output.getvalue()

    run(["init"])
    run(["commit", "--user", "hello"])
    places = {"packed": run(["rev-parse", "HEAD"]).decode().strip()}
    places["loose"] = run(["hash-object", "-w", "file"]).decode().strip()
    run(["commit", "--no-seal", "--user", "not sealed yet"])
    places["journal"] = run(["rev-parse", "HEAD"]).decode().strip()
    for words in (*LEAN_PLUMBING, *PLUMBING, *PORCELAIN):
        run([word.format(**places) for word in words])
    ids = f"{places['packed']}\n".encode()
    for words in RARE_PLUMBING:
        stdin = {
            "write-commit": b'{"ops": []}',
            "pack-objects": ids,
            "unpack-objects": b"".join(path.read_bytes() for path in Path().glob("out-*.pack")),
        }.get(words[0], b"")
        if "{" in words[-1]:
            suffix = words[-1].strip("{}").replace("index", "idx")
            words = [words[0], *map(str, Path().glob(f"out-*.{suffix}"))]
        run(words, stdin)
    import trace_store

    with trace_store.Repo.open(".") as repo:
        getattr(repo, LIBRARY)("user", "from an agent")
    return run


def _loaded() -> set[str]:
    return {name for name in sys.modules if name.split(".")[0] in ("trace_store", "trace_cli")}


def main() -> None:
    """Print the modules, one a line, with the mark of each that not every command loads."""
    run = _run_all(Path(sys.argv[1]))
    marks = dict.fromkeys(_loaded(), "")
    for mark, commands in (("json", WITH_JSON), ("steps", AT_EACH_STEP)):
        for words in commands:
            run(words)
        marks = {**dict.fromkeys(_loaded(), mark), **marks}
    print("\n".join(f"{name} {marks[name]}".strip() for name in sorted(marks)))


if __name__ == "__main__":
    main()

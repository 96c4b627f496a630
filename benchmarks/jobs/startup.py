"""Whole processes of the command line, from start to end, beside an interpreter that does nothing."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.ground import Ground
from benchmarks.installation import Installation, installation
from benchmarks.job import Contestant, Job, Row, Sampler
from benchmarks.model import IDS, Unavailable, Work
from benchmarks.samplers import Single

BARE = "python -c pass"
BLOB, TIP, FILE = "{blob}", "{tip}", "{file}"
MESSAGE = b"The tests pass now."
PER_SECOND = 20_000
ENOUGH = f"{PER_SECOND:,} objects a second"

# The ratio to a bare interpreter that a class of commands may have, and the commands of it.
BARELY, PLUMBING, EVERYDAY, SEALING, TYPER, HELP = 1.3, 1.8, 3, 4, 7, 12
COMMANDS: tuple[tuple[float, tuple[str, ...]], ...] = (
    (BARELY, ("--version",)),
    (BARELY, ("rev-parse", TIP)),
    (BARELY, ("cat-file", "--raw", BLOB)),
    (PLUMBING, ("rev-parse", "HEAD")),
    (PLUMBING, ("cat-file", "-t", "HEAD")),
    (PLUMBING, ("cat-file", "-s", BLOB)),
    (PLUMBING, ("cat-file", "-p", BLOB)),
    (PLUMBING, ("cat-file", "-p", "HEAD")),
    (PLUMBING, ("rev-list", "-n", "20", "HEAD")),
    (PLUMBING, ("for-each-ref",)),
    (PLUMBING, ("symbolic-ref", "HEAD")),
    (PLUMBING, ("hash-object", FILE)),
    (PLUMBING, ("hash-object", "-w", FILE)),
    (PLUMBING, ("update-ref", "refs/heads/other", "HEAD")),
    (PLUMBING, ("count-objects",)),
    (PLUMBING, ("ls-objects",)),
    (PLUMBING, ("ls-context",)),
    (PLUMBING, ("ls-parts",)),
    (EVERYDAY, ("log", "-n", "20")),
    (EVERYDAY, ("status",)),
    (EVERYDAY, ("commit", "--no-seal")),
    (SEALING, ("commit",)),
    (TYPER, ("show", "HEAD")),
    (TYPER, ("compile",)),
    (TYPER, ("config",)),
    (TYPER, ("du",)),
    (TYPER, ("fsck",)),
    (HELP, ("--help",)),
)

# Commands that read many objects, and their input line for one.
MANY: tuple[tuple[tuple[str, ...], str], ...] = (
    (("cat-file", "--batch"), BLOB),
    (("cat-file", "--batch-check"), BLOB),
    (("hash-object", "--stdin-paths"), ".trace/config"),
    (("update-ref", "--stdin"), "update refs/heads/of-{number} {tip}"),
)


class _Process:
    """Times processes, one a sample, from before they start to after they end.

    Attributes:
        per: the value of a sample is for one of so many.
    """

    def __init__(
        self,
        ground: Ground,
        command: Sequence[str],
        here: Installation,
        *,
        peer: str = "",
        given: bytes = b"",
        per: int = 1,
    ) -> None:
        self._folder = ground.copy(peer).folder if peer else ground.scratch() / "empty"
        self._folder.mkdir(exist_ok=True)
        self.reached = ground.size
        self.note = ""
        self.work: Work | None = None
        self._ground = ground
        self._given = self._folder.parent / "given"
        self._given.write_bytes(given)
        self._here = here
        self._command = command
        self._per = per
        self.sample()  # brings the files of the program into memory

    def sample(self) -> float:
        with self._given.open("rb") as given:
            began = time.perf_counter()
            run = subprocess.run(
                self._command,
                stdin=given,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=self._folder,
                env=self._here.environment,
                check=False,
            )
            seconds = time.perf_counter() - began
        if run.returncode:
            last = run.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no word"]
            raise Unavailable(f"exit code {run.returncode}: {last[0][:200]}")
        return seconds / self._per

    def close(self) -> None:
        self._ground.discard(self._folder)


def bare() -> Contestant:
    """Return the interpreter that does nothing."""

    def start(ground: Ground, peer: str) -> Sampler:
        here = installation(ground.work)
        return _Process(ground, (here.python, "-c", "pass"), here)

    return Contestant(BARE, "python", start)


def command(words: tuple[str, ...], peer: str) -> Contestant:
    """Return a contestant that runs a command in a copy of a store, with a message on standard input."""

    def start(ground: Ground, peer: str) -> Sampler:
        here = installation(ground.work)
        names = _names(ground.store(peer).folder, here)
        told = [word.format(**names) for word in words]
        return _Process(ground, (here.trace, *told), here, peer=peer, given=MESSAGE)

    return Contestant(_shown(words), peer, start)


def many(*words: str, line: str = BLOB) -> Contestant:
    """Return a contestant that is given a line for each message in one process; a sample is for one of them."""

    def start(ground: Ground, peer: str) -> Sampler:
        here = installation(ground.work)
        folder = ground.store(peer).folder
        names = _names(folder, here)
        blobs = (folder / IDS).read_text("ascii").split()
        lines = [
            line.format(**{**names, "blob": blob, "number": str(number)})
            for number, blob in enumerate(blobs)
        ]
        given = "".join(f"{each}\n" for each in lines).encode()
        told = (here.trace, *words)
        return _Process(ground, told, here, peer=peer, given=given, per=len(lines))

    return Contestant(_shown(words), "trace", start)


def enough() -> Contestant:
    """Return the required speed of a command that reads many objects."""
    return Contestant(ENOUGH, "python", lambda ground, _: Single(ground.size, 1 / PER_SECOND))


def _names(folder: Path, here: Installation) -> dict[str, str]:
    """Return the arguments of commands: full ids, and a file."""
    tip = subprocess.run(
        [here.trace, "rev-parse", "HEAD"],
        cwd=folder,
        env=here.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if tip.returncode:
        raise Unavailable(f"rev-parse failed: {tip.stderr.strip()[:200]}")
    blob = (folder / IDS).read_text("ascii").split()[-1]
    return {"tip": tip.stdout.strip(), "blob": blob, "file": IDS}


def _shown(words: tuple[str, ...]) -> str:
    names = {"blob": "BLOB", "tip": "COMMIT", "file": "FILE"}
    return " ".join(["trace", *words]).format(**names)


def _started(name: str, title: str, peer: str) -> Job:
    return Job(
        name=name,
        title=title,
        unit="s",
        sizes=(100,),
        rounds=20,
        contestants=(*(command(words, peer) for _, words in COMMANDS), bare()),
        rows=tuple(
            Row(_shown(words), _shown(words), BARE, most, at_most=True) for most, words in COMMANDS
        ),
        base=BARE,
    )


JOBS = (
    _started(
        "start",
        "A whole process, in a repository whose history is in the journal",
        "trace-unpacked",
    ),
    _started("start-packed", "A whole process, in a repository that is packed", "trace"),
    Job(
        name="many",
        title="One process that is given a line for each message, for one line",
        unit="s",
        sizes=(10_000,),
        rounds=7,
        contestants=(
            *(many(*words, line=line) for words, line in MANY),
            enough(),
        ),
        rows=tuple(Row(_shown(words), _shown(words), ENOUGH, 1, at_most=True) for words, _ in MANY),
        base=ENOUGH,
    ),
)

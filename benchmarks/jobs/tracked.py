"""What history in `.trace/` adds to a user's git repository."""

from __future__ import annotations

from benchmarks.ground import Ground, size_of
from benchmarks.job import Contestant, Job, Row, Sampler
from benchmarks.samplers import Single

TRACE = "Trace"
LINES = "one growing JSON Lines file"


def grown(name: str, peer: str, when: str) -> Contestant:
    """Return a contestant whose value is the size of `.git`, before or after git collected garbage."""

    def start(ground: Ground, peer: str) -> Sampler:
        built = ground.store(peer)
        return Single(built.messages, size_of(built.folder / when / ".git"))

    return Contestant(f"{name}, {when} gc", peer, start)


JOBS = (
    Job(
        name="tracked",
        title="Bytes of a user's .git, into which messages were committed 40 at a time; gc.auto off",
        unit="B",
        sizes=(2_000,),
        rounds=1,
        contestants=(
            grown(TRACE, "trace-tracked", "before"),
            grown(TRACE, "trace-tracked", "after"),
            grown(LINES, "lines-tracked", "before"),
            grown(LINES, "lines-tracked", "after"),
        ),
        rows=(
            Row(
                "growth of .git over 50 commits, before gc",
                f"{TRACE}, before gc",
                f"{LINES}, before gc",
                20,
                50,
            ),
            Row(
                "growth of .git over 50 commits, after gc",
                f"{TRACE}, after gc",
                f"{LINES}, after gc",
                2,
                2.8,
            ),
        ),
        variants=("repetitive", "varied"),
    ),
)

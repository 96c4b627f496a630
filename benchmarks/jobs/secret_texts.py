"""The search for secrets in the first texts of a process, with Hyperscan and by RE2 alone."""

from __future__ import annotations

from benchmarks import secret_search
from benchmarks.ground import Ground
from benchmarks.job import Contestant, Job, Row, Sampler
from benchmarks.model import Work

TRACE, ALONE = "Trace", "RE2 alone"
FIRST = "{} to {}".format(*secret_search.SPANS[0])


class _Searching:
    """Searches texts in a new process for each sample, which is the processor time of one of its first texts."""

    def __init__(self, ground: Ground, kind: str) -> None:
        self.reached = ground.size
        self.note = ""
        self.work: Work | None = None
        cache = ground.work / "secrets"
        cache.mkdir(parents=True, exist_ok=True)
        self._asked = [kind, "search", ground.variant, "", str(cache), ""]
        self.sample()  # compiles the rules

    def sample(self) -> float:
        return secret_search.measured(self._asked)[FIRST] / 1e6

    def close(self) -> None:
        pass


def searching(name: str, peer: str, kind: str) -> Contestant:
    """Return a contestant that searches by one of the engines."""

    def start(ground: Ground, peer: str) -> Sampler:
        return _Searching(ground, kind)

    return Contestant(name, peer, start)


JOBS = (
    Job(
        name="secrets",
        title=f"The search for secrets in the texts {FIRST} of a process, in processor time, for each",
        unit="s",
        sizes=(1_000,),
        rounds=5,
        contestants=(searching(TRACE, "trace", "hyperscan"), searching(ALONE, "python", "re2")),
        rows=(Row("search for secrets in the first texts", TRACE, ALONE, 0),),
    ),
)

"""What a contestant and a job are. Jobs are modules of `jobs/`, whose `__init__` holds the table of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from benchmarks.ground import Ground
from benchmarks.model import Work


class Sampler(Protocol):
    """Takes samples of one contestant.

    Attributes:
        reached: the size of the store that is measured.
        work: what the last sample did, when that can be told.
        note: what a reader of the table has to know; else empty.
    """

    reached: int
    note: str
    work: Work | None

    def sample(self) -> float: ...

    def close(self) -> None: ...


class Contestant(NamedTuple):
    """One line of a job's table.

    Attributes:
        name: as shown.
        peer: its name in the table of peers.
        start: returns what takes the samples; what it prepares is not measured.
        most: how many samples it gives at most, spread over the rounds; 0 is one a round.
    """

    name: str
    peer: str
    start: Callable[[Ground, str], Sampler]
    most: int = 0


class Row(NamedTuple):
    """A target for `ours` relative to another contestant of the same job.

    Attributes:
        text: the job in words.
        ours, against: names of contestants.
        target, goal: how many times faster or smaller `ours` is to be, now and later; 0 is no target.
        at_most: the target is a ceiling for `ours` divided by the other.
        size: the size it is stated for, others being shown beside it; 0 is any.
        variant: the kind of transcripts it is stated for; empty is any.
    """

    text: str
    ours: str
    against: str
    target: float
    goal: float = 0.0
    at_most: bool = False
    size: int = 0
    variant: str = ""


class Job(NamedTuple):
    """Something to measure.

    Attributes:
        name: what `--job` takes.
        title: one line: what is measured, from where to where.
        unit: "s" or "B"; less is better in both.
        sizes: how many messages the stores hold, unless `--size` says so.
        rounds: how many samples each contestant gives.
        contestants: who takes part; those of Trace first.
        rows: the targets that it answers.
        variants: the kinds of transcripts, unless `--variant` says so.
        base: the contestant that all others are compared with, where it is not Trace; it gives a sample right before
            each of theirs.
    """

    name: str
    title: str
    unit: str
    sizes: tuple[int, ...]
    rounds: int
    contestants: tuple[Contestant, ...]
    rows: tuple[Row, ...] = ()
    variants: tuple[str, ...] = ("repetitive",)
    base: str = ""

"""Runner of one job at one size. Contestants take turns, so that noise affects all alike."""

from __future__ import annotations

import gc
import os
import random
import time
from typing import Any, NamedTuple

from benchmarks.ground import Ground
from benchmarks.job import Contestant, Job, Sampler
from benchmarks.model import Unavailable, Work
from benchmarks.summary import paired, summary


class Outcome(NamedTuple):
    """The result of one contestant.

    Attributes:
        contestant: its name.
        peer: its peer's name.
        reached: number of messages in its store; fewer than requested if filling it took too long.
        seconds: how long preparing and sampling took.
        summary: n, median, p10 and p90 of its samples in the job's unit; None when there are none.
        ratios: this contestant's sample divided by another's of the same round, summarized over the rounds; by the
            other's name. The others are Trace and the contestants that have a target.
        work: what a sample did.
        note: why samples are missing, or the store is smaller than requested; else empty.
    """

    contestant: str
    peer: str
    reached: int
    seconds: float
    summary: dict[str, float] | None
    ratios: dict[str, dict[str, float]]
    work: Work | None
    note: str


class _Runner:
    """A contestant while it runs.

    Attributes:
        samples: samples by round. The job's base has several a round, so its samples are numbered from 0 instead.
        base: samples of the job's base, each taken just before this contestant's sample of the round; by round.
    """

    def __init__(self, contestant: Contestant) -> None:
        self.contestant = contestant
        self.sampler: Sampler | None = None
        self.samples: dict[int, float] = {}
        self.base: dict[int, float] = {}
        self.seconds = 0.0
        self.sampling = 0.0
        self.reached = 0
        self.note = ""
        self.work: Work | None = None

    def start(self, ground: Ground) -> None:
        began = time.perf_counter()
        try:
            self.sampler = self.contestant.start(ground, self.contestant.peer)
            self.reached = self.sampler.reached
            self.note = self.sampler.note
        except Exception as error:  # noqa: BLE001  a peer's error becomes its note
            self.note = _reason(error)
        self.seconds = time.perf_counter() - began

    def stride(self, rounds: int) -> int:
        """Return n if the contestant takes part in every n-th round."""
        return -(-rounds // (self.contestant.most or rounds))

    def sample(self, round_: int, budget: float) -> None:
        if self.sampler is None:
            return
        began = time.perf_counter()
        try:
            self.samples[round_] = self.sampler.sample()
            self.work = self.sampler.work
            self.note = self.sampler.note
        except Exception as error:  # noqa: BLE001
            self._stop(_reason(error))
            return
        spent = time.perf_counter() - began
        self.seconds += spent
        self.sampling += spent
        if self.sampling > budget:
            self._stop(f"stopped after {len(self.samples)} samples: {budget:.0f} s were used up")

    def finish(self) -> None:
        if self.sampler is None:
            return
        try:
            self.sampler.close()
        except Exception as error:  # noqa: BLE001
            self.note = _reason(error)
            self.samples.clear()
        self.sampler = None

    def _stop(self, note: str) -> None:
        self.note = "; ".join(filter(None, (self.note, note)))
        self.finish()


def run(job: Job, ground: Ground, rounds: int) -> list[Outcome]:
    """Measure all contestants of a job and return their results."""
    runners = [_Runner(each) for each in job.contestants]
    try:
        for runner in runners:
            runner.start(ground)
        _settle()
        order = list(runners)
        base = next((each for each in runners if each.contestant.name == job.base), None)
        rng = random.Random(ground.seed)
        for round_ in range(rounds):
            rng.shuffle(order)
            for runner in order:
                if runner is base or round_ % runner.stride(rounds):
                    continue
                if base is not None:
                    number = len(base.samples)
                    base.sample(number, ground.limit)
                    runner.base[round_] = base.samples.get(number, 0.0)
                runner.sample(round_, ground.limit)
    finally:
        gc.unfreeze()
        for runner in runners:
            runner.finish()
    return _outcomes(runners, job)


def _settle() -> None:
    """Flush writes and collect garbage, so that preparation disturbs no sample."""
    os.sync()
    gc.collect()
    gc.freeze()


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, Unavailable) else f"{type(error).__name__}: {error}"


def _outcomes(runners: list[_Runner], job: Job) -> list[Outcome]:
    base = job.base
    with_target = {row.ours for row in job.rows}
    references = [
        each
        for each in runners
        if each.contestant.peer.startswith("trace") or each.contestant.name in with_target
    ]
    works = [each.work for each in references if each.work]
    found = []
    for each in runners:
        note = each.note
        if each.work and works and each.reached == references[0].reached and each.work != works[0]:
            note = f"different work: {tuple(each.work)} instead of {tuple(works[0])}"
        ratios: dict[str, dict[str, Any]] = {}
        for reference in references:
            if reference is each or (base and each.contestant.name != base):
                continue
            ratio = paired(reference.base if base else each.samples, reference.samples)
            if ratio:
                ratios[reference.contestant.name] = ratio
        found.append(
            Outcome(
                contestant=each.contestant.name,
                peer=each.contestant.peer,
                reached=each.reached,
                seconds=round(each.seconds, 3),
                summary=summary(list(each.samples.values())) if each.samples else None,
                ratios=ratios,
                work=each.work,
                note=note,
            )
        )
    return found

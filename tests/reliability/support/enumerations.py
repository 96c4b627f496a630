"""All states that a power cut may leave of a recording, and their faults.

Whatever a power cut leaves must hold what the repository did after the last step that was durable, or after a later
one, up to the one that was cut off; and it must be possible to go on with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.reliability.support.holdings import Holding, Look, holding_of, short
from tests.reliability.support.recordings import Recording, Step
from trace_store.testing.power_cuts import DiskImage, Kernel

DERIVED = frozenset({"tmp", "locks"})


@dataclass
class Count:
    """What was gone through.

    Attributes:
        cuts: points at which the power was cut.
        states: what that left, each way once for each point.
        distinct: how many of them were different, and opened.
        bounded: points with more choices than were made.
    """

    cuts: int = 0
    states: int = 0
    distinct: int = 0
    bounded: int = 0
    violations: list[str] = field(default_factory=list)


class Enumeration:
    """Enumerates the states after power cuts; caches the content of known states."""

    def __init__(self, *, limit: int = 256, thorough: int = 20) -> None:
        self.limit = limit
        self.thorough = thorough
        self.count = Count()
        self._seen: dict[object, Holding] = {}

    def violations(self, recording: Recording) -> Iterator[str]:
        """Yield the faults after every prefix of the recorded events."""
        kernel = Kernel(recording.before, limit=self.limit)
        events = recording.log()
        steps = recording.steps
        for place in range(recording.begin, recording.begin + len(events) + 1):
            if place > recording.begin:
                kernel.apply(events[place - recording.begin - 1])
            if place < recording.judged_from:
                continue
            at = max(i for i, step in enumerate(steps) if step.place <= place)
            # The possible states after an unsynced change include the state before it.
            judged: set[object] = set()
            for number, image in enumerate(kernel.states()):
                self.count.states += 1
                key = image.key(DERIVED)
                if (key, number == 0) in judged:
                    continue
                judged.add((key, number == 0))
                found = self._found(key, image, recording.look)
                for fault in judge(found, steps, at, killed=number == 0):
                    said = f"{fault} [cut {place} in {_cut_off(steps, at)}]"
                    self.count.violations.append(said)
                    yield said
        self.count.cuts += kernel.cuts
        self.count.bounded += kernel.bounded

    def _found(self, key: object, image: DiskImage, look: Look) -> Holding:
        found = self._seen.get((key, look))
        if found is None:
            self.count.distinct += 1
            found = self._seen[key, look] = holding_of(
                image, look, goes_on=True, thorough=self.count.distinct % self.thorough == 0
            )
        return found


def _cut_off(steps: list[Step], at: int) -> str:
    return steps[at + 1].name if at + 1 < len(steps) else f"nothing after {steps[at].name}"


def judge(found: Holding, steps: list[Step], at: int, *, killed: bool) -> Iterator[str]:
    """Yield the faults in the content found after a cut behind step `at`.

    After a kill, which leaves all that was done, everything acknowledged is there however durable it was to be. While
    what is damaged is being repaired, only what it holds counts.
    """
    since = at if killed else max(i for i in range(at + 1) if steps[i].durable)
    settled = max(i for i in range(since + 1) if steps[i].durable and steps[i].settles)
    allowed = steps[settled : at + 2]
    if not any(each.holding.faults for each in allowed):
        yield from found.faults
        if not any(_is_as(found, each) for each in allowed) and not (
            len(allowed) > 1
            and (allowed[-1].gradual or allowed[-1].refused)
            and _is_between(found, allowed)
        ):
            were = " or ".join(short(each.holding.refs) for each in allowed)
            yield f"refs are {short(found.refs)}, not {were}"
    wanted = steps[since].promised
    for each in allowed:
        if each.drops:
            wanted &= each.holding.objects
    if not found.objects >= wanted:
        yield f"{len(wanted - found.objects)} acknowledged objects are gone"
    if not found.purged >= frozenset.intersection(*(each.holding.purged for each in allowed)):
        yield "an object is no longer told to be purged"
    # New reflog entries of a seal are not synced, but old entries must survive.
    if not found.logged >= steps[0].holding.logged.intersection(
        *(each.holding.logged for each in allowed)
    ):
        yield "entries of a reflog are gone"
    if steps[since].erases:
        if found.purged - steps[since].holding.purged:
            yield "a tombstone is there still, with the id that was to go"
        yield from (f"the secret is in {leak}" for leak in found.leaks)
    may = {file for each in allowed for file in each.holding.files}
    must = set.intersection(*({path for path, _ in each.holding.files} for each in allowed))
    yield from (
        f"{path} holds what it never did" for path, data in found.files if (path, data) not in may
    )
    yield from (f"{path} is gone" for path in must - {path for path, _ in found.files})


def _is_as(found: Holding, step: Step) -> bool:
    return found.refs == step.holding.refs


def _is_between(found: Holding, steps: list[Step]) -> bool:
    """Tell whether each ref has a value that it had, or passed through."""
    if found.refs is None or any(step.holding.refs is None for step in steps):
        return False
    now = dict(found.refs)
    for name in {name for step in steps for name, _ in step.holding.refs or ()} | set(now):
        values = [dict(step.holding.refs or ()).get(name, ()) for step in steps]
        if now.get(name, ()) not in values and not all(
            tip in (found if steps[-1].refused else steps[-1].holding).objects
            for tip in now.get(name, ())
        ):
            return False
    return True
